//! The life of an agreement: its job's reports, longer slots, new attempts, its end and its bill; and when something is due.

pub(super) mod admission;
pub(super) mod awaited_words;
pub(super) mod billing;
pub(super) mod deadlines;
pub(super) mod executions;
pub(super) mod held_nodes;
pub(super) mod keep_offers;
pub(super) mod lost_work;
pub(super) mod move_up;
pub(super) mod overrun;
pub(super) mod reports;
pub(super) mod settle_moves;
pub(super) mod starts;
pub(super) mod succession;
pub(super) mod unsettled_moves;
pub(super) mod update;

use std::collections::{BTreeMap, HashMap};

use domain::agreement::Agreement;
use scheduler::{Fraction, Seconds, Time};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::journal::{JournaledMap, TakeBack};
use crate::life::deadlines::Deadlines;
use crate::life::starts::Starts;
use crate::life::unsettled_moves::UnsettledMoves;
use crate::overruns::{LastLook, Overruns};
use crate::schedules::Schedules;
use crate::settings::Settings;
use crate::timetable::Timetable;

/// Seconds after the end of its slot from when on nothing of a lost job can run.
const STOPPED_AFTER: Seconds = 3_600;

/// When something is due for agreements, and what runs.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// When the planner has something to do for an agreement: its slot begins, ends with nothing running in it, or nears
    /// its end with something that may go on.
    due: Timetable<Uuid>,
    /// The fraction of its wait after which every agreement moves no more.
    fix_after: Option<Fraction>,
    /// The times from which waiting agreements move no more.
    fixing: Timetable<Uuid>,
    /// When guarantees are assessed that time alone may decide.
    agenda: Deadlines,
    /// When starts are announced.
    starts: Starts,
    /// By how much slots may be made longer.
    overruns: Overruns,
    /// The agreements that end with their slots, even while work runs, or that may still be made longer but not saved
    /// any more.
    ending: JournaledMap<BTreeMap<Uuid, LastLook>>,
    /// The nodes that each begun agreement has been given.
    bound: JournaledMap<HashMap<Uuid, Vec<u32>>>,
    /// The agreements with lost work that may still have an old job to stop.
    stopping: JournaledMap<BTreeMap<Uuid, Agreement>>,
    /// The moves that are recorded, and not stored with their agreements yet.
    unsettled_moves: UnsettledMoves,
    /// When this plan was made.
    made: Time,
}

impl Life {
    /// Life on a plan that is made at `now`, with the nodes that begun agreements have.
    pub(crate) fn new(settings: &Settings, bound: HashMap<Uuid, Vec<u32>>, now: Time) -> Self {
        Self {
            due: Timetable::default(),
            fix_after: settings.fix_after,
            fixing: Timetable::default(),
            agenda: Deadlines::new(now),
            starts: Starts::announced(settings.announce),
            overruns: settings.overruns.clone(),
            ending: JournaledMap::default(),
            bound: bound.into(),
            stopping: JournaledMap::default(),
            unsettled_moves: UnsettledMoves::default(),
            made: now,
        }
    }

    /// The moves that are recorded and not settled.
    pub(crate) fn unsettled_moves(&self) -> &UnsettledMoves {
        &self.unsettled_moves
    }

    /// The moves that are recorded and not settled, to be changed.
    pub(crate) fn unsettled_moves_mut(&mut self) -> &mut UnsettledMoves {
        &mut self.unsettled_moves
    }

    /// When the plan was made.
    pub(crate) fn made(&self) -> Time {
        self.made
    }

    /// Takes over by how much slots may be made longer.
    pub(crate) fn set_overruns(&mut self, overruns: &Overruns) {
        self.overruns.clone_from(overruns);
    }

    /// The seconds in which the work of an agreement saves itself, as [`Overruns::grace`] has them.
    pub(crate) fn grace(&self, agreement: &Agreement) -> Option<Seconds> {
        self.overruns.grace(agreement)
    }

