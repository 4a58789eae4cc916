//! Reservations that follow the plan, and what Slurm says of its nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use scheduler::{Interval, Time};
use tracing::info;

use super::super::{ExecutionError, PlannedSlot};
use super::command::Error;
use super::id::SlotId;
use super::names::{Calendar, Hold, Wanted, assign};
use super::reservation::Target;
use super::view::{JobKey, JobRow, NodeRow, PartitionRow, ReservationRow};
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
/// Seconds after its start within which a controller hears from each node that is there: it asks all of them at once.
const HEARD_WITHIN: i64 = 60;
/// The reason for the state of a node of which Slurm gives none.
const SILENT: &str = "it does not respond";

/// How long after refusals the same reservations are asked for again, at first and at most; it doubles in between.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));

/// The reservations that Slurm was last asked for, where it has refused some.
#[derive(Debug)]
pub(super) struct Refused {
    targets: Vec<Target>,
    said: Vec<String>,
    at: Instant,
    pause: Duration,
}

/// What Slurm says at one moment.
pub(super) struct Present {
    now: Time,
    reservations: Vec<ReservationRow>,
    pub(super) jobs: Arc<Vec<JobRow>>,
    /// By the node's number.
    pub(super) states: Vec<NodeState>,
    /// Processors that jobs have, and all, by the node's number.
    pub(super) cpus: Vec<(u32, u32)>,
    reasons: BTreeMap<u32, String>,
}

impl SlurmExecutor {
    /// Makes, moves, resizes and deletes reservations until they are those of the plan. What Slurm refuses is tried again
    /// after the rest: it may be in the way of something that is still to move.
    pub(super) fn follow_plan(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        lock(&self.lacking).clear();
        let present = self
            .present()
            .inspect_err(|_| self.blind.store(true, Ordering::Relaxed))?;
        let now = present.now;
        let held = self.by_slot(&present.reservations);
        self.note_kept(slots, &held);
        let is_held = |slot: &PlannedSlot| {
            let row = held.get(&slot.into());
            row.is_some_and(|row| row.interval.start <= now && row.nodes.len() >= slot.nodes as usize)
        };
        self.note_use(slots, is_held, &present.jobs, Instant::now());
        let mut failures = Vec::new();
        match self.cancel(&self.left_over(&present.jobs)) {
            Err(Error::Refused { said, .. }) => failures.push(said),
            cancelled => cancelled?,
        }
        for id in slots.iter().map(SlotId::from).filter(|id| held.contains_key(id)) {
            // One that the records were lost of, with the data folder or by going on from another machine.
            self.make_mark(id)?;
        }
        let lead = self.reserved_from()?;
        *lock(&self.reserves_within) = Some(lead.unwrap_or(i64::MAX));
        let from = lead.map(|lead| now + lead);
        let due: Vec<&PlannedSlot> = slots
            .iter()
            .filter(|slot| slot.interval.end > now)
            .filter(|slot| {
                held.contains_key(&SlotId::from(*slot)) || from.is_none_or(|from| slot.interval.start <= from)
            })
            .collect();
        let leaving = self.leaving(slots, &held)?;
        let (targets, unnamed) = self.targets(&due, &held, &leaving, &present);
        failures.extend(unnamed.iter().map(|id| {
            let nodes = "too few nodes are up and free of others' jobs and reservations";
            format!("{}: {nodes}", self.name_of(*id))
        }));
        let is_met = |target: &&Target| {
            let row = held.get(&target.id);
            row.is_some_and(|row| target.is_met_by(row, now))
        };
        // A reservation that leaves may have caused the refusal.
        let has_room_come = !leaving.is_empty();
        let mut passed_on = BTreeMap::new();
        for (id, row) in leaving {
            let is_wanted = targets.iter().any(|of| !is_met(&of) && of.wants(row));
            let (stays, said) = if is_wanted {
                self.pass_on(id, row, &present.jobs)?
            } else {
                (false, self.give_back(id, row, &present.jobs)?)
            };
            failures.extend(said);
            passed_on.extend(stays.then_some((id, row)));
        }
        let unmet: Vec<&Target> = targets.iter().filter(|target| !is_met(target)).collect();
        let refused = self.refused_just_now(&unmet).filter(|_| !has_room_come);
        let differ = if let Some(said) = refused {
            failures.extend(said);
            unmet
        } else if unmet.is_empty() {
            *lock(&self.refused) = None;
            unmet
        } else {
            let said = self.apply(&unmet, &held, now)?;
            self.note_refused(&unmet, &said);
            failures.extend(said);
            self.differences(slots, &targets)?
        };
        for (id, row) in passed_on {
            // Its nodes are nobody's until all that want them have them.
            if !differ.iter().any(|target| target.wants(row)) {
                failures.extend(self.give_back(id, row, &present.jobs)?);
            }
        }
        let is_lacking = |id: &SlotId| unnamed.contains(id) || differ.iter().any(|target| target.id == *id);
        let lacking = due.iter().filter(|slot| is_lacking(&SlotId::from(**slot)));
        *lock(&self.lacking) = lacking
            .map(|slot| (slot.agreement, slot.interval.start))
            .collect();
        let say = |target: &&Target| format!("{}: it is not held as planned", self.name_of(target.id));
        failures.extend(differ.iter().map(say));
        match failures.into_iter().next() {
            None => Ok(()),
            Some(said) => Err(Error::Refused {
                program: "scontrol",
                said,
            }
            .into()),
        }
    }

