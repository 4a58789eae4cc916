//! Paper 003: jobs that book single servers of different rates in advance.

pub mod scenario;
mod server_resources;

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, count_reported_cases, report_table, summary_of_values};
use advisor::statistics::Summary;
use scenario::{Deadlines, GROUP, LEVELS, Scenario, ScenarioAlgorithm, ScenarioResult};
pub(super) use server_resources::report_server_resources;

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
    of: fn(&ScenarioResult) -> f64,
}

const fn server_measure(
    name: &'static str,
    label: &'static str,
    function: fn(&ScenarioResult) -> f64,
) -> Measure {
    Measure {
        name,
        label,
        of: function,
    }
}

const LOSS: Measure = server_measure("loss", "work lost (%)", |o| o.loss);
const UTILISATION: Measure = server_measure("utilisation", "utilisation (%)", |o| o.utilisation);
const WAITING: Measure = server_measure("waiting", "mean waiting (h)", |o| o.waiting);
const COST: Measure = server_measure("cost", "entries looked at or moved per decision", |o| {
    o.searched + o.updated
});
const PERIODS: Measure = server_measure("periods", "idle periods", |o| o.periods);
const SEARCHED: Measure = server_measure("searched", "entries looked at to find a place", |o| o.searched);
const TIME: Measure = server_measure("time", "nanoseconds of a decision", |o| o.nanoseconds);

/// A scenario with the search that looks after its servers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SearchRun {
    algorithm: ScenarioAlgorithm,
    scenario: Scenario,
}

/// A run with the outcomes of its batches.
struct PlayedRun<R> {
    run: R,
    outcomes: Vec<ScenarioResult>,
}

impl<R> PlayedRun<R> {
    fn summary(&self, measure: &Measure) -> Summary {
        summary_of_values(self.outcomes.iter().map(measure.of))
    }

    fn mean(&self, measure: &Measure) -> f64 {
        self.summary(measure).mean
    }
}

/// All runs of an experiment.
struct ServerResults<R>(Vec<PlayedRun<R>>);

/// Plays all batches of the runs by `play`, and notes the time of a decision under the `name` of each run.
fn play_server_runs<R: Copy + Sync>(
    setup: &Setup,
    runs: Vec<R>,
    play: impl Fn(&R, u64) -> ScenarioResult + Sync,
    name: impl Fn(&PlayedRun<R>) -> String,
) -> ServerResults<R> {
    let batches = setup.servers.runs;
    let tasks: Vec<(R, u64)> = (runs.iter())
        .flat_map(|run| (0..batches as u64).map(move |batch| (*run, batch)))
        .collect();
    let outcomes = setup.workers.map(&tasks, |(run, batch)| play(run, *batch));
    let played = runs.into_iter().zip(outcomes.chunks(batches));
    let played = played.map(|(run, outcomes)| {
        let outcomes = outcomes.to_vec();
        let played = PlayedRun { run, outcomes };
        setup.note_time(name(&played), played.mean(&TIME));
        played
    });
    ServerResults(played.collect())
}

fn play_server_searches(setup: &Setup, runs: Vec<SearchRun>) -> ServerResults<SearchRun> {
    let search = |run: &SearchRun, batch| run.algorithm.play(&run.scenario, setup.seed, batch);
    play_server_runs(setup, runs, search, |played| {
        let SearchRun { algorithm, scenario } = played.run;
        let (name, rho) = (algorithm.name(), scenario.rho());
        format!("{name},{rho},{:.0}", played.mean(&PERIODS))
    })
}

impl<R: PartialEq> ServerResults<R> {
    fn of_run(&self, run: &R) -> &PlayedRun<R> {
        let found = self.0.iter().find(|played| played.run == *run);
        // Each experiment plays all its algorithms, or rules, on the same jobs.
        found.expect("runs are compared with runs of the same experiment")
    }

    /// A measure against the load, a line for each label of the runs that have one.
    fn series(&self, measure: &Measure, place: impl Fn(&R) -> Option<(String, f64)>) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for played in &self.0 {
            let Some((label, rho)) = place(&played.run) else {
                continue;
            };
            let point = Point::mean(rho, &played.summary(measure));
            match series.iter_mut().find(|series| series.label == label) {
                Some(series) => series.points.push(point),
                None => series.push(Series::new(label, [point])),
            }
        }
        series
    }
}

