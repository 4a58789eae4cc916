//! Guarantee terms and their assessment.

use serde::{Deserialize, Serialize};

use super::GuaranteeState;

/// A guarantee term of an agreement with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarantee {
    /// Name of the term.
    pub name: String,
    /// The objective, in the expression language of our terms.
    pub objective: String,
    /// The term counts only where this holds.
    pub qualifying_condition: Option<String>,
    /// State of the term.
    pub state: GuaranteeState,
    /// What the state was found from.
    pub evidence: Option<String>,
}

/// What the expressions of a guarantee may ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {}

impl Facts {
    /// The facts of an agreement.
    pub fn of(_agreement: &super::Agreement) -> Self {
        Self {}
    }
}

/// Finds the state of a guarantee from the facts.
pub fn assess(_guarantee: &mut Guarantee, _facts: &Facts) {}