    /// The reservations that the due slots need, and the slots that there are no nodes for.
    fn targets(
        &self,
        due: &[&PlannedSlot],
        held: &BTreeMap<SlotId, &ReservationRow>,
        leaving: &BTreeMap<SlotId, &ReservationRow>,
        present: &Present,
    ) -> (Vec<Target>, Vec<SlotId>) {
        let mut calendars: Vec<Calendar> = present
            .states
            .iter()
            .map(|state| Calendar {
                usable: *state == NodeState::Up,
                busy: Vec::new(),
            })
            .collect();
        // What is about to go is in nobody's way.
        let is_ours = |id| leaving.contains_key(&id) || due.iter().any(|slot| SlotId::from(*slot) == id);
        let left_out = lock(&self.left_out).clone();
        for busy in self.foreign(present, is_ours).into_iter().chain(left_out) {
            if let Some(calendar) = calendars.get_mut(busy.node as usize) {
                calendar.busy.push(busy.interval);
            }
        }
        // But where something still runs in it, others are rather taken.
        let until_now = Interval::new(present.now - 1, present.now);
        for row in leaving.values() {
            let inside = present.jobs.iter().filter(|job| job.is_inside(row));
            for node in inside.flat_map(|job| &job.nodes) {
                let calendar = self.numbers.get(node).and_then(|node| calendars.get_mut(*node));
                if let Some(calendar) = calendar {
                    calendar.busy.push(until_now);
                }
            }
        }
        let wanted: Vec<Wanted> = due
            .iter()
            .map(|slot| {
                let row = held.get(&SlotId::from(*slot));
                // What the plan has given it, before Slurm knows of it.
                let given = || slot.given.iter().map(|node| *node as usize).collect();
                let current: Vec<usize> = row.map_or_else(given, |row| {
                    let numbers = row.nodes.iter().filter_map(|name| self.numbers.get(name));
                    numbers.copied().collect()
                });
                let all_up = current.iter().all(|node| present.states[*node] == NodeState::Up);
                let in_use = |row| {
                    present
                        .jobs
                        .iter()
                        .any(|job| job.is_inside(row) && !job.nodes.is_empty())
                };
                let hold = match row {
                    Some(row) if slot.begun && current.len() == slot.nodes as usize => {
                        // What waits for a node that does not take it can run on another one.
                        let stays = all_up || in_use(row);
                        if stays { Hold::Pinned } else { Hold::Begun }
                    }
                    _ => Hold::Loose,
                };
                Wanted {
                    nodes: slot.nodes as usize,
                    interval: Interval::new(slot.interval.start.max(present.now), slot.interval.end),
                    current,
                    hold,
                }
            })
            .collect();
        let (mut targets, mut unnamed) = (Vec::new(), Vec::new());
        let handed = self.handed_jobs();
        let own: Vec<&JobRow> = present
            .jobs
            .iter()
            .filter(|job| job.is_on_nodes() && self.is_in_ours(job, &handed, is_ours))
            .collect();
        for (slot, named) in due.iter().zip(assign(calendars, &wanted)) {
            let Some(named) = named else {
                unnamed.push(SlotId::from(*slot));
                continue;
            };
            let nodes: Vec<String> = named
                .iter()
                .map(|node| self.settings.nodes[*node].clone())
                .collect();
            let name = self.name_of(SlotId::from(*slot));
            let reaches_in = |job: &&&JobRow| {
                job.reservation.as_ref() != Some(&name)
                    && job.end.is_some_and(|end| end > slot.interval.start)
                    && job.nodes.iter().any(|node| nodes.contains(node))
            };
            targets.push(Target {
                id: SlotId::from(*slot),
                interval: slot.interval,
                behind_own_jobs: own.iter().any(|job| reaches_in(&job)),
                nodes,
                user: self.settings.account_of(&slot.party).user.clone(),
                handed: slot.begun && !slot.has_job,
            });
        }
        (targets, unnamed)
    }

