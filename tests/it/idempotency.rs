//! Requests in negotiations that are sent again under their key: one effect, one answer, whichever events come in between.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::negotiations::opening;
use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::negotiation::{SentOffer, message, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_key_gives_the_same_answer_to_every_post_of_a_negotiation,
    of_the_same_request_at_once_there_is_one_effect,
    of_the_same_words_with_an_id_at_once_there_is_one_effect,
    a_request_that_was_cut_off_is_finished_by_its_repetition,
);

const HOUR: i64 = 3_600;
const XML: &str = "application/xml";
const JSON: &str = "application/json";
/// How many send the same at once.
const SENDERS: usize = 12;

/// A request with a key.
#[derive(Clone)]
struct Keyed {
    path: String,
    kind: &'static str,
    body: String,
    key: &'static str,
}

impl Keyed {
    async fn send(&self, client: &Client) -> Answer {
        client.send(self.request(client)).await
    }

    fn request(&self, client: &Client) -> reqwest::RequestBuilder {
        client
            .request(Method::POST, &self.path)
            .header("content-type", self.kind)
            .header("accept", self.kind)
            .header("idempotency-key", self.key)
            .body(self.body.clone())
    }
}

fn reserve(nodes: u32) -> Offer {
    let start = hours_ahead(3);
    Offer::reserve(nodes, HOUR).within(start, start + 4 * HOUR)
}

fn wish(nodes: u32) -> Value {
    let start = hours_ahead(3);
    json!({"nodes": nodes, "durationSeconds": HOUR,
        "window": {"start": date_time(start), "end": date_time(start + 4 * HOUR)}})
}

/// A wish for one node under a name of the requester's.
fn named(id: &str) -> String {
    let mut wish = wish(1);
    wish["id"] = id.into();
    wish.to_string()
}

async fn offers_in(client: &Client, negotiation: Uuid) -> usize {
    let view = client.get_json(&format!("/negotiations/{negotiation}")).await;
    view["offers"].as_array().map_or(0, Vec::len)
}

/// Every POST under /negotiations, most of them about one negotiation and the last one about another.
fn requests(about: Uuid, other: Uuid) -> Vec<Keyed> {
    let at = |verb: &str| format!("/negotiations/{about}/{verb}");
    let lost = SentOffer {
        to: "nowhere".to_owned(),
        ..SentOffer::solicited("lost", reserve(1))
    };
    let advertised = SentOffer {
        state: "Advisory",
        ..SentOffer::solicited("ad", reserve(1))
    };
    let requests = [
        ("/negotiations".to_owned(), XML, opening()),
        ("/negotiations".to_owned(), JSON, wish(1).to_string()),
        // One of them has no place in the tree, and is answered all the same.
        (
            at("offers"),
            XML,
            message("NegotiateInput", &[SentOffer::solicited("a", reserve(1)), lost]),
        ),
        (at("offers"), JSON, wish(2).to_string()),
        // A request that cannot be met, so that only an answer comes of it.
        (
            at("offers"),
            JSON,
            json!({"nodes": 4, "maxDeviation": 0, "durationSeconds": HOUR,
                "window": wish(4)["window"], "budget": null})
            .to_string(),
        ),
        (
            at("advertisements"),
            XML,
            message("AdvertiseInput", &[advertised]),
        ),
        (at("advertisements"), JSON, wish(1).to_string()),
        (
            format!("/negotiations/{other}/terminate"),
            JSON,
            "{\"reason\": \"over\"}".to_owned(),
        ),
    ];
    let keys = ["1", "2", "3", "4", "5", "6", "7", "8"];
    requests
        .into_iter()
        .zip(keys)
        .map(|((path, kind, body), key)| Keyed {
            path,
            kind,
            body,
            key,
        })
        .collect()
}

