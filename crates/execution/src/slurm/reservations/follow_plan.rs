//! Reservations that follow the plan, and Slurm's report on its nodes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use domain::resources::KeptNodes;
use scheduler::Time;
use task::lock::lock;
use tracing::info;

use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::query::{JobRow, ReservationRow};
use crate::slurm::reservations::change::refusal_by_slurm;
use crate::slurm::reservations::target::{RefusedTargets, Target};
use crate::slurm::snapshot::{HeldReservations, Snapshot};
use crate::{ExecutionError, PlannedSlot};

/// Seconds that a reservation is made before the longest job that is started in the same moment could reach into it: for
/// the time until the plan is looked at again, and for jobs that are killed late.
const MARGIN: i64 = 120;

/// How long after refusals the same reservations are asked for again, at first and at most; it doubles in between.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));

/// Seconds before its begin from which on a reservation is urgent.
const URGENT: i64 = 60;
/// For how long the cluster's answer is good enough to see that nothing has to be changed: as often as it is looked at.
const OBSERVED_FOR: Duration = Duration::from_secs(10);

/// The results of the requests to Slurm for reservations.
struct AppliedChanges {
    /// Slurm's words about the reservations that it refused to the last.
    said: Vec<String>,
    /// The reservations that wait for the limit of changes a minute.
    put_off: HashSet<Run>,
}

impl SlurmExecutor {
    /// Makes, moves, resizes and deletes reservations until they match the plan. A refused request is tried again after the
    /// rest: a reservation that is still to move may be in its way. Where the last look has shown all of the plan held, and
    /// nothing else of ours, Slurm is not asked.
    pub(crate) fn follow_plan(&self, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
        if self.is_followed(slots)? {
            return Ok(());
        }
        // A look that is under way shows the state before these changes.
        lock(&self.seen.observed).begin();
        lock(&self.seen.lacking).clear();
        let asked = Instant::now();
        let present = self
            .take_snapshot()
            .inspect_err(|_| self.seen.blind.store(true, Ordering::Relaxed))?;
        let present = Arc::new(present);
        let now = present.now;
        let held = &present.held;
        self.note_kept(slots, held);
        self.note_use_of(slots, &present, Instant::now());
        let mut failures = Vec::from_iter(refusal_by_slurm(self.keep_dedicated(&present))?);
        failures.extend(refusal_by_slurm(self.cancel(&self.left_over(&present.jobs)))?);
        let planned = slots.iter().flat_map(PlannedSlot::reservations);
        for id in planned.filter(|id| held.contains_key(id)) {
            // One that the records were lost of, with the data folder or by going on from another machine.
            self.make_mark(id)?;
        }
        let due = self.slots_due(slots, held, now)?;
        let leaving = self.leaving(slots, held)?;
        let (targets, unnamed) = self.targets(&due, &leaving, &present);
        failures.extend(unnamed.iter().map(|id| {
            let nodes = "too few nodes are up and free of others' jobs and reservations";
            format!("{}: {nodes}", self.name_of_run(*id))
        }));
        let is_met = |target: &&Target| target.is_met_by(held.get(&target.id), now);
        // A reservation that leaves may have caused the refusal.
        let has_room_come = !leaving.is_empty();
        let mut passed_on = BTreeMap::new();
        for (id, row) in leaving {
            let is_wanted = targets.iter().any(|target| !is_met(&target) && target.wants(row));
            if !self.may_change_reservation(is_wanted) {
                // It is given back when there may be another change; its jobs end now.
                self.empty_reservation(row, &present.jobs)?;
                continue;
            }
            let (stays, said) = if is_wanted {
                self.pass_on(id, row, &present.jobs)?
            } else {
                (false, self.give_back(id, row, &present.jobs)?)
            };
            failures.extend(said);
            passed_on.extend(stays.then_some((id, row)));
        }
        let unmet: Vec<&Target> = targets.iter().filter(|target| !is_met(target)).collect();
        let is_as_planned = unmet.is_empty() && unnamed.is_empty() && !has_room_come;
        let refused = self.refused_just_now(&unmet).filter(|_| !has_room_come);
        let mut put_off = HashSet::new();
        let mut differ = if let Some(said) = refused {
            failures.extend(said);
            unmet
        } else if unmet.is_empty() {
            *lock(&self.seen.refused) = None;
            unmet
        } else {
            // A reservation that leaves waits for the ones that follow it.
            let is_urgent = |target: &Target| {
                target.is_awaited
                    || target.interval.start <= now + URGENT
                    || passed_on.values().any(|row| target.wants(row))
            };
            let applied = self.apply_targets(&unmet, &present, is_urgent)?;
            self.note_refused(&unmet, &applied.said);
            failures.extend(applied.said);
            if unmet
                .iter()
                .any(|unmet| is_urgent(unmet) && applied.put_off.contains(&unmet.id))
            {
                failures.push("the changes of one minute have been made".to_owned());
            }
            put_off = applied.put_off;
            self.unmet_targets(slots, &targets)?
        };
        for (id, row) in passed_on {
            // It stays until all reservations that want its nodes have them.
            if !differ.iter().any(|target| target.wants(row)) {
                failures.extend(self.give_back(id, row, &present.jobs)?);
            }
        }
        differ.retain(|target| !put_off.contains(&target.id));
        failures.extend(self.note_lacking(&due, &unnamed, &differ));
        if is_as_planned && failures.is_empty() {
            lock(&self.seen.observed).put(asked, present);
        }
        match failures.into_iter().next() {
            None => Ok(()),
            Some(said) => Err(Error::Refused("scontrol".into(), said).into()),
        }
    }

