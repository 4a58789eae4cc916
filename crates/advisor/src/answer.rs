//! The comparison of policies in words and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::advice::{Advice, Goal, SIGNIFICANCE, Score, Shortfall, chance_of_advice};
use crate::objective_advice::ObjectiveScore;
use crate::policy::{
    PolicyName, fixing_of_policy, policy_order_name, policy_settings, threshold_of_policy, whole_percent,
};
use crate::replay_prices::ReplayPrices;
use crate::shapes_advice::ShapesAnswer;

/// The content of the answer.
pub(crate) struct AdviceAnswer<'a> {
    pub(crate) workload: String,
    pub(crate) prices: &'a ReplayPrices,
    pub(crate) scores: &'a [Score],
    pub(crate) advice: &'a [Advice],
    /// How far the best policy of each goal is behind its portfolio of orders.
    pub(crate) portfolio: &'a [(Score, Shortfall)],
    /// Where the present settings are among the scores, if any are known.
    pub(crate) present: Option<usize>,
    pub(crate) goal: Goal,
    pub(crate) takers: u32,
    /// What the objective is worth, where resources differ in rate.
    pub(crate) objectives: Option<&'a ObjectiveScore>,
    /// What sizes and cuts are worth.
    pub(crate) shapes: ShapesAnswer<'a>,
}

