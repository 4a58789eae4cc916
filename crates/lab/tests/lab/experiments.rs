//! The experiments have the expected results on all forty-eight windows, and again byte for byte.

use std::path::PathBuf;
use std::sync::OnceLock;

use advisor::lublin;
use advisor::swf::SwfTrace;
use advisor::workers::Workers;
use advisor::workload::{WINDOW_SECONDS, WINDOWS, Workload, WorkloadFilter};
use lab::experiment::{ServerRuns, Setup, experiments_named};
use lab::report::{Report, Verdict};
use lab::run::run_experiments as run_all;

const SEED: u64 = 1;

/// Size of the experiments of paper 003: small, or as `BESPEAK_TEST_SERVER_JOBS` and `BESPEAK_TEST_SERVER_RUNS` say.
fn servers() -> ServerRuns {
    let size = |name: &str, small: usize| {
        let said = std::env::var_os(name);
        said.map_or(small, |text| text.to_string_lossy().parse().expect("a number"))
    };
    ServerRuns {
        jobs: size("BESPEAK_TEST_SERVER_JOBS", 4_000),
        runs: size("BESPEAK_TEST_SERVER_RUNS", 3),
    }
}

/// Whether to check also the parts that take minutes.
fn thorough(what: &str) -> bool {
    let thorough = std::env::var_os("BESPEAK_TEST_EVALUATION").is_some();
    if !thorough {
        println!("SKIPPED: BESPEAK_TEST_EVALUATION is not set: {what}");
    }
    thorough
}

fn generated() -> &'static Workload {
    static WORKLOAD: OnceLock<Workload> = OnceLock::new();
    WORKLOAD.get_or_init(|| lublin::generate_lublin_jobs(SEED, WINDOW_SECONDS * i64::from(WINDOWS)))
}

/// The trace of the papers.
fn trace() -> Option<Workload> {
    trace_in("SDSC-SP2-1998-4.2-cln.swf.gz")
}

/// A trace, if `BESPEAK_REFERENCE_DATA` names the folder where it lies.
fn trace_in(file: &str) -> Option<Workload> {
    let Some(folder) = std::env::var_os("BESPEAK_REFERENCE_DATA") else {
        println!("SKIPPED: BESPEAK_REFERENCE_DATA names no folder with {file}");
        return None;
    };
    let trace = SwfTrace::open(&PathBuf::from(folder).join(file)).expect("the trace can be read");
    Some(Workload::from_trace(file, &trace))
}

fn run(name: &str, workload: &Workload, windows: usize, threads: usize) -> Report {
    run_filtered(name, workload, WorkloadFilter::F1h, windows, threads)
}

fn run_filtered(
    name: &str,
    workload: &Workload,
    filter: WorkloadFilter,
    windows: usize,
    threads: usize,
) -> Report {
    let windows = workload.windows(filter, windows);
    let workers = Workers {
        threads,
        progress: &|_, _| {},
    };
    let setup = Setup::new(workload, &windows, SEED, workers, servers());
    let [experiment] = experiments_named(name)[..] else {
        panic!("{name} is one experiment");
    };
    experiment.run(&setup)
}

/// Runs an experiment on all windows and compares its verdicts.
fn check(name: &str, workload: &Workload, verdicts: &[Verdict]) {
    check_filtered(name, workload, WorkloadFilter::F1h, verdicts);
}

fn check_filtered(name: &str, workload: &Workload, filter: WorkloadFilter, verdicts: &[Verdict]) {
    let report = run_filtered(name, workload, filter, WINDOWS as usize, 2);
    let seen: Vec<Verdict> = report.findings.iter().map(|finding| finding.verdict).collect();
    assert_eq!(
        seen, verdicts,
        "{name} on {}: {:#?}",
        workload.name, report.findings
    );
}

use Verdict::{Direction, DoesNotHold, Holds, HoldsPartly, Measured, NotReproduced, Reproduced};

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for name in ["000-fig1", "000-fig3", "000-fig6"] {
        let one = run(name, generated(), 3, 1);
        let four = run(name, generated(), 3, 4);
        assert_eq!(one.markdown(), four.markdown());
        assert_eq!(one.table.csv(), four.table.csv());
        for (a, b) in one.figures.iter().zip(&four.figures) {
            assert_eq!(a.svg(), b.svg());
        }
    }
}

