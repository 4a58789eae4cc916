//! What a planner decides and answers, in lines of words of its own, so that other names in the code leave it as it is.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use domain::agreement::{
    Agreement, AtPeer, Event, Guarantee, NegotiationOffer, OfferTerms, RunOutcome, Slot,
};
use domain::change::Change;
use domain::resources::Repaired;
use uuid::Uuid;

use super::digests::numbered;
use crate::{Error, Quote, Refusal, Weights, rank_best_candidates};

/// The lines, with numbers for ids, in the order in which they are named.
#[derive(Default)]
pub(crate) struct Trace {
    text: String,
    numbers: BTreeMap<Uuid, usize>,
}

impl Trace {
    /// All lines.
    pub(super) fn text(self) -> String {
        self.text
    }

    /// One more line.
    pub(super) fn line(&mut self, line: &str) {
        let line = numbered(line, &mut self.numbers);
        let _ = writeln!(self.text, "{line}");
    }

    /// The changes of a batch that bind somebody.
    pub(crate) fn note_changes(&mut self, batch: &[Change]) {
        for change in batch {
            self.note_change(change);
        }
    }

    fn note_change(&mut self, change: &Change) {
        let line = match change {
            Change::CreateAgreement {
                agreement, events, ..
            } => return self.note_agreement("new", agreement, events),
            Change::UpdateAgreement { agreement, events } => {
                return self.note_agreement("changed", agreement, events);
            }
            Change::RecordMoves(record) => {
                for one_move in &record.moves {
                    self.line(&format!(
                        "recorded move of {} to {}",
                        one_move.agreement,
                        one_move.start.seconds()
                    ));
                }
                return;
            }
            Change::SettleMoves { agreement, event, .. } => {
                return self.note_agreement("settled", agreement, std::slice::from_ref(event));
            }
            Change::BindNodes {
                agreement,
                resource,
                nodes,
                interval,
            } => format!("bind {agreement} {resource} {nodes:?} {interval}"),
            Change::HandOverNodes { from, to, now, end } => {
                format!("hand over {from} to {to} from {now} to {end}")
            }
            Change::ReleaseNodes { agreement, end } => format!("release {agreement} at {end}"),
            Change::Post(posting) => format!(
                "post {} {} from {} to {}: {} ({})",
                posting.agreement, posting.kind, posting.from, posting.to, posting.amount, posting.detail
            ),
            Change::CreateOffer { offer, .. } => format!("new offer {}", offer_in_words(offer)),
            Change::UpdateOffer(offer) => format!("changed offer {}", offer_in_words(offer)),
            Change::CreateNegotiation { negotiation, .. } => format!(
                "negotiation {} of {} about {} until {}",
                negotiation.id,
                negotiation.party,
                or_none(negotiation.agreement),
                negotiation.expires
            ),
            Change::EndNegotiation { negotiation, at } => format!("end of negotiation {negotiation} at {at}"),
            Change::Supersede { old, new } => format!("{new} supersedes {old}"),
            Change::PutAtPeer(row) => format!("at peer {}", at_peer_in_words(row)),
            Change::AnnounceStart { agreement, at } => format!("announce {} at {at}", agreement.id),
            Change::Note(note) => format!("note {} {}: {}", note.kind.word(), note.subject, note.detail),
            Change::PutResource(row) => format!(
                "resource {} of {} with {} nodes at rate {}",
                row.name, row.kind, row.capacity, row.rate
            ),
            Change::SetCapacity { resource, steps } => format!("capacity of {resource}: {steps:?}"),
            Change::SetNode(row) => format!(
                "node {} of {} is {} since {}, says {}",
                row.node, row.resource, row.state, row.since, row.reporter
            ),
            Change::ForgetNode {
                resource,
                node,
                reporter,
            } => format!("node {node} of {resource} is up, says {reporter}"),
            Change::RecordExecution(execution) => {
                format!("execution of {} on {}", execution.agreement, execution.resource)
            }
            other => format!("{other:?}"),
        };
        self.line(&format!("  {line}"));
    }

    fn note_agreement(&mut self, what: &str, agreement: &Agreement, events: &[Event]) {
        self.line(&format!("  {what} {}", agreement_in_words(agreement)));
        for event in events {
            self.line(&format!(
                "    {} {}: {}",
                event.at,
                event.kind.word(),
                event.detail
            ));
        }
    }
}

