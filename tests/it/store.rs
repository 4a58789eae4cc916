//! Stored data is there, whole, once, and written by one decider: on both engines.

mod archive;
mod at_peer;
mod broken_connections;
mod decider;
mod idempotency;
mod kills;
mod moved_rows;
mod one_statement;
mod open_state;
mod records;
pub(crate) mod registrations;
mod reservations;
mod resources;
mod row_sums;
pub(crate) mod verify;

use std::fs;

use domain::agreement::{
    Agreement, AgreementState, CompositorChoice, Event, EventKind, Guarantee, GuaranteeState, Job,
    ServiceState, Slots, Values,
};
use domain::change::Change;
use scheduler::{Interval, Time};
use store::agreements::{self, AgreementFilter};
use store::{Lease, Store};
use uuid::Uuid;

use crate::backup::bespeak;
use crate::support::fixture::column;
use crate::support::stores::{TestDatabase, on_both_engines, with};

on_both_engines!(
    every_statement_fits_the_schema,
    a_database_of_a_later_version_is_refused,
    a_database_of_before_the_first_release_is_refused_and_stays_as_it_was,
    a_row_that_cannot_be_is_reported_as_corrupt,
    a_closed_store_is_unavailable,
);

/// The resource that the tests plan on.
pub(crate) const RESOURCE: &str = "local";

/// An open store with a resource of eight nodes.
pub(crate) async fn open(url: &str) -> Store {
    let store = Store::open(url).await.expect("a database can be opened");
    for sql in [
        "INSERT INTO resources (name, kind, capacity, position, rate, details) \
         VALUES ('local', 'local', 8, 0, 1000000, '{}') ON CONFLICT DO NOTHING",
        "INSERT INTO capacities (resource, since_us, capacity) VALUES ('local', 0, 8) ON CONFLICT DO NOTHING",
    ] {
        tamper(url, sql).await;
    }
    store
}

/// The same, and the right to write.
pub(crate) async fn decide(url: &str) -> (Store, Lease) {
    let store = open(url).await;
    let lease = store.acquire_lease().await.expect("no other process decides");
    (store, lease)
}

/// All agreements, oldest first.
async fn all_agreements(store: &Store) -> Vec<Agreement> {
    let all = AgreementFilter::default();
    let page = agreements::agreements_page(store, &all, None, 10_000);
    let (page, _) = page.await.expect("they can be read");
    page.into_iter().rev().map(|(one, _)| one).collect()
}

/// An observed agreement of two nodes for `[100, 160)`.
pub(crate) fn agreement(party: &str) -> Agreement {
    Agreement {
        id: Uuid::now_v7(),
        party: party.into(),
        name: Some("a \"name\" — with ünïcode".into()),
        initiator_id: Some("of-mine".into()),
        template: "advance-reservation".into(),
        resource: RESOURCE.into(),
        duration: 60,
        ready: Time(90),
        deadline: Time(200),
        slots: Slots::one((Interval::new(Time(100), Time(160)), 2)),
        fixed: false,
        price: None,
        constraints: domain::agreement::PlacementConstraints::default(),
        job: Some(Job {
            application: "sleep".into(),
            arguments: vec!["60".into(), "'; DROP TABLE agreements; --".into()],
            ..Job::default()
        }),
        guarantees: vec![Guarantee {
            name: "COMPLETION".into(),
            objective: "completed".into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values::default(),
        }],
        choices: vec![CompositorChoice {
            path: "/wsag:Terms/wsag:All/wsag:ExactlyOne".into(),
            members: vec![2],
        }],
        state: AgreementState::Observed,
        service: ServiceState::NotReady,
        started: None,
        ended: None,
        outcome: None,
        created: 1_000_000,
        version: 1,
        origin: None,
    }
}

/// An event of this kind.
pub(crate) fn event(kind: EventKind) -> Event {
    Event {
        at: 1_000_000,
        kind,
        detail: format!("it was {}", kind.word()),
    }
}

/// The change that stores a new agreement.
pub(crate) fn create(agreement: &Agreement) -> Change {
    Change::CreateAgreement {
        agreement: Box::new(agreement.clone()),
        document: format!("<offer>{}</offer>", agreement.id).as_str().into(),
        events: vec![event(EventKind::Accepted)],
    }
}

/// The change that stores an agreement's changes.
pub(crate) fn update(agreement: &Agreement) -> Change {
    Change::UpdateAgreement {
        agreement: Box::new(agreement.clone()),
        events: vec![],
    }
}

/// Runs statements behind the store's back.
pub(crate) async fn tamper(url: &str, sql: &str) {
    try_tamper(url, sql).await.expect("the statements are right");
}

/// The same, where the database may refuse.
pub(crate) async fn try_tamper(url: &str, sql: &str) -> sqlx::Result<()> {
    if url.starts_with("sqlite:") {
        run::<sqlx::Sqlite>(url, sql).await
    } else {
        run::<sqlx::Postgres>(url, sql).await
    }
}

async fn run<D: sqlx::Database>(url: &str, sql: &str) -> sqlx::Result<()>
where
    for<'c> &'c mut D::Connection: sqlx::Executor<'c, Database = D>,
{
    let mut connection = <D::Connection as sqlx::Connection>::connect(url).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .map(|_| ())
}

