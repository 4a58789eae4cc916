//! Candidates: free placements with their ranks.

use super::{ForeseenTimes, Resource, Task};
use crate::time::{Interval, Seconds, Time};

crate::worded! {
    /// The order of placements from better to worse, with its name in the configuration.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Objective {
        /// The earliest completion: that which is foreseen, else the end of the slot.
        #[default]
        EarliestCompletion = "earliest-completion",
        /// The lowest cost: price · nodes · seconds, and the loss that is foreseen.
        Cheapest = "cheapest",
        /// The latest start.
        LatestStart = "latest-start",
        /// The least work lost, for resources that differ in speed: of the slowest rate that is in time, and there with the fewest
        /// node-seconds of idle leads and of waiting. An idle lead is idle time before the slot on its nodes, whose nominal capacity, c = μ · (et − st)
        /// in section II of paper 003, later tasks may not be able to use; counted up to the length of the slot. It generalises
        /// the laboratory's search among single servers to resources of many nodes.
        LeastWorkLost = "least-work-lost",
    }
}

/// The order of candidates under one objective: the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Completion in seconds, cost, start in seconds negated, or the rate and then the node-seconds lost, by the objective.
    pub objective: i128,
    /// Then the earlier end of the slot.
    pub completion: Time,
    /// Then the lower id of the resource.
    pub resource: u64,
}

/// A placement that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The resource's id.
    pub resource: u64,
    /// When it would hold its nodes.
    pub slot: Interval,
    /// What is foreseen of it; by the rate where nothing is.
    pub foreseen: ForeseenTimes,
    /// Price · nodes · seconds.
    pub cost: u128,
    /// How good it is.
    pub rank: Rank,
}

/// A placement with its rank.
pub(super) fn ranked_candidate(
    objective: Objective,
    task: &Task,
    resource: &Resource,
    start: Time,
    foreseen: ForeseenTimes,
) -> Candidate {
    let cost = candidate_cost(resource.price, task.nodes, foreseen.hold);
    Candidate {
        resource: resource.id,
        slot: Interval::of(start, foreseen.hold),
        foreseen,
        cost: cost.unsigned_abs(),
        rank: candidate_rank(objective, start, foreseen, cost, resource.id),
    }
}

/// The rank of a start, given the cost of its slot.
pub(super) fn candidate_rank(
    objective: Objective,
    start: Time,
    foreseen: ForeseenTimes,
    cost: i128,
    resource: u64,
) -> Rank {
    let objective = match objective {
        Objective::Cheapest => candidate_cost_with_loss(cost, foreseen),
        Objective::LatestStart => -i128::from(start.seconds()),
        // The least work lost is found among the earliest completions.
        Objective::EarliestCompletion | Objective::LeastWorkLost => {
            i128::from(start.seconds()) + i128::from(foreseen.completion)
        }
    };
    Rank {
        objective,
        completion: start + foreseen.hold,
        resource,
    }
}

/// 32 + 32 + 63 bits at most.
pub(super) fn candidate_cost(price: u32, nodes: u32, duration: Seconds) -> i128 {
    i128::from(price) * i128::from(nodes) * i128::from(duration)
}

/// A cost with the loss that is foreseen.
pub(super) fn candidate_cost_with_loss(cost: i128, foreseen: ForeseenTimes) -> i128 {
    cost.saturating_add(foreseen.loss)
}
