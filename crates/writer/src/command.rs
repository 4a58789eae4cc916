//! The commands: a verb of the decider with its request, and the way to its answer.

use std::time::Instant;

use planner::{Decider, DecisionStep, Error, Result, Scope};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::batches::{DecisionRecord, DeferredAnswer};

/// The way back to the caller.
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// How far a command has come.
pub(super) enum CommandStep {
    /// It is decided; the answer waits for the batch.
    Decided(DeferredAnswer),
    /// It waits until a cluster holds the nodes of the agreement that it would make, and is decided again then.
    Waits(Uuid, Command),
}

impl CommandStep {
    /// One whose caller is told that nothing was decided.
    fn dropped() -> Self {
        Self::Decided(Box::new(|_| {}))
    }
}

/// Decides something once, and counts it.
type Decide = Box<dyn FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> CommandStep + Send + Sync>;

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
        Self::deciding(scope, move |decider, decisions| {
            answer_when_stored(reply, verb(decider, decisions))
        })
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
        Self::deciding(scope, move |decider, decisions| {
            decider.begin_waiting_command(id);
            let mut decided = match verb(decider, request) {
                Ok(DecisionStep::Done(decided)) => Ok(decided),
                Ok(DecisionStep::Wait(request)) => {
                    let again = Self::that_may_wait((id, request), again, reply, verb, count);
                    return if decider.keep_waiting(id) {
                        CommandStep::Waits(id, again)
                    } else {
                        CommandStep::dropped()
                    };
                }
                Err(why) => Err(why),
            };
            decisions.push(count(decider, &mut decided));
            answer_when_stored(reply, decided)
        })
    }

    fn deciding(
        scope: Option<Scope>,
        decide: impl FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> CommandStep + Send + Sync + 'static,
    ) -> Self {
        Self {
            scope,
            decide: Box::new(decide),
            waits_since: Instant::now(),
            is_dry: false,
            is_unbounded: false,
        }
    }

    /// This command, which waits from now on to be decided: it waited for a cluster before.
    pub(super) fn waiting_from_now(self) -> Self {
        Self {
            waits_since: Instant::now(),
            ..self
        }
    }

    /// This command, decided on a copy of the plan where that is wanted.
    pub(super) fn on_copy(self, is_dry: bool) -> Self {
        Self { is_dry, ..self }
    }

    /// This command, for an operator where that is so.
    pub(super) fn unbounded(self, is_unbounded: bool) -> Self {
        Self { is_unbounded, ..self }
    }

    /// Decides it; the answer waits for the batch, and so does the count of the decisions.
    pub(super) fn decide(
        self,
        decider: &mut Decider<'_>,
        decisions: &mut Vec<DecisionRecord>,
    ) -> CommandStep {
        let (decide, is_unbounded) = (self.decide, self.is_unbounded);
        decider.set_unbounded(is_unbounded);
        if self.is_dry {
            let decided = decider.try_out(|decider| decide(decider, &mut Vec::new()));
            return match decided {
                Ok(decided @ CommandStep::Decided(_)) => decided,
                // No cluster is asked to hold something for it.
                Ok(CommandStep::Waits(..)) | Err(_) => CommandStep::dropped(),
            };
        }
        match decide(decider, decisions) {
            CommandStep::Waits(id, again) => CommandStep::Waits(id, again.unbounded(is_unbounded)),
            decided @ CommandStep::Decided(_) => decided,
        }
    }
}

/// An answer that holds only if it is stored. A client that went away gets none.
fn answer_when_stored<T: Send + 'static>(reply: Reply<T>, decision: Result<T>) -> CommandStep {
    CommandStep::Decided(Box::new(move |stored| {
        let _ = reply.send(if stored { decision } else { Err(Error::Unavailable) });
    }))
}
