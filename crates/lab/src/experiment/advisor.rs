//! Beyond the papers: which policy earns, uses or serves most, and which differences are no more than chance.

use advisor::advice::{Advice, Goal, SIGNIFICANCE, Score, Users, advice_table, score_policies_for_advice};
use advisor::policy::{ORDERS, PolicyName, THRESHOLDS, compared_policies, policy_order_name};
use advisor::replay_prices::ReplayPrices;
use advisor::statistics::Summary;
use scheduler::schedule::DecisionRule;
use scheduler::{Fraction, Order};

use super::setup::Setup;
use crate::figure::{Figure, Series};
use crate::report::{Finding, Report};

const USERS: Users = Users {
    load_percent: 125,
    takers_percent: 50,
};

pub(super) fn report_policy_advice(setup: &Setup) -> Report {
    let scores = score_policies_for_advice(
        setup.workload.capacity,
        setup.windows,
        setup.seed,
        &setup.workers,
        USERS,
        &ReplayPrices::published(),
        &compared_policies(DecisionRule::Published),
    );
    let advice: Vec<Advice> = Goal::ALL
        .into_iter()
        .filter_map(|goal| Advice::of(&scores, goal))
        .collect();
    let finding = |advice: &Advice| {
        let best = &scores[advice.best];
        let (policy, seen) = (PolicyName(&best.policy), best.summary(advice.goal));
        let (as_good, others) = (advice.as_good().count(), scores.len() - 1);
        let seen = format!("{policy}: {seen}; {as_good} of {others} others cannot be told from it");
        Finding::new(format!("the policy to {} most", advice.goal.word())).seen(seen)
    };
    let findings: Vec<Finding> = advice.iter().map(finding).collect();
    Report::new("Which policy earns, uses or serves most")
        .about(format!(
            "Load ×1.25, half of the requests flexible by φ 100 %, half of those refused take the nearest alternative. Prices of \
             paper 002: one for a node and an hour, 60 % off at the deadline, every fifth request pays threefold. To earn is \
             measured in that currency a window, to use in percent of the node-seconds, to serve in percent of the requests. All \
             policies are compared with the best by paired t-tests over the windows, corrected for the number of all pairs (Holm); what is \
             less probable than {SIGNIFICANCE} by chance is told apart. `bespeak advise` does the same with a price list and a \
             trace of one's own."
        ))
        .with(findings, advice_table(&scores, &advice), [figure_of_earnings(&scores)])
}

/// The earnings of each policy that fixes nothing over those of first come, first served, without alternatives.
fn figure_of_earnings(scores: &[Score]) -> Figure {
    let earned = |order: Order, threshold: Option<Fraction>| {
        let found = scores.iter().find(|score| {
            let policy = score.policy;
            let phi = policy.alternatives.map(|alternatives| alternatives.phi_max);
            policy.order == order && policy.fixing.is_none() && phi == threshold
        });
        // The advice scores every combination.
        found.expect("all combinations are compared").values(Goal::Earn)
    };
    let base = earned(Order::Fifo, None);
    let scale = 100.0 / Summary::of(base).mean.max(f64::MIN_POSITIVE);
    let scaled = |earned: &[f64]| earned.iter().map(|value| value * scale).collect::<Vec<f64>>();
    let gain = |order, threshold| Summary::of_differences(&scaled(earned(order, threshold)), &scaled(base));
    let group = |threshold: Option<Fraction>| {
        threshold.map_or("none".to_owned(), |phi| format!("{} %", phi.numerator))
    };
    let series = |order| {
        let gains = THRESHOLDS.map(|threshold| gain(order, threshold));
        Series::bars(policy_order_name(order).to_uppercase(), gains)
    };
    Figure::new("Revenue by order and alternatives, nothing fixed, load ×1.25")
        .x("how far alternatives may lie (φ)")
        .y("revenue, gain over FIFO without alternatives (%)")
        .bars(THRESHOLDS.map(group), ORDERS.map(series))
}
