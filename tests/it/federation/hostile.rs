//! Peers that answer rubbish, lead elsewhere, or do not answer.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::*;
use crate::support::receiver::Receiver;

/// A server that answers every request with the same text, whatever it is. It keeps the heads of the requests.
#[derive(Clone)]
struct Parrot {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Parrot {
    async fn saying(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let parrot = Self {
            address: listener.local_addr().expect("it is bound"),
            heads: Arc::default(),
        };
        let heads = Arc::clone(&parrot.heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, heads) = (answer.clone(), Arc::clone(&heads));
                tokio::spawn(async move { answer_once(stream, &answer, &heads).await });
            }
        });
        parrot
    }

    fn peer(&self, clock: &Clock) -> Peer {
        peer(
            &format!("http://{}", self.address),
            "bsp_the_key_of_this_peer",
            clock.clone(),
        )
    }
}

async fn answer_once(mut stream: TcpStream, answer: &str, heads: &Mutex<Vec<String>>) {
    let mut read = vec![0; 65_536];
    let Ok(length) = stream.read(&mut read).await else {
        return;
    };
    heads
        .lock()
        .await
        .push(String::from_utf8_lossy(&read[..length]).into_owned());
    let _ = stream.write_all(answer.as_bytes()).await;
    // The other end may still send, and would lose the answer.
    let _ = stream.shutdown().await;
    while matches!(stream.read(&mut read).await, Ok(1..)) {}
}

