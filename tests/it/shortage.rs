//! A service that is short of descriptors, or that clients try to make so: no promise is lost, and a client with a key is served
//! or asked to come back.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, now};
use crate::support::server::Server;
use crate::support::{eventually, output_of, run, size};

/// Half-sent requests at the same time; `BESPEAK_TEST_HALF_SENT` asks for more.
const HALF_SENT: usize = 400;
/// Jobs that are due meanwhile.
const JOBS: usize = 14;
/// No job here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);

/// Fourteen nodes, and clients that may take their time.
const PATIENT: &str = "[limits]\nheader_seconds = 600\nbody_seconds = 600\n\
    [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 14\n";

/// Eighteen forms to sign in with that were turned away.
const TURNED_AWAY: &str =
    "bespeak_http_request_seconds_count{route=\"/portal/sign-in\",method=\"POST\",status=\"4xx\"} 18\n";

/// Sends from an address of this machine the beginning of a request.
async fn half_sent(from: &str, to: SocketAddr, beginning: &str) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from.parse().expect("an address"), 0))?;
    let mut stream = socket.connect(to).await?;
    stream.write_all(beginning.as_bytes()).await?;
    Ok(stream)
}

async fn put(client: &Client, path: &str) -> Answer {
    let request = client.request(Method::PUT, path).body("bytes");
    client.send(request).await
}

/// Keeps a service busy with half-sent requests while jobs are due, and sees to it that all of them run.
async fn is_flooded(server: &Server) {
    let client = server.client();
    // A slow machine begins some of them later, and none too late.
    let start = now() + 6;
    let mut ids = Vec::new();
    for _ in 0..JOBS {
        let offer = Offer::sleep(1, 30).within(start, start + 3_600);
        ids.push(client.post("/agreements", offer.xml()).await.created());
    }
    let mut flood = Vec::new();
    let heads = [
        "GET /templates HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        "POST /portal/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
        "",
    ];
    for (number, head) in (0..size("BESPEAK_TEST_HALF_SENT", HALF_SENT)).zip(heads.iter().cycle()) {
        // A client that is turned away has a stream that is closed, or none.
        flood.push(half_sent("127.0.0.2", server.address(), head).await);
        if number % 100 == 0 {
            assert_eq!(client.get("/templates").await.status, StatusCode::OK);
        }
    }
    let fresh = server.client();
    let put = put(&fresh, "/files/data").await;
    assert!(
        put.status == StatusCode::CREATED || put.status == StatusCode::SERVICE_UNAVAILABLE,
        "{put:?}"
    );
    for id in ids {
        let view = eventually("the job to end", SOON, async || {
            let view = fresh.get_json(&format!("/agreements/{id}")).await;
            (view["state"] == "Complete").then_some(view)
        })
        .await;
        assert_eq!(view["outcome"], "completed", "{view}");
    }
    drop(flood);
    server.assert_verified();
}

#[test]
fn a_flood_of_half_sent_requests_costs_no_job_where_the_service_can_raise_its_limit() {
    run(async {
        let server = Server::through("ulimit -S -n 256; exec \"$@\"", PATIENT);
        is_flooded(&server).await;
    });
}

#[test]
fn a_flood_of_half_sent_requests_costs_no_job_where_the_service_cannot_raise_its_limit() {
    run(async {
        let server = Server::through("ulimit -n 256; exec \"$@\"", PATIENT);
        is_flooded(&server).await;
    });
}

#[test]
fn connections_that_do_not_fit_are_refused_at_start_with_how_many_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(
        folder.path().join("bespeak.toml"),
        "[limits]\nconnections = 1000\n",
    )
    .expect("a file can be written");
    let mut command = Command::new("/bin/sh");
    command
        .current_dir(folder.path())
        .args([
            "-c",
            "ulimit -n 256; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_bespeak"),
        ])
        .args(["serve", "--listen", "127.0.0.1:0", "--config", "bespeak.toml"]);
    let refused = output_of(&mut command, SOON);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    for named in ["limits.connections", "1000", "256", "at most 38", "LimitNOFILE="] {
        assert!(errors.contains(named), "{named} is not named: {errors}");
    }
}