impl ServerResults<SearchRun> {
    fn of(&self, algorithm: ScenarioAlgorithm) -> impl Iterator<Item = &PlayedRun<SearchRun>> {
        let is_of = move |played: &&PlayedRun<SearchRun>| played.run.algorithm == algorithm;
        self.0.iter().filter(is_of)
    }

    /// How many runs of `a` have no more, by mean, than those of `b` that are like them; and how many there are.
    fn no_more(&self, measure: &Measure, a: ScenarioAlgorithm, b: ScenarioAlgorithm) -> (usize, usize) {
        let like = |run: SearchRun| self.of_run(&SearchRun { algorithm: b, ..run });
        let no_more = |a: &PlayedRun<SearchRun>| a.mean(measure) <= like(a.run).mean(measure) + 1e-9;
        count_reported_cases(self.of(a).map(no_more))
    }

    fn report(
        &self,
        title: &'static str,
        setup: &Setup,
        findings: impl Into<Vec<Finding>>,
        figures: impl Into<Vec<Figure>>,
    ) -> Report {
        let measures = [&LOSS, &UTILISATION, &WAITING, &SEARCHED, &COST];
        let labels = measures.map(|measure| format!(" | {} | ± 95 %", measure.label));
        let names = "algorithm | rates | servers | ρ | deadlines | idle periods".to_owned();
        let headings = names + &labels.concat();
        let row = |played: &PlayedRun<SearchRun>| {
            let SearchRun { algorithm, scenario } = played.run;
            let mut row = vec![
                algorithm.name().to_owned(),
                server_level_name(scenario.level),
                (3 * scenario.group).to_string(),
                scenario.rho().to_string(),
                scenario.deadlines.formula().to_owned(),
                format!("{:.0}", played.mean(&PERIODS)),
            ];
            for summary in measures.map(|measure| played.summary(measure)) {
                row.extend([summary.mean, summary.confidence].map(|number| format!("{number:.3}")));
            }
            row
        };
        let (runs, jobs) = (setup.servers.runs, setup.servers.jobs);
        Report::new(title)
            .about(format!("{ABOUT} {runs} runs of {jobs} jobs."))
            .with(findings, report_table(&headings, self.0.iter().map(row)), figures)
    }

    /// Two measures against the load, a line for each label of the runs that have one.
    fn figures(
        &self,
        name: &str,
        title: &str,
        measures: [&Measure; 2],
        label: impl Fn(&SearchRun) -> Option<String>,
    ) -> Vec<Figure> {
        let figure = |measure: &Measure| {
            let series = self.series(measure, |run| Some((label(run)?, run.scenario.rho())));
            let figure = Figure::new(title).named(format!("{name}-{}", measure.name));
            figure.x("load ρ").y(measure.label).lines(series)
        };
        measures.map(figure).to_vec()
    }
}

fn server_level_name(level: usize) -> String {
    let rates = LEVELS[level].map(|rate| format!("{:.2}", f64::from(rate) / 1e6));
    rates.join(" ")
}

/// A search at the paper's size.
fn server_run(
    setup: &Setup,
    algorithm: ScenarioAlgorithm,
    level: usize,
    load: u32,
    deadlines: Deadlines,
) -> SearchRun {
    let scenario = Scenario {
        level,
        group: GROUP,
        load,
        deadlines,
        jobs: setup.servers.jobs,
    };
    SearchRun { algorithm, scenario }
}

/// Plays every algorithm at every load.
fn play_every_server_algorithm(
    setup: &Setup,
    algorithms: &[ScenarioAlgorithm],
    levels: &[usize],
    all_deadlines: &[Deadlines],
) -> ServerResults<SearchRun> {
    let mut runs = Vec::new();
    for &deadlines in all_deadlines {
        for &level in levels {
            for &algorithm in algorithms {
                runs.extend(LOADS.map(|load| server_run(setup, algorithm, level, load, deadlines)));
            }
        }
    }
    play_server_searches(setup, runs)
}

const ABOUT: &str = "120 servers in three groups of 40; jobs of 5.6 hours in the mean book up to two weeks ahead, with up to \
    twenty hours of laxity (r + l + U; 003-fig4 also has the deadlines as printed, U(r, r + 20 h)). Counted \
    after the two weeks in which the plan fills up, or half of a shorter run; each run is a batch. The workload is always generated.";

