//! The context of a decision: from the state and a command to the changes that are stored and the answer that is given. A decision
//! never waits or stores; the writer does.

use domain::agreement::{Agreement, Event, EventKind};
use domain::change::Change;
use domain::clock::{Micros, second_of};
use scheduler::Time;
use uuid::Uuid;

use crate::context::{Bargaining, Basis, Search, View};
use crate::error::{Error, Result};
use crate::journal::TakeBack;
use crate::options::CommandOptions;
use crate::request::RememberedAnswers;
use crate::settings::Settings;
use crate::state::State;

/// The data of a decision: the state, the present, and the changes that the batch has so far.
pub struct Decider<'a> {
    pub(super) settings: &'a Settings,
    pub(super) state: &'a mut State,
    pub(super) now: Micros,
    /// Makes an id.
    pub(super) make_id: fn() -> Uuid,
    pub(super) batch: &'a mut Vec<Change>,
    pub(super) remembered: RememberedAnswers,
    /// Other settings, for the decisions after these.
    pub(super) reconfigured: Option<Settings>,
    /// How the present command is to be decided.
    pub(super) options: CommandOptions,
}

impl<'a> Decider<'a> {
    /// Decides on a state as of `now`; `make_id` makes the ids of what is new. The changes go to the end of the batch; `remembered` has
    /// the earlier answers to the requests with idempotency keys.
    pub fn new(
        settings: &'a Settings,
        state: &'a mut State,
        now: Micros,
        make_id: fn() -> Uuid,
        batch: &'a mut Vec<Change>,
        remembered: RememberedAnswers,
    ) -> Self {
        Self {
            settings,
            state,
            now,
            make_id,
            batch,
            remembered,
            reconfigured: None,
            options: CommandOptions::default(),
        }
    }

    /// The answers to the requests with idempotency keys, the earlier ones and the ones given since, and the settings for the
    /// decisions after these, where they are others.
    pub fn finish(self) -> (RememberedAnswers, Option<Settings>) {
        (self.remembered, self.reconfigured)
    }
}

impl Decider<'_> {
    /// What can be looked at.
    pub(super) fn view(&self) -> View<'_> {
        View {
            basis: Basis {
                settings: self.settings,
                options: &self.options,
                now: self.now,
                life: &self.state.life,
                elsewhere: &self.state.elsewhere,
                placement: &self.state.placement,
                agreements: &self.state.agreements,
            },
            table: &self.state.table,
            limits: &self.state.limits,
            schedules: &self.state.schedules,
        }
    }

    /// A search for a place.
    pub(super) fn search(&mut self) -> Search<'_> {
        let all = self.bargaining();
        Search {
            basis: all.basis,
            table: all.table,
            limits: all.limits,
            schedules: all.schedules,
        }
    }

    /// What changes offers and what is held for them.
    pub(super) fn bargaining(&mut self) -> Bargaining<'_> {
        Bargaining {
            basis: Basis {
                settings: self.settings,
                options: &self.options,
                now: self.now,
                life: &self.state.life,
                elsewhere: &self.state.elsewhere,
                placement: &self.state.placement,
                agreements: &self.state.agreements,
            },
            table: &mut self.state.table,
            limits: &mut self.state.limits,
            schedules: &mut self.state.schedules,
            batch: self.batch,
        }
    }

    /// An agreement that is not over.
    pub(super) fn live_agreement(&self, id: Uuid) -> Result<Agreement> {
        self.state.agreements.get(id).cloned().ok_or(Error::NotFound)
    }

    /// The present second.
    pub(super) fn present_second(&self) -> Time {
        second_of(self.now)
    }

    /// A line of a timeline, as of now.
    pub(super) fn event(&self, kind: EventKind, detail: impl Into<String>) -> Event {
        Event {
            at: self.now,
            kind,
            detail: detail.into(),
        }
    }

    /// Decides something of which nothing is kept, without asking a cluster to hold something: the state is as it was afterwards, but for the
    /// questions that were counted. It costs what it changes.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where a fault was found in the plan.
    pub(super) fn try_out<R>(&mut self, decide: impl FnOnce(&mut Decider<'_>) -> R) -> Result<R> {
        let before = self.state.begin_try();
        self.state.elsewhere.promise_at_once();
        let mut batch = Vec::new();
        let mut tried = Decider::new(
            self.settings,
            self.state,
            self.now,
            self.make_id,
            &mut batch,
            RememberedAnswers::new(),
        );
        tried.options.clone_from(&self.options);
        let decided = decide(&mut tried);
        self.state.take_back(before);
        match self.state.why_impossible() {
            Some(_) => Err(Error::Unavailable),
            None => Ok(decided),
        }
    }
}

/// How far the decision of a command has come.
#[derive(Debug)]
pub enum DecisionStep<T, C> {
    /// It is decided.
    Done(T),
    /// It is decided again when the cluster holds the nodes; the request comes back.
    Wait(C),
}

impl<T, C> DecisionStep<T, C> {
    /// This step with the request of another command, where it has to come back.
    pub(super) fn map_request<D>(self, map: impl FnOnce(C) -> D) -> DecisionStep<T, D> {
        match self {
            Self::Done(done) => DecisionStep::Done(done),
            Self::Wait(request) => DecisionStep::Wait(map(request)),
        }
    }
}

#[cfg(test)]
impl<T, C> DecisionStep<T, C> {
    /// The decision.
    pub(super) fn done(self) -> T {
        match self {
            Self::Done(done) => done,
            Self::Wait(_) => panic!("it waits for its cluster"),
        }
    }
}
