//! The supervisor: a small process for each job that outlives the service. It has the job launched, keeps its outputs,
//! stops it at the slot's end or when asked, and records how it ended. It leads a session of its own, so that neither the
//! service's end nor a key at its terminal reaches it.
//!
//! It may be killed itself. The next one finds by the job's claim where things stand: a job that never started is
//! launched, and so is one whose launcher was killed before it became the program; a job that runs is watched, and its outputs are read on
//! (its exit status is lost with its parent, unless it is isolated); a job that is gone without a trace is lost.
//!
//! A shortage of this machine ([`super::shortage`]) ends nothing. The supervisor has all that it needs for a launch
//! before it launches. It tries each necessary read or write again until it succeeds.

use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use domain::agreement::{JobEnd, Limit, RunOutcome};
use domain::catalogue::CheckpointSignal;
use domain::clock::{Clock, Micros};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::job::control_group::ControlGroup;
use crate::job::excess::Excess;
use crate::job::folder::{Claim, Folder};
use crate::job::isolation_record::read_isolation_record;
use crate::job::launch::wait_for_launcher;
use crate::job::limits::{LimitWatch, exceeded_file_limits};
use crate::job::output_pipes::{
    CapturedOutputs, TakenOver, capture_output_pipes, remove_output_pipes, take_over_output_pipes,
};
use crate::job::process::{
    JobProcesses, ProcessIdentity, process_ended_within, signal_isolated_program, signal_process_group,
};
use crate::job::shortage::{self, retry_during_shortage};
use crate::job::standard_error::say_on_standard_error;
use crate::job::start_time::StartTime;
use crate::{ExecutionError, JobSpec, SaveWork};

/// How long a job has between the request to end and its being killed. Its nodes may be another's by then, so it is just
/// enough to close files.
const GRACE: Duration = Duration::from_secs(2);
/// How often the clock and the request to stop are looked at: the clock may be stepped, so no wait is longer.
const TICK: Duration = Duration::from_millis(200);
/// How long to wait before a job is launched again after its launcher was ended from outside.
const RELAUNCH_PAUSE: Duration = Duration::from_secs(1);

/// Supervises the job of this folder to its end. Called in a process of its own.
pub fn run_supervisor(job_folder: &Path) -> ExitCode {
    // It fails only for the leader of a group, which is apart from the service already.
    let _ = rustix::process::setsid();
    match supervise_job(&Folder::at(job_folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_on_standard_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn supervise_job(folder: &Folder) -> Result<(), ExecutionError> {
    let Some(_lock) = retry_during_shortage(|| folder.lock())? else {
        return Ok(());
    };
    let Some(job) = retry_during_shortage(|| folder.spec())? else {
        return Ok(());
    };
    if retry_during_shortage(|| folder.end())?.is_some() {
        return Ok(());
    }
    let supervisor = Supervisor::new(folder, job, Clock::system());
    let end = supervisor.see_to_the_end()?;
    // Put away first, out of the way of others, and removed last: that may take long, and the end must not be lost.
    let temporary = folder.put_away_temporary();
    retry_during_shortage(|| folder.write_end(&end))?;
    remove_output_pipes(folder);
    // Until then another supervisor may have to read its text.
    supervisor.group.iter().for_each(ControlGroup::remove);
    if let Err(error) = temporary.and_then(|remove| remove.map_or(Ok(()), |remove| remove())) {
        say_on_standard_error(&error);
    }
    Ok(())
}

/// Why a job is to run no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Asked,
    SlotOver,
    Exceeded(Excess),
    /// The end of its slot is near: it is to save its work.
    SaveWork,
}

impl Stop {
    fn outcome(self) -> RunOutcome {
        match self {
            Self::Asked => RunOutcome::Terminated,
            // A program that had to be killed has not saved its work.
            Self::SlotOver | Self::SaveWork => RunOutcome::Killed,
            Self::Exceeded(Excess { limit, .. }) => RunOutcome::Exceeded { limit },
        }
    }

    /// The outcome of a job that ended by itself, with that status where it is known, after it was told.
    fn outcome_after(self, status: Option<ExitStatus>) -> RunOutcome {
        match (self, status) {
            // It is not known whether it saved its work.
            (Self::SaveWork, None) => RunOutcome::Lost,
            (Self::SaveWork, Some(status)) if status.success() => RunOutcome::Checkpointed,
            (Self::SaveWork, Some(status)) => outcome_of_supervised_exit(status),
            (stop, _) => stop.outcome(),
        }
    }
}

/// How a job that was told to end has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopOutcome {
    ByItself,
    Killed,
}

struct Supervisor<'a> {
    folder: &'a Folder,
    job: JobSpec,
    clock: Clock,
    /// When the slot ends, as was last read.
    slot_end: AtomicI64,
    group: Option<ControlGroup>,
}

