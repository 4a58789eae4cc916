//! Agreements that replace others on a cluster: the nodes that they need besides are reserved first, and the others are left
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::Run;
use domain::clock::Clock;
use execution::slurm::slurm_name_of_run;
use execution::{Executor, PlannedSlot};
use reqwest::StatusCode;
use scheduler::Interval;
use serde_json::{Value, json};
use uuid::Uuid;

use super::node_handover::{lie_in_wait, running};
use super::service::{SOON, fill, reserved, serve, until};
use super::{PATIENCE, Site, slot};
use crate::support::client::Client;
use crate::support::offers::{Offer, date_time, now};
use crate::support::slurm::Cluster;
use crate::support::{eventually, poll_until, run};

/// A slot that waits to take the place of another one.
fn replacing(old: &PlannedSlot, new: PlannedSlot) -> PlannedSlot {
    PlannedSlot {
        is_awaited: true,
        replaces: Some(old.run.agreement),
        ..new
    }
}

/// The same once it has taken that place.
fn in_place(new: &PlannedSlot) -> PlannedSlot {
    PlannedSlot {
        is_awaited: false,
        replaces: None,
        ..new.clone()
    }
}

/// The names of the first reservations of a slot: its own, then names of slots that no agreement has.
fn names(run: Run) -> [String; 3] {
    [0, 1_000_001, 2_000_002].map(|more| {
        let slot = run.slot + more;
        slurm_name_of_run("cluster", Run { slot, ..run })
    })
}

/// Nodes and duration of the reservations of a slot, where they are.
fn parts(site: &Site, slot: &PlannedSlot) -> [Option<(String, String)>; 3] {
    names(slot.run).map(|name| {
        let row = site.cluster.reservation(&name)?;
        Some((row["NodeCnt"].clone(), row["Duration"].clone()))
    })
}

/// How many nodes are held for a slot, as the executor says.
fn kept(site: &Site, slot: &PlannedSlot) -> BTreeSet<u32> {
    let kept = site.executor.kept_nodes();
    let one_kept = kept
        .into_iter()
        .find(|kept| kept.run.agreement == slot.run.agreement);
    one_kept.map_or_else(BTreeSet::new, |each| each.nodes.into_iter().collect())
}

fn part(nodes: &str, duration: &str) -> (String, String) {
    (nodes.to_owned(), duration.to_owned())
}

#[test]
fn a_slot_that_replaces_another_one_gets_the_rest_beside_it_and_then_all_without_a_moment_between() {
    let site = Site::start();
    let old = slot(2, 300, 600);
    site.executor.prepare(std::slice::from_ref(&old)).unwrap();
    let before = site.reservation(&old);
    let new = PlannedSlot {
        interval: Interval::new(old.interval.start - 100, old.interval.end + 300),
        ..slot(3, 200, 1_000)
    };
    let new = replacing(&old, new);
    site.executor.prepare(&[new.clone(), old.clone()]).unwrap();
    assert_eq!(site.reservation(&old), before, "it is left alone");
    assert_eq!(
        parts(&site, &new),
        [
            Some(part("2", "00:01:40")),
            Some(part("1", "00:16:40")),
            Some(part("2", "00:05:00"))
        ]
    );
    let held = kept(&site, &new);
    assert_eq!(held.len(), 3);
    lie_in_wait(&site);
    assert!(
        poll_until(PATIENCE, || running(&site) == 1),
        "{:?}",
        site.cluster.jobs()
    );
    // One that needs the node of the batch job, too, is refused, and changes no other.
    let large = replacing(&old, slot(4, 300, 600));
    site.executor
        .prepare(&[new.clone(), old.clone(), large.clone()])
        .unwrap_err();
    assert_eq!(
        site.executor.refused(),
        [(large.run.agreement, large.interval.start)]
    );
    assert!(kept(&site, &large).len() < 4);
    assert_eq!(
        (site.reservation(&old), kept(&site, &new)),
        (before, held.clone())
    );
    // It takes the place.
    let new = in_place(&new);
    site.executor.prepare(std::slice::from_ref(&new)).unwrap();
    assert_eq!(parts(&site, &new), [Some(part("3", "00:16:40")), None, None]);
    assert_eq!(
        (site.reservation(&old), kept(&site, &new)),
        (None, held),
        "on the nodes that it was promised"
    );
    assert_eq!(running(&site), 1, "a batch job got in: {:?}", site.cluster.jobs());
}

