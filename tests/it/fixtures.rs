//! What a released version leaves behind is taken over by this one: of each engine a database with a row in every table, in every state
//! and with every outcome, and the folder of its service. `tests/fixtures/README.md` says how they are made.

mod planner_story;
mod service_story;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use access::Role;
use domain::agreement::{
    AgreementState, EventKind, GuaranteeState, NegotiationRole, NoteKind, OfferState, PartyEventKind,
    PostingKind, ProposalReason, RunOutcome, ServiceState,
};
use domain::resources::{NodeState, Reporter};
use reqwest::StatusCode;
use store::{Engine, Store};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::fixture::{
    column, in_repository, keep_files, keep_rows, load, migrations, tables, unpack,
};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines};
use crate::support::{eventually, run};

on_both_engines!(a_story_leaves_a_row_in_every_table_and_state);

/// Nodes of the resource on which the story happens.
const NODES: u32 = 20;
/// Work that is due when a service starts is over by then, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);

/// The closed lists of words that the store has: the name of each, where its words stand, and the words.
macro_rules! words {
    ($($name:ident in $rows:literal,)+) => {
        [$((stringify!($name), $rows, $name::ALL.map($name::word).to_vec())),+]
    };
}

fn words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut all = words! {
        AgreementState in "SELECT state AS word FROM agreements UNION SELECT state FROM all_events",
        ServiceState in "SELECT service AS word FROM agreements UNION SELECT service FROM all_events",
        EventKind in "SELECT kind AS word FROM all_events",
        NoteKind in "SELECT kind AS word FROM notes",
        PartyEventKind in "SELECT kind AS word FROM party_events",
        OfferState in "SELECT state AS word FROM offers",
        NegotiationRole in "SELECT creator AS word FROM offers",
        ProposalReason in "SELECT proposed AS word FROM negotiations",
        PostingKind in "SELECT kind AS word FROM ledger",
        NodeState in "SELECT state AS word FROM node_states",
        Reporter in "SELECT reporter AS word FROM node_states",
        Role in "SELECT role AS word FROM api_keys",
    }
    .to_vec();
    let outcomes = "SELECT outcome AS word FROM agreements UNION SELECT outcome FROM executions";
    all.push((
        "RunOutcome",
        outcomes,
        RunOutcome::each().map(RunOutcome::word).collect(),
    ));
    all
}

/// The words that no row has, and why.
const NOWHERE: [(&str, &str, &str); 5] = [
    (
        "AgreementState",
        "PendingAndTerminating",
        "it begins and ends within one decision",
    ),
    ("NodeState", "up", "a node that is up has no row"),
    ("NoteKind", "restored", "nothing in the story is restored"),
    (
        "NoteKind",
        "stored",
        "each batch of the story has a line of its own",
    ),
    (
        "RunOutcome",
        "checkpointed",
        "a piece is no execution, and work does not end so",
    ),
];

/// The tables without a row on SQLite, and why.
const EMPTY_ON_SQLITE: [(&str, &str); 5] = [
    ("replicas", "it has one process"),
    ("resource_hosts", "likewise"),
    ("party_files", "the files are in the folder only"),
    ("party_file_parts", "likewise"),
    ("party_file_changes", "likewise"),
];

/// Asserts that a database has a row in every table, and one with every word.
async fn assert_whole(url: &str, name: &str) {
    let is_sqlite = url.starts_with("sqlite");
    let mut missing = Vec::new();
    for table in tables(url).await.expect("they can be listed") {
        let rows = column(url, &table, "1").await.expect("they can be counted").len();
        let may_have = !is_sqlite || EMPTY_ON_SQLITE.iter().all(|(each, _)| *each != table);
        if (rows > 0) != may_have {
            missing.push(format!("the table {table} has {rows} rows"));
        }
    }
    for (one_word, rows, words) in words() {
        let found = column(url, &format!("({rows}) AS found"), "word").await;
        let found: BTreeSet<String> = found.expect("they can be read").into_iter().collect();
        for word in words {
            let is_nowhere = NOWHERE
                .iter()
                .any(|(list, nowhere, _)| (*list, *nowhere) == (one_word, word));
            if found.contains(word) == is_nowhere {
                missing.push(format!("{one_word} {word:?}: {}", found.contains(word)));
            }
        }
    }
    let guarantees = column(url, "agreements", "guarantees")
        .await
        .expect("they can be read");
    for state in GuaranteeState::ALL {
        if !guarantees
            .iter()
            .any(|guarantee| guarantee.contains(state.word()))
        {
            missing.push(format!("no guarantee is {state}"));
        }
    }
    let accounts = column(url, "ledger", "account").await.expect("they can be read");
    for account_kind in ["provider", "party:", "peer:"] {
        if !accounts.iter().any(|account| account.starts_with(account_kind)) {
            missing.push(format!("no account is {account_kind}"));
        }
    }
    assert!(missing.is_empty(), "{name}: {missing:#?}");
}

