//! Paper 003: jobs that book single servers of different rates in advance.

pub mod protocol;

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::report::{Finding, Report, Verdict};
use advisor::statistics::Summary;
use advisor::table::Table;
use protocol::{Algorithm, GROUP, LEVELS, Outcome, Scenario};

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "003-fig2",
        title: "Searches that know the rates lose less work than those that do not",
        aliases: &[],
        run: awareness,
    },
    Experiment {
        name: "003-fig4",
        title: "Work loss and cost of a decision",
        aliases: &[],
        run: loss_and_cost,
    },
    Experiment {
        name: "003-fig5",
        title: "Utilisation and waiting",
        aliases: &[],
        run: utilisation_and_waiting,
    },
    Experiment {
        name: "003-fig6",
        title: "More different servers lose less work",
        aliases: &[],
        run: heterogeneity,
    },
    Experiment {
        name: "003-periods",
        title: "Cost of a decision against the number of idle periods",
        aliases: &[],
        run: periods,
    },
];

/// Offered loads ρ in percent.
const LOADS: [u32; 5] = [30, 50, 70, 90, 110];
/// The level of heterogeneity that algorithms are compared at.
const MOST: usize = LEVELS.len() - 1;
/// Servers of a group in the comparison of costs: the paper's, and more.
const GROUPS: [u32; 5] = [10, 20, 40, 80, 160];

/// A measure with its name and unit.
struct Measure {
    name: &'static str,
    label: &'static str,
    of: fn(&Outcome) -> f64,
}

const LOSS: Measure = Measure {
    name: "loss",
    label: "work lost (%)",
    of: |o| o.loss,
};
const UTILISATION: Measure = Measure {
    name: "utilisation",
    label: "utilisation (%)",
    of: |o| o.utilisation,
};
const WAITING: Measure = Measure {
    name: "waiting",
    label: "mean waiting (h)",
    of: |o| o.waiting,
};
const COST: Measure = Measure {
    name: "cost",
    label: "entries looked at or moved per decision",
    of: |o| o.searched + o.updated,
};
const SEARCHED: Measure = Measure {
    name: "searched",
    label: "entries looked at to find a place",
    of: |o| o.searched,
};

/// A scenario with the search that looks after its servers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    algorithm: Algorithm,
    scenario: Scenario,
}

/// Runs with the outcomes of their batches.
struct Results {
    runs: Vec<Run>,
    outcomes: Vec<Vec<Outcome>>,
}

fn play(setup: &Setup, runs: Vec<Run>) -> Results {
    let batches = setup.servers.runs as u64;
    let tasks: Vec<(Run, u64)> = runs
        .iter()
        .flat_map(|run| (0..batches).map(move |batch| (*run, batch)))
        .collect();
    let played = setup.workers.map(&tasks, |(run, batch)| {
        run.algorithm.play(&run.scenario, setup.seed, *batch)
    });
    let outcomes: Vec<Vec<Outcome>> = played
        .chunks(setup.servers.runs)
        .map(<[Outcome]>::to_vec)
        .collect();
    for (run, batches) in runs.iter().zip(&outcomes) {
        let mean = |of: fn(&Outcome) -> f64| batches.iter().map(of).sum::<f64>() / batches.len() as f64;
        let what = format!(
            "{},{},{:.0}",
            run.algorithm.name(),
            f64::from(run.scenario.load) / 100.0,
            mean(|o| o.periods)
        );
        setup.note_time(what, mean(|o| o.nanoseconds));
    }
    Results { runs, outcomes }
}

impl Results {
    fn values(&self, at: usize, measure: &Measure) -> Vec<f64> {
        self.outcomes[at].iter().map(measure.of).collect()
    }

    fn summary(&self, at: usize, measure: &Measure) -> Summary {
        Summary::of(&self.values(at, measure))
    }

    /// Where the run is that differs from `like` only in its algorithm.
    fn other(&self, like: Run, algorithm: Algorithm) -> Option<usize> {
        self.runs.iter().position(|run| *run == Run { algorithm, ..like })
    }

    /// How many runs of `a` have no more, by mean, than those of `b` that are like them; and how many there are.
    fn no_more(&self, measure: &Measure, a: Algorithm, b: Algorithm) -> (usize, usize) {
        let pairs: Vec<bool> = (0..self.runs.len())
            .filter(|at| self.runs[*at].algorithm == a)
            .filter_map(|at| Some((at, self.other(self.runs[at], b)?)))
            .map(|(a, b)| self.summary(a, measure).mean <= self.summary(b, measure).mean + 1e-9)
            .collect();
        (pairs.iter().filter(|holds| **holds).count(), pairs.len())
    }