pub(super) fn report_server_awareness(setup: &Setup) -> Report {
    let (unaware, aware) = (ScenarioAlgorithm::Unaware, ScenarioAlgorithm::Aware);
    let results = play_every_server_algorithm(setup, &[unaware, aware], &[1, 2, 3, 4], &[Deadlines::Size]);
    let findings = [
        Finding::new("FF-HA loses no more work than FF-HU at any level and load")
            .paper("it outperforms it across the spectrum")
            .cases(results.no_more(&LOSS, aware, unaware)),
        Finding::new("FF-HA uses the servers no less than FF-HU")
            .paper("it outperforms it across the spectrum")
            .cases(results.no_more(&UTILISATION, unaware, aware)),
    ];
    let figure = "Aware of the rates or not, least (L=1) and most (L=4) different";
    let figures = results.figures("003-fig2", figure, [&LOSS, &UTILISATION], |run| {
        let (name, level) = (run.algorithm.name(), run.scenario.level);
        [1, 4].contains(&level).then(|| format!("{name} L={level}"))
    });
    let title = "Searches that know the rates lose less work than those that do not";
    results.report(title, setup, findings, figures)
}

pub(super) fn report_server_loss_and_cost(setup: &Setup) -> Report {
    let (unaware, plus, ours) = (
        ScenarioAlgorithm::Unaware,
        ScenarioAlgorithm::AwarePlus,
        ScenarioAlgorithm::OneTree,
    );
    let all_deadlines = [Deadlines::Size, Deadlines::SlowSize, Deadlines::Printed];
    let results = play_every_server_algorithm(setup, &ScenarioAlgorithm::ALL, &[MOST], &all_deadlines);
    let losses = |deadlines| {
        let of_algorithm = ScenarioAlgorithm::ALL.map(|algorithm| {
            let played = results.of_run(&server_run(setup, algorithm, MOST, 90, deadlines));
            format!("{} {:.1}", algorithm.name(), played.summary(&LOSS))
        });
        format!("at ρ = 0.9 (%): {}", of_algorithm.join(", "))
    };
    let published =
        [unaware, ScenarioAlgorithm::Aware, plus].map(|other| results.no_more(&LOSS, ours, other));
    let all = (published.into_iter()).fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let (no_more, cases) = results.no_more(&LOSS, plus, unaware);
    let findings = [
        Finding::new("FF-HA+ loses somewhat more work than FF-HU at medium loads")
            .paper("it does")
            .seen(losses(Deadlines::Size))
            .counted(cases - no_more, cases)
            .because("FF-HU fills the fast servers with what slow ones could do, which costs more than fragments"),
        Finding::new("the same with deadlines as printed, U(r, r + 20 h)")
            .seen(losses(Deadlines::Printed))
            .because("not even an idle server of rate 1 could do that work"),
        Finding::new("FF-HA+ looks at or moves fewer entries than FF-HU")
            .paper("a significantly shorter running time")
            .cases(results.no_more(&COST, plus, unaware))
            .because("judged by entries; nanoseconds are in `times-per-decision.csv`, and short lists may win there"),
        Finding::new("one tree a class loses no more work than the three published searches")
            .cases(all)
            .because("beyond the paper"),
        Finding::new("one tree a class looks at or moves fewer entries than FF-HA+")
            .cases(results.no_more(&COST, ours, plus))
            .because("beyond the paper"),
    ];
    let figure = "Searches at the most different rates";
    let figures = results.figures("003-fig4", figure, [&LOSS, &COST], |run| {
        (run.scenario.deadlines == Deadlines::Size).then(|| run.algorithm.name().to_owned())
    });
    results.report("Work loss and cost of a decision", setup, findings, figures)
}

pub(super) fn report_server_utilisation_and_waiting(setup: &Setup) -> Report {
    let (unaware, plus) = (ScenarioAlgorithm::Unaware, ScenarioAlgorithm::AwarePlus);
    let results = play_every_server_algorithm(setup, &ScenarioAlgorithm::ALL, &[MOST], &[Deadlines::Size]);
    let findings = [
        Finding::new("FF-HA+ keeps the servers busier than FF-HU")
            .paper("it does")
            .cases(results.no_more(&UTILISATION, unaware, plus)),
        Finding::new("jobs wait less under FF-HA+ than under FF-HU")
            .paper("significantly less")
            .cases(results.no_more(&WAITING, plus, unaware))
            .because(
                "FF-HU takes the idle period that starts first, mostly one that covers the ready time; FF-HA+ may take a later one",
            ),
    ];
    let figure = "Searches at the most different rates";
    let figures = results.figures("003-fig5", figure, [&UTILISATION, &WAITING], |run| {
        Some(run.algorithm.name().to_owned())
    });
    results.report("Utilisation and waiting", setup, findings, figures)
}

