//! The rows of single changes, as a batch writes them: the content of their columns, in the order of the statement. Rows that are lines of
//! the audit trail go on by it.

use domain::agreement::{Agreement, Event, NegotiationOffer, Note, Posting};
use uuid::Uuid;

use super::sums::TableSums;
use super::trail::{StatedRows, Trail};
use crate::engine::Value;

/// The columns of [`crate::engine::bulk::INSERT_EVENTS`]: a line of an agreement's timeline, with the states that it has after the change, which
/// the trail goes on by.
pub(crate) fn agreement_event_row<'a>(
    trail: &mut Trail,
    agreement: &'a Agreement,
    event: &'a Event,
    stated: StatedRows,
) -> [Value<'a>; 11] {
    let (kind, detail) = (event.kind.word(), &*event.detail);
    let (state, service) = (agreement.state.word(), agreement.service.word());
    let words = [kind, detail, state, service];
    trail.append(agreement.id, event.at, agreement.version, words, stated);
    [
        agreement.id.into(),
        event.at.into(),
        kind.into(),
        detail.into(),
        agreement.version.into(),
        state.into(),
        service.into(),
        trail.number.into(),
        trail.hash.clone().into(),
        stated.digest.map(Uuid::from_bytes).into(),
        stated.sums.map(|sums| sums.to_string()).into(),
    ]
}

/// The columns of [`crate::engine::bulk::UPDATE_OFFERS`].
pub(crate) fn changed_offer_row(offer: &NegotiationOffer) -> [Value<'_>; 6] {
    [
        offer.id.into(),
        offer.state.word().into(),
        (&offer.refusal).into(),
        offer.held.into(),
        offer.released.into(),
        offer.agreement.into(),
    ]
}

/// The columns of [`crate::engine::bulk::INSERT_ENTRIES`] for both sides of a posting.
pub(crate) fn ledger_rows(posting: &Posting) -> [[Value<'_>; 8]; 2] {
    let micros = posting.amount.micros;
    [(&posting.from, -micros), (&posting.to, micros)].map(|(account, micros)| {
        [
            posting.id.into(),
            account.to_string().into(),
            micros.into(),
            posting.amount.currency.code().into(),
            posting.agreement.into(),
            posting.kind.word().into(),
            (&posting.detail).into(),
            posting.at.into(),
        ]
    })
}

/// The columns of [`crate::engine::bulk::INSERT_NOTES`]: a line that the trail goes on by, with the sums that it states.
pub(crate) fn note_line_row(trail: &mut Trail, note: &Note, sums: Option<TableSums>) -> [Value<'static>; 9] {
    let words = [note.kind.word(), &note.detail];
    let about = (note.subject, note.negotiation);
    trail.append_note(about, note.at, note.party.as_deref(), words, sums);
    [
        trail.number.into(),
        trail.hash.clone().into(),
        note.at.into(),
        note.kind.word().into(),
        note.subject.into(),
        note.negotiation.into(),
        note.party.clone().into(),
        note.detail.clone().into(),
        sums.map(|sums| sums.to_string()).into(),
    ]
}
