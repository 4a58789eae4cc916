//! How a request may be planned, as a flat value: `bsp:Scheduling` as JSON shows it.

use wsag::scheduling::{Budget, Moldability, Preemption, Preference, Scheduling};

use crate::negotiation::request::json::{Json, Members};

/// The requester's options and preferences beyond size and window, each where there is one. They have the names, the units and
/// the order of the members of a request.
pub(in crate::negotiation) fn view_scheduling(scheduling: &Scheduling) -> Members {
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

fn view_preemption(of: &Preemption) -> Members {
    Members::default()
        .with("pieces", of.pieces)
        .with("interval", of.interval)
        .with("independent", of.independent)
}

fn view_budget(of: &Budget) -> Members {
    Members::default()
        .with("amount", wsag::scheduling::write_amount(of.amount_micros))
        .with("currency", of.currency.clone())
}

fn view_weights(of: &Preference) -> Members {
    Members::default()
        .with_any("start", of.start)
        .with_any("size", of.size)
        .with_any("duration", of.duration)
        .with_any("price", of.price)
}