#[test]
fn every_closed_list_of_words_that_is_stored_is_looked_for() {
    let values = include_str!("../../crates/store/src/engine/stored_value.rs");
    let listed = values
        .lines()
        .filter(|line| line.contains(": Text, |row, column| row.word("));
    let listed: Vec<&str> = listed.filter_map(|line| line.trim().split(':').next()).collect();
    assert!(listed.len() > 5, "{listed:?}");
    for name in listed.into_iter().filter(|name| *name != "Account") {
        assert!(
            words().iter().any(|(word, ..)| *word == name),
            "{name} is not in words()"
        );
    }
}

async fn a_story_leaves_a_row_in_every_table_and_state(url: String) {
    let server = service_story::serve(&url).await;
    keep_files(&url, server.data_dir().parent().expect("a folder"));
    planner_story::plan(&url).await;
    keep_rows(&url).await.expect("they can be kept");
    assert_whole(&url, &url).await;
    let names = column(&url, "replicas", "name").await.expect("they can be read");
    assert!(
        names.iter().all(|name| name == "first"),
        "{names:?} name this machine"
    );
    let store = Store::open(&url).await.expect("it opens");
    assert_eq!(store.verify().await.expect("it can be read"), []);
    store.close().await;
}

/// The sets, by the version of the schema: a folder each.
fn sets() -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(in_repository(Path::new("tests/fixtures"))).expect("they can be listed");
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    found.sort();
    found
}

#[test]
fn a_migration_has_a_set_of_the_version_before_it() {
    let newest = migrations("migrations").last().expect("there are some").0;
    let set = sets().last().expect("there are some").0;
    assert!(
        set + 1 >= newest,
        "migration {newest} changes what version {} leaves behind, and the newest set is of version {set}: \
         make one of that version (tests/fixtures/README.md)",
        newest - 1
    );
}

#[test]
fn what_released_versions_left_in_sqlite_is_taken_over() {
    take_over(Engine::Sqlite, TestDatabase::empty_sqlite);
}

#[test]
fn what_released_versions_left_in_postgres_is_taken_over() {
    take_over(Engine::Postgres, TestDatabase::empty_postgres);
}

fn take_over(engine: Engine, empty: fn() -> TestDatabase) {
    let engine = match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
    };
    let newest = migrations("migrations").last().expect("there are some").0;
    for (version, folder) in sets() {
        let name = folder.join(engine).display().to_string();
        let read = |what: &str| fs::read_to_string(format!("{name}.{what}")).expect("it can be read");
        let (rows, files, database) = (read("sql"), read("files"), empty());
        run(async {
            let loaded = load(database.url(), version, &rows).await;
            loaded.unwrap_or_else(|why| panic!("{name}: {why}"));
            bring_up_to_date(database.url(), &name).await;
            if version == newest {
                assert_whole(database.url(), &name).await;
            }
            serve(database.url(), &files, &name).await;
        });
    }
}

async fn bring_up_to_date(url: &str, name: &str) {
    let store = Store::open(url).await;
    let store = store.unwrap_or_else(|why| panic!("{name}: {why}: scripts/make-fixture makes it anew"));
    assert_eq!(store.verify().await.expect("it can be read"), []);
    store.close().await;
}

/// Starts a service on the data of another, and looks at all that there is.
async fn serve(url: &str, files: &str, name: &str) {
    let mut server = Server::prepared(Some(url), |folder| unpack(files, folder));
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
