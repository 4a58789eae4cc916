//! A folder that is packed, wherever a crash cuts that off.

use std::path::PathBuf;

use domain::agreement::{JobEnd, RunOutcome};
use domain::catalogue::CheckpointSignal;
use domain::clock::Clock;

use super::*;
use crate::SaveWork;
use crate::job::folder::outputs::{OutputFile, Stream};
use crate::job::folder::tests::job;
use crate::job::folder::{Claim, WORK};
use crate::job::process::ProcessIdentity;
use crate::job::start_time::StartTime;

const END_OF_JOB: JobEnd = JobEnd {
    outcome: RunOutcome::Failed { exit: 3 },
    started: Some(1_000),
    ended: 2_000,
    input_bytes: 1,
    output_bytes: 0,
    truncated: false,
    transfer_in: 3,
    moved_in: 0,
    moved_out: 0,
    late: 0,
    staging: None,
    transfer_out: 4,
};
const SAVES: SaveWork = SaveWork {
    signal: CheckpointSignal::Usr1,
    grace: 5,
};

/// The folder of a job that has ended, with every possible record, and the remains of crashes.
fn ended(jobs: &Path, job: &JobSpec) -> Folder {
    let folder = Folder::create(jobs, job).unwrap();
    folder.put_until(77).unwrap();
    folder.put_save(Some(SAVES)).unwrap();
    let process = ProcessIdentity::current().unwrap();
    let began = StartTime::now(&Clock::system());
    assert!(folder.decide_claim(&Claim::Started { process, began }).unwrap());
    drop(folder.lock().unwrap());
    folder.ask_to_stop(None).unwrap();
    folder.note_shared(Path::new("/shared/a")).unwrap();
    folder.note_copied(9).unwrap();
    folder.note_put_off().unwrap();
    for stream in Stream::ALL {
        folder.create_output(stream).unwrap();
    }
    folder.open_log().unwrap();
    fs::write(folder.path().join(".spec.json.draft"), "{").unwrap();
    fs::write(folder.temporary().join("file"), "1").unwrap();
    assert!(folder.put_away_temporary().unwrap().is_some());
    fs::create_dir(folder.temporary()).unwrap();
    folder.write_end(&END_OF_JOB).unwrap();
    folder
}

fn names(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().file_name().into()).collect();
    names.sort();
    names
}

/// Asserts that the records of a folder are the same as when its job ended.
fn assert_says_the_same(folder: &Folder, job: &JobSpec, state: &str) {
    let changed = JobSpec {
        slot_end: 77,
        ..job.clone()
    };
    assert_eq!(folder.spec().unwrap(), Some(changed), "{state}");
    assert_eq!(folder.save(job).unwrap(), Some(SAVES), "{state}");
    assert_eq!(folder.end().unwrap(), Some(END_OF_JOB), "{state}");
    assert_eq!(folder.shared().unwrap(), Some("/shared/a".into()), "{state}");
    assert_eq!(folder.output_files().unwrap(), [], "{state}");
    assert!(folder.walked().is_ok(), "{state}");
    for stream in Stream::ALL {
        let listed = folder.output_entry(stream).unwrap();
        assert_eq!(
            (listed.name.as_str(), listed.bytes),
            (stream.word(), 0),
            "{state}"
        );
        let read = folder.open_output(&OutputFile::Stream(stream)).unwrap();
        let text = read.map_or_else(String::new, |file| io::read_to_string(file).unwrap());
        assert_eq!(text, "", "{state}");
    }
    let late = Claim::Abandoned;
    assert!(
        !folder.decide_claim(&late).unwrap(),
        "a launcher that comes late becomes the job: {state}"
    );
}

