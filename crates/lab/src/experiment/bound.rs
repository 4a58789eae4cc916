//! Beyond the papers: how far the policies are from the best possible.
//!
//! No plan, not even one that knows all submissions in advance, may cut requests, and may accept parts of them, can use more
//! node-seconds than flow from requests through the stretches of time that their windows hold. The true optimum lies somewhere
//! between the policies and this bound; [`super::optimum`] finds it where there are few requests.

use scheduler::{Interval, Order, Request, Time};

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::optimum;
use crate::report::{Finding, Report, Verdict, cells};
use advisor::flexible::{LOADS, Run, asks, draws, play, utilisation_percent};
use advisor::statistics::Summary;
use advisor::table::Table;
use advisor::workload::WINDOW_SECONDS;

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "bound",
    title: "How far the policies are from a bound on the best possible",
    aliases: &[],
    run: bound,
}];

/// The index of φ 100 %.
const PHI: usize = 2;

fn bound(setup: &Setup) -> Report {
    const NAMES: [&str; 4] = ["FIFO", "EDF", "MDF", "bound"];
    let capacity = setup.workload.capacity;
    let of_window = setup.workers.map(setup.windows, |window| {
        let draws = draws(setup.seed, window);
        LOADS.map(|load| {
            let run = |order| Run::flexible(load, PHI, order);
            let of =
                |order| utilisation_percent(capacity, &play(capacity, window, &draws, &run(order)), load);
            let span = Interval::new(Time(0), Time(WINDOW_SECONDS * 100 / i64::from(load)));
            let asks = asks(window, &draws, &run(Order::Edf));
            let requests: Vec<Request> = asks.iter().map(|ask| ask.request).collect();
            let used = optimum::bound(capacity, &requests, span);
            let all = f64::from(capacity) * span.duration() as f64;
            [
                of(Order::Fifo),
                of(Order::Edf),
                of(Order::Mdf),
                100.0 * used as f64 / all,
            ]
        })
    });
    let mut table = Table::new(&[
        "load",
        "policy",
        "utilisation (%)",
        "± 95 %",
        "standard deviation",
    ]);
    let mut series = NAMES.map(|name| Series {
        label: name.to_owned(),
        points: Vec::new(),
    });
    let (mut texts, mut gains) = (Vec::new(), Vec::new());
    for (at, load) in LOADS.into_iter().enumerate() {
        let values = [0, 1, 2, 3]
            .map(|policy: usize| -> Vec<f64> { of_window.iter().map(|window| window[at][policy]).collect() });
        gains.push(Summary::of_differences(&values[2], &values[1]));
        let seen = values.map(|values| Summary::of(&values));
        for ((summary, name), series) in seen.iter().zip(NAMES).zip(&mut series) {
            let mut row = vec![format!("×{}", f64::from(load) / 100.0), name.to_owned()];
            row.extend(cells(summary));
            table.rows.push(row);
            series.points.push(Point {
                x: at as f64,
                y: summary.mean,
                error: summary.confidence,
            });
        }
        let [fifo, edf, mdf, most] = seen.map(|summary| summary.mean);
        let closed = |of: f64| 100.0 * (of - fifo) / (most - fifo).max(f64::MIN_POSITIVE);
        texts.push(format!(
            "{:.0} / {:.0} % and {:.0} / {:.0} % (×{})",
            100.0 * edf / most,
            100.0 * mdf / most,
            closed(edf),
            closed(mdf),
            f64::from(load) / 100.0
        ));
    }
    let by: Vec<String> = gains.iter().map(ToString::to_string).collect();
    let surely = gains.iter().filter(|gain| gain.is_positive()).count();
    Report {
        name: "",
        title: "",
        about: "Half of the requests flexible, φ 100 %. The bound is a maximum flow: it knows all submissions in advance, may cut \
            requests anywhere and accept parts of them, so no policy reaches it."
            .to_owned(),
        findings: vec![
            Finding {
                what: "what EDF / MDF have of the bound, and of the way from FIFO to it".to_owned(),
                paper: "–".to_owned(),
                seen: texts.join(", "),
                verdict: Verdict::Measured,
                why: "the experiment `optimum` says how far such a bound is from what is possible".to_owned(),
            },
            Finding {
                what: "MDF uses more than EDF".to_owned(),
                paper: "–".to_owned(),
                seen: format!(
                    "surely (95 %) at {surely} of 3 loads, by {} points",
                    by.join(" / ")
                ),
                verdict: Verdict::of_own(surely, LOADS.len()),
                why: "paper 000 compares EDF with other orders than MDF".to_owned(),
            },
        ],
        table,
        figures: vec![Figure {
            name: "bound".to_owned(),
            title: "Utilisation against a bound on the best possible".to_owned(),
            x_label: "load".to_owned(),
            y_label: "utilisation (%)".to_owned(),
            plot: Plot::Bars {
                groups: LOADS.map(|load| format!("×{}", f64::from(load) / 100.0)).to_vec(),
            },
            series: series.to_vec(),
        }],
    }
}
