//! On the paper's experiment the single tree loses less work than the published searches, looking at fewer entries.

use lab::experiment::servers::scenario::{Deadlines, GROUP, LEVELS, Scenario, ScenarioResult};
use lab::heterogeneous::{FirstFitAware, FirstFitUnaware, Search, SingleTree, TwoDimensional};

const SEED: u64 = 1;
/// Of which half is counted.
const JOBS: usize = 8_000;

/// Means of three runs.
#[derive(Debug, Clone, Copy)]
struct Means {
    loss: f64,
    searched: f64,
    updated: f64,
}

fn play<S: Search>(load: u32, deadlines: Deadlines, search: impl Fn() -> S) -> Means {
    let scenario = Scenario {
        level: LEVELS.len() - 1,
        group: GROUP,
        load,
        deadlines,
        jobs: JOBS,
    };
    let outcomes = [0, 1, 2].map(|batch| scenario.play(search(), SEED, batch));
    let mean = |function: fn(&ScenarioResult) -> f64| outcomes.iter().map(function).sum::<f64>() / 3.0;
    Means {
        loss: mean(|o| o.loss),
        searched: mean(|o| o.searched),
        updated: mean(|o| o.updated),
    }
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn it_loses_less_work_than_the_published_searches_for_fewer_operations() {
    for (load, deadlines) in [
        (70, Deadlines::Size),
        (90, Deadlines::Size),
        (90, Deadlines::SlowSize),
        (110, Deadlines::Size),
    ] {
        let unaware = play(load, deadlines, FirstFitUnaware::default);
        let aware = play(load, deadlines, FirstFitAware::default);
        let published = play(load, deadlines, TwoDimensional::default);
        assert!(aware.loss < unaware.loss, "{aware:?} {unaware:?}");
        let ours = play(load, deadlines, SingleTree::default);
        for other in [aware, published] {
            assert!(ours.loss < 0.75 * other.loss, "at {load}: {ours:?} {other:?}");
            assert!(ours.searched < other.searched, "at {load}: {ours:?} {other:?}");
        }
        assert!(ours.updated < published.updated / 3.0, "at {load}: {ours:?}");
    }
}
