//! Offers as cards: all that is to be known before one is taken, in words, and the same times as a picture.

use uuid::Uuid;

use crate::agreement::OfferKind;
use crate::negotiation::{CostView, QuotationView, ReadOffer};
use crate::portal::text;

/// An offer that can be taken.
pub(in crate::portal) struct Card {
    pub(in crate::portal) id: String,
    /// Its number on the page, from 1.
    pub(in crate::portal) number: usize,
    pub(in crate::portal) title: String,
    pub(in crate::portal) is: QuotationView,
    /// What it changes of the reservation that it replaces, where it replaces one.
    pub(in crate::portal) change: Option<String>,
    /// Whether it has a deadline; else that is as far ahead as the provider plans.
    pub(in crate::portal) has_deadline: bool,
    pub(in crate::portal) size: String,
    /// Its price with all fees; none where nothing is charged.
    pub(in crate::portal) price: Option<String>,
    /// What the price is made of.
    pub(in crate::portal) parts: Vec<String>,
    pub(in crate::portal) confidence: Option<String>,
    pub(in crate::portal) held_until: String,
    /// What ending the agreement costs.
    pub(in crate::portal) cancellation: String,
    pub(in crate::portal) terms: Vec<String>,
    /// The value that a form brings back, so that it counts once.
    pub(in crate::portal) once: Uuid,
}

impl Card {
    /// The card of an offer that is held; none for another one.
    pub(in crate::portal) fn of(offer: &ReadOffer, number: usize, cost: Option<&CostView>) -> Option<Self> {
        let (is, held_until) = (offer.is.quotation.clone()?, offer.is.held_until.clone()?);
        Some(Self {
            id: offer.is.id.clone(),
            number,
            title: text::capitalised(&deviation_in_words(&is)),
            change: None,
            has_deadline: offer.request.end.is_some(),
            size: text::size(is.nodes, is.duration_seconds),
            price: is.price.as_ref().map(ToString::to_string),
            parts: price_in_parts(&is, cost),
            confidence: is
                .confidence
                .map(|sure| format!("{:.1} % of such jobs end in this time", sure * 100.0)),
            held_until,
            cancellation: cancellation_in_words(&is, cost),
            terms: terms_in_words(offer),
            once: Uuid::now_v7(),
            is,
        })
    }
}

/// How an offer differs from what was asked for.
pub(in crate::portal) fn deviation_in_words(offer: &QuotationView) -> String {
    let words = text::kind(offer.kind);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a number of seconds in words"
    )]
    let seconds = (offer.deviation * offer.duration_seconds as f64).round() as i64;
    match offer.kind {
        OfferKind::Earlier | OfferKind::Later => format!("{} {words}", text::duration(seconds)),
        _ => words.to_owned(),
    }
}

fn price_in_parts(offer: &QuotationView, cost: Option<&CostView>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(cost) = cost {
        parts.push(format!("{} for the nodes and the time", cost.list));
        if cost.rules.amount != "0" {
            let (sign, amount) = match cost.rules.amount.strip_prefix('-') {
                Some(less) => ("less", less),
                None => ("more", cost.rules.amount.as_str()),
            };
            parts.push(format!(
                "{amount} {} {sign} for its time, its room to move and other rules of the price list",
                cost.rules.currency
            ));
        }
    }
    if let Some(difference) = &offer.price_difference {
        parts.push(text::difference(difference));
    }
    if let Some(fee) = &offer.fee {
        parts.push(format!("a fee of {fee} for the change, besides"));
    }
    parts
}

fn cancellation_in_words(offer: &QuotationView, cost: Option<&CostView>) -> String {
    match cost {
        Some(cost) if cost.cancellation.amount != "0" => {
            format!("Ending it before it starts costs {}.", cost.cancellation)
        }
        None if offer.price.is_none() => "Nothing is charged, also where you end it.".to_owned(),
        _ => "Ending it before it starts costs nothing.".to_owned(),
    }
}

