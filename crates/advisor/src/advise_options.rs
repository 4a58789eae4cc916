//! The verb `advise` of the service and of the laboratory.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use scheduler::schedule::DecisionRule;
use scheduler::{Rate, counted};

use crate::advice::{
    Advice, Goal, Users, advice_table, compare_advice_with_portfolio, score_policies_for_advice,
};
use crate::answer::AdviceAnswer;
use crate::fault::Fault;
use crate::jobs_source::JobsSource;
use crate::objective_advice::score_objectives_for_advice;
use crate::policy::{Policy, compared_policies};
use crate::progress::ProgressLine;
use crate::replay_prices::{PROFILES_MAX, Profile, ReplayPrices};
use crate::shapes_advice::{ShapesAnswer, score_shapes_for_advice};
use crate::workers::workers_on_all_cores;
use crate::workload::{Window, Workload};

/// The help text of both verbs.
pub const HELP: &str = "\
The command compares all combinations of
  order         edf, lff, mdf, bjf, brf, fifo
  fixing        never, after half of the wait, at once
  alternatives  none, up to 50 % or 100 % of the duration outside the window
Every policy gets the same requests in every window. A difference is called significant if it is so at 5 % by paired
t-tests over the windows, corrected for all pairs (Holm). The policies are compared by their order alone. For the
best policy the answer also has the gain of a portfolio of orders, in which a request that the order refuses is tried in
other orders. The service has the portfolio with every order. A request that fits the plan as it stands moves no other, as
in a service with its usual scheduling.decision; with a configuration, its decision counts.

Then it compares the same jobs with sizes to choose from, with cuts, with both and with neither, by paper 002's users
(80 % of the nodes will do above ten; 60 % of those of an hour or more may be cut at tenths; every fifth has no three
days more), and says up to which incentives more is earned than with neither.

With a configuration whose resources differ in rate, it compares the work that they refuse by the objectives
earliest-completion and least-work-lost.

A trace does not say how flexible its users would be. The assumption is that half of them give the system as much time
again as they need, and that they are refused as often as their requests do not fit.";

/// Options of `advise`.
#[derive(Debug, Args)]
pub struct AdviseOptions {
    #[command(flatten)]
    source: JobsSource,
    /// SHARE % of the requests pay PRICE % of the price; several times for several profiles.
    #[arg(long = "profile", value_name = "SHARE:PRICE", value_parser = parse_profile_option)]
    profiles: Vec<Profile>,
    /// Frequency of submissions, in percent of the workload's.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1_000))]
    load: u32,
    /// Percentage of refused requests that take the nearest alternative.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    takers: u32,
    /// Goal of the printed settings.
    #[arg(long, value_enum, default_value_t = Goal::Earn)]
    goal: Goal,
    /// Write all policies as CSV.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// All policies and comparisons as JSON.
    #[arg(long)]
    json: bool,
}

/// The settings of a provider: its prices and its present policy.
#[derive(Debug)]
pub struct Provider {
    /// Its price list. Profiles of the command line take the place of those here.
    pub prices: ReplayPrices,
    /// Its present policy.
    pub present: Policy,
    /// The rate and the nodes of each of its resources.
    pub resources: Vec<(Rate, u32)>,
}

impl AdviseOptions {
    /// Plays all policies and says how they compare, as text or, if so asked, as JSON. Without a provider, prices are those of a
    /// published evaluation, and there are no present settings to compare with.
    ///
    /// # Errors
    /// Profiles of more than all requests, a workload that cannot be read, a file that cannot be written.
    pub fn advise(&self, provider: Option<Provider>) -> Result<String, Fault> {
        let (prices, present, resources) = match provider {
            Some(Provider {
                prices,
                present,
                resources,
            }) => (prices, Some(present), resources),
            None => (ReplayPrices::published(), None, Vec::new()),
        };
        let prices = self.with_profiles(prices)?;
        let (workload, windows) = self.source.open()?;
        // Before the long work: whether its result can be kept.
        let out = match &self.out {
            Some(path) => Some((File::create(path).map_err(|why| Fault::of(path, why))?, path)),
            None => None,
        };
        // All by the rule of the service, so that they differ in nothing else.
        let decision = present.map_or(DecisionRule::Standing, |present| present.decision);
        let mut candidates = compared_policies(decision);
        let at_present = present.map(|present| {
            let known = candidates.iter().position(|policy| *policy == present);
            known.unwrap_or_else(|| {
                candidates.push(present);
                candidates.len() - 1
            })
        });
        let users = Users {
            load_percent: self.load,
            takers_percent: self.takers,
        };
        let line = ProgressLine::default();
        line.starts("advise");
        let progress = |done, total| line.show(done, total);
        let played = |policies: &[Policy]| {
            let workers = workers_on_all_cores(&progress);
            let seed = self.source.seed;
            score_policies_for_advice(
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
        let shapes = score_shapes_for_advice(
            workload.capacity,
            &windows,
            self.source.seed,
            &workers_on_all_cores(&progress),
            self.load,
            &prices,
        );
        let objectives = score_objectives_for_advice(
            workload.capacity,
            &windows,
            self.source.seed,
            &workers_on_all_cores(&progress),
            self.load,
            &resources,
        );
        let portfolio = compare_advice_with_portfolio(&scores, &advice, played);
        ProgressLine::clear();
        if let Some((mut file, path)) = out {
            let table = advice_table(&scores, &advice).csv();
            file.write_all(table.as_bytes())
                .map_err(|why| Fault::of(path, why))?;
        }
        let answer = AdviceAnswer {
            workload: self.workload_in_words(&workload, &windows),
            prices: &prices,
            scores: &scores,
            advice: &advice,
            portfolio: &portfolio,
            present: at_present,
            goal: self.goal,
            takers: self.takers,
            objectives: objectives.as_ref(),
            shapes: ShapesAnswer {
                scores: &shapes,
                prices: &prices,
                goal: self.goal,
            },
        };
        Ok(if self.json {
            format!("{:#}", answer.json())
        } else {
            answer.text().trim_end().to_owned()
        })
    }

    fn workload_in_words(&self, workload: &Workload, windows: &[Window]) -> String {
        let jobs: usize = windows.iter().map(|window| window.jobs.len()).sum();
        format!(
            "{} ({}), {} of 15 days, {} ({}), load {} %",
            workload.name,
            counted(workload.capacity, "node"),
            counted(windows.len(), "window"),
            counted(jobs, "job"),
            self.source.filter.word(),
            self.load
        )
    }

    /// A price list with the profiles of the command line, if there are any.
    fn with_profiles(&self, prices: ReplayPrices) -> Result<ReplayPrices, Fault> {
        let shares: u32 = self.profiles.iter().map(|profile| profile.share_percent).sum();
        if shares > 100 || self.profiles.len() > PROFILES_MAX {
            return Err(Fault(format!(
                "--profile: expected at most {PROFILES_MAX} of together at most 100 % of the requests, found {} of {shares} %",
                self.profiles.len()
            )));
        }
        Ok(if self.profiles.is_empty() {
            prices
        } else {
            ReplayPrices {
                profiles: self.profiles.clone(),
                ..prices
            }
        })
    }
}

fn parse_profile_option(text: &str) -> Result<Profile, String> {
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
