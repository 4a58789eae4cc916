//! The source of a workload: the options that name it, and how it is opened.

use std::path::{Path, PathBuf};

use clap::Args;
use scheduler::counted;

use crate::fault::Fault;
use crate::lublin;
use crate::swf::SwfTrace;
use crate::workload::{WINDOW_SECONDS, WINDOWS, Window, Workload, WorkloadFilter};

/// The most windows of a run: forty years.
const WINDOWS_MAX: i64 = 1_000;

/// Lines of a trace that are reported one by one.
const MALFORMED_SHOWN: usize = 10;

/// The workload with the jobs to replay.
#[derive(Debug, Args)]
pub struct JobsSource {
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
    #[arg(long, value_enum, default_value_t = WorkloadFilter::F1h)]
    pub filter: WorkloadFilter,
}

impl JobsSource {
    /// The workload and its windows; there is at least one window.
    ///
    /// # Errors
    /// The trace cannot be read, or none of its jobs is replayed.
    pub fn open(&self) -> Result<(Workload, Vec<Window>), Fault> {
        let workload = self.workload()?;
        let windows = workload.windows(self.filter, self.windows as usize);
        if self.trace.is_some() {
            say_which_jobs_source_omits(&workload, &windows, self.filter);
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
        open_jobs_source(path, &name)
    }
}

/// The workload of a trace under a name. Tells on standard error how much of the trace is left out, and why.
///
/// # Errors
/// Those of [`SwfTrace::open`].
pub fn open_jobs_source(path: &Path, name: &str) -> Result<Workload, Fault> {
    let trace = SwfTrace::open(path)?;
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
fn say_which_jobs_source_omits(workload: &Workload, windows: &[Window], filter: WorkloadFilter) {
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