#[test]
fn slots_that_replace_slots_get_the_times_beside_all_of_them_under_names_of_their_own() {
    let site = Site::start();
    let first = slot(4, 300, 200);
    let behind = |slot: &PlannedSlot, seconds: i64, duration: i64| PlannedSlot {
        run: Run { slot: 2, ..slot.run },
        interval: Interval::of(slot.interval.end + seconds, duration),
        ..slot.clone()
    };
    // Pieces of 200 and 300 seconds, 100 apart; and of 300 and 400, 50 apart, beginning 50 earlier. All need every node.
    let old = [first.clone(), behind(&first, 100, 300)];
    site.executor.prepare(&old).unwrap();
    let before = old.each_ref().map(|old| site.reservation(old));
    let moved = PlannedSlot {
        interval: Interval::of(first.interval.start - 50, 300),
        ..slot(4, 300, 300)
    };
    let moved = replacing(&first, moved);
    let new = [moved.clone(), behind(&moved, 50, 400)];
    let [a, b] = new.clone();
    let [c, d] = old.clone();
    site.executor.prepare(&[a, c, b, d]).unwrap();
    assert_eq!(site.executor.refused(), []);
    assert_eq!(
        old.each_ref().map(|old| site.reservation(old)),
        before,
        "they are left alone"
    );
    assert_eq!(
        new.each_ref().map(|new| parts(&site, new)),
        [
            [Some(part("4", "00:00:50")), Some(part("4", "00:00:50")), None],
            [Some(part("4", "00:01:40")), None, None],
        ]
    );
    assert_eq!(
        site.executor.kept_nodes().len(),
        4,
        "both, and those that they replace"
    );
    let new = new.each_ref().map(in_place);
    site.executor.prepare(&new).unwrap();
    let shown = site.cluster.run("scontrol", &["-o", "show", "reservation"]);
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert_eq!(
        new.each_ref().map(|new| parts(&site, new)[0].clone()),
        [Some(part("4", "00:05:00")), Some(part("4", "00:06:40"))]
    );
}

#[test]
fn a_slot_that_has_begun_is_held_for_longer_where_its_own_nodes_can_be_and_others_make_way() {
    let site = Site::start();
    let old = PlannedSlot {
        has_job: false,
        ..slot(2, 0, 600)
    };
    let behind = PlannedSlot {
        interval: Interval::of(old.interval.end, 300),
        ..slot(2, 600, 300)
    };
    site.executor.prepare(&[old.clone(), behind.clone()]).unwrap();
    let before = site.reservation(&old).unwrap();
    assert_eq!(site.reservation(&behind).unwrap()["Nodes"], before["Nodes"]);
    let longer = |seconds: i64| {
        let new = PlannedSlot {
            interval: Interval::of(old.interval.start, seconds),
            begun: false,
            ..slot(2, 600, 1)
        };
        replacing(&old, new)
    };
    let new = longer(1_000);
    let plan = [new.clone(), old.clone(), behind.clone()];
    assert!(poll_until(PATIENCE, || site.executor.prepare(&plan).is_ok()));
    assert_eq!(site.reservation(&old).as_ref(), Some(&before), "it is left alone");
    assert_eq!(parts(&site, &new), [Some(part("2", "00:06:40")), None, None]);
    assert_ne!(site.reservation(&behind).unwrap()["Nodes"], before["Nodes"]);
    assert_eq!(kept(&site, &new), kept(&site, &old));
    // Another agreement has these nodes after that.
    let start = format!("StartTime={}", instant(old.interval.start.seconds() + 1_200));
    let nodes = format!("Nodes={}", before["Nodes"]);
    let maintenance = [
        "create",
        "reservation",
        "ReservationName=maintenance",
        &start,
        "Duration=60",
    ];
    site.cluster
        .run("scontrol", &[&maintenance[..], &[&nodes, "Users=root"]].concat());
    let too_long = longer(1_500);
    let refused = site
        .executor
        .prepare(&[new.clone(), old.clone(), behind.clone(), too_long.clone()]);
    refused.unwrap_err();
    assert_eq!(
        site.executor.refused(),
        [(too_long.run.agreement, too_long.interval.start)]
    );
    assert_eq!(parts(&site, &too_long), [None, None, None]);
    assert_eq!(site.reservation(&old).as_ref(), Some(&before));
    // It goes on under the new agreement, with the name that it has.
    let goes_on = PlannedSlot {
        interval: new.interval,
        ..old.clone()
    };
    site.executor.prepare(&[goes_on, behind]).unwrap();
    assert_eq!(parts(&site, &new), [None, None, None]);
    let after = site.reservation(&old).unwrap();
    assert_eq!(
        (&after["Nodes"], after["EndTime"].as_str()),
        (&before["Nodes"], instant(new.interval.end.seconds()).as_str())
    );
    assert!(Clock::system().now() < new.interval.end);
}

