//! One reservation: made, changed, passed on to another, given back.
//!
//! Where one agreement follows another on its nodes, the new reservation is made before the old one goes: in the moment in
//! which nodes are nobody's, a batch job gets them that lasts into the slot. Slurm makes a reservation over another one
//! that has the flag OVERLAP, or with that flag; it never takes that flag away again, so only what is about to go gets it,
//! and what has begun, in which it does no harm.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::ErrorKind;

use scheduler::{Interval, Time};
use tracing::info;
use uuid::Uuid;

use super::super::{ExecutionError, PlannedSlot};
use super::SlurmExecutor;
use super::command::Error;
use super::id::SlotId;
use super::operation::{Change, Flag, Operation, Reservation};
use super::view::{JobRow, ReservationRow};

/// A reservation as the plan wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) id: SlotId,
    pub(super) interval: Interval,
    pub(super) nodes: Vec<String>,
    pub(super) user: String,
    /// Whose policy says what else the site wants of it; that counts when it is made.
    pub(super) party: String,
    pub(super) application: String,
    /// Whether a request waits for it.
    pub(super) is_awaited: bool,
    /// Whether its user may submit jobs by now.
    pub(super) handed: bool,
    /// Whether jobs of ours in front of it have limits, in whole minutes, that reach into it. They end with their slots before.
    pub(super) behind_own_jobs: bool,
}

