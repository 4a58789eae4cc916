//! Other domains: how a peer is spoken to, whatever it or the way to it does.

mod changes;
mod discovery;
mod domains;
mod harness;
mod hostile;
mod kills;
mod peer_failures;

use std::time::Duration;

use domain::clock::Clock;
use federation::client::{Peer, PeerAnswer, PeerError, PeerStatus};
use federation::settings::{PeerSecret, PeerSettings};
use serde_json::Value;
use tokio::fs::File;
use uuid::Uuid;
use wsag::agreement_state::AgreementState;
use wsag::agreements::AgreementOffer;
use wsag::quotation::OfferKind;
use wsag::states::GuaranteeState;
use wsag::time::DateTime;
use wsag::travel::Travel;
use wsag::{Document, Message};

use crate::support::breakable_proxy::{Break, BreakableProxy};
use crate::support::client::Client;
use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// An answer that is there comes in this time.
const WITHIN: Duration = Duration::from_mins(1);
const HOUR: i64 = 3_600;

/// A peer at an address.
fn peer(address: &str, key: &str, clock: Clock) -> Peer {
    let settings = PeerSettings {
        name: "south".into(),
        address: address.into(),
        key: PeerSecret::new(key).expect("a key"),
        templates: [("ours".to_owned(), "advance-reservation".to_owned())].into(),
        nodes: 1_000,
        requests_per_minute: 1_000,
        held_node_hours: 1_000,
        credit: None,
        markup: 0,
        forwards: true,
        party: "south".into(),
    };
    Peer::new(settings, clock).expect("a client of HTTP can be made")
}

/// An offer as a domain has it: of a template of its own.
fn offer(one_offer: &Offer) -> AgreementOffer {
    let text = one_offer.xml().replace("advance-reservation", "ours");
    let document = Document::parse(text.as_bytes()).expect("it is well-formed");
    match wsag::read(&document) {
        Ok(Message::AgreementOffer(offer)) => *offer,
        other => panic!("{other:?}"),
    }
}

/// The way of a request that begins in the domain `north`.
fn travel() -> Travel {
    Travel {
        request: Uuid::now_v7(),
        path: vec!["north".into()],
        hops: 2,
        waits: 2_000,
        requester: Some("r-1".into()),
    }
}

/// The same peer behind a way, and a client with the same key.
async fn behind_a_way(server: &Server) -> (Peer, BreakableProxy, Client) {
    let key = server.key_for("north", "consumer");
    let way = BreakableProxy::to(server.address()).await;
    let peer = peer(&format!("http://{}", way.address), &key, Clock::system());
    (peer, way, server.client_with(&key))
}

async fn ask(peer: &Peer, one_offer: &Offer) -> PeerAnswer {
    peer.ask(&offer(one_offer), &travel(), None, WITHIN)
        .await
        .expect("the peer answers")
}

async fn accept(peer: &Peer, answer: &PeerAnswer, key: Uuid) -> Result<String, PeerError> {
    let document = &answer.offers[0].document;
    peer.create(&answer.negotiation, document, None, key).await
}

async fn status(peer: &Peer, agreement: &str) -> PeerStatus {
    peer.status(agreement)
        .await
        .expect("the peer tells how it stands")
}

/// The states of the negotiations that the peer has from us.
async fn negotiations(client: &Client) -> Vec<String> {
    let list = client.get_json("/negotiations").await;
    let all = list["negotiations"].as_array().cloned().unwrap_or_default();
    let state = |value: &Value| value["state"].as_str().unwrap_or_default().to_owned();
    all.iter().map(state).collect()
}

/// Waits until so many negotiations are there and none of them is open.
async fn all_are_over(client: &Client, count: usize) {
    eventually("the negotiation is ended at the peer", PATIENCE, async || {
        let states = negotiations(client).await;
        let are_over = states.len() == count && states.iter().all(|state| state != "open");
        are_over.then_some(())
    })
    .await;
}