async fn a_key_gives_the_same_answer_to_every_post_of_a_negotiation(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let about = open(&client).await;
    let other = open(&client).await;
    let at = |verb: &str| format!("/negotiations/{about}/{verb}");
    let requests = requests(about, other);
    let mut answers = Vec::new();
    for request in &requests {
        let answer = request.send(&client).await;
        assert!(answer.status.is_success(), "{} {answer:?}", request.path);
        answers.push(answer);
    }
    let before = offers_in(&client, about).await;
    // After a restart the service is at another port.
    let of_port =
        |server: &Server, answer: &Answer| answer.body.replace(&server.address().to_string(), "localhost");
    let bodies: Vec<_> = answers.iter().map(|answer| of_port(&server, answer)).collect();
    // Its later changes do not matter.
    let ended = client.post(&at("terminate"), "").await;
    assert_eq!(ended.status, StatusCode::OK, "{ended:?}");
    for restarted in [false, true] {
        if restarted {
            server.kill9();
            server.restart();
        }
        let client = server.client();
        for ((request, answer), body) in requests.iter().zip(&answers).zip(&bodies) {
            let again = request.send(&client).await;
            assert_eq!(
                (
                    again.status,
                    &of_port(&server, &again),
                    again.headers.get("location")
                ),
                (answer.status, body, answer.headers.get("location")),
                "{} again",
                request.path
            );
            let changed = Keyed {
                body: match request.kind {
                    XML => format!("{}<!-- -->", request.body),
                    _ => format!("{} ", request.body),
                },
                ..request.clone()
            };
            let reused = changed.send(&client).await;
            assert_eq!(
                reused.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{}: {reused:?}",
                request.path
            );
            assert!(reused.body.contains("Idempotency-Key"), "{reused:?}");
        }
        assert_eq!(offers_in(&client, about).await, before, "nothing was said twice");
    }
    // A key is of one operation, and of one party.
    let elsewhere = Keyed {
        path: "/agreements".to_owned(),
        ..requests[1].clone()
    };
    let reused = elsewhere.send(&server.client()).await;
    assert_eq!(reused.status, StatusCode::UNPROCESSABLE_ENTITY, "{reused:?}");
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let theirs = requests[0].send(&physics).await;
    assert_ne!(theirs.created(), answers[0].created());
    let stranger = requests[2].send(&physics).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND, "{stranger:?}");
    server.assert_verified();
}

