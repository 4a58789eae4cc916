//! Backups that are none, are damaged or forged, and places to restore to that are not empty: each is refused before anything is changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::hex;
use tempfile::TempDir;

use super::{another, bespeak, made, path, restore, said};
use crate::store::{agreement, create, decide, tamper};
use crate::support::fixture;
use crate::support::stores::{TestDatabase, on_both_engines};

on_both_engines!(
    what_is_damaged_forged_or_newer_is_refused,
    only_what_is_empty_is_restored_to,
    what_does_not_verify_is_neither_backed_up_nor_restored,
    a_backup_of_before_the_first_release_is_refused,
);

/// A backup of a database with an agreement, and a folder for everything else.
struct Backed {
    disk: TempDir,
    backup: PathBuf,
    /// An empty database of the same engine, which stays empty.
    target: TestDatabase,
}

impl Backed {
    async fn up(url: &str) -> Self {
        let (store, lease) = decide(url).await;
        let made = create(&agreement("physics"));
        store.commit(lease.epoch, &[made]).await.expect("it is stored");
        store.close().await;
        lease.release().await;
        let disk = tempfile::tempdir().expect("a temporary folder");
        let data = super::made(&disk, "data");
        fs::write(data.join("federation.secret"), "a secret").expect("a file can be written");
        let backup = disk.path().join("backup");
        said(&back_up(url, &data, &backup));
        Self {
            disk,
            backup,
            target: another(url),
        }
    }

    /// Refuses to restore the backup to a new folder and an empty database. Returns the reason.
    async fn refused(&self) -> String {
        let target = &self.target;
        let data_dir = self.disk.path().join("elsewhere");
        let arguments = [
            "restore",
            path(&self.backup),
            "--data-dir",
            path(&data_dir),
            "--database-url",
            target.url(),
        ];
        let output = bespeak(&arguments, self.disk.path());
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{why}{}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert_eq!(
            fixture::tables(target.url()).await.expect("they can be listed"),
            [""; 0]
        );
        // Where it was begun, no service starts.
        if data_dir.exists() {
            let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", path(&data_dir)];
            let output = bespeak(&serve, self.disk.path());
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(told.contains("is not whole: a restore into it"), "{told}");
            assert_eq!(output.status.code(), Some(1));
            fs::remove_dir_all(&data_dir).expect("it can be removed");
        }
        why
    }

    fn manifest(&self) -> Value {
        let text = fs::read_to_string(self.backup.join("manifest.json")).expect("a backup has one");
        serde_json::from_str(&text).expect("it is JSON")
    }

    fn put_manifest(&self, manifest: &Value) {
        fs::write(self.backup.join("manifest.json"), manifest.to_string()).expect("it can be written");
    }

    /// Forges a file of the backup, with its sum.
    fn forge(&self, name: &str, content: &[u8]) {
        fs::write(self.backup.join(name), content).expect("it can be written");
        let mut manifest = self.manifest();
        let parts = manifest["parts"].as_array_mut().expect("a list");
        let part = parts
            .iter_mut()
            .find(|part| part["name"] == name)
            .expect("it has the file");
        part["bytes"] = content.len().into();
        part["sha256"] = hex(&Sha256::digest(content)).into();
        self.put_manifest(&manifest);
    }

    fn rows(&self) -> String {
        fs::read_to_string(self.backup.join("database.jsonl")).expect("a backup has rows")
    }
}

fn back_up(url: &str, data_dir: &Path, backup: &Path) -> std::process::Output {
    let arguments = [
        "backup",
        path(backup),
        "--data-dir",
        path(data_dir),
        "--database-url",
        url,
    ];
    bespeak(&arguments, data_dir.parent().expect("it is in a folder"))
}

