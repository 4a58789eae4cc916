//! A reservation as a picture on an axis of time: the time it asked for, where it may be moved, where it was, where it is planned, and
//! when it really ran; and offers, each where it would lie. Positions are parts of the width, so that texts keep their size on every screen.

use crate::negotiation::{AgreementView, PieceView, TimelineView};
use crate::portal::negotiation::cards::Card;
use crate::portal::text::{self, second_of};

/// Pixels of a row with its label.
const ROW: u32 = 36;
/// Pixels of the axis.
const AXIS: u32 = 22;
/// The width of the picture, in the units of its positions: hundredths of a percent.
const WIDTH: i64 = 10_000;
/// The least width of a bar, so that a short slot in a long window is seen.
const BAR_LEAST: i64 = 60;

/// A picture of a reservation, or of offers.
pub(in crate::portal) struct Picture {
    /// The same in words.
    pub(in crate::portal) title: String,
    pub(in crate::portal) rows: Vec<Row>,
    pub(in crate::portal) ticks: Vec<Tick>,
    /// Where the present is, if it is in the picture.
    pub(in crate::portal) now: Option<String>,
    /// Pixels.
    pub(in crate::portal) height: u32,
    /// Whether rows have labels and there is an axis.
    pub(in crate::portal) is_large: bool,
}

/// Bars of one kind.
pub(in crate::portal) struct Row {
    pub(in crate::portal) label: String,
    pub(in crate::portal) class: &'static str,
    /// Pixels from above, of the label and of the bars.
    pub(in crate::portal) label_y: u32,
    pub(in crate::portal) y: u32,
    pub(in crate::portal) bars: Vec<Bar>,
}

/// A time.
pub(in crate::portal) struct Bar {
    pub(in crate::portal) x: String,
    pub(in crate::portal) width: String,
}

/// A time on the axis.
pub(in crate::portal) struct Tick {
    pub(in crate::portal) x: String,
    pub(in crate::portal) anchor: &'static str,
    pub(in crate::portal) label: String,
}

/// A time in seconds since the epoch.
type Span = (i64, i64);

