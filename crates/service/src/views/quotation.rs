//! The terms of a counter offer that can be accepted, as a flat value and as the quotation of a document.

use domain::agreement::{EnergyUse, Money, OfferTerms};
use scheduler::Time;
use schemars::JsonSchema;
use serde::Serialize;
use wsag::quotation::{Energy, Quotation};

use crate::views::agreement::PieceView;
use crate::views::agreement_document::{date_time_in_document, piece_in_document, sum_in_document};
use crate::views::money_and_time::{MoneyView, second_as_date_time};
use crate::views::schemas;
use crate::views::shape_changes::{ShapeChangesView, shape_changes_in_document};

/// The terms of a counter offer.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotationView {
    /// Its difference from the request: exact, earlier, later, fewer, more, shorter or inPieces.
    #[schemars(with = "String", extend("enum" = ["exact", "earlier", "later", "fewer", "more", "shorter", "inPieces"]))]
    pub kind: domain::agreement::OfferKind,
    /// The resource that it lies on.
    #[schemars(example = &"local")]
    pub resource: String,
    /// How many nodes.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// The duration, in seconds.
    #[schemars(range(min = 1), example = 3_600)]
    pub duration_seconds: i64,
    /// The start that it would have.
    #[schemars(with = "schemas::Instant")]
    pub start: String,
    /// The end that it would have.
    #[schemars(with = "schemas::Instant")]
    pub end: String,
    /// The pieces in which its work would be done, in order of time; none where it is done in one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<PieceView>,
    /// What may still change of its shape while it waits; none where it has one shape only, or cannot be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_change: Option<ShapeChangesView>,
    /// Earliest start of the agreement that it would become.
    #[schemars(with = "schemas::Instant")]
    pub ready: String,
    /// Latest completion of that agreement.
    #[schemars(with = "schemas::Instant")]
    pub deadline: String,
    /// φ: its deviation from the request.
    #[schemars(range(min = 0), example = 0.5)]
    pub deviation: f64,
    /// Probability that it completes in time, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1), example = 0.95)]
    pub confidence: Option<f64>,
    /// The whole price, where there are prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
    /// How much of the price is taken off because its work may be cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptive_discount: Option<MoneyView>,
    /// How much of the price is taken off for the number of shapes that the request allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes_discount: Option<MoneyView>,
    /// By how much that is more than the agreement that it replaces costs; below zero where it is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_difference: Option<MoneyView>,
    /// The fee for the change of an agreement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fee: Option<MoneyView>,
    /// Why that is as much, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"10 % of its price of 2 EUR")]
    pub fee_reason: Option<String>,
    /// The energy of its nodes, where their power is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyView>,
    /// The other domain that would carry it out, where one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<OfferingPeerView>,
}

/// Another domain that would carry out an offer.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingPeerView {
    /// Its name here.
    #[schemars(example = &"south")]
    pub name: String,
    /// Its price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
    /// What the provider adds to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<MoneyView>,
}

impl OfferingPeerView {
    fn of(terms: &OfferTerms) -> Option<Self> {
        Some(Self {
            name: terms.resource.clone(),
            price: terms.peer.as_deref()?.price.map(MoneyView::of),
            added: price_added_to_peer_quotation(terms).map(MoneyView::of),
        })
    }
}

/// The energy that nodes take.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnergyView {
    /// Watt-hours.
    #[schemars(range(min = 0), example = 500)]
    pub watt_hours: i64,
    /// Its cost for the provider, which is no part of the price.
    pub cost: MoneyView,
    /// Grams of carbon dioxide.
    #[schemars(range(min = 0), example = 175)]
    pub carbon_grams: i64,
}

impl EnergyView {
    fn of(energy: EnergyUse) -> Self {
        Self {
            watt_hours: energy.watt_hours,
            cost: MoneyView::of(energy.cost),
            carbon_grams: energy.carbon_grams,
        }
    }
}

impl QuotationView {
    /// The nodes times the seconds of all its slots.
    pub(crate) fn node_seconds(&self) -> i128 {
        if self.pieces.is_empty() {
            return i128::from(self.nodes) * i128::from(self.duration_seconds);
        }
        let at = |text: &str| {
            text.parse::<jiff::Timestamp>()
                .map_or(0, jiff::Timestamp::as_second)
        };
        let seconds = |piece: &PieceView| i128::from(at(&piece.planned_end) - at(&piece.planned_start));
        self.pieces
            .iter()
            .map(|piece| i128::from(piece.nodes) * seconds(piece))
            .sum()
    }

    pub(crate) fn of(terms: &OfferTerms) -> Self {
        let slot = terms.placement();
        let discounts = terms.discounts.unwrap_or_default();
        Self {
            kind: terms.kind,
            resource: terms.resource.clone(),
            nodes: terms.nodes(),
            duration_seconds: terms.duration(),
            start: second_as_date_time(slot.start),
            end: second_as_date_time(slot.end),
            pieces: terms.slots.pieces().iter().map(PieceView::of).collect(),
            may_change: terms
                .promise
                .as_deref()
                .and_then(|promise| promise.constraints.open_shape_changes())
                .map(ShapeChangesView::of),
            ready: second_as_date_time(terms.ready),
            deadline: second_as_date_time(terms.deadline),
            deviation: terms.deviation,
            confidence: terms.confidence,
            price: terms.price.map(MoneyView::of),
            preemptive_discount: discounts.preemptive.map(MoneyView::of),
            shapes_discount: discounts.shapes.map(MoneyView::of),
            price_difference: terms.difference.map(MoneyView::of),
            fee: terms.fee.map(MoneyView::of),
            fee_reason: terms.fee_why.clone(),
            energy: terms.energy.map(EnergyView::of),
            peer: OfferingPeerView::of(terms),
        }
    }
}

/// What we add to the price of the peer that would carry an offer out; none where that is nothing.
fn price_added_to_peer_quotation(terms: &OfferTerms) -> Option<Money> {
    let (here, there) = terms.price.zip(terms.peer.as_deref()?.price)?;
    let added = Money::new(here.micros - there.micros, here.currency);
    (added.micros != 0).then_some(added)
}

pub(crate) fn quotation_of_offer(terms: &OfferTerms, held_until: Option<Time>) -> Quotation {
    let slot = terms.placement();
    let discounts = terms.discounts.unwrap_or_default();
    Quotation {
        kind: terms.kind,
        start: date_time_in_document(slot.start),
        end: date_time_in_document(slot.end),
        nodes: terms.nodes(),
        pieces: terms.slots.pieces().iter().map(piece_in_document).collect(),
        may_change: terms
            .promise
            .as_deref()
            .and_then(|promise| shape_changes_in_document(&promise.constraints)),
        deviation: terms.deviation,
        confidence: terms.confidence,
        price: terms.price.map(sum_in_document),
        preemptive_discount: discounts.preemptive.map(sum_in_document),
        shapes_discount: discounts.shapes.map(sum_in_document),
        difference: terms.difference.map(sum_in_document),
        fee: terms.fee.map(sum_in_document),
        fee_reason: terms.fee_why.clone(),
        energy: terms.energy.map(|energy| Energy {
            watt_hours: energy.watt_hours,
            cost: sum_in_document(energy.cost),
            carbon_grams: energy.carbon_grams,
        }),
        carried_out_by: terms.peer.is_some().then(|| terms.resource.clone()),
        added: price_added_to_peer_quotation(terms).map(sum_in_document),
        held_until: held_until.map(date_time_in_document),
    }
}
