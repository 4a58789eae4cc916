//! The views of offers and counter offers: flat values for JSON, and the documents of WS-Agreement Negotiation, from
//! the stored words and their present state.

use domain::agreement::{EnergyUse, Money, NegotiationOffer, NegotiationRole, OfferTerms};
use planner::OfferLoss;
use scheduler::Time;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::{NegotiationItem, NegotiationOffer as OfferDocument, fresh_offers};
use wsag::quotation::{Energy, Quotation};
use wsag::refusals::Refusal;
use wsag::{Fragment, NamedValue, Violations};

use crate::service::views::agreement::PieceView;
use crate::service::views::conditions::{AttributesView, ConditionView, view_conditions};
use crate::service::views::documents::{date_time_in_document, piece_in_document, sum_in_document};
use crate::service::views::refusal::Rejection;
use crate::service::views::schemas;
use crate::service::views::values::{MoneyView, instant_as_date_time, second_as_date_time};

/// An offer or counter offer.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CounterOffer")]
pub struct OfferView {
    /// The id.
    #[schemars(example = &"019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3")]
    pub id: String,
    /// The offer or template that it answers: another offer's id, or the template.
    #[schemars(example = &"advance-reservation")]
    pub counter_offer_to: String,
    /// `NegotiationInitiator` or `NegotiationResponder`.
    #[schemars(example = &"NegotiationResponder")]
    pub creator: &'static str,
    /// Advisory, Solicited, Acceptable or Rejected.
    #[schemars(with = "schemas::OfferState")]
    pub state: &'static str,
    /// When it came or was made.
    #[schemars(with = "schemas::Instant")]
    pub created: String,
    /// From when on it is no longer taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub expires: Option<String>,
    /// What each of its nodes must have: at least so much of a number, and the architecture as it is.
    #[serde(skip_serializing_if = "AttributesView::is_empty")]
    #[schemars(with = "schemas::ResourceAttributesSchema")]
    pub attributes: AttributesView,
    /// The conditions on its nodes that are more than a least number or a word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionView>,
    /// The terms of a counter offer that can be accepted.
    #[serde(flatten)]
    pub quotation: Option<QuotationView>,
    /// Until when its nodes are held; none where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub held_until: Option<String>,
    /// The values that another round may change, each with its least and its greatest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = json!([{"of": "nodes", "min": 1, "max": 4}]))]
    pub constraints: Vec<ConstraintView>,
    /// The agreement that was made from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Uuid>,
    /// Why there is no offer, or none that can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"reason": "NO_CAPACITY_IN_WINDOW", "bindingConstraint": "no node is free", "alternatives": [], "relaxations": []}))]
    pub refusal: Option<Value>,
}

/// A value that another round may change, in the words of the requests' constraints.
#[derive(Debug, Clone, JsonSchema, Serialize)]
#[schemars(rename = "OfferConstraint")]
pub struct ConstraintView {
    /// `nodes`, `start`, `end` or `durationSeconds`.
    #[schemars(extend("enum" = ["nodes", "start", "end", "durationSeconds"]))]
    pub of: String,
    /// The least, where there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 2)]
    pub min: Option<Value>,
    /// The greatest, where there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 4)]
    pub max: Option<Value>,
}

impl ConstraintView {
    fn of(item: &NegotiationItem) -> Self {
        // Numbers are numbers in JSON, and instants are texts.
        let value = |text: &String| {
            text.parse::<u64>()
                .map_or_else(|_| Value::String(text.clone()), Value::from)
        };
        let (min, max) = &item.bounds;
        Self {
            of: item.name.clone(),
            min: min.as_ref().map(value),
            max: max.as_ref().map(value),
        }
    }
}

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
            added: price_added_to_peer_offer(terms).map(MoneyView::of),
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

/// An offer, and where it was made.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct FoundOfferView {
    /// The id of the negotiation.
    pub negotiation: Uuid,
    /// The offer.
    #[serde(flatten)]
    pub offer: OfferView,
}

