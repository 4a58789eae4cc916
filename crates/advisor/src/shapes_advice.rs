//! What sizes and cuts to choose from are worth to a provider, and what it may pay for them (002, figures 4 to 7).
//!
//! The users of a window are those of paper 002: where they may, the same requests have sizes, cuts, both or neither. An incentive
//! changes no placement, only what is paid. So every request is played once for each kind, and earnings are sums to which the incentives
//! apply later.

use std::fmt::Write as _;

use scheduler::{Interval, Seconds, Time};
use serde_json::{Value, json};

use crate::adaptive::{Mode, adaptive_asks, place_adaptive_asks};
use crate::adaptive_plan::Policy;
use crate::advice::{Goal, SIGNIFICANCE, chance_of_advice};
use crate::policy::whole_percent;
use crate::replay_prices::ReplayPrices;
use crate::statistics::{Summary, chance_of_mean};
use crate::workers::Workers;
use crate::workload::{WINDOW_SECONDS, Window};

scheduler::worded! {
    /// The freedoms of requests that are compared; the first is what the others are compared with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ShapeKind {
        /// One size, in one piece.
        Neither = "neither",
        /// Work that may be cut.
        Cuts = "cuts",
        /// Sizes to choose from.
        Sizes = "sizes",
        /// Both.
        Both = "sizes and cuts",
    }
}

/// Incentives that are shown, in percent, as those of figure 7.
const SHOWN_PERCENT: [u32; 9] = [0, 5, 10, 15, 20, 25, 30, 35, 40];

/// What a provider pays for shapes: an incentive for cuts and a discount for the number of shapes, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incentives {
    /// `pricing.preemptive_percent`.
    pub preemptive: u32,
    /// `pricing.shapes_percent`.
    pub shapes: u32,
}

/// What the requests of a window pay before incentives: all, and those that may be cut, each with the sum of x/(x + 4) of each price, x
/// the shapes beyond the first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct PaidForShapes {
    rigid: (f64, f64),
    preemptive: (f64, f64),
}

impl PaidForShapes {
    /// What is paid under incentives.
    fn earned(&self, incentives: Incentives) -> f64 {
        let part = |percent: u32| f64::from(percent) / 100.0;
        let of = |(all, in_shapes): (f64, f64)| all - part(incentives.shapes) * in_shapes;
        of(self.rigid) + (1.0 - part(incentives.preemptive)) * of(self.preemptive)
    }
}

/// The results of a kind of request, window by window.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeScore {
    /// The kind.
    pub kind: ShapeKind,
    paid: Vec<PaidForShapes>,
    /// Node-seconds used in percent of all there were.
    used: Vec<f64>,
    /// Requests accepted in percent.
    served: Vec<f64>,
}

impl ShapeScore {
    /// The measure of a goal under incentives, window by window.
    pub fn values(&self, goal: Goal, incentives: Incentives) -> Vec<f64> {
        match goal {
            Goal::Earn => self.paid.iter().map(|paid| paid.earned(incentives)).collect(),
            Goal::Use => self.used.clone(),
            Goal::Serve => self.served.clone(),
        }
    }
}

/// Plays the requests of every window with each kind of freedom, by 002's MDF with all that waits placed anew.
pub fn score_shapes_for_advice(
    capacity: u32,
    windows: &[Window],
    seed: u64,
    workers: &Workers,
    load: u32,
    prices: &ReplayPrices,
) -> Vec<ShapeScore> {
    let tasks: Vec<(&Window, ShapeKind)> = (windows.iter())
        .flat_map(|window| ShapeKind::ALL.into_iter().map(move |kind| (window, kind)))
        .collect();
    let played = workers.map(&tasks, |(window, kind)| {
        let asks = adaptive_asks(seed, window);
        let mode = Mode {
            policy: Policy::MissingDeadlineFirst,
            moldable: matches!(kind, ShapeKind::Sizes | ShapeKind::Both),
            preemptive: matches!(kind, ShapeKind::Cuts | ShapeKind::Both),
        };
        let placed = place_adaptive_asks(capacity, &asks, mode, load);
        let span = Interval::of(Time(0), WINDOW_SECONDS * 100 / Seconds::from(load));
        let mut paid = PaidForShapes::default();
        let mut used: i64 = 0;
        for each in &placed {
            let price = prices.price_without_shapes(capacity, each);
            let shapes = each.request.preemption().flexibility(each.request.shapes().len());
            let beyond = shapes.saturating_sub(1) as f64;
            let in_shapes = price * beyond / (beyond + prices.shapes.half as f64);
            let sums = if each.request.preemption().pieces_max() > 1 {
                &mut paid.preemptive
            } else {
                &mut paid.rigid
            };
            *sums = (sums.0 + price, sums.1 + in_shapes);
            for piece in &each.pieces {
                let inside = Interval::new(piece.interval.start, piece.interval.end.min(span.end));
                used += inside.duration().max(0) * i64::from(piece.nodes);
            }
        }
        let whole = f64::from(capacity) * span.duration() as f64;
        (
            paid,
            100.0 * used as f64 / whole,
            100.0 * placed.len() as f64 / asks.len().max(1) as f64,
        )
    });
    (0..)
        .zip(ShapeKind::ALL)
        .map(|(at, kind): (usize, _)| {
            let of_kind = || played.iter().skip(at).step_by(ShapeKind::ALL.len());
            ShapeScore {
                kind,
                paid: of_kind().map(|(paid, ..)| *paid).collect(),
                used: of_kind().map(|(_, used, _)| *used).collect(),
                served: of_kind().map(|(.., served)| *served).collect(),
            }
        })
        .collect()
}

