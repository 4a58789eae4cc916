//! The cost of promised slots beside the batch queue of a log: with `BESPEAK_REFERENCE_DATA` that of the log SDSC-SP2, and always
//! that of generated jobs.

use std::path::PathBuf;

use advisor::lublin;
use advisor::statistics::Summary;
use advisor::swf::SwfTrace;
use advisor::workload::Workload;
use lab::beside::{Demand, DemandScale, NodeChoice};
use lab::experiment::beside::LEADS;
use lab::experiment::month::{Month, MonthCost};

const SEEDS: [u64; 2] = [1, 2];

/// The log, if `BESPEAK_REFERENCE_DATA` names the folder where it lies.
fn trace() -> Option<Workload> {
    let file = "SDSC-SP2-1998-4.2-cln.swf.gz";
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") else {
        println!("SKIPPED: BESPEAK_REFERENCE_DATA names no folder with {file}");
        return None;
    };
    let trace = SwfTrace::open(&PathBuf::from(folder).join(file)).expect("the trace can be read");
    Some(Workload::from_trace(file, &trace))
}

/// Means over the seeds.
fn mean(costs: &[MonthCost], function: impl Fn(&MonthCost) -> f64) -> f64 {
    Summary::of(&costs.iter().map(function).collect::<Vec<_>>()).mean
}

fn costs(month: &Month, share: u32, scale: DemandScale, lead: i64, choice: NodeChoice) -> Vec<MonthCost> {
    let of_seed = |seed| month.run(lead, choice, &month.promises(seed, Demand { share, scale }));
    SEEDS.map(of_seed).to_vec()
}

#[test]
fn the_earlier_nodes_are_reserved_the_more_idle_and_the_fewer_promises_are_broken() {
    let Some(workload) = trace() else { return };
    let months = Month::median_and_busiest(&workload);
    assert_eq!(months[1].1.index, 21, "the busiest month of the log");
    let month = &months[0].1;
    for choice in [NodeChoice::Lowest, NodeChoice::BestFit] {
        let by_lead = LEADS.map(|lead| costs(month, 5, DemandScale::Jobs, lead, choice));
        for pair in by_lead.windows(2) {
            assert!(
                mean(&pair[0], MonthCost::reserved_idle) < mean(&pair[1], MonthCost::reserved_idle),
                "{choice:?}: {pair:?}"
            );
            assert!(
                mean(&pair[0], |cost| cost.broken_percent) > mean(&pair[1], |cost| cost.broken_percent),
                "{choice:?}: {pair:?}"
            );
        }
        let longest = &by_lead[LEADS.len() - 1];
        assert!(mean(longest, |cost| cost.broken_percent) < 0.1, "{longest:?}");
        let minutes = costs(month, 5, DemandScale::Minutes, LEADS[3], choice);
        assert!(
            mean(&minutes, MonthCost::reserved_idle) > 2.0 * mean(longest, MonthCost::reserved_idle),
            "short slots cost more: {minutes:?}"
        );
    }
}

#[test]
fn which_nodes_are_reserved_matters_little_beside_the_lead() {
    let Some(workload) = trace() else { return };
    let month = &Month::median_and_busiest(&workload)[0].1;
    let idle = |choice| {
        mean(
            &costs(month, 5, DemandScale::Jobs, LEADS[3], choice),
            MonthCost::reserved_idle,
        )
    };
    let (lowest, fit) = (idle(NodeChoice::Lowest), idle(NodeChoice::BestFit));
    assert!((fit - lowest).abs() < 0.25 * lowest, "{fit} against {lowest}");
}

#[test]
fn the_same_seed_gives_the_same_costs_and_dedicated_nodes_count_in_full() {
    let workload = lublin::generate_lublin_jobs(1, 80 * 86_400);
    let month = &Month::median_and_busiest(&workload)[1].1;
    let run = |choice| costs(month, 10, DemandScale::Jobs, LEADS[1], choice);
    assert_eq!(run(NodeChoice::BestFit), run(NodeChoice::BestFit));
    let hours = 30.0 * 24.0 * 16.0;
    for cost in run(NodeChoice::Dedicated(16)) {
        assert!(
            cost.reserved_idle_hours + cost.held_hours > hours - 1.0,
            "16 nodes for a month: {cost:?}"
        );
    }
}
