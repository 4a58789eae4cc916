//! The grid of a picture: an axis of time, the rows beside it, and the rectangles on both.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::Range;

/// An axis of time: stretches of time that follow each other, each on the same part of a width.
pub(super) struct GridAxis {
    /// The first second of each, and the one after its last.
    pub(super) stretches: Vec<(i64, i64)>,
    pub(super) left: f64,
    pub(super) width: f64,
}

/// An axis of time with rows below each other, or above each other where the height of a row is negative.
pub(super) struct Grid {
    pub(super) axis: GridAxis,
    /// The number of the first row, and the place where it begins.
    pub(super) first: (u32, f64),
    pub(super) row: f64,
}

/// A rectangle: its left upper corner, and its size.
#[derive(Clone, Copy)]
pub(super) struct GridRectangle {
    pub(super) at: (f64, f64),
    pub(super) size: (f64, f64),
}

impl GridAxis {
    /// The place of a second; an end of the axis for a second beyond it.
    pub(super) fn place(&self, at: i64) -> f64 {
        let before = self.stretches.partition_point(|(_, end)| *end <= at);
        let into = self.stretches.get(before).map_or(0.0, |(start, end)| {
            seconds(at.max(*start) - start) / seconds((end - start).max(1))
        });
        self.left + self.width * (count(before) + into) / count(self.stretches.len().max(1))
    }
}

impl Grid {
    /// The place of rows for a time. It has at least a width and a height, so that it is seen.
    pub(super) fn rectangle(
        &self,
        (start, end): (i64, i64),
        rows: &Range<u32>,
        least: (f64, f64),
    ) -> GridRectangle {
        let (left, right) = (self.axis.place(start), self.axis.place(end));
        let (first, at) = self.first;
        let edge = at + self.row * f64::from(rows.start - first);
        let height = (self.row.abs() * f64::from(rows.end - rows.start)).max(least.1);
        let top = if self.row < 0.0 {
            (edge - height).max(0.0)
        } else {
            edge
        };
        GridRectangle {
            at: (left, top),
            size: ((right - left).max(least.0), height),
        }
    }
}

impl GridRectangle {
    pub(super) fn area(&self) -> f64 {
        self.size.0 * self.size.1
    }

    /// Adds the rectangle to an outline.
    pub(super) fn add_to(&self, outline: &mut String) {
        let (x, y) = (Tenths::of(self.at.0), Tenths::of(self.at.1));
        let (width, height) = (Tenths::of(self.size.0), Tenths::of(self.size.1));
        // Writing to a text does not fail.
        let _ = write!(outline, "M{x} {y}h{width}v{height}h-{width}z");
    }
}

/// A place or a length in tenths, which are written several times as fast as a fraction is rounded.
#[derive(Clone, Copy)]
struct Tenths(u32);

impl Tenths {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places on a picture are small and not negative"
    )]
    fn of(length: f64) -> Self {
        Self((length * 10.0).round() as u32)
    }
}

impl Display for Tenths {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// Rows in words: `3`, `3–7`.
pub(super) fn grid_rows_in_words(rows: &Range<u32>) -> String {
    match rows.end.saturating_sub(1) {
        last if last == rows.start => last.to_string(),
        last => format!("{}–{last}", rows.start),
    }
}

/// A number that is drawn.
pub(super) fn count(many: usize) -> f64 {
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
        let axis = GridAxis {
            stretches: vec![(0, 100), (100, 150)],
            left: 10.0,
            width: 80.0,
        };
        let places = [-5, 0, 50, 100, 125, 150, i64::MAX].map(|at| axis.place(at).to_string());
        assert_eq!(places, ["10", "10", "30", "50", "70", "90", "90"]);
    }
}
