//! How much of the disk the jobs of one party may have together.

use domain::agreement::{Limit, Run};
use execution::files::job_folders::{JobFolders, Removal};

use super::*;

const EXCEEDED: RunOutcome = RunOutcome::Exceeded { limit: Limit::Files };

#[test]
fn beyond_the_quota_of_a_party_those_of_its_jobs_are_stopped_that_go_on_writing() {
    let place = TestFolder::new();
    let folders = JobFolders::new(place.folder.path(), Some(1 << 20)).unwrap();
    let executor = place.executor().among(folders.clone());
    let quiet = script("touch ready; while [ ! -e go ]; do sleep 0.05; done", 600);
    let fill = "head -c 3000000 /dev/zero > $1; mv $1 $2";
    let text = format!("f() {{ {fill}; }}; f a b; while [ ! -e go ]; do sleep 0.05; done; f c d; sleep 1000");
    let writing = script(&text, 600);
    for job in [&quiet, &writing] {
        executor.start(job).unwrap();
    }
    wait_for("file", || place.record(&writing, "work/b").exists().then_some(()));
    // Output that it has written by the first look is not new at the next.
    wait_for("file", || {
        place.record(&quiet, "work/ready").exists().then_some(())
    });
    folders.enforce_quotas().unwrap();
    fs::write(place.record(&writing, "work/go"), "").unwrap();
    wait_for("file", || place.record(&writing, "work/d").exists().then_some(()));
    folders.enforce_quotas().unwrap();
    assert_eq!(end(&executor, &writing).outcome, EXCEEDED);

    let anothers = JobSpec {
        party: "biology".into(),
        ..script("true", 600)
    };
    executor.start(&anothers).unwrap();
    assert_eq!(end(&executor, &anothers).outcome, RunOutcome::Completed);
    assert_eq!(folders.remove_ended(quiet.agreement).unwrap(), Removal::Running);
    fs::write(place.record(&quiet, "work/go"), "").unwrap();
    assert_eq!(
        end(&executor, &quiet).outcome,
        RunOutcome::Completed,
        "it wrote nothing"
    );

    assert!(folders.remove(writing.agreement).unwrap());
    assert!(!folders.remove(writing.agreement).unwrap());
}

#[test]
fn what_is_run_again_is_looked_at_as_if_nothing_had_been_there_and_what_was_lost_counts_on() {
    let place = TestFolder::new();
    let folders = JobFolders::new(place.folder.path(), Some(5 << 20)).unwrap();
    let executor = place.executor().among(folders.clone());
    let lost = script("head -c 3000000 /dev/zero > file", 600);
    executor.start(&lost).unwrap();
    end(&executor, &lost);
    folders.enforce_quotas().unwrap();
    let fill =
        "touch one; while [ ! -e go ]; do sleep 0.05; done; head -c 3000000 /dev/zero > file; sleep 1000";
    let again = JobSpec {
        agreement: lost.agreement,
        restarts: 1,
        ..script(fill, 600)
    };
    assert!(
        executor
            .end_earlier_attempts(Run {
                attempt: 1,
                ..again.run()
            })
            .unwrap()
    );
    assert!(
        executor
            .end_earlier_attempts(Run {
                attempt: 1,
                ..again.run()
            })
            .unwrap(),
        "that is so now"
    );
    assert_eq!(executor.poll(again.run()).unwrap(), JobStatus::NotStarted);
    executor.start(&again).unwrap();
    wait_for("file", || place.record(&again, "work/one").exists().then_some(()));
    folders.enforce_quotas().unwrap();
    fs::write(place.record(&again, "work/go"), "").unwrap();
    wait_for("file", || {
        let meta = fs::metadata(place.record(&again, "work/file")).ok()?;
        (meta.len() == 3_000_000).then_some(())
    });
    folders.enforce_quotas().unwrap();
    assert_eq!(end(&executor, &again).outcome, EXCEEDED);
}

#[test]
fn what_is_wrong_with_one_partys_folders_keeps_nobody_from_looking_at_anothers() {
    let place = TestFolder::new();
    let folders = JobFolders::new(place.folder.path(), Some(1 << 20)).unwrap();
    let executor = place.executor().among(folders.clone());
    let deep = "d=$(printf %0255d 0); for i in $(seq 20); do mkdir $d; cd -P $d; done";
    let troubled: Vec<_> = [
        deep,
        "echo '{' > ../end.json; sleep 1000",
        "echo '{' > ../spec.json",
    ]
    .iter()
    .map(|text| script(&format!("{text}; touch $HOME/done"), 600))
    .collect();
    for job in &troubled {
        executor.start(job).unwrap();
    }
    let fill = "head -c 3000000 /dev/zero > file; touch one; while [ ! -e go ]; do sleep 0.05; done; \
        head -c 3000000 /dev/zero > more; touch two; sleep 1000";
    let full = JobSpec {
        party: "biology".into(),
        ..script(fill, 600)
    };
    executor.start(&full).unwrap();
    wait_for("damage", || {
        place.record(&troubled[1], "end.json").exists().then_some(())
    });
    for job in [&troubled[0], &troubled[2]] {
        wait_for("damage", || place.record(job, "work/done").exists().then_some(()));
    }
    let written = |name: &str| {
        wait_for("file", || {
            place
                .record(&full, &format!("work/{name}"))
                .exists()
                .then_some(())
        });
    };
    written("one");
    folders.enforce_quotas().unwrap();
    fs::write(place.record(&full, "work/go"), "").unwrap();
    written("two");
    folders.enforce_quotas().unwrap();
    assert_eq!(end(&executor, &full).outcome, EXCEEDED);
    for job in &troubled {
        if let Some(supervisor) = place.supervisor(job) {
            let _ = kill_process(supervisor, Signal::KILL);
        }
        for pid in processes(job) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        assert!(folders.remove(job.agreement).unwrap());
        assert!(!place.record(job, "").exists());
    }
}