/// An offer, and how it is said.
#[derive(Debug)]
pub(in crate::service) struct WordedOffer {
    pub(in crate::service) row: NegotiationOffer,
    pub(in crate::service) words: OfferDocument,
}

/// Offers as flat values, in order.
pub(in crate::service) fn view_offers(said: &[WordedOffer]) -> Vec<OfferView> {
    said.iter().map(WordedOffer::view).collect()
}

/// Offers as documents have them.
pub(in crate::service) fn documents_of_offers(said: &[WordedOffer]) -> Vec<OfferDocument> {
    said.iter().map(WordedOffer::document).collect()
}

/// An offer that cannot be accepted any more, and the fresh offers in its place.
#[derive(Debug)]
pub struct LostOffer {
    /// Why.
    pub lost: OfferLoss,
    /// The counter offers that it was answered with anew: none where its negotiation is over.
    pub(in crate::service) fresh: Vec<WordedOffer>,
}

impl LostOffer {
    /// Whether its time is over, rather than that something else has become of it.
    pub fn has_expired(&self) -> bool {
        self.lost == OfferLoss::Expired
    }

    /// Whether the service has taken it back.
    pub fn is_withdrawn(&self) -> bool {
        matches!(
            self.lost,
            OfferLoss::Withdrawn
                | OfferLoss::NoApplication
                | OfferLoss::NotReserved
                | OfferLoss::Barred(_)
                | OfferLoss::AtPeer(_)
        )
    }

    /// The fresh offers, as flat values.
    pub fn offers(&self) -> Vec<OfferView> {
        view_offers(&self.fresh)
    }

    /// The fresh offers as `bsp:FreshOffers`, for a fault; none where there are none.
    pub(in crate::service) fn fragment(&self) -> Option<Fragment> {
        (!self.fresh.is_empty()).then(|| fresh_offers(&documents_of_offers(&self.fresh)))
    }
}

/// The content of an offer, without its place in a negotiation.
pub(in crate::service) fn content_of_offer(words: &OfferDocument) -> AgreementOffer {
    AgreementOffer {
        name: words.name.clone(),
        agreement_id: None,
        context: words.context.clone(),
        terms: words.terms.clone(),
    }
}

impl WordedOffer {
    /// As a flat value.
    pub(in crate::service) fn view(&self) -> OfferView {
        let (row, items) = (&self.row, &self.words.constraints.items);
        let (attributes, conditions) = view_conditions(&self.words.terms);
        OfferView {
            id: row.name.clone(),
            counter_offer_to: self.words.offer_context.counter_offer_to.clone(),
            creator: row.creator.word(),
            state: row.state.word(),
            created: instant_as_date_time(row.created),
            expires: row.expires.map(second_as_date_time),
            attributes,
            conditions,
            quotation: row.terms.as_ref().map(QuotationView::of),
            held_until: row.expires.filter(|_| row.is_held()).map(second_as_date_time),
            constraints: match row.creator {
                NegotiationRole::Responder => items.iter().map(ConstraintView::of).collect(),
                NegotiationRole::Initiator => Vec::new(),
            },
            agreement: row.agreement,
            refusal: row
                .refusal
                .as_deref()
                .and_then(|refusal| serde_json::from_str(refusal).ok()),
        }
    }

    /// As a document's element, in the state that it has come to.
    pub(in crate::service) fn document(&self) -> OfferDocument {
        let row = &self.row;
        let mut spoken = self.words.clone();
        let context = &mut spoken.offer_context;
        if context.state != row.state {
            context.state = row.state;
            context.state_extensions = self.reason().into_iter().collect();
        }
        if let Some(expires) = row.expires {
            context.expiration_time = Some(date_time_in_document(expires));
        }
        if let Some(terms) = &row.terms {
            let held_until = row.expires.filter(|_| row.is_held());
            context
                .extensions
                .push(quotation_of_offer(terms, held_until).to_fragment());
        }
        spoken
    }

