//! The answers to a request in a negotiation, as a flat value.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use wsag::Violations;

use crate::views::offer::OfferView;
use crate::views::rejection::Rejection;

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
    pub(crate) fn wrong(violations: Violations) -> Self {
        let told = Rejection::Violations(violations.0).json();
        Self {
            offers: Vec::new(),
            refusal: serde_json::from_str(&told).ok(),
        }
    }

    /// The result of the answers to one request: the offers that can be accepted, or the reason why there are none.
    pub(crate) fn of(answers: Vec<OfferView>) -> Self {
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
