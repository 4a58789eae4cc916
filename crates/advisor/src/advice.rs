//! Which policy earns or serves most on a workload, and which differences are no more than chance.
//!
//! Every policy sees the same requests in every window, so that differences are of pairs. The best is compared with all others by
//! paired t-tests. Their probabilities are corrected (Holm, 1979) for the number of all pairs of policies. The correction is
//! needed because the same data choose the best and test it: each of them could have been the best, and of fifty policies some
//! would look better by chance alone.

use clap::ValueEnum;
use scheduler::{Fraction, Order};

use crate::flexible::{self, FlexibleRun, draw_flexible_jobs, flexible_utilisation_percent};
use crate::policy::{Policy, fixing_of_policy, policy_order_name, threshold_of_policy};
use crate::random::Random;
use crate::replay::{AcceptedRequest, ReplayAsk, replay_asks};
use crate::replay_prices::ReplayPrices;
use crate::statistics::{Summary, chance_of_mean, correct_by_holm};
use crate::table::Table;
use crate::workers::Workers;
use crate::workload::Window;

/// Differences less probable than this by chance are significant.
pub const SIGNIFICANCE: f64 = 0.05;

/// The index of φ 100 % among the lengths of flexible intervals.
const PHI: usize = 2;
/// The stream of draws of the advisor.
const STREAM: u64 = 0x0AD5;

/// The assumptions about users, beyond those of paper 000: half of them are flexible, by φ 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// The rate of submissions, in percent of the rate in the workload.
    pub load_percent: u32,
    /// The percentage of users that take the nearest alternative after a refusal.
    pub takers_percent: u32,
}

scheduler::worded! {
    /// The goals of a provider.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub enum Goal {
        /// Money.
        Earn = "earn",
        /// Node-hours used.
        Use = "use",
        /// Requests accepted.
        Serve = "serve",
    }
}

/// The results of a policy in each window.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The policy.
    pub policy: Policy,
    /// By goal and window: units of the currency, node-seconds used in percent of all there were, requests accepted in percent.
    values: [Vec<f64>; 3],
}

impl Score {
    /// The measure of a goal, window by window.
    pub fn values(&self, goal: Goal) -> &[f64] {
        &self.values[goal as usize]
    }

    /// Its mean over the windows.
    pub fn summary(&self, goal: Goal) -> Summary {
        Summary::of(self.values(goal))
    }
}

/// Plays every policy in every window.
pub fn score_policies_for_advice(
    capacity: u32,
    windows: &[Window],
    seed: u64,
    workers: &Workers,
    users: Users,
    prices: &ReplayPrices,
    policies: &[Policy],
) -> Vec<Score> {
    let tasks: Vec<(&Window, &Policy)> = (windows.iter())
        .flat_map(|window| policies.iter().map(move |policy| (window, policy)))
        .collect();
    let played = workers.map(&tasks, |(window, policy)| {
        let (asks, profiles) = asks_for_advice(seed, window, users, prices);
        let outcome = replay_asks(capacity, **policy, &asks);
        let price_of = |(id, accepted): (&u64, &AcceptedRequest)| {
            let at = usize::try_from(*id).unwrap_or(usize::MAX);
            let (ask, profile) = asks.get(at).zip(profiles.get(at))?;
            Some(prices.price(capacity, ask, accepted, *profile))
        };
        let earned = outcome.accepted.iter().filter_map(price_of).sum();
        let served = 100.0 * outcome.ran.len() as f64 / asks.len().max(1) as f64;
        [
            earned,
            flexible_utilisation_percent(capacity, &outcome, users.load_percent),
            served,
        ]
    });
    (policies.iter().enumerate())
        .map(|(at, policy)| {
            let of_window = played.chunks(policies.len().max(1)).map(|each| each[at]);
            let of_window: Vec<[f64; 3]> = of_window.collect();
            Score {
                policy: *policy,
                values: [0, 1, 2].map(|goal: usize| of_window.iter().map(|values| values[goal]).collect()),
            }
        })
        .collect()
}

