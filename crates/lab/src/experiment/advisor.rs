//! Beyond the papers: which policy earns, uses or serves most, and which differences are no more than chance.

use advisor::policies::{
    Advice, Goal, Named, ORDERS, SIGNIFICANCE, Score, THRESHOLDS, Users, compared, order_name, score, table,
};
use advisor::prices::Prices;
use advisor::statistics::Summary;
use scheduler::{Fraction, Order};

use super::{Experiment, Setup};
use crate::figure::{Figure, Plot, Point, Series};
use crate::report::{Finding, Report, Verdict};

/// The experiments of this module.
pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "advisor",
    title: "Which policy earns, uses or serves most",
    aliases: &[],
    run: advise,
}];

const USERS: Users = Users {
    load_percent: 125,
    takers_percent: 50,
};

fn advise(setup: &Setup) -> Report {
    let policies = compared();
    let prices = Prices::published();
    let capacity = setup.workload.capacity;
    let scores = score(
        capacity,
        setup.windows,
        setup.seed,
        &setup.workers,
        USERS,
        &prices,
        &policies,
    );
    let advice: Vec<Advice> = Goal::ALL
        .into_iter()
        .filter_map(|goal| Advice::of(&scores, goal))
        .collect();
    let findings = advice
        .iter()
        .map(|advice| Finding {
            what: format!("the policy to {} most", advice.goal.name()),
            paper: "–".to_owned(),
            seen: format!(
                "{}: {}; {} of {} others cannot be told from it",
                Named(&scores[advice.best].policy),
                scores[advice.best].summary(advice.goal),
                advice.as_good().count(),
                scores.len() - 1
            ),
            verdict: Verdict::Measured,
            why: String::new(),
        })
        .collect();
    Report {
        name: "",
        title: "",
        about: format!(
            "Load ×1.25, half of the requests flexible by φ 100 %, half of those refused take the nearest alternative. Prices of \
             paper 002: one for a node and an hour, 60 % off at the deadline, every fifth request pays threefold. To earn is \
             measured in that currency a window, to use in percent of the node-seconds, to serve in percent of the requests. All \
             policies are compared with the best by paired t-tests over the windows, corrected for the number of all pairs (Holm); what is \
             less probable than {SIGNIFICANCE} by chance is told apart. `bespeak advise` does the same with a price list and a \
             trace of one's own."
        ),
        findings,
        table: table(&scores, &advice),
        figures: vec![figure(&scores)],
    }
}

/// The earnings of each policy that fixes nothing over those of first come, first served, without alternatives.
fn figure(scores: &[Score]) -> Figure {
    let find = |order: Order, threshold: Option<Fraction>| {
        scores.iter().find(|score| {
            let policy = score.policy;
            let phi = policy.alternatives.map(|alternatives| alternatives.phi_max);
            policy.order == order && policy.fixing.is_none() && phi == threshold
        })
    };
    let base = find(Order::Fifo, None);
    let gain = |order, threshold| -> Summary {
        let pair = find(order, threshold).zip(base);
        pair.map_or(Summary::default(), |(score, base)| {
            let scale = 100.0 / base.summary(Goal::Earn).mean.max(f64::MIN_POSITIVE);
            let scaled = |of: &Score| {
                of.values(Goal::Earn)
                    .iter()
                    .map(|v| v * scale)
                    .collect::<Vec<_>>()
            };
            Summary::of_differences(&scaled(score), &scaled(base))
        })
    };
    Figure {
        name: "advisor".to_owned(),
        title: "Revenue by order and alternatives, nothing fixed, load ×1.25".to_owned(),
        x_label: "how far alternatives may lie (φ)".to_owned(),
        y_label: "revenue, gain over FIFO without alternatives (%)".to_owned(),
        plot: Plot::Bars {
            groups: THRESHOLDS
                .map(|threshold| threshold.map_or("none".to_owned(), |phi| format!("{} %", phi.numerator)))
                .to_vec(),
        },
        series: ORDERS
            .map(|order| Series {
                label: order_name(order).to_uppercase(),
                points: (0..)
                    .zip(THRESHOLDS)
                    .map(|(x, threshold)| {
                        let gain = gain(order, threshold);
                        Point {
                            x: f64::from(x),
                            y: gain.mean,
                            error: gain.confidence,
                        }
                    })
                    .collect(),
            })
            .to_vec(),
    }
}