#[test]
fn rigid_requests_use_what_the_papers_say_on_their_trace() {
    let Some(workload) = trace() else { return };
    check("000-fifo", &workload, &[Reproduced, Measured]);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn the_order_of_figure_1_holds_in_all_nine_cells_of_the_trace() {
    let Some(workload) = trace() else { return };
    check("000-fig1", &workload, &[Reproduced, Reproduced]);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn utilisation_grows_with_the_intervals_and_with_the_time_that_requests_stay_flexible() {
    for workload in [Some(generated().clone()), trace()].iter().flatten() {
        check("000-fig2", workload, &[Reproduced]);
        check("000-fig4", workload, &[Reproduced]);
    }
}

#[test]
fn flexibility_matters_more_where_users_overestimate() {
    let Some(workload) = trace() else { return };
    // Relative to the rigid requests; in points it does not.
    check("000-fig3", &workload, &[Reproduced, NotReproduced, Reproduced]);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn with_the_filter_as_printed_the_orders_hold_too() {
    let thorough = thorough("the trace, the order of figure 1 and alternatives with the filter f60");
    let trace = thorough.then(trace).flatten();
    for workload in [Some(generated().clone()), trace].iter().flatten() {
        let check =
            |name, verdicts: &[Verdict]| check_filtered(name, workload, WorkloadFilter::F60, verdicts);
        check("000-fifo", &[NotReproduced, Measured]);
        check("000-fig2", &[Reproduced]);
        check("000-fig4", &[Reproduced]);
        if thorough {
            check("000-fig1", &[Reproduced, Reproduced]);
            check("000-fig5", &[Reproduced, Reproduced, NotReproduced]);
        }
    }
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn alternatives_raise_utilisation_less_than_flexibility_unless_everybody_takes_them() {
    let Some(workload) = trace() else { return };
    check("000-fig5", &workload, &[Reproduced, Reproduced, NotReproduced]);
    check("001-fig6", &workload, &[Reproduced, Reproduced, Reproduced]);
}

#[test]
fn accepted_alternatives_lie_at_about_half_the_threshold() {
    let Some(workload) = trace() else { return };
    check("000-fig6", &workload, &[NotReproduced]);
    check("001-fig7", &workload, &[NotReproduced]);
}

#[test]
fn adaptive_requests_earn_more_the_fuller_the_resource_until_the_incentive_eats_it_up() {
    if !thorough("paper 002's requests that adapt") {
        return;
    }
    let Some(workload) = trace() else { return };
    // Figure 5 is reproduced with the filter as printed.
    for (filter, sooner) in [
        (WorkloadFilter::F1h, Direction),
        (WorkloadFilter::F60, Reproduced),
    ] {
        let windows = workload.windows(filter, WINDOWS as usize);
        let workers = Workers {
            threads: 2,
            progress: &|_, _| {},
        };
        let setup = Setup::new(&workload, &windows, SEED, workers, servers());
        // All in one setup: they show the same runs.
        let reports = experiments_named("002")
            .into_iter()
            .map(|experiment| experiment.run(&setup));
        let expected = [
            &[Direction, Direction, Reproduced][..],
            &[sooner, Reproduced],
            &[Reproduced],
            &[Reproduced],
            &[Reproduced, Reproduced],
            &[Measured],
        ];
        assert_eq!(reports.len(), expected.len());
        for (report, verdicts) in reports.zip(expected) {
            let seen: Vec<Verdict> = report.findings.iter().map(|finding| finding.verdict).collect();
            assert_eq!(seen, verdicts, "{}: {:#?}", report.name, report.findings);
        }
    }
}

#[test]
fn small_instances_are_solved_for_sure_and_no_policy_is_above_the_optimum() {
    for workload in [Some(generated().clone()), trace()].iter().flatten() {
        check(
            "optimum",
            workload,
            &[Holds, Measured, Measured, DoesNotHold, Measured],
        );
    }
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn missing_deadline_first_comes_nearest_to_the_bound_and_earns_most() {
    let trace = thorough("the bound on the trace").then(trace).flatten();
    for workload in [Some(generated().clone()), trace].iter().flatten() {
        check("bound", workload, &[Measured, Holds]);
        let advice = run("advisor", workload, WINDOWS as usize, 2);
        for finding in &advice.findings {
            let best = "order mdf, fixed never, alternatives up to 100 %";
            assert!(finding.seen.starts_with(best), "{finding:?}");
        }
    }
}

#[test]
fn a_portfolio_accepts_as_much_as_the_best_order_and_more_than_earliest_deadline_first() {
    if !thorough("the portfolio on both traces") {
        return;
    }
    let traces = ["SDSC-SP2-1998-4.2-cln.swf.gz", "KTH-SP2-1996.swf.gz"].map(trace_in);
    for workload in traces.iter().flatten() {
        check("portfolio", workload, &[Measured, Holds, Holds, Holds, Holds]);
    }
}

#[test]
fn one_tree_a_class_loses_least_work_and_costs_least() {
    check(
        "003-fig4",
        generated(),
        &[NotReproduced, Measured, Reproduced, Holds, Holds],
    );
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn two_dimensional_trees_keep_servers_busier_and_jobs_waiting_and_one_tree_a_class_costs_a_logarithm() {
    check("003-fig5", generated(), &[Reproduced, NotReproduced]);
    check("003-periods", generated(), &[Holds]);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn the_least_work_lost_refuses_less_than_the_earliest_completion_and_takes_longer() {
    check("003-resources", generated(), &[Holds, HoldsPartly, DoesNotHold]);
}

#[test]
fn more_different_servers_lose_less_work() {
    if thorough("figure 6 of paper 003") {
        check("003-fig6", generated(), &[Reproduced, HoldsPartly, Reproduced]);
    }
}

#[test]
fn searches_that_know_the_rates_lose_no_more_work_than_those_that_do_not() {
    check("003-fig2", generated(), &[Reproduced, Reproduced]);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn the_files_of_two_runs_differ_in_nothing_but_their_times() {
    let windows = generated().windows(WorkloadFilter::F1h, 1);
    let files = |threads| {
        let workers = Workers {
            threads,
            progress: &|_, _| {},
        };
        let setup = Setup::new(generated(), &windows, SEED, workers, servers());
        let folder = tempfile::tempdir().expect("a folder");
        let experiments = [
            experiments_named("000-fig4"),
            experiments_named("002-fig7"),
            experiments_named("003-fig5"),
        ]
        .concat();
        run_all(&experiments, &setup, WorkloadFilter::F1h, folder.path(), &|_| {})
            .expect("files can be written");
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("it can be listed"))
            .map(|entry| {
                let bytes = std::fs::read(entry.path()).expect("it can be read");
                (entry.file_name().to_string_lossy().into_owned(), bytes)
            })
            .collect();
        files.sort_unstable();
        let (times, files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(name, _)| name.starts_with("times"));
        assert_eq!(times.len(), 2);
        files
    };
    let (one, two) = (files(1), files(2));
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"report.md") && names.contains(&"000-fig4.svg"),
        "{names:?}"
    );
    assert!(one == two, "two runs of {names:?} differ");
}
