//! Jobs that get the signal to save their work before their slot ends, and jobs with an end that was not seen.

use domain::catalogue::CheckpointSignal;
use execution::{PieceSpec, SaveWork};

use super::*;

/// How long such a job has to save its work, in seconds: longer than any test takes.
const GRACE: i64 = 600;

/// The first of two pieces; it gets the signal to save its work some time after the test.
fn saving(text: &str) -> JobSpec {
    let save = SaveWork {
        signal: CheckpointSignal::Usr1,
        grace: GRACE * MICROS_PER_SECOND,
    };
    JobSpec {
        piece: Some(PieceSpec {
            number: 1,
            of: 2,
            save: Some(save),
        }),
        ..script(text, 10 * GRACE)
    }
}

/// Starts one, and waits until it is ready for the signal.
fn ready(place: &TestFolder, job: &JobSpec) -> LocalExecutor {
    let executor = place.executor();
    executor.start(job).unwrap();
    wait_for("start", || place.record(job, "work/ready").exists().then_some(()));
    executor
}

/// Has the signal sent now.
fn tell(executor: &LocalExecutor, job: &JobSpec) {
    let soon = now() + GRACE * MICROS_PER_SECOND;
    executor.keep_until(job.run(), soon).unwrap();
}

#[test]
fn a_job_that_has_saved_its_work_says_so_by_its_status_and_is_lost_where_nobody_saw_that() {
    // The shell's message about the signal would go into a pipe that is not read any more.
    let text = "exec 2> /dev/null; trap 'touch told; while [ ! -e go ]; do sleep 0.05; done; exit 0' USR1; \
        touch ready; while :; do sleep 0.05; done";
    for (seen, outcome) in [(true, RunOutcome::Checkpointed), (false, RunOutcome::Lost)] {
        let place = TestFolder::new();
        let job = saving(text);
        let executor = ready(&place, &job);
        if !seen {
            kill_process(place.supervisor(&job).unwrap(), Signal::KILL).unwrap();
        }
        tell(&executor, &job);
        wait_for("signal", || {
            executor.poll(job.run()).unwrap();
            place.record(&job, "work/told").exists().then_some(())
        });
        fs::write(place.record(&job, "work/go"), "").unwrap();
        assert_eq!(end(&executor, &job).outcome, outcome);
    }
}

#[test]
fn a_job_that_was_started_as_the_last_piece_is_told_to_save_its_work_where_that_is_decided_later_and_not_taken_back()
 {
    for (taken_back, outcome) in [(false, RunOutcome::Checkpointed), (true, RunOutcome::Killed)] {
        let place = TestFolder::new();
        let SaveWork { signal, grace } = saving("").piece.and_then(|piece| piece.save).unwrap();
        let job = script(
            "trap 'touch told; exit 0' USR1; touch ready; while :; do sleep 0.05; done",
            10 * GRACE,
        );
        let executor = ready(&place, &job);
        let save = Some(SaveWork { signal, grace });
        executor.save_before_end(job.run(), save).unwrap();
        if taken_back {
            executor.save_before_end(job.run(), None).unwrap();
            executor.keep_until(job.run(), now()).unwrap();
        } else {
            tell(&executor, &job);
        }
        assert_eq!(end(&executor, &job).outcome, outcome);
        assert_eq!(place.record(&job, "work/told").exists(), !taken_back);
    }
}

#[test]
fn a_job_keeps_its_limits_while_it_saves_its_work() {
    let place = TestFolder::new();
    let text = "trap 'head -c 400000000 /dev/zero | tail | sleep 1000' USR1; touch ready; \
        while :; do sleep 0.05; done";
    let job = JobSpec {
        limits: JobLimits {
            memory: Some(64 << 20),
            ..JobLimits::default()
        },
        ..saving(text)
    };
    let executor = ready(&place, &job);
    tell(&executor, &job);
    let limit = domain::agreement::Limit::Memory;
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Exceeded { limit });
    assert_eq!(processes(&job), [] as [i32; 0], "nothing of it is left");
}

#[test]
fn a_job_that_is_to_stop_while_it_saves_its_work_is_terminated() {
    let place = TestFolder::new();
    let job = saving("trap 'touch told; sleep 1000' USR1; touch ready; while :; do sleep 0.05; done");
    let executor = ready(&place, &job);
    tell(&executor, &job);
    wait_for("signal", || {
        place.record(&job, "work/told").exists().then_some(())
    });
    executor.stop(job.run()).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Terminated);
}

#[test]
fn a_supervisor_killed_between_the_end_of_the_program_and_its_record_leaves_a_lost_job_that_ran_once() {
    let place = TestFolder::new();
    let job = script(
        "echo x >> runs; touch ready; while [ ! -e go ]; do sleep 0.05; done",
        600,
    );
    let executor = ready(&place, &job);
    let supervisor = place.supervisor(&job).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    fs::write(place.record(&job, "work/go"), "").unwrap();
    wait_for("end of the program", || processes(&job).is_empty().then_some(()));
    assert!(!place.record(&job, "end.json").exists());
    kill_process(supervisor, Signal::KILL).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Lost);
    executor.start(&job).unwrap();
    assert_eq!(end(&executor, &job).outcome, RunOutcome::Lost);
    assert_eq!(
        fs::read_to_string(place.record(&job, "work/runs")).unwrap(),
        "x\n"
    );
}
