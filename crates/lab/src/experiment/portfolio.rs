//! Beyond the papers: which order accepts most, and how much more is accepted where requests that one order refuses are tried in
//! others.

use scheduler::Order;

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::report::{Finding, Report, Verdict, cells};
use advisor::flexible::{LOADS, Run, asks, draws};
use advisor::policies::order_name;
use advisor::replay::{Ask, Outcome, Policy, replay};
use advisor::statistics::Summary;
use advisor::table::Table;
use advisor::workload::Window;

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "portfolio",
    title: "Which order accepts most, and what a portfolio of orders adds",
    aliases: &[],
    run: compare,
}];

/// The orders that are compared.
const ORDERS: [Order; 6] = [
    Order::Edf,
    Order::Mdf,
    Order::Lff,
    Order::Shuffle { seed: 1 },
    Order::Bjf,
    Order::Fifo,
];
const EDF: usize = 0;
const MDF: usize = 1;
/// The index of φ 100 %.
const PHI: usize = 2;
/// A portfolio accepts no less than the best order less this many points,
const BELOW_BEST: f64 = 0.2;
/// and this many more than EDF in the mean.
const ABOVE_EDF: f64 = 0.5;

/// Each order, first alone and then with the portfolio.
fn policies() -> Vec<Policy> {
    let of = |portfolio| {
        ORDERS.map(|order| Policy {
            portfolio,
            ..Policy::of(order)
        })
    };
    [of(false), of(true)].concat()
}

/// Accepted node-seconds in percent of the requested ones.
fn accepted_percent(asks: &[Ask], outcome: &Outcome) -> f64 {
    let area = |asks: &mut dyn Iterator<Item = &Ask>| asks.map(|ask| ask.request.area()).sum::<u128>() as f64;
    let accepted = area(
        &mut asks
            .iter()
            .filter(|ask| outcome.accepted.contains_key(&ask.request.id)),
    );
    100.0 * accepted / area(&mut asks.iter()).max(1.0)
}

fn compare(setup: &Setup) -> Report {
    let policies = policies();
    let tasks: Vec<(&Window, u32)> = (setup.windows.iter())
        .flat_map(|window| LOADS.map(|load| (window, load)))
        .collect();
    let played: Vec<Vec<f64>> = setup.workers.map(&tasks, |(window, load)| {
        let asks = asks(
            window,
            &draws(setup.seed, window),
            &Run::flexible(*load, PHI, Order::Edf),
        );
        let played = policies
            .iter()
            .map(|policy| replay(setup.workload.capacity, *policy, &asks));
        played.map(|outcome| accepted_percent(&asks, &outcome)).collect()
    });
    // By load and policy: window by window.
    let values: Vec<Vec<Vec<f64>>> = (0..LOADS.len())
        .map(|load| {
            let of_load = || played.iter().skip(load).step_by(LOADS.len());
            let of_policy = |policy: usize| of_load().map(|of_window| of_window[policy]).collect();
            (0..policies.len()).map(of_policy).collect()
        })
        .collect();
    Report {
        name: "",
        title: "",
        about: format!(
            "Half of the requests flexible by φ 100 %, nothing fixed, no alternatives. Accepted node-hours in percent of those that \
             were asked for, with each order alone and with a portfolio: what the order refuses is tried in others, {} times at \
             most, within the budget of a decision.",
            scheduler::admission::TRIES
        ),
        findings: findings(&values),
        table: table(&policies, &values),
        figures: vec![figure(&values)],
    }
}

fn mean(values: &[f64]) -> f64 {
    Summary::of(values).mean
}

