//! Jobs that take too much: each is stopped for it, names the limit, and leaves nothing running; others beside it run on.

use domain::agreement::Limit;

use super::*;

const MIB: u64 = 1 << 20;

fn limited(text: &str, limits: JobLimits) -> JobSpec {
    JobSpec {
        limits,
        ..script(text, 600)
    }
}

/// Runs a job that takes too much, beside one that does not, and answers how it ended and the message that it got.
fn excess(place: &TestFolder, job: &JobSpec) -> (RunOutcome, String) {
    let beside = script("while [ ! -e over ]; do sleep 0.05; done", 600);
    let executor = place.executor();
    executor.start(&beside).unwrap();
    let end = run(place, job);
    assert_eq!(processes(job), [] as [i32; 0], "nothing of it is left");
    fs::write(place.record(&beside, "work/over"), "").unwrap();
    assert_eq!(super::end(&executor, &beside).outcome, RunOutcome::Completed);
    (end.outcome, place.output(job, Stream::Err))
}

#[test]
fn a_job_that_eats_memory_is_stopped_and_told_so() {
    let place = TestFolder::new();
    // tail keeps every byte that may be in the last line: all of them. Its reader never reads.
    let text = "head -c 400000000 /dev/zero | tail | sleep 1000";
    let limits = JobLimits {
        memory: Some(64 * MIB),
        ..JobLimits::default()
    };
    let (outcome, told) = excess(&place, &limited(text, limits));
    let limit = Limit::Memory;
    assert_eq!(outcome, RunOutcome::Exceeded { limit });
    assert!(
        told.contains("bespeak: stopped, because its processes had memory of")
            && told.contains("it may have 64 MiB"),
        "{told}"
    );
}

#[test]
fn a_job_whose_processes_multiply_is_stopped_with_all_of_them() {
    let place = TestFolder::new();
    // Each becomes two, in groups of their own, until there are some two hundred. One that is refused goes on.
    let text = "exec perl -e 'for (1 .. 8) { setpgrp if defined fork } sleep 1000'";
    let limits = JobLimits {
        processes: Some(60),
        ..JobLimits::default()
    };
    let (outcome, told) = excess(&place, &limited(text, limits));
    let limit = Limit::Processes;
    assert_eq!(outcome, RunOutcome::Exceeded { limit });
    assert!(told.contains("its processes and their threads were"), "{told}");
}

#[test]
fn a_job_that_fills_the_disk_is_stopped_whether_with_one_file_or_many_or_names_alone() {
    let place = TestFolder::new();
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
        assert_eq!(outcome, RunOutcome::Exceeded { limit }, "{text}");
        assert!(told.contains("it may have 8 MiB"), "{text}: {told}");
        let clear = || (!place.record(&job, "tmp").exists()).then_some(());
        wait_for("clearing up", clear);
    }
}

#[test]
fn files_without_a_name_count_as_those_with_one() {
    let place = TestFolder::new();
    let limits = JobLimits {
        files: Some(8 * MIB),
        memory: Some(64 * MIB),
        ..JobLimits::default()
    };
    let fill = |number: u32| format!("exec {number}> gone; rm gone; head -c 4000000 /dev/zero >&{number}");
    let deleted = format!("{}; {}; {}; sleep 30; exit 7", fill(3), fill(4), fill(5));
    let call = if cfg!(target_arch = "x86_64") { 319 } else { 279 };
    let in_memory = format!(
        "exec perl -e 'my $m = \"x\" x (1 << 20); for (1 .. 20) {{ my $fd = syscall({call}, my $n = \"hidden\", 0); \
         open my $o, \">&=\", $fd; push @o, $o; syswrite $o, $m for 1 .. 7 }} sleep 30; exit 7'"
    );
    for (text, limit) in [(deleted, Limit::Files), (in_memory, Limit::Memory)] {
        for isolation in [None, Some(domain::catalogue::Isolation::default())] {
            let job = JobSpec {
                isolation,
                ..limited(&text, limits)
            };
            assert_eq!(
                run(&place, &job).outcome,
                RunOutcome::Exceeded { limit },
                "{text}"
            );
        }
    }
    // One after the other they take no more than one.
    let again = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); exec 3> gone; rm gone; head -c 4000000 /dev/zero >&3; sleep 0.05; done; exit 7";
    let job = limited(again, limits);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Failed { exit: 7 });
}

