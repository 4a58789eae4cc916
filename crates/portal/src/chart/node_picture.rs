//! The picture of a plan on nodes: time to the right, nodes downwards. Slots too thin to be seen are drawn together with their
//! neighbours, so a picture of ten thousand slots is as large as one of some hundred.

use std::ops::Range;

use super::grid::{Grid, GridAxis, GridRectangle, count, grid_rows_in_words};
use super::slots::{NAME_MAX, SlotBar};
use service::{ChartSlotView, GanttResourceView};

/// The width of the time, and of the labels left of it.
const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 120.0;
/// The height of the marks above.
const TOP: f64 = 22.0;
/// The height of a node where they are few, and of all of them where they are many.
const NODE_HEIGHT: f64 = 22.0;
const HEIGHT_MAX: f64 = 640.0;
/// Labels of groups of nodes where they are many.
const LABELS: u32 = 16;
/// The least width and height of a slot that is drawn by itself.
const SEEN: f64 = 2.0;
/// Slots that are drawn by themselves, and the boxes that they consist of: the largest.
const BARS_MAX: usize = 250;
const BOXES_MAX: usize = 2_000;
/// The width and the height of the pieces in which the rest is counted.
const PIECE: (f64, f64) = (5.0, 16.0);
/// Shades of the pieces.
const SHADES: usize = 4;

/// The picture.
pub(crate) struct NodePicture {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Where the nodes begin, below the marks.
    pub(crate) top: f64,
    pub(crate) marks: Vec<NodeLabel>,
    pub(crate) labels: Vec<NodeLabel>,
    pub(crate) unused: Vec<NodeArea>,
    /// The outlines of the pieces with a share of thin slots, from the lightest shade to the darkest.
    pub(crate) shades: Vec<String>,
    /// How many slots these are.
    pub(crate) thin: usize,
    pub(crate) bars: Vec<SlotBar>,
    /// The outline of the nodes that are planned for something where slots are too many to be drawn.
    pub(crate) rest: String,
    /// Where the present is, if it is shown.
    pub(crate) now: Option<f64>,
}

/// A text beside the picture, with the place that it marks.
pub(crate) struct NodeLabel {
    pub(crate) at: f64,
    pub(crate) text: String,
    /// The page of a group of nodes.
    pub(crate) address: Option<String>,
}

/// Nodes that are not used for a time.
pub(crate) struct NodeArea {
    pub(crate) class: &'static str,
    pub(crate) title: String,
    pub(crate) outline: String,
}

impl NodePicture {
    /// Draws a resource for a time with marks at some of its seconds; `address` has the page of some nodes by the first and their number.
    pub(crate) fn of(
        is: &GanttResourceView,
        period: (i64, i64),
        marks: impl IntoIterator<Item = (i64, String)>,
        now: i64,
        address: impl Fn(u32, u32) -> String,
    ) -> Self {
        let many = f64::from(is.nodes.1 - is.nodes.0);
        let grid = Grid {
            axis: GridAxis {
                stretches: vec![period],
                left: LEFT,
                width: WIDTH,
            },
            first: (is.nodes.0, TOP),
            row: NODE_HEIGHT.min(HEIGHT_MAX / many),
        };
        let height = grid.row * many;
        let (bars, thin) = bars_of_node_picture(is, &grid);
        let mut rest = String::new();
        for (start, end, nodes) in &is.rest {
            let rows = is.nodes.0..is.nodes.1.min(*nodes);
            if !rows.is_empty() {
                grid.rectangle((*start, *end), &rows, (0.0, 0.0))
                    .add_to(&mut rest);
            }
        }
        let marks = marks.into_iter();
        Self {
            width: LEFT + WIDTH,
            height: TOP + height,
            top: TOP,
            marks: marks
                .map(|(at, text)| NodeLabel::of(grid.axis.place(at), text))
                .collect(),
            labels: labels_of_node_picture(is, &grid, address),
            unused: is
                .unused
                .iter()
                .map(|unused| node_area(unused.why, (unused.start, unused.end), &unused.rows, &grid))
                .collect(),
            shades: node_shades(&thin, height),
            thin: thin.len(),
            bars: bars
                .into_iter()
                .map(|(slot, boxes)| node_bar(slot, &boxes))
                .collect(),
            rest,
            now: (period.0..period.1).contains(&now).then(|| grid.axis.place(now)),
        }
    }
}

impl NodeLabel {
    fn of(at: f64, text: String) -> Self {
        Self {
            at,
            text,
            address: None,
        }
    }
}

/// A slot with its places, and whether all of them are large enough to be seen.
type PlacedSlot<'a> = (&'a ChartSlotView, Vec<GridRectangle>);