#[test]
fn an_address_that_has_its_connections_is_turned_away_and_others_are_served() {
    run(async {
        let server = Server::configured(
            None,
            "[limits]\nheader_seconds = 600\nconnections_per_address = 2\n",
        );
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(half_sent("127.0.0.2", server.address(), "GET / HTTP/1.1\r\n").await);
        }
        let turned_away = async {
            let stream = half_sent("127.0.0.2", server.address(), "")
                .await
                .expect("it is taken");
            let mut answer = Vec::new();
            let mut stream = stream;
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        };
        let answer = turned_away.await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        let client = server.client();
        assert_eq!(client.get("/templates").await.status, StatusCode::OK);
        // The one that was turned away counts until the service has closed it; and a client may have opened more than one connection.
        let metrics = eventually(
            "the count without the one that was turned away",
            SOON,
            async || {
                let request = client.request(Method::GET, "/metrics");
                let metrics = client.send(request.header("connection", "close")).await.body;
                metrics
                    .contains("\nbespeak_http_connections 3\n")
                    .then_some(metrics)
            },
        )
        .await;
        for series in [
            "bespeak_http_connections_refused_total 1",
            "bespeak_http_connections_limit 4096",
            "\nprocess_open_fds ",
        ] {
            assert!(metrics.contains(series), "{series}: {metrics}");
        }
        drop(held);
        eventually("a connection again", SOON, async || {
            let stream = half_sent(
                "127.0.0.2",
                server.address(),
                "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
            )
            .await;
            let mut answer = [0; 12];
            tokio::io::AsyncReadExt::read_exact(&mut stream.ok()?, &mut answer)
                .await
                .ok()?;
            (&answer == b"HTTP/1.1 200").then_some(())
        })
        .await;
    });
}

#[test]
fn those_of_one_address_who_sign_in_slowly_leave_places_to_those_of_others() {
    run(async {
        let server = Server::configured(None, "[limits]\nparty_requests = 8\nbody_seconds = 600\n");
        let head = "POST /portal/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
        let mut slow = Vec::new();
        for _ in 0..20 {
            slow.push(half_sent("127.0.0.2", server.address(), head).await);
        }
        let client = server.client();
        // Two of them are at work; once the others are counted all have been looked at.
        eventually("those beyond the bound to be turned away", SOON, async || {
            let metrics = client.get("/metrics").await.body;
            metrics.contains(TURNED_AWAY).then_some(())
        })
        .await;
        let form = client.request(Method::POST, "/portal/sign-in").body("key=x");
        assert_eq!(client.send(form).await.status, StatusCode::UNAUTHORIZED);
        drop(slow);
    });
}

/// What is answered to bytes that are sent from an address of this machine.
async fn answer_to(from: &str, to: SocketAddr, bytes: &str) -> String {
    let mut stream = half_sent(from, to, bytes).await.expect("it is taken");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut answer));
    read.await.expect("it closes").expect("it is read");
    String::from_utf8_lossy(&answer).into_owned()
}

/// How a proxy says which client has sent a head and a body.
type ProxyHeader = fn(&str, &str, &str) -> String;

