//! Jobs that take too much: each is stopped for it, says of what, and leaves nothing running; others beside it run on.

use bespeak::agreement::Limit;

use super::*;

const MIB: u64 = 1 << 20;

fn limited(text: &str, limits: JobLimits) -> JobSpec {
    JobSpec {
        limits,
        ..script(text, 600)
    }
}

/// Runs a job that takes too much, beside one that does not, and answers how it ended and what it was told.
fn excess(place: &Place, job: &JobSpec) -> (Outcome, String) {
    let beside = script("while [ ! -e over ]; do sleep 0.05; done", 600);
    let executor = place.executor();
    executor.start(&beside).unwrap();
    let end = run(place, job);
    assert_eq!(processes(job), [] as [i32; 0], "nothing of it is left");
    fs::write(place.record(&beside, "work/over"), "").unwrap();
    assert_eq!(super::end(&executor, &beside).outcome, Outcome::Completed);
    (end.outcome, place.output(job, Stream::Err))
}

#[test]
fn a_job_that_eats_memory_is_stopped_and_told_so() {
    let place = Place::new();
    // tail keeps what may be the last line: all of it. Its reader never reads.
    let text = "head -c 400000000 /dev/zero | tail | sleep 1000";
    let limits = JobLimits {
        memory: Some(64 * MIB),
        ..JobLimits::default()
    };
    let (outcome, told) = excess(&place, &limited(text, limits));
    let limit = Limit::Memory;
    assert_eq!(outcome, Outcome::Exceeded { limit });
    assert!(
        told.contains("bespeak: stopped, because its processes had memory of")
            && told.contains("it may have 64 MiB"),
        "{told}"
    );
}

#[test]
fn a_job_whose_processes_multiply_is_stopped_with_all_of_them() {
    let place = Place::new();
    // Each becomes two, in groups of their own, until there are about a thousand.
    let text = "b() { if [ $1 -eq 0 ]; then exec setsid sleep 1000; fi; b $(($1 - 1)) & b $(($1 - 1)) & wait; }; b 9";
    let limits = JobLimits {
        processes: Some(60),
        ..JobLimits::default()
    };
    let (outcome, told) = excess(&place, &limited(text, limits));
    let limit = Limit::Processes;
    assert_eq!(outcome, Outcome::Exceeded { limit });
    assert!(told.contains("its processes and their threads were"), "{told}");
}

#[test]
fn a_job_that_fills_the_disk_is_stopped_whether_with_one_file_or_many_or_names_alone() {
    let place = Place::new();
    let limits = JobLimits {
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    for text in [
        "head -c 100000000 /dev/zero > file; exit $?",
        "exec head -c 100000000 /dev/zero > file",
        "i=0; while [ $i -lt 100 ]; do i=$((i + 1)); head -c 1000000 /dev/zero > file$i; done; sleep 1000",
        "mkdir a; cd a; seq 1 20000 | xargs touch; sleep 1000",
        "cd $TMPDIR; for i in 1 2 3; do head -c 4000000 /dev/zero > file$i; done; sleep 1000",
    ] {
        let job = limited(text, limits);
        let (outcome, told) = excess(&place, &job);
        let limit = Limit::Files;
        assert_eq!(outcome, Outcome::Exceeded { limit }, "{text}");
        assert!(told.contains("it may have 8 MiB"), "{text}: {told}");
        assert!(!place.record(&job, "tmp").exists(), "{text}");
    }
}

#[test]
fn what_a_job_reads_is_not_held_against_it() {
    let place = Place::new();
    fs::write(place.path("large"), vec![1; 9 << 20]).unwrap();
    let limits = JobLimits {
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    let mut job = limited(
        "cat large > /dev/null; echo done > result; sleep 0.5; exit 7",
        limits,
    );
    job.inputs.push(place.path("large"));
    assert_eq!(run(&place, &job).outcome, Outcome::Failed { exit: 7 });
}

#[test]
fn a_job_is_still_limited_when_its_first_supervisor_is_gone() {
    let place = Place::new();
    let text = "while [ ! -e go ]; do sleep 0.05; done; i=0; \
        while [ $i -lt 100 ]; do i=$((i + 1)); sleep 1000 & done; wait";
    let limits = JobLimits {
        processes: Some(20),
        ..JobLimits::default()
    };
    let job = limited(text, limits);
    let executor = place.executor();
    executor.start(&job).unwrap();
    wait_for("process", || (!processes(&job).is_empty()).then_some(()));
    let supervisor = wait_for("supervisor", || place.supervisor(&job));
    kill_process(supervisor, Signal::KILL).unwrap();
    fs::write(place.record(&job, "work/go"), "").unwrap();
    let limit = Limit::Processes;
    assert_eq!(end(&executor, &job).outcome, Outcome::Exceeded { limit });
    assert_eq!(processes(&job), [] as [i32; 0]);
}

#[test]
fn each_process_of_a_job_has_limits_that_the_system_watches_over() {
    let place = Place::new();
    let limits = JobLimits {
        memory: Some(64 * MIB),
        files: Some(8 * MIB),
        open_files: Some(40),
        ..JobLimits::default()
    };
    let text = "ulimit -c; ulimit -n; ulimit -f; ulimit -d; cat /proc/self/oom_score_adj; : > $TMPDIR/x";
    let job = limited(text, limits);
    assert_eq!(run(&place, &job).outcome, Outcome::Completed);
    // Blocks of 512 bytes, and kibibytes.
    let expected = format!("0\n40\n{}\n{}\n500\n", 8 * 2048, (64 + 1024) * 1024);
    assert_eq!(place.output(&job, Stream::Out), expected);
    assert!(!place.record(&job, "tmp").exists(), "it ran no longer");
}
