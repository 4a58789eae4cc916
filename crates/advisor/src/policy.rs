//! The policies of a provider: how requests are planned, and the names of it.

use std::fmt;

use scheduler::schedule::{BUDGET, DecisionRule, TRIES};
use scheduler::{Fraction, Order, Schedule};

/// The orders that are compared.
pub const ORDERS: [Order; 6] = [
    Order::Edf,
    Order::Lff,
    Order::Mdf,
    Order::Bjf,
    Order::Brf,
    Order::Fifo,
];
/// After which parts of the wait requests are fixed.
const FIXINGS: [Option<Fraction>; 3] = [None, Some(Fraction::percent(50)), Some(Fraction::percent(0))];
/// How far outside the window alternatives may lie.
pub const THRESHOLDS: [Option<Fraction>; 3] =
    [None, Some(Fraction::percent(50)), Some(Fraction::percent(100))];

/// Which alternatives the provider makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternatives {
    /// Largest deviation φ.
    pub phi_max: Fraction,
    /// Only alternatives that start before the ready time (paper 001).
    pub earlier_only: bool,
}

/// How a provider plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Order of the waiting requests.
    pub order: Order,
    /// What is decided about a request that fits the plan as it stands.
    pub decision: DecisionRule,
    /// Whether a request that the order refuses is tried in others, within the budget of a decision.
    pub portfolio: bool,
    /// After which part of the wait a flexible request is fixed; `None` for never.
    pub fixing: Option<Fraction>,
    /// Alternatives after a refusal, if any.
    pub alternatives: Option<Alternatives>,
}

impl Policy {
    /// Only an order, as the papers have it: decided by algorithm 1, nothing is fixed, and a refusal is the end of it.
    pub fn of(order: Order) -> Self {
        Self {
            order,
            decision: DecisionRule::Published,
            portfolio: false,
            fixing: None,
            alternatives: None,
        }
    }

    /// A resource of `capacity` nodes that is planned in this way.
    pub(crate) fn schedule(&self, capacity: u32) -> Schedule {
        let schedule = Schedule::new(capacity, self.order)
            .deciding(self.decision)
            .fixing(self.fixing);
        if self.portfolio {
            schedule.budgeted(Some(BUDGET)).trying(TRIES)
        } else {
            schedule
        }
    }
}

/// The policies that are compared, all by one decision rule: all combinations of six orders, three fixings and three thresholds.
pub fn compared_policies(decision: DecisionRule) -> Vec<Policy> {
    let mut policies = combine_policies(&ORDERS, &FIXINGS, &THRESHOLDS);
    for policy in &mut policies {
        policy.decision = decision;
    }
    policies
}

/// All combinations of orders, of fixing, and of how far alternatives may lie.
pub(crate) fn combine_policies(
    orders: &[Order],
    fixings: &[Option<Fraction>],
    thresholds: &[Option<Fraction>],
) -> Vec<Policy> {
    let mut policies = Vec::new();
    for &order in orders {
        for &fixing in fixings {
            policies.extend(thresholds.iter().map(|threshold| Policy {
                fixing,
                alternatives: threshold.map(|phi_max| Alternatives {
                    phi_max,
                    earlier_only: false,
                }),
                ..Policy::of(order)
            }));
        }
    }
    policies
}

/// A policy in words.
pub struct PolicyName<'a>(pub &'a Policy);

impl fmt::Display for PolicyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "order {}, fixed {}, alternatives {}",
            policy_order_name(self.0.order),
            fixing_of_policy(self.0.fixing),
            threshold_of_policy(self.0.alternatives)
        )
    }
}

/// The name of an order in the configuration and on the command line.
pub fn policy_order_name(order: Order) -> &'static str {
    match order {
        Order::Fifo => "fifo",
        Order::Shuffle { .. } => "shuffle",
        Order::Bjf => "bjf",
        Order::Lff => "lff",
        Order::Edf => "edf",
        Order::Mdf => "mdf",
        Order::Brf => "brf",
    }
}

/// When requests are fixed, in words.
pub(crate) fn fixing_of_policy(fixing: Option<Fraction>) -> String {
    match fixing {
        None => "never".to_owned(),
        Some(Fraction { numerator: 0, .. }) => "at once".to_owned(),
        Some(part) => format!("after {} % of the wait", whole_percent(part)),
    }
}

/// How far alternatives may lie, in words.
pub(crate) fn threshold_of_policy(alternatives: Option<Alternatives>) -> String {
    alternatives.map_or("none".to_owned(), |alternatives| {
        format!("up to {} %", whole_percent(alternatives.phi_max))
    })
}

/// Whole, as those of the configuration and of the policies are.
pub(crate) fn whole_percent(part: Fraction) -> u32 {
    100 * part.numerator / part.denominator.max(1)
}

/// The keys of `[scheduling]` that make a policy.
pub(crate) fn policy_settings(policy: &Policy) -> String {
    let fixing = policy.fixing.map_or(String::new(), |part| {
        format!("fix_after_percent = {}\n", whole_percent(part))
    });
    format!(
        "order = \"{}\"\n{fixing}alternatives_percent = {}\n",
        policy_order_name(policy.order),
        policy
            .alternatives
            .map_or(0, |alternatives| whole_percent(alternatives.phi_max))
    )
}
