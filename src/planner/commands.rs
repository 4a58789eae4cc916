//! Maps each command to the verb of the [`Decider`] that carries it out, counts the decision, and makes its answer.

use super::decide::Decider;
use super::{Command, Error, Reply};
use crate::planner::batches::Answer;
use crate::planner::metrics::DecisionRecord;

/// Decides one command; its answer waits for the batch, and so does the count of the decisions.
pub(super) fn decide(decider: &mut Decider, command: Command, decisions: &mut Vec<DecisionRecord>) -> Answer {
    match command {
        Command::Place(proposal, reply) => {
            let (party, id) = (proposal.party.clone(), proposal.id);
            let again = |asked, reply| Command::Place(Box::new(asked), reply);
            decider.decide_or_wait(
                id,
                reply,
                |of| of.place(*proposal),
                again,
                |of, decided| {
                    of.note_refused(&party, id, decided);
                    decisions.push(DecisionRecord::of("offer", decided));
                },
            )
        }
        Command::Pend(pending, reply) => answer(reply, decider.pend(*pending)),
        Command::Settle(settlement, reply) => {
            let id = settlement.id;
            let again = |asked, reply| Command::Settle(Box::new(asked), reply);
            let settle = |of: &mut Decider| of.settle(*settlement);
            decider.decide_or_wait(id, reply, settle, again, |_, decided| {
                decisions.push(DecisionRecord::settled(decided));
            })
        }
        Command::Terminate(order, reply) => {
            let decided = decider.terminate(*order);
            decisions.push(DecisionRecord::of("termination", &decided));
            answer(reply, decided)
        }
        Command::Census(reply) => answer(reply, Ok(decider.census())),
        Command::Availability(asked, reply) => answer(reply, decider.availability(&asked)),
        Command::BeginDue(reply) => answer(reply, decider.begin_due()),
        Command::Running(reply) => answer(reply, Ok(decider.plan.running())),
        Command::KeepNodes {
            resource,
            kept,
            reply,
        } => {
            decider.keep_nodes(&resource, kept);
            answer(reply, Ok(()))
        }
        Command::SetNodes {
            resource,
            by,
            report,
            reply,
        } => answer(reply, decider.set_nodes(&resource, by, &report)),
        Command::Reserving(resource, refused, within, reply) => {
            decider.note_reserving(&resource, &refused, within);
            answer(reply, Ok(()))
        }
        Command::Open(resource, reply) => answer(reply, decider.open(&resource).ok_or(Error::NotFound)),
        Command::SayNodes(saying, reply) => answer(reply, decider.say_nodes(&saying)),
        Command::NodeCounts(reply) => answer(reply, Ok(decider.node_counts())),
        Command::Nodes(resource, reply) => answer(reply, decider.nodes(&resource)),
        Command::PlannedOn(resource, reply) => answer(reply, Ok(decider.plan.planned_on(&resource))),
        Command::Unused { id, unused, reply } => answer(reply, decider.unused(id, unused)),
        Command::Stopped(id, reply) => {
            decider.plan.has_stopped(id);
            answer(reply, Ok(()))
        }
        Command::Started { run, at, reply } => answer(reply, decider.report_started(run, at)),
        Command::Unable { run, why, reply } => answer(reply, decider.report_unable(run, why)),
        Command::Propose(proposed, reply) => answer(reply, decider.propose(*proposed)),
        Command::Initiate(initiation, reply) => {
            let about = &initiation.negotiation;
            let (party, id) = (about.party.clone(), about.id);
            let decided = decider.initiate(*initiation);
            decider.note_refused(&party, id, &decided);
            answer(reply, decided)
        }
        Command::Keep(request, kept, reply) => answer(reply, decider.keep_answer(*request, &kept)),
        Command::Quote(ask, reply) => {
            let decided = decider.quote(&ask);
            decisions.push(DecisionRecord::quoted(&decided));
            answer(reply, decided)
        }
        Command::Accept(acceptance, reply) => {
            let id = acceptance.proposal.id;
            let again = |asked, reply| Command::Accept(Box::new(asked), reply);
            decider.decide_or_wait(
                id,
                reply,
                |of| of.accept(*acceptance),
                again,
                |_, decided| {
                    decisions.push(DecisionRecord::of("acceptance", decided));
                },
            )
        }
        Command::Bargain(bargain, reply) => answer(reply, decider.bargain(*bargain)),
        Command::EndNegotiation(end, reply) => answer(reply, decider.end_negotiation(*end)),
        Command::Ended { run, end, reply } => answer(reply, decider.report_ended(run, &end)),
        #[cfg(test)]
        Command::Meddle(with, reply) => {
            with(decider.plan);
            answer(reply, Ok(()))
        }
    }
}

/// An answer that holds only if it is stored. A client that went away gets none.
pub(super) fn answer<T: Send + 'static>(reply: Reply<T>, decision: Result<T, Error>) -> Answer {
    Box::new(move |stored| {
        let _ = reply.send(if stored { decision } else { Err(Error::Unavailable) });
    })
}