#[test]
fn an_offer_of_a_peer_is_taken_followed_and_its_files_are_fetched() {
    run(async {
        let server = Server::local();
        let key = server.key_for("north", "consumer");
        let peer = peer(&format!("http://{}/", server.address()), &key, Clock::system());
        let start = hours_ahead(2);
        let answer = ask(&peer, &Offer::reserve(2, HOUR).within(start, start + 2 * HOUR)).await;
        let offered = &answer.offers[0];
        assert_eq!(offered.quotation.kind, OfferKind::Exact);
        assert_eq!(
            (offered.quotation.nodes, offered.quotation.start.floor()),
            (2, start)
        );
        let (earliest, latest) = offered.window;
        assert_eq!(earliest.map(DateTime::floor), Some(start));
        assert_eq!(latest.map(DateTime::floor), Some(start + 2 * HOUR));
        let held = offered.held_for.expect("it says for how long it is held");
        assert!(
            held <= Duration::from_mins(5) && held > Duration::from_mins(1),
            "{held:?}"
        );
        peer.end_negotiation(&answer.negotiation)
            .await
            .expect("it is open");
        peer.end_negotiation(&answer.negotiation)
            .await
            .expect("it is over, as it should be");
        let late = accept(&peer, &answer, Uuid::now_v7()).await;
        assert!(matches!(late, Err(PeerError::Refused { .. })), "{late:?}");

        let answer = ask(&peer, &Offer::sleep(0, 600)).await;
        let agreement = accept(&peer, &answer, Uuid::now_v7()).await.expect("it is held");
        let over = eventually("the job has run at the peer", PATIENCE, async || {
            let status = status(&peer, &agreement).await;
            (status.state == AgreementState::Complete).then_some(status)
        })
        .await;
        assert_eq!(
            (over.outcome.as_deref(), over.exit_status),
            (Some("completed"), Some(0))
        );
        assert!(over.started <= over.ended && over.started.is_some(), "{over:?}");
        assert_eq!(
            over.guarantees,
            [("COMPLETION".to_owned(), GuaranteeState::Fulfilled)]
        );
        let files = peer.outputs(&agreement).await.expect("it lists them");
        assert!(files.contains(&("stdout".to_owned(), 0)), "{files:?}");
        let mut stdout = peer.output(&agreement, "stdout").await.expect("it is there");
        assert_eq!(stdout.next().await, Ok(None));
        let none = peer.output(&agreement, "none").await.expect_err("no such file");
        assert!(matches!(none, PeerError::Refused { .. }), "{none}");
        let health = peer.health();
        assert_eq!(
            (health.asked, health.answered, health.failed),
            (2, 2, 0),
            "{health:?}"
        );
    });
}

#[test]
fn an_agreement_at_a_peer_is_changed_and_ended() {
    run(async {
        let server = Server::configured(
            None,
            "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\ncancellation_percent = 10\n\
             [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n",
        );
        let key = server.key_for("north", "consumer");
        let peer = peer(&format!("http://{}", server.address()), &key, Clock::system());
        let start = hours_ahead(4);
        let answer = ask(&peer, &Offer::reserve(2, HOUR).within(start, start + HOUR)).await;
        let first = accept(&peer, &answer, Uuid::now_v7()).await.expect("it is held");
        let larger = offer(&Offer::reserve(4, HOUR).within(start, start + HOUR));
        let answer = peer
            .ask(&larger, &travel(), Some(&first), WITHIN)
            .await
            .expect("it answers");
        let document = &answer.offers[0].document;
        let replaced = peer.create(&answer.negotiation, document, Some(&first), Uuid::now_v7());
        let second = replaced.await.expect("it is changed");
        let old = status(&peer, &first).await;
        assert_eq!(old.state, AgreementState::Complete);
        assert!(old.superseded_by.is_some_and(|id| second.ends_with(&id)));
        let new = status(&peer, &second).await;
        assert_eq!((new.state, new.nodes), (AgreementState::Observed, Some(4)));
        let price = new.price.expect("it has a price");
        assert!(
            price.micros > 0 && new.charged.is_empty() && new.paid.is_empty(),
            "{new:?}"
        );

        peer.terminate(&second, "not needed")
            .await
            .expect("it is in force");
        let ended = status(&peer, &second).await;
        assert_eq!(ended.state, AgreementState::Terminated);
        assert!(ended.charged[0].micros > 0, "the fee is told: {ended:?}");
        let again = peer
            .terminate(&second, "not needed")
            .await
            .expect_err("it is over");
        assert!(matches!(again, PeerError::Refused { .. }), "{again}");
        let unknown = format!("http://{}/agreements/{}", server.address(), Uuid::now_v7());
        let unknown = peer.status(&unknown).await.expect_err("there is none");
        assert!(
            matches!(&unknown, PeerError::Refused { code, .. } if code == "NOT_FOUND"),
            "{unknown}"
        );
        server.assert_verified();
    });
}

#[test]
fn a_peer_that_has_no_place_says_why_and_keeps_nothing_open() {
    run(async {
        let server = Server::local();
        let key = server.key_for("north", "consumer");
        let peer = peer(&format!("http://{}", server.address()), &key, Clock::system());
        let answer = ask(&peer, &Offer::reserve(1_000, HOUR)).await;
        assert_eq!(answer.offers, []);
        let refusal = answer.refusal.expect("it says why");
        assert!(refusal.contains("at most 4 is expected, not 1000"), "{refusal}");
        all_are_over(&server.client_with(&key), 1).await;
        // A template that it does not have is no failure of the peer.
        let mut other = offer(&Offer::reserve(1, HOUR));
        other.context.template_id = Some("none".into());
        let refused = peer
            .ask(&other, &travel(), None, WITHIN)
            .await
            .expect_err("no such template");
        assert!(matches!(refused, PeerError::Refused { .. }), "{refused}");
        let health = peer.health();
        assert_eq!(
            (health.answered, health.refused, health.is_reachable),
            (2, 2, true),
            "{health:?}"
        );
    });
}

