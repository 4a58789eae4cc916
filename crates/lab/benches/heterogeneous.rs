//! The searches among idle periods of heterogeneous servers beside each other, on the paper's experiment.
//!
//! `cargo bench -p lab --bench heterogeneous -- [JOBS [RUNS [LEVEL [GROUP [control]]]]]`: jobs of a run (default 20,000), runs of
//! different draws (5), level of heterogeneity 0..=4 (4), servers in each of three groups (40), and the looser deadlines. For
//! loads from 0.3 to 1.1 it prints the share of work lost with half a 95 % interval, the waiting, the entries looked at, and the
//! time of a decision. `BestFit` is an exact best fit by plain scan: the standard for the choices of a single descent.

use advisor::statistics::Summary;
use lab::experiment::servers::protocol::{GROUP, LEVELS, Outcome, Scenario};
use scheduler::heterogeneous::{
    Choice, Demand, FirstFitAware, FirstFitUnaware, IdlePeriod, Search, SingleTree, TwoDimensional,
};

/// Offered loads in percent.
const LOADS: [u32; 5] = [30, 50, 70, 90, 110];
/// Of the draws, as `bespeak-lab simulate` has it by default.
const SEED: u64 = 1;

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

fn play(name: &str, scenario: &Scenario, batch: u64) -> Outcome {
    match name {
        "FF-HU" => scenario.play(FirstFitUnaware::new(), SEED, batch),
        "FF-HA" => scenario.play(FirstFitAware::new(), SEED, batch),
        "FF-HA+" => scenario.play(TwoDimensional::new(), SEED, batch),
        "EarliestStart" => scenario.play(SingleTree::new(Choice::EarliestStart), SEED, batch),
        "NoLead" => scenario.play(SingleTree::new(Choice::NoLead), SEED, batch),
        "LatestPeriod" => scenario.play(SingleTree::new(Choice::LatestPeriod), SEED, batch),
        _ => scenario.play(BestFit::default(), SEED, batch),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let number = |k: usize, default: u32| arguments.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    println!(
        "{:4} {:14} {:>18} {:>8} {:>9} {:>9} {:>9} {:>8}",
        "load", "search", "work lost %", "wait h", "periods", "searched", "updated", "ns"
    );
    for load in LOADS {
        let scenario = Scenario {
            level: (number(2, 4) as usize).min(LEVELS.len() - 1),
            group: number(3, GROUP),
            load,
            control: arguments.get(4).is_some(),
            jobs: number(0, 20_000) as usize,
        };
        for name in [
            "FF-HU",
            "FF-HA",
            "FF-HA+",
            "EarliestStart",
            "NoLead",
            "LatestPeriod",
            "BestFit",
        ] {
            let outcomes: Vec<Outcome> = (0..u64::from(number(1, 5)))
                .map(|batch| play(name, &scenario, batch))
                .collect();
            let summary = |of: fn(&Outcome) -> f64| Summary::of(&outcomes.iter().map(of).collect::<Vec<_>>());
            let loss = summary(|o| o.loss);
            println!(
                "{:<4} {name:14} {:>9.3} ±{:>7.3} {:>8.2} {:>9.0} {:>9.1} {:>9.1} {:>8.0}",
                f64::from(load) / 100.0,
                loss.mean,
                loss.confidence,
                summary(|o| o.waiting).mean,
                summary(|o| o.periods).mean,
                summary(|o| o.searched).mean,
                summary(|o| o.updated).mean,
                summary(|o| o.nanoseconds).mean,
            );
        }
    }
}