    fn table(&self) -> Table {
        let measures = [&LOSS, &UTILISATION, &WAITING, &SEARCHED, &COST];
        let mut columns = vec!["algorithm", "rates", "servers", "ρ", "deadlines", "idle periods"];
        for measure in measures {
            columns.extend([measure.label, "± 95 %"]);
        }
        let mut table = Table::new(&columns);
        for (at, run) in self.runs.iter().enumerate() {
            let periods = Summary::of(&self.outcomes[at].iter().map(|o| o.periods).collect::<Vec<_>>());
            let mut row = vec![
                run.algorithm.name().to_owned(),
                level_name(run.scenario.level),
                (3 * run.scenario.group).to_string(),
                format!("{}", f64::from(run.scenario.load) / 100.0),
                if run.scenario.control {
                    "r + l/0.6 + U"
                } else {
                    "r + l + U"
                }
                .to_owned(),
                format!("{:.0}", periods.mean),
            ];
            for measure in measures {
                let summary = self.summary(at, measure);
                row.extend([summary.mean, summary.confidence].map(|number| format!("{number:.3}")));
            }
            table.rows.push(row);
        }
        table
    }

    /// A measure against the load, a line for each label of the runs that have one.
    fn figure(
        &self,
        name: &str,
        title: &str,
        measure: &Measure,
        label: impl Fn(&Run) -> Option<String>,
    ) -> Figure {
        let mut series: Vec<Series> = Vec::new();
        for (at, run) in self.runs.iter().enumerate() {
            let Some(label) = label(run) else { continue };
            let summary = self.summary(at, measure);
            let point = Point {
                x: f64::from(run.scenario.load) / 100.0,
                y: summary.mean,
                error: summary.confidence,
            };
            match series.iter_mut().find(|series| series.label == label) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    label,
                    points: vec![point],
                }),
            }
        }
        Figure {
            name: format!("{name}-{}", measure.name),
            title: title.to_owned(),
            x_label: "load ρ".to_owned(),
            y_label: measure.label.to_owned(),
            plot: Plot::Lines,
            series,
        }
    }
}

fn level_name(level: usize) -> String {
    LEVELS[level]
        .map(|rate| format!("{:.2}", f64::from(rate) / 1e6))
        .join(" ")
}

/// Every algorithm at every load.
fn runs(setup: &Setup, algorithms: &[Algorithm], levels: &[usize], controls: &[bool]) -> Vec<Run> {
    let mut runs = Vec::new();
    for &control in controls {
        for &level in levels {
            for &algorithm in algorithms {
                runs.extend(LOADS.map(|load| Run {
                    algorithm,
                    scenario: Scenario {
                        level,
                        group: GROUP,
                        load,
                        control,
                        jobs: setup.servers.jobs,
                    },
                }));
            }
        }
    }
    runs
}

const ABOUT: &str = "120 servers in three groups of 40; jobs of 5.6 hours in the mean book up to two weeks ahead, with up to \
    twenty hours of laxity (r + l + U: the deadlines as printed, U(r, r + 20 h), lose 70 % of the work at any load). Counted \
    after the two weeks in which the plan fills up, or half of a shorter run; each run is a batch. The workload is always generated.";

fn report(setup: &Setup, findings: Vec<Finding>, results: &Results, figures: Vec<Figure>) -> Report {
    Report {
        name: "",
        title: "",
        about: format!(
            "{ABOUT} {} runs of {} jobs.",
            setup.servers.runs, setup.servers.jobs
        ),
        findings,
        table: results.table(),
        figures,
    }
}

/// A claim of the paper.
fn counted(what: &str, paper: &str, (holding, parts): (usize, usize), why: &str) -> Finding {
    Finding {
        what: what.to_owned(),
        paper: paper.to_owned(),
        seen: format!("in {holding} of {parts} cases"),
        verdict: Verdict::of(holding, parts),
        why: why.to_owned(),
    }
}

/// A claim that is our own.
fn own(what: &str, (holding, parts): (usize, usize), why: &str) -> Finding {
    Finding {
        verdict: Verdict::of_own(holding, parts),
        ..counted(what, "–", (holding, parts), why)
    }
}