    /// Brings reservations into line, in as many rounds as make progress; answers with what Slurm refused to the last.
    fn apply(
        &self,
        unmet: &[&Target],
        held: &BTreeMap<SlotId, &ReservationRow>,
        now: Time,
    ) -> Result<Vec<String>, ExecutionError> {
        let mut held: HashMap<SlotId, ReservationRow> =
            held.iter().map(|(id, row)| (*id, (*row).clone())).collect();
        let mut left = unmet.to_vec();
        let mut broken_up = false;
        loop {
            let before = left.len();
            let (mut refused, mut failures) = (Vec::new(), Vec::new());
            for target in left {
                let done = match held.get(&target.id) {
                    // Slurm does not move the start of one that has begun.
                    Some(row) if row.interval.start <= now && target.interval.start > now + 1 => self
                        .delete(target.id)
                        .map_err(ExecutionError::from)
                        .and_then(|()| self.create(target, now)),
                    Some(row) => self.update(target, row, now),
                    None => self.create(target, now),
                };
                match done {
                    Ok(()) => {
                        // Its job does not wait until all others are made.
                        lock(&self.made).insert(target.id);
                        info!(
                            agreement = %target.id, nodes = target.nodes.join(","), slot = %target.interval,
                            "reserved"
                        );
                    }
                    Err(ExecutionError::Slurm(Error::Refused { said, .. })) => {
                        failures.push(format!("{}: {said}", self.name_of(target.id)));
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
            // One that has none yet may not cost another one its own.
            let is_new = left.iter().any(|target| !held.contains_key(&target.id));
            if broken_up || is_new || left.len() < 2 || !failures.iter().any(in_a_ring) {
                return Ok(failures);
            }
            broken_up = true;
            for target in &left {
                let row = held.get(&target.id);
                let waiting = row.filter(|row| row.interval.start > now);
                if waiting.is_some_and(|row| self.make_nameless(target.id, row).is_ok()) {
                    held.remove(&target.id);
                }
            }
        }
    }

    /// Slurm's words where it has just refused some of these reservations: they are not asked for again yet. They are where one
    /// of them is new or begins soon.
    fn refused_just_now(&self, unmet: &[&Target]) -> Option<Vec<String>> {
        let refused = lock(&self.refused);
        let refused = refused.as_ref()?;
        let is_same = unmet.len() == refused.targets.len()
            && unmet
                .iter()
                .zip(&refused.targets)
                .all(|(target, of)| **target == *of);
        (is_same && refused.at.elapsed() < refused.pause).then(|| refused.said.clone())
    }

    /// Remembers which reservations Slurm has refused. One that begins before the pause is over does not wait for its end.
    fn note_refused(&self, unmet: &[&Target], said: &[String]) {
        let mut refused = lock(&self.refused);
        if said.is_empty() {
            *refused = None;
            return;
        }
        let before = refused.take();
        let same = before.filter(|before| before.targets.len() == unmet.len());
        let pause = same.map_or(ASK_AGAIN.0, |same| (same.pause * 2).min(ASK_AGAIN.1));
        let soon = Clock::system().now() + i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
        let is_due = unmet.iter().any(|target| target.interval.start <= soon);
        *refused = Some(Refused {
            targets: unmet.iter().map(|target| (*target).clone()).collect(),
            said: said.to_vec(),
            at: Instant::now(),
            pause: if is_due { ASK_AGAIN.0 } else { pause },
        });
    }

    /// Reads back what Slurm made of it, and answers what is not held as planned: Slurm answers "created" also where it
    /// holds less than was asked for.
    ///
    /// What is held is known as it was before where that cannot be asked.
    fn differences<'a>(
        &self,
        slots: &[PlannedSlot],
        targets: &'a [Target],
    ) -> Result<Vec<&'a Target>, ExecutionError> {
        let rows = self.slurm.reservations()?;
        let (held, now) = (self.by_slot(&rows), Clock::system().now());
        self.note_kept(slots, &held);
        let taken = self.taken_by_others(targets)?;
        let differs = |target: &&Target| {
            let row = held.get(&target.id);
            let is_met = row.is_some_and(|row| target.is_met_by(row, now)) && !taken.contains(&target.id);
            // One that is over vanishes.
            target.interval.end > now && !is_met
        };
        Ok(targets.iter().filter(differs).collect())
    }

    /// The targets behind jobs of ours on whose nodes others' jobs reach into them: Slurm was told to look at no jobs.
    fn taken_by_others(&self, targets: &[Target]) -> Result<HashSet<SlotId>, ExecutionError> {
        let behind = targets.iter().filter(|target| target.behind_own_jobs);
        let behind: Vec<&Target> = behind.collect();
        if behind.is_empty() {
            return Ok(HashSet::new());
        }
        let (jobs, handed, marked) = (self.jobs_now()?, self.handed_jobs(), self.marked()?);
        let is_ours = |id| marked.contains(&id);
        let others: Vec<&JobRow> = jobs
            .iter()
            .filter(|job| job.is_on_nodes() && !self.is_in_ours(job, &handed, is_ours))
            .collect();
        let taken = behind.into_iter().filter(|target| {
            let mut others = others.iter();
            others.any(|job| {
                job.end.is_none_or(|end| end > target.interval.start)
                    && job.nodes.iter().any(|node| target.nodes.contains(node))
            })
        });
        Ok(taken.map(|target| target.id).collect())
    }

    /// The reservations of this resource, by the slots that they are named after.
    fn by_slot<'a>(&self, rows: &'a [ReservationRow]) -> BTreeMap<SlotId, &'a ReservationRow> {
        let named = rows.iter();
        named
            .filter_map(|row| Some((self.id_of(&row.name)?, row)))
            .collect()
    }

    /// Takes note of what is held for the slots of the plan.
    fn note_kept(&self, slots: &[PlannedSlot], held: &BTreeMap<SlotId, &ReservationRow>) {
        let kept = |slot: &PlannedSlot| {
            let row = held.get(&slot.into())?;
            let numbers = row.nodes.iter().filter_map(|name| self.numbers.get(name));
            Some(KeptNodes {
                agreement: slot.agreement,
                piece: slot.piece,
                restarts: slot.restarts,
                nodes: numbers.filter_map(|number| u32::try_from(*number).ok()).collect(),
                since: row.interval.start,
            })
        };
        *lock(&self.kept) = Some(slots.iter().filter_map(kept).collect());
        lock(&self.made).clear();
    }

    /// Seconds before a slot's start from which on its nodes are reserved; `None` for always: jobs may last for ever.
    fn reserved_from(&self) -> Result<Option<i64>, Error> {
        let ours = |row: &&PartitionRow| {
            row.name == self.settings.partition
                || row.nodes.iter().any(|node| self.numbers.contains_key(node))
        };
        let partitions = self.partitions()?;
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
        // A reservation that is given back meanwhile has its mark before, one that is made has it after.
        let mut marked = self.marked()?;
        let present = self.present()?;
        marked.extend(self.marked()?);
        let is_ours = |id| marked.contains(&id);
        self.note_condition(&present, is_ours);
        Ok(NodeReport {
            busy: self.foreign(&present, is_ours),
            states: present.states,
            reasons: present.reasons,
        })
    }

    /// Whether a job is one of ours, or runs or ran in our reservations.
    pub(super) fn is_in_ours(
        &self,
        job: &JobRow,
        handed: &HashSet<JobKey>,
        is_ours: impl Fn(SlotId) -> bool,
    ) -> bool {
        let reservation = job.reservation.as_deref();
        let id = reservation.and_then(|name| self.id_of(name));
        let was_handed = || job.key().is_some_and(|key| handed.contains(&key));
        id.is_some_and(is_ours) || was_handed() || self.is_own(job)
    }

    /// Whether this service has submitted a job: anybody may give a job the name of one.
    fn is_own(&self, job: &JobRow) -> bool {
        let submitted = || {
            let id = self.id_of(&job.name)?;
            let spec = self.folder(id.job()).spec().ok()??;
            self.owner_of(&spec.party).ok()
        };
        submitted().is_some_and(|owner| owner.user == job.user)
    }

    fn present(&self) -> Result<Present, Error> {
        let nodes = self.slurm.nodes(&self.settings.partition)?;
        let is_new = nodes.iter().any(|row| is_unheard_of(&row.state))
            && self.slurm.controller_start()? + HEARD_WITHIN > Clock::system().now();
        let nodes: HashMap<&str, &NodeRow> = nodes.iter().map(|row| (row.name.as_str(), row)).collect();
        let (mut states, mut cpus, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, name) in self.settings.nodes.iter().enumerate() {
            let row = nodes.get(name.as_str());
            let state = row.map_or(NodeState::Down, |row| state_of(row, is_new));
            states.push(state);
            cpus.push(row.map_or((0, 0), |row| row.cpus));
            if state != NodeState::Up {
                let reason = row.map_or_else(
                    || Some("it is not in the partition".to_owned()),
                    |row| row.reason.clone().or(row.silent.then(|| SILENT.to_owned())),
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
            jobs: self.jobs_now()?,
            now: Clock::system().now(),
        })
    }

    /// When nodes are others': their reservations, and the jobs that run outside of ours.
    fn foreign(&self, present: &Present, is_ours: impl Fn(SlotId) -> bool) -> Vec<BusyTime> {
        let ours = |name: &str| self.id_of(name).is_some_and(&is_ours);
        let handed = self.handed_jobs();
        // Our own jobs end with their slots by themselves.
        let is_foreign = |job: &&JobRow| job.is_on_nodes() && !self.is_in_ours(job, &handed, &is_ours);
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

/// What Slurm says of a node means. A controller that has just started has not heard of its idle nodes for some seconds: that is
/// no failure of theirs. One that does not answer keeps what runs there until Slurm calls it down. A word that nobody
/// knows is a node that gets no new work.
fn state_of(row: &NodeRow, controller_is_new: bool) -> NodeState {
    match row.state.as_str() {
        word if is_unheard_of(word) && !controller_is_new => NodeState::Down,
        "down" | "error" | "future" | "inval" | "powered_down" | "power_down" | "powering_down" => {
            NodeState::Down
        }
        _ if row.silent => NodeState::Drained,
        "idle" | "allocated" | "mixed" | "completing" | "reserved" | "planned" | "maint" | "blocked"
        | "unknown" | "unk" => NodeState::Up,
        _ => NodeState::Drained,
    }
}

/// Whether a word says that the controller has not heard of a node since it began.
fn is_unheard_of(word: &str) -> bool {
    matches!(word, "unknown" | "unk")
}

#[cfg(test)]
mod tests;
