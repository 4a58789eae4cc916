//! `bespeak-lab replay`: a list of requests decided one after the other on the scheduler core. An operator can try an order, a
//! fixing of windows or alternatives on recorded requests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use advisor::fault::Fault;
use advisor::policy::{Alternatives, Policy};
use advisor::progress::ProgressLine;
use advisor::replay::{ReplayAsk, ReplayOutcomes, replay_asks_watched};
use advisor::table::table_rows_as_csv;
use clap::{Args, ValueEnum};
use lab::request_list::{REQUESTS_MAX, parse_request_list};
use scheduler::schedule::DecisionRule;
use scheduler::slot_tree::MAX_CAPACITY;
use scheduler::{Fraction, Interval, Order, Request, Time};
use serde_json::json;

/// The longest list in bytes: as many requests as may be, of columns of the greatest width.
const LIST_BYTES_MAX: u64 = REQUESTS_MAX as u64 * 128;

/// Decimals of a fraction: its denominator fits 32 bits.
const DECIMALS_MAX: usize = 6;

/// The largest deviation of an alternative, in durations: with all decimals it fits 32 bits.
const PHI_MAX: u32 = 1_000;

/// How often the progress is shown: one decision may take microseconds or, in a crowded plan, a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Requests, as CSV with a heading (times in whole seconds from any origin):
  id,submit,duration,nodes,ready,deadline     and, for --order brf, a seventh column revenue
They are decided in order of submission; where that is equal, in order of the file.

Decisions, in that order:
  id,decision,start,end,phi,reason
  decision  accepted, alternative (the requester took one) or refused
  start,end its final place, after all moves
  phi       of an alternative: its distance from the window in durations
  reason    of a refusal

Utilisation counts the node-seconds of accepted requests between the first submission and the last deadline.

Examples:
  bespeak-lab replay --requests list.csv --capacity 128 --out decisions.csv
  bespeak-lab replay --requests list.csv --capacity 128 --order lff --fix 0.5 --json
  bespeak-lab replay --requests list.csv --capacity 128 --order mdf --decision standing
  bespeak-lab replay --requests list.csv --capacity 128 --alternatives 1 --out -
  bespeak-lab replay --requests examples/replay/three-flexible-one-rigid.csv --capacity 4 --out -";

/// Options of `replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayOptions {
    /// CSV of requests; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    requests: PathBuf,
    /// Nodes of the resource.
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    capacity: u32,
    /// Order in which waiting requests are placed.
    #[arg(long, value_enum, default_value_t = OrderName::Edf)]
    order: OrderName,
    /// What is decided about a request that fits the plan as it stands.
    #[arg(long, value_enum, default_value_t = DecisionName::Published)]
    decision: DecisionName,
    /// Seed of the order `shuffle`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Try requests that the order refuses in other orders, within the service's budget of work for a decision.
    #[arg(long)]
    portfolio: bool,
    /// Fix a flexible request to its slot after this part of its wait: 0 at acceptance, up to 1, or never.
    #[arg(long, value_name = "never|0..1", default_value = "never", value_parser = parse_replay_fixing)]
    fix: WindowFixing,
    /// A refused requester takes the nearest slot at most PHI durations outside the window. [default: takes none]
    #[arg(long, value_name = "PHI", value_parser = parse_replay_phi)]
    alternatives: Option<Fraction>,
    /// Write the decisions as CSV; `-` for standard output, with the summary on standard error. [default: not written]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The summary as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderName {
    /// First in, first out.
    Fifo,
    /// At random.
    Shuffle,
    /// Biggest job first, by node-seconds.
    Bjf,
    /// Least flexible first, by slack.
    Lff,
    /// Earliest deadline first.
    Edf,
    /// Missing deadline first, by the latest possible start.
    Mdf,
    /// Best revenue first, by revenue a node-second.
    Brf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DecisionName {
    /// It is placed there, and no other moves: the service's default.
    Standing,
    /// Algorithm 1 decides, as the papers print it: others may move.
    Published,
}

/// After which part of the wait a window is fixed, if ever. Under this name it is one value to the command line.
type WindowFixing = Option<Fraction>;

