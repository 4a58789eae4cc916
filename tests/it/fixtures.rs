//! The data of earlier versions is taken over by this one: databases of either engine with every kind of row, and the folders of
//! the jobs. `tests/fixtures/README.md` says how they are made.

mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bespeak::store::Store;
use reqwest::StatusCode;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::fixture::{column, in_repository, load, migrations, tables, unpack};
use crate::support::server::Server;
use crate::support::stores::TestDatabase;
use crate::support::{eventually, run, size};

/// Work that is due when a service starts is over by then, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);

/// The kinds of rows that each fixture has, as words of a column, since version 20. A later version adds its own words to
/// its own list, before it has a fixture.
const KINDS: &[(u32, &str, &str, &[&str])] = &[
    (
        20,
        "agreements",
        "state",
        &[
            "Complete",
            "Observed",
            "ObservedAndTerminating",
            "Pending",
            "PendingAndTerminating",
            "Rejected",
            "Terminated",
        ],
    ),
    (
        20,
        "agreements",
        "service",
        &["Completed", "Idle", "NotReady", "Processing"],
    ),
    (
        20,
        "agreements",
        "outcome",
        &[
            "completed",
            "exceeded-files",
            "exceeded-memory",
            "exceeded-processes",
            "failed",
            "killed",
            "lost",
            "terminated",
        ],
    ),
    (
        20,
        "events",
        "kind",
        &[
            "accepted",
            "assessed",
            "broken",
            "charged",
            "checkpointed",
            "closed",
            "ended",
            "fixed",
            "moved",
            "offered",
            "overrun",
            "penalty",
            "restarted",
            "reward",
            "running",
            "started",
            "superseded",
            "terminating",
            "unused",
        ],
    ),
    (
        20,
        "notes",
        "kind",
        &[
            "asked",
            "countered",
            "declined",
            "key-added",
            "key-revoked",
            "lapsed",
            "negotiating",
            "nodes-said",
            "proposed",
            "refused",
            "released",
            "taken",
            "withdrawn",
        ],
    ),
    (
        20,
        "offers",
        "state",
        &["Acceptable", "Advisory", "Rejected", "Solicited"],
    ),
    (
        20,
        "offers",
        "creator",
        &["NegotiationInitiator", "NegotiationResponder"],
    ),
    (20, "negotiations", "proposed", &["better-fit", "broken"]),
    (
        20,
        "ledger",
        "kind",
        &["cancellation", "change", "overrun", "penalty", "price", "reward"],
    ),
    (
        20,
        "executions",
        "outcome",
        &[
            "completed",
            "exceeded-memory",
            "exceeded-processes",
            "killed",
            "lost",
            "terminated",
        ],
    ),
    (20, "node_states", "state", &["down", "drained"]),
    (24, "agreements", "outcome", &["failed-staging"]),
    (24, "events", "kind", &["staged", "staging"]),
    (26, "notes", "kind", &["by-operator", "key-expires"]),
    (26, "ledger", "kind", &["compensation"]),
];

/// The tables without rows in a fixture, and why.
const EMPTY: &[(&str, &str)] = &[
    (
        "peer_agreements",
        "the tests that leave data behind have no peers",
    ),
    ("replicas", "SQLite has one process"),
    ("resource_hosts", "likewise"),
    ("party_files", "SQLite has none: the files are in the folder only"),
    ("party_file_parts", "likewise"),
    ("party_file_changes", "likewise"),
];

/// One database that a version left behind, and the files of its service.
struct Fixture {
    version: u32,
    name: String,
    rows: String,
    files: Option<String>,
}

/// The fixtures of an engine, in the order of their versions.
fn fixtures(engine: &str) -> Vec<Fixture> {
    let mut found = Vec::new();
    for (version, folder) in versions() {
        let folder = folder.join(engine);
        let entries = fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths
            .iter()
            .filter(|path| path.extension().is_some_and(|of| of == "sql"))
        {
            found.push(Fixture {
                version,
                name: path.display().to_string(),
                rows: fs::read_to_string(path).expect("rows can be read"),
                files: fs::read_to_string(path.with_extension("files")).ok(),
            });
        }
    }
    found
}

/// The versions that have fixtures, with their folders.
fn versions() -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(in_repository(Path::new("tests/fixtures"))).expect("fixtures can be listed");
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    found.sort();
    found
}

#[test]
fn a_migration_has_a_fixture_of_the_version_before_it() {
    let newest = migrations("migrations").last().expect("there are some").0;
    let fixture = versions().last().expect("there are some").0;
    assert!(
        fixture + 1 >= newest,
        "migration {newest} changes what version {} leaves behind, and the newest fixture is of version {fixture}: \
         make one of that version (tests/fixtures/README.md)",
        newest - 1
    );
}

#[test]
fn what_earlier_versions_left_in_sqlite_is_taken_over() {
    take_over("sqlite", TestDatabase::empty_sqlite);
}

#[test]
fn what_earlier_versions_left_in_postgres_is_taken_over() {
    take_over("postgres", TestDatabase::empty_postgres);
}

