//! The files of a SQLite database under a service and while none runs, the lock on its data folder, and the engine's own check.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;
use store::{Store, agreements, engine_check};
use uuid::Uuid;

use crate::store::{agreement, create, decide, tamper};
use crate::support::client::Client;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines, with};
use crate::support::{eventually, run};

on_both_engines!(
    an_agreement_that_is_named_and_not_there_is_found,
    the_engine_finds_nothing_wrong_with_what_it_has_stored,
);

const SOON: Duration = Duration::from_mins(1);
/// How the names of SQLite's files end.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];

fn file(server: &Server, end: &str) -> PathBuf {
    server.data_dir().join(format!("bespeak.db{end}"))
}

async fn offer(client: &Client) -> Uuid {
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    client.post("/agreements", offer.xml()).await.created()
}

/// What may happen to the files of a database under a service.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Removed,
    LogRemoved,
    IndexRemoved,
    Moved,
    Replaced,
}

fn happen(what: Happens, server: &Server) {
    let at = |end| file(server, end);
    let done = match what {
        Happens::Removed => ENDS.iter().try_for_each(|end| fs::remove_file(at(end))),
        Happens::LogRemoved => fs::remove_file(at("-wal")),
        Happens::IndexRemoved => fs::remove_file(at("-shm")),
        Happens::Moved => fs::rename(at(""), at(".away")),
        Happens::Replaced => fs::copy(at(""), at(".copy")).and_then(|_| fs::rename(at(".copy"), at(""))),
    };
    done.expect("files can be moved and removed");
}

#[test]
fn nothing_is_acknowledged_once_the_database_file_is_gone_and_what_was_is_rescued() {
    use Happens::{IndexRemoved, LogRemoved, Moved, Removed, Replaced};
    for what in [Removed, LogRemoved, IndexRemoved, Moved, Replaced] {
        let mut server = Server::local();
        let client = server.client();
        let kept = run(offer(&client));
        happen(what, &server);
        run(async {
            let wish = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
            let refused = client.post("/agreements", wish.xml()).await;
            assert_eq!(
                refused.status,
                StatusCode::SERVICE_UNAVAILABLE,
                "{what:?}: {refused:?}"
            );
            eventually("what was found", SOON, async || {
                let answer = client.get("/readyz").await;
                (answer.status == StatusCode::SERVICE_UNAVAILABLE
                    && answer.body.contains("the database file"))
                .then_some(())
            })
            .await;
            eventually("the copy", SOON, async || {
                server
                    .log()
                    .contains("all that was stored is in this file")
                    .then_some(())
            })
            .await;
        });
        server.kill9();
        for end in ENDS {
            let _ = fs::remove_file(file(&server, end));
        }
        // A start does not make a new database in its place.
        let again = server.run(&["serve", "--listen", "127.0.0.1:0"]);
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert_eq!(again.status.code(), Some(1), "{what:?}: {said}");
        assert!(said.contains("is not there"), "{what:?}: {said}");
        fs::rename(file(&server, ".rescued"), file(&server, "")).expect("it can be renamed");
        server.restart();
        let shown = run(async { server.client().get(&format!("/agreements/{kept}")).await });
        assert_eq!(shown.status, StatusCode::OK, "{what:?}");
        server.assert_verified();
    }
}

#[test]
fn a_rescued_copy_is_whole_has_a_name_of_its_own_and_is_tried_again() {
    with(&TestDatabase::sqlite(), async |url: String| {
        let path = url.strip_prefix("sqlite:").expect("a SQLite file");
        let path = fs::canonicalize(path).expect("it is there");
        let beside = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
        let (store, lease) = decide(&url).await;
        let kept = agreement("a");
        store
            .commit(lease.epoch, &[create(&kept)])
            .await
            .expect("it is right");
        fs::remove_file(&path).expect("it can be removed");
        fs::write(beside(".rescued"), "of an earlier time").expect("a file");
        // In the place of the copy is what no file can take.
        fs::create_dir(beside(".rescuing")).expect("a folder");
        store.rescue().await.expect_err("there is no place for it");
        assert!(!beside(".rescued-2").exists());
        fs::remove_dir(beside(".rescuing")).expect("it is empty");
        let copy = store.rescue().await.expect("there is a place for it");
        assert_eq!(copy, Some(beside(".rescued-2")));
        assert!(!beside(".rescuing").exists());
        let earlier = fs::read_to_string(beside(".rescued")).expect("it is there");
        assert_eq!(earlier, "of an earlier time");
        let rescued = format!("sqlite:{}", beside(".rescued-2").display());
        let rescued = Store::open_existing(&rescued).await.expect("it opens");
        assert_eq!(rescued.verify().await.expect("it can be read"), []);
        let all = agreements::live_agreements(&rescued)
            .await
            .expect("they can be read");
        assert_eq!(all.iter().map(|each| each.id).collect::<Vec<_>>(), [kept.id]);
        rescued.close().await;
    });
}

