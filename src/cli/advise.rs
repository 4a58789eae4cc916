//! `bespeak advise`: which order, fixing and alternatives earn, use or serve most, on a workload and by the provider's own
//! price list, and which differences are no more than chance.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use scheduler::Fraction;
use serde_json::{Value, json};
use simulation::advisor::{
    Advice, Behind, Goal, Named, PROFILES_MAX, Prices, Profile, SIGNIFICANCE, Score, Users, chance_text,
    fixing_name, order_name, policies, score, table, threshold_name,
};
use simulation::experiment::advisor::{FIXINGS, ORDERS, THRESHOLDS};
use simulation::experiment::portfolio::behind_portfolio;
use simulation::replay::{Alternatives, Policy};

use super::Failure;
use super::config::Config;
use super::simulate::{ProgressLine, Source, all_cores};
use crate::planner;

const EXAMPLES: &str = "\
Compared are all combinations of
  order         edf, lff, mdf, bjf, brf, fifo
  fixing        never, after half of the wait, at once
  alternatives  none, up to 50 % or 100 % of the duration outside the window
and the settings of the configuration, where they are others. Every one gets the same requests in every window. What is
said to be significant is so at 5 % by paired t-tests over the windows, corrected for all pairs (Holm). The policies are
compared by their order alone. Of the best it is also said what a portfolio of orders adds, which the service has with
every order: what the order refuses is tried in others.

The price list is [pricing] of the configuration, as the service charges it, for its general price of a node and hour. Its
profiles are of parties that a trace does not know: --profile says instead which part of the requests pays what part of
the price. Without a price list it is that of a published evaluation: one a node and hour, 60 % off at the deadline,
every fifth request pays threefold.

A trace does not say how flexible its users would be. Half of them are taken to give the system as much time again as
they need, and to be refused as often as their requests do not fit.

Examples:
  bespeak advise --config bespeak.toml --trace SDSC-SP2-1998-4.2-cln.swf.gz
  bespeak advise --config bespeak.toml --profile 20:300 --load 150 --goal serve
  bespeak advise --out policies.csv --json";

/// Options of `advise`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    source: Source,
    /// Configuration with the price list and the present settings. [default: built-in settings, published prices]
    #[arg(long, env = "BESPEAK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// SHARE % of the requests pay PRICE % of the price; several times for several profiles.
    #[arg(long = "profile", value_name = "SHARE:PRICE", value_parser = profile)]
    profiles: Vec<Profile>,
    /// Submissions so many percent as frequent as in the workload.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1_000))]
    load: u32,
    /// So many in a hundred take the nearest alternative after a refusal.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    takers: u32,
    /// What the settings to be printed are best at.
    #[arg(long, value_enum, default_value_t = GoalName::Earn)]
    goal: GoalName,
    /// Write all policies as CSV.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// All policies and comparisons as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GoalName {
    /// Money.
    Earn,
    /// Node-hours used.
    Use,
    /// Requests accepted.
    Serve,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Earn => Self::Earn,
            GoalName::Use => Self::Use,
            GoalName::Serve => Self::Serve,
        }
    }
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let settings = Config::load(options.config.as_deref())?.planner();
    let prices = options.prices(settings.pricing.as_ref())?;
    let (workload, windows) = options.source.open()?;
    // Before the long work: whether its result can be kept.
    let out = match &options.out {
        Some(path) => Some((File::create(path).map_err(|error| unwritten(path, &error))?, path)),
        None => None,
    };
    let mut candidates = policies(&ORDERS, &FIXINGS, &THRESHOLDS);
    let present = present(&settings);
    let at_present = candidates.iter().position(|policy| *policy == present);
    let at_present = at_present.unwrap_or_else(|| {
        candidates.push(present);
        candidates.len() - 1
    });
    let users = Users {
        load_percent: options.load,
        takers_percent: options.takers,
    };
    let line = ProgressLine::default();
    line.starts("advise");
    let progress = |done, total| line.show(done, total);
    let played = |policies: &[Policy]| {
        let workers = all_cores(&progress);
        let seed = options.source.seed;
        score(
            workload.capacity,
            &windows,
            seed,
            &workers,
            users,
            &prices,
            policies,
        )
    };
    let scores = played(&candidates);
    let advice: Vec<Advice> = Goal::ALL
        .into_iter()
        .filter_map(|goal| Advice::of(&scores, goal))
        .collect();
    let portfolio = behind_portfolio(&scores, &advice, played);
    ProgressLine::clear();
    if let Some((mut file, path)) = out {
        let table = table(&scores, &advice).csv();
        file.write_all(table.as_bytes())
            .map_err(|error| unwritten(path, &error))?;
    }
    let jobs: usize = windows.iter().map(|window| window.jobs.len()).sum();
    let answer = Answer {
        workload: format!(
            "{} ({} nodes), {} windows of 15 days, {jobs} jobs ({}), load {} %",
            workload.name,
            workload.capacity,
            windows.len(),
            options.source.filter().name(),
            options.load
        ),
        prices: &prices,
        scores: &scores,
        advice: &advice,
        portfolio: &portfolio,
        present: at_present,
        goal: options.goal.into(),
        takers: options.takers,
    };
    if options.json {
        say!("{:#}", answer.json());
    } else {
        say!("{}", answer.text().trim_end());
    }
    Ok(())
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

