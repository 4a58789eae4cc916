//! Plans as pictures: the calendar, the plan on nodes and the picture of a reservation are drawn here, on one axis of time and from one
//! kind of boxes and slots. The pages choose what is shown.

pub(super) mod band;
pub(super) mod nodes;
pub(super) mod spans;

use std::fmt::Write;
use std::ops::Range;

use uuid::Uuid;

use super::{days, text};
use crate::service::ChartSlotView;

/// The characters of a party's name in a picture.
const NAME_MAX: usize = 24;

/// The way from a picture to those of other times.
pub(super) struct Paging {
    /// The time that is shown, in words.
    pub(super) title: String,
    pub(super) previous: String,
    /// Where the present is shown, and the word for it.
    pub(super) present: (&'static str, String),
    pub(super) next: Option<String>,
    /// Other lengths of time.
    pub(super) lengths: Vec<Link>,
}

/// A link to the picture of another length of time.
pub(super) struct Link {
    pub(super) word: String,
    pub(super) address: String,
    pub(super) is_here: bool,
}

/// A slot in the list below a picture.
pub(super) struct ListedSlot {
    pub(super) address: String,
    pub(super) party: String,
    pub(super) nodes: u32,
    /// The nodes that it has.
    pub(super) which: String,
    /// A dateTime, as the end is.
    pub(super) start: String,
    pub(super) end: String,
    pub(super) state: &'static str,
}

/// A slot on a picture.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) address: String,
    pub(super) title: String,
    pub(super) outline: String,
    /// The party's name, where there is room, with its place.
    pub(super) name: Option<(f64, f64, String)>,
}

/// An axis of time: stretches of time that follow each other, each on the same part of a width.
struct Axis {
    /// The first second of each, and the one after its last.
    stretches: Vec<(i64, i64)>,
    left: f64,
    width: f64,
}

/// An axis of time with rows below each other, or above each other where the height of a row is negative.
struct Grid {
    axis: Axis,
    /// The number of the first row, and the place where it begins.
    first: (u32, f64),
    row: f64,
}

/// A rectangle: its left upper corner, and its size.
#[derive(Clone, Copy)]
struct Rectangle {
    at: (f64, f64),
    size: (f64, f64),
}

impl ListedSlot {
    pub(super) fn of(slot: &ChartSlotView) -> Self {
        let which: Vec<String> = slot.rows.iter().take(4).map(words_of_rows).collect();
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

impl Bar {
    fn of(slot: &ChartSlotView, boxes: &[Rectangle]) -> Self {
        let party: String = slot.party.chars().take(NAME_MAX).collect();
        let state = state_of_slot(slot.is_held, slot.has_begun);
        let at = |second| days::write_here(second, "%a %-d %b %H:%M");
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

impl Axis {
    /// The place of a second; an end of the axis for a second beyond it.
    fn place(&self, at: i64) -> f64 {
        let before = self.stretches.partition_point(|(_, end)| *end <= at);
        let into = self.stretches.get(before).map_or(0.0, |(start, end)| {
            seconds(at.max(*start) - start) / seconds((end - start).max(1))
        });
        self.left + self.width * (count(before) + into) / count(self.stretches.len().max(1))
    }
}

impl Grid {
    /// The place of rows for a time. It has at least a width and a height, so that it is seen.
    fn rectangle(&self, (start, end): (i64, i64), rows: &Range<u32>, least: (f64, f64)) -> Rectangle {
        let (left, right) = (self.axis.place(start), self.axis.place(end));
        let (first, at) = self.first;
        let edge = at + self.row * f64::from(rows.start - first);
        let height = (self.row.abs() * f64::from(rows.end - rows.start)).max(least.1);
        let top = if self.row < 0.0 {
            (edge - height).max(0.0)
        } else {
            edge
        };
        Rectangle {
            at: (left, top),
            size: ((right - left).max(least.0), height),
        }
    }
}

impl Rectangle {
    fn area(&self) -> f64 {
        self.size.0 * self.size.1
    }

    /// Adds the rectangle to an outline.
    fn add_to(&self, outline: &mut String) {
        let (x, y) = self.at;
        let (width, height) = self.size;
        // Writing to a text does not fail.
        let _ = write!(outline, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
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

/// Rows in words: `3`, `3–7`.
fn words_of_rows(rows: &Range<u32>) -> String {
    match rows.end.saturating_sub(1) {
        last if last == rows.start => last.to_string(),
        last => format!("{}–{last}", rows.start),
    }
}

/// A number that is drawn.
fn count(many: usize) -> f64 {
    f64::from(u32::try_from(many).unwrap_or(u32::MAX))
}

/// A length of time that is drawn.
#[expect(
    clippy::cast_precision_loss,
    reason = "a picture is no more exact than a pixel"
)]
fn seconds(length: i64) -> f64 {
    length as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lies_in_its_stretch_and_one_beyond_the_axis_at_its_end() {
        let axis = Axis {
            stretches: vec![(0, 100), (100, 150)],
            left: 10.0,
            width: 80.0,
        };
        let places = [-5, 0, 50, 100, 125, 150, i64::MAX].map(|at| axis.place(at).to_string());
        assert_eq!(places, ["10", "10", "30", "50", "70", "90", "90"]);
    }
}
