//! Beyond the papers: which order accepts most, and how much more is accepted where requests that one order refuses are tried in
//! others.

use scheduler::Order;

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::report::{Finding, Report, Verdict, joined, mean, spread};
use advisor::flexible::{LOADS, Run, asks, draws};
use advisor::policies::order_name;
use advisor::replay::{Ask, Outcome, Policy, replay};
use advisor::statistics::Summary;
use advisor::table::Table;

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

pub(super) fn compare(setup: &Setup) -> Report {
    let policies = policies();
    let played = setup.play(|window| {
        let draws = draws(setup.seed, window);
        let of_load = |load| {
            let asks = asks(window, &draws, &Run::flexible(load, PHI, Order::Edf));
            let played = policies
                .iter()
                .map(|policy| replay(setup.workload.capacity, *policy, &asks));
            let accepted = played.map(|outcome| accepted_percent(&asks, &outcome));
            accepted.collect::<Vec<f64>>()
        };
        LOADS.map(of_load).concat()
    });
    // By load: window by window for each policy.
    let values: Vec<&[Vec<f64>]> = played.chunks(policies.len()).collect();
    Report::new(
        "Which order accepts most, and what a portfolio of orders adds",
        format!(
            "Half of the requests flexible by φ 100 %, nothing fixed, no alternatives. Accepted node-hours in percent of those that \
             were asked for, with each order alone and with a portfolio: what the order refuses is tried in others, {} times at \
             most, within the budget of a decision.",
            scheduler::admission::TRIES
        ),
        findings(&values),
        table(&policies, &values),
        vec![figure(&values)],
    )
}

fn findings(values: &[&[Vec<f64>]]) -> Vec<Finding> {
    let by_load =
        |of: &dyn Fn(&[Vec<f64>]) -> f64| joined(values.iter().map(|of_load| format!("{:+.2}", of(of_load))));
    let mean = |values: &Vec<f64>| Summary::of(values).mean;
    let best = |of_load: &[Vec<f64>]| of_load[..ORDERS.len()].iter().map(mean).fold(f64::MIN, f64::max);
    let over_edf =
        |of_load: &[Vec<f64>], policy: usize| Summary::of_differences(&of_load[policy], &of_load[EDF]).mean;
    let mut findings = vec![Finding::own(
        "MDF accepts so many points more than EDF, at ×1 / ×1.25 / ×1.5",
        by_load(&|of_load| over_edf(of_load, MDF)),
        Verdict::Measured,
    )];
    for order in [EDF, MDF] {
        let policy = ORDERS.len() + order;
        let name = order_name(ORDERS[order]).to_uppercase();
        let behind = |of_load: &[Vec<f64>]| mean(&of_load[policy]) - best(of_load);
        let near = values
            .iter()
            .filter(|of_load| behind(of_load) >= -BELOW_BEST)
            .count();
        findings.push(Finding::own(
            format!(
                "{name} with the portfolio is never more than {BELOW_BEST} points below the best order alone"
            ),
            by_load(&behind),
            Verdict::of_own(near, values.len()),
        ));
        let gains = values.iter().map(|of_load| over_edf(of_load, policy));
        let gain = gains.sum::<f64>() / values.len() as f64;
        findings.push(Finding::own(
            format!("{name} with the portfolio accepts {ABOVE_EDF} points more than EDF alone in the mean"),
            by_load(&|of_load| over_edf(of_load, policy)),
            Verdict::of_own(usize::from(gain >= ABOVE_EDF), 1),
        ));
    }
    findings
}

fn table(policies: &[Policy], values: &[&[Vec<f64>]]) -> Table {
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
        for (policy, of_policy) in policies.iter().zip(*of_load) {
            let portfolio = if policy.portfolio { "yes" } else { "no" };
            let mut row = vec![
                load.to_string(),
                order_name(policy.order).to_owned(),
                portfolio.to_owned(),
            ];
            row.extend(spread(&Summary::of(of_policy)));
            row.extend(mean(&Summary::of_differences(of_policy, &of_load[EDF])));
            table.rows.push(row);
        }
    }
    table
}

fn figure(values: &[&[Vec<f64>]]) -> Figure {
    // At the highest load, where most is refused.
    let of_load = values[LOADS.len() - 1];
    let series = |label: &str, policies: &[Vec<f64>]| {
        let more = policies.iter();
        Series::bars(label, more.map(|of| Summary::of_differences(of, &of_load[EDF])))
    };
    let (alone, portfolio) = of_load.split_at(ORDERS.len());
    Figure::bars(
        "portfolio",
        "Accepted node-hours by order, alone and with a portfolio, load ×1.5",
        ["order", "more than EDF alone (points)"],
        ORDERS.map(|order| order_name(order).to_uppercase()),
        [series("alone", alone), series("with a portfolio", portfolio)],
    )
}