    /// The agreements for which there is something to do by `now`.
    pub(crate) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.due.due_by(now)
    }

    /// The agreements for which time alone may decide a guarantee by `now`.
    pub(crate) fn to_assess_by(&self, now: Time) -> Vec<Uuid> {
        self.agenda.times.due_by(now)
    }

    /// The agreements whose starts are to be announced by `now`.
    pub(crate) fn to_announce_by(&self, now: Time) -> Vec<Uuid> {
        self.starts.due_by(now)
    }

    /// Notes that the start of an agreement at an instant has been announced.
    pub(crate) fn note_announced(&mut self, agreement: &Agreement, start: Time) {
        self.starts.note_announced(agreement, start);
    }

    /// The next instant at which something is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let all = [self.due.next(), self.agenda.times.next(), self.starts.next()];
        all.into_iter().flatten().min()
    }

    /// Takes in an agreement that has got a place, or the change of one from `before`.
    pub(crate) fn note_agreement(
        &mut self,
        schedules: &Schedules,
        before: Option<&Agreement>,
        agreement: &Agreement,
    ) {
        self.note_next_deadline(schedules, agreement);
        self.agenda.note(before, agreement);
    }

    /// Begins to take in many agreements. What is due for them is known after [`Life::end_filling`].
    pub(crate) fn begin_filling(&mut self) {
        self.timetables().into_iter().for_each(Timetable::fill);
    }

    /// Finds what is due for all that were taken in.
    pub(crate) fn end_filling(&mut self) {
        self.timetables().into_iter().for_each(Timetable::order);
    }

    /// Lets go of an agreement that is over. Returns the nodes that it had.
    pub(crate) fn forget(&mut self, id: Uuid) -> Vec<u32> {
        self.due.set(id, None);
        self.fixing.set(id, None);
        self.starts.forget(id);
        self.agenda.times.set(id, None);
        self.ending.remove(&id);
        self.forget_nodes(id)
    }

    /// The agreements with lost work that may still have an old job to stop.
    pub(crate) fn stopping(&self) -> impl Iterator<Item = &Agreement> {
        self.stopping.values()
    }

    /// The agreement of this id, where it has lost work that may still have an old job to stop.
    pub(crate) fn stopping_of(&self, id: Uuid) -> Option<&Agreement> {
        self.stopping.get(&id)
    }

    /// The agreements with a running job.
    pub(crate) fn running(&self, agreements: &Agreements) -> Vec<Agreement> {
        let mut running: Vec<_> = agreements
            .processing()
            .chain(self.stopping.values())
            .cloned()
            .collect();
        running.sort_by_key(|agreement| agreement.id);
        running
    }

    /// Forgets the jobs to be stopped once their slots have been over for long, and this plan has known them for as long:
    /// nothing of them runs any more.
    pub(crate) fn give_up_stopping_lost_work(&mut self, now: Time) {
        let made = self.made;
        let is_over = |agreement: &&Agreement| agreement.placement().end.max(made) + STOPPED_AFTER <= now;
        let over: Vec<Uuid> = self
            .stopping
            .values()
            .filter(is_over)
            .map(|over| over.id)
            .collect();
        for id in over {
            self.stopping.remove(&id);
        }
    }

    /// Notes that the job of an agreement that is over has to be stopped, where anything is left of it.
    pub(crate) fn stop_lost_work_later(&mut self, agreement: Agreement) {
        self.stopping.insert(agreement.id, agreement);
    }

    /// Forgets that the job of an agreement is to be stopped: nothing is left of it. Returns whether it was to be.
    pub(crate) fn forget_lost_work(&mut self, agreement: Uuid) -> bool {
        self.stopping.remove(&agreement).is_some()
    }
}

impl TakeBack for Life {
    /// By how much slots may be made longer, and the small parts of what is unsettled.
    type Before = (Overruns, <UnsettledMoves as TakeBack>::Before);

    fn begin_try(&mut self) -> Self::Before {
        for times in self.timetables() {
            times.begin_try();
        }
        self.starts.announced.begin_try();
        self.ending.begin_try();
        self.bound.begin_try();
        self.stopping.begin_try();
        (self.overruns.clone(), self.unsettled_moves.begin_try())
    }

    fn take_back(&mut self, (overruns, unsettled): Self::Before) {
        for times in self.timetables() {
            times.take_back(());
        }
        self.starts.announced.take_back(());
        self.ending.take_back(());
        self.bound.take_back(());
        self.stopping.take_back(());
        self.unsettled_moves.take_back(unsettled);
        self.overruns = overruns;
    }
}

impl Life {
    fn timetables(&mut self) -> [&mut Timetable<Uuid>; 4] {
        let Self {
            due,
            fixing,
            agenda,
            starts,
            ..
        } = self;
        [due, fixing, &mut agenda.times, &mut starts.times]
    }
}

#[cfg(test)]
impl Life {
    /// The next instant at which there is something to do for an agreement.
    pub(crate) fn next_own_due(&self) -> Option<Time> {
        self.due.next()
    }

    /// The next instant at which time alone may decide a guarantee.
    pub(crate) fn next_assessment(&self) -> Option<Time> {
        self.agenda.times.next()
    }

    /// Whether every slot is looked at as often as it takes.
    pub(crate) fn looks_often(&self) -> bool {
        self.ending.is_empty()
    }
}