#[test]
fn memory_that_processes_share_covers_no_files_in_memory_and_a_mapped_file_counts_once() {
    let place = TestFolder::new();
    let limits = JobLimits {
        memory: Some(64 * MIB),
        ..JobLimits::default()
    };
    let [map, read, create] = if cfg!(target_arch = "x86_64") {
        [9, 0, 319]
    } else {
        [222, 63, 279]
    };
    // Each is 40 MiB.
    let open = format!(
        "my $n = 40 << 20; open my $z, \"<\", \"/dev/zero\" or exit 1; my $fd = syscall({create}, my $name = \"hidden\", 0); \
         open my $o, \"+>&=\", $fd or exit 2; \
         sub fill {{ my $at = syscall({map}, 0, $n, 3, $_[0], $_[1], 0); syscall({read}, fileno($z), $at, $n) == $n or exit 3 }}"
    );
    let both = "fill(0x21, -1); my $m = \"x\" x (1 << 20); syswrite $o, $m for 1 .. 40; sleep 30; exit 7";
    let mapped = "truncate $o, $n; fill(1, $fd); sleep 1; exit 7";
    let limit = Limit::Memory;
    for (rest, outcome) in [
        (both, RunOutcome::Exceeded { limit }),
        (mapped, RunOutcome::Failed { exit: 7 }),
    ] {
        for isolation in [None, Some(domain::catalogue::Isolation::default())] {
            let job = JobSpec {
                isolation,
                ..limited(&format!("exec perl -e '{open}; {rest}'"), limits)
            };
            assert_eq!(run(&place, &job).outcome, outcome, "{rest}");
        }
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_limited_as_any_other() {
    let place = TestFolder::new();
    let limits = JobLimits {
        memory: Some(64 * MIB),
        processes: Some(20),
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    let exit = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
    let memory = "$m = \"x\" x $n";
    let files = "$n = 1 << 20; for (1 .. 3) { open my $o, \">\", \"gone\" or exit 3; unlink \"gone\"; \
                 syswrite $o, \"x\" x $n for 1 .. 4; push @o, $o }";
    let threads = "threads->create(sub { sleep 30 }) for 1 .. 30";
    for (take, limit) in [
        (memory, Limit::Memory),
        (files, Limit::Files),
        (threads, Limit::Processes),
    ] {
        // Another thread takes this when the first one has ended.
        let text = format!(
            "exec perl -Mthreads -e 'my ($n, $m, @o) = 80 << 20; \
             sub ended {{ open my $s, \"<\", \"/proc/$$/stat\" or exit 2; <$s> =~ /\\) Z/ }} \
             threads->create(sub {{ select undef, undef, undef, 0.01 until ended(); {take}; sleep 30; exit 7 }})->detach; \
             syscall({exit}, 0)'"
        );
        for isolation in [None, Some(domain::catalogue::Isolation::default())] {
            let job = JobSpec {
                isolation,
                ..limited(&text, limits)
            };
            assert_eq!(
                run(&place, &job).outcome,
                RunOutcome::Exceeded { limit },
                "{take}"
            );
        }
    }
}

#[test]
fn what_a_job_reads_is_not_held_against_it() {
    let place = TestFolder::new();
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
    assert_eq!(run(&place, &job).outcome, RunOutcome::Failed { exit: 7 });
}

#[test]
fn a_job_is_still_limited_when_its_first_supervisor_is_gone() {
    let place = TestFolder::new();
    let text = "while [ ! -e go ]; do sleep 0.05; done; \
        exec perl -e 'for (1 .. 100) { my $p = fork; if (defined $p && !$p) { sleep 1000; exit } } sleep 1000'";
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
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Exceeded { limit });
    assert_eq!(processes(&job), [] as [i32; 0]);
}

#[test]
fn each_process_of_a_job_has_limits_that_the_system_watches_over() {
    let place = TestFolder::new();
    let limits = JobLimits {
        memory: Some(64 * MIB),
        files: Some(8 * MIB),
        open_files: Some(40),
        ..JobLimits::default()
    };
    let text = "ulimit -c; ulimit -n; ulimit -f; ulimit -d; cat /proc/self/oom_score_adj; : > $TMPDIR/x";
    let job = limited(text, limits);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Completed);
    // Blocks of 512 bytes, and kibibytes.
    let expected = format!("0\n40\n{}\n{}\n500\n", 8 * 2048, (64 + 1024) * 1024);
    assert_eq!(place.output(&job, Stream::Out), expected);
    wait_for("clearing up", || {
        (!place.record(&job, "tmp").exists()).then_some(())
    });
}

#[test]
fn a_program_that_itself_ends_with_the_status_of_a_refused_file_keeps_it() {
    let place = TestFolder::new();
    let limits = JobLimits {
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    let job = limited("echo x > small; exit 153", limits);
    assert_eq!(run(&place, &job).outcome, RunOutcome::Failed { exit: 153 });
}

/// Goes down so far that no path reaches where it then is.
const GO_DEEP: &str =
    "d=$(printf %0255d 0); i=0; while [ $i -lt 20 ]; do i=$((i + 1)); mkdir $d && cd -P $d || exit 9; done";

#[test]
fn folders_deeper_than_any_path_take_neither_the_supervisor_nor_the_limit_away() {
    let place = TestFolder::new();
    let limits = JobLimits {
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    // Long enough for many a look.
    let harmless = limited(&format!("{GO_DEEP}; sleep 2; echo done"), limits);
    assert_eq!(run(&place, &harmless).outcome, RunOutcome::Completed);
    assert_eq!(place.output(&harmless, Stream::Out), "done\n");
    let fill = "for i in 1 2 3; do head -c 4000000 /dev/zero > file$i; done; sleep 1000";
    let (outcome, told) = excess(&place, &limited(&format!("{GO_DEEP}; {fill}"), limits));
    let limit = Limit::Files;
    assert_eq!(outcome, RunOutcome::Exceeded { limit });
    assert!(told.contains("it may have 8 MiB"), "{told}");
}

#[test]
fn a_leader_that_hides_its_mark_is_limited_and_so_is_what_it_starts_without_one() {
    let place = TestFolder::new();
    let limits = JobLimits {
        memory: Some(64 * MIB),
        ..JobLimits::default()
    };
    let memory = RunOutcome::Exceeded { limit: Limit::Memory };
    // The leader itself keeps all of one line, and waits.
    let text = r"exec env -i sh -c 'a=$(head -c 100000000 /dev/zero | tr \\0 a); sleep 1000'";
    assert_eq!(run(&place, &limited(text, limits)).outcome, memory);

    let beside = "setsid env -i sleep 1000 & echo $! > hidden; sleep 1; head -c 400000000 /dev/zero | tail";
    let job = limited(&format!("{beside} | sleep 1000"), limits);
    assert_eq!(run(&place, &job).outcome, memory);
    let hidden: i32 = fs::read_to_string(place.record(&job, "work/hidden"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // Its status need not have been collected.
    let stat = fs::read_to_string(format!("/proc/{hidden}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z"), "{stat}");
}

#[test]
fn what_stands_at_an_inputs_name_and_what_an_input_grows_count_as_written() {
    let place = TestFolder::new();
    let limits = JobLimits {
        files: Some(8 * MIB),
        ..JobLimits::default()
    };
    let limit = Limit::Files;
    for text in [
        "rm data; mkdir data; for i in 1 2 3; do head -c 4000000 /dev/zero > data/$i; done; sleep 1000",
        "for i in 1 2 3; do head -c 4000000 /dev/zero >> data; done; sleep 1000",
        "for i in 1 2 3; do head -c 4000000 /dev/zero > ../$i; done; sleep 1000",
    ] {
        fs::write(place.path("data"), "in").unwrap();
        let mut job = limited(text, limits);
        job.inputs.push(place.path("data"));
        assert_eq!(
            run(&place, &job).outcome,
            RunOutcome::Exceeded { limit },
            "{text}"
        );
    }
}

#[test]
fn the_end_of_a_job_is_told_before_what_it_leaves_is_cleared_up_however_deep_that_is() {
    let place = TestFolder::new();
    // With few descriptors, as a service may have them.
    fs::write(
        place.path("few"),
        format!(
            "#!/bin/sh\nulimit -n 100\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_bespeak")
        ),
    )
    .unwrap();
    fs::set_permissions(
        place.path("few"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    let executor = place.executor_with(&place.path("few"));
    let job = script("cd $TMPDIR; mkdir -p $(seq -s / 500)", 600);
    executor.start(&job).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Completed);
    let left = || -> Vec<_> {
        let entries = fs::read_dir(place.record(&job, "")).unwrap().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.contains("tmp")).collect()
    };
    wait_for("clearing up", || left().is_empty().then_some(()));
}
