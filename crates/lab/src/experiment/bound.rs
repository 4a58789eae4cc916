//! Beyond the papers: how far the policies are from the best possible.
//!
//! No plan, not even one that knows all submissions in advance, may cut requests, and may accept parts of them, can use more
//! node-seconds than flow from requests through the stretches of time that their windows hold. The true optimum lies somewhere
//! between the policies and this bound; [`super::optimum`] finds it where there are few requests.

use scheduler::{Interval, Order, Request, Time};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::optimum;
use crate::report::{
    Finding, Report, count_holding, grid_rows, join_results, load_name, report_table, spread_cells,
};
use advisor::flexible::{
    LOADS, WindowRun, draw_flexible_jobs, flexible_asks, play_flexible_run, utilisation_percent,
};
use advisor::statistics::Summary;
use advisor::workload::WINDOW_SECONDS;

/// The index of φ 100 %.
const PHI: usize = 2;

const NAMES: [&str; 4] = ["FIFO", "EDF", "MDF", "bound"];

pub(super) fn report_bound(setup: &Setup) -> Report {
    let capacity = setup.workload.capacity;
    let played = setup.play(|window| {
        let draws = draw_flexible_jobs(setup.seed, window);
        let of_load = |load| {
            let utilisation_of = |order| {
                let outcome =
                    play_flexible_run(capacity, window, &draws, &WindowRun::flexible(load, PHI, order));
                utilisation_percent(capacity, &outcome, load)
            };
            let span = Interval::new(Time(0), Time(WINDOW_SECONDS * 100 / i64::from(load)));
            let asks = flexible_asks(window, &draws, &WindowRun::flexible(load, PHI, Order::Edf));
            let requests: Vec<Request> = asks.iter().map(|ask| ask.request).collect();
            let used = optimum::bound_node_seconds(capacity, &requests, span) as f64;
            let most = 100.0 * used / (f64::from(capacity) * span.duration() as f64);
            [
                utilisation_of(Order::Fifo),
                utilisation_of(Order::Edf),
                utilisation_of(Order::Mdf),
                most,
            ]
        };
        LOADS.map(of_load).concat()
    });
    let by_load = played.chunks(NAMES.len());
    let gains: Vec<Summary> = (by_load.clone())
        .map(|each| Summary::of_differences(&each[2], &each[1]))
        .collect();
    let seen: Vec<Vec<Summary>> = by_load
        .map(|each| each.iter().map(|values| Summary::of(values)).collect())
        .collect();
    let texts: Vec<String> = (LOADS.iter().zip(&seen))
        .map(|(load, seen)| {
            let [fifo, edf, mdf, most] = [0, 1, 2, 3].map(|policy: usize| seen[policy].mean);
            let part = |value: f64| 100.0 * value / most;
            let closed = |value: f64| 100.0 * (value - fifo) / (most - fifo).max(f64::MIN_POSITIVE);
            let [(edf, edf_closed), (mdf, mdf_closed)] = [edf, mdf].map(|each| (part(each), closed(each)));
            let load = load_name(*load);
            format!("{edf:.0} / {mdf:.0} % and {edf_closed:.0} / {mdf_closed:.0} % ({load})")
        })
        .collect();
    let by = join_results(gains.iter().map(ToString::to_string));
    let (surely, loads) = count_holding(gains.iter().map(Summary::is_positive));
    let more = format!("surely (95 %) at {surely} of {loads} loads, by {by} points");
    let findings = [
        Finding::new("what EDF / MDF have of the bound, and of the way from FIFO to it")
            .seen(texts.join(", "))
            .because("the experiment `optimum` says how far such a bound is from what is possible"),
        Finding::new("MDF uses more than EDF")
            .seen(more)
            .counted(surely, loads)
            .because("paper 000 compares EDF with other orders than MDF"),
    ];
    let rows = grid_rows(&LOADS.map(load_name), &NAMES, &seen, spread_cells);
    let figure = Figure::new("Utilisation against a bound on the best possible")
        .x("load")
        .y("utilisation (%)")
        .bars(LOADS.map(load_name), Series::over(0.., NAMES, &seen));
    Report::new("How far the policies are from a bound on the best possible")
        .about(
            "Half of the requests flexible, φ 100 %. The bound is a maximum flow: it knows all submissions in advance, may cut \
             requests anywhere and accept parts of them, so no policy reaches it.",
        )
        .with(
            findings,
            report_table("load | policy | utilisation (%) | ± 95 % | standard deviation", rows),
            [figure],
        )
}
