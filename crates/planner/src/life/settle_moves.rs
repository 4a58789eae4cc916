//! Moves of many agreements at once. A decision that moves more than a few stores one record of all of them, so that a move costs a few
//! bytes. The rows of the agreements, their timelines and the events of their parties follow in slices: they are settled, each agreement
//! by one line for all its moves since. What changes an agreement settles it first (`docs/design/store.md`).

use std::sync::Arc;

use domain::agreement::{EventKind, MoveRecord, RecordedMove};
use domain::change::Change;
use domain::clock::time_difference_in_words;
use scheduler::{Move, Seconds, Time};
use uuid::Uuid;

use crate::decider::Decider;

/// The moves of a decision that are still stored one by one: as few cost nothing.
const FEW_MOVES: usize = 16;
/// Recorded moves that may be unsettled: each read of an agreement looks through their records, which takes a few milliseconds then.
/// Where there would be more, moves are stored one by one.
const UNSETTLED_MAX: usize = 16_384;
/// Seconds within which the start of an agreement binds soon, so that its move is stored at once. Under load one slice is settled in a
/// second: this is longer than it takes to settle all, so the event of a move comes before the start.
const SOON: Seconds = 300;

/// Has an agreement be stored where it is, if recorded moves are unsettled that have brought it there.
pub(crate) fn settle_moves(decider: &mut Decider<'_>, id: Uuid) {
    let Some((stored, why, over)) = decider.state.life.unsettled_moves_mut().take(id) else {
        return;
    };
    let Some(agreement) = decider.state.must_get(id) else {
        return;
    };
    let by = agreement.placement().start - stored.start;
    let moved = match by {
        0 => "moved and moved back".to_owned(),
        by => time_difference_in_words(by),
    };
    let event = decider.event(EventKind::Moved, format!("{moved}, {why}"));
    decider.batch.push(Change::SettleMoves {
        agreement: Box::new(agreement),
        event,
        before: stored.version,
        is_told: by != 0,
    });
    decider.batch.extend(over.map(Change::ForgetMoves));
}

/// The slots of agreements whose moves one record takes: none where the moves are few.
pub(crate) fn moves_to_record(decider: &Decider<'_>, moves: &[Move]) -> Vec<u64> {
    let unsettled = decider.state.life.unsettled_moves();
    if moves.len() <= FEW_MOVES || unsettled.recorded() + moves.len() > UNSETTLED_MAX {
        return Vec::new();
    }
    let now = decider.present_second();
    let may_record = |one_move: &&Move| {
        let state = &decider.state;
        let slot = state.placement.slot_by_number(&state.agreements, one_move.id);
        slot.is_some_and(|(agreement, _)| {
            let within = state.elsewhere.handed_within(&agreement.resource);
            let soon = now + within.max(decider.settings.announce).max(SOON);
            let near = state.elsewhere.near_until(&agreement.resource, now);
            let binds_soon = one_move.from.min(one_move.to) <= near.map_or(soon, |near| near.max(soon));
            RecordedMove::may_record(agreement) && !binds_soon
        })
    };
    let mut recorded: Vec<u64> = moves.iter().filter(may_record).map(|one| one.id).collect();
    recorded.sort_unstable();
    if recorded.len() <= FEW_MOVES {
        recorded.clear();
    }
    recorded
}

/// Stores moves as one record, with the agreements as they were before, and as they are now.
pub(crate) fn record_moves(
    decider: &mut Decider<'_>,
    moves: Vec<RecordedMove>,
    before: Vec<(Uuid, i64, Time)>,
    (why, cause): (&str, Option<Uuid>),
) {
    if moves.is_empty() {
        return;
    }
    let at = decider.now;
    let unsettled = decider.state.life.unsettled_moves_mut();
    let record = Arc::new(MoveRecord {
        number: unsettled.next_number(),
        at,
        cause,
        why: why.to_owned(),
        moves,
    });
    let superseded = unsettled.add(Arc::clone(&record), before);
    decider.batch.push(Change::RecordMoves(record));
    let superseded = superseded.into_iter().map(Change::ForgetMoves);
    decider.batch.extend(superseded);
}

#[cfg(test)]
mod tests;