fn or_none(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn slots_in_words(slots: &[Slot]) -> String {
    let one = |slot: &Slot| {
        let (started, ended) = (or_none(slot.started), or_none(slot.ended));
        format!("{}x{} {started} {ended}", slot.nodes, slot.placement)
    };
    slots.iter().map(one).collect::<Vec<_>>().join(" + ")
}

fn guarantee_in_words(guarantee: &Guarantee) -> String {
    let values = &guarantee.values;
    let both = values.penalties.iter().chain(&values.rewards);
    let paid: Vec<i64> = both.map(|compensation| compensation.paid).collect();
    format!("{} {} {paid:?}", guarantee.name, guarantee.state)
}

/// An agreement as it binds its sides.
pub(super) fn agreement_in_words(agreement: &Agreement) -> String {
    let guarantees: Vec<String> = agreement.guarantees.iter().map(guarantee_in_words).collect();
    format!(
        "{} v{} of {} on {}: {} {}, {} s in {}, slots {}, fixed {}, price {}, room {:?}, runs before {}, outcome {}, {}",
        agreement.id,
        agreement.version,
        agreement.party,
        agreement.resource,
        agreement.state,
        agreement.service,
        agreement.duration,
        agreement.window(),
        slots_in_words(&agreement.slots),
        agreement.fixed,
        or_none(agreement.price),
        agreement.constraints.room,
        agreement.restarts(),
        or_none(agreement.outcome.map(RunOutcome::word)),
        guarantees.join(", ")
    )
}

fn terms_in_words(terms: &OfferTerms) -> String {
    format!(
        "{} on {}, slots {}, window {}, kept until {}, deviation {}, price {}, difference {}, fee {} ({})",
        terms.kind,
        terms.resource,
        slots_in_words(&terms.slots),
        terms.window(),
        terms.kept_until,
        terms.deviation,
        or_none(terms.price),
        or_none(terms.difference),
        or_none(terms.fee),
        or_none(terms.fee_why.as_deref())
    )
}

/// An offer as it stands.
pub(super) fn offer_in_words(offer: &NegotiationOffer) -> String {
    format!(
        "{} in {} to {} of {}: {}, expires {}, held {}, released {}, agreement {}, refusal {}, {}",
        offer.id,
        offer.negotiation,
        or_none(offer.parent),
        offer.creator,
        offer.state,
        or_none(offer.expires),
        or_none(offer.held),
        or_none(offer.released),
        or_none(offer.agreement),
        or_none(offer.refusal.as_deref()),
        offer
            .terms
            .as_ref()
            .map_or_else(|| "no terms".to_owned(), terms_in_words)
    )
}

fn at_peer_in_words(row: &AtPeer) -> String {
    format!(
        "{} carries out {}: {}, charged {}, paid back {}, lost {}, settled {}",
        row.peer,
        row.agreement,
        row.state,
        row.charged,
        row.paid_back,
        row.lost,
        or_none(row.settled)
    )
}

/// The best that could be offered, or why nothing can be.
pub(super) fn quote_in_words(quote: &Quote) -> String {
    let best = rank_best_candidates(&quote.candidates, Weights::default());
    let offered = best
        .iter()
        .map(|candidate| format!("{} until {}", terms_in_words(&candidate.terms), candidate.expires));
    let refused = quote.refusal.iter().map(refusal_in_words);
    offered.chain(refused).collect::<Vec<_>>().join("; ")
}

/// What followed from a change of nodes or resources.
pub(super) fn repaired_in_words(repaired: &Repaired) -> String {
    let penalties: Vec<String> = repaired.penalties.iter().map(ToString::to_string).collect();
    format!(
        "effects {} lost, {} moved, {} broken, {} withdrawn, penalties {penalties:?}",
        repaired.lost, repaired.moved, repaired.broken, repaired.withdrawn
    )
}

fn refusal_in_words(refusal: &Refusal) -> String {
    let other = refusal.alternatives.iter();
    let other: Vec<String> = other
        .map(|alternative| format!("{} on {}", alternative.slot, or_none(alternative.nodes)))
        .collect();
    format!(
        "refused: {refusal}; cut short {}, instead {other:?} or {:?}, budget {}",
        refusal.cut_short,
        refusal.relaxations,
        or_none(refusal.lowest_budget)
    )
}

/// Why something was not done.
pub(super) fn error_in_words(error: &Error) -> String {
    match error {
        Error::Refused(refusal) => refusal_in_words(refusal),
        other => format!("not done: {other}"),
    }
}
