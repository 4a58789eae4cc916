//! The picture above a calendar's table: how many nodes are free, and the slots that the visitor may see, drawn over it.

use crate::negotiation::{CalendarResourceView, CalendarSlotView};
use crate::portal::days;
use crate::portal::slots::{add_box, address_of_slot, count, state_of_slot};
use crate::portal::text;

/// The width of a part of a cell, and the height of all nodes.
const PART: f64 = 8.0;
pub(super) const HEIGHT: f64 = 64.0;
/// The least height of a slot: thinner ones cannot be seen.
const SLOT_HEIGHT_MIN: f64 = 4.0;

/// The picture of a resource.
pub(super) struct Band {
    pub(super) width: f64,
    /// Where enough nodes are free, and where some are but not enough: outlines of areas.
    pub(super) enough: String,
    pub(super) few: String,
    pub(super) slots: Vec<Bar>,
}

/// A slot.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) address: String,
    pub(super) title: String,
    pub(super) outline: String,
}

impl Band {
    /// The picture of a resource for so many wanted nodes; none where there is nothing to see.
    pub(super) fn of(is: &CalendarResourceView, parts: i64, nodes: u32) -> Option<Self> {
        if is.slots.is_empty() && is.parts.iter().all(Option::is_none) {
            return None;
        }
        let (mut enough, mut few) = (String::new(), String::new());
        let told = is.parts.chunk_by(|one, other| one == other);
        let mut x = 0.0;
        for same in told {
            let width = PART * count(same.len());
            if let Some(free) = same[0].filter(|free| *free > 0) {
                let area = if free >= nodes { &mut enough } else { &mut few };
                let height = HEIGHT * f64::from(free) / f64::from(is.nodes.max(1));
                add_box(area, (x, HEIGHT - height), (width, height));
            }
            x += width;
        }
        Some(Self {
            width: x,
            enough,
            few,
            slots: is.slots.iter().map(|slot| bar(slot, is, parts)).collect(),
        })
    }
}

fn bar(slot: &CalendarSlotView, is: &CalendarResourceView, parts: i64) -> Bar {
    let cell = PART * count(usize::try_from(parts).unwrap_or(1));
    let [left, right] = [slot.start, slot.end].map(|at| cell * position(is, at));
    let scale = HEIGHT / f64::from(is.nodes.max(1));
    let mut outline = String::new();
    for (first, end) in &slot.rows {
        let height = (f64::from(end - first) * scale).max(SLOT_HEIGHT_MIN);
        let top = (HEIGHT - f64::from(*first) * scale - height).max(0.0);
        add_box(&mut outline, (left, top), ((right - left).max(1.0), height));
    }
    let zone = days::zone();
    let at = |second| days::write_second(second, &zone, "%a %-d %b %H:%M");
    let state = state_of_slot(slot.is_held, slot.has_begun);
    Bar {
        class: state,
        address: address_of_slot(slot.id, slot.is_held),
        title: format!(
            "{} of {}, {} to {}, {state}",
            text::nodes(slot.nodes),
            slot.party,
            at(slot.start),
            at(slot.end)
        ),
        outline,
    }
}

/// Where a second lies, in cells from the first one on.
fn position(is: &CalendarResourceView, at: i64) -> f64 {
    let before = is.cells.partition_point(|cell| cell.end <= at);
    let Some(cell) = is.cells.get(before) else {
        return count(is.cells.len());
    };
    let into = i32::try_from((at - cell.start).max(0)).unwrap_or(i32::MAX);
    let length = i32::try_from(cell.end - cell.start).unwrap_or(i32::MAX).max(1);
    count(before) + f64::from(into) / f64::from(length)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::negotiation::CalendarCellView;

    #[test]
    fn free_nodes_are_as_high_as_they_are_many_and_slots_lie_where_they_are() {
        let cell = |start: i64| CalendarCellView {
            start,
            end: start + 100,
            free: None,
            node_hour: None,
            is_open: true,
        };
        let slot = CalendarSlotView {
            id: Uuid::nil(),
            is_held: true,
            has_begun: false,
            party: "ann".to_owned(),
            nodes: 4,
            start: 50,
            end: 500,
            rows: vec![(0, 4)],
        };
        let mut is = CalendarResourceView {
            name: "local".to_owned(),
            nodes: 8,
            takes_new: true,
            cells: vec![cell(0), cell(100)],
            parts: vec![None, Some(8), Some(4), Some(4)],
            slots: vec![slot],
            more_slots: 0,
            next_free: Vec::new(),
        };
        let band = Band::of(&is, 2, 6).unwrap();
        assert_eq!(band.width.to_string(), "32");
        assert_eq!(
            (band.enough.as_str(), band.few.as_str()),
            ("M8.0 0.0h8.0v64.0h-8.0z", "M16.0 32.0h16.0v32.0h-16.0z")
        );
        assert_eq!(band.slots[0].outline, "M8.0 32.0h24.0v32.0h-24.0z");
        assert_eq!(band.slots[0].class, "held");
        is.slots.clear();
        is.parts = vec![None; 4];
        assert!(Band::of(&is, 2, 6).is_none());
    }
}
