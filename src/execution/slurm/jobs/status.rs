//! Jobs: submitted into the reservation of their agreement, followed to their end, cancelled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tracing::warn;

use crate::agreement::{JobEnd, Run, RunOutcome};
use crate::clock::{Clock, MICROS_PER_SECOND, Micros, second_of};
use crate::execution::files::outputs::Stream;
use crate::execution::job::folder::Folder;
use crate::execution::job::spec::WORTH_STARTING;
use crate::execution::slurm::commands::{Error, not_understood, option};
use crate::execution::slurm::helper::operation::Operation;
use crate::execution::slurm::jobs::dry_run::WHOLE_NODES;
use crate::execution::slurm::jobs::shared_folder::{Ended, Owner, SharedFolder, signal_and_grace};
use crate::execution::slurm::query::{JobRow, JobState};
use crate::execution::slurm::{SlurmExecutor, lock};
use crate::execution::{ExecutionError, JobSpec, JobStatus, SaveWork};

/// The script that every job begins with. Its arguments: the folder of its records, the slot's end in seconds, the signal
/// that tells the program to save its work (`-` for none) and how many milliseconds before that end it gets it, the program
/// and its arguments. The claim comes before anything else, so that a second submission of the same job does nothing, even
/// if Slurm does not remember the first.
pub(crate) const SCRIPT: &str = r#"#!/bin/sh
# Runs a job of Bespeak at most once, and not beyond the end of its slot. Has it save its work before that, where it is to.
# The service may change both in `until` and `save`.
records=$1 end=$2 signal=$3 grace=$4
shift 4
exec 3>&2 2>/dev/null
look() {
  [ -r "$records/until" ] && read -r end <"$records/until"
  [ -r "$records/save" ] && read -r signal grace <"$records/save"
  left=$((end * 1000 - $(date +%s%3N)))
}
tell() {
  read -r group <"$records/.group" && kill -s "$1" -- "-$group"
}
stop() {
  until [ -s "$records/.group" ]; do sleep 0.1; done
  tell TERM
  tries=0
  while [ "$tries" -lt 20 ] && tell 0; do
    sleep 0.1
    tries=$((tries + 1))
  done
  tell KILL
}
look
# What would hardly do more than save its work is not begun: it might be told so before it listens.
[ "$signal" = - ] || left=$((left - 1000))
[ "$left" -gt "$grace" ] || exit 118
mkdir "$records/claim" || exit 117
date +%s%6N >"$records/.started" && mv "$records/.started" "$records/started"
(
  told=
  trap 'stop; exit' TERM
  while look; [ "$left" -gt 0 ]; do
    pause=$left
    if [ -z "$told" ] && [ "$signal" != - ]; then
      pause=$((left - grace))
      if [ "$pause" -le 0 ]; then
        # Written down first: a program that ends well after this may have saved unfinished work.
        true >"$records/.told" && tell "$signal" && told=1
        pause=100
      fi
    fi
    [ "$pause" -lt 2000 ] || pause=2000
    sleep "$((pause / 1000)).$(printf %03d "$((pause % 1000))")"
  done
  true >"$records/.over"
  # A program that was told to save its work has had its time.
  if [ -e "$records/.told" ]; then tell KILL; else stop; fi
) 3>&- &
watch=$!
# Slurm ends a job by ending all of it at once, and this has to see the program's end.
trap 'cancelled=1' TERM
# A group of its own is told and stopped as a whole. It is not in the background, where some signals are ignored.
# One whose group is not known could not be stopped.
setsid sh -c 'echo $$ >"$0" && exec "$@"' "$records/.group" "$@" </dev/null 2>&3 3>&-
status=$?
[ -s "$records/.group" ] || exit 118
kill -s KILL "$watch"
# Slurm knows how that ended.
[ -z "$cancelled" ] || exit 143
told=
[ -e "$records/.told" ] && told=told
[ -e "$records/.over" ] && status=124
echo "$status $(date +%s%6N) $told" >"$records/.ended" && mv "$records/.ended" "$records/ended"
exit "$status"
"#;

