//! Paper 003: jobs that book single servers of different rates in advance.

pub mod protocol;

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, Verdict};
use advisor::statistics::Summary;
use advisor::table::Table;
use protocol::{Algorithm, GROUP, LEVELS, Outcome, Scenario};

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
const PERIODS: Measure = Measure {
    name: "periods",
    label: "idle periods",
    of: |o| o.periods,
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
    fn summary(&self, at: usize, measure: &Measure) -> Summary {
        let values: Vec<f64> = self.outcomes[at].iter().map(measure.of).collect();
        Summary::of(&values)
    }

    /// Where a run is.
    fn position(&self, run: Run) -> Option<usize> {
        self.runs.iter().position(|other| *other == run)
    }

    /// The places of the runs of an algorithm.
    fn of(&self, algorithm: Algorithm) -> impl Iterator<Item = usize> {
        (0..self.runs.len()).filter(move |at| self.runs[*at].algorithm == algorithm)
    }

    /// A measure of a run, over its batches.
    fn of_run(&self, run: Run, measure: &Measure) -> Summary {
        self.summary(self.position(run).unwrap_or_default(), measure)
    }

    /// How many runs of `a` have no more, by mean, than those of `b` that are like them; and how many there are.
    fn no_more(&self, measure: &Measure, a: Algorithm, b: Algorithm) -> (usize, usize) {
        let other = |at: usize| Run {
            algorithm: b,
            ..self.runs[at]
        };
        let pairs: Vec<bool> = (self.of(a))
            .filter_map(|at| Some((at, self.position(other(at))?)))
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
                format!("{:.0}", self.summary(at, &PERIODS).mean),
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
            let load = f64::from(run.scenario.load) / 100.0;
            let point = Point::mean(load, &self.summary(at, measure));
            match series.iter_mut().find(|series| series.label == label) {
                Some(series) => series.points.push(point),
                None => series.push(Series::new(label, [point])),
            }
        }
        let name = format!("{name}-{}", measure.name);
        Figure::lines(name, title, ["load ρ", measure.label], series)
    }
}

fn level_name(level: usize) -> String {
    LEVELS[level]
        .map(|rate| format!("{:.2}", f64::from(rate) / 1e6))
        .join(" ")
}

/// A search at the paper's size.
fn run(setup: &Setup, algorithm: Algorithm, level: usize, load: u32, control: bool) -> Run {
    let scenario = Scenario {
        level,
        group: GROUP,
        load,
        control,
        jobs: setup.servers.jobs,
    };
    Run { algorithm, scenario }
}

/// Every algorithm at every load.
fn runs(setup: &Setup, algorithms: &[Algorithm], levels: &[usize], controls: &[bool]) -> Vec<Run> {
    let mut runs = Vec::new();
    for &control in controls {
        for &level in levels {
            for &algorithm in algorithms {
                runs.extend(LOADS.map(|load| run(setup, algorithm, level, load, control)));
            }
        }
    }
    runs
}

const ABOUT: &str = "120 servers in three groups of 40; jobs of 5.6 hours in the mean book up to two weeks ahead, with up to \
    twenty hours of laxity (r + l + U: the deadlines as printed, U(r, r + 20 h), lose 70 % of the work at any load). Counted \
    after the two weeks in which the plan fills up, or half of a shorter run; each run is a batch. The workload is always generated.";

fn report(
    title: &'static str,
    setup: &Setup,
    findings: Vec<Finding>,
    results: &Results,
    figures: Vec<Figure>,
) -> Report {
    let about = format!(
        "{ABOUT} {} runs of {} jobs.",
        setup.servers.runs, setup.servers.jobs
    );
    Report::new(title, about, findings, results.table(), figures)
}

/// A claim of the paper.
fn counted(what: &str, paper: &str, (holding, parts): (usize, usize), why: &str) -> Finding {
    let seen = format!("in {holding} of {parts} cases");
    Finding::new(what, paper, seen, Verdict::of(holding, parts)).because(why)
}

