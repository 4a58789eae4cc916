//! How a request may be planned, as a flat value: `bsp:Scheduling` as JSON shows it.

use serde::Serialize;
use wsag::scheduling::{Budget, Moldability, Preemption, Preference, Scheduling};

use super::values::MoneyView;

/// The requester's options and preferences beyond size and window. Everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingView {
    /// How long it takes on how many nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moldability: Option<MoldabilityView>,
    /// How it may be cut in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionView>,
    /// Its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<MoneyView>,
    /// The largest φ that alternatives may have: how far they lie outside the window, in durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_deviation: Option<f64>,
    /// Fraction of the wait, 0 to 1, after which the start is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix_at: Option<f64>,
    /// The weights in the ranking of alternatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightsView>,
}

/// Duration as a function of the number of nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MoldabilityView {
    /// `intercept − slope · nodes` seconds.
    Linear {
        /// Seconds.
        intercept: f64,
        /// Seconds per node.
        slope: f64,
    },
    /// Seconds for each allowed number of nodes.
    Table(Vec<TableEntryView>),
    /// A number of node-seconds, for any number of nodes.
    ConstantWork(f64),
}

/// A line of a table of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableEntryView {
    /// On this number of nodes
    pub nodes: u32,
    /// it takes this number of seconds.
    pub duration_seconds: u32,
}

/// How a job may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionView {
    /// Most pieces.
    pub pieces: u32,
    /// Cuts are at multiples of this share of the work.
    pub interval: f64,
    /// Whether each piece may have its own number of nodes.
    pub independent: bool,
}

/// Weights, each from 0 on; one that is absent is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WeightsView {
    /// Of an early start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// Of many nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// Of a short duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Of a low price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

impl SchedulingView {
    pub(in crate::negotiation) fn of(scheduling: &Scheduling) -> Self {
        Self {
            moldability: scheduling.moldability.as_ref().map(MoldabilityView::of),
            preemption: scheduling.preemption.as_ref().map(PreemptionView::of),
            budget: scheduling.budget.as_ref().map(amount),
            max_deviation: scheduling.max_deviation,
            fix_at: scheduling.fix_at,
            weights: scheduling.preference.as_ref().map(WeightsView::of),
        }
    }
}

impl MoldabilityView {
    fn of(moldability: &Moldability) -> Self {
        match moldability {
            Moldability::Linear { intercept, slope } => Self::Linear {
                intercept: *intercept,
                slope: *slope,
            },
            Moldability::Table(entries) => {
                let entry = |(nodes, duration_seconds): &(u32, u32)| TableEntryView {
                    nodes: *nodes,
                    duration_seconds: *duration_seconds,
                };
                Self::Table(entries.iter().map(entry).collect())
            }
            Moldability::ConstantWork(node_seconds) => Self::ConstantWork(*node_seconds),
        }
    }
}

impl PreemptionView {
    fn of(preemption: &Preemption) -> Self {
        Self {
            pieces: preemption.pieces,
            interval: preemption.interval,
            independent: preemption.independent,
        }
    }
}

impl WeightsView {
    fn of(preference: &Preference) -> Self {
        Self {
            start: preference.start,
            size: preference.size,
            duration: preference.duration,
            price: preference.price,
        }
    }
}

fn amount(budget: &Budget) -> MoneyView {
    MoneyView {
        amount: wsag::scheduling::write_amount(budget.amount_micros),
        currency: budget.currency.clone(),
    }
}