impl<'a> Supervisor<'a> {
    fn new(folder: &'a Folder, job: JobSpec, clock: Clock) -> Self {
        Self {
            slot_end: AtomicI64::new(job.slot_end),
            group: ControlGroup::of(job.run()),
            folder,
            job,
            clock,
        }
    }

    fn see_to_the_end(&self) -> Result<JobEnd, ExecutionError> {
        let (mut told, mut kept) = (false, None);
        loop {
            match retry_during_shortage(|| self.folder.claim())? {
                Some(Claim::Started { process, began }) => return self.watch(&process, began, kept),
                Some(Claim::Abandoned) => {
                    let stop = retry_during_shortage(|| self.ordered_stop())?;
                    self.report_excess(stop);
                    return Ok(self.end(stop.map_or(RunOutcome::Lost, Stop::outcome), None));
                }
                // A launcher of an earlier supervisor may yet claim the job: the winner is known in the next round.
                None if self.reason_to_stop()?.is_some() => {
                    retry_during_shortage(|| self.folder.decide_claim(&Claim::Abandoned))?;
                }
                None => match self.launch(kept.take()) {
                    Ok((child, outputs)) => {
                        if let Some(end) = self.see_to(child, &outputs)? {
                            return Ok(end);
                        }
                        kept = Some(outputs);
                    }
                    // Nothing has run, and the slot is not over.
                    Err(error) if error.is_shortage() => {
                        if !std::mem::replace(&mut told, true) {
                            say_on_standard_error(&error);
                        }
                        thread::sleep(shortage::PAUSE);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Launches the job, once all is there that it needs for that: a process that is to become it, and its outputs. `before` are those
    /// of a process that did not become it: of two readers of one pipe each would get a part.
    fn launch(&self, before: Option<CapturedOutputs>) -> Result<(Child, CapturedOutputs), ExecutionError> {
        let _ = before.is_some_and(|outputs| outputs.is_cut());
        let ([stdout, stderr], outputs) = capture_output_pipes(self.folder, self.job.output_limit)?;
        let child = Command::new(crate::local_executor::EXECUTABLE)
            .arg0("bespeak")
            .arg("launch")
            .arg(self.folder.path())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(self.failed("launch"))?;
        Ok((child, outputs))
    }

    /// Waits for the end of the process that was launched; `None` where it did not become the job.
    fn see_to(&self, mut child: Child, outputs: &CapturedOutputs) -> Result<Option<JobEnd>, ExecutionError> {
        let leader = Pid::from_child(&child);
        let identity = retry_during_shortage(|| {
            ProcessIdentity::of(leader).map_err(self.failed("identify the process of"))
        })?;
        let process = retry_during_shortage(|| {
            pidfd_open(leader, PidfdFlags::empty()).map_err(self.failed("follow the process of"))
        })?;

        let mut watch = self.watch_over(&identity);
        let stop = self.wait(&process, leader, &mut watch)?;
        let ended = StartTime::now(&self.clock);
        // The rest of its group is killed before its status is taken: its number is the group's, and may be given away as soon as
        // the status is taken.
        signal_process_group(leader, Signal::KILL).map_err(self.failed("kill the processes of"))?;
        let ended_as = wait_for_launcher(leader, || child.wait());
        let (mut never_ran, status) = ended_as.map_err(self.failed("wait for"))?;
        let claim = retry_during_shortage(|| self.folder.claim())?;
        let is_its = matches!(&claim, Some(Claim::Started { process, .. }) if *process == identity);
        // The system may have ended it for want of the memory that its job may have.
        never_ran &= !stop.is_some_and(|(stop, _)| matches!(stop, Stop::Exceeded(_)));
        never_ran &= self
            .group
            .as_ref()
            .and_then(|group| group.excess(&self.job.limits, false))
            .is_none();
        if is_its && never_ran {
            retry_during_shortage(|| self.folder.take_back_claim())?;
        }
        let began = match claim {
            Some(Claim::Started { began, .. }) if is_its && !never_ran => began,
            Some(_) if !is_its => return Ok(None),
            _ if stop.is_some() => return Ok(None),
            // It says by itself why it could not. Otherwise something else has ended it, and the next one may do better.
            _ if status.code() == Some(1) => {
                return Err(self.failed("launch")(failure_seen_by_supervisor(status)));
            }
            _ => {
                say_on_standard_error(&failure_seen_by_supervisor(status));
                thread::sleep(RELAUNCH_PAUSE);
                return Ok(None);
            }
        };
        self.kill_what_is_left(&mut watch)?;
        let status = self.status_of_program(Some(status))?;
        let stop = self.found_afterwards(stop, status);
        Ok(Some(JobEnd {
            truncated: outputs.is_cut(),
            ..self.end_after(stop, status, began, ended)
        }))
    }

    /// Waits for the end of a job that an earlier supervisor launched. `kept` are its outputs where this supervisor reads them, because
    /// it has launched a process itself, which came too late.
    fn watch(
        &self,
        identity: &ProcessIdentity,
        began: StartTime,
        kept: Option<CapturedOutputs>,
    ) -> Result<JobEnd, ExecutionError> {
        let process =
            retry_during_shortage(|| identity.open().map_err(self.failed("follow the process of")))?;
        let began = if process.is_some() { began } else { began.unseen() };
        let taken = match kept {
            Some(outputs) => TakenOver {
                outputs,
                has_waited: false,
            },
            None => retry_during_shortage(|| take_over_output_pipes(self.folder, self.job.output_limit))?,
        };
        let mut watch = self.watch_over(identity);
        let stop = match (process, identity.pid()) {
            (Some(process), Some(leader)) => {
                let stop = self.wait(&process, leader, &mut watch)?;
                // The number of a group stays taken while it has members, so this reaches them or no process.
                signal_process_group(leader, Signal::KILL).map_err(self.failed("kill the processes of"))?;
                stop
            }
            _ => None,
        };
        let ended = StartTime::now(&self.clock);
        self.kill_what_is_left(&mut watch)?;
        // Its status is lost with the supervisor before this one, unless it is in a record; so is what that one had read and not written.
        let status = self.status_of_program(None)?;
        let stop = self.found_afterwards(stop, status);
        let _ = taken.outputs.is_cut();
        let mut end = self.end_after(stop, status, began, ended);
        end.truncated = true;
        // It waited because there was nothing to read its output: that it was not done in its slot is not its party's.
        if taken.has_waited && end.outcome == RunOutcome::Killed {
            end.outcome = RunOutcome::Lost;
        }
        Ok(end)
    }

    /// Waits until the leader of the job has ended, by itself or because it had to.
    fn wait(
        &self,
        process: &OwnedFd,
        leader: Pid,
        watch: &mut LimitWatch,
    ) -> Result<Option<(Stop, StopOutcome)>, ExecutionError> {
        let ended = |wait| match process_ended_within(process, wait) {
            Err(error) if shortage::is_shortage(&error) => {
                thread::sleep(wait);
                Ok(false)
            }
            ended => ended.map_err(self.failed("wait for")),
        };
        let mut told = false;
        let mut exceeded = || match watch.look() {
            Ok(excess) => excess.map(Stop::Exceeded),
            // The job is none the better watched without its supervisor.
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    say_on_standard_error(&error);
                }
                None
            }
        };
        let mut stop = loop {
            if ended(self.next_look())? {
                return Ok(None);
            }
            if let Some(stop) = self.reason_to_stop()?.or_else(&mut exceeded) {
                break stop;
            }
        };
        if !matches!(stop, Stop::Exceeded(_)) {
            let signal = match (stop, self.save()) {
                (Stop::SaveWork, Some(save)) => supervisor_signal_for_checkpoint(save.signal),
                _ => Signal::TERM,
            };
            let asked = Instant::now();
            let mut is_told = false;
            while self.has_grace(stop, asked) {
                // An isolated program may not be there yet.
                is_told = is_told || self.tell_program(leader, signal)?;
                if ended(TICK)? {
                    return Ok(Some((stop, StopOutcome::ByItself)));
                }
                // It may take long to save its work, and has its limits meanwhile.
                if stop == Stop::SaveWork {
                    stop = self.ordered_stop_now()?.or_else(&mut exceeded).unwrap_or(stop);
                    if stop != Stop::SaveWork {
                        break;
                    }
                }
            }
        }
        // A job that has taken too much gets no time to take more.
        if matches!(stop, Stop::Exceeded(_)) {
            if self.job.isolation.is_some() {
                // With the first process of their namespace all of them end.
                signal_process_group(leader, Signal::KILL).map_err(self.failed("kill"))?;
            }
            // Processes that resist are killed again once the leader has ended.
            let _ = watch.members.kill();
        }
        // Not even a killed process need end at once; while it does not, its slot is not free.
        loop {
            signal_process_group(leader, Signal::KILL).map_err(self.failed("kill"))?;
            if ended(TICK)? {
                return Ok(Some((stop, StopOutcome::Killed)));
            }
        }
    }

    /// Signals the program and the processes of its group, and those of the group that it began in. Returns whether there was one. The processes that isolate a job would die of
    /// a signal that its program handles, so they get none.
    fn tell_program(&self, leader: Pid, signal: Signal) -> Result<bool, ExecutionError> {
        let told = match &self.job.isolation {
            None => signal_process_group(leader, signal).map(|()| true),
            Some(_) => signal_isolated_program(leader, signal).map(|found| found > 0),
        };
        match told {
            Err(error) if shortage::is_shortage(&error) => Ok(false),
            told => told.map_err(self.failed("end")),
        }
    }

    /// The status of the program, where it was run: that of an isolated one is in the record of the tool that isolates it.
    fn status_of_program(&self, leader: Option<ExitStatus>) -> Result<Option<ExitStatus>, ExecutionError> {
        let record = self.folder.isolation_status();
        if !record.exists() {
            return Ok(leader);
        }
        let read = || read_isolation_record(&record).map_err(ExecutionError::system("read", &record));
        // Without a status the tool was killed, or could not isolate the job: that is no fault of the program.
        let exit = retry_during_shortage(read)?.exit;
        Ok(exit.map(|exit| ExitStatus::from_raw((exit & 0xff) << 8)))
    }

    /// Whether a job that was told to end still has time to.
    fn has_grace(&self, stop: Stop, asked: Instant) -> bool {
        match stop {
            Stop::Asked | Stop::SlotOver => asked.elapsed() < GRACE,
            Stop::SaveWork => self.clock.micros() < self.slot_end(),
            Stop::Exceeded(_) => false,
        }
    }

    /// How it is told to save its work, where it is. A record that cannot be read counts as unchanged.
    fn save(&self) -> Option<SaveWork> {
        let as_started = self.job.piece.and_then(|piece| piece.save);
        self.folder.save(&self.job).unwrap_or(as_started)
    }

    /// When it is told to end.
    fn time_to_tell(&self) -> Micros {
        let grace = self.save().map_or(0, |save| save.grace);
        self.slot_end().saturating_sub(grace)
    }

    fn watch_over(&self, leader: &ProcessIdentity) -> LimitWatch {
        let record = self
            .job
            .isolation
            .as_ref()
            .map(|_| self.folder.isolation_status());
        let members = JobProcesses::of(self.job.agreement, Some(leader))
            .isolated_by(record)
            .in_group(self.group.clone());
        LimitWatch::new(members, &self.job, self.folder)
    }

    /// Why a job that was not stopped did not end well: the system may have refused memory or a write before the next look.
    fn found_afterwards(
        &self,
        stop: Option<(Stop, StopOutcome)>,
        status: Option<ExitStatus>,
    ) -> Option<(Stop, StopOutcome)> {
        let failed = status.is_some_and(|status| !status.success());
        let group = self.group.as_ref().filter(|_| stop.is_none());
        if let Some(excess) = group.and_then(|group| group.excess(&self.job.limits, failed)) {
            return Some((Stop::Exceeded(excess), StopOutcome::ByItself));
        }
        let Some(status) = status.filter(|status| stop.is_none() && !status.success()) else {
            return stop;
        };
        // As shells pass on the signal of a program that they ran.
        let says_refused = status.code() == Some(128 + Signal::XFSZ.as_raw());
        let excess = exceeded_file_limits(&self.job.limits, self.folder, says_refused);
        let refused = || {
            let most = self.job.limits.files?;
            let by_system = status.signal() == Some(Signal::XFSZ.as_raw());
            by_system.then_some(Excess {
                limit: Limit::Files,
                found: most,
                most,
            })
        };
        let excess = excess.ok().flatten().or_else(refused)?;
        Some((Stop::Exceeded(excess), StopOutcome::ByItself))
    }

    /// Reports the exceeded limit in the job's own output.
    fn report_excess(&self, stop: Option<Stop>) {
        if let Some(Stop::Exceeded(excess)) = stop {
            // Not worth losing the end for.
            let _ = self.folder.append_message_to_output(&excess.words());
        }
    }

    /// Why the job is to run no longer, if it is not to.
    fn reason_to_stop(&self) -> Result<Option<Stop>, ExecutionError> {
        let now = self.clock.micros();
        let over = if now >= self.slot_end() {
            Some(Stop::SlotOver)
        } else {
            (now >= self.time_to_tell()).then_some(Stop::SaveWork)
        };
        Ok(self.ordered_stop_now()?.or(over))
    }

    /// Why the job is to be stopped, as far as that can be read now: it is read again soon.
    fn ordered_stop_now(&self) -> Result<Option<Stop>, ExecutionError> {
        match self.ordered_stop() {
            Err(error) if error.is_shortage() => Ok(None),
            ordered => ordered,
        }
    }

    /// Why the job is to be stopped, if it is.
    fn ordered_stop(&self) -> Result<Option<Stop>, ExecutionError> {
        if !self.folder.stop_asked() {
            return Ok(None);
        }
        let excess = self.folder.why_stopped()?;
        Ok(Some(excess.map_or(Stop::Asked, Stop::Exceeded)))
    }

    /// When the slot ends: it may have been made longer or shorter since the job began. A record that cannot be
    /// read counts as unchanged.
    fn slot_end(&self) -> Micros {
        if let Ok(Some(changed)) = self.folder.until() {
            self.slot_end.store(changed, Ordering::Relaxed);
        }
        self.slot_end.load(Ordering::Relaxed)
    }

    /// How long to wait before the clock is looked at again.
    fn next_look(&self) -> Duration {
        let left = self.time_to_tell().saturating_sub(self.clock.micros());
        TICK.min(Duration::from_micros(u64::try_from(left).unwrap_or(0)))
    }

    fn kill_what_is_left(&self, watch: &mut LimitWatch) -> Result<(), ExecutionError> {
        retry_during_shortage(|| watch.members.kill().map_err(self.failed("kill the processes of")))
    }

    /// The end of a job that began, by its status where that is known, and whether it had to.
    fn end_after(
        &self,
        stop: Option<(Stop, StopOutcome)>,
        status: Option<ExitStatus>,
        began: StartTime,
        ended: StartTime,
    ) -> JobEnd {
        let outcome = match stop {
            None => status.map_or(RunOutcome::Lost, outcome_of_supervised_exit),
            Some((stop, StopOutcome::ByItself)) => stop.outcome_after(status),
            Some((stop, StopOutcome::Killed)) => stop.outcome(),
        };
        self.report_excess(stop.map(|(stop, _)| stop));
        JobEnd {
            ended: began.until(ended),
            ..self.end(outcome, Some(began.at))
        }
    }

    fn end(&self, outcome: RunOutcome, started: Option<Micros>) -> JobEnd {
        // Outputs of local jobs stay where they are; so do inputs, except the ones that jobs could spoil for others.
        JobEnd {
            input_bytes: self.job.input_bytes(),
            output_bytes: self.folder.output_bytes(),
            ..JobEnd::new(outcome, started, self.clock.micros())
        }
    }

    fn failed<E: Into<std::io::Error>>(&self, doing: &'static str) -> impl FnOnce(E) -> ExecutionError {
        ExecutionError::system(doing, self.folder.path())
    }
}

fn supervisor_signal_for_checkpoint(signal: CheckpointSignal) -> Signal {
    match signal {
        CheckpointSignal::Term => Signal::TERM,
        CheckpointSignal::Int => Signal::INT,
        CheckpointSignal::Hup => Signal::HUP,
        CheckpointSignal::Usr1 => Signal::USR1,
        CheckpointSignal::Usr2 => Signal::USR2,
    }
}

/// How a process that ended by itself ended.
fn outcome_of_supervised_exit(status: ExitStatus) -> RunOutcome {
    match status.code().unwrap_or(128 + status.signal().unwrap_or(0)) {
        0 => RunOutcome::Completed,
        exit => RunOutcome::Failed { exit },
    }
}

fn failure_seen_by_supervisor(status: ExitStatus) -> std::io::Error {
    std::io::Error::other(format!(
        "the launcher ended with {status} before it became the job"
    ))
}

#[cfg(test)]
mod tests;
