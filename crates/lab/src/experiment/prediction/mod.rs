//! Paper 004: how long work takes, from history alone.

mod load;
pub(super) mod replay;

use scheduler::prediction::reliability::{INTERVALS, LEVELS, Reliability};

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, Verdict, joined};
use advisor::table::Table;
use advisor::workload::Workload;
use replay::{Forecast, Results, Source, Task, WARM_UP};

/// The share of outcomes that a stated 90 % interval may cover.
const COVERED: std::ops::RangeInclusive<f64> = 0.85..=0.95;

/// Parts in which the coverage is looked at by itself.
const PARTS: usize = 8;

fn results<'a>(setup: &'a Setup) -> &'a Results {
    setup.prediction.get_or_init(|| {
        let passes = setup.workers.map(&Task::ALL, |task| task.run(setup.workload));
        replay::results(setup.workload, passes)
    })
}

/// The learned distributions judged on a workload's runs: the rows of a reliability table, without and with the users' estimates
/// where it has them.
pub fn reliability(workload: &Workload) -> Table {
    let passes = Task::ALL.into_iter().map(|task| task.run(workload)).collect();
    table(&replay::results(workload, passes))
}

fn report(
    title: &'static str,
    results: &Results,
    findings: Vec<Finding>,
    table: Table,
    figures: Vec<Figure>,
) -> Report {
    let about = format!(
        "Every job that ran, long or short, of the whole workload (filter and windows do not apply) is an execution: of its executable \
         and user where that pair ran before, else of its user's, else of anybody's. Each is predicted from those that had ended when it \
         was submitted. The first {WARM_UP} are only learned from; {} are judged, for which all have a forecast.",
        results.jobs.len()
    );
    Report::new(title, about, findings, table, figures)
}

/// Errors of a source's central forecast.
struct Errors {
    absolute: f64,
    median: f64,
    /// Mean of |ln(forecast / run)|.
    factor: f64,
    bias: f64,
    short: f64,
}

fn errors(results: &Results, forecasts: &[Forecast]) -> Errors {
    let of = |error: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        let pairs = forecasts.iter().zip(&results.jobs);
        pairs
            .map(|(forecast, job)| error(forecast.quantile(0.5), job.run as f64))
            .collect()
    };
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut absolute = of(&|stated, run| (stated - run).abs());
    absolute.sort_unstable_by(f64::total_cmp);
    Errors {
        median: absolute.get(absolute.len() / 2).copied().unwrap_or(0.0),
        absolute: mean(absolute),
        factor: mean(of(&|stated, run| (stated.max(1.0) / run).ln().abs())),
        bias: mean(of(&|stated, run| stated - run)),
        short: mean(of(&|stated, run| f64::from(u8::from(stated < run)))),
    }
}

pub(super) fn error(setup: &Setup) -> Report {
    let results = results(setup);
    let mut table = Table::new(&[
        "estimate",
        "mean absolute error (s)",
        "median absolute error (s)",
        "typical factor",
        "mean error (s)",
        "too short (%)",
    ]);
    let mut series = Vec::new();
    for (source, forecasts) in &results.forecasts {
        let errors = errors(results, forecasts);
        table.rows.push(vec![
            source.name().to_owned(),
            format!("{:.0}", errors.absolute),
            format!("{:.0}", errors.median),
            format!("{:.2}", errors.factor.exp()),
            format!("{:+.0}", errors.bias),
            format!("{:.1}", 100.0 * errors.short),
        ]);
        let point = Point::new(0.0, errors.absolute / 3_600.0);
        series.push(Series::new(source.name(), [point]));
    }
    let title = "Error of the completion estimate";
    let labels = ["all judged executions", "mean absolute error (h)"];
    let figure = Figure::bars("004-error", title, labels, [String::new()], series);
    report(title, results, error_findings(results), table, vec![figure])
}

