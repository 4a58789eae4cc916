//! Several processes of the service on one cluster: another one leads when the leader is killed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use domain::agreement::Run;
use execution::slurm::slurm_name_of_run;
use reqwest::StatusCode;
use uuid::Uuid;

use super::service::{SOON, passes_checks, reserved, serve_from, terminate, until};
use crate::support::client::Client;
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::server::Server;
use crate::support::slurm::{Cluster, NODES};
use crate::support::stores::TestDatabase;
use crate::support::{eventually, run};

/// A process that leads and one that stands by.
fn two_processes(cluster: &Cluster, database: &TestDatabase, more: &str) -> [Server; 2] {
    [(); 2].map(|()| {
        let server = serve_from(Some(database.url()), cluster, NODES.len(), "", more);
        passes_checks(&server);
        server
    })
}

async fn job(client: &Client, seconds: u32, duration: i64) -> Uuid {
    let offer = Offer::sleep(seconds, duration).within(now(), now() + 300);
    client.post("/agreements", offer.xml()).await.created()
}

async fn until_started(client: &Client, id: Uuid) {
    eventually("its start", SOON, async || {
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        shown["started"].is_string().then_some(())
    })
    .await;
}

fn name_of(id: Uuid) -> String {
    slurm_name_of_run("cluster", Run::first(id))
}

async fn until_given_back(cluster: &Cluster, id: Uuid) {
    eventually("its reservation is given back", SOON, async || {
        cluster.reservation(&name_of(id)).is_none().then_some(())
    })
    .await;
}

fn submissions(cluster: &Cluster, id: Uuid) -> usize {
    let jobs = cluster.jobs().into_iter();
    jobs.filter(|[_, name, _]| *name == name_of(id)).count()
}

#[test]
fn jobs_and_reservations_go_on_under_a_new_leader_that_has_the_records_in_common() {
    run(async {
        let (cluster, database) = (Cluster::start(), TestDatabase::postgres());
        let records = cluster.folder().join("records");
        fs::create_dir(&records).unwrap();
        fs::set_permissions(&records, Permissions::from_mode(0o700)).unwrap();
        let more = format!("[execution]\ncluster_records = {records:?}\n");
        let [mut first, second] = two_processes(&cluster, &database, &more);
        let (one, two) = (first.client(), second.client());
        let past = job(&one, 0, 30).await;
        until(&one, &cluster, past, "Complete").await;
        let long = job(&one, 20, 60).await;
        until_started(&one, long).await;
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let offer = Offer::reserve(1, 600).within(hours_ahead(2), hours_ahead(3));
            let id = one.post("/agreements", offer.xml()).await.created();
            reserved(&cluster, id, 1).await;
            waiting.push(id);
        }
        first.kill9();
        // The new leader may hear of it before it looks at the cluster.
        terminate(&two, waiting[0]).await;
        let over = until(&two, &cluster, long, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(submissions(&cluster, long), 1, "{:?}", cluster.jobs());
        until_given_back(&cluster, waiting[0]).await;
        assert!(cluster.reservation(&name_of(waiting[1])).is_some(), "it is kept");
        terminate(&two, waiting[1]).await;
        until_given_back(&cluster, waiting[1]).await;
        first.restart();
        for (client, id) in [
            (&two, past),
            (&two, long),
            (&first.client(), past),
            (&first.client(), long),
        ] {
            let path = format!("/agreements/{id}/files");
            let files = client.get_json(&path).await;
            assert!(files["files"].is_array(), "{files}");
            assert_eq!(client.get(&format!("{path}/stdout")).await.status, StatusCode::OK);
        }
        assert_eq!(fs::read_dir(records.join("jobs")).unwrap().count(), 2);
        for server in [&first, &second] {
            let own = fs::read_dir(server.data_dir().join("jobs")).unwrap();
            assert_eq!(own.count(), 0, "nothing lies in a data folder");
        }
        second.assert_verified();
    });
}

#[test]
fn a_job_that_the_new_leader_has_no_records_of_is_left_alone_until_they_are_there() {
    run(async {
        let (cluster, database) = (Cluster::start(), TestDatabase::postgres());
        let [mut first, mut second] = two_processes(&cluster, &database, "");
        let two = second.client();
        let id = job(&two, 2, 10).await;
        until_started(&two, id).await;
        first.kill9();
        let tells =
            || String::from_utf8_lossy(&second.run(&["resources"]).stdout).contains("has no records of it");
        eventually("the fault", SOON, async || tells().then_some(())).await;
        // Its slot passes meanwhile.
        let end = now() + 12;
        eventually("the end of its slot", SOON, async || (now() > end).then_some(())).await;
        let shown = two.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(shown["state"], "Observed", "{shown}");
        first.restart();
        second.kill9();
        let one = first.client();
        let over = until(&one, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(submissions(&cluster, id), 1, "{:?}", cluster.jobs());
        second.restart();
        first.assert_verified();
    });
}
