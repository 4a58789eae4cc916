//! One reservation: made, changed, passed on to another, given back.
//!
//! Where one agreement follows another on its nodes, the new reservation is made before the old one goes: in a moment without
//! a reservation, a batch job that lasts into the slot would get the nodes. Slurm makes a reservation over another one that
//! has the flag OVERLAP, or with that flag; it never takes that flag away again, so only a reservation that is about to go
//! gets it, and one that has begun, where it does no harm.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use domain::agreement::Run;
use scheduler::Time;
use tracing::info;
use uuid::Uuid;

use crate::files::if_there;
use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::operation::{Change, Flag, Operation, Reservation};
use crate::slurm::query::{JobRow, ReservationRow};
use crate::slurm::reservations::target::Target;
use crate::slurm::snapshot::HeldReservations;
use crate::{ExecutionError, PlannedSlot};

impl SlurmExecutor {
    /// The reservations that this service has made for slots that are no longer in the plan. Others end by themselves.
    pub(crate) fn leaving<'a>(
        &self,
        slots: &[PlannedSlot],
        held: &'a HeldReservations,
    ) -> Result<BTreeMap<Run, &'a ReservationRow>, ExecutionError> {
        let planned: HashSet<Run> = slots.iter().flat_map(PlannedSlot::reservations).collect();
        let mut leaving = BTreeMap::new();
        for id in self.marked()?.difference(&planned) {
            match held.get(id) {
                Some(row) => drop(leaving.insert(*id, row)),
                None => self.remove_mark(*id)?,
            }
        }
        Ok(leaving)
    }

    /// Lets the reservations of a plan be made over one that is about to go, which gets empty. A reservation that cannot be
    /// passed on is given back at once. Returns whether it is still there, and the refusals.
    pub(crate) fn pass_on(
        &self,
        id: Run,
        row: &ReservationRow,
        jobs: &[JobRow],
    ) -> Result<(bool, Option<String>), ExecutionError> {
        let emptied = self.empty_reservation(row, jobs);
        let passed = emptied.and_then(|()| {
            if row.overlaps {
                Ok(())
            } else {
                self.let_overlap(id)
            }
        });
        if refusal_by_slurm(passed)?.is_none() {
            return Ok((true, None));
        }
        Ok((false, self.give_back(id, row, jobs)?))
    }

    /// Deletes a reservation, and cancels the jobs in it. Returns the reason where it could not be given back.
    pub(crate) fn give_back(
        &self,
        id: Run,
        row: &ReservationRow,
        jobs: &[JobRow],
    ) -> Result<Option<String>, ExecutionError> {
        let deleted = self
            .empty_reservation(row, jobs)
            .and_then(|()| self.delete_reservation(id));
        if let Some(said) = refusal_by_slurm(deleted)? {
            return Ok(Some(format!("{}: {said}", row.name)));
        }
        self.count_reservation_change();
        info!(agreement = %id, "reservation given back");
        self.remove_mark(id)?;
        Ok(None)
    }

    /// Cancels the jobs in a reservation.
    pub(crate) fn empty_reservation(&self, row: &ReservationRow, jobs: &[JobRow]) -> Result<(), Error> {
        let inside: Vec<_> = jobs.iter().filter(|job| job.is_inside(row)).collect();
        self.cancel(&inside)
    }

    pub(crate) fn make_mark(&self, id: Run) -> Result<(), ExecutionError> {
        let mark = self.mark_path(id);
        if mark.exists() {
            return Ok(());
        }
        fs::write(&mark, "").map_err(ExecutionError::system("write", mark))
    }

    fn remove_mark(&self, id: Run) -> Result<(), ExecutionError> {
        let mark = self.mark_path(id);
        let removed = if_there(fs::remove_file(&mark)).map(drop);
        removed.map_err(ExecutionError::system("remove", mark))
    }

    /// The slots that this service has made reservations for.
    pub(crate) fn marked(&self) -> Result<HashSet<Run>, ExecutionError> {
        let failed = |error| ExecutionError::system("list", &self.marks)(error);
        let mut marked = HashSet::new();
        for entry in fs::read_dir(&self.marks).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            marked.extend(name.to_str().and_then(|name| name.parse::<Run>().ok()));
        }
        Ok(marked)
    }

    pub(crate) fn create_reservation(&self, target: &Target, now: Time) -> Result<(), ExecutionError> {
        self.make_mark(target.id)?;
        let start = target.interval.start;
        self.perform_operation(Operation::Reserve(Reservation {
            id: target.id,
            start: (start > now).then_some(start.seconds()),
            end: target.interval.end.seconds(),
            nodes: target.nodes.clone(),
            users: target.user.clone(),
            party: target.party.clone(),
            application: target.application.clone(),
            flags: Vec::from_iter(target.behind_own_jobs.then_some(Flag::IgnoreJobs)),
        }))?;
        if target.handed {
            self.let_overlap(target.id)?;
        }
        Ok(())
    }

    /// Changes only the differing values: Slurm refuses to move the start of a reservation that has begun, even to
    /// where it is.
    pub(crate) fn update_reservation(
        &self,
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
        self.perform_operation(Operation::Change(Change {
            id: target.id,
            start: (!target.starts_with(row, now)).then(|| interval.start.max(now + 1).seconds()),
            end: (interval.end != row.interval.end).then_some(interval.end.seconds()),
            nodes: (!target.is_on(row)).then(|| target.nodes.clone()),
            users: (target.user != row.users).then(|| target.user.clone()),
            flag,
        }))?;
        Ok(())
    }

    /// Lets jobs in a reservation that has begun ignore the next one on its nodes. Slurm counts their limits in whole
    /// minutes, and would refuse a job with a limit that reaches into the next reservation by some seconds.
    pub(crate) fn let_overlap(&self, id: Run) -> Result<(), Error> {
        let change = Change {
            id,
            start: None,
            end: None,
            nodes: None,
            users: None,
            flag: Some(Flag::Overlap),
        };
        self.perform_operation(Operation::Change(change)).map(drop)
    }

    /// Deletes a reservation; one that is gone is as good.
    pub(crate) fn delete_reservation(&self, id: Run) -> Result<(), Error> {
        match self.perform_operation(Operation::Release { id }) {
            Err(Error::Refused(_, said)) if said.contains("reservation is invalid") => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Frees the name of a reservation that waits, so that it can be made anew elsewhere. Its nodes are kept by a nameless one
    /// meanwhile, which is no agreement's: it is given back as such are, once nothing of the plan wants its nodes.
    pub(crate) fn make_nameless(&self, id: Run, row: &ReservationRow) -> Result<(), ExecutionError> {
        let nameless = Run::first(Uuid::now_v7());
        self.make_mark(nameless)?;
        self.perform_operation(Operation::Reserve(Reservation {
            id: nameless,
            start: Some(row.interval.start.seconds()),
            end: row.interval.end.seconds(),
            nodes: row.nodes.clone(),
            users: row.users.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap],
        }))?;
        let freed = self.delete_reservation(id);
        if freed.is_err() {
            // A job waits in it, or the controller went away: there is to be one for it at most.
            self.delete_reservation(nameless)?;
            self.remove_mark(nameless)?;
        }
        Ok(freed?)
    }
}

/// Why Slurm has refused something, in its own words; none where it was done.
pub(crate) fn refusal_by_slurm(
    done: Result<(), impl Into<ExecutionError>>,
) -> Result<Option<String>, ExecutionError> {
    match done.map_err(Into::into) {
        Err(ExecutionError::Slurm(Error::Refused(_, said))) => Ok(Some(said)),
        done => done.map(|()| None),
    }
}