impl Options {
    /// The price list, with the profiles of the command line.
    fn prices(&self, pricing: Option<&planner::Pricing>) -> Result<Prices, Failure> {
        let shares: u32 = self.profiles.iter().map(|profile| profile.share_percent).sum();
        if shares > 100 || self.profiles.len() > PROFILES_MAX {
            return Err(Failure::Usage(format!(
                "--profile: expected at most {PROFILES_MAX} of together at most 100 % of the requests, found {} of {shares} %",
                self.profiles.len()
            )));
        }
        let mut prices = pricing.map_or_else(Prices::published, |pricing| Prices {
            currency: pricing.currency.code().to_owned(),
            node_hour_micros: pricing.node_hour_micros,
            late: pricing.late,
            busy: pricing.busy,
            flexible: pricing.flexible,
            profiles: Vec::new(),
        });
        if !self.profiles.is_empty() {
            prices.profiles.clone_from(&self.profiles);
        }
        Ok(prices)
    }
}

/// What the service does as it is configured.
fn present(settings: &planner::Settings) -> Policy {
    let phi_max = settings.refusals.alternatives_phi;
    Policy {
        order: settings.order,
        portfolio: false,
        fixing: settings.fix_after,
        alternatives: (phi_max.numerator > 0).then_some(Alternatives {
            phi_max,
            earlier_only: false,
        }),
    }
}

/// What there is to say.
struct Answer<'a> {
    workload: String,
    prices: &'a Prices,
    scores: &'a [Score],
    advice: &'a [Advice],
    /// What the best policy of each goal is behind its portfolio of orders.
    portfolio: &'a [(Score, Behind)],
    /// Where the present settings are among the scores.
    present: usize,
    goal: Goal,
    takers: u32,
}

