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
use super::view::{JobRow, ReservationRow};

/// A reservation as the plan wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) id: SlotId,
    pub(super) interval: Interval,
    pub(super) nodes: Vec<String>,
    pub(super) user: String,
    /// What the site wants of it besides; that counts when it is made.
    pub(super) options: Vec<String>,
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
        let planned: HashSet<SlotId> = slots.iter().map(SlotId::from).collect();
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
            let flag = (!row.overlaps).then(|| self.let_overlap(&row.name));
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
        match self.empty(row, jobs).and_then(|()| self.delete(&row.name)) {
            Ok(()) => info!(agreement = %id, "reservation given back"),
            Err(Error::Refused { said, .. }) => return Ok(Some(format!("{}: {said}", row.name))),
            Err(other) => return Err(other.into()),
        }
        self.remove_mark(id)?;
        Ok(None)
    }

    /// Cancels what runs in a reservation.
    fn empty(&self, row: &ReservationRow, jobs: &[JobRow]) -> Result<(), Error> {
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
        let start = if target.interval.start <= now {
            "now".to_owned()
        } else {
            instant(target.interval.start)
        };
        let mut arguments = vec![
            "create".to_owned(),
            "reservation".to_owned(),
            format!("ReservationName={}", self.name_of(target.id)),
            format!("StartTime={start}"),
            format!("EndTime={}", instant(target.interval.end)),
            format!("Nodes={}", target.nodes.join(",")),
            format!("Users={}", target.user),
        ];
        if target.behind_own_jobs {
            arguments.push("Flags=IGNORE_JOBS".to_owned());
        }
        arguments.extend(target.options.iter().cloned());
        self.slurm.call("scontrol", arguments)?;
        if target.handed {
            self.let_overlap(&self.name_of(target.id))?;
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
        } else if target.behind_own_jobs {
            arguments.push("Flags+=IGNORE_JOBS".to_owned());
        }
        self.slurm.call("scontrol", arguments)?;
        Ok(())
    }

    /// Deletes a reservation; one that is gone is as good.
    pub(super) fn delete(&self, name: &str) -> Result<(), Error> {
        match self
            .slurm
            .call("scontrol", ["delete", &format!("ReservationName={name}")])
        {
            Err(Error::Refused { said, .. }) if said.contains("reservation is invalid") => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Frees the name of a reservation that waits, so that it can be made anew elsewhere. Its nodes are kept by a nameless one
    /// meanwhile, which is no agreement's: it is given back as such are, once nothing of the plan wants its nodes.
    pub(super) fn make_nameless(&self, row: &ReservationRow) -> Result<(), ExecutionError> {
        let nameless = SlotId::from(Uuid::now_v7());
        let name = self.name_of(nameless);
        self.make_mark(nameless)?;
        self.slurm.call(
            "scontrol",
            [
                "create".to_owned(),
                "reservation".to_owned(),
                format!("ReservationName={name}"),
                format!("StartTime={}", instant(row.interval.start)),
                format!("EndTime={}", instant(row.interval.end)),
                format!("Nodes={}", row.nodes.join(",")),
                format!("Users={}", row.users),
                "Flags=OVERLAP".to_owned(),
            ],
        )?;
        let freed = self.delete(&row.name);
        if freed.is_err() {
            // A job waits in it, or the controller went away: there is to be one for it at most.
            self.delete(&name)?;
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
