//! Reservations that follow the plan, and what Slurm says of its nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::Instant;

use scheduler::{Interval, Time};
use tracing::info;
use uuid::Uuid;

use super::super::folder::Folder;
use super::super::{ExecutionError, PlannedSlot};
use super::command::Error;
use super::names::{Calendar, Wanted, assign};
use super::view::{JobKey, JobRow, JobState, NodeRow, PartitionRow, ReservationRow};
use super::{SlurmExecutor, lock};
use crate::clock::Clock;
use crate::planner::{BusyTime, KeptNodes, NodeReport, NodeState};

/// Seconds that a reservation is made before the longest job that is started in the same moment could reach into it: for
/// the time until the plan is looked at again, and for jobs that are killed late.
const MARGIN: i64 = 120;
/// Seconds by which the limit of a job that Slurm counts in whole minutes may reach beyond its slot.
const MINUTE: i64 = 60;
/// Seconds that a job is taken to run on that should have ended: Slurm kills late.
const LATE: i64 = 30;

/// What Slurm says at one moment.
pub(super) struct Present {
    now: Time,
    reservations: Vec<ReservationRow>,
    pub(super) jobs: Vec<JobRow>,
    /// By the node's number.
    pub(super) states: Vec<NodeState>,
    /// Processors that jobs have, and all, by the node's number.
    pub(super) cpus: Vec<(u32, u32)>,
    reasons: BTreeMap<u32, String>,
}

/// A reservation as the plan wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    agreement: Uuid,
    interval: Interval,
    nodes: Vec<String>,
    user: String,
    /// Whether its user may submit jobs by now.
    handed: bool,
}

impl SlurmExecutor {
    /// Makes, moves, resizes and deletes reservations until they are those of the plan. What Slurm refuses is tried again
    /// after the rest: it may be in the way of something that is still to move.
    pub(super) fn follow_plan(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        let present = self
            .present()
            .inspect_err(|_| self.blind.store(true, Ordering::Relaxed))?;
        let now = present.now;
        let held: BTreeMap<Uuid, &ReservationRow> = present
            .reservations
            .iter()
            .filter_map(|row| Some((self.agreement_of(&row.name)?, row)))
            .collect();
        let is_held = |slot: &PlannedSlot| {
            let row = held.get(&slot.agreement);
            row.is_some_and(|row| row.interval.start <= now && row.nodes.len() >= slot.nodes as usize)
        };
        self.note_use(slots, is_held, &present.jobs, Instant::now());
        let mut failures = self.give_back(slots, &held, &present.jobs)?;
        match self.cancel(&self.left_over(&present.jobs)) {
            Err(Error::Refused { said, .. }) => failures.push(said),
            cancelled => cancelled?,
        }
        for slot in slots.iter().filter(|slot| held.contains_key(&slot.agreement)) {
            // One that the records were lost of, with the data folder or by going on from another machine.
            self.make_mark(slot.agreement)?;
        }
        let from = self.reserved_from()?.map(|lead| now + lead);
        let due: Vec<&PlannedSlot> = slots
            .iter()
            .filter(|slot| slot.interval.end > now)
            .filter(|slot| {
                held.contains_key(&slot.agreement) || from.is_none_or(|from| slot.interval.start <= from)
            })
            .collect();
        let (targets, unnamed) = self.targets(&due, &held, &present);
        failures.extend(unnamed.iter().map(|id| {
            let nodes = "too few nodes are up and free of others' jobs and reservations";
            format!("{}: {nodes}", self.name_of(*id))
        }));
        failures.extend(self.apply(&targets, &held, now)?);
        failures.extend(self.differences(&targets)?);
        match failures.into_iter().next() {
            None => Ok(()),
            Some(said) => Err(Error::Refused {
                program: "scontrol",
                said,
            }
            .into()),
        }
    }

