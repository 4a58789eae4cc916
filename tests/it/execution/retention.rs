//! How much of the disk the jobs of one party may have together.

use bespeak::agreement::Limit;
use bespeak::execution::retention::JobFolders;

use super::*;

const EXCEEDED: Outcome = Outcome::Exceeded { limit: Limit::Files };

#[test]
fn beyond_the_quota_of_a_party_its_jobs_stop_writing_and_none_starts_until_there_is_room() {
    let place = Place::new();
    let folders = JobFolders::new(place.folder.path(), Some(1 << 20)).unwrap();
    let executor = place.executor().among(folders.clone());
    let quiet = script("while [ ! -e go ]; do sleep 0.05; done", 600);
    let fill = "head -c 3000000 /dev/zero > $1; mv $1 $2";
    let text = format!("f() {{ {fill}; }}; f a b; while [ ! -e go ]; do sleep 0.05; done; f c d; sleep 1000");
    let writing = script(&text, 600);
    for job in [&quiet, &writing] {
        executor.start(job).unwrap();
    }
    wait_for("file", || place.record(&writing, "work/b").exists().then_some(()));
    folders.look().unwrap();
    fs::write(place.record(&writing, "work/go"), "").unwrap();
    wait_for("file", || place.record(&writing, "work/d").exists().then_some(()));
    folders.look().unwrap();
    assert_eq!(end(&executor, &writing).outcome, EXCEEDED);

    let next = script("touch ran", 600);
    executor.start(&next).unwrap();
    let ended = end(&executor, &next);
    assert_eq!((ended.outcome, ended.started), (EXCEEDED, None));
    assert!(!place.record(&next, "work/ran").exists());
    let told = place.output(&next, Stream::Err);
    assert!(told.contains("it may have 1 MiB"), "{told}");

    let anothers = JobSpec {
        party: "biology".into(),
        ..script("true", 600)
    };
    executor.start(&anothers).unwrap();
    assert_eq!(end(&executor, &anothers).outcome, Outcome::Completed);
    fs::write(place.record(&quiet, "work/go"), "").unwrap();
    assert_eq!(
        end(&executor, &quiet).outcome,
        Outcome::Completed,
        "it wrote nothing"
    );

    assert!(folders.remove(writing.agreement).unwrap());
    assert!(!folders.remove(writing.agreement).unwrap());
    let last = script("true", 600);
    executor.start(&last).unwrap();
    assert_eq!(end(&executor, &last).outcome, Outcome::Completed);
}
