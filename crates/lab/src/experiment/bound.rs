//! Beyond the papers: how far the policies are from the best possible.
//!
//! No plan, not even one that knows all submissions in advance, may cut requests, and may accept parts of them, can use more
//! node-seconds than flow from requests through the stretches of time that their windows hold. The true optimum lies somewhere
//! between the policies and this bound; [`super::optimum`] finds it where there are few requests.

use scheduler::{Interval, Order, Request, Time};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::optimum;
use crate::report::{Finding, Report, Verdict, joined, load_name, spread};
use advisor::flexible::{LOADS, Run, asks, draws, play, utilisation_percent};
use advisor::statistics::Summary;
use advisor::table::Table;
use advisor::workload::WINDOW_SECONDS;

/// The index of φ 100 %.
const PHI: usize = 2;

pub(super) fn bound(setup: &Setup) -> Report {
    const NAMES: [&str; 4] = ["FIFO", "EDF", "MDF", "bound"];
    let capacity = setup.workload.capacity;
    let played = setup.play(|window| {
        let draws = draws(setup.seed, window);
        let of_load = |load| {
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
        };
        LOADS.map(of_load).concat()
    });
    let mut table = Table::new(&[
        "load",
        "policy",
        "utilisation (%)",
        "± 95 %",
        "standard deviation",
    ]);
    let (mut texts, mut gains) = (Vec::new(), Vec::new());
    let seen: Vec<Summary> = played.iter().map(|values| Summary::of(values)).collect();
    for ((load, values), seen) in (LOADS.into_iter())
        .zip(played.chunks(NAMES.len()))
        .zip(seen.chunks(NAMES.len()))
    {
        gains.push(Summary::of_differences(&values[2], &values[1]));
        for (summary, name) in seen.iter().zip(NAMES) {
            let mut row = vec![load_name(load), name.to_owned()];
            row.extend(spread(summary));
            table.rows.push(row);
        }
        let [fifo, edf, mdf, most] = [0, 1, 2, 3].map(|policy: usize| seen[policy].mean);
        let closed = |of: f64| 100.0 * (of - fifo) / (most - fifo).max(f64::MIN_POSITIVE);
        texts.push(format!(
            "{:.0} / {:.0} % and {:.0} / {:.0} % ({})",
            100.0 * edf / most,
            100.0 * mdf / most,
            closed(edf),
            closed(mdf),
            load_name(load)
        ));
    }
    let by = joined(gains.iter().map(ToString::to_string));
    let surely = gains.iter().filter(|gain| gain.is_positive()).count();
    let findings = vec![
        Finding::own(
            "what EDF / MDF have of the bound, and of the way from FIFO to it",
            texts.join(", "),
            Verdict::Measured,
        )
        .because("the experiment `optimum` says how far such a bound is from what is possible"),
        Finding::own(
            "MDF uses more than EDF",
            format!("surely (95 %) at {surely} of 3 loads, by {by} points"),
            Verdict::of_own(surely, LOADS.len()),
        )
        .because("paper 000 compares EDF with other orders than MDF"),
    ];
    let series = (0..).zip(NAMES).map(|(policy, name)| {
        let of_policy = seen.iter().skip(policy).step_by(NAMES.len());
        Series::bars(name, of_policy.copied())
    });
    let figure = Figure::bars(
        "bound",
        "Utilisation against a bound on the best possible",
        ["load", "utilisation (%)"],
        LOADS.map(load_name),
        series.collect::<Vec<_>>(),
    );
    Report::new(
        "How far the policies are from a bound on the best possible",
        "Half of the requests flexible, φ 100 %. The bound is a maximum flow: it knows all submissions in advance, may cut \
         requests anywhere and accept parts of them, so no policy reaches it.",
        findings,
        table,
        vec![figure],
    )
}
