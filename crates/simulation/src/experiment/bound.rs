//! Beyond the papers: how far the policies are from the best possible.
//!
//! No plan, not even one that knows all submissions in advance, may cut requests, and may accept parts of them, can use more
//! node-seconds than flow from requests through the stretches of time that their windows hold. The true optimum lies somewhere
//! between the policies and this bound.

use scheduler::{Interval, Order, Time};

use super::flexible::{LOADS, Run, asks, draws, play, utilisation_percent};
use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::flow::Network;
use crate::replay::Ask;
use crate::report::{Finding, Report, Table, Verdict, cells};
use crate::statistics::Summary;
use crate::workload::WINDOW_SECONDS;

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "bound",
    title: "How far the policies are from the best possible",
    aliases: &[],
    run: bound,
}];

/// The index of φ 100 %.
const PHI: usize = 2;

/// The most node-seconds inside `span` that any plan on `capacity` nodes can use for these requests.
fn most(capacity: u32, asks: &[Ask], span: Interval) -> i64 {
    let inside = |ask: &Ask| {
        let window = ask.request.window();
        Interval::new(window.start.max(span.start), window.end.min(span.end))
    };
    let mut times: Vec<Time> = asks
        .iter()
        .map(inside)
        .filter(|i| !i.is_empty())
        .flat_map(|i| [i.start, i.end])
        .collect();
    times.sort_unstable();
    times.dedup();
    let (source, sink) = (0, 1);
    let of_stretch = |stretch: usize| 2 + asks.len() + stretch;
    let mut network = Network::new(of_stretch(times.len()));
    for (at, pair) in times.windows(2).enumerate() {
        network.connect(of_stretch(at), sink, i64::from(capacity) * (pair[1] - pair[0]));
    }
    for (number, ask) in asks.iter().enumerate() {
        let nodes = i64::from(ask.request.nodes);
        network.connect(source, 2 + number, nodes * ask.request.duration);
        let window = inside(ask);
        let first = times.partition_point(|time| *time < window.start);
        for at in first..times.len().saturating_sub(1) {
            if times[at] >= window.end {
                break;
            }
            network.connect(2 + number, of_stretch(at), nodes * (times[at + 1] - times[at]));
        }
    }
    network.maximum(source, sink)
}

fn bound(setup: &Setup) -> Report {
    const NAMES: [&str; 3] = ["FIFO", "EDF", "bound"];
    let capacity = setup.workload.capacity;
    let of_window = setup.workers.map(setup.windows, |window| {
        let draws = draws(setup.seed, window);
        LOADS.map(|load| {
            let run = |order| Run::flexible(load, PHI, order);
            let of =
                |order| utilisation_percent(capacity, &play(capacity, window, &draws, &run(order)), load);
            let span = Interval::new(Time(0), Time(WINDOW_SECONDS * 100 / i64::from(load)));
            let used = most(capacity, &asks(window, &draws, &run(Order::Edf)), span);
            let all = f64::from(capacity) * span.duration() as f64;
            [of(Order::Fifo), of(Order::Edf), 100.0 * used as f64 / all]
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
    let mut texts = Vec::new();
    for (at, load) in LOADS.into_iter().enumerate() {
        let seen = [0, 1, 2].map(|policy: usize| {
            let values: Vec<f64> = of_window.iter().map(|window| window[at][policy]).collect();
            Summary::of(&values)
        });
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
        let [fifo, edf, most] = seen.map(|summary| summary.mean);
        let closed = 100.0 * (edf - fifo) / (most - fifo).max(f64::MIN_POSITIVE);
        texts.push(format!(
            "{:.0} % and {closed:.0} % (×{})",
            100.0 * edf / most,
            f64::from(load) / 100.0
        ));
    }
    Report {
        name: "",
        title: "",
        about: "Half of the requests flexible, φ 100 %. The bound is a maximum flow: it knows all submissions in advance, may cut \
            requests anywhere and accept parts of them, so no policy reaches it."
            .to_owned(),
        findings: vec![Finding {
            what: "EDF's part of the bound, and of the way from FIFO to it".to_owned(),
            paper: "–".to_owned(),
            seen: texts.join(", "),
            verdict: Verdict::Measured,
            why: "beyond the papers".to_owned(),
        }],
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

#[cfg(test)]
mod tests {
    use super::most;
    use crate::random::Random;
    use crate::replay::{Ask, Policy, replay};
    use scheduler::{Interval, Order, Request, Time};

    fn ask(id: u64, ready: i64, deadline: i64, duration: i64, nodes: u32) -> Ask {
        Ask::plain(Request {
            id,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(deadline),
            duration,
            nodes,
            revenue: 0,
        })
    }

    #[test]
    fn two_requests_for_the_same_time_share_what_there_is() {
        let span = Interval::new(Time(0), Time(100));
        assert_eq!(most(4, &[ask(0, 0, 10, 10, 4), ask(1, 0, 10, 10, 4)], span), 40);
        assert_eq!(most(4, &[ask(0, 0, 10, 10, 4), ask(1, 0, 20, 10, 4)], span), 80);
        assert_eq!(
            most(4, &[ask(0, 90, 120, 30, 2)], span),
            20,
            "only what lies inside counts"
        );
    }

    #[test]
    fn no_policy_exceeds_the_bound() {
        let span = Interval::new(Time(0), Time(300));
        for seed in 0..200 {
            let mut random = Random::new(seed, &[1]);
            let mut draw = |below: f64| i64::from(random.poisson(below));
            let asks: Vec<Ask> = (0..20)
                .map(|id| {
                    let (ready, duration) = (draw(90.0) + draw(60.0), draw(20.0) + 1);
                    ask(
                        id,
                        ready,
                        ready + duration + draw(15.0),
                        duration,
                        1 + u32::try_from(draw(2.0)).unwrap().min(7),
                    )
                })
                .collect();
            let bound = most(8, &asks, span) as f64 / (8.0 * 300.0);
            for order in [Order::Fifo, Order::Edf, Order::Bjf] {
                let used = replay(8, Policy::of(order), &asks).utilisation(8, span);
                assert!(
                    used <= bound + 1e-9,
                    "seed {seed}, {order:?}: {used} above {bound}"
                );
            }
        }
    }
}
