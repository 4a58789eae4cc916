//! The guarantees of an agreement as flat values.

use domain::agreement::{Compensation, Guarantee, GuaranteeState, Money, Obligated};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::money_and_time::MoneyView;
use crate::views::schemas;

/// A guarantee term and its state.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct GuaranteeView {
    /// The name of the term.
    #[schemars(example = &"START")]
    pub name: String,
    /// The state.
    #[schemars(with = "schemas::GuaranteeState")]
    pub state: String,
    /// The objective, an expression.
    #[schemars(example = &"completed le deadline")]
    pub objective: String,
    /// The data that decided the state.
    #[schemars(example = &"completed 2026-11-21T08:30:02Z, deadline 2026-11-21T12:00:00Z")]
    pub evidence: Option<String>,
    /// What is paid where it is violated or fulfilled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueView>,
    /// Whether its party owes it, and not the provider. For pages alone.
    #[serde(skip)]
    pub is_partys: bool,
}

impl GuaranteeView {
    /// The values that were paid, or that can still come to be.
    pub fn values_at_stake(&self) -> impl Iterator<Item = &ValueView> {
        let is_over = |value: &ValueView| match GuaranteeState::from_word(&self.state) {
            Some(GuaranteeState::Fulfilled) => value.kind == PENALTY,
            Some(GuaranteeState::Violated) => value.kind == REWARD,
            _ => false,
        };
        self.values
            .iter()
            .filter(move |value| value.paid > 0 || !is_over(value))
    }
}

/// A penalty or reward of a guarantee.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "GuaranteeValue")]
pub struct ValueView {
    /// `penalty` where the guarantee is violated, `reward` where it is fulfilled.
    #[schemars(extend("enum" = ["penalty", "reward"]))]
    pub kind: String,
    /// The amount each time, for the price of this agreement.
    pub amount: MoneyView,
    /// Paid again after this number of seconds; none for once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 60)]
    pub every_seconds: Option<i64>,
    /// How often it has been paid.
    #[schemars(range(min = 0), example = 0)]
    pub paid: i64,
}

/// The kind of a value that is paid where the guarantee is violated.
const PENALTY: &str = "penalty";
/// The kind of a value that is paid where it is fulfilled.
const REWARD: &str = "reward";

/// The guarantees of an agreement with this price.
pub(crate) fn view_guarantees(guarantees: &[Guarantee], price: Option<Money>) -> Vec<GuaranteeView> {
    let view = |guarantee: &Guarantee| GuaranteeView {
        name: guarantee.name.clone(),
        state: guarantee.state.word().to_owned(),
        objective: guarantee.objective.clone(),
        evidence: guarantee.evidence.clone(),
        values: view_guarantee_values(guarantee, price),
        is_partys: guarantee.values.obligated == Obligated::Consumer,
    };
    guarantees.iter().map(view).collect()
}

/// The values of a guarantee of an agreement with this price.
fn view_guarantee_values(guarantee: &Guarantee, price: Option<Money>) -> Vec<ValueView> {
    let value = |kind: &str, compensation: &Compensation| {
        Some(ValueView {
            kind: kind.to_owned(),
            amount: MoneyView::of(compensation.worth.of(price)?),
            every_seconds: compensation.every,
            paid: compensation.paid,
        })
    };
    let penalties = guarantee.values.penalties.iter();
    let rewards = guarantee.values.rewards.iter();
    let penalties = penalties.filter_map(|penalty| value(PENALTY, penalty));
    penalties
        .chain(rewards.filter_map(|reward| value(REWARD, reward)))
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::agreement::Currency;

    use super::*;

    #[test]
    fn what_cannot_come_to_be_paid_any_more_is_at_stake_no_more() {
        let value = |kind: &str, paid| ValueView {
            kind: kind.to_owned(),
            amount: MoneyView::of(Money::new(1, Currency::parse("EUR").unwrap())),
            every_seconds: None,
            paid,
        };
        for (state, paid, expected) in [
            (GuaranteeState::NotDetermined, 0, vec![PENALTY, REWARD]),
            (GuaranteeState::Violated, 0, vec![PENALTY]),
            (GuaranteeState::Fulfilled, 0, vec![REWARD]),
            (GuaranteeState::Fulfilled, 1, vec![PENALTY, REWARD]),
        ] {
            let view = GuaranteeView {
                name: "START".to_owned(),
                state: state.word().to_owned(),
                objective: String::new(),
                evidence: None,
                values: vec![value(PENALTY, paid), value(REWARD, 0)],
                is_partys: false,
            };
            let kinds: Vec<_> = view.values_at_stake().map(|value| &value.kind).collect();
            assert_eq!(kinds, expected, "{state}, paid {paid} times");
        }
    }
}