#[test]
fn a_log_that_is_deleted_while_the_service_is_down_is_missed_at_the_next_start() {
    let mut server = Server::local();
    let client = server.client();
    run(async {
        for _ in 0..3 {
            offer(&client).await;
        }
    });
    server.kill9();
    let log = fs::read(file(&server, "-wal")).expect("a kill leaves the log");
    assert!(!log.is_empty());
    fs::remove_file(file(&server, "-wal")).expect("it can be removed");
    let again = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains("is not there: it ends with line"), "{said}");
}

#[test]
fn after_a_clean_stop_the_one_file_is_the_whole_database() {
    let mut server = Server::local();
    let client = server.client();
    let mut made = run(async {
        let mut made = Vec::new();
        for _ in 0..3 {
            made.push(offer(&client).await);
        }
        made
    });
    server.stop();
    let left = |end: &&&str| fs::metadata(file(&server, end)).is_ok_and(|metadata| metadata.len() > 0);
    let left: Vec<_> = ENDS[1..].iter().filter(left).collect();
    assert!(left.is_empty(), "beside the file: {left:?}");
    let copy = tempfile::tempdir().expect("a temporary folder");
    let copied = copy.path().join("copy.db");
    fs::copy(file(&server, ""), &copied).expect("it can be copied");
    run(async {
        let store = Store::open(&format!("sqlite:{}", copied.display()))
            .await
            .expect("it opens");
        assert_eq!(store.verify().await.expect("it can be read"), []);
        let all = agreements::live_agreements(&store)
            .await
            .expect("they can be read");
        let mut all: Vec<Uuid> = all.iter().map(|each| each.id).collect();
        all.sort();
        made.sort();
        assert_eq!(all, made);
        store.close().await;
    });
}

#[test]
fn two_services_never_share_a_data_folder_whatever_database_they_have() {
    let server = Server::local();
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let other = elsewhere.path().join("other.db");
    fs::write(&other, "").expect("a file");
    let url = format!("sqlite:{}", other.display());
    let second = server.run(&["serve", "--listen", "127.0.0.1:0", "--database-url", &url]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success(), "{said}");
    assert!(said.contains("another process uses the data folder"), "{said}");
}

#[test]
fn verify_has_sqlite_check_its_own_file() {
    with(&TestDatabase::sqlite(), async |url: String| {
        let (store, lease) = decide(&url).await;
        store
            .commit(lease.epoch, &[create(&agreement("a"))])
            .await
            .expect("it is right");
        assert_eq!(
            engine_check::check_by_engine(&store)
                .await
                .expect("it can be read"),
            []
        );
        drop(lease);
        store.close().await;
        // An index that does not have what it says that it has.
        tamper(
            &url,
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = REPLACE(sql, '(party, id)', '(template, id)') \
             WHERE name = 'agreements_by_party'",
        )
        .await;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let verify = ["verify", "--database-url", &url];
        let found = crate::backup::bespeak(&verify, folder.path());
        let said = String::from_utf8_lossy(&found.stdout).into_owned();
        assert_eq!(found.status.code(), Some(1), "{said}");
        assert!(
            said.contains("database: ") && said.contains("agreements_by_party"),
            "{said}"
        );
    });
}

async fn the_engine_finds_nothing_wrong_with_what_it_has_stored(url: String) {
    let (store, lease) = decide(&url).await;
    if url.starts_with("postgres") {
        tamper(&url, "CREATE EXTENSION IF NOT EXISTS amcheck").await;
    }
    store
        .commit(lease.epoch, &[create(&agreement("a"))])
        .await
        .expect("it is right");
    assert_eq!(
        engine_check::check_by_engine(&store)
            .await
            .expect("it can be read"),
        []
    );
}

/// Deletes rows past what the engine keeps right by itself, as another program may.
async fn delete(url: &str, from: &str) {
    let unguarded = if url.starts_with("sqlite:") {
        "PRAGMA foreign_keys = OFF"
    } else {
        "SET session_replication_role = replica"
    };
    tamper(url, &format!("{unguarded}; DELETE FROM {from}")).await;
}

async fn an_agreement_that_is_named_and_not_there_is_found(url: String) {
    let (store, lease) = decide(&url).await;
    let (kept, lost) = (agreement("a"), agreement("b"));
    let batch = [create(&kept), create(&lost)];
    store.commit(lease.epoch, &batch).await.expect("it is right");
    assert_eq!(store.verify().await.expect("it can be read"), []);
    delete(&url, "agreements WHERE party = 'b'").await;
    let found = store.verify().await.expect("it can be read");
    let subject = format!("agreement {}", lost.id);
    let of_it = found
        .iter()
        .find(|found| found.subject == subject)
        .unwrap_or_else(|| panic!("{found:#?}"));
    for place in ["its document", "its timeline"] {
        assert!(of_it.what.contains(place), "{of_it:?}");
    }
    assert!(of_it.what.starts_with("it is not there"), "{of_it:?}");
    // And one that has lost its document.
    delete(&url, "agreement_documents").await;
    let found = store.verify().await.expect("it can be read");
    let subject = format!("agreement {}", kept.id);
    let names = found
        .iter()
        .any(|finding| finding.subject == subject && finding.what == "its document is not there");
    assert!(names, "{found:#?}");
}