    /// Takes note of the due slots that are not held as planned. Returns this in words.
    fn note_lacking(&self, due: &[&PlannedSlot], unnamed: &[Run], differ: &[&Target]) -> Vec<String> {
        let is_lacking = |id: Run| unnamed.contains(&id) || differ.iter().any(|target| target.id == id);
        let lacking = due.iter().filter(|slot| slot.reservations().any(is_lacking));
        *lock(&self.seen.lacking) = lacking
            .map(|slot| (slot.run.agreement, slot.interval.start))
            .collect();
        let say = |target: &&Target| format!("{}: it is not held as planned", self.name_of_run(target.id));
        differ.iter().map(say).collect()
    }

    /// Whether the last look has shown that all of the plan is held, and nothing else of ours.
    fn is_followed(&self, slots: &[PlannedSlot]) -> Result<bool, ExecutionError> {
        let observed = lock(&self.seen.observed).last();
        let Some((at, present)) = observed.filter(|(at, _)| at.elapsed() < OBSERVED_FOR) else {
            return Ok(false);
        };
        let held = &present.held;
        let due = self.slots_due(slots, held, Clock::system().now())?;
        let planned: HashSet<Run> = slots.iter().flat_map(PlannedSlot::reservations).collect();
        // A job that has begun since then may be the first in a reservation that is about to be taken back.
        let is_handed = |slot: &PlannedSlot| slot.begun && !slot.has_job;
        if !self.is_dedicated_as_configured(&present)
            || !self.left_over(&present.jobs).is_empty()
            || !self.marked()?.is_subset(&planned)
            || self.settings.reclaim_after.is_some() && slots.iter().any(is_handed)
        {
            return Ok(false);
        }
        let (targets, unnamed) = self.targets(&due, &BTreeMap::new(), &present);
        let is_met = |target: &Target| target.is_met_by(held.get(&target.id), present.now);
        let is_followed = unnamed.is_empty() && targets.iter().all(is_met);
        if is_followed {
            lock(&self.seen.lacking).clear();
            self.note_kept(slots, held);
            self.note_use_of(slots, &present, at);
        }
        Ok(is_followed)
    }

