//! Heads that two programs may read in two ways: each is refused with 400 and ends its connection, so that nothing is smuggled
//! past a proxy.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::run;
use crate::support::server::Server;

const DEADLINE: Duration = Duration::from_mins(1);

/// All that a service answers to these bytes until it closes the connection.
async fn answers(server: &Server, sent: &[&str]) -> String {
    let mut stream = TcpStream::connect(server.address())
        .await
        .expect("the service takes connections");
    for part in sent {
        stream.write_all(part.as_bytes()).await.expect("it is taken");
        stream.flush().await.expect("it is sent");
    }
    let mut answer = Vec::new();
    // A connection that is reset has told all that it tells.
    let closed = timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the connection stays open after {sent:?}");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The statuses of answers in their order.
fn statuses(answers: &str) -> Vec<&str> {
    let lines = answers.split("HTTP/1.1 ").skip(1);
    lines.filter_map(|line| line.get(..3)).collect()
}

#[test]
fn a_request_with_two_meanings_is_refused_and_ends_its_connection() {
    run(async {
        let server = Server::local();
        let post = |fields: &str, body: &str| {
            format!(
                "POST /agreements HTTP/1.1\r\n{fields}Authorization: Bearer {}\r\n\r\n{body}",
                server.key()
            )
        };
        let host = "Host: localhost\r\n";
        for (fields, body) in [
            ("Host: localhost\r\nHost: localhost\r\n", ""),
            ("Host: localhost\r\nhost: other\r\n", ""),
            ("Host: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n", "<a>"),
            ("Host: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n", "<a>"),
            ("Host: a\r\nContent-Length: 3, 3\r\n", "<a>"),
            (
                "Host: a\r\nTransfer-Encoding: chunked, chunked\r\n",
                "3\r\n<a>\r\n0\r\n\r\n",
            ),
            (
                "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "3\r\n<a>\r\n0\r\n\r\n",
            ),
            ("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
            ("Host: a\r\nTransfer-Encoding: identity\r\n", ""),
            (
                "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n",
                "0\r\n\r\n",
            ),
            (
                "Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
        ] {
            let answer = answers(&server, &[&post(fields, body)]).await;
            assert_eq!(statuses(&answer), ["400"], "{fields}: {answer}");
        }
        // Behind other requests on its connection, of which one has a head in its body; and in parts.
        let hidden = "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        let first = post(&format!("{host}Content-Length: {}\r\n", hidden.len()), hidden);
        let second = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let all = format!("{first}{second}{hidden}{second}");
        let answer = answers(&server, &[&all]).await;
        assert_eq!(statuses(&answer), ["400", "200", "400"], "{answer}");
        assert!(answer.contains("MALFORMED"), "the first was read: {answer}");
        let (one, two) = all.split_at(first.len() + second.len() + 40);
        let answer = answers(&server, &[one, two]).await;
        assert_eq!(statuses(&answer), ["400", "200", "400"], "{answer}");
        // Nothing comes after a body in chunks.
        let chunked = post(
            &format!("{host}Transfer-Encoding: chunked\r\n"),
            "3\r\n<a>\r\n0\r\n\r\n",
        );
        let answer = answers(&server, &[&format!("{chunked}{second}")]).await;
        assert_eq!(statuses(&answer), ["400"], "{answer}");
        assert!(
            answer.contains("MALFORMED") && answer.contains("connection: close"),
            "{answer}"
        );
        // Others are served.
        let closing = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = answers(&server, &["\r\n", second, closing]).await;
        assert_eq!(statuses(&answer), ["200", "200"], "{answer}");
        assert_eq!(server.client().get("/templates").await.status.as_u16(), 200);
    });
}

#[test]
fn a_head_without_a_host_or_with_a_long_target_is_refused_with_its_status_and_ends_its_connection() {
    run(async {
        let server = Server::local();
        let hidden = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        for fields in [
            "",
            "Host:\r\n",
            "Host: \r\n",
            "Host: :80\r\n",
            "Host: a/b\r\n",
            "Host: a@b\r\n",
        ] {
            let answer = answers(
                &server,
                &[&format!("GET /templates HTTP/1.1\r\n{fields}\r\n{hidden}")],
            )
            .await;
            assert_eq!(statuses(&answer), ["400"], "{fields:?}: {answer}");
            assert!(answer.contains("BAD_HEADER"), "{fields:?}: {answer}");
        }
        for path in ["/agreements", "/portal"] {
            for length in [8_100, 12_000, 20_000] {
                let target = format!("{path}?{}", "x".repeat(length - path.len() - 1));
                let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n{hidden}");
                let answer = answers(&server, &[&head]).await;
                assert_eq!(statuses(&answer), ["414"], "{path}, {length}: {answer}");
            }
        }
        // One that hides its length.
        let fragment = format!("GET /a#{} HTTP/1.1\r\nHost: a\r\n\r\n{hidden}", "x".repeat(9_000));
        let answer = answers(&server, &[&fragment]).await;
        assert_eq!(statuses(&answer), ["400"], "{answer}");
        let long = "x".repeat(7_900);
        let taken = format!("GET /agreements?name={long} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(statuses(&answers(&server, &[&taken]).await), ["401"]);
    });
}

#[test]
fn a_body_beyond_the_bound_that_waits_for_a_word_has_its_413_at_once() {
    run(async {
        let server = Server::local();
        let head = |length: usize| {
            format!(
                "POST /agreements HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nExpect: 100-continue\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
                server.key()
            )
        };
        let answer = answers(&server, &[&head(256 * 1_024 + 1)]).await;
        assert_eq!(statuses(&answer), ["413"], "{answer}");
        // Any other is waited for.
        let closing = head(2).replace("Host: a", "Host: a\r\nConnection: close");
        let answer = answers(&server, &[&closing, "{}"]).await;
        assert_eq!(statuses(&answer).last(), Some(&"422"), "{answer}");
    });
}