impl AdviceAnswer<'_> {
    /// The rule by which all policies decide about a request that fits the plan as it stands.
    fn decision(&self) -> &'static str {
        self.scores
            .first()
            .map_or("", |score| score.policy.decision.word())
    }

    fn unit(&self, goal: Goal) -> String {
        match goal {
            Goal::Earn => format!("{} a window", self.prices.currency),
            Goal::Use => "% of the node-hours".to_owned(),
            Goal::Serve => "% of the requests".to_owned(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{}\n{} policies on the same requests, decided by the {} rule; half of them flexible, {} % of those refused take the nearest alternative\n{}\n",
            self.workload,
            self.scores.len(),
            self.decision(),
            self.takers,
            self.price_text()
        );
        for (advice, (_, behind)) in self.advice.iter().zip(self.portfolio) {
            text += &self.goal_text(advice, behind);
        }
        if let Some(advice) = self.advice.iter().find(|advice| advice.goal == self.goal) {
            text += &self.shapes.text(&self.unit(self.goal));
            text += &self.objectives.map_or_else(String::new, ObjectiveScore::text);
            text += &self.settings_text(advice);
            text += self.shapes.settings().as_deref().unwrap_or_default();
        }
        text
    }

    fn price_text(&self) -> String {
        let ReplayPrices {
            currency,
            node_hour_micros,
            late,
            busy,
            flexible,
            preemptive,
            shapes,
            profiles,
            ..
        } = self.prices;
        let mut text = format!(
            "prices: {} {currency} a node and hour",
            f64::from(*node_hour_micros) / 1e6
        );
        for (part, what) in [
            (late, "off at the deadline"),
            (busy, "on top where the window is full"),
            (&flexible.most, "off at most for slack"),
            (preemptive, "off for cuts"),
            (&shapes.most, "off at most for shapes"),
        ] {
            if part.numerator > 0 {
                // Writing to a string does not fail.
                let _ = write!(text, ", {} % {what}", whole_percent(*part));
            }
        }
        for profile in profiles {
            let _ = write!(
                text,
                ", {} % of the requests pay {} % of it",
                profile.share_percent, profile.price_percent
            );
        }
        text
    }

    fn goal_text(&self, advice: &Advice, portfolio: &Shortfall) -> String {
        let best = &self.scores[advice.best];
        let mut text = format!(
            "\nTo {} most: {}\n  {:.2} {}\n",
            advice.goal.word(),
            PolicyName(&best.policy),
            best.summary(advice.goal),
            self.unit(advice.goal)
        );
        let mut compare = |what: &str, behind: &Shortfall, how: &str| {
            let judged = if behind.is_significant() {
                "significant"
            } else {
                "not significant"
            };
            let _ = writeln!(
                text,
                "  {what:34} {:>20} {how}   p {:7} {judged}",
                format!("{:.2}", behind.difference),
                chance_of_advice(behind.chance)
            );
        };
        for (what, at) in self.instead(advice) {
            compare(&what, &advice.behind[at], "less");
        }
        compare("with a portfolio of orders", portfolio, "more");
        let others = self.scores.len() - 1;
        let equals: Vec<String> = advice
            .as_good()
            .map(|at| PolicyName(&self.scores[at].policy).to_string())
            .collect();
        if equals.is_empty() {
            let _ = writeln!(text, "  Each of the {others} others is significantly worse.");
        } else {
            let _ = writeln!(
                text,
                "  {} of the {others} others cannot be told from it:\n    {}",
                equals.len(),
                equals.join("\n    ")
            );
        }
        text
    }

    /// The policies that differ from the best in one respect, and the present settings.
    fn instead(&self, advice: &Advice) -> Vec<(String, usize)> {
        let best = self.scores[advice.best].policy;
        let mut instead: Vec<(String, usize)> = self
            .scores
            .iter()
            .enumerate()
            .filter_map(|(at, score)| {
                let policy = score.policy;
                let (order, fixing, alternatives) = (
                    policy.order != best.order,
                    policy.fixing != best.fixing,
                    policy.alternatives != best.alternatives,
                );
                let what = match (order, fixing, alternatives) {
                    (true, false, false) => format!("order {}", policy_order_name(policy.order)),
                    (false, true, false) => format!("fixed {}", fixing_of_policy(policy.fixing)),
                    (false, false, true) => {
                        format!("alternatives {}", threshold_of_policy(policy.alternatives))
                    }
                    _ => return None,
                };
                Some((what, at))
            })
            .collect();
        if let Some(present) = self.present.filter(|present| *present != advice.best) {
            instead.push(("your settings".to_owned(), present));
        }
        instead
    }

    /// The settings for the configuration, if any.
    fn settings_text(&self, advice: &Advice) -> String {
        let goal = advice.goal.word();
        let best = policy_settings(&self.scores[advice.best].policy);
        let Some(present) = self.present else {
            return format!("\nThe settings to {goal} most:\n\n[scheduling]\n{best}");
        };
        let yours = PolicyName(&self.scores[present].policy);
        if present == advice.best {
            return format!("\nYour settings ({yours}) are the best to {goal}.\n");
        }
        if !advice.behind[present].is_significant() {
            return format!(
                "\nYour settings ({yours}) cannot be told from the best to {goal}: no need to change them.\n"
            );
        }
        format!("\nYour settings are {yours}. Those to {goal} most:\n\n[scheduling]\n{best}")
    }

    pub(crate) fn json(&self) -> Value {
        let policy = |at: usize| {
            let policy = &self.scores[at].policy;
            json!({
                "order": policy_order_name(policy.order),
                "fix_after_percent": policy.fixing.map(whole_percent),
                "alternatives_percent": policy.alternatives.map(|alternatives| whole_percent(alternatives.phi_max)),
            })
        };
        let goals = self
            .advice
            .iter()
            .zip(self.portfolio)
            .map(|(advice, (with, behind))| {
                let compared: Vec<Value> = (0..self.scores.len())
                    .map(|at| {
                        let (summary, behind) = (self.scores[at].summary(advice.goal), advice.behind[at]);
                        json!({
                            "policy": policy(at),
                            "mean": summary.mean,
                            "confidence_95": summary.confidence,
                            "behind": behind.difference.mean,
                            "behind_confidence_95": behind.difference.confidence,
                            "chance": behind.chance,
                            "significant": behind.is_significant(),
                        })
                    })
                    .collect();
                json!({
                    "goal": advice.goal.word(),
                    "unit": self.unit(advice.goal),
                    "best": policy(advice.best),
                    "as_good": advice.as_good().count(),
                    "portfolio": {
                        "mean": with.summary(advice.goal).mean,
                        "gain": behind.difference.mean,
                        "gain_confidence_95": behind.difference.confidence,
                        "chance": behind.chance,
                        "significant": behind.is_significant(),
                    },
                    "policies": compared,
                })
            });
        json!({
            "workload": self.workload,
            "prices": self.price_text(),
            "decision": self.decision(),
            "takers_percent": self.takers,
            "significance": SIGNIFICANCE,
            "present": self.present.map(policy),
            "goals": goals.collect::<Vec<_>>(),
            "shapes": self.shapes.json(),
            "objectives": self.objectives.map(ObjectiveScore::json),
        })
    }
}
