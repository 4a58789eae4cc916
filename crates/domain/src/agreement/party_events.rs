//! What a party is told of by itself: the events that matter to its programs.

use scheduler::{Interval, worded};
use uuid::Uuid;

use super::{Agreement, AgreementState, Event, EventKind, NegotiationInstance};
use crate::clock::Micros;

worded! {
    /// The kinds of these events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PartyEventKind {
        /// An offer has become an agreement.
        Accepted = "accepted",
        /// Its placement is another, also because its work is to be run again.
        Moved = "moved",
        /// Its slot begins in a while.
        Starting = "starting",
        /// Its slot has begun.
        Started = "started",
        /// It has reached a final state.
        Ended = "ended",
        /// It could not be kept.
        Broken = "broken",
        /// The provider has opened a negotiation.
        Proposed = "proposed",
    }
}

impl PartyEventKind {
    /// The kind for a line of a timeline, where its party is told of it.
    fn of(kind: EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::Accepted => Self::Accepted,
            EventKind::Moved | EventKind::Restarted => Self::Moved,
            EventKind::Begun => Self::Started,
            EventKind::Closed => Self::Ended,
            EventKind::Broken => Self::Broken,
            _ => return None,
        })
    }
}

/// An event that a party is told of. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartyEvent {
    /// The party.
    pub party: String,
    /// The number of its line in the trail: the cursor.
    pub number: i64,
    /// Its id, from the hash of that line: the same wherever it is told, and never another event's.
    pub id: String,
    /// When it happened.
    pub at: Micros,
    /// Its kind.
    pub kind: PartyEventKind,
    /// The agreement that it is about.
    pub agreement: Option<Uuid>,
    /// The negotiation that it is about.
    pub negotiation: Option<Uuid>,
    /// The state of the agreement after it.
    pub state: Option<AgreementState>,
    /// The placement of the agreement after it; of one that is to begin, its next slot.
    pub planned: Option<Interval>,
    /// The particulars, in words.
    pub detail: String,
}

impl PartyEvent {
    /// The event of a line of a timeline, where its party is told of it; `line` is its number and its hash.
    pub fn of(agreement: &Agreement, event: &Event, line: (i64, &str)) -> Option<Self> {
        let kind = PartyEventKind::of(event.kind)?;
        let planned = agreement.is_placed().then(|| agreement.placement());
        let detail = event.detail.clone();
        Some(Self::about(agreement, (kind, event.at), planned, detail, line))
    }

    /// That the next slot of an agreement begins in a while.
    pub fn of_start(agreement: &Agreement, at: Micros, detail: String, line: (i64, &str)) -> Self {
        let planned = Some(agreement.slot());
        Self::about(agreement, (PartyEventKind::Starting, at), planned, detail, line)
    }

    /// That the provider has opened a negotiation.
    pub fn of_proposal(negotiation: &NegotiationInstance, detail: String, line: (i64, &str)) -> Self {
        Self {
            party: negotiation.party.clone(),
            number: line.0,
            id: event_id_from_hash(line.1),
            at: negotiation.created,
            kind: PartyEventKind::Proposed,
            agreement: negotiation.agreement,
            negotiation: Some(negotiation.id),
            state: None,
            planned: None,
            detail,
        }
    }

    fn about(
        agreement: &Agreement,
        (kind, at): (PartyEventKind, Micros),
        planned: Option<Interval>,
        detail: String,
        (number, hash): (i64, &str),
    ) -> Self {
        Self {
            party: agreement.party.clone(),
            number,
            id: event_id_from_hash(hash),
            at,
            kind,
            agreement: Some(agreement.id),
            negotiation: None,
            state: Some(agreement.state),
            planned,
            detail,
        }
    }
}

/// 128 bits of the hash of a line.
fn event_id_from_hash(hash: &str) -> String {
    format!("evt_{}", hash.get(..32).unwrap_or(hash))
}