/// A claim that is our own.
fn own(what: &str, (holding, parts): (usize, usize), why: &str) -> Finding {
    Finding {
        verdict: Verdict::of_own(holding, parts),
        ..counted(what, "–", (holding, parts), why)
    }
}

pub(super) fn awareness(setup: &Setup) -> Report {
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
    let title = "Searches that know the rates lose less work than those that do not";
    report(title, setup, findings, &results, figures.to_vec())
}

pub(super) fn loss_and_cost(setup: &Setup) -> Report {
    let results = play(setup, runs(setup, &Algorithm::ALL, &[MOST], &[false, true]));
    let values = |algorithm| {
        let run = run(setup, algorithm, MOST, 90, false);
        format!("{:.1}", results.of_run(run, &LOSS))
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
        Finding::new(
            "FF-HA+ loses somewhat more work than FF-HU at medium loads",
            "it does",
            format!("at ρ = 0.9 (%): {seen}"),
            Verdict::of(cases - no_more, cases),
        )
        .because(
            "FF-HU fills the fast servers with what slow ones could do, which costs more than fragments",
        ),
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
    let title = "Work loss and cost of a decision";
    report(title, setup, findings, &results, figures.to_vec())
}

pub(super) fn utilisation_and_waiting(setup: &Setup) -> Report {
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
    let title = "Utilisation and waiting";
    report(title, setup, findings, &results, figures.to_vec())
}

pub(super) fn heterogeneity(setup: &Setup) -> Report {
    let algorithms = [Algorithm::AwarePlus, Algorithm::OneTree];
    let levels: Vec<usize> = (0..LEVELS.len()).collect();
    let results = play(setup, runs(setup, &algorithms, &levels, &[false, true]));
    let improves = |measure: &Measure, control: bool, better: fn(f64, f64) -> bool| {
        let of_load = |load: &u32| {
            let run = |level| run(setup, Algorithm::AwarePlus, level, *load, control);
            let mean = |level| results.of_run(run(level), measure).mean;
            better(mean(MOST), mean(1))
        };
        (LOADS.iter().filter(|load| of_load(load)).count(), LOADS.len())
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
    let title = "More different servers lose less work";
    report(title, setup, findings, &results, figures.to_vec())
}

pub(super) fn periods(setup: &Setup) -> Report {
    let of_group = |group: u32| {
        Algorithm::ALL.map(|algorithm| {
            let mut of_group = run(setup, algorithm, MOST, 90, false);
            // As many days for any number of servers.
            of_group.scenario.jobs = setup.servers.jobs * group as usize / GROUP as usize;
            of_group.scenario.group = group;
            of_group
        })
    };
    let results = play(setup, GROUPS.into_iter().flat_map(of_group).collect());
    let growth = |algorithm| {
        let costs: Vec<f64> = (results.of(algorithm))
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
    let findings = vec![
        Finding::own(
            "the cost of one tree a class grows with the logarithm of the idle periods",
            format!("entries per decision with 30 and with 480 servers: {text}"),
            Verdict::of_own(usize::from(last < 2.0 * first), 1),
        )
        .because("judged by less than twice the entries for sixteen times the servers"),
    ];
    let series = Algorithm::ALL.map(|algorithm| {
        let points = results.of(algorithm).map(|at| {
            let [periods, cost] = [&PERIODS, &COST].map(|of| results.summary(at, of).mean);
            // Powers of ten: the algorithms differ by hundreds of times.
            Point::new(periods.max(1.0).log10(), cost.max(1.0).log10())
        });
        Series::new(algorithm.name(), points)
    });
    let figure = Figure::lines(
        "003-periods",
        "Cost of a decision, load 0.9, the most different rates",
        [
            "idle periods (power of ten)",
            "entries per decision (power of ten)",
        ],
        series,
    );
    let title = "Cost of a decision against the number of idle periods";
    report(title, setup, findings, &results, vec![figure])
}
