//! On the paper's experiment the single tree loses less work than the published searches, looking at fewer entries.

#[path = "../benches/heterogeneous/protocol.rs"]
mod protocol;

use protocol::{Outcome, Run};
use scheduler::heterogeneous::{Choice, FirstFitAware, FirstFitUnaware, Search, SingleTree, TwoDimensional};

/// The mean of three runs.
fn play<S: Search>(load: f64, control: bool, search: impl Fn() -> S) -> Outcome {
    let outcomes = [1, 2, 3].map(|seed| {
        let run = Run {
            level: protocol::LEVELS.len() - 1,
            group: 40,
            load,
            jobs: 8_000,
            control,
            seed,
        };
        run.play(search(), &|| 0)
    });
    Outcome::mean(&outcomes)
}

#[test]
fn it_loses_less_work_than_the_published_searches_for_fewer_operations() {
    for (load, control) in [(0.7, false), (0.9, false), (0.9, true), (1.1, false)] {
        let unaware = play(load, control, FirstFitUnaware::new);
        let aware = play(load, control, FirstFitAware::new);
        let published = play(load, control, TwoDimensional::new);
        assert!(aware.loss < unaware.loss, "{aware:?} {unaware:?}");
        for choice in [Choice::EarliestStart, Choice::NoLead, Choice::LatestPeriod] {
            let ours = play(load, control, || SingleTree::new(choice));
            for other in [aware, published] {
                assert!(
                    ours.loss < 0.75 * other.loss,
                    "{choice:?} at {load}: {ours:?} {other:?}"
                );
                assert!(
                    ours.searched < other.searched,
                    "{choice:?} at {load}: {ours:?} {other:?}"
                );
            }
            assert!(
                ours.updated < published.updated / 3.0,
                "{choice:?} at {load}: {ours:?}"
            );
        }
        let earliest = play(load, control, || SingleTree::new(Choice::EarliestStart));
        let default = play(load, control, || SingleTree::new(Choice::default()));
        assert!(default.loss < 0.75 * earliest.loss, "{default:?} {earliest:?}");
    }
}
