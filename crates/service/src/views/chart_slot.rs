//! A slot that is drawn on the calendar or on its nodes.

use std::ops::Range;

use planner::{PicturedSlot, PicturedSlotOf};
use uuid::Uuid;

/// A slot that is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartSlotView {
    /// The id of its agreement, or of the negotiation whose offers are held.
    pub id: Uuid,
    /// Whether it is only held.
    pub is_held: bool,
    /// Whether it has begun.
    pub has_begun: bool,
    /// Whether it is known which nodes it has.
    pub is_bound: bool,
    /// The party that has it.
    pub party: String,
    /// How many nodes.
    pub nodes: u32,
    /// From when.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// The rows on which it is drawn, of those that are shown.
    pub rows: Vec<Range<u32>>,
}

impl ChartSlotView {
    pub(crate) fn of(slot: &PicturedSlot, rows: Vec<Range<u32>>) -> Self {
        Self {
            id: slot.of.id(),
            is_held: matches!(slot.of, PicturedSlotOf::HeldOffers(_)),
            has_begun: matches!(slot.of, PicturedSlotOf::Agreement { has_begun: true, .. }),
            is_bound: !slot.numbers.is_empty(),
            party: slot.party.clone(),
            nodes: slot.nodes,
            start: slot.interval.start.seconds(),
            end: slot.interval.end.seconds(),
            rows,
        }
    }
}