/// The comparison of the kinds of requests.
pub(crate) struct ShapesAnswer<'a> {
    /// By kind.
    pub(crate) scores: &'a [ShapeScore],
    pub(crate) prices: &'a ReplayPrices,
    pub(crate) goal: Goal,
}

/// The most that an incentive can be so that more is earned than without the freedom: in the mean, and significantly. None where that
/// is not so even for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MostIncentive {
    mean: Option<u32>,
    sure: Option<u32>,
}

impl ShapesAnswer<'_> {
    /// The incentives of the provider at present.
    fn present(&self) -> Incentives {
        Incentives {
            preemptive: whole_percent(self.prices.preemptive),
            shapes: whole_percent(self.prices.shapes.most),
        }
    }

    /// How much more of a goal a kind gives than none, under incentives.
    fn more(&self, score: &ShapeScore, goal: Goal, incentives: Incentives) -> Summary {
        let neither = self.scores[0].values(goal, incentives);
        Summary::of_differences(&score.values(goal, incentives), &neither)
    }

    /// The most that a kind of freedom may be paid by an incentive, where the other is nothing.
    fn most(&self, score: &ShapeScore, incentives: fn(u32) -> Incentives) -> MostIncentive {
        let most = |enough: fn(&Summary) -> bool| {
            let fits = |percent: &u32| enough(&self.more(score, Goal::Earn, incentives(*percent)));
            (0..=100).take_while(fits).last()
        };
        MostIncentive {
            mean: most(|more| more.mean > 0.0),
            sure: most(|more| more.mean > 0.0 && chance_of_mean(more) < SIGNIFICANCE),
        }
    }

    /// The kind that gives most of a goal at the present incentives; the first of equals.
    fn best(&self, goal: Goal) -> &ShapeScore {
        let mean = |score: &ShapeScore| self.more(score, goal, self.present()).mean;
        let best = self
            .scores
            .iter()
            .reduce(|best, score| if mean(score) > mean(best) { score } else { best });
        best.unwrap_or(&self.scores[0])
    }

    /// The freedoms with what may be paid for each, where it is something.
    fn rules(&self) -> [(&ShapeScore, &'static str, MostIncentive); 2] {
        let preemptive = |preemptive| Incentives {
            preemptive,
            ..Incentives::default()
        };
        let shapes = |shapes| Incentives {
            shapes,
            ..Incentives::default()
        };
        let (cuts, sizes) = (&self.scores[1], &self.scores[2]);
        [
            (cuts, "preemptive_percent", self.most(cuts, preemptive)),
            (sizes, "shapes_percent", self.most(sizes, shapes)),
        ]
    }

    pub(crate) fn text(&self, unit: &str) -> String {
        let goal = self.goal;
        let mut text = format!(
            "\nSizes and cuts, where users allow them as in paper 002, placed anew by its rule, to {} most: {}\n",
            goal.word(),
            self.best(goal).kind.word()
        );
        let neither = Summary::of(&self.scores[0].values(goal, self.present()));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {neither:.2} {unit} with neither");
        for score in &self.scores[1..] {
            let more = self.more(score, goal, self.present());
            let chance = chance_of_mean(&more);
            let judged = if chance < SIGNIFICANCE {
                "significant"
            } else {
                "not significant"
            };
            let (what, more) = (score.kind.word(), format!("{more:.2}"));
            let _ = writeln!(
                text,
                "  {what:34} {more:>20} more   p {:7} {judged}",
                chance_of_advice(chance)
            );
        }
        for (score, key, most) in self.rules() {
            let what = score.kind.word();
            let _ = match most {
                MostIncentive {
                    mean: Some(mean),
                    sure,
                } => writeln!(
                    text,
                    "  {what} earn more than neither up to {key} = {mean}, and surely {}",
                    sure.map_or_else(|| "at none".to_owned(), |sure| format!("up to {sure}"))
                ),
                MostIncentive { mean: None, .. } => {
                    writeln!(text, "  {what} earn no more than neither, whatever {key} is")
                }
            };
        }
        text
    }

    /// The keys of `[pricing]` by which most users are won at no loss: the highest incentives at which surely more is earned.
    pub(crate) fn settings(&self) -> Option<String> {
        let keys = self.rules().into_iter().filter_map(|(_, key, most)| {
            let percent = most.sure.filter(|percent| *percent > 0)?;
            Some(format!("{key} = {percent}\n"))
        });
        let keys: String = keys.collect();
        (!keys.is_empty()).then(|| format!("\n[pricing]\n{keys}"))
    }

    pub(crate) fn json(&self) -> Value {
        let kinds = self.scores.iter().map(|score| {
            let goals = Goal::ALL.into_iter().map(|goal| {
                let mean = Summary::of(&score.values(goal, self.present())).mean;
                let more = self.more(score, goal, self.present());
                json!({
                    "goal": goal.word(),
                    "mean": mean,
                    "more": more.mean,
                    "more_confidence_95": more.confidence,
                    "chance": chance_of_mean(&more),
                })
            });
            let incentives = SHOWN_PERCENT.map(|preemptive| {
                let incentives = Incentives {
                    preemptive,
                    ..Incentives::default()
                };
                let more = self.more(score, Goal::Earn, incentives);
                json!({
                    "preemptive_percent": preemptive,
                    "more": more.mean,
                    "more_confidence_95": more.confidence,
                })
            });
            json!({
                "kind": score.kind.word(),
                "goals": goals.collect::<Vec<_>>(),
                "incentives": incentives,
            })
        });
        let rules = self.rules().into_iter().map(|(score, key, most)| {
            json!({"kind": score.kind.word(), "key": key, "most": most.mean, "most_surely": most.sure})
        });
        json!({
            "kinds": kinds.collect::<Vec<_>>(),
            "best": Goal::ALL.map(|goal| json!({"goal": goal.word(), "kind": self.best(goal).kind.word()})),
            "incentives": rules.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(kind: ShapeKind, rigid: [f64; 2], preemptive: [(f64, f64); 2]) -> ShapeScore {
        let paid = [0, 1].map(|at| PaidForShapes {
            rigid: (rigid[at], 0.0),
            preemptive: preemptive[at],
        });
        ShapeScore {
            kind,
            paid: paid.to_vec(),
            used: vec![0.0; 2],
            served: vec![0.0; 2],
        }
    }

    #[test]
    fn the_most_incentive_is_where_the_gain_is_spent() {
        let nothing = [(0.0, 0.0); 2];
        let scores = [
            score(ShapeKind::Neither, [100.0, 200.0], nothing),
            // 20 more in each window, of 80 that those with cuts pay: 25 % of it.
            score(ShapeKind::Cuts, [40.0, 140.0], [(80.0, 40.0); 2]),
            // No more.
            score(ShapeKind::Sizes, [100.0, 200.0], nothing),
            score(ShapeKind::Both, [100.0, 200.0], nothing),
        ];
        let prices = ReplayPrices::published();
        let answer = ShapesAnswer {
            scores: &scores,
            prices: &prices,
            goal: Goal::Earn,
        };
        assert_eq!(answer.best(Goal::Earn).kind, ShapeKind::Cuts);
        let [(_, _, cuts), (_, _, sizes)] = answer.rules();
        // At 25 % nothing is left; the differences are the same in both windows.
        assert_eq!((cuts.mean, cuts.sure), (Some(24), Some(24)));
        assert_eq!((sizes.mean, sizes.sure), (None, None));
        assert_eq!(
            answer.settings().as_deref(),
            Some("\n[pricing]\npreemptive_percent = 24\n")
        );
        let both = Incentives {
            preemptive: 10,
            shapes: 50,
        };
        // 40 + 0.9 × (80 − 0.5 × 40).
        assert!((scores[1].values(Goal::Earn, both)[0] - 94.0).abs() < 1e-9);
    }
}
