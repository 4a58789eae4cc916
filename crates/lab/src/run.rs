//! Runs experiments and writes their results into a folder: a CSV file and figures for each, one page about all, and, in a file
//! of their own because they are never the same twice, times.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::experiment::{Experiment, Setup};
use crate::report::{Report, report_page};
use advisor::fault::Fault;
use advisor::workload::{Workload, WorkloadFilter};

/// Runs experiments one after the other, each on all threads, and writes their files into `folder`. `starts` gets the name of
/// each before it runs.
///
/// # Errors
/// The first file that could not be written.
pub fn run_experiments(
    experiments: &[&Experiment],
    setup: &Setup,
    filter: WorkloadFilter,
    folder: &Path,
    starts: &dyn Fn(&str),
) -> Result<Vec<Report>, Fault> {
    fs::create_dir_all(folder).map_err(|why| Fault::of(folder, why))?;
    let mut times = String::from("experiment,seconds,threads\n");
    let mut decisions = String::from("experiment,algorithm,load,idle periods,nanoseconds per decision\n");
    let mut reports = Vec::new();
    for experiment in experiments {
        starts(experiment.name);
        let start = Instant::now();
        let report = experiment.run(setup);
        let (name, seconds, threads) = (report.name, start.elapsed().as_secs_f64(), setup.workers.threads);
        // Writing to strings does not fail.
        let _ = writeln!(times, "{name},{seconds:.3},{threads}");
        for (what, nanoseconds) in setup.take_times() {
            let _ = writeln!(decisions, "{name},{what},{nanoseconds:.0}");
        }
        write_result_of_run(folder, &format!("{name}.csv"), &report.table.csv())?;
        for figure in &report.figures {
            write_result_of_run(folder, &format!("{}.svg", figure.name), &figure.svg())?;
        }
        reports.push(report);
    }
    write_result_of_run(
        folder,
        "report.md",
        &report_page(&preface_of_run(setup, filter), &reports),
    )?;
    write_result_of_run(folder, "times.csv", &times)?;
    write_result_of_run(folder, "times-per-decision.csv", &decisions)?;
    Ok(reports)
}

fn write_result_of_run(folder: &Path, name: &str, text: &str) -> Result<(), Fault> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|why| Fault::of(&path, why))
}

/// The experiments that were run, their data, and the people to thank.
fn preface_of_run(setup: &Setup, filter: WorkloadFilter) -> String {
    let jobs: usize = setup.windows.iter().map(|window| window.jobs.len()).sum();
    let which = match filter {
        WorkloadFilter::F60 => "jobs of a minute or more, as the papers print it",
        WorkloadFilter::F1h => {
            "jobs of an hour or more on two nodes or more: the filter that comes nearest to the papers' counts, a conjecture"
        }
    };
    let Workload {
        name,
        capacity,
        notice,
        ..
    } = setup.workload;
    let (filter, windows, seed) = (filter.word(), setup.windows.len(), setup.seed);
    let mut text = format!(
        "Workload: {name} ({capacity} nodes). Filter {filter}: {which}. {windows} windows of 15 days with {jobs} jobs. Seed {seed}.\n\n\
         Means over windows with 95 % confidence intervals; differences are of the same windows with the same draws. \
         Trimmed means leave out the best and worst windows, 4 of 48 each. Times are in `times.csv`.\n"
    );
    if !notice.is_empty() {
        text += "\nThe workload's own notice:\n\n";
        for line in notice {
            text += &format!("> {line}\n");
        }
    }
    text
}