/// The effect of smoothing and trust on the error, and how it compares.
fn error_findings(results: &Results) -> Vec<Finding> {
    let absolute = |source| {
        let forecasts = results.of(source).unwrap_or_default();
        errors(results, forecasts).absolute
    };
    let [mean, smoothed, trusted, learned] =
        [Source::Mean, Source::Smoothing, Source::Trust, Source::Learned].map(absolute);
    let better = |what: &str, better: f64, than: f64, why: &str| {
        Finding::new(
            what,
            "a more accurate prediction",
            format!("mean absolute error {better:.0} s against {than:.0} s"),
            Verdict::holds(better < than),
        )
        .because(if better < than { "" } else { why })
    };
    let foreseen: Vec<bool> = results
        .ahead
        .iter()
        .flat_map(|(_, [ours, last, mean])| [ours <= last, ours <= mean])
        .collect();
    let ahead: Vec<String> = results
        .ahead
        .iter()
        .map(|(hours, errors)| {
            let errors = joined(errors.map(|error| format!("{error:.3}")));
            format!("{hours} h: {errors}")
        })
        .collect();
    vec![
        better(
            "smoothing makes the mean of past executions more accurate",
            smoothed,
            mean,
            "a job of the workload has its nodes to itself: how many others are free does not slow it",
        ),
        better(
            "trust makes the smoothed estimate more accurate",
            trusted,
            smoothed,
            "trust only lengthens estimates, for the sake of deadlines; the mean error of ten unlike jobs says little of the next",
        ),
        Finding::own(
            "the median of the learned distribution errs less than all three",
            format!("mean absolute error {learned:.0} s"),
            Verdict::of_own(
                [mean, smoothed, trusted].iter().filter(|e| learned < **e).count(),
                3,
            ),
        ),
        Finding::own(
            "smoothing foresees the free share of the nodes better than its last value and than its mean",
            format!(
                "mean absolute error of smoothing / last value / mean, {}",
                ahead.join(", ")
            ),
            if foreseen.is_empty() {
                Verdict::Measured
            } else {
                Verdict::of_own(foreseen.iter().filter(|holds| **holds).count(), foreseen.len())
            },
        ),
    ]
}

/// Share of runs that a slot of the forecast length held, and node-seconds of slots for each of runs.
fn slots(results: &Results, forecasts: &[Forecast], p: f64) -> (f64, f64) {
    let (mut held, mut reserved, mut used) = (0_usize, 0.0, 0.0);
    for (job, forecast) in results.jobs.iter().zip(forecasts) {
        // Slots are whole seconds.
        let slot = forecast.quantile(p).ceil().max(1.0);
        let (run, nodes) = (job.run as f64, f64::from(job.nodes));
        held += usize::from(run <= slot);
        reserved += nodes * slot;
        used += nodes * run;
    }
    (
        held as f64 / results.jobs.len().max(1) as f64,
        reserved / used.max(1.0),
    )
}

pub(super) fn deadlines(setup: &Setup) -> Report {
    const STATED: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
    let results = results(setup);
    let mut table = Table::new(&[
        "slot sized by",
        "at probability",
        "deadlines met (%)",
        "node-seconds reserved for each used",
    ]);
    let mut series = Vec::new();
    for (source, forecasts) in &results.forecasts {
        let stated = match forecasts.first() {
            Some(Forecast::Quantiles(_)) => &STATED[..],
            _ => &STATED[..1],
        };
        let mut points = Vec::new();
        for p in stated {
            let (met, reserved) = slots(results, forecasts, *p);
            let at = if stated.len() > 1 {
                format!("{p}")
            } else {
                "–".to_owned()
            };
            table.rows.push(vec![
                source.name().to_owned(),
                at,
                format!("{:.1}", 100.0 * met),
                format!("{reserved:.2}"),
            ]);
            points.push(Point::new(reserved, 100.0 * met));
        }
        series.push(Series::new(source.name(), points));
    }
    let met = |source, p| slots(results, results.of(source).unwrap_or_default(), p);
    let [mean, smoothed, trusted] =
        [Source::Mean, Source::Smoothing, Source::Trust].map(|source| met(source, 0.5).0);
    let (learned, _) = met(Source::Learned, 0.95);
    let findings = vec![
        Finding::new(
            "smoothing and trust let more deadlines be met",
            "it becomes more likely that jobs finish in time",
            format!(
                "{:.1} % by the mean, {:.1} % with smoothing, {:.1} % with trust",
                100.0 * mean,
                100.0 * smoothed,
                100.0 * trusted
            ),
            Verdict::of(usize::from(smoothed > mean) + usize::from(trusted > smoothed), 2),
        ),
        Finding::own(
            "slots sized for 95 % hold 94 to 96 % of the runs",
            format!("{:.1} %", 100.0 * learned),
            Verdict::of_own(usize::from((0.94..=0.96).contains(&learned)), 1),
        ),
    ];
    let labels = ["node-seconds reserved for each used", "deadlines met (%)"];
    let figure = Figure::lines(
        "004-deadlines",
        "Deadlines met for what is reserved",
        labels,
        series,
    );
    let title = "Deadlines met by slots of the estimated length";
    report(title, results, findings, table, vec![figure])
}