/// The script's exit status where another job has the claim, and where its slot is over.
const TURNED_AWAY: [i32; 2] = [117, 118];
/// The script's exit status where it had to stop the program, and the one of a program that was killed otherwise.
const STOPPED: [i32; 2] = [124, 137];

/// The exit status of a program that Slurm ends with its job.
const TERMINATED: i32 = 143;

/// How long a job may run on past its slot's end before it is cancelled: its script stops it by itself.
pub(crate) const OVERTIME: Micros = 10 * MICROS_PER_SECOND;
/// How long past its slot's end a job is waited for that has begun and that Slurm does not know.
const ORPHAN_WAIT: Micros = 60 * MICROS_PER_SECOND;
/// How long after Slurm has given it its nodes a job may say that its program began: its user writes that record, and would be
/// paid for a late start after a later one.
const BEGINS_WITHIN: Micros = 3 * MICROS_PER_SECOND;
/// Seconds that only a job lasts that has run.
const RAN: i64 = 3;
/// How often a submission or a cancellation is repeated.
pub(crate) const TRY_EVERY: Duration = Duration::from_secs(1);
/// By how much submissions that come to nothing slow the next one down at most.
const TRIES_SLOWER_MAX: u32 = 30;
const SECONDS_PER_MINUTE: i64 = 60;

impl SlurmExecutor {
    /// Leaves the intent to run a job, durably.
    pub(crate) fn intend(&self, job: &JobSpec) -> Result<(), ExecutionError> {
        Folder::create(self.folders.path(), job).map(drop)
    }

    /// How a job stands; submits it where it should be there and is not.
    pub(crate) fn status(&self, of: Run) -> Result<JobStatus, ExecutionError> {
        let folder = self.folder(of);
        if let Some(end) = folder.end()? {
            return Ok(JobStatus::Ended(end));
        }
        let Some(job) = folder.spec()? else {
            return Ok(JobStatus::NotStarted);
        };
        let work = self.shared_folder_of(&job)?;
        let now = Clock::system().micros();
        let recorded = work.ended();
        let conclude_as_recorded = |ended: Ended, row: Option<&JobRow>| {
            let outcome = outcome_of(ended, &job, folder.stop_asked());
            self.conclude(&folder, &job, outcome, ended.at, row)
        };
        let listed = match (self.listed_jobs(), recorded) {
            // After its slot nothing is gained by a wrong word, and a controller may be down for days.
            (Err(_), Some(ended)) if now > job.slot_end + OVERTIME => {
                return conclude_as_recorded(ended, None);
            }
            (listed, _) => listed?,
        };
        let id = job.run();
        let name = self.name_of(id);
        // Any user may give a job this name.
        let user = self.owner_of(&job.party)?.user;
        let ours: Vec<&JobRow> = listed
            .iter()
            .filter(|row| row.name == name && row.user == user)
            .collect();
        // Its user may write any record of its end; while Slurm says that it runs, it does.
        let runs = |row: &&&JobRow| {
            !row.state.is_final() && (recorded.is_none() || row.state != JobState::Completing)
        };
        let alive: Vec<&JobRow> = ours.iter().filter(runs).copied().collect();
        if !alive.is_empty() {
            if alive.iter().any(|row| row.is_put_off(&name)) {
                folder.note_put_off()?;
            }
            let overtime = now > job.slot_end + OVERTIME;
            if (overtime || folder.stop_asked()) && self.may_try(id, TRY_EVERY) {
                self.cancel(&alive)?;
            }
            let running = alive.iter().find(|row| row.state == JobState::Running);
            return Ok(JobStatus::Running {
                started: running.map_or_else(|| work.started(), |row| started_of(&work, Some(row), now)),
            });
        }
        // Of several submissions only one has begun; the others were turned away at once.
        let row = ours.iter().max_by_key(|row| row.lasted()).copied();
        // Where the program's end was seen before the script was told of it, the script has taken that for its own.
        let is_cancelled = row.is_some_and(|row| row.state == JobState::Cancelled);
        let recorded = recorded.filter(|ended| !(is_cancelled && ended.status == TERMINATED));
        if let Some(ended) = recorded {
            return conclude_as_recorded(ended, row);
        }
        for row in &ours {
            if let Some(outcome) = self.outcome_by_slurm(row, &job, &folder)? {
                let ended = row.end.map_or(now, |end| end.seconds() * MICROS_PER_SECOND);
                return self.conclude(&folder, &job, outcome, ended.min(now), Some(row));
            }
        }
        let tried = u32::try_from(ours.len()).unwrap_or(u32::MAX);
        self.status_of_unknown(&folder, &job, &work, tried)
    }