#[test]
fn a_folder_that_a_crash_leaves_packed_by_half_says_the_same_and_is_packed_later() {
    let jobs = tempfile::tempdir().unwrap();
    let spec = job(Vec::new());
    let whole = ended(jobs.path(), &spec);
    let before = names(&whole);
    whole.pack().unwrap();
    let (packed, end) = (names(&whole), fs::read(whole.path().join(END)).unwrap());
    assert_eq!(packed, [Path::new("claim.json"), Path::new(END)]);
    assert_says_the_same(&whole, &spec, "packed");

    let place = |name: &PathBuf| REMOVED.iter().position(|removed| name == Path::new(removed));
    let mut goes: Vec<&PathBuf> = before.iter().filter(|name| !packed.contains(name)).collect();
    goes.sort_by_key(|name| place(name).map_or(0, |at| at + 1));
    assert!(goes.len() > REMOVED.len() && goes.last().is_some_and(|last| last == &Path::new(SPEC)));
    for gone in 0..=goes.len() {
        let jobs = tempfile::tempdir().unwrap();
        let folder = ended(jobs.path(), &spec);
        fs::write(folder.path().join(END), &end).unwrap();
        for name in &goes[..gone] {
            tree::remove_tree(&folder.path().join(name)).unwrap();
        }
        let state = format!("without {:?}", &goes[..gone]);
        assert_says_the_same(&folder, &spec, &state);
        assert_eq!(folder.is_loose(), gone < goes.len(), "{state}");
        folder.pack().unwrap();
        assert_eq!(names(&folder), packed, "{state}");
        assert_says_the_same(&folder, &spec, &state);
    }
}

#[test]
fn whatever_cannot_be_removed_is_removed_by_a_later_try() {
    let spec = job(Vec::new());
    // A folder in place of a file stands for a disk that fails at this step.
    for fault in [LOCK, STOP, COPIED, PUT_OFF] {
        let jobs = tempfile::tempdir().unwrap();
        let folder = ended(jobs.path(), &spec);
        let path = folder.path().join(fault);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for _ in 0..2 {
            assert!(folder.pack().is_err(), "{fault}");
            assert!(folder.is_loose(), "{fault}");
            assert_says_the_same(&folder, &spec, fault);
        }
        fs::remove_dir(path).unwrap();
        folder.pack().unwrap();
        assert!(!folder.is_loose() && names(&folder).len() == 2, "{fault}");
    }
}

#[test]
fn what_the_job_has_written_stays_and_what_it_was_given_goes_where_it_is_elsewhere() {
    let jobs = tempfile::tempdir().unwrap();
    let inputs =
        ["linked", "led", "copied", "changed", "replaced", "gone"].map(|name| jobs.path().join(name));
    for input in &inputs {
        fs::write(input, "given").unwrap();
    }
    let mut readable = fs::metadata(&inputs[0]).unwrap().permissions();
    readable.set_readonly(true);
    fs::set_permissions(&inputs[0], readable).unwrap();
    let spec = job(inputs.to_vec());
    let folder = ended(jobs.path(), &spec);
    let (work, path) = (folder.work(), folder.path().to_owned());
    fs::remove_file(work.join("changed")).unwrap();
    fs::write(work.join("changed"), "given").unwrap();
    fs::remove_file(work.join("led")).unwrap();
    std::os::unix::fs::symlink(&inputs[1], work.join("led")).unwrap();
    fs::remove_file(work.join("replaced")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", work.join("replaced")).unwrap();
    fs::remove_file(work.join("gone")).unwrap();
    fs::write(work.join("result"), "42").unwrap();
    fs::write(path.join("stderr"), "42").unwrap();
    fs::write(path.join(LOG), "why").unwrap();
    folder.pack().unwrap();
    let mut left: Vec<_> = fs::read_dir(&work)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["changed", "copied", "replaced", "result"]);
    assert_eq!(
        names(&folder),
        ["claim.json", END, "stderr", LOG, WORK].map(PathBuf::from)
    );
    for input in &inputs {
        assert_eq!(fs::read(input).unwrap(), b"given", "its party's own stays");
    }
    let files = folder.output_files().unwrap();
    assert!(files.len() == 1 && files[0].name == "result", "{files:?}");
    assert_eq!(folder.output_entry(Stream::Err).unwrap().bytes, 2);
}

#[test]
fn a_folder_whose_job_has_not_ended_is_not_packed() {
    let jobs = tempfile::tempdir().unwrap();
    let folder = Folder::create(jobs.path(), &job(Vec::new())).unwrap();
    let before = names(&folder);
    folder.pack().unwrap();
    assert_eq!(names(&folder), before);
    assert_eq!(
        folder.output_entry(Stream::Out),
        None,
        "it has written nothing yet"
    );
}