#[test]
fn clients_of_a_trusted_proxy_are_told_apart_and_slow_sign_ins_of_one_leave_places_to_another() {
    let head = "POST /portal/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n";
    let whole =
        "POST /portal/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n";
    let by_protocol = |client: &str, head: &str, body: &str| {
        format!("PROXY TCP4 {client} 127.0.0.1 4711 8080\r\n{head}\r\n{body}")
    };
    let by_header = |client: &str, head: &str, body: &str| {
        format!("{head}X-Forwarded-For: 203.0.113.9, {client}\r\n\r\n{body}")
    };
    let ways: [(&str, ProxyHeader); 2] = [("proxy-protocol", by_protocol), ("x-forwarded-for", by_header)];
    for (way, says) in ways {
        run(async {
            let server = Server::configured(
                None,
                &format!(
                    "[limits]\nparty_requests = 8\nbody_seconds = 600\nheader_seconds = 600\n\
                     [proxy]\ntrusted = [\"127.0.0.2\"]\nclient_address = \"{way}\"\n"
                ),
            );
            let to = server.address();
            let mut slow = Vec::new();
            for _ in 0..20 {
                slow.push(half_sent("127.0.0.2", to, &says("192.0.2.1", head, "")).await);
            }
            let client = server.client();
            eventually("those beyond the bound to be turned away", SOON, async || {
                let metrics = client.get("/metrics").await.body;
                metrics.contains(TURNED_AWAY).then_some(())
            })
            .await;
            let other = answer_to("127.0.0.2", to, &says("192.0.2.2", whole, "key=x")).await;
            assert!(other.starts_with("HTTP/1.1 401 "), "{way}: {other}");
            let same = answer_to("127.0.0.2", to, &says("192.0.2.1", whole, "key=x")).await;
            assert!(same.starts_with("HTTP/1.1 429 "), "{way}: {same}");
            // Who is no proxy is not believed.
            let forged = answer_to("127.0.0.3", to, &says("192.0.2.1", whole, "key=x")).await;
            let expected = if way == "proxy-protocol" { "400 " } else { "401 " };
            assert!(
                forged.starts_with(&format!("HTTP/1.1 {expected}")),
                "{way}: {forged}"
            );
            let log = server.log();
            assert!(
                log.contains("peer=192.0.2.2") && !log.contains("peer=203.0.113.9"),
                "{log}"
            );
            drop(slow);
        });
    }
}

#[test]
fn an_upload_to_a_service_without_descriptors_is_answered_503_and_succeeds_later() {
    run(async {
        let server = Server::local();
        let client = server.client();
        // A connection that the service has taken, and nothing new can be opened. A client with a pool might open another one.
        let greeting = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut stream = half_sent("127.0.0.1", server.address(), greeting)
            .await
            .expect("the service takes connections");
        stream.readable().await.expect("it is answered");
        let before = server.limit_open_files(3);
        let upload = format!(
            "PUT /files/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 5\r\n\
             Connection: close\r\n\r\nbytes",
            server.key()
        );
        stream.write_all(upload.as_bytes()).await.expect("it listens");
        let mut answers = String::new();
        let read = tokio::time::timeout(SOON, stream.read_to_string(&mut answers));
        read.await.expect("it closes").expect("it answers in text");
        let (_, answer) = answers.rsplit_once("HTTP/1.1 ").expect("an answer");
        assert!(answer.starts_with("503 "), "{answer}");
        assert!(answer.contains("\r\nretry-after: "), "{answer}");
        server.limit_open_files(before);
        let again = eventually("a descriptor", SOON, async || {
            let answer = put(&client, "/files/data").await;
            (answer.status == StatusCode::CREATED).then_some(answer)
        });
        again.await;
    });
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    run(async {
        let server = Server::through("exec \"$@\" 2>/dev/full", PATIENT);
        let client = server.client();
        let id = client
            .post("/agreements", Offer::sleep(0, 600).xml())
            .await
            .created();
        eventually("the job to end", SOON, async || {
            let view = client.get_json(&format!("/agreements/{id}")).await;
            (view["state"] == "Complete").then_some(())
        })
        .await;
    });
}

#[test]
fn jobs_have_the_open_files_of_their_limits_and_not_those_of_the_service() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("program");
    std::fs::write(&program, "#!/bin/sh\nulimit -S -n\nulimit -H -n\n").expect("a file can be written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("its mode can be changed");
    let configuration = format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 1\n\
         [[application]]\nname = \"limits\"\nprogram = \"{}\"\n[application.limits]\nopen_files = 300\n",
        program.display()
    );
    run(async {
        let server = Server::through("ulimit -S -n 256; exec \"$@\"", &configuration);
        let client = server.client();
        let mut offer = Offer::sleep(0, 600);
        offer.run = Some(("limits", Vec::new()));
        let id = client.post("/agreements", offer.xml()).await.created();
        eventually("the job to end", SOON, async || {
            let view = client.get_json(&format!("/agreements/{id}")).await;
            (view["state"] == "Complete").then_some(())
        })
        .await;
        let output = client.get(&format!("/agreements/{id}/files/stdout")).await;
        assert_eq!(output.body, "300\n300\n");
    });
}
