//! A database of several servers: the service is with the primary, and finds the next one by itself when that is gone.

use std::time::Duration;

use reqwest::StatusCode;
use sqlx::{Connection, PgConnection};
use store::Store;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::postgres::OwnServer;
use crate::support::run;
use crate::support::server::Server;

/// Far longer than anything here takes.
const DEADLINE: Duration = Duration::from_mins(1);

#[test]
fn a_standby_alone_is_refused_and_a_primary_whose_standby_is_not_waited_for_is_warned_of() {
    let primary = OwnServer::start(None);
    let standby = primary.standby();
    run(async {
        let refused = Store::open(standby.url()).await.expect_err("it writes nothing");
        let words = refused.to_string();
        assert!(
            words.contains("is a standby") && words.contains("target_session_attrs=read-write"),
            "{words}"
        );

        let store = Store::open(&address_of(&[&standby, &primary]))
            .await
            .expect("the second one is the primary");
        let weak = store
            .weak_settings()
            .await
            .expect("the primary answers")
            .join("\n");
        assert!(weak.contains("may be lost at a failover"), "{weak}");
        assert!(
            weak.contains("fsync = off") && !weak.contains("full_page_writes"),
            "{weak}"
        );
        wait_for_standby(&primary).await;
        let weak = store
            .weak_settings()
            .await
            .expect("the primary answers")
            .join("\n");
        assert!(!weak.contains("failover"), "{weak}");
        store.close().await;
    });
}

#[test]
fn decisions_go_on_with_the_standby_that_becomes_the_primary() {
    let primary = OwnServer::start(None);
    let standby = primary.standby();
    run(wait_for_standby(&primary));
    let server = Server::start(&address_of(&[&primary, &standby]));
    let client = server.client();
    run(async {
        let mut made = Vec::new();
        for _ in 0..3 {
            made.push(offer(&client).await.expect("the primary stores it"));
        }
        drop(primary);
        // Where it is on its way when the primary goes, it is stored by the next one, or refused.
        made.extend(offer(&client).await);
        execute(&standby, "SELECT pg_promote(true, 60)").await;
        made.push(eventually("a decision", DEADLINE, async || offer(&client).await).await);
        for id in &made {
            let shown = client.get(&format!("/agreements/{id}")).await;
            assert_eq!(shown.status, StatusCode::OK, "{id} was acknowledged");
        }
    });
    assert!(
        server
            .log()
            .contains("another server of the database is the primary now")
    );
    server.assert_verified();
}

/// The address of several servers.
fn address_of(servers: &[&OwnServer]) -> String {
    let folders: Vec<&str> = servers.iter().map(|server| server.folder()).collect();
    let hosts = folders.join(",");
    format!("postgres://postgres@/postgres?host={hosts}&target_session_attrs=read-write")
}

/// Has a primary wait for its standby at each commit.
async fn wait_for_standby(primary: &OwnServer) {
    execute(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    execute(primary, "SELECT pg_reload_conf()").await;
    let mut session = PgConnection::connect(primary.url())
        .await
        .expect("the primary answers");
    eventually("a synchronous standby", DEADLINE, async || {
        let state = sqlx::query_scalar::<_, String>("SELECT sync_state FROM pg_stat_replication");
        let state = state
            .fetch_optional(&mut session)
            .await
            .expect("the primary answers");
        (state.as_deref() == Some("sync")).then_some(())
    })
    .await;
}

async fn execute(server: &OwnServer, statement: &'static str) {
    let mut session = PgConnection::connect(server.url())
        .await
        .expect("the server answers");
    let done = sqlx::query(statement).execute(&mut session).await;
    done.expect("a superuser may");
}

/// The id of an agreement that is made now; none where it is not acknowledged.
async fn offer(client: &Client) -> Option<Uuid> {
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(30));
    let answer = client.post("/agreements", offer.xml()).await;
    (answer.status == StatusCode::CREATED).then(|| answer.created())
}