    /// Takes note of the use of the reservations that were handed to users, as it was seen at an instant.
    fn note_use_of(&self, slots: &[PlannedSlot], present: &Snapshot, at: Instant) {
        let is_held = |slot: &PlannedSlot| {
            let row = present.held.get(&slot.run);
            row.is_some_and(|row| row.interval.start <= present.now && row.nodes.len() >= slot.nodes as usize)
        };
        self.note_use(slots, is_held, &present.jobs, at);
    }

    /// The slots that are to be held by now: the held ones, and the ones that begin soon enough. A user may be told the name of a
    /// slot's reservation long before.
    fn slots_due<'a>(
        &self,
        slots: &'a [PlannedSlot],
        held: &HeldReservations,
        now: Time,
    ) -> Result<Vec<&'a PlannedSlot>, Error> {
        let lead = self.reservation_lead()?;
        *lock(&self.seen.reserves_within) = Some(lead.unwrap_or(i64::MAX));
        let from = lead.map(|lead| now + lead);
        let is_due = |slot: &&PlannedSlot| {
            held.contains_key(&slot.run)
                || from.is_none_or(|from| slot.interval.start <= from)
                || self.settings.reserve_at_once && !slot.has_job
        };
        let slots = slots.iter().filter(|slot| slot.interval.end > now);
        Ok(slots.filter(is_due).collect())
    }

    /// Whether a reservation may be changed now.
    fn may_change_reservation(&self, is_urgent: bool) -> bool {
        lock(&self.rate).has_room(is_urgent, Instant::now())
    }

    /// Counts a change of a reservation.
    pub(crate) fn count_reservation_change(&self) {
        lock(&self.rate).note(Instant::now());
    }

    /// Brings reservations into line, in as many rounds as make progress, and as many of them as the pace allows.
    fn apply_targets(
        &self,
        unmet: &[&Target],
        present: &Snapshot,
        is_urgent: impl Fn(&Target) -> bool,
    ) -> Result<AppliedChanges, ExecutionError> {
        let (mut held, now) = (present.held.clone(), present.now);
        let (mut left, mut put_off) = (unmet.to_vec(), HashSet::new());
        left.sort_by_key(|target| !is_urgent(target));
        let mut broken_up = false;
        loop {
            let before = left.len();
            let (mut refused, mut said) = (Vec::new(), Vec::new());
            for target in left {
                if !self.may_change_reservation(is_urgent(target)) {
                    put_off.insert(target.id);
                    continue;
                }
                let done = match held.get(&target.id) {
                    // Slurm does not move the start of one that has begun.
                    Some(row) if row.interval.start <= now && target.interval.start > now + 1 => self
                        .delete_reservation(target.id)
                        .map_err(ExecutionError::from)
                        .and_then(|()| self.create_reservation(target, now)),
                    Some(row) => self.update_reservation(target, row, now),
                    None => self.create_reservation(target, now),
                };
                match refusal_by_slurm(done)? {
                    None => {
                        self.count_reservation_change();
                        // Its job does not wait until all others are made.
                        lock(&self.seen.made).insert(target.id);
                        info!(
                            agreement = %target.id, nodes = target.nodes.join(","), slot = %target.interval,
                            "reserved"
                        );
                    }
                    Some(why) => {
                        said.push(format!("{}: {why}", self.name_of_run(target.id)));
                        refused.push(target);
                    }
                }
            }
            left = refused;
            if left.is_empty() {
                return Ok(AppliedChanges { said, put_off });
            }
            if left.len() < before {
                continue;
            }
            // Reservations that want each other's nodes never get them one by one.
            let in_a_ring = |said: &String| said.contains("overlaps");
            // One that has none yet may not cost another one its own.
            let is_new = left.iter().any(|target| !held.contains_key(&target.id));
            if broken_up || is_new || left.len() < 2 || !said.iter().any(in_a_ring) {
                return Ok(AppliedChanges { said, put_off });
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
        let refused = lock(&self.seen.refused);
        let refused = refused.as_ref()?;
        let is_same = unmet.iter().copied().eq(&refused.targets);
        (is_same && refused.at.elapsed() < refused.pause).then(|| refused.said.clone())
    }

    /// Remembers which reservations Slurm has refused. One that begins before the pause is over does not wait for its end.
    fn note_refused(&self, unmet: &[&Target], said: &[String]) {
        let mut refused = lock(&self.seen.refused);
        if said.is_empty() {
            *refused = None;
            return;
        }
        let before = refused.take();
        let same = before.filter(|before| before.targets.len() == unmet.len());
        let pause = same.map_or(ASK_AGAIN.0, |same| (same.pause * 2).min(ASK_AGAIN.1));
        let soon = Clock::system().now() + i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
        let is_due = unmet.iter().any(|target| target.interval.start <= soon);
        *refused = Some(RefusedTargets {
            targets: unmet.iter().map(|target| (*target).clone()).collect(),
            said: said.to_vec(),
            at: Instant::now(),
            pause: if is_due { ASK_AGAIN.0 } else { pause },
        });
    }

    /// Reads back the reservations from Slurm, and returns the ones that are not held as planned: Slurm answers
    /// "created" even where it holds less than was asked for.
    ///
    /// Where Slurm cannot be asked, the known state stays as it was.
    fn unmet_targets<'a>(
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
            let is_met = target.is_met_by(row, now) && !taken.contains(&target.id);
            // One that is over vanishes.
            target.interval.end > now && !is_met
        };
        Ok(targets.iter().filter(differs).collect())
    }

    /// The targets after jobs of ours where others' jobs on the same nodes reach into them: Slurm was told to ignore
    /// jobs.
    fn taken_by_others(&self, targets: &[Target]) -> Result<HashSet<Run>, ExecutionError> {
        let behind = targets.iter().filter(|target| target.behind_own_jobs);
        let behind: Vec<&Target> = behind.collect();
        if behind.is_empty() {
            return Ok(HashSet::new());
        }
        let (jobs, handed, marked) = (self.jobs_now()?, self.handed_jobs(), self.marked()?);
        let is_ours = |id| marked.contains(&id);
        let others: Vec<&JobRow> = jobs
            .iter()
            .filter(|job| job.is_on_nodes() && !self.is_job_ours(job, &handed, is_ours))
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

    /// The reservations among these that are named after slots of this resource.
    pub(crate) fn by_slot(&self, rows: &[ReservationRow]) -> HeldReservations {
        let named = rows.iter();
        let named = named.filter_map(|row| Some((self.run_of_name(&row.name)?, row.clone())));
        named.collect()
    }

    /// Takes note of the reservations that Slurm holds for the slots of the plan.
    fn note_kept(&self, slots: &[PlannedSlot], held: &HeldReservations) {
        let kept = |slot: &PlannedSlot| {
            let (numbers, since) = if slot.replaces.is_some() {
                (self.held_beside(slot, slots, held), slot.interval.start)
            } else {
                let row = held.get(&slot.run)?;
                (self.reserved_node_numbers(row), row.interval.start)
            };
            Some(KeptNodes {
                run: slot.run,
                nodes: numbers
                    .into_iter()
                    .filter_map(|node| u32::try_from(node).ok())
                    .collect(),
                since,
            })
        };
        *lock(&self.seen.kept) = Some(slots.iter().filter_map(kept).collect());
        lock(&self.seen.made).clear();
    }

    /// Seconds before a slot's start from which on its nodes are reserved; `None` for always: jobs may last for ever.
    fn reservation_lead(&self) -> Result<Option<i64>, Error> {
        let partitions = self.sharing_partitions()?;
        let limits: Option<Vec<i64>> = partitions.iter().map(|row| row.longest_job).collect();
        let longest = limits.and_then(|limits| limits.into_iter().max());
        let lead = longest.map(|longest| longest + MARGIN);
        // An open limit is longer than any lead.
        Ok(lead.into_iter().chain(self.settings.lead).min())
    }
}

#[cfg(test)]
mod tests;
