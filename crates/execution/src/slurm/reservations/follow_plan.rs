//! Reservations that follow the plan, and Slurm's report on its nodes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use scheduler::Time;
use task::lock::lock;
use tracing::info;

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::job_row::JobRow;
use crate::slurm::jobs::cancel::cancel_jobs;
use crate::slurm::jobs::ownership::is_job_ours;
use crate::slurm::nodes::look_at_nodes;
use crate::slurm::query::{ReservationRow, query_reservations};
use crate::slurm::reservations::dedicated::{is_dedicated_as_configured, keep_dedicated};
use crate::slurm::reservations::handover::{
    jobs_after_handover, jobs_left_over_after_handover, note_use_after_handover,
};
use crate::slurm::reservations::kept_nodes::note_kept_nodes;
use crate::slurm::reservations::marks::{make_mark, marked_runs, remove_mark};
use crate::slurm::reservations::needs::targets_by_needs;
use crate::slurm::reservations::refused_targets::RefusedTargets;
use crate::slurm::reservations::reservation::{
    create_reservation, delete_reservation, empty_reservation, give_back_reservation,
    make_reservation_nameless, pass_on_reservation, refusal_of_reservation, update_reservation,
};
use crate::slurm::reservations::target::Target;
use crate::slurm::snapshot::{HeldReservations, Snapshot};
use crate::{ExecutionError, PlannedSlot};

/// Seconds that a reservation is made before the longest job that is started in the same moment could reach into it: for
/// the time until the plan is looked at again, and for jobs that are killed late.
const MARGIN: i64 = 120;

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

/// Makes, moves, resizes and deletes reservations until they match the plan. A refused request is tried again after the
/// rest: a reservation that is still to move may be in its way. Where the last look has shown all of the plan held, and
/// nothing else of ours, Slurm is not asked.
pub(crate) fn follow_plan(cluster: &SlurmCluster, slots: &[PlannedSlot]) -> Result<(), ExecutionError> {
    if is_plan_followed(cluster, slots)? {
        return Ok(());
    }
    // A look that is under way shows the state before these changes.
    lock(&cluster.seen.observed).begin();
    lock(&cluster.seen.lacking).clear();
    let asked = Instant::now();
    let present =
        look_at_nodes(cluster).inspect_err(|_| cluster.seen.blind.store(true, Ordering::Relaxed))?;
    let present = Arc::new(present);
    let now = present.now;
    let held = &present.held;
    note_kept_nodes(cluster, slots, held);
    note_use_by_plan(cluster, slots, &present, Instant::now());
    let mut failures = Vec::from_iter(refusal_of_reservation(keep_dedicated(cluster, &present))?);
    failures.extend(refusal_of_reservation(cancel_jobs(
        cluster,
        &jobs_left_over_after_handover(cluster, &present.jobs),
    ))?);
    let planned = slots.iter().flat_map(PlannedSlot::reservations);
    for id in planned.filter(|id| held.contains_key(id)) {
        // One that the records were lost of, with the data folder or by going on from another machine.
        make_mark(&cluster.marks, id)?;
    }
    let due = slots_of_plan_due(cluster, slots, held, now)?;
    let leaving = reservations_leaving_plan(cluster, slots, held)?;
    let (targets, unnamed) = targets_by_needs(cluster, &due, &leaving, &present);
    failures.extend(unnamed.iter().map(|id| {
        let nodes = "too few nodes are up and free of others' jobs and reservations";
        format!("{}: {nodes}", cluster.name_of_run(*id))
    }));
    let is_met = |target: &&Target| target.is_met_by(held.get(&target.id), now);
    // A reservation that leaves may have caused the refusal.
    let has_room_come = !leaving.is_empty();
    let mut passed_on = BTreeMap::new();
    for (id, row) in leaving {
        let is_wanted = targets.iter().any(|target| !is_met(&target) && target.wants(row));
        if !lock(&cluster.rate).has_room(is_wanted, Instant::now()) {
            // It is given back when there may be another change; its jobs end now.
            empty_reservation(cluster, row, &present.jobs)?;
            continue;
        }
        let (stays, said) = if is_wanted {
            pass_on_reservation(cluster, id, row, &present.jobs)?
        } else {
            (false, give_back_reservation(cluster, id, row, &present.jobs)?)
        };
        failures.extend(said);
        passed_on.extend(stays.then_some((id, row)));
    }
    let unmet: Vec<&Target> = targets.iter().filter(|target| !is_met(target)).collect();
    let is_as_planned = unmet.is_empty() && unnamed.is_empty() && !has_room_come;
    let refused = lock(&cluster.seen.refused)
        .as_ref()
        .and_then(|refused| refused.said_just_now(&unmet))
        .filter(|_| !has_room_come);
    let mut put_off = HashSet::new();
    let mut differ = if let Some(said) = refused {
        failures.extend(said);
        unmet
    } else if unmet.is_empty() {
        *lock(&cluster.seen.refused) = None;
        unmet
    } else {
        // A reservation that leaves waits for the ones that follow it.
        let is_urgent = |target: &Target| {
            target.is_awaited
                || target.interval.start <= now + URGENT
                || passed_on.values().any(|row| target.wants(row))
        };
        let applied = apply_plan(cluster, &unmet, &present, is_urgent)?;
        let mut refused = lock(&cluster.seen.refused);
        *refused = RefusedTargets::after(refused.take(), &unmet, &applied.said);
        drop(refused);
        failures.extend(applied.said);
        if unmet
            .iter()
            .any(|unmet| is_urgent(unmet) && applied.put_off.contains(&unmet.id))
        {
            failures.push("the changes of one minute have been made".to_owned());
        }
        put_off = applied.put_off;
        targets_unlike_plan(cluster, slots, &targets)?
    };
    for (id, row) in passed_on {
        // It stays until all reservations that want its nodes have them.
        if !differ.iter().any(|target| target.wants(row)) {
            failures.extend(give_back_reservation(cluster, id, row, &present.jobs)?);
        }
    }
    differ.retain(|target| !put_off.contains(&target.id));
    failures.extend(note_slots_lacking_of_plan(cluster, &due, &unnamed, &differ));
    if is_as_planned && failures.is_empty() {
        lock(&cluster.seen.observed).put(asked, present);
    }
    match failures.into_iter().next() {
        None => Ok(()),
        Some(said) => Err(Error::Refused("scontrol".into(), said).into()),
    }
}

