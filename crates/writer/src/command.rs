//! The commands in the queue: each with how it is to be decided, and the way to its answer.

use std::time::Instant;

use planner::{
    Command, CommandOptions, CountNodes, Decider, DecisionStep, Error, ListNodes, ListPlanned, Result, Scope,
    ShowOperations, ShowPolicies, ShowStandings, ShowUsage, TakeCensus, TakePicture,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::batches::{DecisionRecord, DeferredAnswer};

/// A command that changes nothing: it is answered also where nothing is decided any more.
pub trait Question: Command {}

impl Question for CountNodes {}
impl Question for ListNodes {}
impl Question for ListPlanned {}
impl Question for ShowOperations {}
impl Question for ShowPolicies {}
impl Question for ShowStandings {}
impl Question for ShowUsage {}
impl Question for TakeCensus {}
impl Question for TakePicture {}

/// The way back to the caller.
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// How far a command has come.
pub(super) enum CommandStep {
    /// It is decided; the answer waits for the batch.
    Decided(DeferredAnswer),
    /// It waits until a cluster holds the nodes of the agreement that it would make, and is decided again then.
    Waits(Uuid, QueuedCommand),
}

/// Decides something once, and counts it.
type Decide = Box<dyn FnOnce(&mut Decider<'_>, &mut Vec<DecisionRecord>) -> CommandStep + Send + Sync>;

/// A command of any kind, and the way to its answer.
pub(super) struct QueuedCommand {
    /// Where the request is to have one effect only.
    pub(super) scope: Option<Scope>,
    decide: Decide,
    /// Since when it waits to be decided.
    pub(super) waits_since: Instant,
}

impl QueuedCommand {
    /// A command that waits from now on. It is counted, where its kind is, once it is decided; in a dry run it is not.
    pub(super) fn new<C: Command>(command: C, options: CommandOptions, reply: Reply<C::Answer>) -> Self {
        Self {
            scope: command.scope(),
            waits_since: Instant::now(),
            decide: Box::new(
                move |decider: &mut Decider<'_>, decisions: &mut Vec<DecisionRecord>| {
                    let decision = match decider.make_decision(command, &options) {
                        Ok(DecisionStep::Wait(command)) => {
                            let id = command.awaited_agreement().unwrap_or_default();
                            return CommandStep::Waits(id, Self::new(command, options, reply));
                        }
                        Ok(DecisionStep::Done(answer)) => Ok(answer),
                        Err(why) => Err(why),
                    };
                    if !options.is_dry {
                        decisions.extend(DecisionRecord::of::<C>(&decision));
                    }
                    answer_when_stored(reply, decision)
                },
            ),
        }
    }

    /// This command, which waits from now on to be decided: it waited for a cluster before.
    pub(super) fn waiting_from_now(self) -> Self {
        Self {
            waits_since: Instant::now(),
            ..self
        }
    }

    /// Decides it; the answer waits for the batch, and so does the count of the decision.
    pub(super) fn decide(
        self,
        decider: &mut Decider<'_>,
        decisions: &mut Vec<DecisionRecord>,
    ) -> CommandStep {
        (self.decide)(decider, decisions)
    }
}

/// An answer that holds only if it is stored. A client that went away gets none.
fn answer_when_stored<T: Send + 'static>(reply: Reply<T>, decision: Result<T>) -> CommandStep {
    CommandStep::Decided(Box::new(move |stored| {
        let _ = reply.send(if stored { decision } else { Err(Error::Unavailable) });
    }))
}