/// An instant as Slurm writes it.
fn instant(seconds: i64) -> String {
    date_time(seconds).trim_end_matches('Z').to_owned()
}

/// The first offer in place of an agreement.
async fn offered(client: &Client, change: &Value) -> Value {
    let quoted = client.post_json("/negotiations", change).await;
    assert_eq!(quoted.status, StatusCode::CREATED, "{quoted:?}");
    let offer = quoted.json()["offers"][0].clone();
    assert_eq!(offer["state"], "Acceptable", "{offer}");
    offer
}

/// Slurm's data about an agreement, without the parts that depend on the moment.
fn row(cluster: &Cluster, agreement: Uuid) -> BTreeMap<String, String> {
    let mut row = cluster
        .reservation(&slurm_name_of_run("cluster", Run::first(agreement)))
        .unwrap();
    row.remove("State");
    row
}

#[test]
fn a_larger_or_longer_agreement_is_made_when_its_nodes_are_held_and_else_the_old_one_goes_on() {
    run(async {
        let cluster = Cluster::start();
        let server = serve(&cluster);
        let client = server.client();
        let start = now() + 60;
        let first = Offer::reserve(2, 300).within(start, start + 300);
        let old = client.post("/agreements", first.xml()).await.created();
        let (before, shown) = (
            row(&cluster, old),
            client.get_json(&format!("/agreements/{old}")).await,
        );
        let larger = json!({"agreement": old, "nodes": 4});
        let offer = offered(&client, &larger).await;
        // The service has looked at the nodes not long ago.
        fill(&cluster, 2, 2).await;
        let lost = client
            .post_json("/agreements", &json!({"offer": offer["id"]}))
            .await;
        assert_eq!(lost.status, StatusCode::GONE, "{lost:?}");
        assert_eq!(row(&cluster, old), before, "it is left alone");
        assert_eq!(client.get_json(&format!("/agreements/{old}")).await, shown);
        // Its own nodes are free after it.
        let longer =
            json!({"agreement": old, "durationSeconds": 400, "window": {"end": date_time(start + 400)}});
        let offer = offered(&client, &longer).await;
        let accepted = client
            .post_json("/agreements", &json!({"offer": offer["id"]}))
            .await;
        let new = accepted.created();
        let reserved_by_now: Vec<_> = names(Run::first(new))
            .iter()
            .filter_map(|name| cluster.reservation(name))
            .collect();
        assert!(
            !reserved_by_now.is_empty(),
            "it is promised, and Slurm holds nothing"
        );
        reserved(&cluster, new, 2).await;
        until(&client, &cluster, new, "Ready").await;
        // Another agreement has its nodes after it.
        let before = eventually("its nodes in its party's hands", SOON, async || {
            let row = row(&cluster, new);
            row["Flags"].contains("OVERLAP").then_some(row)
        })
        .await;
        let longer =
            json!({"agreement": new, "durationSeconds": 1_000, "window": {"end": date_time(start + 1_000)}});
        let offer = offered(&client, &longer).await;
        let (from, nodes) = (
            format!("StartTime={}", instant(start + 700)),
            format!("Nodes={}", before["Nodes"]),
        );
        let maintenance = [
            "create",
            "reservation",
            "ReservationName=maintenance",
            &from,
            "Duration=60",
        ];
        cluster.run("scontrol", &[&maintenance[..], &[&nodes, "Users=root"]].concat());
        let lost = client
            .post_json("/agreements", &json!({"offer": offer["id"]}))
            .await;
        assert_eq!(lost.status, StatusCode::GONE, "{lost:?}");
        assert_eq!(row(&cluster, new), before, "it is left alone");
        // Before that they are free.
        let longer =
            json!({"agreement": new, "durationSeconds": 500, "window": {"end": date_time(start + 500)}});
        let offer = offered(&client, &longer).await;
        let accepted = client
            .post_json("/agreements", &json!({"offer": offer["id"]}))
            .await;
        accepted.created();
        eventually("a longer reservation", SOON, async || {
            (row(&cluster, new)["EndTime"] == instant(start + 500)).then_some(())
        })
        .await;
        eventually("nothing but that and the other's", SOON, async || {
            let shown = cluster.run("scontrol", &["-o", "show", "reservation"]);
            (shown.lines().count() == 2).then_some(())
        })
        .await;
        server.assert_verified();
    });
}
