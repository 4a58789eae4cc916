//! The context of a decision, and the commands that it decides. The decisions are its methods, each in the room of its subject: from
//! the plan and a command to the changes that are stored and the answer that is given. They never wait or store; the writer does.

use std::collections::BTreeMap;
use std::time::Instant;

use domain::agreement::{Agreement, Event, EventKind};
use domain::change::Change;
use domain::clock::{Micros, second_of};
use scheduler::Time;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::batches::{DecisionRecord, DeferredAnswer, RememberedAnswers};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::request::Scope;
use crate::settings::Settings;

/// The data of a decision: the plan, the present, and the changes that the batch has so far.
pub(super) struct Decider<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a mut Plan,
    pub(super) now: Micros,
    pub(super) batch: &'a mut Vec<Change>,
    pub(super) remembered: RememberedAnswers,
    /// The commands that wait for their clusters, by the agreements that they would make.
    pub(super) later: &'a mut BTreeMap<Uuid, Command>,
    /// Other settings, for the decisions after these.
    pub(super) reconfigured: &'a mut Option<Settings>,
    /// Whether it decides for an operator, whom no number of agreements and questions bounds.
    pub(super) is_unbounded: bool,
}

impl Decider<'_> {
    /// An agreement that is not over.
    pub(super) fn live_agreement(&self, id: Uuid) -> Result<Agreement> {
        self.plan.get(id).cloned().ok_or(Error::NotFound)
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

    /// Keeps a command that waits, to be decided again.
    fn decide_later(&mut self, id: Uuid, command: Command) {
        if let Some(waiting) = self.plan.reserving.waiting.get_mut(&id) {
            waiting.is_kept = true;
            self.later.insert(id, command);
        }
    }
}

/// The way back to the caller.
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// How far the decision of a command has come.
#[derive(Debug)]
pub(super) enum DecisionStep<T, C> {
    /// It is decided.
    Done(T),
    /// It is decided again when the cluster holds the nodes; the request comes back.
    Wait(C),
}

impl<T, C> DecisionStep<T, C> {
    /// The same with the request of another command, where it has to come back.
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

/// Decides something once, and counts it.
type Decide = Box<dyn FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> DeferredAnswer + Send + Sync>;

/// A verb of the [`Decider`] with its request, and the way to its answer.
pub(super) struct Command {
    /// Where the request is to have one effect only.
    pub(super) scope: Option<Scope>,
    decide: Decide,
    /// Since when it waits to be decided.
    pub(super) waits_since: Instant,
    /// Whether it is only asked what the decision would be.
    is_dry: bool,
    /// Whether an operator asks.
    is_unbounded: bool,
}

/// A verb that may have to wait until a cluster holds the nodes.
type Verb<C, T> = fn(&mut Decider<'_>, C) -> Result<DecisionStep<T, C>>;

impl Command {
    /// One that is decided at once, with the count of the decision where it is counted.
    pub(super) fn new<T: Send + 'static>(
        scope: Option<Scope>,
        reply: Reply<T>,
        verb: impl FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            scope,
            decide: Box::new(|decider, decisions| answer_when_stored(reply, verb(decider, decisions))),
            waits_since: Instant::now(),
            is_dry: false,
            is_unbounded: false,
        }
    }

    /// One about an agreement that may have to wait for a cluster, and is decided again then. It is counted, and noted for its
    /// party, only once it is decided.
    pub(super) fn that_may_wait<T: Send + 'static, C: Send + Sync + 'static>(
        (id, request): (Uuid, C),
        scope: Option<Scope>,
        reply: Reply<T>,
        verb: Verb<C, T>,
        count: impl FnOnce(&mut Decider<'_>, &mut Result<T>) -> DecisionRecord + Send + Sync + 'static,
    ) -> Self {
        let again = scope.clone();
        let decide =
            move |decider: &mut Decider<'_>, decisions: &mut Vec<DecisionRecord>| -> DeferredAnswer {
                decider.begin_waiting_command(id);
                let mut decided = match verb(decider, request) {
                    Ok(DecisionStep::Done(decided)) => Ok(decided),
                    Ok(DecisionStep::Wait(request)) => {
                        let again = Self::that_may_wait((id, request), again, reply, verb, count);
                        let again = again.unbounded(decider.is_unbounded);
                        decider.decide_later(id, again);
                        return Box::new(|_| {});
                    }
                    Err(why) => Err(why),
                };
                decisions.push(count(decider, &mut decided));
                answer_when_stored(reply, decided)
            };
        Self {
            scope,
            decide: Box::new(decide),
            waits_since: Instant::now(),
            is_dry: false,
            is_unbounded: false,
        }
    }

    /// The same, which waits from now on to be decided: it waited for a cluster before.
    pub(super) fn waiting_from_now(self) -> Self {
        Self {
            waits_since: Instant::now(),
            ..self
        }
    }

    /// The same, decided on a copy of the plan where that is wanted.
    pub(super) fn on_copy(self, is_dry: bool) -> Self {
        Self { is_dry, ..self }
    }

    /// The same, for an operator where that is so.
    pub(super) fn unbounded(self, is_unbounded: bool) -> Self {
        Self { is_unbounded, ..self }
    }

    /// Decides it; the answer waits for the batch, and so does the count of the decisions.
    pub(super) fn decide(
        self,
        decider: &mut Decider<'_>,
        decisions: &mut Vec<DecisionRecord>,
    ) -> DeferredAnswer {
        decider.is_unbounded = self.is_unbounded;
        if !self.is_dry {
            return (self.decide)(decider, decisions);
        }
        let decided = decider.decide_on_copy_of_plan(|decider| {
            // No cluster is asked to hold something for it.
            decider.plan.reserving.within.clear();
            let decided = (self.decide)(decider, &mut Vec::new());
            Ok((decided, decider.plan.table.probes.clone()))
        });
        match decided {
            // A question tells something about other parties, also where it asks for nothing.
            Ok((decided, probes)) => {
                decider.plan.table.probes = probes;
                decided
            }
            Err(_) => Box::new(|_| {}),
        }
    }
}

/// An answer that holds only if it is stored. A client that went away gets none.
fn answer_when_stored<T: Send + 'static>(reply: Reply<T>, decision: Result<T>) -> DeferredAnswer {
    Box::new(move |stored| {
        let _ = reply.send(if stored { decision } else { Err(Error::Unavailable) });
    })
}