/// The slots that are drawn by themselves, in order of time, and the others.
fn bars_of_node_picture<'a>(
    is: &'a GanttResourceView,
    grid: &Grid,
) -> (Vec<PlacedSlot<'a>>, Vec<PlacedSlot<'a>>) {
    let placed = is.slots.iter().map(|slot| {
        let boxes = slot
            .rows
            .iter()
            .map(|rows| grid.rectangle((slot.start, slot.end), rows, (0.0, 0.0)));
        (slot, boxes.collect::<Vec<GridRectangle>>())
    });
    let (mut seen, mut thin): (Vec<PlacedSlot<'_>>, Vec<_>) =
        placed.partition(|(_, boxes)| boxes.iter().any(is_seen));
    let area = |slot: &PlacedSlot<'_>| slot.1.iter().map(GridRectangle::area).sum::<f64>();
    // Equal ones stay in order of time.
    seen.sort_by(|one, other| area(other).total_cmp(&area(one)));
    let mut boxes = 0;
    let fits = seen.iter().take(BARS_MAX).take_while(|(_, seen)| {
        boxes += seen.len();
        boxes <= BOXES_MAX
    });
    let fits = fits.count();
    thin.extend(seen.split_off(fits));
    seen.sort_by_key(|(slot, _)| (slot.start, slot.id));
    (seen, thin)
}

fn is_seen(rectangle: &GridRectangle) -> bool {
    rectangle.size.0 >= SEEN && rectangle.size.1 >= SEEN
}

fn node_bar(slot: &ChartSlotView, boxes: &[GridRectangle]) -> SlotBar {
    let mut bar = SlotBar::of(slot, boxes);
    if !slot.is_bound {
        bar.title += ", nodes not yet known";
    }
    let largest = boxes
        .iter()
        .max_by(|one, other| one.area().total_cmp(&other.area()));
    bar.name = largest
        .filter(|largest| largest.size.0 >= 60.0 && largest.size.1 >= 14.0)
        .map(|rectangle| {
            // About as wide as a digit.
            let fits = (1..=NAME_MAX)
                .rev()
                .find(|many| count(*many) * 8.0 + 8.0 <= rectangle.size.0);
            let name = slot.party.chars().take(fits.unwrap_or(0)).collect();
            (
                rectangle.at.0 + 4.0,
                rectangle.at.1 + rectangle.size.1 / 2.0 + 4.0,
                name,
            )
        });
    bar
}

fn node_area(why: &'static str, time: (i64, i64), rows: &Range<u32>, grid: &Grid) -> NodeArea {
    let mut outline = String::new();
    grid.rectangle(time, rows, (1.0, 1.0)).add_to(&mut outline);
    let words = match why {
        "others" => "used by others",
        known => known,
    };
    NodeArea {
        class: why,
        title: format!("Nodes {}: {words}", grid_rows_in_words(rows)),
        outline,
    }
}

/// The outlines of the pieces by the share of them that thin slots have.
fn node_shades(thin: &[PlacedSlot<'_>], height: f64) -> Vec<String> {
    let columns = piece_at(WIDTH, PIECE.0).max(1);
    let rows = piece_at(height, PIECE.1) + 1;
    let mut shares = vec![0.0; columns * rows];
    for rectangle in thin.iter().flat_map(|(_, boxes)| boxes) {
        let (left, top) = (rectangle.at.0 - LEFT, rectangle.at.1 - TOP);
        let (right, bottom) = (left + rectangle.size.0, top + rectangle.size.1);
        for row in piece_at(top, PIECE.1)..=piece_at(bottom, PIECE.1).min(rows - 1) {
            let high = shade_length_in_piece((top, bottom), row, PIECE.1);
            for column in piece_at(left, PIECE.0)..=piece_at(right, PIECE.0).min(columns - 1) {
                let wide = shade_length_in_piece((left, right), column, PIECE.0);
                shares[row * columns + column] += high * wide / (PIECE.0 * PIECE.1);
            }
        }
    }
    // The lowest pieces may be cut.
    let lowest = height - count(rows - 1) * PIECE.1;
    let mut outlines = vec![String::new(); SHADES];
    for (row, shares) in shares.chunks(columns).enumerate() {
        let high = if row == rows - 1 { lowest } else { PIECE.1 };
        let mut column = 0;
        for same in shares.chunk_by(|one, other| node_shade(*one) == node_shade(*other)) {
            if let Some(outline) = node_shade(same[0]).and_then(|shade| outlines.get_mut(shade)) {
                let at = (LEFT + count(column) * PIECE.0, TOP + count(row) * PIECE.1);
                let size = (count(same.len()) * PIECE.0, high);
                GridRectangle { at, size }.add_to(outline);
            }
            column += same.len();
        }
    }
    outlines
}

/// The shade of a share; none for nothing.
fn node_shade(share: f64) -> Option<usize> {
    let reached = |part: usize| share > count(part) / count(SHADES);
    (0..SHADES).rev().find(|part| reached(*part))
}

/// The piece in which a place lies.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places on a picture are small and not negative"
)]
fn piece_at(place: f64, piece: f64) -> usize {
    (place / piece).max(0.0) as usize
}

fn shade_length_in_piece((start, end): (f64, f64), piece: usize, length: f64) -> f64 {
    let from = count(piece) * length;
    (end.min(from + length) - start.max(from)).max(0.0)
}

