//! Offers and counter offers as flat values.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::negotiations::NegotiationItem;

use crate::views::conditions::{AttributesView, ConditionView};
use crate::views::quotation::QuotationView;
use crate::views::schemas;

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
    pub constraints: Vec<OfferConstraintView>,
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
pub struct OfferConstraintView {
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

impl OfferConstraintView {
    pub(crate) fn of(item: &NegotiationItem) -> Self {
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

/// An offer, and where it was made.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct FoundOfferView {
    /// The id of the negotiation.
    pub negotiation: Uuid,
    /// The offer.
    #[serde(flatten)]
    pub offer: OfferView,
}
