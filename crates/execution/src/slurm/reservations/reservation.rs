//! One reservation: made, changed, passed on to another, given back.
//!
//! Where one agreement follows another on its nodes, the new reservation is made before the old one goes: in a moment without
//! a reservation, a batch job that lasts into the slot would get the nodes. Slurm makes a reservation over another one that
//! has the flag OVERLAP, or with that flag; it never takes that flag away again, so only a reservation that is about to go
//! gets it, and one that has begun, where it does no harm.

use std::time::Instant;

use domain::agreement::Run;
use scheduler::Time;
use task::lock::lock;
use tracing::info;
use uuid::Uuid;

use crate::ExecutionError;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::{ChangeOperation, Flag, Operation, ReserveOperation};
use crate::slurm::job_row::JobRow;
use crate::slurm::jobs::cancel::cancel_jobs;
use crate::slurm::query::ReservationRow;
use crate::slurm::reservations::marks::{make_mark, remove_mark};
use crate::slurm::reservations::target::Target;

/// Lets the reservations of a plan be made over one that is about to go, which gets empty. A reservation that cannot be
/// passed on is given back at once. Returns whether it is still there, and the refusals.
pub(crate) fn pass_on_reservation(
    cluster: &SlurmCluster,
    id: Run,
    row: &ReservationRow,
    jobs: &[JobRow],
) -> Result<(bool, Option<String>), ExecutionError> {
    let emptied = empty_reservation(cluster, row, jobs);
    let passed = emptied.and_then(|()| {
        if row.overlaps {
            Ok(())
        } else {
            let_reservation_overlap(cluster, id)
        }
    });
    if refusal_of_reservation(passed)?.is_none() {
        return Ok((true, None));
    }
    Ok((false, give_back_reservation(cluster, id, row, jobs)?))
}

/// Deletes a reservation, and cancels the jobs in it. Returns the reason where it could not be given back.
pub(crate) fn give_back_reservation(
    cluster: &SlurmCluster,
    id: Run,
    row: &ReservationRow,
    jobs: &[JobRow],
) -> Result<Option<String>, ExecutionError> {
    let deleted = empty_reservation(cluster, row, jobs).and_then(|()| delete_reservation(cluster, id));
    if let Some(said) = refusal_of_reservation(deleted)? {
        return Ok(Some(format!("{}: {said}", row.name)));
    }
    lock(&cluster.rate).note(Instant::now());
    info!(agreement = %id, "reservation given back");
    remove_mark(&cluster.marks, id)?;
    Ok(None)
}

/// Cancels the jobs in a reservation.
pub(crate) fn empty_reservation(
    cluster: &SlurmCluster,
    row: &ReservationRow,
    jobs: &[JobRow],
) -> Result<(), Error> {
    let inside: Vec<_> = jobs.iter().filter(|job| job.is_inside(&row.name)).collect();
    cancel_jobs(cluster, &inside)
}

pub(crate) fn create_reservation(
    cluster: &SlurmCluster,
    target: &Target,
    now: Time,
) -> Result<(), ExecutionError> {
    make_mark(&cluster.marks, target.id)?;
    let start = target.interval.start;
    carry_out_operation(
        cluster,
        Operation::Reserve(ReserveOperation {
            id: target.id,
            start: (start > now).then_some(start.seconds()),
            end: target.interval.end.seconds(),
            nodes: target.nodes.clone(),
            users: target.user.clone(),
            party: target.party.clone(),
            application: target.application.clone(),
            flags: Vec::from_iter(target.behind_own_jobs.then_some(Flag::IgnoreJobs)),
        }),
    )?;
    if target.handed {
        let_reservation_overlap(cluster, target.id)?;
    }
    Ok(())
}

/// Changes only the differing values: Slurm refuses to move the start of a reservation that has begun, even to
/// where it is.
pub(crate) fn update_reservation(
    cluster: &SlurmCluster,
    target: &Target,
    row: &ReservationRow,
    now: Time,
) -> Result<(), ExecutionError> {
    let interval = target.interval;
    let flag = if target.handed && !row.overlaps {
        Some(Flag::Overlap)
    } else {
        target.behind_own_jobs.then_some(Flag::IgnoreJobs)
    };
    carry_out_operation(
        cluster,
        Operation::Change(ChangeOperation {
            id: target.id,
            start: (!target.starts_with(row, now)).then(|| interval.start.max(now + 1).seconds()),
            end: (interval.end != row.interval.end).then_some(interval.end.seconds()),
            nodes: (!target.is_on(row)).then(|| target.nodes.clone()),
            users: (target.user != row.users).then(|| target.user.clone()),
            flag,
        }),
    )?;
    Ok(())
}

/// Lets jobs in a reservation that has begun ignore the next one on its nodes. Slurm counts their limits in whole
/// minutes, and would refuse a job with a limit that reaches into the next reservation by some seconds.
pub(crate) fn let_reservation_overlap(cluster: &SlurmCluster, id: Run) -> Result<(), Error> {
    carry_out_operation(cluster, Operation::Change(ChangeOperation::overlap(id))).map(drop)
}

/// Deletes a reservation; one that is gone is as good.
pub(crate) fn delete_reservation(cluster: &SlurmCluster, id: Run) -> Result<(), Error> {
    match carry_out_operation(cluster, Operation::Release { id }) {
        Err(Error::Refused(_, said)) if said.contains("reservation is invalid") => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Frees the name of a reservation that waits, so that it can be made anew elsewhere. Its nodes are kept by a nameless one
/// meanwhile, which is no agreement's: it is given back as such are, once nothing of the plan wants its nodes.
pub(crate) fn make_reservation_nameless(
    cluster: &SlurmCluster,
    id: Run,
    row: &ReservationRow,
) -> Result<(), ExecutionError> {
    let nameless = Run::first(Uuid::now_v7());
    make_mark(&cluster.marks, nameless)?;
    carry_out_operation(
        cluster,
        Operation::Reserve(ReserveOperation {
            id: nameless,
            start: Some(row.interval.start.seconds()),
            end: row.interval.end.seconds(),
            nodes: row.nodes.clone(),
            users: row.users.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap],
        }),
    )?;
    let freed = delete_reservation(cluster, id);
    if freed.is_err() {
        // A job waits in it, or the controller went away: there is to be one for it at most.
        delete_reservation(cluster, nameless)?;
        remove_mark(&cluster.marks, nameless)?;
    }
    Ok(freed?)
}

/// Why Slurm has refused something, in its own words; none where it was done.
pub(crate) fn refusal_of_reservation(
    done: Result<(), impl Into<ExecutionError>>,
) -> Result<Option<String>, ExecutionError> {
    match done.map_err(Into::into) {
        Err(ExecutionError::Slurm(Error::Refused(_, said))) => Ok(Some(said)),
        done => done.map(|()| None),
    }
}