/// Times of one kind: the label, the class and the times.
type Kind = (String, &'static str, Vec<Span>);

impl Picture {
    /// The picture of a reservation's page; none where it has no time to draw.
    /// A reservation comes with the part of its window in which it may be moved, and whether its window has an end: without one, its rows
    /// end where its slot does.
    pub(in crate::portal) fn large(
        (view, room, has_deadline): (&AgreementView, Option<&(String, String)>, bool),
        timeline: &TimelineView,
        now: i64,
    ) -> Option<Self> {
        let planned_end = view.planned_end.as_ref().and_then(|end| second_of(end));
        let far = planned_end.filter(|_| !has_deadline).unwrap_or(i64::MAX);
        let near = |spans: Vec<Span>| -> Vec<Span> {
            spans
                .into_iter()
                .map(|(start, end)| (start, end.min(far).max(start)))
                .collect()
        };
        let rows = [
            (
                "Asked for",
                "p-asked",
                near(spans(&[(Some(&view.ready), Some(&view.deadline))])),
            ),
            ("May be moved within", "p-room", near(movable(view, room))),
            ("Was planned before", "p-earlier", earlier_places(view, timeline)),
            ("Planned", "p-planned", planned(view)),
            ("Actual run", "p-real", real(view, now)),
        ];
        let rows = rows.map(|(label, class, spans)| (label.to_owned(), class, spans));
        Self::of(&rows, in_words(view), now, true)
    }

    /// The picture of offers, each by its number, with the time that was asked for where that is bounded; none where there is no
    /// offer.
    pub(in crate::portal) fn of_offers(cards: &[Card], window: Option<Span>, now: i64) -> Option<Self> {
        let asked = ("Asked for".to_owned(), "p-asked", Vec::from_iter(window));
        let offers = cards.iter().map(|card| {
            let slots = match &card.is.pieces[..] {
                [] => spans(&[(Some(&card.is.start), Some(&card.is.end))]),
                pieces => slots_of_pieces(pieces),
            };
            (format!("{}. {}", card.number, card.title), "p-planned", slots)
        });
        let rows: Vec<_> = std::iter::once(asked).chain(offers).collect();
        let title = "When the offers lie; the cards below say the same".to_owned();
        Self::of(&rows, title, now, true).filter(|_| !cards.is_empty())
    }

    /// The picture of a line in a list.
    pub(in crate::portal) fn small(view: &AgreementView, now: i64) -> Option<Self> {
        let asked = spans(&[(Some(&view.ready), Some(&view.deadline))]);
        let rows = [("p-asked", asked), ("p-planned", planned(view))];
        let rows = rows.map(|(class, spans)| (String::new(), class, spans));
        Self::of(&rows, in_words(view), now, false)
    }

    fn of(rows: &[Kind], title: String, now: i64, is_large: bool) -> Option<Self> {
        let all = || rows.iter().flat_map(|(_, _, spans)| spans);
        let (first, last) = (all().map(|each| each.0).min()?, all().map(|each| each.1).max()?);
        let axis = Axis {
            first,
            seconds: (last - first).max(1),
        };
        let filled = rows.iter().filter(|(_, _, spans)| !spans.is_empty());
        let rows: Vec<Row> = (0..)
            .zip(filled)
            .map(|(index, (label, class, spans))| Row {
                label: label.clone(),
                class,
                label_y: index * ROW + 13,
                y: if is_large { index * ROW + 18 } else { 1 },
                bars: spans.iter().map(|span| axis.bar(*span)).collect(),
            })
            .collect();
        let count = u32::try_from(rows.len()).unwrap_or(0);
        Some(Self {
            title,
            height: if is_large { count * ROW + AXIS } else { 12 },
            rows,
            ticks: if is_large { axis.ticks() } else { Vec::new() },
            now: (first..=last).contains(&now).then(|| percent(axis.at(now))),
            is_large,
        })
    }
}

/// The axis of a picture.
struct Axis {
    first: i64,
    seconds: i64,
}

impl Axis {
    fn at(&self, second: i64) -> i64 {
        let part = i128::from(second - self.first) * i128::from(WIDTH) / i128::from(self.seconds);
        i64::try_from(part).unwrap_or(0).clamp(0, WIDTH)
    }

    fn bar(&self, (start, end): Span) -> Bar {
        let (from, to) = (self.at(start), self.at(end));
        let width = (to - from).max(BAR_LEAST);
        Bar {
            x: percent(from.min(WIDTH - width)),
            width: percent(width),
        }
    }

    /// The beginning, the middle and the end.
    fn ticks(&self) -> Vec<Tick> {
        let at = |part: i64, anchor| Tick {
            x: percent(part * WIDTH / 2),
            anchor,
            label: text::short_moment(self.first + self.seconds * part / 2),
        };
        vec![at(0, "start"), at(1, "middle"), at(2, "end")]
    }
}

fn percent(hundredths: i64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

fn spans(times: &[(Option<&String>, Option<&String>)]) -> Vec<Span> {
    let times = times.iter().filter_map(|(start, end)| {
        let span = (second_of((*start)?)?, second_of((*end)?)?);
        (span.0 <= span.1).then_some(span)
    });
    times.collect()
}

/// Where a reservation that waits may be moved.
fn movable(view: &AgreementView, room: Option<&(String, String)>) -> Vec<Span> {
    let room = room.filter(|_| text::can_change_wholly(view));
    spans(&[room.map_or((None, None), |(start, end)| (Some(start), Some(end)))])
}

fn planned(view: &AgreementView) -> Vec<Span> {
    if view.pieces.is_empty() {
        return spans(&[(view.planned_start.as_ref(), view.planned_end.as_ref())]);
    }
    slots_of_pieces(&view.pieces)
}

fn slots_of_pieces(pieces: &[PieceView]) -> Vec<Span> {
    let pieces = pieces.iter();
    let pieces: Vec<_> = pieces
        .map(|piece| (Some(&piece.planned_start), Some(&piece.planned_end)))
        .collect();
    spans(&pieces)
}

fn real(view: &AgreementView, now: i64) -> Vec<Span> {
    let now = text::date_time(now);
    let end = |ended: &Option<String>| {
        ended
            .clone()
            .or_else(|| (!text::is_final(view)).then(|| now.clone()))
    };
    let mut times: Vec<(Option<String>, Option<String>)> = view
        .pieces
        .iter()
        .map(|piece| (piece.started.clone(), end(&piece.ended)))
        .collect();
    if times.is_empty() {
        times.push((view.started.clone(), end(&view.ended)));
    }
    let times: Vec<_> = times
        .iter()
        .map(|(start, end)| (start.as_ref(), end.as_ref()))
        .collect();
    spans(&times)
}

/// Where a slot was before its moves, as far back as the timeline tells by how much it moved.
fn earlier_places(view: &AgreementView, timeline: &TimelineView) -> Vec<Span> {
    let mut places = Vec::new();
    let Some((mut start, mut end)) = planned(view).first().copied().filter(|_| view.pieces.is_empty()) else {
        return places;
    };
    let moved = timeline.events.iter().rev().filter(|event| event.kind == "moved");
    for by in moved.map_while(|event| moved_by(&event.detail)) {
        (start, end) = (start - by, end - by);
        places.push((start, end));
    }
    places
}

/// By how many seconds a slot moved, as its timeline says it: `60 seconds later`.
fn moved_by(detail: &str) -> Option<i64> {
    let words: Vec<&str> = detail.split([' ', ',']).collect();
    let at = words
        .iter()
        .position(|word| ["earlier", "later"].contains(word))?;
    let unit = words.get(at.checked_sub(1)?)?;
    let seconds: i64 = words.get(at.checked_sub(2)?)?.parse().ok()?;
    // With another length it is not the same slot at another time.
    let same = unit.starts_with("second") && !detail.contains(", with ");
    same.then_some(if words[at] == "later" { seconds } else { -seconds })
}

fn in_words(view: &AgreementView) -> String {
    let at = |moment: &Option<String>| moment.as_deref().map_or_else(|| "?".to_owned(), text::moment);
    let place = match (&view.planned_start, &view.planned_end) {
        (None, _) | (_, None) => "it has no slot".to_owned(),
        (start, end) => format!("planned from {} to {}", at(start), at(end)),
    };
    let (ready, deadline) = (text::moment(&view.ready), text::moment(&view.deadline));
    format!(
        "{}: asked for from {ready} to {deadline}, {place}",
        text::name(view)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_read_as_the_timeline_tells_it() {
        for (detail, by) in [
            ("3600 seconds later, to let another agreement in", Some(3_600)),
            ("1 second earlier, into time that became free", Some(-1)),
            ("to fast, 60 seconds earlier, its nodes are out of use", Some(-60)),
            ("60 seconds later, with 2 nodes for 30 seconds, why", None),
            ("on nodes 1-2 of local, which holds these for it", None),
            ("later", None),
        ] {
            assert_eq!(moved_by(detail), by, "{detail}");
        }
    }

    #[test]
    fn bars_lie_inside_the_picture_and_can_be_seen() {
        let axis = Axis {
            first: 100,
            seconds: 1_000_000,
        };
        let bar = axis.bar((1_000_099, 1_000_100));
        assert_eq!((bar.x.as_str(), bar.width.as_str()), ("99.40%", "0.60%"));
        let bar = axis.bar((100, 500_100));
        assert_eq!((bar.x.as_str(), bar.width.as_str()), ("0.00%", "50.00%"));
    }
}
