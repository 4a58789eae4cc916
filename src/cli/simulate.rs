//! `bespeak simulate`: the papers' experiments on a trace or a generated workload.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use clap::{Args, ValueEnum};
use simulation::experiment::{ServerRuns, Setup, named, names};
use simulation::lublin;
use simulation::parallel::Workers;
use simulation::run::run as run_all;
use simulation::swf::Trace;
use simulation::workload::{self, WINDOW_SECONDS, WINDOWS, Window, Workload};

use super::Failure;

/// The most windows of a run: forty years.
const WINDOWS_MAX: i64 = 1_000;

/// The most jobs of a run of paper 003's experiments, and runs: ten times the paper's.
const JOBS_MAX: i64 = 10_000_000;
const RUNS_MAX: i64 = 300;

/// Lines of a trace that are reported one by one.
const MALFORMED_SHOWN: usize = 10;

const EXAMPLES: &str = "\
beside-batch replays a month of the log as the batch queue of a cluster, with promised slots beside it: what they cost the queue, by
how early nodes are reserved and how much is promised. Filter and windows do not apply to it.

Examples:
  bespeak simulate all --trace SDSC-SP2-1998-4.2-cln.swf.gz --out sdsc
  bespeak simulate beside-batch --trace SDSC-SP2-1998-4.2-cln.swf.gz --out beside-batch";

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The experiment, or `all`.
    #[arg(value_name = "NAME|all")]
    name: String,
    #[command(flatten)]
    source: Source,
    /// Folder for the report, tables and figures.
    #[arg(long, value_name = "DIR", default_value = "bespeak-evaluation")]
    out: PathBuf,
    /// Jobs of each run of paper 003's experiments, which have a workload of their own (1,000,000 in the paper).
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1_000..=JOBS_MAX))]
    jobs: u32,
    /// Runs of paper 003's experiments (30 in the paper).
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=RUNS_MAX))]
    runs: u32,
}

/// Whose jobs are replayed.
#[derive(Debug, Args)]
pub(super) struct Source {
    /// Workload in Standard Workload Format, plain or gzip. [default: jobs of the Lublin–Feitelson model]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Seed of everything random: the same seed gives the same report.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// How many windows of 15 days.
    #[arg(long, value_name = "N", default_value_t = WINDOWS, value_parser = clap::value_parser!(u32).range(1..=WINDOWS_MAX))]
    windows: u32,
    /// Which jobs of the workload.
    #[arg(long, value_enum, default_value_t = Filter::F1h)]
    filter: Filter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Filter {
    /// A minute or more.
    F60,
    /// An hour or more on two nodes or more.
    F1h,
}

impl From<Filter> for workload::Filter {
    fn from(filter: Filter) -> Self {
        match filter {
            Filter::F60 => Self::F60,
            Filter::F1h => Self::F1h,
        }
    }
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let experiments = named(&options.name);
    if experiments.is_empty() {
        return Err(Failure::Usage(format!(
            "no experiment is called {:?}; there are all, {}",
            options.name,
            names().join(", ")
        )));
    }
    let (workload, windows) = options.source.open()?;
    let filter = options.source.filter();
    let line = ProgressLine::default();
    let progress = |done, total| line.show(done, total);
    let workers = all_cores(&progress);
    let servers = ServerRuns {
        jobs: options.jobs as usize,
        runs: options.runs as usize,
    };
    let setup = Setup::new(&workload, &windows, options.source.seed, workers, servers);
    let starts = |name: &str| line.starts(name);
    let reports = run_all(&experiments, &setup, filter, &options.out, &starts)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    ProgressLine::clear();
    for report in &reports {
        for finding in &report.findings {
            say!(
                "{}  {}: {}: {}",
                report.name,
                finding.verdict,
                finding.what,
                finding.seen
            );
        }
    }
    say!("{}", options.out.join("report.md").display());
    Ok(())
}

impl Source {
    /// The workload and its windows, of which there is at least one.
    ///
    /// # Errors
    /// The trace cannot be read, or none of its jobs is replayed.
    pub(super) fn open(&self) -> Result<(Workload, Vec<Window>), Failure> {
        let workload = self.workload()?;
        let windows = workload.windows(self.filter(), self.windows as usize);
        if windows.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: no job passes the filter",
                workload.name
            )));
        }
        Ok((workload, windows))
    }

    pub(super) fn filter(&self) -> workload::Filter {
        self.filter.into()
    }

    fn workload(&self) -> Result<Workload, Failure> {
        let Some(path) = &self.trace else {
            return Ok(lublin::generate(
                self.seed,
                WINDOW_SECONDS * i64::from(self.windows),
            ));
        };
        let trace = Trace::open(path).map_err(|error| Failure::Usage(error.to_string()))?;
        for malformed in trace.malformed.iter().take(MALFORMED_SHOWN) {
            eprintln!(
                "bespeak: {}:{}: {}",
                path.display(),
                malformed.line,
                malformed.reason
            );
        }
        if trace.malformed.len() > MALFORMED_SHOWN {
            let more = trace.malformed.len() - MALFORMED_SHOWN;
            eprintln!("bespeak: {}: {more} more lines are no jobs", path.display());
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Ok(Workload::from_trace(&name, &trace))
    }
}

/// All cores, of which each says through `progress` how far they all are.
pub(super) fn all_cores(progress: &(dyn Fn(usize, usize) + Sync)) -> Workers<'_> {
    Workers {
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        progress,
    }
}

/// One line on the standard error stream that says how far an experiment, or other long work, is, where a person may be looking.
#[derive(Default)]
pub(super) struct ProgressLine {
    experiment: Mutex<String>,
}

impl ProgressLine {
    pub(super) fn starts(&self, name: &str) {
        if let Ok(mut experiment) = self.experiment.lock() {
            name.clone_into(&mut experiment);
        }
    }

    pub(super) fn show(&self, done: usize, total: usize) {
        const WIDTH: usize = 30;
        if let Ok(experiment) = self.experiment.lock()
            && stderr().is_terminal()
        {
            let full = WIDTH * done / total.max(1);
            let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
            // A progress bar that cannot be shown is not missed.
            let _ = write!(stderr(), "\r\x1b[K{experiment}  [{bar}] {done}/{total}");
        }
    }

    pub(super) fn clear() {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