/// The requests of the jobs of a window, with the part of the price that each pays.
fn asks_for_advice(
    seed: u64,
    window: &Window,
    users: Users,
    prices: &ReplayPrices,
) -> (Vec<ReplayAsk>, Vec<Fraction>) {
    let run = FlexibleRun::flexible(users.load_percent, PHI, Order::Edf);
    let asks = flexible::flexible_asks(window, &draw_flexible_jobs(seed, window), &run);
    asks.into_iter()
        .map(|mut ask| {
            let mut random = Random::new(seed, &[STREAM, window.index as u64, ask.request.id]);
            ask.takes_alternatives = random.chance(f64::from(users.takers_percent) / 100.0);
            let profile = prices.price_percent_for_draw(100.0 * random.unit());
            // The price of a node-hour without discounts, so that the best payers can go first.
            let density = u64::from(prices.node_hour_micros) * u64::from(profile);
            let revenue = u128::from(density).saturating_mul(ask.request.area()) / 360_000;
            ask.request.revenue = u64::try_from(revenue).unwrap_or(u64::MAX);
            (ask, Fraction::percent(profile))
        })
        .unzip()
}

/// How the policies compare for a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The goal.
    pub goal: Goal,
    /// Where the policy with the highest mean is in the list.
    pub best: usize,
    /// By how much each policy is behind the best, in the order of the list.
    pub behind: Vec<Shortfall>,
}

/// By how much a policy is behind another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shortfall {
    /// The differences over the windows.
    pub difference: Summary,
    /// The probability of such a difference by chance; behind the best corrected for the number of pairs that there are, and 1
    /// for the best itself.
    pub chance: f64,
}

impl Shortfall {
    /// Whether it is more than chance.
    pub(crate) fn is_significant(&self) -> bool {
        self.chance < SIGNIFICANCE
    }
}

impl Advice {
    /// Among policies that were scored on the same windows; `None` without any.
    pub fn of(scores: &[Score], goal: Goal) -> Option<Self> {
        let means: Vec<f64> = scores.iter().map(|score| score.summary(goal).mean).collect();
        // The first of equals, so that the list's order is a preference.
        let best = (0..means.len()).reduce(|best, at| if means[at] > means[best] { at } else { best })?;
        let differences: Vec<Summary> = (scores.iter())
            .map(|score| Summary::of_differences(scores[best].values(goal), score.values(goal)))
            .collect();
        // Any two could have been the best and the one that is compared with it.
        let pairs: Vec<(usize, usize)> = (0..scores.len())
            .flat_map(|one| (0..one).map(move |other| (other, one)))
            .collect();
        let chances: Vec<f64> = (pairs.iter())
            .map(|(one, other)| {
                let (one, other) = (scores[*one].values(goal), scores[*other].values(goal));
                chance_of_mean(&Summary::of_differences(one, other))
            })
            .collect();
        let mut corrected = vec![1.0; scores.len()];
        for (pair, chance) in pairs.into_iter().zip(correct_by_holm(&chances)) {
            match pair {
                (one, other) if one == best => corrected[other] = chance,
                (one, other) if other == best => corrected[one] = chance,
                _ => {}
            }
        }
        let behind = differences.into_iter().zip(corrected);
        Some(Self {
            goal,
            best,
            behind: behind
                .map(|(difference, chance)| Shortfall { difference, chance })
                .collect(),
        })
    }

    /// The others that are not significantly worse than the best.
    pub fn as_good(&self) -> impl Iterator<Item = usize> {
        let others = self.behind.iter().enumerate().filter(|(at, _)| *at != self.best);
        others
            .filter(|(_, behind)| !behind.is_significant())
            .map(|(at, _)| at)
    }
}

/// By how much each goal's best policy is behind the same policy with a portfolio of orders, and the scores of those, in the
/// order of the advice. Each is one comparison that was planned, so that its chance is not corrected.
pub(crate) fn compare_advice_with_portfolio(
    scores: &[Score],
    advice: &[Advice],
    played: impl Fn(&[Policy]) -> Vec<Score>,
) -> Vec<(Score, Shortfall)> {
    let policies = advice.iter().map(|advice| Policy {
        portfolio: true,
        ..scores[advice.best].policy
    });
    let with = played(&policies.collect::<Vec<_>>());
    let compared = advice.iter().zip(with).map(|(advice, with)| {
        let best = scores[advice.best].values(advice.goal);
        let difference = Summary::of_differences(with.values(advice.goal), best);
        let chance = chance_of_mean(&difference);
        (with, Shortfall { difference, chance })
    });
    compared.collect()
}

