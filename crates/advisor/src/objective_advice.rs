//! How much work a domain whose resources differ in rate refuses by the earliest completion and by the least work lost (paper 003), on
//! the jobs of a log.
//!
//! The jobs are submitted as much faster as the resources do more work in a second than the nodes of the log. Half of them can wait, as
//! where policies are compared. Nothing that is placed moves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use scheduler::domain::{Domain, Objective, Resource, Task};
use scheduler::{Interval, Order, Rate, SlotTree, Time, counted};
use serde_json::{Value, json};

use crate::advice::{SIGNIFICANCE, chance_of_advice};
use crate::flexible::{FlexibleRun, draw_flexible_jobs, flexible_asks};
use crate::replay::ReplayAsk;
use crate::statistics::{Summary, chance_of_mean};
use crate::workers::Workers;
use crate::workload::Window;

/// The index of φ 100 % among the lengths of flexible intervals.
const PHI: usize = 2;
/// The objectives that are compared.
const OBJECTIVES: [Objective; 2] = [Objective::EarliestCompletion, Objective::LeastWorkLost];

/// The resources of a provider: the rate and the nodes of each.
pub type RatedNodes = [(Rate, u32)];

/// The work that is refused by each objective, in percent of that asked for, window by window.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectiveScore {
    rates: usize,
    earliest: Vec<f64>,
    least_lost: Vec<f64>,
}

/// Plays every window on the resources by both objectives; none where all have one rate.
pub fn score_objectives_for_advice(
    capacity: u32,
    windows: &[Window],
    seed: u64,
    workers: &Workers,
    load: u32,
    resources: &RatedNodes,
) -> Option<ObjectiveScore> {
    let mut rates: Vec<Rate> = resources.iter().map(|(rate, _)| *rate).collect();
    rates.sort_unstable();
    rates.dedup();
    if rates.len() < 2 {
        return None;
    }
    let work: u64 = resources
        .iter()
        .map(|(rate, nodes)| u64::from(rate.millionths()) * u64::from(*nodes))
        .sum();
    let log = u64::from(capacity) * u64::from(Rate::REFERENCE.millionths());
    let load = u32::try_from((u64::from(load) * work).div_ceil(log.max(1))).unwrap_or(u32::MAX);
    let tasks: Vec<(&Window, Objective)> = (windows.iter())
        .flat_map(|window| OBJECTIVES.map(|objective| (window, objective)))
        .collect();
    let refused = workers.map(&tasks, |(window, objective)| {
        let run = FlexibleRun::flexible(load, PHI, Order::Edf);
        let asks = flexible_asks(window, &draw_flexible_jobs(seed, window), &run);
        refused_percent(resources, *objective, &asks)
    });
    let of = |at: usize| {
        refused
            .iter()
            .copied()
            .skip(at)
            .step_by(OBJECTIVES.len())
            .collect()
    };
    Some(ObjectiveScore {
        rates: rates.len(),
        earliest: of(0),
        least_lost: of(1),
    })
}

/// The work that is refused on resources by an objective, in percent of that of all requests.
fn refused_percent(resources: &RatedNodes, objective: Objective, asks: &[ReplayAsk]) -> f64 {
    let Some(end) = asks.iter().map(|ask| ask.request.deadline).max() else {
        return 0.0;
    };
    let planned = (0..).zip(resources).map(|(id, (rate, nodes))| {
        let resource = Resource {
            id,
            rate: *rate,
            price: 0,
            attributes: BTreeMap::new(),
        };
        (resource, SlotTree::new(*nodes))
    });
    let mut domain = Domain::new(Interval::new(Time(0), end + 1), planned.collect());
    let (mut asked, mut refused) = (0.0, 0.0);
    for ReplayAsk { request, .. } in asks {
        for id in 0..resources.len() as u64 {
            domain.change(id, |plan| (plan.forget(request.submitted), Vec::new()));
        }
        domain.advance(request.submitted);
        let task = Task {
            nodes: request.nodes,
            work: request.duration,
            window: request.window(),
            requires: Vec::new(),
            except: Vec::new(),
            forecasts: None,
        };
        let area = request.area() as f64;
        asked += area;
        let Ok(best) = domain.decide(&task, objective) else {
            refused += area;
            continue;
        };
        let reserve = |plan: &mut SlotTree| (plan.reserve(best.slot, request.nodes).is_ok(), vec![best.slot]);
        let taken = domain.change(best.resource, reserve);
        debug_assert_eq!(taken, Some(true), "the place found is free");
    }
    100.0 * refused / f64::max(asked, 1.0)
}

impl ObjectiveScore {
    /// How much less of the work is refused by the least work lost, in percentage points.
    fn less(&self) -> Summary {
        Summary::of_differences(&self.earliest, &self.least_lost)
    }

    pub(crate) fn text(&self) -> String {
        let less = self.less();
        let chance = chance_of_mean(&less);
        let mut text = format!(
            "\nResources of {}, with nothing moved:\n",
            counted(self.rates, "rate")
        );
        let refused = [
            ("earliest-completion", &self.earliest),
            ("least-work-lost", &self.least_lost),
        ];
        for (objective, refused) in refused {
            // Writing to a string does not fail.
            let refused = format!("{:.2}", Summary::of(refused));
            let _ = writeln!(text, "  {objective:34} {refused:>20} % of the work refused");
        }
        let judged = if chance < SIGNIFICANCE {
            "significant"
        } else {
            "not significant"
        };
        let _ = writeln!(
            text,
            "  {:34} {:>20} less   p {:7} {judged}",
            "",
            format!("{less:.2}"),
            chance_of_advice(chance)
        );
        text
    }

    pub(crate) fn json(&self) -> Value {
        let less = self.less();
        json!({
            "rates": self.rates,
            "refused_percent": {
                "earliest-completion": Summary::of(&self.earliest).mean,
                "least-work-lost": Summary::of(&self.least_lost).mean,
            },
            "less": less.mean,
            "less_confidence_95": less.confidence,
            "chance": chance_of_mean(&less),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::Request;

    /// A request for one node and so many seconds of work, from 0 to a deadline.
    fn ask(id: u64, work: i64, deadline: i64) -> ReplayAsk {
        ReplayAsk::plain(Request {
            id,
            submitted: Time(0),
            ready: Time(0),
            deadline: Time(deadline),
            duration: work,
            nodes: 1,
            revenue: 0,
        })
    }

    #[test]
    fn fast_nodes_are_left_to_work_that_needs_them() {
        let half = Rate::from_millionths(500_000).unwrap();
        let resources = [(half, 1), (Rate::REFERENCE, 1)];
        // The first has time for the slow node, the second has not: with the fast one taken, it is refused, a third of the work.
        let asks = [ask(0, 100, 200), ask(1, 50, 50)];
        let refused = |objective| refused_percent(&resources, objective, &asks);
        assert!((refused(Objective::EarliestCompletion) - 100.0 / 3.0).abs() < 1e-9);
        assert!(refused(Objective::LeastWorkLost).abs() < 1e-9);
    }

    #[test]
    fn there_is_nothing_to_compare_where_all_have_one_rate() {
        let workers = Workers {
            threads: 1,
            progress: &|_, _| {},
        };
        let score = |resources: &RatedNodes| score_objectives_for_advice(8, &[], 1, &workers, 100, resources);
        assert_eq!(score(&[(Rate::REFERENCE, 4), (Rate::REFERENCE, 8)]), None);
        let half = Rate::from_millionths(500_000).unwrap();
        assert_eq!(
            score(&[(Rate::REFERENCE, 4), (half, 8)]).map(|score| score.rates),
            Some(2)
        );
    }
}