/// Takes note of the due slots that are not held as planned. Returns this in words.
fn note_slots_lacking_of_plan(
    cluster: &SlurmCluster,
    due: &[&PlannedSlot],
    unnamed: &[Run],
    differ: &[&Target],
) -> Vec<String> {
    let is_lacking = |id: Run| unnamed.contains(&id) || differ.iter().any(|target| target.id == id);
    let lacking = due.iter().filter(|slot| slot.reservations().any(is_lacking));
    *lock(&cluster.seen.lacking) = lacking
        .map(|slot| (slot.run.agreement, slot.interval.start))
        .collect();
    let say = |target: &&Target| format!("{}: it is not held as planned", cluster.name_of_run(target.id));
    differ.iter().map(say).collect()
}

/// Whether the last look has shown that all of the plan is held, and nothing else of ours.
fn is_plan_followed(cluster: &SlurmCluster, slots: &[PlannedSlot]) -> Result<bool, ExecutionError> {
    let observed = lock(&cluster.seen.observed).last();
    let Some((at, present)) = observed.filter(|(at, _)| at.elapsed() < OBSERVED_FOR) else {
        return Ok(false);
    };
    let held = &present.held;
    let due = slots_of_plan_due(cluster, slots, held, Clock::system().now())?;
    let planned: HashSet<Run> = slots.iter().flat_map(PlannedSlot::reservations).collect();
    // A job that has begun since then may be the first in a reservation that is about to be taken back.
    let is_handed = |slot: &PlannedSlot| slot.begun && !slot.has_job;
    if !is_dedicated_as_configured(cluster, &present)
        || !jobs_left_over_after_handover(cluster, &present.jobs).is_empty()
        || !marked_runs(&cluster.marks)?.is_subset(&planned)
        || cluster.settings.reclaim_after.is_some() && slots.iter().any(is_handed)
    {
        return Ok(false);
    }
    let (targets, unnamed) = targets_by_needs(cluster, &due, &BTreeMap::new(), &present);
    let is_met = |target: &Target| target.is_met_by(held.get(&target.id), present.now);
    let is_followed = unnamed.is_empty() && targets.iter().all(is_met);
    if is_followed {
        lock(&cluster.seen.lacking).clear();
        note_kept_nodes(cluster, slots, held);
        note_use_by_plan(cluster, slots, &present, at);
    }
    Ok(is_followed)
}

/// Takes note of the use of the reservations that were handed to users, as it was seen at an instant.
fn note_use_by_plan(cluster: &SlurmCluster, slots: &[PlannedSlot], present: &Snapshot, at: Instant) {
    let is_held = |slot: &PlannedSlot| {
        let row = present.held.get(&slot.run);
        row.is_some_and(|row| row.interval.start <= present.now && row.nodes.len() >= slot.nodes as usize)
    };
    note_use_after_handover(cluster, slots, is_held, &present.jobs, at);
}