    /// How a job has ended by its own record, even if Slurm reports a failure of its nodes. Its user may write that record; one
    /// that is wrong spares the provider a loss.
    pub(crate) fn end_by_record(&self, of: Run) -> Result<Option<JobEnd>, ExecutionError> {
        let folder = self.folder(of);
        if let Some(end) = folder.end()? {
            return Ok(Some(end));
        }
        let Some(job) = folder.spec()? else {
            return Ok(None);
        };
        let work = self.shared_folder_of(&job)?;
        let unread = ExecutionError::system("read the record in", work.path());
        let Some(ended) = work.ended_for_sure().map_err(unread)? else {
            return Ok(None);
        };
        let outcome = outcome_of(ended, &job, folder.stop_asked());
        match self.conclude(&folder, &job, outcome, ended.at, None)? {
            JobStatus::Ended(end) => Ok(Some(end)),
            JobStatus::NotStarted | JobStatus::Running { .. } => Ok(None),
        }
    }

    /// How a job stands that Slurm does not know, or knows only by `tried` submissions that came to nothing.
    fn status_of_unknown(
        &self,
        folder: &Folder,
        job: &JobSpec,
        work: &SharedFolder,
        tried: u32,
    ) -> Result<JobStatus, ExecutionError> {
        let now = Clock::system().micros();
        if work.is_claimed()? {
            // Slurm has forgotten it. It may run on, and must not be run again; its script writes down its end.
            return if now > job.slot_end + ORPHAN_WAIT {
                self.conclude(folder, job, RunOutcome::Lost, now, None)
            } else {
                Ok(JobStatus::Running {
                    started: work.started(),
                })
            };
        }
        if folder.stop_asked() {
            return self.conclude(folder, job, RunOutcome::Terminated, now, None);
        }
        // It would do nothing but save its work.
        let save = folder.save(job)?;
        if now >= job.slot_end - save.map_or(0, |save| save.grace + WORTH_STARTING) {
            return self.conclude(folder, job, RunOutcome::Lost, now, None);
        }
        // Without its nodes Slurm would only refuse it.
        if self.may_be_kept(job) && self.may_try(job.run(), TRY_EVERY * (tried + 1).min(TRIES_SLOWER_MAX)) {
            folder.note_shared(work.path())?;
            let began = Instant::now();
            if work.create(job, save, &folder.work())? {
                folder.note_copied(micros(began.elapsed()))?;
            }
            self.have_submitted(job, save, work)?;
        }
        Ok(JobStatus::Running { started: None })
    }

