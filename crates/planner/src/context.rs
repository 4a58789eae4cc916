//! What a decision may look at and change: a [`View`] looks, a [`Search`] changes the schedules in trials, a [`Bargaining`] changes offers and
//! what is held for them, and a [`Decider`](crate::decider::Decider) changes agreements and everything else.

use std::ops::Deref;

use domain::agreement::{Event, EventKind};
use domain::change::Change;
use domain::clock::{Micros, second_of};
use scheduler::Time;

use crate::agreements::Agreements;
use crate::elsewhere::waiting_commands::WaitingCommands;
use crate::life::Life;
use crate::limits::Limits;
use crate::options::CommandOptions;
use crate::placement::places::Places;
use crate::schedules::Schedules;
use crate::settings::Settings;
use crate::table::Table;

/// What a decision goes by: no context changes any of it.
#[derive(Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) options: &'a CommandOptions,
    pub(crate) now: Micros,
    pub(crate) life: &'a Life,
    pub(crate) elsewhere: &'a WaitingCommands,
    pub(crate) placement: &'a Places,
    pub(crate) agreements: &'a Agreements,
}

impl Basis<'_> {
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

/// What can be looked at for a decision.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) basis: Basis<'a>,
    pub(crate) table: &'a Table,
    pub(crate) limits: &'a Limits,
    pub(crate) schedules: &'a Schedules,
}

impl<'a> Deref for View<'a> {
    type Target = Basis<'a>;

    fn deref(&self) -> &Basis<'a> {
        &self.basis
    }
}

/// A search for a place: it looks at everything, changes the schedules in trials, and counts what is asked.
pub(crate) struct Search<'a> {
    pub(crate) basis: Basis<'a>,
    pub(crate) table: &'a Table,
    pub(crate) limits: &'a mut Limits,
    pub(crate) schedules: &'a mut Schedules,
}

impl<'a> Deref for Search<'a> {
    type Target = Basis<'a>;

    fn deref(&self) -> &Basis<'a> {
        &self.basis
    }
}

impl Search<'_> {
    /// What the search looks at.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            basis: self.basis,
            table: self.table,
            limits: self.limits,
            schedules: self.schedules,
        }
    }
}

/// What changes offers and what is held for them, and no agreement.
pub(crate) struct Bargaining<'a> {
    pub(crate) basis: Basis<'a>,
    pub(crate) table: &'a mut Table,
    pub(crate) limits: &'a mut Limits,
    pub(crate) schedules: &'a mut Schedules,
    pub(crate) batch: &'a mut Vec<Change>,
}

impl<'a> Deref for Bargaining<'a> {
    type Target = Basis<'a>;

    fn deref(&self) -> &Basis<'a> {
        &self.basis
    }
}

impl Bargaining<'_> {
    /// What can be looked at.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            basis: self.basis,
            table: self.table,
            limits: self.limits,
            schedules: self.schedules,
        }
    }

    /// A search for a place.
    pub(crate) fn search(&mut self) -> Search<'_> {
        Search {
            basis: self.basis,
            table: self.table,
            limits: self.limits,
            schedules: self.schedules,
        }
    }
}