impl Answer<'_> {
    fn unit(&self, goal: Goal) -> String {
        match goal {
            Goal::Earn => format!("{} a window", self.prices.currency),
            Goal::Use => "% of the node-hours".to_owned(),
            Goal::Serve => "% of the requests".to_owned(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}\n{} policies on the same requests; half of them flexible, {} % of those refused take the nearest alternative\n{}\n",
            self.workload,
            self.scores.len(),
            self.takers,
            self.price_text()
        );
        for (advice, (_, behind)) in self.advice.iter().zip(self.portfolio) {
            text += &self.goal_text(advice, behind);
        }
        if let Some(advice) = self.advice.iter().find(|advice| advice.goal == self.goal) {
            text += &self.settings_text(advice);
        }
        text
    }

    fn price_text(&self) -> String {
        let Prices {
            currency,
            node_hour_micros,
            late,
            busy,
            flexible,
            profiles,
        } = self.prices;
        let mut text = format!(
            "prices: {} {currency} a node and hour",
            f64::from(*node_hour_micros) / 1e6
        );
        for (part, what) in [
            (late, "off at the deadline"),
            (busy, "on top where the window is full"),
            (&flexible.most, "off at most for slack"),
        ] {
            if part.numerator > 0 {
                // Writing to a string does not fail.
                let _ = write!(
                    text,
                    ", {} % {what}",
                    100 * part.numerator / part.denominator.max(1)
                );
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

    fn goal_text(&self, advice: &Advice, portfolio: &Behind) -> String {
        let best = &self.scores[advice.best];
        let mut text = format!(
            "\nTo {} most: {}\n  {:.2} {}\n",
            advice.goal.name(),
            Named(&best.policy),
            best.summary(advice.goal),
            self.unit(advice.goal)
        );
        let mut compare = |what: &str, behind: &Behind, how: &str| {
            let judged = if behind.is_significant() {
                "significant"
            } else {
                "not significant"
            };
            let _ = writeln!(
                text,
                "  {what:34} {:>20} {how}   p {:7} {judged}",
                format!("{:.2}", behind.difference),
                chance_text(behind.chance)
            );
        };
        for (what, at) in self.instead(advice) {
            compare(&what, &advice.behind[at], "less");
        }
        compare("with a portfolio of orders", portfolio, "more");
        let others = self.scores.len() - 1;
        let equals: Vec<String> = advice
            .as_good()
            .map(|at| Named(&self.scores[at].policy).to_string())
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
                    (true, false, false) => format!("order {}", order_name(policy.order)),
                    (false, true, false) => format!("fixed {}", fixing_name(policy.fixing)),
                    (false, false, true) => format!("alternatives {}", threshold_name(policy.alternatives)),
                    _ => return None,
                };
                Some((what, at))
            })
            .collect();
        if self.present != advice.best {
            instead.push(("your settings".to_owned(), self.present));
        }
        instead
    }

    /// What to write into the configuration, if anything.
    fn settings_text(&self, advice: &Advice) -> String {
        let goal = advice.goal.name();
        let yours = Named(&self.scores[self.present].policy);
        if self.present == advice.best {
            return format!("\nYour settings ({yours}) are the best to {goal}.\n");
        }
        if !advice.behind[self.present].is_significant() {
            return format!(
                "\nYour settings ({yours}) cannot be told from the best to {goal}: no need to change them.\n"
            );
        }
        format!(
            "\nYour settings are {yours}. Those to {goal} most:\n\n[scheduling]\n{}",
            settings(&self.scores[advice.best].policy)
        )
    }

    fn json(&self) -> Value {
        let policy = |at: usize| {
            let policy = &self.scores[at].policy;
            json!({
                "order": order_name(policy.order),
                "fix_after_percent": policy.fixing.map(percent),
                "alternatives_percent": policy.alternatives.map(|alternatives| percent(alternatives.phi_max)),
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
                    "goal": advice.goal.name(),
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
            "takers_percent": self.takers,
            "significance": SIGNIFICANCE,
            "present": policy(self.present),
            "goals": goals.collect::<Vec<_>>(),
        })
    }
}

/// The keys of `[scheduling]` that make a policy.
fn settings(policy: &Policy) -> String {
    let fixing = policy.fixing.map_or(String::new(), |part| {
        format!("fix_after_percent = {}\n", percent(part))
    });
    format!(
        "order = \"{}\"\n{fixing}alternatives_percent = {}\n",
        order_name(policy.order),
        policy
            .alternatives
            .map_or(0, |alternatives| percent(alternatives.phi_max))
    )
}

/// Whole, as those of the configuration and of the policies are.
fn percent(part: Fraction) -> u32 {
    100 * part.numerator / part.denominator.max(1)
}

fn profile(text: &str) -> Result<Profile, String> {
    let number = |text: &str, most: u32| text.parse().ok().filter(|number| *number <= most);
    text.split_once(':')
        .and_then(|(share, price)| {
            Some(Profile {
                share_percent: number(share, 100)?,
                price_percent: number(price, 10_000)?,
            })
        })
        .ok_or_else(|| {
            "expected SHARE:PRICE, percentages up to 100 and up to 10000, such as 20:300".to_owned()
        })
}