fn findings(values: &[Vec<Vec<f64>>]) -> Vec<Finding> {
    let by_load = |of: &dyn Fn(&[Vec<f64>]) -> f64| {
        let texts: Vec<String> = values
            .iter()
            .map(|of_load| format!("{:+.2}", of(of_load)))
            .collect();
        texts.join(" / ")
    };
    let best = |of_load: &[Vec<f64>]| {
        of_load[..ORDERS.len()]
            .iter()
            .map(|of| mean(of))
            .fold(f64::MIN, f64::max)
    };
    let over_edf =
        |of_load: &[Vec<f64>], policy: usize| Summary::of_differences(&of_load[policy], &of_load[EDF]).mean;
    let mut findings = vec![Finding {
        what: "MDF accepts so many points more than EDF, at ×1 / ×1.25 / ×1.5".to_owned(),
        paper: "–".to_owned(),
        seen: by_load(&|of_load| over_edf(of_load, MDF)),
        verdict: Verdict::Measured,
        why: String::new(),
    }];
    for order in [EDF, MDF] {
        let policy = ORDERS.len() + order;
        let name = order_name(ORDERS[order]).to_uppercase();
        let behind = |of_load: &[Vec<f64>]| mean(&of_load[policy]) - best(of_load);
        let near = values
            .iter()
            .filter(|of_load| behind(of_load) >= -BELOW_BEST)
            .count();
        findings.push(Finding {
            what: format!(
                "{name} with the portfolio is never more than {BELOW_BEST} points below the best order alone"
            ),
            paper: "–".to_owned(),
            seen: by_load(&behind),
            verdict: Verdict::of_own(near, values.len()),
            why: String::new(),
        });
        let gains = values.iter().map(|of_load| over_edf(of_load, policy));
        let gain = gains.sum::<f64>() / values.len() as f64;
        findings.push(Finding {
            what: format!(
                "{name} with the portfolio accepts {ABOVE_EDF} points more than EDF alone in the mean"
            ),
            paper: "–".to_owned(),
            seen: by_load(&|of_load| over_edf(of_load, policy)),
            verdict: Verdict::of_own(usize::from(gain >= ABOVE_EDF), 1),
            why: String::new(),
        });
    }
    findings
}

fn table(policies: &[Policy], values: &[Vec<Vec<f64>>]) -> Table {
    let mut table = Table::new(&[
        "load (%)",
        "order",
        "portfolio",
        "accepted (%)",
        "± 95 %",
        "standard deviation",
        "more than EDF alone (points)",
        "more ± 95 %",
    ]);
    for (load, of_load) in LOADS.iter().zip(values) {
        for (policy, of_policy) in policies.iter().zip(of_load) {
            let portfolio = if policy.portfolio { "yes" } else { "no" };
            let mut row = vec![
                load.to_string(),
                order_name(policy.order).to_owned(),
                portfolio.to_owned(),
            ];
            row.extend(cells(&Summary::of(of_policy)));
            let more = Summary::of_differences(of_policy, &of_load[EDF]);
            row.extend([more.mean, more.confidence].map(|number| format!("{number:.2}")));
            table.rows.push(row);
        }
    }
    table
}

fn figure(values: &[Vec<Vec<f64>>]) -> Figure {
    let series = |portfolio: usize, label: &str| Series {
        label: label.to_owned(),
        points: (0..ORDERS.len())
            .map(|order| {
                // At the highest load, where most is refused.
                let of_load = &values[LOADS.len() - 1];
                let more = Summary::of_differences(&of_load[portfolio * ORDERS.len() + order], &of_load[EDF]);
                Point {
                    x: order as f64,
                    y: more.mean,
                    error: more.confidence,
                }
            })
            .collect(),
    };
    Figure {
        name: "portfolio".to_owned(),
        title: "Accepted node-hours by order, alone and with a portfolio, load ×1.5".to_owned(),
        x_label: "order".to_owned(),
        y_label: "more than EDF alone (points)".to_owned(),
        plot: Plot::Bars {
            groups: ORDERS.map(|order| order_name(order).to_uppercase()).to_vec(),
        },
        series: vec![series(0, "alone"), series(1, "with a portfolio")],
    }
}