    /// Deletes the reservations of agreements that the plan does not have any more, and cancels what runs in them. Those
    /// that are not of this service's making end by themselves. Answers what could not be given back.
    fn give_back(
        &self,
        slots: &[PlannedSlot],
        held: &BTreeMap<Uuid, &ReservationRow>,
        jobs: &[JobRow],
    ) -> Result<Vec<String>, ExecutionError> {
        let planned: HashSet<Uuid> = slots.iter().map(|slot| slot.agreement).collect();
        let mut failures = Vec::new();
        for agreement in self.marked()?.difference(&planned) {
            if let Some(row) = held.get(agreement) {
                let inside =
                    |job: &&JobRow| job.reservation.as_deref() == Some(&row.name) && !job.state.is_final();
                let inside: Vec<_> = jobs.iter().filter(inside).collect();
                let given_back = self.cancel(&inside).and_then(|()| self.delete(&row.name));
                match given_back {
                    Ok(()) => info!(%agreement, "reservation given back"),
                    Err(Error::Refused { said, .. }) => {
                        failures.push(format!("{}: {said}", row.name));
                        continue;
                    }
                    Err(other) => return Err(other.into()),
                }
            }
            let mark = self.mark(*agreement);
            fs::remove_file(&mark).map_err(ExecutionError::system("remove", mark))?;
        }
        Ok(failures)
    }

    fn make_mark(&self, agreement: Uuid) -> Result<(), ExecutionError> {
        let mark = self.mark(agreement);
        if mark.exists() {
            return Ok(());
        }
        fs::write(&mark, "").map_err(ExecutionError::system("write", mark))
    }