    /// Why an offer came to be rejected after its words were chosen.
    fn reason(&self) -> Option<Fragment> {
        let refusal: Value = serde_json::from_str(self.row.refusal.as_deref()?).ok()?;
        let refusal = Refusal {
            reason: wsag::refusals::Reason::parse(refusal["reason"].as_str()?)?,
            binding_constraint: refusal["bindingConstraint"].as_str().map(ToOwned::to_owned),
            cut_short: refusal["cutShort"].as_bool().unwrap_or(false),
            alternatives: Vec::new(),
            relaxations: Vec::new(),
        };
        Some(refusal.to_fragment())
    }
}

impl QuotationView {
    /// The nodes times the seconds of all its slots.
    pub(in crate::service) fn node_seconds(&self) -> i128 {
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

    fn of(terms: &OfferTerms) -> Self {
        let slot = terms.placement();
        Self {
            kind: terms.kind,
            resource: terms.resource.clone(),
            nodes: terms.nodes(),
            duration_seconds: terms.duration(),
            start: second_as_date_time(slot.start),
            end: second_as_date_time(slot.end),
            pieces: terms.slots.pieces().iter().map(PieceView::of).collect(),
            ready: second_as_date_time(terms.ready),
            deadline: second_as_date_time(terms.deadline),
            deviation: terms.deviation,
            confidence: terms.confidence,
            price: terms.price.map(MoneyView::of),
            price_difference: terms.difference.map(MoneyView::of),
            fee: terms.fee.map(MoneyView::of),
            fee_reason: terms.fee_why.clone(),
            energy: terms.energy.map(EnergyView::of),
            peer: OfferingPeerView::of(terms),
        }
    }
}

/// What we add to the price of the peer that would carry an offer out; none where that is nothing.
fn price_added_to_peer_offer(terms: &OfferTerms) -> Option<Money> {
    let (here, there) = terms.price.zip(terms.peer.as_deref()?.price)?;
    let added = Money::new(here.micros - there.micros, here.currency);
    (added.micros != 0).then_some(added)
}

fn quotation_of_offer(terms: &OfferTerms, held_until: Option<Time>) -> Quotation {
    let slot = terms.placement();
    Quotation {
        kind: terms.kind,
        start: date_time_in_document(slot.start),
        end: date_time_in_document(slot.end),
        nodes: terms.nodes(),
        pieces: terms.slots.pieces().iter().map(piece_in_document).collect(),
        deviation: terms.deviation,
        confidence: terms.confidence,
        price: terms.price.map(sum_in_document),
        difference: terms.difference.map(sum_in_document),
        fee: terms.fee.map(sum_in_document),
        fee_reason: terms.fee_why.clone(),
        energy: terms.energy.map(|energy| Energy {
            watt_hours: energy.watt_hours,
            cost: sum_in_document(energy.cost),
            carbon_grams: energy.carbon_grams,
        }),
        carried_out_by: terms.peer.is_some().then(|| terms.resource.clone()),
        added: price_added_to_peer_offer(terms).map(sum_in_document),
        held_until: held_until.map(date_time_in_document),
    }
}

/// The answers to a request in a negotiation.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct AnswersView {
    /// The possible offers, the best first.
    pub offers: Vec<OfferView>,
    /// Why there is no offer, or none that can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"reason": "NO_CAPACITY_IN_WINDOW", "bindingConstraint": "no node is free", "alternatives": [], "relaxations": []}))]
    pub refusal: Option<Value>,
}

impl AnswersView {
    /// The answer to a request of several that is wrong in itself.
    pub(in crate::service) fn wrong(violations: Violations) -> Self {
        let told = Rejection::Violations(violations.0).json();
        Self {
            offers: Vec::new(),
            refusal: serde_json::from_str(&told).ok(),
        }
    }

    /// The result of the answers to one request: the offers that can be accepted, or the reason why there are none.
    pub(in crate::service) fn of(answers: Vec<OfferView>) -> Self {
        let refusal = answers.iter().find_map(|view| view.refusal.clone());
        let offers: Vec<_> = answers
            .into_iter()
            .filter(|view| view.state != "Rejected")
            .collect();
        Self {
            refusal: refusal.filter(|_| offers.is_empty()),
            offers,
        }
    }
}
