//! The picture above a calendar's table: how many nodes are free, and the slots that the visitor may see, drawn over it.

use super::grid::{Grid, GridAxis, GridRectangle, count};
use super::slots::SlotBar;
use service::CalendarResourceView;

/// The width of a part of a cell, and the height of all nodes.
const PART: f64 = 8.0;
const HEIGHT: f64 = 64.0;
/// The least size of a slot: smaller ones cannot be seen.
const SLOT_LEAST: (f64, f64) = (1.0, 4.0);

/// The picture of a resource.
pub(crate) struct Band {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Where enough nodes are free, and where some are but not enough: outlines of areas.
    pub(crate) enough: String,
    pub(crate) few: String,
    pub(crate) slots: Vec<SlotBar>,
}

impl Band {
    /// The picture of a resource for so many wanted nodes; none where there is nothing to see.
    pub(crate) fn of(is: &CalendarResourceView, nodes: u32) -> Option<Self> {
        if is.slots.is_empty() && is.parts.iter().all(Option::is_none) {
            return None;
        }
        let node = HEIGHT / f64::from(is.nodes.max(1));
        let (mut enough, mut few) = (String::new(), String::new());
        let told = is.parts.chunk_by(|one, other| one == other);
        let mut x = 0.0;
        for same in told {
            let width = PART * count(same.len());
            if let Some(free) = same[0].filter(|free| *free > 0) {
                let area = if free >= nodes { &mut enough } else { &mut few };
                let height = node * f64::from(free);
                let free = GridRectangle {
                    at: (x, HEIGHT - height),
                    size: (width, height),
                };
                free.add_to(area);
            }
            x += width;
        }
        let grid = Grid {
            axis: GridAxis {
                stretches: is.cells.iter().map(|cell| (cell.start, cell.end)).collect(),
                left: 0.0,
                width: x,
            },
            first: (0, HEIGHT),
            row: -node,
        };
        let slots = is.slots.iter().map(|slot| {
            let time = (slot.start, slot.end);
            let boxes = slot
                .rows
                .iter()
                .map(|rows| grid.rectangle(time, rows, SLOT_LEAST));
            SlotBar::of(slot, &boxes.collect::<Vec<_>>())
        });
        Some(Self {
            width: x,
            height: HEIGHT,
            enough,
            few,
            slots: slots.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use service::{CalendarCellView, ChartSlotView};

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "most slots have one range of rows"
    )]
    fn free_nodes_are_as_high_as_they_are_many_and_slots_lie_where_they_are() {
        let cell = |start: i64| CalendarCellView {
            start,
            end: start + 100,
            free: None,
            node_hour: None,
            is_open: true,
        };
        let slot = ChartSlotView {
            id: Uuid::nil(),
            is_held: true,
            has_begun: false,
            is_bound: false,
            party: "ann".to_owned(),
            nodes: 4,
            start: 50,
            end: 500,
            rows: vec![0..4],
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
        let band = Band::of(&is, 6).unwrap();
        assert_eq!(band.width.to_string(), "32");
        assert_eq!(
            (band.enough.as_str(), band.few.as_str()),
            ("M8.0 0.0h8.0v64.0h-8.0z", "M16.0 32.0h16.0v32.0h-16.0z")
        );
        assert_eq!(band.slots[0].outline, "M8.0 32.0h24.0v32.0h-24.0z");
        assert_eq!(band.slots[0].class, "held");
        is.slots.clear();
        is.parts = vec![None; 4];
        assert!(Band::of(&is, 6).is_none());
    }
}
