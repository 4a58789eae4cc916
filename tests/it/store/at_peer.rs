//! Rows of agreements that peers have made.

use domain::agreement::{AtPeer, HeldAtPeer};
use domain::change::Change;
use store::at_peer;
use uuid::Uuid;

use super::{agreement, create, decide};
use crate::support::stores::on_both_engines;

on_both_engines!(what_is_settled_with_a_peer_stays_settled,);

async fn what_is_settled_with_a_peer_stays_settled(url: String) {
    let (store, lease) = decide(&url).await;
    let ours = agreement("a");
    let held = HeldAtPeer {
        negotiation: "https://peer.example.org/negotiations/1".into(),
        offer: "1".into(),
        document: "<offer/>".into(),
        price: None,
        slot: (60, 120),
        replaces: None,
    };
    let intended = AtPeer::intended(Uuid::now_v7(), ours.id, "peer".into(), held, 1);
    let made = intended
        .clone()
        .made_at("https://peer.example.org/agreements/1".into());
    let settled = AtPeer {
        charged: 5,
        settled: Some(3),
        ..made.clone()
    };
    // The last one is an answer of the peer that came late.
    for row in [&intended, &settled, &made] {
        let mut batch = vec![Change::PutAtPeer(row.clone())];
        if row == &intended {
            batch.insert(0, create(&ours));
        }
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
    }
    let rows = at_peer::at_peers_of_agreement(&store, ours.id).await;
    assert_eq!(rows.expect("they are there"), [settled]);
}