pub(super) fn report_server_heterogeneity(setup: &Setup) -> Report {
    let plus = ScenarioAlgorithm::AwarePlus;
    let (algorithms, levels) = ([plus, ScenarioAlgorithm::OneTree], [0, 1, 2, 3, 4]);
    let results = play_every_server_algorithm(
        setup,
        &algorithms,
        &levels,
        &[Deadlines::Size, Deadlines::SlowSize],
    );
    // At how many loads the most different rates have no more than the least different ones, where `sign` is 1; no less for −1.
    let no_more = |sign: f64, measure: &Measure, deadlines: Deadlines| {
        let mean = |level, load| {
            results
                .of_run(&server_run(setup, plus, level, load, deadlines))
                .mean(measure)
        };
        count_reported_cases(LOADS.map(|load| sign * mean(MOST, load) <= sign * mean(1, load) + 1e-9))
    };
    let findings = [
        Finding::new("FF-HA+ loses less work at the most different rates than at the least")
            .paper("often significantly less")
            .cases(no_more(1.0, &LOSS, Deadlines::Size))
            .because("deadlines r + l + U leave no time for slow servers"),
        Finding::new("the same where deadlines leave time for a rate of 0.6")
            .cases(no_more(1.0, &LOSS, Deadlines::SlowSize))
            .because("control"),
        Finding::new("servers are busier at the most different rates")
            .paper("they are")
            .cases(no_more(-1.0, &UTILISATION, Deadlines::Size)),
    ];
    let figure = "Heterogeneity of the servers, FF-HA+";
    let figures = results.figures("003-fig6", figure, [&LOSS, &UTILISATION], |run| {
        let Scenario { level, deadlines, .. } = run.scenario;
        (run.algorithm == plus && deadlines == Deadlines::Size)
            .then(|| format!("L={level} ({})", server_level_name(level)))
    });
    results.report("More different servers lose less work", setup, findings, figures)
}

pub(super) fn report_server_periods(setup: &Setup) -> Report {
    let of_group = |group: u32| {
        ScenarioAlgorithm::ALL.map(|algorithm| {
            let mut of_group = server_run(setup, algorithm, MOST, 90, Deadlines::Size);
            // As many days for any number of servers.
            of_group.scenario.jobs = setup.servers.jobs * group as usize / GROUP as usize;
            of_group.scenario.group = group;
            of_group
        })
    };
    let results = play_server_searches(setup, GROUPS.into_iter().flat_map(of_group).collect());
    let growth = |algorithm| {
        let costs: Vec<f64> = results.of(algorithm).map(|played| played.mean(&COST)).collect();
        (costs[0], costs[costs.len() - 1])
    };
    let texts = ScenarioAlgorithm::ALL.map(|algorithm| {
        let (first, last) = growth(algorithm);
        format!("{} {first:.0} → {last:.0}", algorithm.name())
    });
    let texts = texts.join(", ");
    let (first, last) = growth(ScenarioAlgorithm::OneTree);
    let growths = format!("entries per decision with 30 and with 480 servers: {texts}");
    let finding = Finding::new("the cost of one tree a class grows with the logarithm of the idle periods")
        .seen(growths)
        .holds(last < 2.0 * first)
        .because("judged by less than twice the entries for sixteen times the servers");
    let series = ScenarioAlgorithm::ALL.map(|algorithm| {
        // Powers of ten: the algorithms differ by hundreds of times.
        let power = |played: &PlayedRun<SearchRun>, measure| played.mean(measure).max(1.0).log10();
        let point = |played| Point::new(power(played, &PERIODS), power(played, &COST));
        Series::new(algorithm.name(), results.of(algorithm).map(point))
    });
    let figure = Figure::new("Cost of a decision, load 0.9, the most different rates")
        .x("idle periods (power of ten)")
        .y("entries per decision (power of ten)")
        .lines(series);
    let title = "Cost of a decision against the number of idle periods";
    results.report(title, setup, [finding], [figure])
}