impl SlurmExecutor {
    /// The reservations of this service's making whose slots the plan does not have any more. Those that are not of its
    /// making end by themselves.
    pub(super) fn leaving<'a>(
        &self,
        slots: &[PlannedSlot],
        held: &BTreeMap<SlotId, &'a ReservationRow>,
    ) -> Result<BTreeMap<SlotId, &'a ReservationRow>, ExecutionError> {
        let planned: HashSet<SlotId> = slots.iter().flat_map(SlotId::all_of).collect();
        let mut leaving = BTreeMap::new();
        for id in self.marked()?.difference(&planned) {
            match held.get(id) {
                Some(row) => drop(leaving.insert(*id, *row)),
                None => self.remove_mark(*id)?,
            }
        }
        Ok(leaving)
    }

    /// Lets the reservations of a plan be made over one that is about to go, which gets empty. What cannot be passed on is given
    /// back at once. Answers whether it is still there, and what was refused.
    pub(super) fn pass_on(
        &self,
        id: SlotId,
        row: &ReservationRow,
        jobs: &[JobRow],
    ) -> Result<(bool, Option<String>), ExecutionError> {
        let passed = self.empty(row, jobs).and_then(|()| {
            let flag = (!row.overlaps).then(|| self.let_overlap(id));
            flag.unwrap_or(Ok(()))
        });
        match passed {
            Ok(()) => Ok((true, None)),
            Err(Error::Refused { .. }) => Ok((false, self.give_back(id, row, jobs)?)),
            Err(other) => Err(other.into()),
        }
    }

    /// Deletes a reservation, and cancels what runs in it. Answers why it could not be given back.
    pub(super) fn give_back(
        &self,
        id: SlotId,
        row: &ReservationRow,
        jobs: &[JobRow],
    ) -> Result<Option<String>, ExecutionError> {
        match self.empty(row, jobs).and_then(|()| self.delete(id)) {
            Ok(()) => {
                self.note_change();
                info!(agreement = %id, "reservation given back");
            }
            Err(Error::Refused { said, .. }) => return Ok(Some(format!("{}: {said}", row.name))),
            Err(other) => return Err(other.into()),
        }
        self.remove_mark(id)?;
        Ok(None)
    }

    /// Cancels what runs in a reservation.
    pub(super) fn empty(&self, row: &ReservationRow, jobs: &[JobRow]) -> Result<(), Error> {
        let inside: Vec<_> = jobs.iter().filter(|job| job.is_inside(row)).collect();
        self.cancel(&inside)
    }

    pub(super) fn make_mark(&self, id: SlotId) -> Result<(), ExecutionError> {
        let mark = self.mark(id);
        if mark.exists() {
            return Ok(());
        }
        fs::write(&mark, "").map_err(ExecutionError::system("write", mark))
    }

    fn remove_mark(&self, id: SlotId) -> Result<(), ExecutionError> {
        let mark = self.mark(id);
        match fs::remove_file(&mark) {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(ExecutionError::system("remove", mark)),
        }
    }

    /// The slots that this service has made reservations for.
    pub(super) fn marked(&self) -> Result<HashSet<SlotId>, ExecutionError> {
        let failed = |error| ExecutionError::system("list", &self.marks)(error);
        let mut marked = HashSet::new();
        for entry in fs::read_dir(&self.marks).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            marked.extend(name.to_str().and_then(|name| name.parse::<SlotId>().ok()));
        }
        Ok(marked)
    }

    pub(super) fn create(&self, target: &Target, now: Time) -> Result<(), ExecutionError> {
        self.make_mark(target.id)?;
        let start = target.interval.start;
        self.act(Operation::Reserve(Reservation {
            id: target.id,
            start: (start > now).then_some(start.seconds()),
            end: target.interval.end.seconds(),
            nodes: target.nodes.clone(),
            users: target.user.clone(),
            party: target.party.clone(),
            application: target.application.clone(),
            flags: target
                .behind_own_jobs
                .then_some(Flag::IgnoreJobs)
                .into_iter()
                .collect(),
        }))?;
        if target.handed {
            self.let_overlap(target.id)?;
        }
        Ok(())
    }

    /// Changes what differs, and nothing else: Slurm refuses to move the start of a reservation that has begun, even to
    /// where it is.
    pub(super) fn update(
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
        self.act(Operation::Change(Change {
            id: target.id,
            start: (!target.starts_with(row, now)).then(|| interval.start.max(now + 1).seconds()),
            end: (interval.end != row.interval.end).then_some(interval.end.seconds()),
            nodes: (!target.is_on(row)).then(|| target.nodes.clone()),
            users: (target.user != row.users).then(|| target.user.clone()),
            flag,
        }))?;
        Ok(())
    }

    /// Has jobs in a reservation that has begun not mind the next one on its nodes. Slurm counts their limits in whole
    /// minutes, and would refuse one whose limit reaches into that by some seconds.
    pub(super) fn let_overlap(&self, id: SlotId) -> Result<(), Error> {
        let change = Change {
            id,
            start: None,
            end: None,
            nodes: None,
            users: None,
            flag: Some(Flag::Overlap),
        };
        self.act(Operation::Change(change)).map(drop)
    }

    /// Deletes a reservation; one that is gone is as good.
    pub(super) fn delete(&self, id: SlotId) -> Result<(), Error> {
        match self.act(Operation::Release { id }) {
            Err(Error::Refused { said, .. }) if said.contains("reservation is invalid") => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Frees the name of a reservation that waits, so that it can be made anew elsewhere. Its nodes are kept by a nameless one
    /// meanwhile, which is no agreement's: it is given back as such are, once nothing of the plan wants its nodes.
    pub(super) fn make_nameless(&self, id: SlotId, row: &ReservationRow) -> Result<(), ExecutionError> {
        let nameless = SlotId::from(Uuid::now_v7());
        self.make_mark(nameless)?;
        self.act(Operation::Reserve(Reservation {
            id: nameless,
            start: Some(row.interval.start.seconds()),
            end: row.interval.end.seconds(),
            nodes: row.nodes.clone(),
            users: row.users.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap],
        }))?;
        let freed = self.delete(id);
        if freed.is_err() {
            // A job waits in it, or the controller went away: there is to be one for it at most.
            self.delete(nameless)?;
            self.remove_mark(nameless)?;
        }
        Ok(freed?)
    }
}

impl Target {
    /// Whether it needs some of the nodes of a reservation at some time of that.
    pub(super) fn wants(&self, row: &ReservationRow) -> bool {
        self.interval.meets(row.interval) && self.nodes.iter().any(|node| row.nodes.contains(node))
    }

    pub(super) fn is_met_by(&self, row: &ReservationRow, now: Time) -> bool {
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
pub(super) fn instant(at: Time) -> String {
    jiff::Timestamp::from_second(at.seconds())
        .unwrap_or(jiff::Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%S")
        .to_string()
}