/// The reliability table: quantiles and intervals with the shares that they held, and the pinball loss of every source.
fn table(results: &Results) -> Table {
    let all = 0..results.jobs.len();
    let learned = [Source::Learned, Source::LearnedWithEstimate];
    let columns: Vec<String> = std::iter::once("statement".to_owned())
        .chain(learned.map(|source| format!("held (%), {}", source.name())))
        .chain(Source::ALL.map(|source| format!("pinball loss (s), {}", source.name())))
        .collect();
    let kept = |source| results.reliability(source, all.clone());
    let (books, held) = (Source::ALL.map(kept), learned.map(kept));
    let cells = |of: &[Option<Reliability>], digits: usize, number: &dyn Fn(&Reliability) -> f64| {
        let cell = |of: &Option<Reliability>| match of {
            Some(of) => format!("{:.digits$}", number(of)),
            None => "–".to_owned(),
        };
        of.iter().map(cell).collect::<Vec<String>>()
    };
    let none = |count: usize| vec!["–".to_owned(); count];
    let mut rows = Vec::new();
    for at in 0..INTERVALS {
        let stated = LEVELS[LEVELS.len() - 1 - at] - LEVELS[at];
        let inside = cells(&held, 1, &|of| 100.0 * of.intervals()[at].1);
        rows.push(
            [
                vec![format!("{:.0} % interval", 100.0 * stated)],
                inside,
                none(books.len()),
            ]
            .concat(),
        );
    }
    for (at, p) in LEVELS.into_iter().enumerate() {
        let below = cells(&held, 1, &|of| 100.0 * of.levels()[at].1);
        let loss = cells(&books, 0, &|of| of.levels()[at].2);
        rows.push([vec![format!("{:.0} % quantile", 100.0 * p)], below, loss].concat());
    }
    let loss = cells(&books, 0, &Reliability::mean_loss);
    rows.push([vec!["mean of the quantiles".to_owned()], none(held.len()), loss].concat());
    Table { columns, rows }
}

/// Where the coverage of the widest interval lay, overall and in parts of the workload.
fn coverage(results: &Results, source: Source) -> Option<Finding> {
    let all = results.jobs.len();
    let covered = |part| Some(results.reliability(source, part)?.intervals()[0].1);
    let overall = covered(0..all)?;
    let parts: Vec<f64> = (0..PARTS)
        .filter_map(|part| covered(all * part / PARTS..all * (part + 1) / PARTS))
        .collect();
    let least = parts.iter().copied().fold(1.0, f64::min);
    let most = parts.iter().copied().fold(0.0, f64::max);
    Some(Finding::own(
        format!(
            "the stated 90 % interval covers 85 to 95 % of the runs ({})",
            source.name()
        ),
        format!(
            "{:.1} %; {:.1} to {:.1} % in {PARTS} equal parts of the workload",
            100.0 * overall,
            100.0 * least,
            100.0 * most
        ),
        Verdict::of_own(usize::from(COVERED.contains(&overall)), 1),
    ))
}

/// Whether one source's pinball loss is below another's.
fn sharper(results: &Results, source: Source, than: Source) -> Option<Finding> {
    let all = 0..results.jobs.len();
    let (ours, theirs) = (
        results.reliability(source, all.clone())?,
        results.reliability(than, all)?,
    );
    let less = ours
        .levels()
        .iter()
        .zip(theirs.levels())
        .filter(|(a, b)| a.2 < b.2)
        .count();
    let holds = ours.mean_loss() < theirs.mean_loss();
    Some(Finding::own(
        format!(
            "what is stated is sharper than the {} ({})",
            than.name(),
            source.name()
        ),
        format!(
            "mean pinball loss {:.0} s against {:.0} s; less at {less} of {} quantiles",
            ours.mean_loss(),
            theirs.mean_loss(),
            LEVELS.len()
        ),
        Verdict::of_own(usize::from(holds), 1),
    ))
}

pub(super) fn calibration(setup: &Setup) -> Report {
    let results = results(setup);
    let learned = [Source::Learned, Source::LearnedWithEstimate];
    let mut findings: Vec<Finding> = learned
        .iter()
        .filter_map(|source| coverage(results, *source))
        .collect();
    for source in learned {
        findings.extend(sharper(results, source, Source::LastTwo));
        findings.extend(sharper(results, source, Source::User));
    }
    let line = |source: Source, label: &str, of: &dyn Fn((f64, f64, f64)) -> f64| {
        let books = results.reliability(source, 0..results.jobs.len())?;
        let levels = books.levels().map(|level| Point::new(100.0 * level.0, of(level)));
        Some(Series::new(label, levels))
    };
    let ideal = line(Source::Learned, "what is stated", &|level| 100.0 * level.0);
    let held = learned.map(|source| line(source, source.name(), &|level| 100.0 * level.1));
    let loss = [
        Source::Learned,
        Source::LearnedWithEstimate,
        Source::LastTwo,
        Source::User,
    ]
    .map(|source| line(source, source.name(), &|level| level.2));
    let figure = |name: &str, title: &str, y_label: &str, series: &[Option<Series>]| {
        let series: Vec<Series> = series.iter().flatten().cloned().collect();
        Figure::lines(name, title, ["stated probability (%)", y_label], series)
    };
    let figures = vec![
        figure(
            "004-calibration",
            "Runs within the stated quantile",
            "runs within it (%)",
            &[&[ideal], &held[..]].concat(),
        ),
        figure(
            "004-pinball",
            "Pinball loss of the stated quantiles",
            "mean pinball loss (s)",
            &loss,
        ),
    ];
    let title = "Stated intervals: calibration and sharpness";
    report(title, results, findings, table(results), figures)
}
