//! The end of a slot moves while its job runs on a real cluster: by an agreement, and by itself.

use domain::agreement::Run;
use serde_json::json;

use super::service::{reserved, serve, serve_with, until};
use crate::changes_of_running::changed;
use crate::support::offers::{Offer, date_time, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, in_seconds, run};

#[test]
fn a_job_of_a_cluster_goes_on_beyond_its_limit_under_an_agreement_with_a_later_end() {
    run(async {
        let cluster = Cluster::start();
        let mut server = serve(&cluster);
        let client = server.client();
        let (old, offered, new) = in_seconds(40, async |slot| {
            // Longer than its slot, and than the whole minutes that Slurm allows for that.
            let sleeps = u32::try_from(slot + 35).expect("a small number");
            let offer = Offer::sleep(sleeps, slot).within(now(), now() + 8 * slot);
            let old = client.post("/agreements", offer.xml()).await.created();
            reserved(&cluster, old, 1).await;
            eventually("its process", super::service::SOON, async || {
                let shown = client.get_json(&format!("/agreements/{old}")).await;
                shown["started"].is_string().then_some(())
            })
            .await;
            let end = date_time(now() + 10 * slot);
            let change = json!({"agreement": old, "durationSeconds": 5 * slot, "window": {"end": end}});
            let (offered, new) = changed(&client, &change).await?;
            Some((old, offered, new))
        })
        .await;
        server.kill9();
        server.restart();
        let client = server.client();
        // Its reservation keeps its name and has another end.
        let end = offered["end"]
            .as_str()
            .unwrap_or_default()
            .trim_end_matches('Z')
            .to_owned();
        eventually("a longer reservation", super::service::SOON, async || {
            let held =
                cluster.reservation(&execution::slurm::slurm_name_of_run("cluster", Run::first(old)))?;
            (held["EndTime"] == end).then_some(())
        })
        .await;
        let over = until(&client, &cluster, new, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        server.assert_verified();
    });
}

#[test]
fn a_job_of_a_cluster_that_is_not_over_has_its_slot_and_its_reservation_made_longer() {
    run(async {
        let cluster = Cluster::start();
        let server = serve_with(&cluster, "[scheduling]\noverrun_percent = 100\n");
        let client = server.client();
        // Longer than its slot, and than the whole minutes that Slurm allows for that.
        let offer = Offer::sleep(75, 50).within(now(), now() + 300);
        let id = client.post("/agreements", offer.xml()).await.created();
        reserved(&cluster, id, 1).await;
        let end = async || client.get_json(&format!("/agreements/{id}")).await["plannedEnd"].clone();
        let before = end().await;
        let name = execution::slurm::slurm_name_of_run("cluster", Run::first(id));
        eventually("a longer reservation", super::service::SOON, async || {
            let held = cluster.reservation(&name)?;
            let now = end().await;
            let reached = now.as_str()?.trim_end_matches('Z') == held["EndTime"];
            (now != before && reached).then_some(())
        })
        .await;
        let over = until(&client, &cluster, id, "Complete").await;
        assert_eq!(over.text("Outcome"), "completed", "{over:?}");
        assert_eq!(cluster.jobs().len(), 1, "it ran once: {:?}", cluster.jobs());
        let accounts = client.get_json("/accounts").await;
        let entries = accounts["entries"].as_array().cloned().unwrap_or_default();
        let overrun = entries.iter().any(|entry| entry["kind"] == "overrun");
        assert!(overrun, "it pays for its use: {accounts}");
        server.assert_verified();
    });
}