/// A row a policy: its score for each goal, and by how much it is behind the best.
pub fn advice_table(scores: &[Score], advice: &[Advice]) -> Table {
    let mut table = Table::new(&["order", "fixed", "alternatives"]);
    for advice in advice {
        let columns = ["mean", "± 95 %", "behind the best", "behind ± 95 %", "chance"];
        let named = columns.map(|column| format!("{}: {column}", advice.goal.word()));
        table.columns.extend(named);
    }
    for (at, score) in scores.iter().enumerate() {
        let policy = score.policy;
        let mut row = vec![
            policy_order_name(policy.order).to_owned(),
            fixing_of_policy(policy.fixing),
            threshold_of_policy(policy.alternatives),
        ];
        for advice in advice {
            let (summary, Shortfall { difference, chance }) = (score.summary(advice.goal), advice.behind[at]);
            let numbers = [
                summary.mean,
                summary.confidence,
                difference.mean,
                difference.confidence,
            ];
            row.extend(numbers.map(|number| format!("{number:.2}")));
            row.push(chance_of_advice(chance));
        }
        table.rows.push(row);
    }
    table
}

/// A probability to three digits.
pub(crate) fn chance_of_advice(chance: f64) -> String {
    if chance < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{chance:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Advice, Goal, Score, Users, score_policies_for_advice};
    use crate::lublin;
    use crate::policy::{Policy, combine_policies};
    use crate::random::Random;
    use crate::replay_prices::ReplayPrices;
    use crate::workers::Workers;
    use crate::workload::{WINDOW_SECONDS, Window, WorkloadFilter};
    use scheduler::{Fraction, Order};

    fn windows() -> (u32, Vec<Window>) {
        let workload = lublin::generate_lublin_jobs(1, 24 * WINDOW_SECONDS);
        (workload.capacity, workload.windows(WorkloadFilter::F1h, 24))
    }

    fn scores(threads: usize, policies: &[Policy]) -> Vec<Score> {
        let (capacity, windows) = windows();
        let workers = Workers {
            threads,
            progress: &|_, _| {},
        };
        let users = Users {
            load_percent: 150,
            takers_percent: 50,
        };
        score_policies_for_advice(
            capacity,
            &windows,
            1,
            &workers,
            users,
            &ReplayPrices::published(),
            policies,
        )
    }

    #[test]
    fn a_policy_scores_the_same_whatever_it_is_compared_with() {
        let all = combine_policies(
            &[Order::Fifo, Order::Edf, Order::Brf],
            &[None, Some(Fraction::percent(50))],
            &[None, Some(Fraction::percent(100))],
        );
        assert_eq!(all.len(), 12);
        let together = scores(4, &all);
        for at in [0, 7, 11] {
            assert_eq!(scores(1, &all[at..=at])[0], together[at]);
        }
    }

    #[test]
    fn freedom_serves_more_and_the_same_policy_twice_is_told_from_nothing() {
        let all = combine_policies(
            &[Order::Fifo, Order::Edf],
            &[Some(Fraction::percent(0)), None],
            &[None, Some(Fraction::percent(100))],
        );
        let scores = scores(2, &[all.clone(), all.clone()].concat());
        for goal in Goal::ALL {
            let advice = Advice::of(&scores, goal).expect("there are policies");
            assert!(advice.best < all.len(), "the first of equals");
            let twin = advice.behind[advice.best + all.len()];
            assert!(
                !twin.is_significant() && twin.difference.mean.abs() < 1e-12,
                "{twin:?}"
            );
            // Fixed at once and without alternatives, every order is first come first served.
            let worst = advice.behind[0];
            assert!(
                worst.is_significant() && worst.difference.mean > 0.0,
                "{}: {worst:?}",
                goal.word()
            );
            assert_eq!(scores[0].values(goal), scores[4].values(goal));
        }
        assert_eq!(Advice::of(&[], Goal::Earn), None);
    }

    #[test]
    fn of_equal_policies_hardly_ever_is_one_called_worse_than_the_best() {
        const RUNS: u64 = 1_000;
        const POLICIES: usize = 10;
        let policy = combine_policies(&[Order::Edf], &[None], &[None])[0];
        let alarms = (0..RUNS).filter(|run| {
            let mut random = Random::new(*run, &[]);
            let scores: Vec<Score> = (0..POLICIES)
                .map(|_| Score {
                    policy,
                    values: [0, 1, 2].map(|_| (0..48).map(|_| random.normal()).collect()),
                })
                .collect();
            let advice = Advice::of(&scores, Goal::Earn).unwrap();
            advice.as_good().count() < POLICIES - 1
        });
        let alarms = alarms.count();
        assert!(alarms <= 60, "{alarms} of {RUNS}");
    }
}