fn answer(status: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

fn created(root: &str, element: &str, address: &str) -> String {
    answer(
        "201 Created",
        "",
        &format!(
            "<{root} xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\" \
             xmlns:wsag-neg=\"http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation\">\
             <{element} xmlns:wsa=\"http://www.w3.org/2005/08/addressing\"><wsa:Address>{address}</wsa:Address></{element}></{root}>"
        ),
    )
}

/// A counter offer as it is kept.
fn kept_offer() -> String {
    let text = crate::support::offers::file("tests/messages/m15-negotiate-output.xml");
    let document = Document::parse(text.as_bytes()).expect("it is well-formed");
    match wsag::answers::read_answer(&document) {
        Ok(wsag::answers::Answer::CounterOffers(offers)) => offers[0].source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_that_never_answers_costs_no_more_than_the_time_that_is_given() {
    run(async {
        let silent = Receiver::silent().await;
        let clock = Clock::standing_at(1_800_000_000_000_000);
        let peer = peer(&format!("http://{silent}"), "k", clock.clone());
        let small_offer = offer(&Offer::reserve(1, HOUR));
        let late = peer
            .ask(&small_offer, &travel(), None, Duration::from_millis(50))
            .await;
        assert!(matches!(late, Err(PeerError::Unknown(..))), "{late:?}");
        let not_asked = peer.ask(&small_offer, &travel(), None, WITHIN).await;
        assert!(matches!(not_asked, Err(PeerError::NotAsked(_))), "{not_asked:?}");
        let health = peer.health();
        assert_eq!((health.asked, health.late), (1, 1), "{health:?}");
        assert_eq!(health.since, Some(1_800_000_000_000_000));
    });
}

#[test]
fn rubbish_is_no_answer_and_an_unknown_outcome() {
    run(async {
        let offer_document = kept_offer();
        let fault =
            "<wsag:ContinuingFault xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\"/>";
        let long = " ".repeat(2 << 20);
        for (said, why) in [
            (
                answer("200 OK", "", "<html><body>Welcome</body></html>"),
                "cannot be read",
            ),
            (answer("201 Created", "", ""), "cannot be read"),
            (answer("200 OK", "", &long), "more than 1048576 bytes"),
            (answer("500 Internal Server Error", "", "oops"), "500"),
            (answer("404 Not Found", "", "<html/>"), "without saying why"),
            (answer("409 Conflict", "", fault), "without saying why"),
            (answer("401 Unauthorized", "", ""), "401"),
            (answer("429 Too Many Requests", "Retry-After: 7\r\n", ""), "429"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n<a".to_owned(),
                "end of file",
            ),
            ("rubbish\r\n\r\n".to_owned(), "HTTP"),
            (String::new(), "connection closed"),
        ] {
            let clock = Clock::standing_at(1_800_000_000_000_000);
            let peer = Parrot::saying(said.clone()).await.peer(&clock);
            let base = peer.settings().address.clone();
            let small_offer = offer(&Offer::reserve(1, HOUR));
            let asked = peer
                .ask(&small_offer, &travel(), None, WITHIN)
                .await
                .expect_err("no answer");
            let (negotiation, agreement) = (format!("{base}/negotiations/1"), format!("{base}/agreements/1"));
            let created = peer
                .create(&negotiation, &offer_document, None, Uuid::now_v7())
                .await;
            let created = created.expect_err("no answer");
            let seen = peer.status(&agreement).await.expect_err("no answer");
            for found in [asked, created, seen] {
                let PeerError::Unknown(words, _) = &found else {
                    panic!("{said:.60}: {found:?}");
                };
                assert!(words.contains(why), "{why}: {words}");
            }
            let health = peer.health();
            assert!(
                !health.is_reachable && health.not_asked_for.is_some(),
                "{said:.60}: {health:?}"
            );
        }
        let clock = Clock::standing_at(1_800_000_000_000_000);
        let busy = Parrot::saying(answer("503 Service Unavailable", "Retry-After: 7\r\n", "")).await;
        let peer = busy.peer(&clock);
        let small_offer_again = offer(&Offer::reserve(1, HOUR));
        peer.ask(&small_offer_again, &travel(), None, WITHIN)
            .await
            .expect_err("it is busy");
        assert_eq!(peer.health().not_asked_for, Some(7_000_000));
    });
}

#[test]
fn the_key_goes_to_the_address_of_the_peer_and_nowhere_else() {
    run(async {
        let elsewhere = Parrot::saying(answer("200 OK", "", "")).await;
        let other = format!("http://{}", elsewhere.address);
        let clock = Clock::standing_at(1_800_000_000_000_000);
        let offer_document = kept_offer();
        let led = answer(
            "307 Temporary Redirect",
            &format!("Location: {other}/agreements\r\n"),
            "",
        );
        let named = created(
            "wsag:CreateAgreementResponse",
            "wsag:CreatedAgreementEPR",
            &format!("{other}/agreements/1"),
        );
        for (said, why) in [(led, "307"), (named, "not its own")] {
            let parrot = Parrot::saying(said).await;
            let peer = parrot.peer(&clock);
            let negotiation = format!("{}/negotiations/1", peer.settings().address);
            let made = peer
                .create(&negotiation, &offer_document, None, Uuid::now_v7())
                .await;
            let made = made.expect_err("it leads elsewhere");
            assert!(
                matches!(&made, PeerError::Unknown(words, _) if words.contains(why)),
                "{made}"
            );
            let heads = parrot.heads.lock().await;
            assert!(
                heads[0]
                    .to_lowercase()
                    .contains("authorization: bearer bsp_the_key_of_this_peer"),
                "{heads:?}"
            );
        }
        let peer = elsewhere.peer(&clock);
        for foreign in [
            "http://127.0.0.1:1/agreements/1",
            "https://example.org/agreements/1",
            "file:///etc/passwd",
            "not an address",
            "http://user:pass@127.0.0.1/agreements/1",
        ] {
            let refused = peer.status(foreign).await.expect_err("it is not the peer's");
            assert!(
                matches!(&refused, PeerError::Unknown(words, _) if words.contains("not its own")),
                "{refused}"
            );
            peer.terminate(foreign, "x")
                .await
                .expect_err("it is not the peer's");
            peer.end_negotiation(foreign)
                .await
                .expect_err("it is not the peer's");
        }
        assert_eq!(elsewhere.heads.lock().await.len(), 0, "nothing was sent there");
    });
}
