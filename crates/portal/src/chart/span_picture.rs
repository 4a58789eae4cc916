//! The picture of times on one axis, a row for each kind. Positions are parts of the width, so that texts keep their size on every
//! screen.

use super::grid::GridAxis;
use crate::zone;

/// Pixels of a row with its label.
const ROW: u32 = 36;
/// Pixels of the axis.
const AXIS: u32 = 22;
/// The width of the picture, in percent.
const WIDTH: f64 = 100.0;
/// The least width of a bar, so that a short slot in a long window is seen.
const BAR_LEAST: f64 = 0.6;

/// A picture of times.
pub(crate) struct SpanPicture {
    /// What it shows, in words.
    pub(crate) title: String,
    pub(crate) rows: Vec<SpanRow>,
    pub(crate) ticks: Vec<Tick>,
    /// Where the present is, if it is in the picture.
    pub(crate) now: Option<String>,
    /// Pixels.
    pub(crate) height: u32,
    /// Whether rows have labels and there is an axis.
    pub(crate) is_large: bool,
}

/// Times of one kind.
pub(crate) struct SpanRow {
    pub(crate) label: String,
    pub(crate) class: &'static str,
    /// Pixels from above, of the label and of the bars.
    pub(crate) label_y: u32,
    pub(crate) y: u32,
    pub(crate) bars: Vec<SpanBar>,
}

/// A time.
pub(crate) struct SpanBar {
    pub(crate) x: String,
    pub(crate) width: String,
}

/// A time on the axis.
pub(crate) struct Tick {
    pub(crate) x: String,
    pub(crate) anchor: &'static str,
    pub(crate) label: String,
}

/// A time in seconds since the epoch.
pub(crate) type Span = (i64, i64);

/// Times of one kind: the label, the class and the times.
type Kind = (String, &'static str, Vec<Span>);

impl SpanPicture {
    /// Draws times of several kinds; none where there is no time.
    pub(crate) fn of(rows: &[Kind], title: String, now: i64, is_large: bool) -> Option<Self> {
        let spans = || rows.iter().flat_map(|(_, _, spans)| spans);
        let first = spans().map(|span| span.0).min()?;
        let last = spans().map(|span| span.1).max()?;
        let axis = GridAxis {
            stretches: vec![(first, last.max(first + 1))],
            left: 0.0,
            width: WIDTH,
        };
        let filled = rows.iter().filter(|(_, _, spans)| !spans.is_empty());
        let rows: Vec<SpanRow> = (0..)
            .zip(filled)
            .map(|(index, (label, class, spans))| SpanRow {
                label: label.clone(),
                class,
                label_y: index * ROW + 13,
                y: if is_large { index * ROW + 18 } else { 1 },
                bars: spans.iter().map(|span| span_bar(&axis, *span)).collect(),
            })
            .collect();
        let count = u32::try_from(rows.len()).unwrap_or(0);
        Some(Self {
            title,
            height: if is_large { count * ROW + AXIS } else { 12 },
            rows,
            ticks: if is_large {
                span_ticks((first, last))
            } else {
                Vec::new()
            },
            now: (first..=last).contains(&now).then(|| percent(axis.place(now))),
            is_large,
        })
    }
}

fn span_bar(axis: &GridAxis, (start, end): Span) -> SpanBar {
    let (from, to) = (axis.place(start), axis.place(end));
    let width = (to - from).max(BAR_LEAST);
    SpanBar {
        x: percent(from.min(WIDTH - width)),
        width: percent(width),
    }
}

/// The beginning, the middle and the end.
fn span_ticks((first, last): Span) -> Vec<Tick> {
    let tick = |x, anchor, at| Tick {
        x: percent(x),
        anchor,
        label: zone::write_here(at, "%-d %b %H:%M"),
    };
    vec![
        tick(0.0, "start", first),
        tick(WIDTH / 2.0, "middle", first + (last - first) / 2),
        tick(WIDTH, "end", last),
    ]
}

fn percent(part: f64) -> String {
    format!("{part:.2}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_inside_the_picture_and_can_be_seen() {
        let axis = GridAxis {
            stretches: vec![(100, 1_000_100)],
            left: 0.0,
            width: WIDTH,
        };
        let short = span_bar(&axis, (1_000_099, 1_000_100));
        assert_eq!((short.x.as_str(), short.width.as_str()), ("99.40%", "0.60%"));
        let half = span_bar(&axis, (100, 500_100));
        assert_eq!((half.x.as_str(), half.width.as_str()), ("0.00%", "50.00%"));
    }
}
