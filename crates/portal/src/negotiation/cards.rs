//! Offers as cards: all that is to be known before one is taken, in words.

use domain::agreement::OfferKind;
use uuid::Uuid;

use crate::negotiation::difference::price_difference_in_words;
use crate::reservation::promise::{promise_in_words, shape_changes_in_words};
use crate::text;
use service::{GuaranteeView, PricePartsView, QuotationView, ReadOffer};

/// An offer that can be taken.
pub(crate) struct Card {
    pub(crate) id: String,
    /// Its number on the page, from 1.
    pub(crate) number: usize,
    pub(crate) title: String,
    pub(crate) is: QuotationView,
    /// What it changes of the reservation that it replaces, where it replaces one.
    pub(crate) change: Option<String>,
    /// Whether it has a deadline; else that is as far ahead as the provider plans.
    pub(crate) has_deadline: bool,
    pub(crate) size: String,
    /// Its price, without the fee for a change; none where nothing is charged.
    pub(crate) price: Option<String>,
    /// What the price is made of.
    pub(crate) parts: Vec<String>,
    pub(crate) confidence: Option<String>,
    /// The energy that its nodes take, where their power is known.
    pub(crate) energy: Option<String>,
    pub(crate) held_until: String,
    /// What ending the agreement costs.
    pub(crate) cancellation: String,
    pub(crate) terms: Vec<String>,
    /// What the button that takes it says.
    pub(crate) button: String,
    /// The value that a form brings back, so that it counts once.
    pub(crate) once: Uuid,
}

impl Card {
    /// The card of an offer that is held, with its number and whether it changes an agreement; none for another one.
    pub(crate) fn of(
        offer: &ReadOffer,
        (number, is_change): (usize, bool),
        cost: Option<&PricePartsView>,
    ) -> Option<Self> {
        let (is, held_until) = (offer.is.quotation.clone()?, offer.is.held_until.clone()?);
        Some(Self {
            id: offer.is.id.clone(),
            number,
            title: text::capitalised(&card_deviation_in_words(&is)),
            change: None,
            has_deadline: offer.request.end.is_some(),
            size: text::size(is.nodes, is.duration_seconds),
            price: is.price.as_ref().map(ToString::to_string),
            parts: card_price_in_parts(&is, cost),
            confidence: is
                .confidence
                .map(|sure| format!("{:.1} % of such jobs end in this time", sure * 100.0)),
            energy: is
                .energy
                .as_ref()
                .map(|energy| text::kilowatt_hours(energy.watt_hours)),
            held_until,
            cancellation: card_cancellation_in_words(&is, cost),
            terms: card_terms_in_words(offer, &is),
            button: card_button_in_words(&is, is_change),
            once: Uuid::now_v7(),
            is,
        })
    }
}

/// How an offer differs from what was asked for.
pub(crate) fn card_deviation_in_words(offer: &QuotationView) -> String {
    let words = card_kind_in_words(offer.kind);
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

fn card_price_in_parts(offer: &QuotationView, cost: Option<&PricePartsView>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(cost) = cost {
        parts.push(format!("{} for the nodes and the time", cost.list));
        let discounts = [
            (&cost.preemptive, "because its work may be cut"),
            (&cost.shapes, "for the number of shapes that it may have"),
        ];
        for (discount, why) in discounts {
            parts.extend(discount.as_ref().map(|off| format!("{off} less {why}")));
        }
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
        parts.push(price_difference_in_words(difference));
    }
    if let Some(fee) = &offer.fee {
        let why = offer.fee_reason.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        parts.push(format!("a fee of {fee} for the change, besides{why}"));
    }
    parts
}

/// The fee for ending the agreement is found when it is ended: a part of its price, or by how much the same request has become cheaper.
fn card_cancellation_in_words(offer: &QuotationView, cost: Option<&PricePartsView>) -> String {
    if offer.price.is_none() {
        return "Nothing is charged, also where you end it.".to_owned();
    }
    let least = cost.map(|cost| &cost.cancellation_least);
    let least = least.filter(|least| least.amount != "0");
    least.map_or_else(
        || {
            "Ending it before it starts costs nothing, unless the same has become cheaper by then: it costs the difference, and \
             never more than the price."
                .to_owned()
        },
        |least| {
            format!(
                "Ending it before it starts costs at least {least}. Where the same has become cheaper by more than that, it costs \
                 the difference, and never more than the price."
            )
        },
    )
}

fn card_terms_in_words(offer: &ReadOffer, is: &QuotationView) -> Vec<String> {
    let is_exact = (&is.ready, &is.deadline) == (&is.start, &is.end);
    let has_deadline = offer.request.end.is_some();
    let moving = match offer.request.scheduling.fix_at {
        _ if is_exact => "Its times are exact: it does not move.",
        Some(part) if part <= 0.0 => "Its time is fixed at once.",
        Some(part) if part < 1.0 => "It may move inside these times for a part of its wait.",
        _ if !has_deadline => {
            "You gave no deadline: until it starts it may move as far ahead as the provider plans."
        }
        _ => "It may move inside these times until it starts.",
    };
    let times = (Some(is.start.as_str()), is.deadline.as_str());
    let guarantees = offer
        .guarantees
        .iter()
        .map(|guarantee| card_guarantee_in_words(guarantee, times, has_deadline));
    let shape = is.may_change.as_ref().and_then(shape_changes_in_words);
    std::iter::once(moving.to_owned())
        .chain(shape)
        .chain(guarantees)
        .collect()
}

/// A guarantee of an agreement with this planned start and deadline, with the side that owes it.
fn card_guarantee_in_words(
    guarantee: &GuaranteeView,
    times: (Option<&str>, &str),
    has_deadline: bool,
) -> String {
    let by = if guarantee.is_partys {
        "You guarantee"
    } else {
        "The provider guarantees"
    };
    format!("{by}: {}", promise_in_words(guarantee, times, has_deadline))
}

fn card_button_in_words(offer: &QuotationView, is_change: bool) -> String {
    match (&offer.price, &offer.fee) {
        (Some(price), Some(fee)) if is_change && fee.amount != "0" => {
            format!("Change it: {price}, and a fee of {fee}")
        }
        (Some(price), _) if is_change => format!("Change it: {price}"),
        (None, _) if is_change => "Change it".to_owned(),
        (Some(price), _) => format!("Buy for {price}"),
        (None, _) => "Reserve this".to_owned(),
    }
}

/// How an offer differs from the request.
fn card_kind_in_words(kind: OfferKind) -> &'static str {
    match kind {
        OfferKind::Exact => "as it was asked for",
        OfferKind::Earlier => "earlier than asked for",
        OfferKind::Later => "later than asked for",
        OfferKind::Fewer => "on fewer nodes than asked for",
        OfferKind::More => "on more nodes than asked for",
        OfferKind::Shorter => "shorter than asked for",
        OfferKind::InPieces => "as it was asked for, in pieces",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarantee_names_the_side_that_owes_it() {
        let guarantee_of = |is_partys| GuaranteeView {
            name: "END".to_owned(),
            state: "NotDetermined".to_owned(),
            objective: "completed le deadline".to_owned(),
            evidence: None,
            values: Vec::new(),
            is_partys,
        };
        for (is_partys, by) in [(false, "The provider guarantees"), (true, "You guarantee")] {
            assert_eq!(
                card_guarantee_in_words(&guarantee_of(is_partys), (None, "2026-11-21T10:00:00Z"), true),
                format!("{by}: Ends by Sat 21 Nov 2026, 10:00 UTC.")
            );
        }
    }
}