    pub(crate) fn submit(
        &self,
        job: &JobSpec,
        save: Option<SaveWork>,
        work: &SharedFolder,
    ) -> Result<(), ExecutionError> {
        let name = self.name_of(job.run());
        let end = second_of(job.slot_end).seconds();
        // Slurm counts in minutes; the script ends the job at the second.
        let minutes = self.minutes(end - Clock::system().now().seconds())?;
        let mut arguments = self.job_arguments((&job.party, &job.application), job.nodes, minutes)?;
        // Whole nodes were promised.
        arguments.extend(WHOLE_NODES.map(Into::into));
        let own = [
            "--parsable".to_owned(),
            format!("--job-name={name}"),
            format!("--comment={name}"),
            format!("--reservation={name}"),
            // A job that is turned away must not delete the output of the other.
            "--open-mode=append".to_owned(),
            "--export=ALL".to_owned(),
        ];
        arguments.extend(own.map(Into::into));
        arguments.push(option("--chdir", &work.work()));
        arguments.push(option("--output", &work.output(Stream::Out)));
        arguments.push(option("--error", &work.output(Stream::Err)));
        let (signal, grace) = signal_and_grace(save);
        arguments.extend([
            self.script.clone().into(),
            work.path().into(),
            end.to_string().into(),
            signal.into(),
            grace.to_string().into(),
            job.program.clone().into(),
        ]);
        arguments.extend(job.arguments.iter().map(Into::into));
        let mut environment = vec![
            ("HOME", work.work().to_string_lossy().into_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("BESPEAK_AGREEMENT", job.agreement.to_string()),
            ("BESPEAK_NODES", job.nodes.to_string()),
            ("BESPEAK_SLOT_END", end.to_string()),
        ];
        if let Some(piece) = job.piece {
            environment.push(("BESPEAK_PIECE", piece.number.to_string()));
            environment.push(("BESPEAK_PIECES", piece.of.to_string()));
        }
        self.let_overlap(job.run())?;
        let submitted = self.slurm.call_with("sbatch", arguments, environment);
        self.forget_list();
        if submitted.is_err() {
            // Its limit may have become shorter.
            *lock(&self.partitions) = None;
        }
        submitted?;
        Ok(())
    }

    /// Makes a job stop at another instant than before. The change goes to its script, which stops it to the second, to
    /// the service's own record, and to Slurm. Slurm's limit counts from the job's start in whole minutes.
    pub(crate) fn stop_at(&self, of: Run, end: Micros) -> Result<(), ExecutionError> {
        let folder = self.folder(of);
        let Some(job) = folder.spec()? else {
            return Ok(());
        };
        if job.slot_end != end {
            self.shared_folder_of(&job)?.put_until(second_of(end))?;
            folder.put_until(end)?;
        }
        if folder.until()?.is_none() {
            return Ok(());
        }
        let id = job.run();
        let name = self.name_of(id);
        let user = self.owner_of(&job.party)?.user;
        let listed = self.listed_jobs()?;
        let ours = |row: &&JobRow| row.name == name && row.user == user && row.state == JobState::Running;
        for row in listed.iter().filter(ours) {
            let (Some(start), Some(limit)) = (row.start, row.end) else {
                continue;
            };
            if limit >= second_of(end) || !self.may_try(id, TRY_EVERY) {
                continue;
            }
            let seconds = second_of(end) - start;
            let minutes = (seconds + SECONDS_PER_MINUTE - 1) / SECONDS_PER_MINUTE;
            self.act(Operation::Limit {
                job: row.id.clone(),
                minutes,
            })?;
            self.forget_list();
        }
        Ok(())
    }

    /// Has a job be told to save its work before the end of its slot, or not be told: its script looks for that, and the service's
    /// own record says how its end is meant.
    pub(crate) fn tell_to_save(&self, of: Run, save: Option<SaveWork>) -> Result<(), ExecutionError> {
        let folder = self.folder(of);
        let Some(job) = folder.spec()? else {
            return Ok(());
        };
        if folder.save(&job)?.is_some() != save.is_some() {
            self.shared_folder_of(&job)?.put_save(save)?;
            folder.put_save(save)?;
        }
        Ok(())
    }

    /// Asks a job to stop, durably.
    pub(crate) fn ask_to_stop(&self, of: Run) -> Result<(), ExecutionError> {
        let folder = self.folder(of);
        let Some(job) = folder.spec()? else { return Ok(()) };
        if folder.end()?.is_some() || folder.stop_asked() {
            return Ok(());
        }
        folder.ask_to_stop(None)?;
        lock(&self.tried).remove(&job.run());
        self.status(of).map(drop)
    }

    /// How a job ended that left no record of its own; `None` for one that came to nothing.
    fn outcome_by_slurm(
        &self,
        row: &JobRow,
        job: &JobSpec,
        folder: &Folder,
    ) -> Result<Option<RunOutcome>, ExecutionError> {
        let stop_asked = folder.stop_asked();
        let cut = row.end.is_some_and(|end| end >= second_of(job.slot_end));
        let claimed = self.shared_folder_of(job)?.is_claimed()?;
        let had_nodes = claimed || !row.nodes.is_empty();
        Ok(match row.state {
            // Its user has given the name to something else: our script claims a job before it starts it.
            JobState::Completed | JobState::TimedOut if !claimed && row.lasted() < RAN => None,
            JobState::Waiting | JobState::Starting | JobState::Running | JobState::Completing => None,
            // Slurm does not know whether it was told to save its work before it ended.
            JobState::Completed => Some(match folder.save(job)? {
                Some(save)
                    if row
                        .end
                        .is_some_and(|end| end >= second_of(job.slot_end - save.grace)) =>
                {
                    saved(stop_asked)
                }
                _ => RunOutcome::Completed,
            }),
            JobState::TimedOut => Some(RunOutcome::Killed),
            JobState::Cancelled if stop_asked => Some(RunOutcome::Terminated),
            // One that waited all slot long was not stopped in anything: the nodes that it was promised never took it, unless
            // its user had put it off, or given them to something else.
            JobState::Cancelled if cut && !had_nodes => {
                let by_its_user = folder.was_put_off() || self.was_ousted(row, job)?;
                Some(if by_its_user {
                    RunOutcome::Terminated
                } else {
                    RunOutcome::Lost
                })
            }
            JobState::Cancelled if cut => Some(RunOutcome::Killed),
            JobState::Cancelled => self.outcome_of_cancelled(row, job)?,
            JobState::Lost => Some(RunOutcome::Lost),
            JobState::Failed => match self.slurm.exit_of(&row.id)? {
                exit if TURNED_AWAY.contains(&exit) => None,
                // It was refused, or its nodes could not begin it: nothing that its program did, and worth another try.
                // One that ran has removed its claim.
                _ if !claimed && row.lasted() < RAN => None,
                exit => Some(RunOutcome::Failed { exit }),
            },
        })
    }

    /// Whether another job of the same user has had nodes of the reservation that a job waited for.
    fn was_ousted(&self, row: &JobRow, job: &JobSpec) -> Result<bool, Error> {
        let name = self.name_of(job.run());
        let ousts = |other: &JobRow| {
            other.id != row.id
                && other.user == row.user
                && other.reservation.as_deref() == Some(name.as_str())
                && other.lasted() >= RAN
        };
        Ok(self.listed_jobs()?.iter().any(ousts))
    }

    pub(crate) fn shared_folder_of(&self, job: &JobSpec) -> Result<SharedFolder, ExecutionError> {
        let (id, owner) = (job.run(), self.owner_of(&job.party)?);
        let work_dir = &self.settings.work_dir;
        let first = if id.slot > 1 {
            let noted = self.folder(Run::first(job.agreement)).shared()?;
            Some(noted.unwrap_or_else(|| work_dir.join(Run::first(job.agreement).to_string())))
        } else {
            None
        };
        Ok(SharedFolder::of(work_dir, id, first, owner).through(self.helper.as_ref(), id, &job.party))
    }

    /// Records the end of a job, with its outputs, where it lasts. Outputs that cannot be read delay nothing.
    fn conclude(
        &self,
        folder: &Folder,
        job: &JobSpec,
        outcome: RunOutcome,
        ended: Micros,
        row: Option<&JobRow>,
    ) -> Result<JobStatus, ExecutionError> {
        let (began, work) = (Instant::now(), self.shared_folder_of(job)?);
        let (mut output_bytes, mut truncated) = (0, false);
        // The output of all slots is fetched anew with each.
        let common = self.folder(Run::first(job.agreement));
        for stream in [Stream::Out, Stream::Err] {
            let mut kept = common.create_output(stream)?;
            match work.copy_output(stream, &mut kept, job.output_limit) {
                Ok((bytes, more)) => (output_bytes, truncated) = (output_bytes + bytes, truncated || more),
                Err(error) => {
                    warn!(agreement = %job.agreement, output = stream.name(), %error, "not fetched");
                    truncated = true;
                }
            }
        }
        // Its party may have removed the inputs of the first slot; a later slot does not know them any more.
        let given = common
            .spec()?
            .map_or_else(|| job.inputs.clone(), |first| first.inputs);
        let (from, to, agreement) = (work.clone(), folder.work(), job.agreement);
        let fetching = Arc::clone(&self.fetching);
        let fetch = move || {
            let _one = lock(&fetching);
            if let Err(error) = from.fetch_files(&given, &to) {
                warn!(%agreement, %error, "files not fetched");
            }
        };
        // The next slot waits for the end of this one.
        let later = if outcome == RunOutcome::Checkpointed {
            Some(fetch)
        } else {
            fetch();
            None
        };
        let bytes = |path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let outcome = match folder.why_stopped()? {
            Some(excess) if outcome == RunOutcome::Terminated => RunOutcome::Exceeded { limit: excess.limit },
            _ => outcome,
        };
        let given_at = row
            .and_then(|row| row.start)
            .map(|at| at.seconds() * MICROS_PER_SECOND);
        let end = JobEnd {
            outcome,
            // One that never had its nodes has not begun, and one that has its claim has.
            started: started_of(&work, row.filter(|row| !row.nodes.is_empty()), ended)
                .or(work.is_claimed()?.then_some(given_at.unwrap_or(ended).min(ended))),
            ended,
            input_bytes: job.inputs.iter().map(bytes).sum(),
            output_bytes,
            truncated,
            transfer_in: folder.copied()?.unwrap_or(0),
            transfer_out: micros(began.elapsed()),
        };
        folder.write_end(&end)?;
        if let Some(fetch) = later {
            let at_once = fetch.clone();
            if std::thread::Builder::new().spawn(fetch).is_err() {
                at_once();
            }
        }
        Ok(JobStatus::Ended(end))
    }

    /// The user of a party's jobs, by numbers.
    ///
    /// # Errors
    /// When this machine does not know the user, or may not act for it.
    pub(crate) fn owner_of(&self, party: &str) -> Result<Owner, Error> {
        let name = &self.settings.account_of(party).user;
        if let Some(owner) = lock(&self.owners).get(name) {
            return Ok(*owner);
        }
        let refused = |said: String| Error::Refused {
            program: "getent",
            said,
        };
        let entry = self
            .slurm
            .call("getent", ["passwd", name])
            .map_err(|_| refused(format!("this machine has no user {name}")))?;
        let mut ids = entry.split(':').skip(2).map(|id| id.trim().parse().ok());
        let (Some(Some(user)), Some(Some(group))) = (ids.next(), ids.next()) else {
            return Err(not_understood("getent", &entry));
        };
        if self.helper.is_none() && !geteuid().is_root() && geteuid().as_raw() != user {
            return Err(refused(format!(
                "only root can run jobs as {name}: let the service use a helper, or run it as root or as {name}"
            )));
        }
        let owner = Owner { user, group };
        lock(&self.owners).insert(name.clone(), owner);
        Ok(owner)
    }
}

/// When a job's program began: by its user's record, as far as Slurm's own data allow it.
fn started_of(work: &SharedFolder, row: Option<&JobRow>, now: Micros) -> Option<Micros> {
    let recorded = work.started();
    let Some(given) = row.and_then(|row| row.start) else {
        return recorded;
    };
    let given = given.seconds() * MICROS_PER_SECOND;
    let latest = given + BEGINS_WITHIN;
    recorded
        .map(|at| at.clamp(given, latest))
        .or((now > latest).then_some(latest))
}

/// How a program ended, from its job's record.
fn outcome_of(ended: Ended, job: &JobSpec, stop_asked: bool) -> RunOutcome {
    match ended.status {
        0 if ended.told => saved(stop_asked),
        0 => RunOutcome::Completed,
        status if STOPPED.contains(&status) && ended.at >= job.slot_end => RunOutcome::Killed,
        _ if stop_asked => RunOutcome::Terminated,
        exit => RunOutcome::Failed { exit },
    }
}

/// How a job ended that ended well after it was told to save its work.
fn saved(stop_asked: bool) -> RunOutcome {
    if stop_asked {
        RunOutcome::Terminated
    } else {
        RunOutcome::Checkpointed
    }
}

fn micros(took: Duration) -> Micros {
    Micros::try_from(took.as_micros()).unwrap_or(Micros::MAX)
}