    /// The agreements that this service has made reservations for.
    fn marked(&self) -> Result<HashSet<Uuid>, ExecutionError> {
        let failed = |error| ExecutionError::system("list", &self.marks)(error);
        let mut marked = HashSet::new();
        for entry in fs::read_dir(&self.marks).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            marked.extend(name.to_str().and_then(|name| name.parse::<Uuid>().ok()));
        }
        Ok(marked)
    }

    /// The reservations that the due slots need, and the slots that there are no nodes for.
    fn targets(
        &self,
        due: &[&PlannedSlot],
        held: &BTreeMap<Uuid, &ReservationRow>,
        present: &Present,
    ) -> (Vec<Target>, Vec<Uuid>) {
        let mut calendars: Vec<Calendar> = present
            .states
            .iter()
            .map(|state| Calendar {
                usable: *state == NodeState::Up,
                busy: Vec::new(),
            })
            .collect();
        for busy in self.foreign(present, |agreement| {
            due.iter().any(|slot| slot.agreement == agreement)
        }) {
            if let Some(calendar) = calendars.get_mut(busy.node as usize) {
                calendar.busy.push(busy.interval);
            }
        }
        let wanted: Vec<Wanted> = due
            .iter()
            .map(|slot| {
                // What the plan has given it, before Slurm knows of it.
                let given = || slot.given.iter().map(|node| *node as usize).collect();
                let current: Vec<usize> = held.get(&slot.agreement).map_or_else(given, |row| {
                    let numbers = row.nodes.iter().filter_map(|name| self.numbers.get(name));
                    numbers.copied().collect()
                });
                Wanted {
                    nodes: slot.nodes as usize,
                    interval: Interval::new(slot.interval.start.max(present.now), slot.interval.end),
                    pinned: slot.begun
                        && held.contains_key(&slot.agreement)
                        && current.len() == slot.nodes as usize,
                    current,
                }
            })
            .collect();
        let (mut targets, mut unnamed) = (Vec::new(), Vec::new());
        for (slot, named) in due.iter().zip(assign(calendars, &wanted)) {
            let Some(named) = named else {
                unnamed.push(slot.agreement);
                continue;
            };
            targets.push(Target {
                agreement: slot.agreement,
                interval: slot.interval,
                nodes: named
                    .iter()
                    .map(|node| self.settings.nodes[*node].clone())
                    .collect(),
                user: self.settings.account_of(&slot.party).user.clone(),
                handed: slot.begun && !slot.has_job,
            });
        }
        (targets, unnamed)
    }

    /// Brings reservations into line, in as many rounds as make progress; answers with what Slurm refused to the last.
    fn apply(
        &self,
        targets: &[Target],
        held: &BTreeMap<Uuid, &ReservationRow>,
        now: Time,
    ) -> Result<Vec<String>, ExecutionError> {
        let mut held: HashMap<Uuid, ReservationRow> = held
            .iter()
            .map(|(agreement, row)| (*agreement, (*row).clone()))
            .collect();
        let mut left: Vec<&Target> = targets
            .iter()
            .filter(|target| {
                !held
                    .get(&target.agreement)
                    .is_some_and(|row| target.is_met_by(row, now))
            })
            .collect();
        let mut broken_up = false;
        loop {
            let before = left.len();
            let (mut refused, mut failures) = (Vec::new(), Vec::new());
            for target in left {
                let done = match held.get(&target.agreement) {
                    Some(row) => self.update(target, row, now),
                    None => self.create(target, now),
                };
                match done {
                    Ok(()) => info!(
                        agreement = %target.agreement, nodes = target.nodes.join(","), slot = %target.interval,
                        "reserved"
                    ),
                    Err(ExecutionError::Slurm(Error::Refused { said, .. })) => {
                        failures.push(format!("{}: {said}", self.name_of(target.agreement)));
                        refused.push(target);
                    }
                    Err(other) => return Err(other),
                }
            }
            left = refused;
            if left.is_empty() {
                return Ok(Vec::new());
            }
            if left.len() < before {
                continue;
            }
            // Those that want each other's nodes never get them one by one.
            let in_a_ring = |said: &String| said.contains("overlaps");
            if broken_up || left.len() < 2 || !failures.iter().any(in_a_ring) {
                return Ok(failures);
            }
            broken_up = true;
            for target in &left {
                let waiting = held
                    .get(&target.agreement)
                    .is_some_and(|row| row.interval.start > now);
                if waiting && self.delete(&self.name_of(target.agreement)).is_ok() {
                    held.remove(&target.agreement);
                }
            }
        }
    }

    fn create(&self, target: &Target, now: Time) -> Result<(), ExecutionError> {
        self.make_mark(target.agreement)?;
        let start = if target.interval.start <= now {
            "now".to_owned()
        } else {
            instant(target.interval.start)
        };
        self.slurm.call(
            "scontrol",
            [
                "create".to_owned(),
                "reservation".to_owned(),
                format!("ReservationName={}", self.name_of(target.agreement)),
                format!("StartTime={start}"),
                format!("EndTime={}", instant(target.interval.end)),
                format!("Nodes={}", target.nodes.join(",")),
                format!("Users={}", target.user),
            ],
        )?;
        if target.handed {
            self.let_overlap(&self.name_of(target.agreement))?;
        }
        Ok(())
    }

    /// Changes what differs, and nothing else: Slurm refuses to move the start of a reservation that has begun, even to
    /// where it is.
    fn update(&self, target: &Target, row: &ReservationRow, now: Time) -> Result<(), ExecutionError> {
        let mut arguments = vec!["update".to_owned(), format!("ReservationName={}", row.name)];
        if !target.starts_with(row, now) {
            arguments.push(format!(
                "StartTime={}",
                instant(target.interval.start.max(now + 1))
            ));
        }
        if target.interval.end != row.interval.end {
            arguments.push(format!("EndTime={}", instant(target.interval.end)));
        }
        if !target.is_on(row) {
            arguments.push(format!("Nodes={}", target.nodes.join(",")));
        }
        if target.user != row.users {
            arguments.push(format!("Users={}", target.user));
        }
        if target.handed && !row.overlaps {
            arguments.push("Flags+=OVERLAP".to_owned());
        }
        self.slurm.call("scontrol", arguments)?;
        Ok(())
    }

    /// Deletes a reservation; one that is gone is as good.
    fn delete(&self, name: &str) -> Result<(), Error> {
        match self
            .slurm
            .call("scontrol", ["delete", &format!("ReservationName={name}")])
        {
            Err(Error::Refused { said, .. }) if said.contains("reservation is invalid") => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Reads back what Slurm made of it: it answers "created" also where it holds less than was asked for.
    ///
    /// What is held is known as it was before where that cannot be asked.
    fn differences(&self, targets: &[Target]) -> Result<Vec<String>, ExecutionError> {
        if targets.is_empty() {
            lock(&self.kept).clear();
            return Ok(Vec::new());
        }
        let now = Clock::system().now();
        let held: HashMap<String, ReservationRow> = self
            .slurm
            .reservations()?
            .into_iter()
            .map(|row| (row.name.clone(), row))
            .collect();
        let differs = |target: &&Target| {
            // One that is over vanishes.
            target.interval.end > now
                && !held
                    .get(&self.name_of(target.agreement))
                    .is_some_and(|row| target.is_met_by(row, now))
        };
        let kept = |target: &Target| {
            let row = held.get(&self.name_of(target.agreement))?;
            let numbers = row.nodes.iter().filter_map(|name| self.numbers.get(name));
            Some(KeptNodes {
                agreement: target.agreement,
                nodes: numbers.filter_map(|number| u32::try_from(*number).ok()).collect(),
                since: row.interval.start,
            })
        };
        *lock(&self.kept) = targets.iter().filter_map(kept).collect();
        let say = |target: &Target| format!("{}: it is not held as planned", self.name_of(target.agreement));
        Ok(targets.iter().filter(differs).map(say).collect())
    }

    /// Seconds before a slot's start from which on its nodes are reserved; `None` for always: jobs may last for ever.
    fn reserved_from(&self) -> Result<Option<i64>, Error> {
        let ours = |row: &&PartitionRow| {
            row.name == self.settings.partition
                || row.nodes.iter().any(|node| self.numbers.contains_key(node))
        };
        let partitions = self.slurm.partitions()?;
        let limits: Option<Vec<i64>> = partitions
            .iter()
            .filter(ours)
            .map(|row| row.longest_job)
            .collect();
        Ok(limits
            .and_then(|limits| limits.into_iter().max())
            .map(|longest| longest + MARGIN))
    }

    /// How the nodes stand and when they are not ours.
    pub(super) fn report_nodes(&self) -> Result<NodeReport, ExecutionError> {
        let present = self.present()?;
        let marked = self.marked()?;
        self.note_condition(&present, |agreement| marked.contains(&agreement));
        Ok(NodeReport {
            busy: self.foreign(&present, |agreement| marked.contains(&agreement)),
            states: present.states,
            reasons: present.reasons,
        })
    }

    /// Whether a job is one of agreements, or runs or ran in their reservations.
    pub(super) fn is_in_ours(
        &self,
        job: &JobRow,
        handed: &HashSet<JobKey>,
        is_ours: impl Fn(Uuid) -> bool,
    ) -> bool {
        let reservation = job.reservation.as_deref();
        let agreement = reservation.and_then(|name| self.agreement_of(name));
        let was_handed = || job.key().is_some_and(|key| handed.contains(&key));
        agreement.is_some_and(is_ours) || was_handed() || self.is_own(job)
    }

    /// Whether this service has submitted a job: anybody may give a job the name of one.
    fn is_own(&self, job: &JobRow) -> bool {
        let submitted = || {
            let agreement = self.agreement_of(&job.name)?;
            let spec = Folder::of(&self.jobs, agreement).spec().ok()??;
            self.owner_of(&spec.party).ok()
        };
        submitted().is_some_and(|owner| owner.user == job.user)
    }

    fn present(&self) -> Result<Present, Error> {
        let nodes = self.slurm.nodes(&self.settings.partition)?;
        let nodes: HashMap<&str, &NodeRow> = nodes.iter().map(|row| (row.name.as_str(), row)).collect();
        let (mut states, mut cpus, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, name) in self.settings.nodes.iter().enumerate() {
            let row = nodes.get(name.as_str());
            let state = row.map_or(NodeState::Down, |row| state_of(&row.state));
            states.push(state);
            cpus.push(row.map_or((0, 0), |row| row.cpus));
            if state != NodeState::Up {
                let reason = row.map_or_else(
                    || Some("it is not in the partition".to_owned()),
                    |row| row.reason.clone(),
                );
                // Far fewer nodes than that are in the settings.
                reasons.extend(u32::try_from(number).ok().zip(reason));
            }
        }
        Ok(Present {
            states,
            cpus,
            reasons,
            reservations: self.slurm.reservations()?,
            jobs: self.slurm.jobs()?,
            now: Clock::system().now(),
        })
    }

    /// When nodes are others': their reservations, and the jobs that run outside of ours.
    fn foreign(&self, present: &Present, is_ours: impl Fn(Uuid) -> bool) -> Vec<BusyTime> {
        let ours = |name: &str| self.agreement_of(name).is_some_and(&is_ours);
        let handed = self.handed_jobs();
        // Our own jobs end with their slots by themselves, and what is completing is as good as gone.
        let is_foreign = |job: &&JobRow| {
            matches!(job.state, JobState::Starting | JobState::Running)
                && !self.is_in_ours(job, &handed, &is_ours)
        };
        let reservations = present
            .reservations
            .iter()
            .filter(|row| !ours(&row.name))
            // A job of ours in front of it has a limit in whole minutes, which may not reach into it.
            .map(|row| (&row.nodes, row.interval.start - MINUTE, row.interval.end));
        let jobs = present.jobs.iter().filter(is_foreign).map(|job| {
            let end = job.end.unwrap_or(Time::MAX).max(present.now + LATE);
            (&job.nodes, present.now, end)
        });
        let mut busy = Vec::new();
        for (nodes, start, end) in reservations.chain(jobs) {
            let interval = Interval::new(start, (end + self.settings.turnaround).min(Time::MAX));
            let numbers = nodes.iter().filter_map(|name| self.numbers.get(name));
            busy.extend(numbers.map(|node| BusyTime {
                // Far fewer nodes than that are in the settings.
                node: u32::try_from(*node).unwrap_or(u32::MAX),
                interval,
            }));
        }
        busy
    }
}

impl Target {
    fn is_met_by(&self, row: &ReservationRow, now: Time) -> bool {
        self.starts_with(row, now)
            && self.interval.end == row.interval.end
            && self.is_on(row)
            && self.user == row.users
            && (row.overlaps || !self.handed)
    }

    /// Whether a reservation holds from the start on, or from now on where that is past.
    fn starts_with(&self, row: &ReservationRow, now: Time) -> bool {
        let start = self.interval.start;
        row.interval.start == start || (start <= now + 1 && row.interval.start <= now + 1)
    }

    fn is_on(&self, row: &ReservationRow) -> bool {
        let names: HashSet<&String> = row.nodes.iter().collect();
        names.len() == self.nodes.len() && self.nodes.iter().all(|node| names.contains(node))
    }
}

/// An instant as Slurm reads it, in UTC.
fn instant(at: Time) -> String {
    jiff::Timestamp::from_second(at.seconds())
        .unwrap_or(jiff::Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%S")
        .to_string()
}

/// What a word for a node's state means; sinfo marks some with a sign behind them. A controller that has just started does
/// not know its nodes for some seconds: that is no failure of theirs. A word that nobody knows is a node that gets no new
/// work.
fn state_of(word: &str) -> NodeState {
    let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    match word {
        "idle" | "allocated" | "mixed" | "completing" | "reserved" | "planned" | "maint" | "blocked"
        | "unknown" | "unk" => NodeState::Up,
        "down" | "error" | "future" | "inval" | "powered_down" | "power_down" | "powering_down" => {
            NodeState::Down
        }
        _ => NodeState::Drained,
    }
}

#[cfg(test)]
mod tests;
