//! `bespeak-lab calibrate`: whether predictions of run times would be true on a trace.

use std::path::PathBuf;

use advisor::fault::Fault;
use advisor::jobs_source::open_jobs_source;
use advisor::table::TableForm;
use clap::Args;
use lab::experiment::prediction::prediction_reliability_of_workload;

const EXAMPLES: &str = "\
Examples:
  bespeak-lab calibrate --trace SDSC-SP2-1998-4.2-cln.swf.gz
  bespeak-lab calibrate --trace SDSC-SP2-1998-4.2-cln.swf.gz --csv > reliability.csv

The command predicts each job from the jobs that had ended when it was submitted, and compares the predictions with the
outcomes: how many runs lay inside the intervals and below the quantiles, and the pinball loss, which is least for predictions
that are true and sharp. `bespeak calibrate` does the same with the executions that your service has stored.";

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CalibrateOptions {
    /// Workload in Standard Workload Format, plain or gzip.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    #[command(flatten)]
    form: TableForm,
}

pub(super) fn run_calibrate(options: &CalibrateOptions) -> Result<(), Fault> {
    let path = &options.trace;
    let workload = open_jobs_source(path, &path.display().to_string())?;
    // The terms of a log ask that its notice is shown with results made from it.
    for line in &workload.notice {
        eprintln!("{line}");
    }
    say!(
        "{}",
        options
            .form
            .table_text(&prediction_reliability_of_workload(&workload))
    );
    Ok(())
}