/// The slots that are to be held by now: the held ones, and the ones that begin soon enough. A user may be told the name of a
/// slot's reservation long before.
fn slots_of_plan_due<'a>(
    cluster: &SlurmCluster,
    slots: &'a [PlannedSlot],
    held: &HeldReservations,
    now: Time,
) -> Result<Vec<&'a PlannedSlot>, Error> {
    let lead = lead_of_plan(cluster)?;
    *lock(&cluster.seen.reserves_within) = Some(lead.unwrap_or(i64::MAX));
    let from = lead.map(|lead| now + lead);
    let is_due = |slot: &&PlannedSlot| {
        held.contains_key(&slot.run)
            || from.is_none_or(|from| slot.interval.start <= from)
            || cluster.settings.reserve_at_once && !slot.has_job
    };
    let slots = slots.iter().filter(|slot| slot.interval.end > now);
    Ok(slots.filter(is_due).collect())
}

/// The reservations that this service has made for slots that are no longer in the plan. Others end by themselves.
fn reservations_leaving_plan<'a>(
    cluster: &SlurmCluster,
    slots: &[PlannedSlot],
    held: &'a HeldReservations,
) -> Result<BTreeMap<Run, &'a ReservationRow>, ExecutionError> {
    let planned: HashSet<Run> = slots.iter().flat_map(PlannedSlot::reservations).collect();
    let mut leaving = BTreeMap::new();
    for id in marked_runs(&cluster.marks)?.difference(&planned) {
        match held.get(id) {
            Some(row) => drop(leaving.insert(*id, row)),
            None => remove_mark(&cluster.marks, *id)?,
        }
    }
    Ok(leaving)
}

/// Brings reservations into line, in as many rounds as make progress, and as many of them as the pace allows.
fn apply_plan(
    cluster: &SlurmCluster,
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
            if !lock(&cluster.rate).has_room(is_urgent(target), Instant::now()) {
                put_off.insert(target.id);
                continue;
            }
            let done = match held.get(&target.id) {
                // Slurm does not move the start of one that has begun.
                Some(row) if row.interval.start <= now && target.interval.start > now + 1 => {
                    delete_reservation(cluster, target.id)
                        .map_err(ExecutionError::from)
                        .and_then(|()| create_reservation(cluster, target, now))
                }
                Some(row) => update_reservation(cluster, target, row, now),
                None => create_reservation(cluster, target, now),
            };
            match refusal_of_reservation(done)? {
                None => {
                    lock(&cluster.rate).note(Instant::now());
                    // Its job does not wait until all others are made.
                    lock(&cluster.seen.made).insert(target.id);
                    info!(
                        agreement = %target.id, nodes = target.nodes.join(","), slot = %target.interval,
                        "reserved"
                    );
                }
                Some(why) => {
                    said.push(format!("{}: {why}", cluster.name_of_run(target.id)));
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
            if waiting.is_some_and(|row| make_reservation_nameless(cluster, target.id, row).is_ok()) {
                held.remove(&target.id);
            }
        }
    }
}

/// Reads back the reservations from Slurm, and returns the ones that are not held as planned: Slurm answers
/// "created" even where it holds less than was asked for.
///
/// Where Slurm cannot be asked, the known state stays as it was.
fn targets_unlike_plan<'a>(
    cluster: &SlurmCluster,
    slots: &[PlannedSlot],
    targets: &'a [Target],
) -> Result<Vec<&'a Target>, ExecutionError> {
    let rows = query_reservations(&cluster.slurm)?;
    let (held, now) = (cluster.held_reservations(&rows), Clock::system().now());
    note_kept_nodes(cluster, slots, &held);
    let taken = runs_of_plan_held_by_others(cluster, targets)?;
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
fn runs_of_plan_held_by_others(
    cluster: &SlurmCluster,
    targets: &[Target],
) -> Result<HashSet<Run>, ExecutionError> {
    let behind = targets.iter().filter(|target| target.behind_own_jobs);
    let behind: Vec<&Target> = behind.collect();
    if behind.is_empty() {
        return Ok(HashSet::new());
    }
    let (jobs, handed, marked) = (
        cluster.jobs_now()?,
        jobs_after_handover(cluster),
        marked_runs(&cluster.marks)?,
    );
    let is_ours = |id| marked.contains(&id);
    let others: Vec<&JobRow> = jobs
        .iter()
        .filter(|job| job.is_on_nodes() && !is_job_ours(cluster, job, &handed, is_ours))
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

/// Seconds before a slot's start from which on its nodes are reserved; `None` for always: jobs may last for ever.
fn lead_of_plan(cluster: &SlurmCluster) -> Result<Option<i64>, Error> {
    let partitions = cluster.partitions_of_cluster_nodes()?;
    let limits: Option<Vec<i64>> = partitions.iter().map(|row| row.longest_job).collect();
    let longest = limits.and_then(|limits| limits.into_iter().max());
    let lead = longest.map(|longest| longest + MARGIN);
    // An open limit is longer than any lead.
    Ok(lead.into_iter().chain(cluster.settings.lead).min())
}

#[cfg(test)]
mod tests;
