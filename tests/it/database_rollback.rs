//! A database that goes back to an earlier state, under a service or while none runs: nothing is decided on it, and the reason is named,
//! until an operator says that it was restored.

use std::path::Path;
use std::time::Duration;

use reqwest::StatusCode;
use store::trail_end::follow_trail_end;
use store::{Error, Store, agreements, trail_lines};
use uuid::Uuid;

use crate::backup::bespeak;
use crate::store::{agreement, create, decide, tamper};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::{TestDatabase, on_both_engines, with};

on_both_engines!(
    a_batch_states_the_line_that_it_builds_on_and_goes_on_from_no_other,
    a_holder_with_nothing_to_write_sees_that_its_database_has_gone_back,
    a_process_that_stands_by_does_not_take_over_a_database_that_has_gone_back,
    a_service_decides_nothing_on_a_database_that_went_back_until_an_operator_says_that_it_was_restored,
    a_restored_database_is_told_from_one_that_went_back_by_its_signed_line,
    without_the_row_of_the_lease_nothing_is_decided_and_a_start_says_why,
);

const SOON: Duration = Duration::from_mins(1);

/// The statements by which a database is again what it was before its last agreement.
fn go_back(last: Uuid) -> String {
    let id = last.simple().to_string();
    let condition_on = |column: &str| format!("REPLACE(LOWER(CAST({column} AS TEXT)), '-', '') = '{id}'");
    // SQLite has the sixteen bytes.
    let own = |table: &str, column: &str| {
        format!(
            "DELETE FROM {table} WHERE {} ",
            condition_on(&format!("{{ID}}{column}{{END}}"))
        )
    };
    ["party_events", "events", "agreement_documents"]
        .map(|table| own(table, "agreement"))
        .into_iter()
        .chain([own("agreements", "id")])
        .collect::<Vec<_>>()
        .join("; ")
        + "; UPDATE lease SET trail_number = (SELECT MAX(number) FROM (SELECT number FROM events UNION SELECT number FROM notes) a), \
           trail_hash = (SELECT hash FROM (SELECT number, hash FROM events UNION SELECT number, hash FROM notes) b \
           ORDER BY number DESC LIMIT 1)"
}

/// Takes a database back to before its last agreement.
async fn take_back(url: &str, last: Uuid) {
    let (id, end) = if url.starts_with("sqlite:") {
        ("HEX(", ")")
    } else {
        ("", "")
    };
    let sql = go_back(last).replace("{ID}", id).replace("{END}", end);
    tamper(url, &sql).await;
}

async fn a_batch_states_the_line_that_it_builds_on_and_goes_on_from_no_other(url: String) {
    let (store, lease) = decide(&url).await;
    let (kept, lost) = (agreement("a"), agreement("b"));
    for agreement_id in [&kept, &lost] {
        store
            .commit(lease.epoch, &[create(agreement_id)])
            .await
            .expect("it is right");
    }
    take_back(&url, lost.id).await;
    for _ in 0..2 {
        let refused = store.commit(lease.epoch, &[create(&agreement("c"))]).await;
        assert!(
            matches!(&refused, Err(Error::Damaged(what)) if what.contains("line 2 of the audit trail")),
            "{refused:?}"
        );
    }
    let stored = agreements::live_agreements(&store)
        .await
        .expect("they can be read");
    assert_eq!(
        stored.iter().map(|stored| stored.id).collect::<Vec<_>>(),
        [kept.id],
        "nothing was stored"
    );
    let told = store.damage().borrow().clone();
    assert!(told.is_some_and(|what| what.contains("gone back")));
}

async fn a_holder_with_nothing_to_write_sees_that_its_database_has_gone_back(url: String) {
    let (store, mut lease) = decide(&url).await;
    let lost = agreement("b");
    for agreement_id in [&agreement("a"), &lost] {
        store
            .commit(lease.epoch, &[create(agreement_id)])
            .await
            .expect("it is right");
    }
    store.check_lease(&mut lease).await.expect("it holds");
    take_back(&url, lost.id).await;
    for seen in [
        store.check_lease(&mut lease).await,
        store.retake_lease(&mut lease).await.map(drop),
    ] {
        assert!(matches!(seen, Err(Error::Damaged(_))), "{seen:?}");
    }
}

async fn a_process_that_stands_by_does_not_take_over_a_database_that_has_gone_back(url: String) {
    let (store, lease) = decide(&url).await;
    let other = Store::open(&url).await.expect("others may read");
    let lost = agreement("b");
    for agreement_id in [&agreement("a"), &lost] {
        store
            .commit(lease.epoch, &[create(agreement_id)])
            .await
            .expect("it is right");
        follow_trail_end(&other).await.expect("it goes on");
    }
    take_back(&url, lost.id).await;
    lease.release().await;
    let refused = other.acquire_lease().await;
    assert!(matches!(refused, Err(Error::Damaged(_))), "{refused:?}");
}

