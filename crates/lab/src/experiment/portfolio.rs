//! Beyond the papers: which order accepts most, and how much more is accepted where requests that one order refuses are tried in
//! others.

use scheduler::Order;

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::report::{
    Finding, Report, count_reported_cases, join_results, mean_cells, report_table, spread_cells,
};
use advisor::flexible::{FlexibleRun, LOADS, draw_flexible_jobs, flexible_asks};
use advisor::policy::{Policy, policy_order_name};
use advisor::replay::{ReplayAsk, ReplayOutcomes, replay_asks};
use advisor::statistics::Summary;

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
fn portfolio_policies() -> Vec<Policy> {
    let alone = ORDERS.map(Policy::of);
    let portfolio = true;
    let with = alone.map(|alone| Policy { portfolio, ..alone });
    [alone, with].concat()
}

/// Accepted node-seconds in percent of the requested ones.
fn accepted_percent_of_portfolio(asks: &[ReplayAsk], outcome: &ReplayOutcomes) -> f64 {
    let area = |counts: &dyn Fn(&ReplayAsk) -> bool| {
        let counted = asks.iter().filter(|ask| counts(ask));
        counted.map(|ask| ask.request.area()).sum::<u128>() as f64
    };
    100.0 * area(&|ask| outcome.accepted.contains_key(&ask.request.id)) / area(&|_| true).max(1.0)
}

pub(super) fn report_portfolio(setup: &Setup) -> Report {
    let policies = portfolio_policies();
    let played = setup.play(|window| {
        let draws = draw_flexible_jobs(setup.seed, window);
        let of_load = |load| {
            let asks = flexible_asks(window, &draws, &FlexibleRun::flexible(load, PHI, Order::Edf));
            let accepted = |policy: &Policy| {
                let outcome = replay_asks(setup.workload.capacity, *policy, &asks);
                accepted_percent_of_portfolio(&asks, &outcome)
            };
            policies.iter().map(accepted).collect::<Vec<f64>>()
        };
        LOADS.map(of_load).concat()
    });
    // By load: window by window for each policy.
    let values: Vec<&[Vec<f64>]> = played.chunks(policies.len()).collect();
    let row = |load: u32, of_load: &[Vec<f64>], at: usize| {
        let Policy { order, portfolio, .. } = policies[at];
        let portfolio = if portfolio { "yes" } else { "no" };
        let names = vec![
            load.to_string(),
            policy_order_name(order).into(),
            portfolio.into(),
        ];
        let (seen, more) = (Summary::of(&of_load[at]), gain_over_edf(of_load, at));
        [names, spread_cells(&seen), mean_cells(&more)].concat()
    };
    let rows = (LOADS.iter().zip(&values))
        .flat_map(|(load, of_load)| (0..policies.len()).map(move |at| row(*load, of_load, at)));
    let headings = "load (%) | order | portfolio | accepted (%) | ± 95 % | standard deviation | more than EDF alone (points) | more ± 95 %";
    Report::new("Which order accepts most, and what a portfolio of orders adds")
        .about(format!(
            "Half of the requests flexible by φ 100 %, nothing fixed, no alternatives. Accepted node-hours in percent of those that \
             were asked for, with each order alone and with a portfolio: what the order refuses is tried in others, {} times at \
             most, within the budget of a decision.",
            scheduler::schedule::TRIES
        ))
        .with(portfolio_findings(&values), report_table(headings, rows), [portfolio_figure(&values)])
}

/// By how much a policy accepts more than EDF alone.
fn gain_over_edf(of_load: &[Vec<f64>], policy: usize) -> Summary {
    Summary::of_differences(&of_load[policy], &of_load[EDF])
}

fn portfolio_findings(values: &[&[Vec<f64>]]) -> Vec<Finding> {
    let by_load = |function: &dyn Fn(&[Vec<f64>]) -> f64| {
        join_results(values.iter().map(|of_load| format!("{:+.2}", function(of_load))))
    };
    let mean = |values: &Vec<f64>| Summary::of(values).mean;
    let best = |of_load: &[Vec<f64>]| of_load[..ORDERS.len()].iter().map(mean).fold(f64::MIN, f64::max);
    let mut findings = vec![
        Finding::new("MDF accepts so many points more than EDF, at ×1 / ×1.25 / ×1.5")
            .seen(by_load(&|of_load| gain_over_edf(of_load, MDF).mean)),
    ];
    for order in [EDF, MDF] {
        let policy = ORDERS.len() + order;
        let name = format!(
            "{} with the portfolio",
            policy_order_name(ORDERS[order]).to_uppercase()
        );
        let behind = |of_load: &[Vec<f64>]| mean(&of_load[policy]) - best(of_load);
        let (near, loads) = count_reported_cases(values.iter().map(|of_load| behind(of_load) >= -BELOW_BEST));
        let gain = |of_load: &[Vec<f64>]| gain_over_edf(of_load, policy).mean;
        let mean_gain = values.iter().map(|of_load| gain(of_load)).sum::<f64>() / values.len() as f64;
        let is_near = format!("{name} is never more than {BELOW_BEST} points below the best order alone");
        let is_above = format!("{name} accepts {ABOVE_EDF} points more than EDF alone in the mean");
        findings.extend([
            Finding::new(is_near).seen(by_load(&behind)).counted(near, loads),
            Finding::new(is_above)
                .seen(by_load(&gain))
                .holds(mean_gain >= ABOVE_EDF),
        ]);
    }
    findings
}

fn portfolio_figure(values: &[&[Vec<f64>]]) -> Figure {
    // At the highest load, where most is refused.
    let of_load = values[LOADS.len() - 1];
    let series = |label, portfolio| {
        let more = |order| gain_over_edf(of_load, portfolio * ORDERS.len() + order);
        Series::bars(label, (0..ORDERS.len()).map(more))
    };
    Figure::new("Accepted node-hours by order, alone and with a portfolio, load ×1.5")
        .x("order")
        .y("more than EDF alone (points)")
        .bars(
            ORDERS.map(|order| policy_order_name(order).to_uppercase()),
            [series("alone", 0), series("with a portfolio", 1)],
        )
}