async fn of_the_same_request_at_once_there_is_one_effect(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let [about, ended] = [open(&client).await, open(&client).await];
    let said = [
        SentOffer::solicited("a", reserve(1)),
        SentOffer::solicited("b", reserve(2)),
    ];
    for (path, kind, body, key, offers) in [
        ("/negotiations".to_owned(), XML, opening(), "x", 0),
        ("/negotiations".to_owned(), JSON, wish(1).to_string(), "j", 0),
        (
            format!("/negotiations/{about}/offers"),
            XML,
            message("NegotiateInput", &said),
            "o",
            4,
        ),
        (
            format!("/negotiations/{about}/offers"),
            JSON,
            named("mine"),
            "p",
            2,
        ),
        (
            format!("/negotiations/{about}/advertisements"),
            JSON,
            named("heard"),
            "q",
            1,
        ),
        (
            format!("/negotiations/{ended}/terminate"),
            XML,
            file("tests/messages/m17-negotiation-terminate-input.xml"),
            "t",
            0,
        ),
    ] {
        let before = offers_in(&client, about).await;
        let request = Keyed {
            path,
            kind,
            body,
            key,
        };
        at_once(&client, &request).await;
        assert_eq!(
            offers_in(&client, about).await,
            before + offers,
            "{} was carried out once",
            request.path
        );
    }
    // An offer that one of them has accepted is not lost to the others, which are the same client.
    let view = client.get_json(&format!("/negotiations/{about}")).await;
    let mut offers = view["offers"].as_array().into_iter().flatten();
    let held = offers
        .find(|offer| !offer["heldUntil"].is_null())
        .expect("an offer that is held");
    let acceptance = Keyed {
        path: "/agreements".to_owned(),
        kind: JSON,
        body: json!({"offer": held["id"]}).to_string(),
        key: "y",
    };
    let accepted = at_once(&client, &acceptance).await;
    assert_eq!(accepted.status, StatusCode::CREATED, "{accepted:?}");
    // An offer can be accepted once, so that the same under another key has the same agreement.
    let again = Keyed {
        key: "again",
        ..acceptance.clone()
    };
    assert_eq!(again.send(&client).await.created(), accepted.created());
    // Another request for it comes too late and gets fresh offers, and the same ones when it is sent again.
    let late = Keyed {
        key: "late",
        body: json!({"offer": held["id"], "pending": true}).to_string(),
        ..acceptance
    };
    let before = offers_in(&client, about).await;
    let lost = late.send(&client).await;
    assert_eq!(lost.status, StatusCode::CONFLICT, "{lost:?}");
    let with_fresh = offers_in(&client, about).await;
    assert!(with_fresh > before, "{lost:?}");
    late.send(&client).await;
    assert_eq!(offers_in(&client, about).await, with_fresh, "made once");
    // Of two with one name none is taken.
    let twice = ["twin"; 2].map(|name| SentOffer {
        state: "Advisory",
        ..SentOffer::solicited(name, reserve(1))
    });
    let twins = Keyed {
        path: format!("/negotiations/{about}/advertisements"),
        kind: XML,
        body: message("AdvertiseInput", &twice),
        key: "twins",
    };
    let refused = twins.send(&client).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    assert_eq!(offers_in(&client, about).await, with_fresh, "{refused:?}");
    server.assert_verified();
}

/// Sends a request from many at once, which all get the same answer.
async fn at_once(client: &Client, request: &Keyed) -> Answer {
    let senders: JoinSet<_> = (0..SENDERS)
        .map(|_| {
            let (request, client) = (request.clone(), client.clone());
            async move { request.send(&client).await }
        })
        .collect();
    let mut answers = senders.join_all().await;
    for answer in &answers {
        assert!(answer.status.is_success(), "{}: {answer:?}", request.path);
        assert_eq!(answer.body, answers[0].body, "{}", request.path);
    }
    answers.swap_remove(0)
}

/// The acceptance of a counter offer under an AgreementId.
async fn acceptance(client: &Client, id: &str) -> (Uuid, String) {
    let negotiation = open(client).await;
    let mut offers = negotiate(client, negotiation, &[SentOffer::solicited("a", reserve(1))]).await;
    (negotiation, with_id(id, &offers.remove(0).acceptance()))
}

pub(crate) fn with_id(id: &str, offer: &str) -> String {
    let root = format!("<wsag:AgreementOffer wsag:AgreementId=\"{id}\"");
    offer.replacen("<wsag:AgreementOffer", &root, 1)
}

/// Sends offers without a key, all at once.
async fn offer_at_once(client: &Client, offers: Vec<String>) -> Vec<Answer> {
    let senders: JoinSet<_> = offers
        .into_iter()
        .map(|offer| {
            let client = client.clone();
            async move { client.post("/agreements", offer).await }
        })
        .collect();
    senders.join_all().await
}

/// Sends an offer from many at once, which all get the same answer, and then once more.
async fn offer_from_many(client: &Client, offer: String, status: StatusCode) {
    let mut answers = offer_at_once(client, vec![offer.clone(); SENDERS]).await;
    answers.push(client.post("/agreements", offer).await);
    let told = |answer: &Answer| {
        (
            answer.status,
            answer.headers.get("location").cloned(),
            answer.body.clone(),
        )
    };
    for answer in &answers {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(told(answer), told(&answers[0]));
    }
}