fn take_over(engine: &str, empty: fn() -> TestDatabase) {
    // The words of each column that has kinds, and the rows of each table, by version.
    let mut kinds: BTreeMap<(u32, &str, &str), BTreeSet<String>> = BTreeMap::new();
    let mut rows: BTreeMap<(u32, String), usize> = BTreeMap::new();
    // A release starts services on the data of all versions.
    let served = versions()
        .into_iter()
        .rev()
        .take(size("BESPEAK_TEST_FIXTURES", 1));
    let served: BTreeSet<u32> = served.map(|(version, _)| version).collect();
    for fixture in fixtures(engine) {
        let database = empty();
        let url = database.url();
        run(async {
            let loaded = load(url, fixture.version, &fixture.rows).await;
            loaded.unwrap_or_else(|why| panic!("{}: {why}", fixture.name));
            for table in tables(url).await.expect("they can be listed") {
                let found = column(url, &table, "1").await.expect("they can be counted").len();
                *rows.entry((fixture.version, table)).or_default() += found;
            }
            for (version, table, name, _) in KINDS.iter().filter(|of| of.0 == fixture.version) {
                let words = column(url, table, name).await.expect("it can be read");
                kinds.entry((*version, *table, *name)).or_default().extend(words);
            }
            match &fixture.files {
                Some(files) if served.contains(&fixture.version) => serve(url, files, &fixture.name).await,
                _ => check(url, &fixture.name).await,
            }
        });
    }
    let made: BTreeSet<u32> = versions().into_iter().map(|(version, _)| version).collect();
    let missing: Vec<_> = KINDS
        .iter()
        .filter(|(version, ..)| made.contains(version))
        .flat_map(|(version, table, name, expected)| {
            let found = &kinds[&(*version, *table, *name)];
            expected.iter().filter(move |word| !found.contains(**word))
        })
        .filter(|word| !NOT_LEFT.contains(word))
        .collect();
    assert!(missing.is_empty(), "no row is {missing:?}");
    for ((version, table), count) in &rows {
        let empty = EMPTY.iter().any(|(of, _)| of == table);
        assert!(*count > 0 || empty, "version {version}: no row in {table}");
    }
}

/// States that no database of version 20 holds: the state lasts from one decision to the next, and no test left a drained node.
const NOT_LEFT: [&str; 2] = ["PendingAndTerminating", "drained"];

/// Databases with agreements that a test wrote by itself, and which no service leaves so: they are read and brought up to date.
const BY_HAND: [&str; 2] = [
    "old_executions_become_sums_and_no_estimate_changes",
    "old_samples_become_hours_and_say_the_same",
];

/// Opens the data, without a service, and has everything checked.
async fn check(url: &str, name: &str) {
    let store = Store::open(url).await.expect("it is brought up to date");
    let findings = store.verify().await.expect("it can be read");
    let by_hand = BY_HAND.iter().any(|of| name.contains(of));
    assert!(findings.is_empty() || by_hand, "{name}: {findings:#?}");
    store.close().await;
}

/// Starts a service on the data of another, and looks at all that there is.
async fn serve(url: &str, files: &str, name: &str) {
    let mut server = Server::prepared(Some(url), |folder| {
        unpack(files, folder);
        make_programs(folder);
    });
    server.assert_verified();
    let ids = async |table| -> Vec<Uuid> {
        let found = column(url, table, "id").await.expect("they can be read");
        found.iter().map(|id| id.parse().expect("an id")).collect()
    };
    let (agreements, negotiations) = (ids("agreements").await, ids("negotiations").await);
    for _ in 0..2 {
        let client = server.client();
        eventually("all that is due to be over", SOON, async || {
            for id in &agreements {
                if is_due(&client, *id).await {
                    return None;
                }
            }
            Some(())
        })
        .await;
        for id in &agreements {
            let shown = client.get(&format!("/agreements/{id}")).await;
            assert_eq!(shown.status, StatusCode::OK, "{name}: {shown:?}");
            client.get_json(&format!("/agreements/{id}/events")).await;
            // Output that was kept long enough is removed by then.
            let files = client.get(&format!("/agreements/{id}/files")).await;
            assert!(
                matches!(files.status, StatusCode::OK | StatusCode::GONE),
                "{name}: {files:?}"
            );
        }
        for id in &negotiations {
            client.get_json(&format!("/negotiations/{id}")).await;
        }
        for path in ["/agreements", "/negotiations", "/accounts", "/resources"] {
            client.get_json(path).await;
        }
        server.assert_verified();
        server.kill9();
        server.assert_verified();
        server.restart();
    }
}

/// Makes the programs that a test had made of its own, which a configuration has to find; nothing is to be run any more.
fn make_programs(folder: &Path) {
    let configuration = fs::read_to_string(folder.join("bespeak.toml")).expect("a configuration");
    let own = format!("program = \"{}/", folder.display());
    for line in configuration.lines() {
        if let Some(name) = line.strip_prefix(&own) {
            let program = folder.join(name.trim_end_matches('"'));
            fs::write(&program, "#!/bin/sh\n").expect("a script can be written");
            fs::set_permissions(program, Permissions::from_mode(0o755)).expect("one's file can be changed");
        }
    }
}

/// Whether something of an agreement has to be done now: it is to be decided or ended, or its slot is over and it is not.
async fn is_due(client: &Client, id: Uuid) -> bool {
    let shown = client.get_json(&format!("/agreements/{id}")).await;
    // One that has no place has no end.
    let end: Option<jiff::Timestamp> = shown["plannedEnd"]
        .as_str()
        .map(|end| end.parse().expect("an instant"));
    let state = shown["state"].as_str().unwrap_or_default();
    match state {
        "Rejected" | "Complete" | "Terminated" => false,
        "Observed" => end.is_some_and(|end| end < jiff::Timestamp::now()),
        _ => true,
    }
}
