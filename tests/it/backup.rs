//! Backup and restore: the drill, on both engines, and everything that is refused.

mod refusals;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use store::Store;
use tempfile::TempDir;
use tokio::task::{JoinSet, block_in_place};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};
use crate::support::{eventually, fixture};

on_both_engines!(
    what_was_acknowledged_before_a_backup_under_load_is_there_after_a_restore,
    a_restored_service_is_the_same_to_the_last_row_and_file,
);

/// Four nodes that cost something.
const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [pricing]\ncurrency = \"EUR\"\nnode_hour = \"100\"\n";
/// One for each node.
const CLIENTS: usize = 4;
/// Agreements that there are before the backup.
const BEFORE: usize = 24;
const SLOT: i64 = 600;
const SOON: Duration = Duration::from_mins(1);

/// The executable without anything from the environment but where temporary files go.
pub(crate) fn bespeak(arguments: &[&str], temporary: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bespeak"))
        .args(arguments)
        .env_clear()
        .env("TMPDIR", temporary)
        .output()
        .expect("the executable can be run")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// The output of a command that succeeded.
fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Restores a backup to a data folder and a database.
fn restore(backup: &Path, data_dir: &Path, url: &str) -> String {
    let arguments = [
        "restore",
        path(backup),
        "--data-dir",
        path(data_dir),
        "--database-url",
        url,
    ];
    said(&bespeak(
        &arguments,
        data_dir.parent().expect("it is in a folder"),
    ))
}

/// An empty database of the same engine.
fn another(url: &str) -> TestDatabase {
    if url.starts_with("sqlite:") {
        TestDatabase::empty_sqlite()
    } else {
        TestDatabase::empty_postgres()
    }
}

/// Offers one slot after the other on a node of its own, until it is to stop.
async fn keep_accepting(client: Client, stop: CancellationToken, acknowledged: Arc<Mutex<Vec<Uuid>>>) {
    let mut start = hours_ahead(1);
    while !stop.is_cancelled() {
        let offer = Offer::reserve(1, SLOT).within(start, start + SLOT).xml();
        let made = client.post("/agreements", offer).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        acknowledged
            .lock()
            .expect("no client panics")
            .push(made.created());
        start += SLOT;
    }
}

async fn what_was_acknowledged_before_a_backup_under_load_is_there_after_a_restore(url: String) {
    let server = Server::configured(Some(&url), PRICED);
    let keys: Vec<_> = (0..CLIENTS)
        .map(|number| server.key_for(&format!("party-{number}"), "consumer"))
        .collect();
    let acknowledged: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let first = server.client_with(&keys[0]);
    let paid = first
        .post("/agreements", Offer::sleep(0, 600).xml())
        .await
        .created();
    eventually("the price to be posted", SOON, async || {
        let shown = first.get_json(&format!("/agreements/{paid}")).await;
        (shown["state"] == "Complete").then_some(())
    })
    .await;
    let so_far = || acknowledged.lock().expect("no client panics").clone();
    let stop = CancellationToken::new();
    let accepting =
        |key: &String| keep_accepting(server.client_with(key), stop.clone(), Arc::clone(&acknowledged));
    let clients: JoinSet<()> = keys.iter().map(accepting).collect();
    eventually("agreements", SOON, async || {
        (so_far().len() >= BEFORE).then_some(())
    })
    .await;

    let before = so_far();
    let disk = tempfile::tempdir().expect("a temporary folder");
    let backup = disk.path().join("night");
    let told = block_in_place(|| said(&server.run(&["backup", path(&backup)])));
    assert!(told.contains("verify finds nothing"), "{told}");
    let after = so_far().len();
    eventually("the service to go on", SOON, async || {
        (so_far().len() > after).then_some(())
    })
    .await;
    stop.cancel();
    clients.join_all().await;

    let elsewhere = another(&url);
    let restored = Server::prepared(Some(elsewhere.url()), |folder| {
        fs::write(folder.join("bespeak.toml"), PRICED).expect("a configuration can be written");
        restore(&backup, &folder.join("data"), elsewhere.url());
    });
    restored.assert_verified();
    assert_eq!(restored.key(), server.key());
    let (there, here) = (server.client(), restored.client());
    for id in &before {
        let address = format!("/agreements/{id}");
        assert_eq!(there.get_json(&address).await, here.get_json(&address).await);
    }
    // Only promised agreements are there, and the money is the same.
    let ids = fixture::column(elsewhere.url(), "agreements", "id").await;
    let ids = ids.expect("they can be read").into_iter();
    let others: Vec<Uuid> = ids
        .map(|id| id.parse().expect("an id"))
        .filter(|id| *id != paid)
        .collect();
    assert!(others.len() >= before.len());
    let all = so_far();
    assert!(
        others.iter().all(|id| all.contains(id)),
        "an agreement was never acknowledged"
    );
    let accounts = here.get_json("/accounts").await;
    assert_eq!(accounts, there.get_json("/accounts").await);
    assert_eq!(
        accounts["entries"].as_array().map(Vec::len),
        Some(1),
        "{accounts}"
    );
    // The restored service accepts offers under the keys of before.
    let party = restored.client_with(&keys[0]);
    let start = hours_ahead(24 * 30);
    let made = party
        .post(
            "/agreements",
            Offer::reserve(4, SLOT).within(start, start + SLOT).xml(),
        )
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    restored.assert_verified();
}

/// The rows of a backup, in an order of their own, without what a restore adds: its line in the trail, and the end of that.
fn rows(backup: &Path) -> Vec<String> {
    let text = fs::read_to_string(backup.join("database.jsonl")).expect("a backup has rows");
    let as_value = |line: &str| {
        serde_json::from_str::<Value>(line)
            .expect("a line is JSON")
            .to_string()
    };
    let mut rows: Vec<_> = text.lines().map(as_value).collect();
    let is_lease = |line: &String| line.starts_with('{') && line.contains("\"lease\"");
    let of_lease = text
        .lines()
        .map(as_value)
        .skip_while(|line| !is_lease(line))
        .nth(1);
    let of_lease = of_lease.expect("a lease has a row");
    rows.retain(|row| *row != of_lease && !row.contains("\"restored\""));
    rows.sort();
    rows
}

async fn a_restored_service_is_the_same_to_the_last_row_and_file(url: String) {
    let mut server = Server::configured(Some(&url), PRICED);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let uploaded = physics.request(Method::PUT, "/files/grain.txt").body("grain");
    assert_eq!(physics.send(uploaded).await.status, StatusCode::CREATED);
    let mut sum = Offer::sleep(0, 600);
    sum.run = Some(("sha256sum", vec!["grain.txt".to_owned()]));
    let id = physics.post("/agreements", sum.xml()).await.created();
    eventually("the job to end", SOON, async || {
        let shown = physics.get_json(&format!("/agreements/{id}")).await;
        (shown["state"] == "Complete").then_some(())
    })
    .await;
    let start = hours_ahead(2);
    physics
        .post(
            "/agreements",
            Offer::reserve(2, SLOT).within(start, start + SLOT).xml(),
        )
        .await;
    server.stop();
    let disk = tempfile::tempdir().expect("a temporary folder");
    let backup = disk.path().join("all");
    let told = said(&server.run(&["backup", path(&backup), "--files", "--json"]));
    let manifest: Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!(manifest["leftOut"], 0, "{manifest}");
    assert_eq!(
        fs::read_to_string(backup.join("bespeak.toml")).expect("it came along"),
        PRICED
    );

    let rehearsed = said(&bespeak(
        &["restore", path(&backup), "--rehearse"],
        &made(&disk, "rehearsal"),
    ));
    assert!(rehearsed.starts_with("can restore the state of "), "{rehearsed}");
    assert_eq!(
        fs::read_dir(disk.path().join("rehearsal"))
            .expect("it is there")
            .count(),
        0
    );

    // To either engine.
    for (name, target) in [
        ("sqlite", TestDatabase::empty_sqlite()),
        ("postgres", TestDatabase::empty_postgres()),
    ] {
        let data_dir = made(&disk, name).join("data");
        restore(&backup, &data_dir, target.url());
        assert_eq!(files(&data_dir), files(&server.data_dir()));
        let store = Store::open(target.url()).await.expect("it can be opened");
        assert_eq!(store.verify().await.expect("it can be read"), []);
        store.close().await;
        let again = disk.path().join(format!("again-{name}"));
        let arguments = [
            "backup",
            path(&again),
            "--data-dir",
            path(&data_dir),
            "--database-url",
            target.url(),
        ];
        said(&bespeak(&arguments, disk.path()));
        assert_eq!(rows(&again), rows(&backup));
    }
}

/// The files in a folder and below, with their permissions and their content.
fn files(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("it can be listed").flatten() {
            let (path, meta) = (entry.path(), entry.metadata().expect("it is there"));
            let name = path.strip_prefix(folder).expect("it is below").to_owned();
            let content = if meta.is_dir() {
                folders.push(path);
                Vec::new()
            } else {
                fs::read(path).expect("it can be read")
            };
            found.push((name, meta.permissions().mode(), content));
        }
    }
    found.sort();
    found
}

/// A new folder in another one.
fn made(folder: &TempDir, name: &str) -> PathBuf {
    let folder = folder.path().join(name);
    fs::create_dir(&folder).expect("a folder can be made");
    folder
}
