//! Paper 004's experiments have the expected results, on the trace and on a generated workload.

use std::path::PathBuf;

use Verdict::{Holds, HoldsPartly, NotReproduced, Reproduced};
use advisor::lublin;
use advisor::swf::SwfTrace;
use advisor::workers::Workers;
use advisor::workload::{WINDOW_SECONDS, WINDOWS, Workload, WorkloadFilter};
use lab::experiment::{ServerRuns, Setup, experiments_named};
use lab::report::{Report, Verdict};

/// The trace of the papers, if `BESPEAK_REFERENCE_DATA` names the folder where it lies.
fn trace() -> Option<Workload> {
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") else {
        println!("SKIPPED: BESPEAK_REFERENCE_DATA names no folder with SDSC-SP2-1998-4.2-cln.swf.gz");
        return None;
    };
    let path = PathBuf::from(folder).join("SDSC-SP2-1998-4.2-cln.swf.gz");
    let trace = SwfTrace::open(&path).expect("the trace can be read");
    Some(Workload::from_trace("SDSC-SP2", &trace))
}

fn reports(workload: &Workload, threads: usize) -> Vec<Report> {
    let windows = workload.windows(WorkloadFilter::F1h, WINDOWS as usize);
    let workers = Workers {
        threads,
        progress: &|_, _| {},
    };
    let setup = Setup::new(workload, &windows, 1, workers, ServerRuns { jobs: 1, runs: 1 });
    let experiments = experiments_named("004");
    assert_eq!(experiments.len(), 3);
    experiments
        .iter()
        .map(|experiment| experiment.run(&setup))
        .collect()
}

fn check(reports: &[Report], expected: &[&[Verdict]]) {
    for (report, expected) in reports.iter().zip(expected) {
        println!("{}", report.markdown());
        let seen: Vec<Verdict> = report.findings.iter().map(|finding| finding.verdict).collect();
        assert_eq!(&seen, expected, "{}: {:#?}", report.name, report.findings);
    }
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn stated_intervals_hold_on_the_trace_and_are_sharper_than_users_and_than_their_last_two_runs() {
    let Some(workload) = trace() else { return };
    check(
        &reports(&workload, 2),
        &[
            &[NotReproduced, NotReproduced, Holds, Holds, HoldsPartly],
            &[Reproduced, Holds],
            &[Holds, Holds, Holds, Holds, Holds, Holds],
        ],
    );
}

/// Takes as long as the trace, so that it is left to a release where that can be read.
#[test]
fn stated_intervals_hold_on_a_generated_workload_byte_for_byte_the_same_each_time() {
    if trace().is_some() && std::env::var_os("BESPEAK_TEST_EVALUATION").is_none() {
        println!("SKIPPED: BESPEAK_TEST_EVALUATION is not set: the intervals of a generated workload");
        return;
    }
    let workload = lublin::generate_lublin_jobs(1, WINDOW_SECONDS * 24);
    let first = reports(&workload, 1);
    check(
        &first,
        &[
            &[NotReproduced, NotReproduced, Holds, Holds, HoldsPartly],
            &[Reproduced, Holds],
            &[Holds, Holds],
        ],
    );
    assert_eq!(first, reports(&workload, 4));
}