async fn what_is_damaged_forged_or_newer_is_refused(url: String) {
    let backed = Backed::up(&url).await;
    let (good, rows) = (backed.manifest(), backed.rows());
    assert_eq!(
        fs::metadata(&backed.backup)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777,
        0o700
    );

    // One bit, and the last byte.
    for name in ["database.jsonl", "service.tar"] {
        let file = backed.backup.join(name);
        let whole = fs::read(&file).expect("it can be read");
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damaged in [&flipped, &whole[..whole.len() - 1]] {
            fs::write(&file, damaged).expect("it can be written");
            let why = backed.refused().await;
            assert!(
                why.contains("the backup is damaged") && why.contains(name),
                "{why}"
            );
        }
        // A link to the file itself is none.
        fs::rename(&file, backed.backup.join("moved")).expect("it can be moved");
        fs::write(backed.backup.join("moved"), &whole).expect("it can be written");
        symlink("moved", &file).expect("a link can be made");
        backed.refused().await;
        fs::remove_file(&file).expect("it can be removed");
        backed.refused().await;
        fs::rename(backed.backup.join("moved"), &file).expect("it can be moved");
    }

    // A list that is forged, or of a later version.
    let with = |key: &str, value: Value| {
        let mut manifest = good.clone();
        manifest[key] = value;
        manifest
    };
    let with_part = |part: Value| {
        let mut parts = good["parts"].clone();
        parts.as_array_mut().expect("a list").push(part);
        with("parts", parts)
    };
    let part = |name: &str, bytes: u64| json!({ "name": name, "bytes": bytes, "sha256": "00" });
    for (manifest, expected) in [
        (
            with("schema", json!(good["schema"].as_u64().unwrap_or(0) + 1)),
            "of a newer version",
        ),
        (with("format", json!(2)), "of a newer version"),
        (with("schema", json!(-1)), "manifest.json"),
        (with("parts", json!([])), "does not list"),
        (with_part(part("../database.jsonl", 1)), "no backup has a file"),
        (with_part(part("/etc/passwd", 1)), "no backup has a file"),
        (with_part(part("service.tar", 1)), "does not list"),
        (with_part(part("files.tar", u64::MAX)), "files.tar"),
        (json!([]), "manifest.json"),
    ] {
        backed.put_manifest(&manifest);
        let why = backed.refused().await;
        assert!(why.contains(expected), "{manifest}: {why}");
    }
    backed.put_manifest(&good);

    // Right sums of wrong content.
    let without_end = rows.trim_end().to_owned();
    let twice = rows.replacen("{\"columns\"", "[1],[2]\n{\"columns\"", 2);
    let unknown = rows.replacen("\"resources\"", "\"resources; DROP TABLE agreements\"", 1);
    let unknown_column = rows.replacen("\"capacity\"", "\"capacity) --\"", 1);
    for forged in [
        &without_end,
        &twice,
        &unknown,
        &unknown_column,
        "",
        "{}\n",
        "[]\n",
    ] {
        backed.forge("database.jsonl", forged.as_bytes());
        backed.refused().await;
    }
    backed.forge("database.jsonl", rows.as_bytes());
    backed.forge("service.tar", b"no archive");
    backed.refused().await;

    // One that was interrupted.
    fs::remove_file(backed.backup.join("manifest.json")).expect("it can be removed");
    let why = backed.refused().await;
    assert!(why.contains("is no backup, or one that was interrupted"), "{why}");
}

async fn only_what_is_empty_is_restored_to(url: String) {
    let backed = Backed::up(&url).await;
    let (data, disk) = (backed.disk.path().join("data"), backed.disk.path());
    let refused = |arguments: &[&str], expected: &str| {
        let output = bespeak(arguments, disk);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && why.contains(expected), "{why}");
    };
    let before = fs::read_dir(&data).expect("it is there").count();
    let target = another(&url);
    let backup = path(&backed.backup);
    refused(
        &[
            "restore",
            backup,
            "--data-dir",
            path(&data),
            "--database-url",
            target.url(),
        ],
        "is not empty",
    );
    let empty = disk.join("empty");
    refused(
        &[
            "restore",
            backup,
            "--data-dir",
            path(&empty),
            "--database-url",
            &url,
        ],
        "the database is not empty",
    );
    assert_eq!(fs::read_dir(&data).expect("it is there").count(), before);
    assert_eq!(fs::read_dir(&empty).expect("it was made").count(), 0);
    restore(&backed.backup, &empty, target.url());
    refused(
        &[
            "restore",
            backup,
            "--data-dir",
            path(&empty),
            "--database-url",
            target.url(),
        ],
        "is not empty",
    );

    // A backup has a folder of its own, elsewhere.
    let at = ["--data-dir", path(&data), "--database-url", &url];
    refused(&[&["backup", backup][..], &at].concat(), "is not empty");
    refused(
        &[&["backup", path(&data.join("backup"))][..], &at].concat(),
        "is in the data folder",
    );
    assert_eq!(fs::read_dir(&data).expect("it is there").count(), before);
    // Nothing is made of a database that is not there, or that no service has been on.
    let nothing = another(&url);
    let output = back_up(nothing.url(), &data, &disk.join("nothing"));
    assert!(!output.status.success() && !disk.join("nothing").exists());
}

async fn what_does_not_verify_is_neither_backed_up_nor_restored(url: String) {
    let backed = Backed::up(&url).await;
    let rows = backed.rows();
    let lost: Vec<&str> = rows
        .lines()
        .filter(|line| !line.contains("it was accepted"))
        .collect();
    assert!(lost.len() < rows.lines().count());
    backed.forge("database.jsonl", (lost.join("\n") + "\n").as_bytes());
    let why = backed.refused().await;
    assert!(why.contains("finding"), "{why}");
    let rehearsal = made(&backed.disk, "rehearsal");
    let output = bespeak(&["restore", path(&backed.backup), "--rehearse"], &rehearsal);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(&rehearsal).expect("it is there").count(), 0);

    tamper(&url, "DELETE FROM events").await;
    let again = backed.disk.path().join("again");
    let output = back_up(&url, &backed.disk.path().join("data"), &again);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.is_empty(), "it names what is wrong");
    assert!(!again.join("manifest.json").exists(), "this is no backup");
}

async fn a_backup_of_before_the_first_release_is_refused(url: String) {
    let backed = Backed::up(&url).await;
    let good = backed.manifest();
    let before = |change: fn(&mut Value)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        manifest
    };
    for manifest in [
        // As the versions with many migrations wrote it, and of another layout under the same number.
        before(|each| {
            each["schema"] = 29.into();
            each.as_object_mut().expect("a manifest").remove("schemaSum");
        }),
        before(|each| each["schemaSum"] = "another".into()),
    ] {
        backed.put_manifest(&manifest);
        let why = backed.refused().await;
        assert!(why.contains("before the first release"), "{why}");
    }
    backed.put_manifest(&good);
    restore(
        &backed.backup,
        &backed.disk.path().join("restored"),
        backed.target.url(),
    );
}
