//! Offers as cards: all that is to be known before one is taken, in words.

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
    pub(in crate::portal) size: String,
    /// Its price with all fees; none where nothing is charged.
    pub(in crate::portal) price: Option<String>,
    /// What the price is made of.
    pub(in crate::portal) parts: Vec<String>,
    pub(in crate::portal) confidence: Option<String>,
    /// The energy that its nodes take, where their power is known.
    pub(in crate::portal) energy: Option<String>,
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
            size: text::size(is.nodes, is.duration_seconds),
            price: is.price.as_ref().map(ToString::to_string),
            parts: price_in_parts(&is, cost),
            confidence: is
                .confidence
                .map(|sure| format!("{:.1} % of such jobs end in this time", sure * 100.0)),
            energy: is.energy.as_ref().map(|of| text::kilowatt_hours(of.watt_hours)),
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
        parts.push(format!("{} for the nodes and the time, by the list", cost.list));
        if cost.rules.amount != "0" {
            let (sign, amount) = match cost.rules.amount.strip_prefix('-') {
                Some(less) => ("less", less),
                None => ("more", cost.rules.amount.as_str()),
            };
            parts.push(format!(
                "{amount} {} {sign} for its time, its room to move and other rules of the list",
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
    let moving = match offer.request.scheduling.fix_at {
        Some(part) if part <= 0.0 => "Its time is fixed at once.",
        Some(part) if part < 1.0 => "It may move inside these times for a part of its wait.",
        _ => "It may move inside these times until it starts.",
    };
    let guarantees = offer.objectives.iter().map(|objective| match objective.as_str() {
        "completed le deadline" => "Guaranteed: it is done by the deadline.".to_owned(),
        other => format!("Guaranteed: {other}."),
    });
    std::iter::once(moving.to_owned()).chain(guarantees).collect()
}