#[test]
fn a_line_that_can_be_read_and_that_a_failover_may_take_away_is_not_known() {
    with(&TestDatabase::postgres(), async |url: String| {
        let (store, lease) = decide(&url).await;
        let other = Store::open(&url).await.expect("others may read");
        let (kept, lost) = ([create(&agreement("a"))], agreement("b"));
        store.commit(lease.epoch, &kept).await.expect("it is right");
        follow_trail_end(&other).await.expect("it goes on");
        let last = [create(&lost)];
        store.commit(lease.epoch, &last).await.expect("it is right");
        // No commit can wait for a standby now.
        tamper(
            &url,
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'; \
             CREATE TRIGGER refuse BEFORE UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
        let followed = follow_trail_end(&other).await;
        assert!(matches!(followed, Err(Error::Database(_))), "{followed:?}");
        tamper(&url, "DROP TRIGGER refuse ON lease").await;
        // The next primary does not have it, and nobody was told of it.
        take_back(&url, lost.id).await;
        lease.release().await;
        other
            .acquire_lease()
            .await
            .expect("nothing is gone that was told");
    });
}

#[test]
fn a_start_goes_without_signed_heads_that_cannot_be_read() {
    // A folder cannot be read as a file.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let configuration = format!(
        "[trail]\nheads = \"{}\"\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n",
        elsewhere.path().display()
    );
    let mut server = Server::configured(None, &configuration);
    // From now on there is a key with which heads are read.
    server.stop();
    server.restart();
    let log = server.log();
    assert!(log.contains("goes without the last signed head"), "{log}");
}

/// Makes an agreement of a minute some hours ahead.
async fn offer(client: &Client) -> Uuid {
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    client.post("/agreements", offer.xml()).await.created()
}

async fn a_service_decides_nothing_on_a_database_that_went_back_until_an_operator_says_that_it_was_restored(
    url: String,
) {
    let mut server = Server::start(&url);
    let client = server.client();
    let kept = offer(&client).await;
    let lost = offer(&client).await;
    take_back(&url, lost).await;
    let said = eventually("what was found", SOON, async || {
        let answer = client.get("/readyz").await;
        (answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.body.contains("gone back"))
            .then_some(answer.body)
    });
    let said = said.await;
    assert!(said.contains("nothing is decided"), "{said}");
    let wish = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    let refused = client.post("/agreements", wish.xml()).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    let found = server.run(&["verify"]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        !found.status.success() && said.contains("was stored and is not there"),
        "{said}"
    );
    server.kill9();
    // Nor does the next process decide anything, which has only the file of the data folder.
    let again = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains("the database has gone back"), "{said}");
    let noted = server.run(&["restore", "--recovered"]);
    assert!(noted.status.success(), "{noted:?}");
    server.assert_verified();
    server.restart();
    let client = server.client();
    let shown = client.get(&format!("/agreements/{kept}")).await;
    assert_eq!(shown.status, StatusCode::OK);
    offer(&client).await;
    server.assert_verified();
}

async fn a_restored_database_is_told_from_one_that_went_back_by_its_signed_line(url: String) {
    // The heads are elsewhere, as they should be: they know what was signed after the backup.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let heads = elsewhere.path().join("heads");
    let configuration = format!(
        "[trail]\ninterval_seconds = 1\nheads = \"{}\"\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n",
        heads.display()
    );
    let mut server = Server::configured(Some(&url), &configuration);
    let client = server.client();
    offer(&client).await;
    let backup = elsewhere.path().join("night");
    let path = |path: &Path| path.display().to_string();
    let made = server.run(&["backup", &path(&backup)]);
    assert!(made.status.success(), "{made:?}");
    offer(&client).await;
    let store = Store::open_existing(&url).await.expect("the store is there");
    let last = trail_lines::trail_lines_after(&store, 0, 100)
        .await
        .expect("it can be read");
    let last = last.last().expect("a line").number;
    store.close().await;
    eventually("the head of the last line", SOON, async || {
        let signed = std::fs::read_to_string(&heads).unwrap_or_default();
        signed.contains(&format!("\"number\":{last},")).then_some(())
    })
    .await;
    server.stop();

    let target = if url.starts_with("sqlite:") {
        TestDatabase::empty_sqlite()
    } else {
        TestDatabase::empty_postgres()
    };
    let restored = Server::prepared(Some(target.url()), |folder| {
        let config = folder.join("bespeak.toml");
        std::fs::write(&config, &configuration).expect("it can be written");
        let arguments = [
            "restore",
            &path(&backup),
            "--data-dir",
            &path(&folder.join("data")),
            "--database-url",
            target.url(),
            "--config",
            &path(&config),
        ];
        let done = bespeak(&arguments, folder);
        assert!(done.status.success(), "{done:?}");
    });
    restored.assert_verified();
    offer(&restored.client()).await;
    restored.assert_verified();
}

async fn without_the_row_of_the_lease_nothing_is_decided_and_a_start_says_why(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    offer(&client).await;
    tamper(
        &url,
        "CREATE TABLE kept_lease AS SELECT * FROM lease; DELETE FROM lease",
    )
    .await;
    eventually("what was found", SOON, async || {
        let answer = client.get("/readyz").await;
        (answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.body.contains("the row of its lease"))
            .then_some(())
    })
    .await;
    server.stop();
    let again = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains("the row of its lease is not there"), "{said}");
    let found = server.run(&["verify"]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(said.contains("the row of the lease"), "{said}");
    tamper(
        &url,
        "INSERT INTO lease SELECT * FROM kept_lease; DROP TABLE kept_lease",
    )
    .await;
    server.restart();
    server.assert_verified();
}
