//! Paper 004: how long work takes, from history alone.

mod free_share;
pub(super) mod replay;

use scheduler::prediction::reliability::{INTERVALS, LEVELS, Reliability};

use super::setup::Setup;
use crate::figure::{Figure, Point, Series};
use crate::report::{Finding, Report, count_reported_cases, join_results, report_table};
use advisor::table::Table;
use advisor::workload::{Job, Workload};
use replay::{Forecast, LEARNED, PASSES, PredictionReplay, Source, WARM_UP, quantile_of_replayed_forecast};

/// The share of outcomes that a stated 90 % interval may cover.
const COVERED: std::ops::RangeInclusive<f64> = 0.85..=0.95;

/// Parts in which the coverage is looked at by itself.
const PARTS: usize = 8;

fn prediction_results<'a>(setup: &'a Setup) -> &'a PredictionReplay {
    setup.prediction.get_or_init(|| {
        let passes = setup.workers.map(&PASSES, |pass| pass(setup.workload));
        replay::join_replayed_passes(setup.workload, passes)
    })
}

/// The learned distributions judged on a workload's runs: the rows of a reliability table, without and with the users' estimates
/// where it has them.
pub fn prediction_reliability_of_workload(workload: &Workload) -> Table {
    let passes = PASSES.map(|pass| pass(workload)).into();
    prediction_reliability_table(&replay::join_replayed_passes(workload, passes))
}

fn prediction_report(title: &'static str, results: &PredictionReplay) -> Report {
    Report::new(title).about(format!(
        "Every job that ran, long or short, of the whole workload (filter and windows do not apply) is an execution: of its executable \
         and user where that pair ran before, else of its user's, else of anybody's. Each is predicted from those that had ended when it \
         was submitted. The first {WARM_UP} are only learned from; {} are judged, for which all have a forecast.",
        results.jobs.len()
    ))
}

/// A measure of each judged run and its central forecast.
fn prediction_errors(
    results: &PredictionReplay,
    forecasts: &[Forecast],
    function: fn(f64, f64) -> f64,
) -> Vec<f64> {
    let pairs = forecasts.iter().zip(&results.jobs);
    let error = |(forecast, job): (&Forecast, &Job)| {
        function(quantile_of_replayed_forecast(forecast, 0.5), job.run as f64)
    };
    pairs.map(error).collect()
}

/// How far each forecast is off, from the least to the most.
fn absolute_prediction_errors(results: &PredictionReplay, forecasts: &[Forecast]) -> Vec<f64> {
    let mut absolute = prediction_errors(results, forecasts, |stated, run| (stated - run).abs());
    absolute.sort_unstable_by(f64::total_cmp);
    absolute
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(super) fn report_prediction_error(setup: &Setup) -> Report {
    let results = prediction_results(setup);
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (source, forecasts) in &results.forecasts {
        let absolute = absolute_prediction_errors(results, forecasts);
        let mean_of = |each| mean(&prediction_errors(results, forecasts, each));
        let factor = mean_of(|stated, run| (stated.max(1.0) / run).ln().abs()).exp();
        let short = mean_of(|stated, run| f64::from(u8::from(stated < run)));
        rows.push(vec![
            source.name().to_owned(),
            format!("{:.0}", mean(&absolute)),
            format!("{:.0}", absolute.get(absolute.len() / 2).unwrap_or(&0.0)),
            format!("{factor:.2}"),
            format!("{:+.0}", mean_of(|stated, run| stated - run)),
            format!("{:.1}", 100.0 * short),
        ]);
        let point = Point::new(0.0, mean(&absolute) / 3_600.0);
        series.push(Series::new(source.name(), [point]));
    }
    let headings = "estimate | mean absolute error (s) | median absolute error (s) | typical factor | mean error (s) | too short (%)";
    let title = "Error of the completion estimate";
    let figure = Figure::new(title)
        .x("all judged executions")
        .y("mean absolute error (h)")
        .bars([String::new()], series);
    prediction_report(title, results).with(
        prediction_error_findings(results),
        report_table(headings, rows),
        [figure],
    )
}

/// The effect of smoothing and trust on the error, and how it compares.
fn prediction_error_findings(results: &PredictionReplay) -> Vec<Finding> {
    let error = |source| {
        mean(&absolute_prediction_errors(
            results,
            results.of(source).unwrap_or_default(),
        ))
    };
    let [mean, smoothed, trusted] = [Source::Mean, Source::Smoothing, Source::Trust].map(error);
    let [learned, weighted] = [Source::Learned, Source::Weighted].map(error);
    let better = |what: &str, better: f64, than: f64, why: &str| {
        Finding::new(what)
            .paper("a more accurate prediction")
            .seen(format!("mean absolute error {better:.0} s against {than:.0} s"))
            .holds(better < than)
            .because(if better < than { "" } else { why })
    };
    let less = [mean, smoothed, trusted].iter().filter(|e| learned < **e).count();
    let ahead: Vec<String> = (results.ahead.iter())
        .map(|(hours, errors)| {
            format!(
                "{hours} h: {}",
                join_results(errors.map(|error| format!("{error:.3}")))
            )
        })
        .collect();
    let foresees = Finding::new(
        "smoothing foresees the free share of the nodes better than its last value and than its mean",
    )
    .seen(format!(
        "mean absolute error of smoothing / last value / mean, {}",
        ahead.join(", ")
    ));
    let foresees_all = results.ahead.iter();
    let (foreseen, cases) =
        count_reported_cases(foresees_all.flat_map(|(_, [ours, last, mean])| [ours <= last, ours <= mean]));
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
        Finding::new("the median of the learned distribution errs less than all three")
            .seen(format!("mean absolute error {learned:.0} s"))
            .counted(less, 3),
        Finding::new("with the parts weighted, which decides by default, it errs less than JT as printed")
            .seen(format!(
                "mean absolute error {weighted:.0} s against {trusted:.0} s"
            ))
            .holds(weighted < trusted),
        if cases == 0 {
            foresees
        } else {
            foresees.counted(foreseen, cases)
        },
    ]
}