#[test]
fn an_agreement_whose_answer_was_lost_is_made_once() {
    run(async {
        let server = Server::local();
        let (peer, way, client) = behind_a_way(&server).await;
        let answer = ask(&peer, &Offer::reserve(1, HOUR)).await;
        let key = Uuid::now_v7();
        for how in [Break::CutBefore, Break::CutAfter] {
            way.break_at("POST /agreements ", how);
            let lost = accept(&peer, &answer, key).await.expect_err("the way breaks");
            assert!(
                matches!(lost, PeerError::Unknown(..)) && way.has_broken(),
                "{how:?}: {lost}"
            );
        }
        let made = accept(&peer, &answer, key).await.expect("it is made by now");
        assert_eq!(accept(&peer, &answer, key).await.as_ref(), Ok(&made));
        let list = client.get_json("/agreements").await;
        assert_eq!(list["agreements"].as_array().map(Vec::len), Some(1), "{list}");
        assert_eq!(accept(&peer, &answer, Uuid::now_v7()).await.as_ref(), Ok(&made));
        server.assert_verified();
    });
}

#[test]
fn what_a_late_answer_offers_is_released_at_the_peer() {
    run(async {
        let server = Server::local();
        let (peer, way, client) = behind_a_way(&server).await;
        let wanted_offer = offer(&Offer::reserve(1, HOUR));
        way.break_at("POST /negotiations/", Break::KeepAfter);
        let late = peer
            .ask(&wanted_offer, &travel(), None, Duration::from_secs(5))
            .await;
        assert!(matches!(late, Err(PeerError::Unknown(..))), "{late:?}");
        assert_eq!(peer.health().late, 1);
        let held = eventually("the question has come to the peer", PATIENCE, async || {
            way.has_broken().then(|| negotiations(&client))
        });
        assert_eq!(held.await.await.len(), 1);
        way.let_go();
        all_are_over(&client, 1).await;
    });
}

#[test]
fn what_an_answer_offers_that_cannot_be_read_is_released_at_the_peer() {
    run(async {
        let server = Server::local();
        let (peer, way, client) = behind_a_way(&server).await;
        let wanted_offer = offer(&Offer::reserve(1, HOUR));
        way.break_at("POST /negotiations/", Break::RubbishAfter);
        let rubbish = peer.ask(&wanted_offer, &travel(), None, WITHIN).await;
        assert!(matches!(rubbish, Err(PeerError::Unknown(..))), "{rubbish:?}");
        let health = peer.health();
        assert_eq!((health.failed, health.late), (1, 0), "{health:?}");
        all_are_over(&client, 1).await;
    });
}

#[test]
fn what_is_offered_to_one_who_does_not_wait_is_released_at_the_peer() {
    run(async {
        let server = Server::local();
        let (peer, way, client) = behind_a_way(&server).await;
        way.break_at("POST /negotiations/", Break::KeepAfter);
        let asking = {
            let peer = peer.clone();
            tokio::spawn(async move { ask(&peer, &Offer::reserve(1, HOUR)).await })
        };
        eventually("the question has come to the peer", PATIENCE, async || {
            way.has_broken().then_some(())
        })
        .await;
        asking.abort();
        assert!(asking.await.is_err());
        way.let_go();
        all_are_over(&client, 1).await;
        assert_eq!(ask(&peer, &Offer::reserve(1, HOUR)).await.offers.len(), 1);
    });
}

#[test]
fn a_file_is_passed_on_to_a_peer() {
    run(async {
        let server = Server::local();
        let key = server.key_for("north", "consumer");
        let peer = peer(&format!("http://{}", server.address()), &key, Clock::system());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("input");
        let content = "0123456789abcdef\n".repeat(20_000);
        std::fs::write(&path, &content).expect("a file can be written");
        let file = File::open(&path).await.expect("it is there");
        let length = content.len() as u64;
        peer.put_input("data.txt", file, length)
            .await
            .expect("it is taken");
        let got = server.client_with(&key).get("/files/data.txt").await;
        assert_eq!(got.body, content);
        // It is refused before its content is read, so a long one could break off on its way.
        std::fs::write(&path, "short").expect("a file can be written");
        let file = File::open(&path).await.expect("it is there");
        let refused = peer.put_input("..", file, 5).await.expect_err("no name");
        assert!(matches!(refused, PeerError::Refused { .. }), "{refused}");
    });
}
