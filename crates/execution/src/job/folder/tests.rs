//! A job's folder with several writers at once.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use domain::clock::Clock;

use super::*;
use crate::job::folder::outputs::{OutputFile, Stream};

pub(super) fn job(inputs: Vec<PathBuf>) -> JobSpec {
    JobSpec {
        agreement: Uuid::now_v7(),
        party: "physics".to_owned(),
        application: "test".into(),
        program: "/bin/true".into(),
        arguments: Vec::new(),
        inputs,
        isolation: None,
        staged: Vec::new(),
        nodes: 1,
        processors: Vec::new(),
        slot_end: 0,
        output_limit: 1,
        limits: domain::catalogue::JobLimits::default(),
        piece: None,
        restarts: 0,
    }
}

#[test]
fn a_record_is_written_once_and_the_first_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::at(folder.path());
    assert_eq!(folder.claim().unwrap(), None);
    assert!(folder.decide_claim(&Claim::Abandoned).unwrap());
    let process = ProcessIdentity::current().unwrap();
    let began = StartTime::now(&Clock::system());
    assert!(!folder.decide_claim(&Claim::Started { process, began }).unwrap());
    assert_eq!(folder.claim().unwrap(), Some(Claim::Abandoned));
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "drafts are removed"
    );
}

#[test]
fn the_end_of_a_slot_may_change_and_the_intent_stays() {
    let jobs = tempfile::tempdir().unwrap();
    let job = job(Vec::new());
    let folder = Folder::create(jobs.path(), &job).unwrap();
    for slot_end in [20, 15] {
        folder.put_until(slot_end).unwrap();
        let changed = JobSpec {
            slot_end,
            ..job.clone()
        };
        assert_eq!(folder.spec().unwrap(), Some(changed));
    }
}

#[test]
fn of_many_deciders_at_once_one_decides() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::at(folder.path());
    let decided = std::thread::scope(|scope| {
        let deciders: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| folder.decide_claim(&Claim::Abandoned).unwrap()))
            .collect();
        deciders
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|won| *won)
            .count()
    });
    assert_eq!(decided, 1);
}

#[test]
fn one_supervisor_at_a_time_holds_the_lock_and_is_known_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::at(folder.path());
    assert!(!folder.is_supervised());
    let lock = folder.lock().unwrap();
    assert!(lock.is_some() && folder.is_supervised());
    assert!(folder.lock().unwrap().is_none());
    drop(lock);
    assert!(folder.lock().unwrap().is_some());
}

#[test]
fn a_damaged_record_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(END), "{").unwrap();
    let error = Folder::at(folder.path()).end().unwrap_err();
    assert!(matches!(error, ExecutionError::Damaged { .. }), "{error}");
}

#[test]
fn what_a_job_writes_is_listed_and_its_inputs_links_and_pipes_are_not() {
    let jobs = tempfile::tempdir().unwrap();
    let input = jobs.path().join("input.txt");
    fs::write(&input, "in").unwrap();
    let job = job(vec![input.clone()]);
    let folder = Folder::create(jobs.path(), &job).unwrap();
    let work = folder.work();
    fs::remove_file(&input).unwrap();
    assert_eq!(
        fs::read(work.join("input.txt")).unwrap(),
        b"in",
        "the job keeps it"
    );
    fs::write(work.join("result.dat"), "42").unwrap();
    fs::write(work.join("-option"), "").unwrap();
    fs::create_dir(work.join("folder")).unwrap();
    symlink("/etc/passwd", work.join("passwd")).unwrap();
    let files = folder.output_files().unwrap();
    let names: Vec<_> = files
        .iter()
        .map(|file| (file.name.as_str(), file.bytes))
        .collect();
    assert_eq!(names, [("result.dat", 2)]);
    for name in [
        "input.txt",
        "passwd",
        "-option",
        "folder",
        "../spec.json",
        "absent",
    ] {
        assert_eq!(folder.output_file(name).unwrap(), None, "{name}");
    }
    let result = folder.output_file("result.dat").unwrap().unwrap();
    assert!(folder.open_output(&result).unwrap().is_some());
    // The job is faster than the reader.
    fs::remove_file(work.join("result.dat")).unwrap();
    symlink("/etc/passwd", work.join("result.dat")).unwrap();
    assert!(folder.open_output(&result).is_err());
    assert_eq!(
        folder.output_file("stdout").unwrap(),
        Some(OutputFile::Stream(Stream::Out))
    );
    assert!(
        folder
            .open_output(&OutputFile::Stream(Stream::Out))
            .unwrap()
            .is_none(),
        "it has not begun"
    );
}

#[test]
fn a_job_that_writes_into_its_input_changes_no_other_jobs() {
    let jobs = tempfile::tempdir().unwrap();
    let (shared, fixed) = (jobs.path().join("shared"), jobs.path().join("fixed"));
    fs::write(&shared, "as it is").unwrap();
    fs::write(&fixed, "large").unwrap();
    fs::set_permissions(&fixed, Permissions::from_mode(0o444)).unwrap();
    // The remains of an interrupted attempt.
    let job = job(vec![shared.clone(), fixed]);
    let folder = Folder::of(jobs.path(), job.run());
    fs::create_dir_all(folder.temporary()).unwrap();
    fs::write(folder.temporary().join("input"), "as").unwrap();
    let folder = Folder::create(jobs.path(), &job).unwrap();
    let own = folder.work().join("shared");
    assert_eq!(fs::read(&own).unwrap(), b"as it is");
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o222, 0);
    fs::set_permissions(&own, Permissions::from_mode(0o600)).unwrap();
    fs::write(&own, "spoilt").unwrap();
    assert_eq!(fs::read(&shared).unwrap(), b"as it is");
    let linked = fs::metadata(folder.work().join("fixed")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&linked), 2, "not copied");
    assert_eq!(folder.output_files().unwrap(), []);
}