/// Share of runs that a slot of the forecast length held, and node-seconds of slots for each of runs.
fn share_of_predictions_held(results: &PredictionReplay, forecasts: &[Forecast], p: f64) -> (f64, f64) {
    let (mut held, mut reserved, mut used) = (0_usize, 0.0, 0.0);
    for (job, forecast) in results.jobs.iter().zip(forecasts) {
        // Slots are whole seconds.
        let slot = quantile_of_replayed_forecast(forecast, p).ceil().max(1.0);
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

pub(super) fn report_prediction_deadlines(setup: &Setup) -> Report {
    const STATED: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
    let results = prediction_results(setup);
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (source, forecasts) in &results.forecasts {
        let many = LEARNED.contains(source) || *source == Source::Weighted;
        let mut points = Vec::new();
        for p in &STATED[..if many { STATED.len() } else { 1 }] {
            let (met, reserved) = share_of_predictions_held(results, forecasts, *p);
            rows.push(vec![
                source.name().to_owned(),
                if many { p.to_string() } else { "–".to_owned() },
                format!("{:.1}", 100.0 * met),
                format!("{reserved:.2}"),
            ]);
            points.push(Point::new(reserved, 100.0 * met));
        }
        series.push(Series::new(source.name(), points));
    }
    let met = |source, p| share_of_predictions_held(results, results.of(source).unwrap_or_default(), p).0;
    let [mean, smoothed, trusted] =
        [Source::Mean, Source::Smoothing, Source::Trust].map(|source| 100.0 * met(source, 0.5));
    let learned = met(Source::Learned, 0.95);
    let met = format!("{mean:.1} % by the mean, {smoothed:.1} % with smoothing, {trusted:.1} % with trust");
    let findings = [
        Finding::new("smoothing and trust let more deadlines be met")
            .paper("it becomes more likely that jobs finish in time")
            .seen(met)
            .counted(usize::from(smoothed > mean) + usize::from(trusted > smoothed), 2),
        Finding::new("slots sized for 95 % hold 94 to 96 % of the runs")
            .seen(format!("{:.1} %", 100.0 * learned))
            .holds((0.94..=0.96).contains(&learned)),
    ];
    let headings = "slot sized by | at probability | deadlines met (%) | node-seconds reserved for each used";
    let figure = Figure::new("Deadlines met for what is reserved")
        .x("node-seconds reserved for each used")
        .y("deadlines met (%)")
        .lines(series);
    let report = prediction_report("Deadlines met by slots of the estimated length", results);
    report.with(findings, report_table(headings, rows), [figure])
}

/// The reliability table: quantiles and intervals with the shares that they held, and the pinball loss of every source.
fn prediction_reliability_table(results: &PredictionReplay) -> Table {
    type Number<'a> = Option<&'a dyn Fn(&Reliability) -> f64>;
    let books = Source::ALL.map(|source| results.reliability(source, 0..results.jobs.len()));
    // The learned ones are the last of all.
    let learned = &books[books.len() - LEARNED.len()..];
    let cells = |books: &[Option<Reliability>], digits: usize, number: Number| -> Vec<String> {
        let cell = |kept: &Option<Reliability>| Some(format!("{:.digits$}", number?(kept.as_ref()?)));
        (books.iter())
            .map(|kept| cell(kept).unwrap_or("–".to_owned()))
            .collect()
    };
    // The share that was held, in percent, and the loss.
    let row = |statement: String, held: Number, loss: Number| {
        [vec![statement], cells(learned, 1, held), cells(&books, 0, loss)].concat()
    };
    let intervals = (0..INTERVALS).map(|at| {
        let stated = LEVELS[LEVELS.len() - 1 - at] - LEVELS[at];
        let held = |reliability: &Reliability| 100.0 * reliability.intervals()[at].1;
        row(format!("{:.0} % interval", 100.0 * stated), Some(&held), None)
    });
    let quantiles = LEVELS.iter().enumerate().map(|(at, p)| {
        let held = |reliability: &Reliability| 100.0 * reliability.levels()[at].1;
        let loss = |reliability: &Reliability| reliability.levels()[at].2;
        row(format!("{:.0} % quantile", 100.0 * p), Some(&held), Some(&loss))
    });
    let statement = "mean of the quantiles".to_owned();
    let mean = row(statement, None, Some(&Reliability::mean_loss));
    Table {
        columns: std::iter::once("statement".to_owned())
            .chain(LEARNED.map(|source| format!("held (%), {}", source.name())))
            .chain(Source::ALL.map(|source| format!("pinball loss (s), {}", source.name())))
            .collect(),
        rows: intervals.chain(quantiles).chain([mean]).collect(),
    }
}

/// Where the coverage of the widest interval lay, overall and in parts of the workload.
fn prediction_coverage_finding(results: &PredictionReplay, source: Source) -> Option<Finding> {
    let all = results.jobs.len();
    let covered = |part| Some(results.reliability(source, part)?.intervals()[0].1);
    let overall = covered(0..all)?;
    let parts: Vec<f64> = (0..PARTS)
        .filter_map(|part| covered(all * part / PARTS..all * (part + 1) / PARTS))
        .collect();
    let least = 100.0 * parts.iter().copied().fold(1.0, f64::min);
    let most = 100.0 * parts.iter().copied().fold(0.0, f64::max);
    let (name, percent) = (source.name(), 100.0 * overall);
    let claim = format!("the stated 90 % interval covers 85 to 95 % of the runs ({name})");
    let seen = format!("{percent:.1} %; {least:.1} to {most:.1} % in {PARTS} equal parts of the workload");
    Some(Finding::new(claim).seen(seen).holds(COVERED.contains(&overall)))
}

/// Whether one source's pinball loss is below another's.
fn sharper_prediction_finding(results: &PredictionReplay, source: Source, than: Source) -> Option<Finding> {
    let kept = |source| results.reliability(source, 0..results.jobs.len());
    let (ours, theirs) = (kept(source)?, kept(than)?);
    let levels = ours.levels().into_iter().zip(theirs.levels());
    let less = levels.filter(|(a, b)| a.2 < b.2).count();
    let (loss, their_loss, all) = (ours.mean_loss(), theirs.mean_loss(), LEVELS.len());
    let (source, than) = (source.name(), than.name());
    let claim = format!("what is stated is sharper than the {than} ({source})");
    let seen =
        format!("mean pinball loss {loss:.0} s against {their_loss:.0} s; less at {less} of {all} quantiles");
    Some(Finding::new(claim).seen(seen).holds(loss < their_loss))
}

pub(super) fn report_prediction_calibration(setup: &Setup) -> Report {
    let results = prediction_results(setup);
    let rivals = [Source::LastTwo, Source::User];
    let covers = LEARNED.map(|source| prediction_coverage_finding(results, source));
    let sharper = LEARNED.map(|source| rivals.map(|than| sharper_prediction_finding(results, source, than)));
    let findings: Vec<Finding> = covers.into_iter().chain(sharper.concat()).flatten().collect();
    let line = |source: Source, label: &str, function: fn((f64, f64, f64)) -> f64| {
        let books = results.reliability(source, 0..results.jobs.len())?;
        let levels = books
            .levels()
            .map(|level| Point::new(100.0 * level.0, function(level)));
        Some(Series::new(label, levels))
    };
    let lines = |sources: &[Source], function: fn((f64, f64, f64)) -> f64| -> Vec<Series> {
        let named = sources
            .iter()
            .map(|source| line(*source, source.name(), function));
        named.flatten().collect()
    };
    let ideal = line(Source::Learned, "what is stated", |level| 100.0 * level.0);
    let held = lines(&LEARNED, |level| 100.0 * level.1);
    let loss = lines(&[LEARNED, rivals].concat(), |level| level.2);
    let figures = [
        Figure::new("Runs within the stated quantile")
            .x("stated probability (%)")
            .y("runs within it (%)")
            .lines(ideal.into_iter().chain(held).collect::<Vec<_>>()),
        Figure::new("Pinball loss of the stated quantiles")
            .named("004-pinball")
            .x("stated probability (%)")
            .y("mean pinball loss (s)")
            .lines(loss),
    ];
    let report = prediction_report("Stated intervals: calibration and sharpness", results);
    report.with(findings, prediction_reliability_table(results), figures)
}