#[test]
fn several_processes_may_open_a_new_database_at_once() {
    for database in [TestDatabase::empty_sqlite(), TestDatabase::empty_postgres()] {
        with(&database, open_at_once);
    }
}

async fn open_at_once(url: String) {
    let opening: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { Store::open(&url).await })
        })
        .collect();
    for opened in opening {
        let store = opened.await.expect("no panic").expect("each of them opens it");
        store.lease_epoch().await.expect("and can use it");
    }
}

async fn every_statement_fits_the_schema(url: String) {
    let store = Store::open(&url).await.expect("a database can be opened");
    store
        .check_statements()
        .await
        .expect("every statement can be prepared");
}

async fn a_database_of_a_later_version_is_refused(url: String) {
    Store::open(&url)
        .await
        .expect("a database can be opened")
        .close()
        .await;
    tamper(
        &url,
        "INSERT INTO schema_migrations (version, name, checksum) VALUES (999, 'later', 'x')",
    )
    .await;
    let refused = Store::open(&url).await.expect_err("it knows more than we do");
    assert!(matches!(refused, store::Error::Schema(_)), "{refused:?}");
}

async fn a_database_of_before_the_first_release_is_refused_and_stays_as_it_was(url: String) {
    Store::open(&url)
        .await
        .expect("a database can be opened")
        .close()
        .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, backup) = (path("data"), path("backup"));
    fs::create_dir(&data).expect("a folder can be made");
    // Another layout under the same number, and the last of many steps.
    for damage in [
        "UPDATE schema_migrations SET checksum = 'another'",
        "INSERT INTO schema_migrations (version, name, checksum) VALUES (2, 'prices', 'another')",
    ] {
        tamper(&url, damage).await;
        let steps = column(&url, "schema_migrations", "checksum")
            .await
            .expect("they are there");
        for command in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["verify"],
            &["backup", &backup],
            &["key", "list"],
        ] {
            let arguments = [command, &["--data-dir", &data, "--database-url", &url]].concat();
            let output = bespeak(&arguments, folder.path());
            let why = String::from_utf8_lossy(&output.stderr);
            let says_what_to_do = "before the first release; start with an empty data folder or database";
            assert!(
                !output.status.success() && why.contains(says_what_to_do),
                "{command:?}: {why}"
            );
        }
        let after = column(&url, "schema_migrations", "checksum")
            .await
            .expect("they are there");
        assert_eq!(after, steps);
        assert!(
            !folder.path().join("data/operator.key").exists(),
            "no key was made"
        );
    }
}

async fn a_row_that_cannot_be_is_reported_as_corrupt(url: String) {
    for damage in [
        "UPDATE agreements SET state = 'Observing'",
        "UPDATE agreements SET service = 'Ready'",
        "UPDATE agreements SET guarantees = '[{'",
        "UPDATE agreements SET job = '{}'",
        "UPDATE agreements SET outcome = 'fine'",
        "UPDATE agreements SET outcome = 'failed', exit_status = NULL",
        "UPDATE agreements SET nodes = 5000000000",
        "UPDATE events SET kind = 'happened'",
    ] {
        let (store, lease) = decide(&url).await;
        let agreement = agreement("a");
        store
            .commit(lease.epoch, &[create(&agreement)])
            .await
            .expect("an agreement can be stored");
        tamper(&url, damage).await;
        let read = match agreements::agreement(&store, agreement.id).await {
            Ok(_) => agreements::events_of_agreement(&store, agreement.id)
                .await
                .map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(
            matches!(read, Err(store::Error::Corrupt(_))),
            "{damage}: {read:?}"
        );
        let empty = "DELETE FROM events; DELETE FROM agreement_documents; DELETE FROM agreements";
        tamper(&url, empty).await;
        lease.release().await;
    }
}

async fn a_closed_store_is_unavailable(url: String) {
    let store = open(&url).await;
    store.close().await;
    let refused = agreements::live_agreements(&store)
        .await
        .expect_err("there is no connection");
    assert!(matches!(refused, store::Error::Unavailable(_)), "{refused:?}");
}

#[test]
fn an_address_that_is_none_is_refused_without_repeating_it() {
    for address in [
        "",
        "mysql://u:secret@h/db",
        "postgres://u:secret@h:port/db",
        "sqlite:/no/such/secret/x.db",
    ] {
        let refused = crate::support::block_on(Store::open(address)).expect_err("it is no address");
        assert!(
            matches!(refused, store::Error::Address(_)),
            "{address}: {refused:?}"
        );
        assert!(
            address.starts_with("sqlite") || !refused.to_string().contains("secret"),
            "{refused}"
        );
    }
}

#[test]
fn a_new_sqlite_file_and_its_lock_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let url = format!("sqlite:{}", folder.path().join("new.db").display());
    crate::support::block_on(async move {
        let (_store, lease) = decide(&url).await;
        drop(lease);
    });
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).expect("the folder is there") {
        let entry = entry.expect("an entry can be read");
        let mode = entry.metadata().expect("it has a mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
        seen += 1;
    }
    assert!(seen >= 2, "the file and its lock");
}
