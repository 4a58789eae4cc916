//! The files on a cluster's disk of jobs that are over.

use std::os::unix::fs::symlink;

use uuid::{NoContext, Timestamp};

use super::*;
use crate::slurm::jobs::shared_folder::UNTIL;

/// A folder of a job with these records, and a claim where there is to be one.
fn folder(disk: &Path, records: &[&str], is_claimed: bool) -> PathBuf {
    let folder = disk.join(Uuid::now_v7().to_string());
    fs::create_dir_all(folder.join(WORK)).unwrap();
    for record in records {
        fs::write(folder.join(record), "1").unwrap();
    }
    for output in Stream::ALL.map(Stream::word) {
        fs::write(folder.join(output), "").unwrap();
    }
    if is_claimed {
        fs::create_dir(folder.join(CLAIM)).unwrap();
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_job_that_has_left_nothing_has_no_folder_and_none_begins_there() {
    let disk = tempfile::tempdir().unwrap();
    let mut all = [&RECORDS[..], &[".until.draft"]].concat();
    // However far an earlier try has come: the record of the end goes last.
    all.sort_by_key(|record| *record == ENDED);
    for left in 0..=all.len() {
        for is_claimed in [true, false] {
            let folder = folder(disk.path(), &all[left..], is_claimed);
            pack_folder_on_shared_disk(&folder).unwrap();
            assert_eq!(names(disk.path()), [""; 0], "{left}");
            // As the script of a job that comes late.
            assert!(fs::create_dir(folder.join(CLAIM)).is_err(), "{left}");
            pack_folder_on_shared_disk(&folder).unwrap();
        }
    }
    assert!(
        pack_folder_on_shared_disk(&disk.path().join("away").join("job")).is_err(),
        "its disk may be away"
    );
}

#[test]
fn what_a_job_has_left_stays_and_no_other_begins_there() {
    let disk = tempfile::tempdir().unwrap();
    for is_claimed in [true, false] {
        for name in ["work/result", "stdout", "own"] {
            let folder = folder(disk.path(), &RECORDS, is_claimed);
            fs::write(folder.join(name), "42").unwrap();
            for _ in 0..2 {
                pack_folder_on_shared_disk(&folder).unwrap();
                let kept = name.split('/').next().unwrap();
                let mut expected = [CLAIM, kept];
                expected.sort_unstable();
                assert_eq!(names(&folder), expected);
                assert_eq!(fs::read(folder.join(name)).unwrap(), b"42");
            }
        }
    }
}

#[test]
fn what_ends_a_job_out_of_sight_stays_until_its_end_is_recorded() {
    let disk = tempfile::tempdir().unwrap();
    let folder = folder(disk.path(), &[".group", ".told", UNTIL], true);
    for _ in 0..2 {
        pack_folder_on_shared_disk(&folder).unwrap();
        assert_eq!(names(&folder), [".group", CLAIM, UNTIL]);
    }
    fs::write(folder.join(ENDED), "1").unwrap();
    pack_folder_on_shared_disk(&folder).unwrap();
    assert!(!folder.exists());
}

#[test]
fn no_link_leads_a_packer_away() {
    let disk = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join(UNTIL), "1").unwrap();
    let led = disk.path().join("led");
    symlink(other.path(), &led).unwrap();
    assert!(pack_folder_on_shared_disk(&led).is_err());
    let folder = folder(disk.path(), &[ENDED], true);
    fs::remove_dir(folder.join(WORK)).unwrap();
    symlink(other.path(), folder.join(WORK)).unwrap();
    symlink(other.path().join(UNTIL), folder.join(UNTIL)).unwrap();
    fs::create_dir(folder.join(".group")).unwrap();
    pack_folder_on_shared_disk(&folder).unwrap();
    assert_eq!(names(&folder), [".group", CLAIM, WORK]);
    assert_eq!(names(other.path()), [UNTIL]);
}

#[test]
fn a_draft_goes_a_day_after_its_writer_and_nothing_else_does() {
    let disk = tempfile::tempdir().unwrap();
    let now = Clock::system().now().seconds();
    let made_before = |seconds: Seconds| {
        let made = u64::try_from(now - seconds).unwrap();
        Uuid::new_v7(Timestamp::from_unix(NoContext, made, 0))
    };
    let old = made_before(DRAFTS_KEPT + 600);
    let kept = [
        old.to_string(),
        format!(".check-{}", old.simple()),
        format!(".{}", old.simple()),
        format!(".{old}.1"),
        format!(".{}", made_before(DRAFTS_KEPT - 600)),
        draft_name_on_shared_disk(),
        ".nfs1".to_owned(),
    ];
    for name in kept.iter().chain([&format!(".{old}")]) {
        fs::create_dir_all(disk.path().join(name).join(WORK)).unwrap();
    }
    for _ in 0..2 {
        clear_drafts_on_shared_disk(disk.path()).unwrap();
        let mut expected = kept.to_vec();
        expected.sort();
        assert_eq!(names(disk.path()), expected);
    }
    clear_drafts_on_shared_disk(&disk.path().join("away")).unwrap();
}
