//! A disk without room: a client soon hears that nothing can be stored, no acknowledged agreement is lost, and the service goes
//! on by itself once there is room again.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::postgres::OwnServer;
use crate::support::run;
use crate::support::server::Server;
use crate::support::small_disk::SmallDisk;

/// MiB of the disk below a SQLite file.
const SQLITE_DISK: u32 = 8;
/// MiB of the disk below a PostgreSQL server, which takes 40 for itself.
const POSTGRES_DISK: u32 = 80;

/// Many nodes, so that no offer is refused for another reason.
const NODES: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 10000\n";

/// A request is answered within this time, even on a full disk. Far less is usual; the machine may be busy.
const ANSWERED: Duration = Duration::from_mins(1);
/// The service is ready again within this time.
const READY_AGAIN: Duration = Duration::from_mins(1);

/// Offers that are enough to use up the room that an engine has set aside before its disk was full.
const OFFERS_MAX: usize = 3_000;

#[test]
fn a_full_disk_below_sqlite_stops_the_service_only_until_there_is_room() {
    let Some(disk) = SmallDisk::mount(SQLITE_DISK) else {
        return;
    };
    let url = format!("sqlite:{}", disk.path().join("bespeak.db").display());
    run(goes_on_when_there_is_room(&disk, &url, None));
}

#[test]
fn a_full_disk_below_postgres_stops_the_service_only_until_there_is_room() {
    let Some(disk) = SmallDisk::mount(POSTGRES_DISK) else {
        return;
    };
    let mut database = OwnServer::start(Some(disk.path()));
    let url = database.url().to_owned();
    run(goes_on_when_there_is_room(&disk, &url, Some(&mut database)));
}

async fn goes_on_when_there_is_room(disk: &SmallDisk, url: &str, database: Option<&mut OwnServer>) {
    let server = Server::configured(Some(url), NODES);
    let client = server.client();
    let mut acknowledged = vec![post(&client).await.expect("there is room").created()];

    disk.fill();
    let refused = until_refused(&client, &mut acknowledged).await;
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    // A server may find some room again by itself.
    let readiness = client.get("/readyz").await.status;
    assert!(
        readiness == StatusCode::SERVICE_UNAVAILABLE || database.is_some() && readiness == StatusCode::OK,
        "{readiness}"
    );
    assert_eq!(client.get("/healthz").await.status, StatusCode::OK);
    // Many at once: some of them wait in the planner's queue while it tries to read its plan.
    let many = (0..20).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { post(&client).await })
    });
    for answer in many.collect::<Vec<_>>() {
        let answer = answer.await.expect("no panic").expect("an answer");
        // As above.
        if answer.status != StatusCode::SERVICE_UNAVAILABLE {
            acknowledged.push(answer.created());
        }
    }
    // Another process that writes gets the same error, unless its write is small enough.
    let key = server.run(&["key", "add", "--party", "physics", "--role", "consumer"]);
    let said = String::from_utf8_lossy(&key.stderr);
    assert!(
        key.status.success()
            || key.status.code() == Some(3) && said.contains("the database is not available"),
        "{key:?}"
    );

    disk.free();
    if let Some(database) = database {
        // Where its log has no room it ends by itself, and its operator starts it again.
        let reached = PgConnection::connect(url).await;
        if matches!(reached, Err(sqlx::Error::Io(_))) {
            database.restart();
        }
    }
    eventually("readiness", READY_AGAIN, async || {
        (client.get("/readyz").await.status == StatusCode::OK).then_some(())
    })
    .await;
    acknowledged.push(post(&client).await.expect("an answer").created());
    for id in acknowledged {
        let shown = client.get(&format!("/agreements/{id}")).await;
        assert_eq!(shown.status, StatusCode::OK, "{id} was acknowledged");
    }
    server.key_for("chemistry", "consumer");
    server.assert_verified();
}

/// Makes offers until one cannot be stored; its answer. The stored ones are added to `acknowledged`.
async fn until_refused(client: &Client, acknowledged: &mut Vec<Uuid>) -> Answer {
    for _ in 0..OFFERS_MAX {
        let answer = post(client).await.expect("an answer");
        if answer.status == StatusCode::SERVICE_UNAVAILABLE {
            return answer;
        }
        acknowledged.push(answer.created());
    }
    panic!("{OFFERS_MAX} offers were stored on a disk that is full");
}

/// The answer to an offer, which comes in time.
async fn post(client: &Client) -> Result<Answer, reqwest::Error> {
    let offer = Offer::reserve(1, 60)
        .within(hours_ahead(2), hours_ahead(30))
        .xml();
    let request = client.request(Method::POST, "/agreements").timeout(ANSWERED);
    client
        .try_send(request.header("content-type", "application/xml").body(offer))
        .await
}
