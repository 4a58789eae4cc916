//! The verb `advise` of the service and of the laboratory, and the options of a workload, which other verbs of the laboratory
//! have too.

use std::fs::File;
use std::io::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use scheduler::admission::DecisionRule;
use scheduler::counted;

use crate::answer::Answer;
use crate::fault::Fault;
use crate::lublin;
use crate::parallel::Workers;
use crate::policies::{
    Advice, Goal, Users, compare_with_portfolio, compared_policies, policies_table, score_policies,
};
use crate::prices::{PROFILES_MAX, Prices, Profile};
use crate::progress::ProgressLine;
use crate::replay::Policy;
use crate::swf::Trace;
use crate::table::Table;
use crate::workload::{Filter, WINDOW_SECONDS, WINDOWS, Window, Workload};

/// The most windows of a run: forty years.
const WINDOWS_MAX: i64 = 1_000;

/// Lines of a trace that are reported one by one.
const MALFORMED_SHOWN: usize = 10;

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

A trace does not say how flexible its users would be. The assumption is that half of them give the system as much time
again as they need, and that they are refused as often as their requests do not fit.";

/// The workload with the jobs to replay.
#[derive(Debug, Args)]
pub struct Source {
    /// Workload in Standard Workload Format, plain or gzip. [default: jobs of the Lublin–Feitelson model]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Seed of everything random: the same seed gives the same report.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many windows of 15 days.
    #[arg(long, value_name = "N", default_value_t = WINDOWS, value_parser = clap::value_parser!(u32).range(1..=WINDOWS_MAX))]
    windows: u32,
    /// Which jobs of the workload.
    #[arg(long, value_enum, default_value_t = Filter::F1h)]
    pub filter: Filter,
}

impl Source {
    /// The workload and its windows; there is at least one window.
    ///
    /// # Errors
    /// The trace cannot be read, or none of its jobs is replayed.
    pub fn open(&self) -> Result<(Workload, Vec<Window>), Fault> {
        let workload = self.workload()?;
        let windows = workload.windows(self.filter, self.windows as usize);
        if self.trace.is_some() {
            say_not_replayed(&workload, &windows, self.filter);
        }
        if windows.is_empty() {
            let why = format!("{}: no job passes the filter", workload.name);
            return Err(Fault(why));
        }
        Ok((workload, windows))
    }

    fn workload(&self) -> Result<Workload, Fault> {
        let Some(path) = &self.trace else {
            return Ok(lublin::generate_lublin_jobs(
                self.seed,
                WINDOW_SECONDS * i64::from(self.windows),
            ));
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        open_workload(path, &name)
    }
}

/// The workload of a trace under a name. Tells on standard error how much of the trace is left out, and why.
///
/// # Errors
/// Those of [`Trace::open`].
pub fn open_workload(path: &Path, name: &str) -> Result<Workload, Fault> {
    let trace = Trace::open(path)?;
    for malformed in trace.malformed.iter().take(MALFORMED_SHOWN) {
        eprintln!(
            "bespeak: {}:{}: {}",
            path.display(),
            malformed.line,
            malformed.reason
        );
    }
    let workload = Workload::from_trace(name, &trace);
    if let Some(left_out) = workload.left_out.words(workload.capacity) {
        eprintln!("bespeak: {}: left out: {left_out}", path.display());
    }
    Ok(workload)
}

/// Tells how many jobs of a trace are in no window: by the filter, and because they lie behind the last window.
fn say_not_replayed(workload: &Workload, windows: &[Window], filter: Filter) {
    let admitted = workload.jobs.iter().filter(|job| filter.admits(job)).count();
    let replayed: usize = windows.iter().map(|window| window.jobs.len()).sum();
    let (filtered, behind) = (workload.jobs.len() - admitted, admitted - replayed);
    if filtered + behind > 0 {
        eprintln!(
            "bespeak: {}: not replayed: {} that the filter {} leaves out, {} behind the last window",
            workload.name,
            counted(filtered, "job"),
            filter.word(),
            counted(behind, "job")
        );
    }
}

/// The form of a printed table.
#[derive(Debug, Args)]
pub struct Form {
    /// Print as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as comma-separated values.
    #[arg(long)]
    csv: bool,
}

impl Form {
    /// A table in this form; without options as columns for people.
    pub fn of(&self, table: &Table) -> String {
        if self.json {
            format!("{:#}", table.json())
        } else if self.csv {
            table.csv().trim_end().to_owned()
        } else {
            table.text()
        }
    }
}

/// All cores. Each reports through `progress` how far they all are.
pub fn workers_on_all_cores(progress: &(dyn Fn(usize, usize) + Sync)) -> Workers<'_> {
    Workers {
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        progress,
    }
}

/// Options of `advise`.
#[derive(Debug, Args)]
pub struct AdviseOptions {
    #[command(flatten)]
    source: Source,
    /// SHARE % of the requests pay PRICE % of the price; several times for several profiles.
    #[arg(long = "profile", value_name = "SHARE:PRICE", value_parser = parse_profile)]
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
    pub prices: Prices,
    /// Its present policy.
    pub present: Policy,
}

impl AdviseOptions {
    /// Plays all policies and says how they compare, as text or, if so asked, as JSON. Without a provider, prices are those of a
    /// published evaluation, and there are no present settings to compare with.
    ///
    /// # Errors
    /// Profiles of more than all requests, a workload that cannot be read, a file that cannot be written.
    pub fn advise(&self, provider: Option<Provider>) -> Result<String, Fault> {
        let (prices, present) = match provider {
            Some(Provider { prices, present }) => (prices, Some(present)),
            None => (Prices::published(), None),
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
            score_policies(
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
        let portfolio = compare_with_portfolio(&scores, &advice, played);
        ProgressLine::clear();
        if let Some((mut file, path)) = out {
            let table = policies_table(&scores, &advice).csv();
            file.write_all(table.as_bytes())
                .map_err(|why| Fault::of(path, why))?;
        }
        let jobs: usize = windows.iter().map(|window| window.jobs.len()).sum();
        let answer = Answer {
            workload: format!(
                "{} ({}), {} of 15 days, {} ({}), load {} %",
                workload.name,
                counted(workload.capacity, "node"),
                counted(windows.len(), "window"),
                counted(jobs, "job"),
                self.source.filter.word(),
                self.load
            ),
            prices: &prices,
            scores: &scores,
            advice: &advice,
            portfolio: &portfolio,
            present: at_present,
            goal: self.goal,
            takers: self.takers,
        };
        Ok(if self.json {
            format!("{:#}", answer.json())
        } else {
            answer.text().trim_end().to_owned()
        })
    }

    /// A price list with the profiles of the command line, if there are any.
    fn with_profiles(&self, prices: Prices) -> Result<Prices, Fault> {
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
            Prices {
                profiles: self.profiles.clone(),
                ..prices
            }
        })
    }
}

fn parse_profile(text: &str) -> Result<Profile, String> {
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
