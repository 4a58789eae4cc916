//! The slots of a plan: as bars on a picture, and in the list below it.

use uuid::Uuid;

use super::grid::{GridRectangle, grid_rows_in_words};
use crate::{text, zone};
use service::ChartSlotView;

/// The characters of a party's name in a picture.
pub(super) const NAME_MAX: usize = 24;

/// A slot in the list below a picture.
pub(crate) struct ListedSlot {
    pub(crate) address: String,
    pub(crate) party: String,
    pub(crate) nodes: u32,
    /// The nodes that it has.
    pub(crate) which: String,
    /// A dateTime, as the end is.
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) state: &'static str,
}

/// A slot on a picture.
pub(crate) struct SlotBar {
    pub(crate) class: &'static str,
    pub(crate) address: String,
    pub(crate) title: String,
    pub(crate) outline: String,
    /// The party's name, where there is room, with its place.
    pub(crate) name: Option<(f64, f64, String)>,
}

impl ListedSlot {
    pub(crate) fn of(slot: &ChartSlotView) -> Self {
        let which: Vec<String> = slot.rows.iter().take(4).map(grid_rows_in_words).collect();
        let more = if slot.rows.len() > which.len() {
            ", …"
        } else {
            ""
        };
        Self {
            address: address_of_slot(slot.id, slot.is_held),
            party: slot.party.clone(),
            nodes: slot.nodes,
            which: if slot.is_bound {
                which.join(", ") + more
            } else {
                "not yet known".to_owned()
            },
            start: text::date_time(slot.start),
            end: text::date_time(slot.end),
            state: state_of_slot(slot.is_held, slot.has_begun),
        }
    }
}

impl SlotBar {
    pub(super) fn of(slot: &ChartSlotView, boxes: &[GridRectangle]) -> Self {
        let party: String = slot.party.chars().take(NAME_MAX).collect();
        let state = state_of_slot(slot.is_held, slot.has_begun);
        let at = |second| zone::write_here(second, "%a %-d %b %H:%M");
        let title = format!(
            "{party}, {}, {} to {}, {state}",
            text::nodes(slot.nodes),
            at(slot.start),
            at(slot.end)
        );
        let mut outline = String::new();
        for rectangle in boxes {
            rectangle.add_to(&mut outline);
        }
        Self {
            class: state,
            address: address_of_slot(slot.id, slot.is_held),
            title,
            outline,
            name: None,
        }
    }
}

/// The page of the agreement that has a slot, or of the negotiation whose offers are held.
fn address_of_slot(id: Uuid, is_held: bool) -> String {
    let pages = if is_held { "negotiations" } else { "agreements" };
    format!("/portal/{pages}/{id}")
}

/// Where a slot stands, in a word.
fn state_of_slot(is_held: bool, has_begun: bool) -> &'static str {
    match (is_held, has_begun) {
        (true, _) => "held",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}
