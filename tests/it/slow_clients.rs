//! Clients that dribble are cut off, and others are served meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use crate::support::client::Client;
use crate::support::offers::Offer;
use crate::support::server::Server;
use crate::support::{eventually, run, size};

/// A service that waits no longer than a second for anything.
/// All of its clients come from one address.
const IMPATIENT: &str = "[limits]\nheader_seconds = 1\nbody_seconds = 1\nconnections_per_address = 4096\n";

/// Slow clients at the same time; `BESPEAK_TEST_SLOW_HEADERS` and `BESPEAK_TEST_SLOW_BODIES` ask for more. Bodies beyond the
/// bound on a party's requests at work (`limits.party_requests`) are turned away.
const CLIENTS: usize = 100;

/// A byte is sent so often: each one far within every time-out.
const DRIBBLE: Duration = Duration::from_millis(100);

/// A client that is not cut off by then never is.
const CUT_OFF: Duration = Duration::from_mins(1);

#[test]
fn clients_that_dribble_headers_are_cut_off() {
    are_cut_off(
        "BESPEAK_TEST_SLOW_HEADERS",
        |_| String::new(),
        "GET /templates HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    );
}

#[test]
fn clients_that_dribble_bodies_are_cut_off() {
    are_cut_off(
        "BESPEAK_TEST_SLOW_BODIES",
        |key| {
            format!(
                "POST /agreements HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
                 Content-Type: application/xml\r\nContent-Length: 100000\r\n\r\n"
            )
        },
        "<wsag:AgreementOffer xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\">",
    );
}

#[test]
fn a_connection_without_requests_is_closed() {
    run(async {
        let server = Server::configured(None, IMPATIENT);
        let answer = timeout(CUT_OFF, async {
            let mut stream = TcpStream::connect(server.address())
                .await
                .expect("the service takes connections");
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .await
                .expect("it is taken");
            let mut answer = Vec::new();
            stream
                .read_to_end(&mut answer)
                .await
                .expect("the service closes the connection");
            answer
        });
        let answer = answer.await.expect("the connection is closed");
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    });
}

#[test]
fn requests_beyond_the_bound_are_turned_away_at_once_and_served_later() {
    run(async {
        let server = Server::configured(None, "[limits]\nrequests = 1\nbody_seconds = 600\n");
        let client = server.client();
        let slow = at_work(&server, server.key()).await;
        let turned_away = eventually("a full service", CUT_OFF, async || {
            let answer = client.get("/templates").await;
            (answer.status == StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
        })
        .await;
        assert!(turned_away.headers.contains_key("retry-after"), "{turned_away:?}");
        for path in ["/healthz", "/readyz"] {
            let answer = client.get(path).await;
            assert_eq!(answer.status, StatusCode::OK, "busy is not dead: {answer:?}");
        }
        drop(slow);
        eventually("a place again", CUT_OFF, async || {
            client.get("/templates").await.status.is_success().then_some(())
        })
        .await;
    });
}

#[test]
fn a_party_that_has_too_many_requests_at_work_stands_in_nobody_elses_way() {
    run(async {
        let server = Server::configured(None, "[limits]\nparty_requests = 1\nbody_seconds = 600\n");
        let (physics, biology) = (
            server.key_for("physics", "consumer"),
            server.key_for("biology", "consumer"),
        );
        let slow = at_work(&server, &physics).await;
        let client = server.client_with(&physics);
        let turned_away = eventually("a party at its bound", CUT_OFF, async || {
            let answer = client.get("/templates").await;
            (answer.status == StatusCode::TOO_MANY_REQUESTS).then_some(answer)
        })
        .await;
        assert!(turned_away.headers.contains_key("retry-after"), "{turned_away:?}");
        let other = server.client_with(&biology).get("/templates").await;
        assert_eq!(other.status, StatusCode::OK, "{other:?}");
        drop(slow);
        eventually("a place again", CUT_OFF, async || {
            client.get("/templates").await.status.is_success().then_some(())
        })
        .await;
    });
}

#[test]
fn a_client_that_reads_no_answers_is_hung_up_on() {
    run(async {
        let server = Server::configured(
            None,
            "[limits]\nconnections = 1\nheader_seconds = 1\nwrite_seconds = 1\n",
        );
        let mut deaf = TcpStream::connect(server.address())
            .await
            .expect("the service takes connections");
        // More answers than the system keeps for a client that does not take them.
        let request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let asking = async { while deaf.write_all(request).await.is_ok() {} };
        // There is one connection, which is its own until it is hung up on.
        timeout(CUT_OFF, asking).await.expect("it is hung up on");
        is_served(&server.client(), Method::GET, "/readyz").await;
    });
}

#[test]
fn those_who_sign_in_slowly_stand_in_nobody_elses_way() {
    run(async {
        let server = Server::configured(None, "[limits]\nparty_requests = 1\nbody_seconds = 600\n");
        let mut slow = TcpStream::connect(server.address())
            .await
            .expect("the service takes connections");
        let head = "POST /portal/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
        slow.write_all(head.as_bytes())
            .await
            .expect("the head is taken at once");
        let client = server.client();
        eventually("a bound on requests to sign in", CUT_OFF, async || {
            let form = client
                .request(reqwest::Method::POST, "/portal/sign-in")
                .body("key=x");
            let answer = client.send(form).await;
            (answer.status == StatusCode::TOO_MANY_REQUESTS).then_some(())
        })
        .await;
        assert_eq!(client.get("/templates").await.status, StatusCode::OK);
    });
}

/// A request that is at work until its body has arrived: the service asks for the body once it is.
async fn at_work(server: &Server, key: &str) -> TcpStream {
    let mut slow = TcpStream::connect(server.address())
        .await
        .expect("the service takes connections");
    let head = format!(
        "POST /agreements HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: 10\r\n\
         Expect: 100-continue\r\n\r\n"
    );
    slow.write_all(head.as_bytes())
        .await
        .expect("the head is taken at once");
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    slow.read_exact(&mut asked).await.expect("it is answered");
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    slow
}

/// Lets clients send `head` of a key at once and `slowly` byte by byte, while a good client is served.
fn are_cut_off(variable: &str, head: impl Fn(&str) -> String, slowly: &'static str) {
    run(async {
        let server = Server::configured(None, IMPATIENT);
        let mut slow = JoinSet::new();
        for _ in 0..size(variable, CLIENTS) {
            slow.spawn(dribble(server.address(), head(server.key()), slowly));
        }
        let good = server.client_with(&server.key_for("biology", "consumer"));
        is_served(&good, Method::POST, "/agreements").await;
        while let Some(ended) = slow.join_next().await {
            let answer = ended.expect("a client ends");
            let answer = answer.expect("a slow client is cut off");
            assert!(
                answer.is_empty()
                    || ["408", "429"]
                        .iter()
                        .any(|status| answer.starts_with(&format!("HTTP/1.1 {status}"))),
                "{answer}"
            );
        }
        is_served(&server.client(), Method::POST, "/agreements").await;
    });
}

/// Asserts that a good client is served, which the machine may have stand still for longer than the service waits.
async fn is_served(client: &Client, method: Method, path: &str) {
    eventually("an answer to a good client", CUT_OFF, async || {
        let request = client.request(method.clone(), path);
        let request = request.header("content-type", "application/xml");
        let answer = client.try_send(request.body(Offer::reserve(1, 60).xml())).await;
        answer
            .is_ok_and(|answer| answer.status.is_success())
            .then_some(())
    })
    .await;
}

/// The message to a client before the service closes the connection; `None` when it never does.
async fn dribble(address: SocketAddr, head: String, slowly: &'static str) -> Option<String> {
    timeout(CUT_OFF, async {
        let mut stream = TcpStream::connect(address)
            .await
            .expect("the service takes connections");
        stream
            .write_all(head.as_bytes())
            .await
            .expect("the head is taken at once");
        let (mut read, mut write) = stream.split();
        let mut answer = Vec::new();
        let mut ticks = interval(DRIBBLE);
        let send = async {
            for byte in slowly.bytes().cycle() {
                ticks.tick().await;
                if write.write_all(&[byte]).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            // A connection that is reset is cut off as well.
            _ = read.read_to_end(&mut answer) => {}
            () = send => {}
        }
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
    .ok()
}
