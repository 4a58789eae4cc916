//! `bespeak-lab simulate`: the papers' experiments on a trace or a generated workload.

use std::path::PathBuf;

use advisor::fault::Fault;
use advisor::jobs_source::JobsSource;
use advisor::progress::ProgressLine;
use advisor::workers::workers_on_all_cores;
use clap::Args;
use lab::experiment::{ServerRuns, Setup, experiment_names, experiments_named};
use lab::run::run_experiments as run_all;

/// The most jobs of a run of paper 003's experiments, and runs: ten times the paper's.
const JOBS_MAX: i64 = 10_000_000;
const RUNS_MAX: i64 = 300;

const EXAMPLES: &str = "\
beside-batch replays two months of the log, each as the batch queue of a cluster with promised slots beside it. It shows what the
slots cost the queue, by the lead of the reservations and the promised share. Filter and windows do not apply to it.

Examples:
  bespeak-lab simulate all --trace SDSC-SP2-1998-4.2-cln.swf.gz --out sdsc
  bespeak-lab simulate beside-batch --trace SDSC-SP2-1998-4.2-cln.swf.gz --out beside-batch";

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SimulateOptions {
    /// The experiment, or `all`.
    #[arg(value_name = "NAME|all")]
    name: String,
    #[command(flatten)]
    source: JobsSource,
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

pub(super) fn run_simulate(options: &SimulateOptions) -> Result<(), Fault> {
    let experiments = experiments_named(&options.name);
    if experiments.is_empty() {
        return Err(Fault(format!(
            "no experiment is called {:?}; there are all, {}",
            options.name,
            experiment_names().join(", ")
        )));
    }
    let (workload, windows) = options.source.open()?;
    let line = ProgressLine::default();
    let progress = |done, total| line.show(done, total);
    let workers = workers_on_all_cores(&progress);
    let servers = ServerRuns {
        jobs: options.jobs as usize,
        runs: options.runs as usize,
    };
    let setup = Setup::new(&workload, &windows, options.source.seed, workers, servers);
    let starts = |name: &str| line.starts(name);
    let reports = run_all(&experiments, &setup, options.source.filter, &options.out, &starts)?;
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