/// Labels of single nodes where these are few, else of groups, which lead to a page of their own.
fn labels_of_node_picture(
    is: &GanttResourceView,
    grid: &Grid,
    address: impl Fn(u32, u32) -> String,
) -> Vec<NodeLabel> {
    let (first, end) = is.nodes;
    let group = (end - first).div_ceil(LABELS);
    let place =
        |node: u32, many: u32| TOP + grid.row * (f64::from(node - first) + f64::from(many) / 2.0) + 4.0;
    if grid.row >= NODE_HEIGHT || is.nodes.1 - is.nodes.0 <= LABELS {
        let named = (first..end).zip(&is.node_names);
        return named
            .map(|(node, name)| NodeLabel::of(place(node, 1), name.chars().take(16).collect()))
            .collect();
    }
    let groups = (first..end).step_by(group as usize).map(|node| {
        let many = group.min(end - node);
        NodeLabel {
            at: place(node, many),
            text: grid_rows_in_words(&(node..node + many)),
            address: Some(address(node, many)),
        }
    });
    groups.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;

    use super::*;

    const DAY: i64 = 86_400;

    fn slot(number: u32, start: i64, end: i64, rows: Range<u32>) -> ChartSlotView {
        ChartSlotView {
            id: Uuid::from_u128(number.into()),
            is_held: false,
            has_begun: false,
            is_bound: false,
            party: "<physics & more than that>".to_owned(),
            nodes: rows.end - rows.start,
            start,
            end,
            rows: vec![rows],
        }
    }

    fn resource(capacity: u32, slots: Vec<ChartSlotView>) -> GanttResourceView {
        GanttResourceView {
            name: "local".to_owned(),
            capacity,
            nodes: (0, capacity),
            node_names: (0..capacity.min(16)).map(|node| node.to_string()).collect(),
            slots,
            more: 0,
            rest: Vec::new(),
            unused: Vec::new(),
        }
    }

    fn draw(is: &GanttResourceView, seconds: i64) -> NodePicture {
        NodePicture::of(is, (0, seconds), Vec::new(), 10, |first, many| {
            format!("{first}+{many}")
        })
    }

    /// Ten thousand slots of a year on a thousand nodes.
    pub(crate) fn many_slots() -> GanttResourceView {
        let mut seed = 5_u64;
        let mut draw_number = move |below: u32| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(seed >> 33).unwrap() % below
        };
        let slots = (0..10_000).map(|number| {
            let (start, length) = (
                i64::from(draw_number(366 * 86_400)),
                i64::from(draw_number(200_000)),
            );
            let (row, rows) = (draw_number(960), 1 + draw_number(40));
            slot(number, start, start + length, row..row + rows)
        });
        resource(1_000, slots.collect())
    }

    #[test]
    fn what_can_be_seen_is_a_bar_and_the_rest_shades() {
        let slots = vec![
            slot(1, 0, 43_200, 0..2),
            slot(2, 50_000, 50_060, 2..3),
            slot(3, -90, 200, 3..4),
        ];
        let drawing = draw(&resource(4, slots), DAY);
        assert_eq!((drawing.bars.len(), drawing.thin), (2, 1));
        assert_eq!(
            drawing.bars[0].outline, "M120.0 88.0h2.3v22.0h-2.3z",
            "it is cut where it began before"
        );
        assert_eq!(drawing.bars[1].outline, "M120.0 22.0h500.0v44.0h-500.0z");
        assert_eq!(
            drawing.bars[1].name.as_ref().unwrap().2,
            "<physics & more than tha"
        );
        let boxes: usize = drawing
            .shades
            .iter()
            .map(|shade| shade.matches('M').count())
            .sum();
        assert_eq!(boxes, 3, "it touches three rows of pieces: {:?}", drawing.shades);
        assert!(drawing.now.is_some());
        assert_eq!(drawing.labels.len(), 4);
    }

    #[test]
    fn where_slots_are_too_many_the_nodes_that_are_planned_for_something_are_drawn() {
        let mut is = resource(4, vec![slot(1, 0, 21_600, 0..2)]);
        is.rest = vec![(21_600, 43_200, 3), (43_200, 64_800, 0)];
        assert_eq!(draw(&is, DAY).rest, "M370.0 22.0h250.0v66.0h-250.0z");
    }

    #[test]
    fn each_of_many_slots_is_drawn_somehow() {
        let is = many_slots();
        let year = draw(&is, 366 * DAY);
        assert_eq!((year.bars.len(), year.thin), (BARS_MAX, 10_000 - BARS_MAX));
        assert_eq!(year.labels.len(), 16);
        assert_eq!(year.labels[1].address.as_deref(), Some("63+63"));
    }

    #[test]
    fn shades_are_darker_where_more_is_taken() {
        assert_eq!(
            [0.0, 0.01, 0.26, 0.6, 1.0].map(node_shade),
            [None, Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!(node_shade(3.0), Some(3));
    }
}
