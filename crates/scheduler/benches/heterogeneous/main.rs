//! The searches among idle periods of heterogeneous servers beside each other, on the paper's experiment.
//!
//! `cargo bench -p scheduler --bench heterogeneous -- [JOBS [RUNS [LEVEL [GROUP [control]]]]]`: jobs of a run (default
//! 20,000), runs of different seeds (5), level of heterogeneity 0..=4 (4), servers in each of three groups (40), and the looser
//! deadlines. For loads from 0.3 to 1.1 it prints the share of work lost with half a 95 % interval, the waiting, the entries looked
//! at, and the time of a decision. `BestFit` is an exact best fit by plain scan: what the choices of a single descent are
//! measured against.

mod protocol;

use protocol::{Outcome, Run};
use rustix::time::{ClockId, clock_gettime};
use scheduler::heterogeneous::{
    Choice, Demand, FirstFitAware, FirstFitUnaware, IdlePeriod, Search, SingleTree, TwoDimensional,
};

/// The slowest class; in it the least idle time left over.
#[derive(Default)]
struct BestFit {
    lists: Vec<Vec<IdlePeriod>>,
}

impl Search for BestFit {
    fn open(&mut self, classes: usize) {
        self.lists.resize(classes, Vec::new());
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, _updated: &mut u64) {
        self.lists[class].push(period);
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, _updated: &mut u64) {
        self.lists[class].retain(|p| *p != period);
    }

    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod> {
        self.lists.iter().zip(demands).find_map(|(list, demand)| {
            *searched += list.len() as u64;
            let demand = demand.as_ref()?;
            let feasible = list.iter().filter(|p| demand.start_in(**p).is_some());
            feasible
                .min_by_key(|p| (p.duration(), p.start, p.server))
                .copied()
        })
    }
}

/// Thread CPU time.
fn clock() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

fn play(name: &str, run: Run) -> Outcome {
    match name {
        "FF-HU" => run.play(FirstFitUnaware::new(), &clock),
        "FF-HA" => run.play(FirstFitAware::new(), &clock),
        "FF-HA+" => run.play(TwoDimensional::new(), &clock),
        "EarliestStart" => run.play(SingleTree::new(Choice::EarliestStart), &clock),
        "NoLead" => run.play(SingleTree::new(Choice::NoLead), &clock),
        "LatestPeriod" => run.play(SingleTree::new(Choice::LatestPeriod), &clock),
        _ => run.play(BestFit::default(), &clock),
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is told how much to do")]
#[expect(clippy::cast_precision_loss, reason = "a few runs")]
fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let number = |k: usize, default: usize| arguments.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (jobs, runs) = (number(0, 20_000), number(1, 5).max(1));
    println!(
        "{:4} {:14} {:>18} {:>8} {:>9} {:>9} {:>9} {:>8}",
        "load", "search", "work lost", "wait h", "periods", "searched", "updated", "ns"
    );
    for load in [0.3, 0.5, 0.7, 0.9, 1.1] {
        for name in [
            "FF-HU",
            "FF-HA",
            "FF-HA+",
            "EarliestStart",
            "NoLead",
            "LatestPeriod",
            "BestFit",
        ] {
            let outcomes: Vec<_> = (1..=runs as u64)
                .map(|seed| {
                    let run = Run {
                        level: number(2, 4).min(protocol::LEVELS.len() - 1),
                        group: number(3, 40),
                        load,
                        jobs,
                        control: arguments.get(4).is_some(),
                        seed,
                    };
                    play(name, run)
                })
                .collect();
            let mean = Outcome::mean(&outcomes);
            let loss = mean.loss;
            let squares: f64 = outcomes.iter().map(|o| (o.loss - loss).powi(2)).sum();
            // Student's t for few runs is larger; the normal 1.96 is enough to see what is noise.
            let half = 1.96 * (squares / (runs.max(2) - 1) as f64 / runs as f64).sqrt();
            println!(
                "{load:<4} {name:14} {loss:>9.5} ±{half:.5} {:>8.2} {:>9.0} {:>9.1} {:>9.1} {:>8.0}",
                mean.waiting, mean.periods, mean.searched, mean.updated, mean.nanoseconds,
            );
        }
    }
}