fn terms_in_words(offer: &ReadOffer) -> Vec<String> {
    let is_exact = offer
        .is
        .quotation
        .as_ref()
        .is_some_and(|is| (&is.ready, &is.deadline) == (&is.start, &is.end));
    let moving = match offer.request.scheduling.fix_at {
        _ if is_exact => "Its times are exact: it does not move.",
        Some(part) if part <= 0.0 => "Its time is fixed at once.",
        Some(part) if part < 1.0 => "It may move inside these times for a part of its wait.",
        _ => "It may move inside these times until it starts.",
    };
    let guarantees = offer.objectives.iter().map(|objective| match objective.as_str() {
        "completed le deadline" if offer.request.end.is_none() => {
            "You gave no deadline: it may be moved as far ahead as the provider plans.".to_owned()
        }
        "completed le deadline" => "Guaranteed: it is done by the deadline.".to_owned(),
        other => format!("Guaranteed: {other}."),
    });
    std::iter::once(moving.to_owned()).chain(guarantees).collect()
}

/// Offers on an axis of time: a bar for each.
pub(in crate::portal) struct Axis {
    /// The window that was asked for, as a bar behind the others.
    pub(in crate::portal) window: Option<Bar>,
    pub(in crate::portal) bars: Vec<Bar>,
    pub(in crate::portal) height: i64,
    /// Where the axis begins and ends, as dateTimes.
    pub(in crate::portal) start: String,
    pub(in crate::portal) end: String,
}

/// A bar, in units of the picture.
pub(in crate::portal) struct Bar {
    pub(in crate::portal) number: usize,
    pub(in crate::portal) x: i64,
    pub(in crate::portal) y: i64,
    pub(in crate::portal) width: i64,
    /// Where its number stands.
    pub(in crate::portal) label: i64,
    /// Whether its number stands beside it, because it has no room inside.
    pub(in crate::portal) is_narrow: bool,
}

/// The width of the picture, and the heights of a bar and of a line.
pub(in crate::portal) const WIDTH: i64 = 720;
const BAR: i64 = 28;
const LINE: i64 = 36;
/// The least width of a bar that can be seen.
const BAR_LEAST: i64 = 6;
/// The room beside the number of a bar; the number takes twice as much.
const BESIDE: i64 = 8;

impl Axis {
    /// The axis of cards, with the window in seconds where it is bounded; none where there is no card.
    pub(in crate::portal) fn of(cards: &[Card], window: Option<(i64, i64)>) -> Option<Self> {
        let of = |card: &Card| Some((seconds_of(&card.is.start)?, seconds_of(&card.is.end)?));
        let slots: Vec<_> = cards
            .iter()
            .filter_map(|card| Some((card.number, of(card)?)))
            .collect();
        let all = slots.iter().map(|(_, slot)| *slot).chain(window);
        let start = all.clone().map(|(start, _)| start).min()?;
        let end = all.map(|(_, end)| end).max()?.max(start + 1);
        if slots.is_empty() {
            return None;
        }
        let place = |at: i64| {
            i64::try_from(i128::from(at - start) * i128::from(WIDTH) / i128::from(end - start)).unwrap_or(0)
        };
        let bar = |number, line: usize, (from, to): (i64, i64)| {
            let x = place(from).min(WIDTH - BAR_LEAST);
            let width = (place(to) - x).max(BAR_LEAST);
            let is_narrow = width < 4 * BESIDE;
            Bar {
                number,
                x,
                y: i64::try_from(line).unwrap_or(0) * LINE + (LINE - BAR) / 2,
                width,
                label: match (is_narrow, x + width + 3 * BESIDE < WIDTH) {
                    (false, _) => x + BESIDE,
                    (true, true) => x + width + BESIDE,
                    (true, false) => x - 3 * BESIDE,
                },
                is_narrow,
            }
        };
        let bars = slots.iter().enumerate();
        let bars: Vec<_> = bars
            .map(|(line, (number, slot))| bar(*number, line, *slot))
            .collect();
        Some(Self {
            window: window.map(|window| bar(0, 0, window)),
            height: i64::try_from(bars.len()).unwrap_or(0) * LINE,
            bars,
            start: text::date_time(start),
            end: text::date_time(end),
        })
    }
}

/// The second of a dateTime.
fn seconds_of(date_time: &str) -> Option<i64> {
    let at: jiff::Timestamp = date_time.parse().ok()?;
    Some(at.as_second())
}