fn awareness(setup: &Setup) -> Report {
    let algorithms = [Algorithm::Unaware, Algorithm::Aware];
    let results = play(setup, runs(setup, &algorithms, &[1, 2, 3, 4], &[false]));
    let findings = vec![
        counted(
            "FF-HA loses no more work than FF-HU at any level and load",
            "it outperforms it across the spectrum",
            results.no_more(&LOSS, Algorithm::Aware, Algorithm::Unaware),
            "",
        ),
        counted(
            "FF-HA uses the servers no less than FF-HU",
            "it outperforms it across the spectrum",
            results.no_more(&UTILISATION, Algorithm::Unaware, Algorithm::Aware),
            "",
        ),
    ];
    let label = |run: &Run| {
        [1, 4]
            .contains(&run.scenario.level)
            .then(|| format!("{} L={}", run.algorithm.name(), run.scenario.level))
    };
    let figures = [&LOSS, &UTILISATION].map(|measure| {
        results.figure(
            "003-fig2",
            "Aware of the rates or not, least (L=1) and most (L=4) different",
            measure,
            label,
        )
    });
    report(setup, findings, &results, figures.to_vec())
}

fn loss_and_cost(setup: &Setup) -> Report {
    let results = play(setup, runs(setup, &Algorithm::ALL, &[MOST], &[false, true]));
    let values = |algorithm| {
        let of = |run: &Run| run.algorithm == algorithm && !run.scenario.control && run.scenario.load == 90;
        let at = results.runs.iter().position(of).unwrap_or_default();
        format!("{:.1}", results.summary(at, &LOSS))
    };
    let seen = Algorithm::ALL
        .map(|algorithm| format!("{} {}", algorithm.name(), values(algorithm)))
        .join(", ");
    let ours = |other| results.no_more(&LOSS, Algorithm::OneTree, other);
    let all = [Algorithm::Unaware, Algorithm::Aware, Algorithm::AwarePlus]
        .map(ours)
        .into_iter()
        .fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let (no_more, cases) = results.no_more(&LOSS, Algorithm::AwarePlus, Algorithm::Unaware);
    let findings = vec![
        Finding {
            what: "FF-HA+ loses somewhat more work than FF-HU at medium loads".to_owned(),
            paper: "it does".to_owned(),
            seen: format!("at ρ = 0.9 (%): {seen}"),
            verdict: Verdict::of(cases - no_more, cases),
            why: "FF-HU fills the fast servers with what slow ones could do, which costs more than fragments"
                .to_owned(),
        },
        counted(
            "FF-HA+ looks at or moves fewer entries than FF-HU",
            "a significantly shorter running time",
            results.no_more(&COST, Algorithm::AwarePlus, Algorithm::Unaware),
            "judged by entries; nanoseconds are in `times-per-decision.csv`, and short lists may win there",
        ),
        own(
            "one tree a class loses no more work than the three published searches",
            all,
            "beyond the paper",
        ),
        own(
            "one tree a class looks at or moves fewer entries than FF-HA+",
            results.no_more(&COST, Algorithm::OneTree, Algorithm::AwarePlus),
            "beyond the paper",
        ),
    ];
    let label = |run: &Run| (!run.scenario.control).then(|| run.algorithm.name().to_owned());
    let figures = [&LOSS, &COST]
        .map(|measure| results.figure("003-fig4", "Searches at the most different rates", measure, label));
    report(setup, findings, &results, figures.to_vec())
}

fn utilisation_and_waiting(setup: &Setup) -> Report {
    let results = play(setup, runs(setup, &Algorithm::ALL, &[MOST], &[false]));
    let findings = vec![
        counted(
            "FF-HA+ keeps the servers busier than FF-HU",
            "it does",
            results.no_more(&UTILISATION, Algorithm::Unaware, Algorithm::AwarePlus),
            "",
        ),
        counted(
            "jobs wait less under FF-HA+ than under FF-HU",
            "significantly less",
            results.no_more(&WAITING, Algorithm::AwarePlus, Algorithm::Unaware),
            "FF-HU takes the idle period that starts first, mostly one that covers the ready time; FF-HA+ may take a later one",
        ),
    ];
    let label = |run: &Run| Some(run.algorithm.name().to_owned());
    let figures = [&UTILISATION, &WAITING]
        .map(|measure| results.figure("003-fig5", "Searches at the most different rates", measure, label));
    report(setup, findings, &results, figures.to_vec())
}

