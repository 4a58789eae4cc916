//! How a request may be planned, as a flat value: `bsp:Scheduling` as JSON shows it.

use wsag::budget::Budget;
use wsag::scheduling::{Moldability, Preemption, Preference, Scheduling};

use crate::service::codec::json::{Json, Members};

/// The requester's options and preferences beyond size and window, each where there is one. They have the names, the units and
/// the order of the members of a request.
pub(in crate::service) fn view_scheduling(scheduling: &Scheduling) -> Members {
    Members::default()
        .holding_any(
            "moldability",
            scheduling.moldability.as_ref().map(view_moldability),
        )
        .holding_any("preemption", scheduling.preemption.as_ref().map(view_preemption))
        .holding_any("budget", scheduling.budget.as_ref().map(view_budget))
        .with_any("maxDeviation", scheduling.max_deviation)
        .with_any("fixAt", scheduling.fix_at)
        .holding_any("weights", scheduling.preference.as_ref().map(view_weights))
        .with_any("resource", scheduling.resource.as_deref())
}

/// Duration as a function of the number of nodes.
fn view_moldability(law: &Moldability) -> Members {
    let empty = Members::default();
    match law {
        Moldability::Linear { intercept, slope } => {
            let law = Members::default()
                .with("intercept", *intercept)
                .with("slope", *slope);
            empty.holding("linear", law)
        }
        Moldability::Table(entries) => {
            let entry = |(nodes, seconds): &(u32, u32)| {
                Members::default()
                    .with("nodes", *nodes)
                    .with("durationSeconds", *seconds)
            };
            empty.holding("table", entries.iter().map(entry).collect::<Json>())
        }
        Moldability::ConstantWork(node_seconds) => empty.with("constantWork", *node_seconds),
    }
}

fn view_preemption(preemption: &Preemption) -> Members {
    Members::default()
        .with("pieces", preemption.pieces)
        .with("interval", preemption.interval)
        .with("independent", preemption.independent)
}

fn view_budget(budget: &Budget) -> Members {
    Members::default()
        .with("amount", wsag::budget::write_amount(budget.amount_micros))
        .with("currency", budget.currency.clone())
}

fn view_weights(preference: &Preference) -> Members {
    Members::default()
        .with_any("start", preference.start)
        .with_any("size", preference.size)
        .with_any("duration", preference.duration)
        .with_any("price", preference.price)
}
