//! Which folders are packed, and when.

use domain::agreement::{JobEnd, RunOutcome};
use domain::catalogue::JobLimits;

use super::*;
use crate::JobSpec;
use crate::PieceSpec;
use crate::job::staging_record::{DirectionRecord, FileProgress, StagingRecord};

const SLOT_END: Micros = 1_000 * MICROS_PER_SECOND;

fn create(folders: &JobFolders, agreement: Uuid, number: u32) -> Folder {
    let job = JobSpec {
        agreement,
        party: "physics".to_owned(),
        application: "test".into(),
        program: "/bin/true".into(),
        arguments: Vec::new(),
        inputs: Vec::new(),
        isolation: None,
        staged: Vec::new(),
        nodes: 1,
        processors: Vec::new(),
        slot_end: SLOT_END,
        output_limit: 1,
        limits: JobLimits::default(),
        piece: Some(PieceSpec {
            number,
            of: 2,
            save: None,
        }),
        restarts: 0,
    };
    Folder::create(folders.path(), &job).unwrap()
}

fn end(folder: &Folder) {
    let end = JobEnd::new(RunOutcome::Completed, Some(1), 2);
    folder.write_end(&end).unwrap();
}

/// Folders of jobs below the folder of a test, and one of them with an ended job.
fn folders(data: &tempfile::TempDir) -> (JobFolders, Uuid, Folder) {
    let folders = JobFolders::new(data.path(), None).unwrap();
    let id = Uuid::now_v7();
    let first = create(&folders, id, 1);
    assert!(folders.loose(Micros::MAX).unwrap().is_empty(), "it runs");
    end(&first);
    (folders, id, first)
}

#[test]
fn what_may_still_run_on_a_cluster_is_not_packed() {
    let data = tempfile::tempdir().unwrap();
    let (folders, id, first) = folders(&data);
    let loose = |now| folders.loose(now).unwrap();
    let found = vec![(id.to_string(), id)];
    assert_eq!(loose(0), found, "nothing runs of what has ended here");
    first.note_shared(&data.path().join("work/a")).unwrap();
    assert_eq!(loose(SLOT_END + OUT_OF_SIGHT), []);
    assert_eq!(loose(SLOT_END + OUT_OF_SIGHT + 1), found);
    first.put_until(SLOT_END + 5).unwrap();
    assert_eq!(loose(SLOT_END + OUT_OF_SIGHT + 5), [], "it was given more time");
}

#[test]
fn no_piece_is_packed_while_another_runs_and_all_are_afterwards() {
    let data = tempfile::tempdir().unwrap();
    let (folders, id, first) = folders(&data);
    let second = create(&folders, id, 2);
    assert_eq!(folders.loose(Micros::MAX).unwrap(), [], "the second one runs");
    end(&second);
    // Its first time was lost, and put aside.
    second.put_aside(0).unwrap();
    let second = create(&folders, id, 2);
    assert_eq!(folders.loose(Micros::MAX).unwrap(), []);
    end(&second);
    let found = folders.loose(Micros::MAX).unwrap();
    assert_eq!(found, [(id.to_string(), id)]);
    // A crash has cut the packing off after one of them.
    second.pack().unwrap();
    assert_eq!(folders.loose(Micros::MAX).unwrap(), found);
    folders.pack_named(&found[0].0).unwrap();
    assert_eq!(folders.loose(Micros::MAX).unwrap(), []);
    let parts = job_folders_of_agreement(first.path()).unwrap();
    assert_eq!(parts.len(), 3);
    for part in parts {
        let files = fs::read_dir(part.path()).unwrap().flatten();
        let files = files.filter(|entry| entry.file_type().unwrap().is_file());
        let names: Vec<_> = files.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["end.json"], "{}", part.path().display());
    }
}

#[test]
fn what_is_on_the_disk_of_a_cluster_is_packed_first_and_again_after_a_failure() {
    let data = tempfile::tempdir().unwrap();
    let (folders, id, first) = folders(&data);
    let shared = data.path().join("work").join(id.to_string());
    first.note_shared(&shared).unwrap();
    assert!(folders.pack_named(&id.to_string()).is_err(), "its disk is away");
    assert_eq!(folders.loose(Micros::MAX).unwrap(), [(id.to_string(), id)]);
    fs::create_dir_all(shared.join("claim")).unwrap();
    fs::write(shared.join("ended"), "0 1").unwrap();
    folders.pack_named(&id.to_string()).unwrap();
    assert!(!shared.exists());
    assert_eq!(folders.loose(Micros::MAX).unwrap(), []);
    assert_eq!(first.shared().unwrap(), Some(shared));
    assert_eq!(folders.remove_ended(id).unwrap(), Removal::Removed);
}

#[test]
fn brought_files_count_for_their_party_and_go_with_their_agreement_though_nothing_has_run() {
    let data = tempfile::tempdir().unwrap();
    let folders = JobFolders::new(data.path(), Some(1 << 20)).unwrap();
    let (brought, run) = (Uuid::now_v7(), Uuid::now_v7());
    let file = |bytes| FileProgress {
        name: "in.dat".into(),
        bytes,
        ..FileProgress::default()
    };
    let record = |bytes| StagingRecord {
        brought: DirectionRecord {
            began: 7,
            files: vec![file(bytes)],
            ..DirectionRecord::default()
        },
        ..StagingRecord::of("physics")
    };
    // Of one the files are on their way, and the other has them in its working folder.
    let folder = Folder::of(folders.path(), Run::first(brought));
    folder.put_staging(&record(700 << 10)).unwrap();
    fs::create_dir_all(folder.part("in.dat").parent().unwrap()).unwrap();
    fs::write(folder.part("in.dat"), "a part").unwrap();
    folders.enforce_quotas().unwrap();
    assert_eq!(folders.excess("physics"), None);
    let started = create(&folders, run, 1);
    started.put_staging(&record(500 << 10)).unwrap();
    fs::write(started.work().join("in.dat"), "the whole").unwrap();
    folders.enforce_quotas().unwrap();
    let excess = folders.excess("physics").unwrap();
    assert!(excess.found >= 1_200 << 10, "{excess:?}");
    assert!(folders.excess("biology").is_none());
    folder.remove_parts().unwrap();
    started.remove_files(["in.dat", "absent"].into_iter()).unwrap();
    folders.enforce_quotas().unwrap();
    assert_eq!(folders.excess("physics"), None, "removed files take no room");

    let ended = folders.ended_before(8).unwrap();
    assert_eq!(ended, [(brought.to_string(), brought)], "the other one runs");
    assert!(folders.ended_before(7).unwrap().is_empty());
    assert_eq!(folders.remove_ended(brought).unwrap(), Removal::Removed);
}
