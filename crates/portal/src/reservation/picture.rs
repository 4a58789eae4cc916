//! The times of a reservation's picture: the time it asked for, where it may be moved, where it was, where it is planned, and when it
//! really ran; and those of offers, each where it would lie.

use crate::chart::span_picture::{Span, SpanPicture};
use crate::negotiation::cards::Card;
use crate::reservation::standing::{can_change_wholly, is_final};
use crate::text::{self, second_of};
use service::{AgreementView, PieceView, TimelineView};

/// The picture of a reservation's page; none where it has no time to draw.
/// A reservation comes with the part of its window in which it may be moved, and whether its window has an end: without one, its rows
/// end where its slot does.
pub(crate) fn draw_reservation(
    (view, room, has_deadline): (&AgreementView, Option<&(String, String)>, bool),
    timeline: &TimelineView,
    now: i64,
) -> Option<SpanPicture> {
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
            near(spans_of_reservation(&[(Some(&view.ready), Some(&view.deadline))])),
        ),
        (
            "May be moved within",
            "p-room",
            near(movable_spans_of_reservation(view, room)),
        ),
        (
            "Was planned before",
            "p-earlier",
            earlier_spans_of_reservation(view, timeline),
        ),
        ("Planned", "p-planned", planned_spans_of_reservation(view)),
        ("Actual run", "p-real", real_spans_of_reservation(view, now)),
    ];
    let rows = rows.map(|(label, class, spans)| (label.to_owned(), class, spans));
    SpanPicture::of(&rows, reservation_picture_in_words(view), now, true)
}

/// The picture of offers, each by its number, with the time that was asked for where that is bounded; none where there is no
/// offer.
pub(crate) fn draw_offered_reservations(
    cards: &[Card],
    window: Option<Span>,
    now: i64,
) -> Option<SpanPicture> {
    let asked = ("Asked for".to_owned(), "p-asked", Vec::from_iter(window));
    let offers = cards.iter().map(|card| {
        let slots = match &card.is.pieces[..] {
            [] => spans_of_reservation(&[(Some(&card.is.start), Some(&card.is.end))]),
            pieces => spans_of_reservation_pieces(pieces),
        };
        (format!("{}. {}", card.number, card.title), "p-planned", slots)
    });
    let rows: Vec<_> = std::iter::once(asked).chain(offers).collect();
    let title = "When the offers lie; the cards below say the same".to_owned();
    SpanPicture::of(&rows, title, now, true).filter(|_| !cards.is_empty())
}

/// The picture of a line in a list.
pub(crate) fn draw_reservation_line(view: &AgreementView, now: i64) -> Option<SpanPicture> {
    let asked = spans_of_reservation(&[(Some(&view.ready), Some(&view.deadline))]);
    let rows = [
        ("p-asked", asked),
        ("p-planned", planned_spans_of_reservation(view)),
    ];
    let rows = rows.map(|(class, spans)| (String::new(), class, spans));
    SpanPicture::of(&rows, reservation_picture_in_words(view), now, false)
}

fn spans_of_reservation(times: &[(Option<&String>, Option<&String>)]) -> Vec<Span> {
    let times = times.iter().filter_map(|(start, end)| {
        let span = (second_of((*start)?)?, second_of((*end)?)?);
        (span.0 <= span.1).then_some(span)
    });
    times.collect()
}

/// Where a reservation that waits may be moved.
fn movable_spans_of_reservation(view: &AgreementView, room: Option<&(String, String)>) -> Vec<Span> {
    let room = room.filter(|_| can_change_wholly(view));
    spans_of_reservation(&[room.map_or((None, None), |(start, end)| (Some(start), Some(end)))])
}

fn planned_spans_of_reservation(view: &AgreementView) -> Vec<Span> {
    if view.pieces.is_empty() {
        return spans_of_reservation(&[(view.planned_start.as_ref(), view.planned_end.as_ref())]);
    }
    spans_of_reservation_pieces(&view.pieces)
}

fn spans_of_reservation_pieces(pieces: &[PieceView]) -> Vec<Span> {
    let pieces = pieces.iter();
    let pieces: Vec<_> = pieces
        .map(|piece| (Some(&piece.planned_start), Some(&piece.planned_end)))
        .collect();
    spans_of_reservation(&pieces)
}

fn real_spans_of_reservation(view: &AgreementView, now: i64) -> Vec<Span> {
    let now = text::date_time(now);
    let end = |ended: &Option<String>| ended.clone().or_else(|| (!is_final(view)).then(|| now.clone()));
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
    spans_of_reservation(&times)
}

/// Where a slot was before its moves, as far back as the timeline tells by how much it moved.
fn earlier_spans_of_reservation(view: &AgreementView, timeline: &TimelineView) -> Vec<Span> {
    let mut places = Vec::new();
    let Some((mut start, mut end)) = planned_spans_of_reservation(view)
        .first()
        .copied()
        .filter(|_| view.pieces.is_empty())
    else {
        return places;
    };
    let moved = timeline.events.iter().rev().filter(|event| event.kind == "moved");
    for by in moved.map_while(|event| reservation_picture_moved_by(&event.detail)) {
        (start, end) = (start - by, end - by);
        places.push((start, end));
    }
    places
}

/// By how many seconds a slot moved, as its timeline says it: `60 seconds later`.
fn reservation_picture_moved_by(detail: &str) -> Option<i64> {
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

fn reservation_picture_in_words(view: &AgreementView) -> String {
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
            assert_eq!(reservation_picture_moved_by(detail), by, "{detail}");
        }
    }
}