pub(super) fn run_replay(options: &ReplayOptions) -> Result<(), Fault> {
    let (requests, ids) = read_requests_to_replay(&options.requests)?;
    let is_to_stdout = options.out.as_deref() == Some(Path::new("-"));
    // Before the long work: whether its result can be kept.
    let out = match &options.out {
        Some(path) if !is_to_stdout => Some((path, create_replay_decisions_file(path, &options.requests)?)),
        _ => None,
    };
    let ask = |request: &Request| ReplayAsk {
        takes_alternatives: options.alternatives.is_some(),
        ..ReplayAsk::plain(*request)
    };
    let asks: Vec<ReplayAsk> = requests.iter().map(ask).collect();
    let line = ProgressLine::default();
    line.starts("replay");
    let mut shown = Instant::now();
    let mut progress = |done: usize| {
        if shown.elapsed() >= PROGRESS_INTERVAL {
            shown = Instant::now();
            line.show(done, asks.len());
        }
    };
    let outcome = replay_asks_watched(options.capacity, options.policy(), &asks, &mut progress);
    ProgressLine::clear();
    let summary = options.summary(&requests, &outcome);
    if is_to_stdout {
        say!("{}", replay_decisions_as_csv(&ids, &outcome).trim_end());
        eprintln!("{summary}");
        return Ok(());
    }
    if let Some((path, mut file)) = out {
        file.write_all(replay_decisions_as_csv(&ids, &outcome).as_bytes())
            .map_err(|why| Fault::of(path, why))?;
    }
    say!("{summary}");
    Ok(())
}

impl ReplayOptions {
    fn policy(&self) -> Policy {
        Policy {
            order: match self.order {
                OrderName::Fifo => Order::Fifo,
                OrderName::Shuffle => Order::Shuffle { seed: self.seed },
                OrderName::Bjf => Order::Bjf,
                OrderName::Lff => Order::Lff,
                OrderName::Edf => Order::Edf,
                OrderName::Mdf => Order::Mdf,
                OrderName::Brf => Order::Brf,
            },
            decision: match self.decision {
                DecisionName::Standing => DecisionRule::Standing,
                DecisionName::Published => DecisionRule::Published,
            },
            portfolio: self.portfolio,
            fixing: self.fix,
            alternatives: self.alternatives.map(|phi_max| Alternatives {
                phi_max,
                earlier_only: false,
            }),
        }
    }

    /// The whole in a few numbers.
    fn summary(&self, requests: &[Request], outcome: &ReplayOutcomes) -> String {
        let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in outcome.refused.values() {
            *refused.entry(reason.word()).or_default() += 1;
        }
        // Of the list alone, so that two policies can be compared.
        let start = requests.iter().map(|r| r.submitted).min().unwrap_or(Time::MIN);
        let end = requests.iter().map(|r| r.deadline).max().unwrap_or(Time::MIN);
        let span = Interval::new(start, end);
        let capacity = self.capacity;
        let utilisation = (!span.is_empty()).then(|| 100.0 * outcome.utilisation(capacity, span));
        let alternative = outcome.taken.len();
        let (accepted, moves) = (outcome.ran.len() - alternative, outcome.moves);
        if self.json {
            let summary = json!({
                "requests": requests.len(),
                "accepted": accepted,
                "alternative": alternative,
                "refused": refused,
                "moves": moves,
                "capacity": capacity,
                "from": start.0,
                "to": end.0,
                "utilisation_percent": utilisation,
            });
            return format!("{summary:#}");
        }
        let reasons: Vec<String> = (refused.iter())
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        let reasons = match reasons.join(", ") {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let utilisation = utilisation.map_or("none".to_owned(), |percent| {
            format!(
                "{percent:.2} % of {capacity} nodes from {start} (first submission) to {end} (last deadline)"
            )
        });
        let (all, refused) = (requests.len(), outcome.refused.len());
        format!(
            "requests     {all}\naccepted     {accepted}\nalternative  {alternative}\nrefused      {refused}{reasons}\nmoves        {moves}\nutilisation  {utilisation}"
        )
    }
}

/// The requests in order of submission, numbered in that order, and the ids that they have in the file: the core takes the
/// number of a request for its place among the submissions.
fn read_requests_to_replay(path: &Path) -> Result<(Vec<Request>, Vec<u64>), Fault> {
    let failure = |why: &dyn std::fmt::Display| Fault::of(path, why);
    let input: Box<dyn io::Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| failure(&error))?)
    };
    let mut text = String::new();
    let bytes = input
        .take(LIST_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| failure(&error))?;
    if bytes as u64 > LIST_BYTES_MAX {
        return Err(failure(&format!("longer than {LIST_BYTES_MAX} bytes")));
    }
    let mut requests = parse_request_list(&text)
        .map_err(|error| Fault(format!("{}:{}: {}", path.display(), error.line, error.reason)))?;
    if requests.is_empty() {
        return Err(failure(&"no request"));
    }
    requests.sort_by_key(|request| request.submitted);
    let ids = requests.iter().map(|request| request.id).collect();
    for (number, request) in (0..).zip(&mut requests) {
        request.id = number;
    }
    Ok((requests, ids))
}