async fn of_the_same_words_with_an_id_at_once_there_is_one_effect(url: String) {
    let server = Server::start(&url);
    let client = server.client_with(&server.key_for("physics", "consumer"));
    let new = with_id("new", &reserve(1).xml());
    offer_from_many(&client, new, StatusCode::CREATED).await;
    // An offer that one of them has accepted is lost to none, and none of them is answered with fresh ones.
    let (negotiation, accepted) = acceptance(&client, "accepted").await;
    let before = offers_in(&client, negotiation).await;
    offer_from_many(&client, accepted, StatusCode::CREATED).await;
    assert_eq!(offers_in(&client, negotiation).await, before);
    let (negotiation, later) = acceptance(&client, "later").await;
    let later = later.replace("wsag:CreateAgreementInput", "wsag:CreatePendingAgreementInput");
    let before = offers_in(&client, negotiation).await;
    offer_from_many(&client, later.clone(), StatusCode::ACCEPTED).await;
    eventually("its decision", Duration::from_mins(1), async || {
        let page = client.get_json("/agreements?agreementId=later").await;
        (page["agreements"][0]["state"] == "Observed").then_some(())
    })
    .await;
    offer_from_many(&client, later, StatusCode::ACCEPTED).await;
    assert_eq!(offers_in(&client, negotiation).await, before);
    // With an id and a key.
    let (_, body) = acceptance(&client, "keyed").await;
    let path = "/agreements".to_owned();
    let keyed = Keyed {
        path,
        kind: XML,
        body,
        key: "keyed",
    };
    at_once(&client, &keyed).await;
    // Of two requests with one name, one is another request.
    let named = [1, 2].map(|nodes| with_id("two", &reserve(nodes).xml()));
    one_of_two(
        &offer_at_once(&client, named.to_vec()).await,
        StatusCode::CONFLICT,
    );
    let [first, second] = [1, 2].map(|nodes| Keyed {
        path: "/agreements".to_owned(),
        kind: XML,
        body: reserve(nodes).xml(),
        key: "two",
    });
    let both = tokio::join!(first.send(&client), second.send(&client));
    one_of_two(&[both.0, both.1], StatusCode::UNPROCESSABLE_ENTITY);
    let all = client.get_json("/agreements").await;
    assert_eq!(all["agreements"].as_array().map(Vec::len), Some(6), "{all}");
    server.assert_verified();
}

/// Of two answers one is an agreement, and the other has this status.
fn one_of_two(answers: &[Answer], other: StatusCode) {
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [StatusCode::CREATED, other], "{answers:?}");
}

async fn a_request_that_was_cut_off_is_finished_by_its_repetition(url: String) {
    const OFFERS: usize = 20;
    let mut server = Server::start(&url);
    let client = server.client();
    let about = open(&client).await;
    // Advice, so that nothing is held and every offer is answered once.
    let said: Vec<_> = (0..OFFERS)
        .map(|number| SentOffer {
            state: "Advisory",
            ..SentOffer::solicited(&format!("o-{number}"), reserve(1))
        })
        .collect();
    let request = Keyed {
        path: format!("/negotiations/{about}/offers"),
        kind: XML,
        body: message("NegotiateInput", &said),
        key: "cut",
    };
    let cut = {
        let (request, client) = (request.clone(), client.clone());
        tokio::spawn(async move { client.try_send(request.request(&client)).await })
    };
    eventually("the first of many offers", Duration::from_mins(1), async || {
        (offers_in(&client, about).await > 0).then_some(())
    })
    .await;
    server.kill9();
    // It may have been quicker; the rest holds all the same.
    let _ = cut.await;
    server.restart();
    let client = server.client();
    let answer = request.send(&client).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.texts("CounterOfferTo").len(), OFFERS, "{answer:?}");
    assert!(!answer.body.contains("Rejected"), "{answer:?}");
    assert_eq!(offers_in(&client, about).await, 2 * OFFERS, "each once");
    assert_eq!(request.send(&client).await.body, answer.body);
    server.assert_verified();
}
