//! What a decision may look at and change: a [`View`] looks, a [`Search`] changes the schedules in trials, a [`Bargaining`] changes offers and
//! what is held for them, and a [`Decider`](crate::decider::Decider) changes agreements and everything else.

use domain::agreement::{Event, EventKind};
use domain::change::Change;
use domain::clock::{Micros, second_of};
use scheduler::Time;

use crate::agreements::Agreements;
use crate::elsewhere::waiting_commands::WaitingCommands;
use crate::life::Life;
use crate::limits::Limits;
use crate::options::CommandOptions;
use crate::placement::Places;
use crate::schedules::Schedules;
use crate::settings::Settings;
use crate::table::Table;

/// What can be looked at for a decision.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) options: &'a CommandOptions,
    pub(crate) now: Micros,
    pub(crate) life: &'a Life,
    pub(crate) table: &'a Table,
    pub(crate) elsewhere: &'a WaitingCommands,
    pub(crate) placement: &'a Places,
    pub(crate) limits: &'a Limits,
    pub(crate) agreements: &'a Agreements,
    pub(crate) schedules: &'a Schedules,
}

impl View<'_> {
    /// The present second.
    pub(crate) fn present_second(&self) -> Time {
        second_of(self.now)
    }

    /// A line of a timeline, as of now.
    pub(crate) fn event(&self, kind: EventKind, detail: impl Into<String>) -> Event {
        Event {
            at: self.now,
            kind,
            detail: detail.into(),
        }
    }
}

/// A search for a place: it looks at everything, changes the schedules in trials, and counts what is asked.
pub(crate) struct Search<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) options: &'a CommandOptions,
    pub(crate) now: Micros,
    pub(crate) life: &'a Life,
    pub(crate) table: &'a Table,
    pub(crate) elsewhere: &'a WaitingCommands,
    pub(crate) placement: &'a Places,
    pub(crate) agreements: &'a Agreements,
    pub(crate) limits: &'a mut Limits,
    pub(crate) schedules: &'a mut Schedules,
}

impl Search<'_> {
    /// What the search looks at.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            settings: self.settings,
            options: self.options,
            now: self.now,
            life: self.life,
            table: self.table,
            elsewhere: self.elsewhere,
            placement: self.placement,
            limits: self.limits,
            agreements: self.agreements,
            schedules: self.schedules,
        }
    }

    /// The present second.
    pub(crate) fn present_second(&self) -> Time {
        second_of(self.now)
    }
}

/// What changes offers and what is held for them, and no agreement.
pub(crate) struct Bargaining<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) options: &'a CommandOptions,
    pub(crate) now: Micros,
    pub(crate) life: &'a Life,
    pub(crate) elsewhere: &'a WaitingCommands,
    pub(crate) placement: &'a Places,
    pub(crate) agreements: &'a Agreements,
    pub(crate) limits: &'a mut Limits,
    pub(crate) table: &'a mut Table,
    pub(crate) schedules: &'a mut Schedules,
    pub(crate) batch: &'a mut Vec<Change>,
}

impl Bargaining<'_> {
    /// What can be looked at.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            settings: self.settings,
            options: self.options,
            now: self.now,
            life: self.life,
            table: self.table,
            elsewhere: self.elsewhere,
            placement: self.placement,
            limits: self.limits,
            agreements: self.agreements,
            schedules: self.schedules,
        }
    }

    /// A search for a place.
    pub(crate) fn search(&mut self) -> Search<'_> {
        Search {
            settings: self.settings,
            options: self.options,
            now: self.now,
            life: self.life,
            table: self.table,
            elsewhere: self.elsewhere,
            placement: self.placement,
            agreements: self.agreements,
            limits: self.limits,
            schedules: self.schedules,
        }
    }

    /// The present second.
    pub(crate) fn present_second(&self) -> Time {
        second_of(self.now)
    }
}