fn heterogeneity(setup: &Setup) -> Report {
    let algorithms = [Algorithm::AwarePlus, Algorithm::OneTree];
    let levels: Vec<usize> = (0..LEVELS.len()).collect();
    let results = play(setup, runs(setup, &algorithms, &levels, &[false, true]));
    let improves = |measure: &Measure, control: bool, better: fn(f64, f64) -> bool| {
        let of_load = |load: u32| {
            let mean = |level: usize| {
                let run = Run {
                    algorithm: Algorithm::AwarePlus,
                    scenario: Scenario {
                        level,
                        group: GROUP,
                        load,
                        control,
                        jobs: setup.servers.jobs,
                    },
                };
                let at = results
                    .runs
                    .iter()
                    .position(|other| *other == run)
                    .unwrap_or_default();
                results.summary(at, measure).mean
            };
            better(mean(MOST), mean(1))
        };
        (
            LOADS.into_iter().filter(|load| of_load(*load)).count(),
            LOADS.len(),
        )
    };
    let less = |most: f64, least: f64| most <= least + 1e-9;
    let more = |most: f64, least: f64| most >= least - 1e-9;
    let findings = vec![
        counted(
            "FF-HA+ loses less work at the most different rates than at the least",
            "often significantly less",
            improves(&LOSS, false, less),
            "deadlines r + l + U leave no time for slow servers",
        ),
        own(
            "the same where deadlines leave time for a rate of 0.6",
            improves(&LOSS, true, less),
            "control",
        ),
        counted(
            "servers are busier at the most different rates",
            "they are",
            improves(&UTILISATION, false, more),
            "",
        ),
    ];
    let label = |run: &Run| {
        (run.algorithm == Algorithm::AwarePlus && !run.scenario.control)
            .then(|| format!("L={} ({})", run.scenario.level, level_name(run.scenario.level)))
    };
    let figures = [&LOSS, &UTILISATION]
        .map(|measure| results.figure("003-fig6", "Heterogeneity of the servers, FF-HA+", measure, label));
    report(setup, findings, &results, figures.to_vec())
}

fn periods(setup: &Setup) -> Report {
    let of_group = |group: u32| {
        let scenario = Scenario {
            level: MOST,
            group,
            load: 90,
            control: false,
            // As many days for any number of servers.
            jobs: setup.servers.jobs * group as usize / GROUP as usize,
        };
        Algorithm::ALL.map(|algorithm| Run { algorithm, scenario })
    };
    let results = play(setup, GROUPS.into_iter().flat_map(of_group).collect());
    let growth = |algorithm| {
        let costs: Vec<f64> = (0..results.runs.len())
            .filter(|at| results.runs[*at].algorithm == algorithm)
            .map(|at| results.summary(at, &COST).mean)
            .collect();
        (costs[0], costs[costs.len() - 1])
    };
    let text = Algorithm::ALL
        .map(|algorithm| {
            let (first, last) = growth(algorithm);
            format!("{} {first:.0} → {last:.0}", algorithm.name())
        })
        .join(", ");
    let (first, last) = growth(Algorithm::OneTree);
    let findings = vec![Finding {
        what: "the cost of one tree a class grows with the logarithm of the idle periods".to_owned(),
        paper: "–".to_owned(),
        seen: format!("entries per decision with 30 and with 480 servers: {text}"),
        verdict: Verdict::of_own(usize::from(last < 2.0 * first), 1),
        why: "judged by less than twice the entries for sixteen times the servers".to_owned(),
    }];
    let series = Algorithm::ALL.map(|algorithm| Series {
        label: algorithm.name().to_owned(),
        points: (0..results.runs.len())
            .filter(|at| results.runs[*at].algorithm == algorithm)
            .map(|at| {
                let cost = results.summary(at, &COST);
                let periods =
                    Summary::of(&results.outcomes[at].iter().map(|o| o.periods).collect::<Vec<_>>());
                // Powers of ten: the algorithms differ by hundreds of times.
                Point {
                    x: periods.mean.max(1.0).log10(),
                    y: cost.mean.max(1.0).log10(),
                    error: 0.0,
                }
            })
            .collect(),
    });
    let figure = Figure {
        name: "003-periods".to_owned(),
        title: "Cost of a decision, load 0.9, the most different rates".to_owned(),
        x_label: "idle periods (power of ten)".to_owned(),
        y_label: "entries per decision (power of ten)".to_owned(),
        plot: Plot::Lines,
        series: series.to_vec(),
    };
    report(setup, findings, &results, vec![figure])
}