/// The file of the decisions, which is not that of the requests.
fn create_replay_decisions_file(path: &Path, requests: &Path) -> Result<File, Fault> {
    let canonical = path.canonicalize().ok();
    if canonical.is_some() && canonical == requests.canonicalize().ok() {
        let why = "the decisions would take the place of the requests";
        return Err(Fault::of(path, why));
    }
    File::create(path).map_err(|why| Fault::of(path, why))
}

/// The outcome of each request, in order of submission, as CSV.
fn replay_decisions_as_csv(ids: &[u64], outcome: &ReplayOutcomes) -> String {
    let rows = (0..).zip(ids).map(|(number, id)| {
        let taken = outcome.taken.get(&number);
        let [decision, start, end, phi, reason] = if let Some((slot, _)) = outcome.ran.get(&number) {
            [
                taken.map_or("accepted", |_| "alternative").to_owned(),
                slot.start.to_string(),
                slot.end.to_string(),
                taken.map_or(String::new(), |taken| taken.phi().to_string()),
                String::new(),
            ]
        } else {
            let reason = outcome.refused.get(&number).map_or("", |reason| reason.word());
            ["refused", "", "", "", reason].map(str::to_owned)
        };
        [id.to_string(), decision, start, end, phi, reason]
    });
    let heading = ["id", "decision", "start", "end", "phi", "reason"].map(str::to_owned);
    table_rows_as_csv(std::iter::once(heading).chain(rows))
}

fn parse_replay_fixing(text: &str) -> Result<WindowFixing, String> {
    let fixed = parse_replay_fraction(text, 1);
    if fixed.is_none() && text != "never" {
        return Err(format!(
            "expected never or a number from 0 to 1, with at most {DECIMALS_MAX} decimals"
        ));
    }
    Ok(fixed)
}

fn parse_replay_phi(text: &str) -> Result<Fraction, String> {
    parse_replay_fraction(text, PHI_MAX)
        .ok_or_else(|| format!("expected a number from 0 to {PHI_MAX}, with at most {DECIMALS_MAX} decimals"))
}

/// A decimal number from 0 to `most`, exactly.
fn parse_replay_fraction(text: &str, most: u32) -> Option<Fraction> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{decimals}");
    if decimals.len() > DECIMALS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let numerator = digits.parse().ok()?;
    let denominator = 10_u32.pow(u32::try_from(decimals.len()).ok()?);
    (numerator <= most * denominator).then_some(Fraction {
        numerator,
        denominator,
    })
}

#[cfg(test)]
mod tests {
    use super::{Fraction, parse_replay_fixing, parse_replay_fraction, parse_replay_phi};

    #[test]
    fn fractions_are_read_exactly() {
        for (text, numerator, denominator) in [
            ("0", 0, 1),
            ("1", 1, 1),
            ("0.5", 5, 10),
            (".25", 25, 100),
            ("1.000000", 1_000_000, 1_000_000),
        ] {
            let read = parse_replay_fraction(text, 1);
            assert_eq!(
                read,
                Some(Fraction {
                    numerator,
                    denominator
                }),
                "{text}"
            );
        }
        assert!(parse_replay_fixing("never").is_ok_and(|fixing| fixing.is_none()));
        assert!(parse_replay_phi("1000.000000").is_ok());
    }

    #[test]
    fn what_is_no_fraction_is_refused() {
        for text in [
            "",
            ".",
            "-1",
            "+1",
            "1e-3",
            "0.1234567",
            "1.000001",
            "2",
            "half",
            "0,5",
            "0.+5",
        ] {
            assert!(parse_replay_fixing(text).is_err(), "{text}");
        }
        assert!(parse_replay_phi("1000.000001").is_err());
    }
}
