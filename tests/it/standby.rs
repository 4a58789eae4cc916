//! Several processes on one PostgreSQL: any of them answers, and another one leads when the leader is gone.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use store::Store;
use store::backup::SCHEMA_VERSION;
use store::leader::{self, Candidate, LeaderLook};
use uuid::Uuid;

use crate::store::tamper;
use crate::support::client::{Answer, Client};
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::TestDatabase;
use crate::support::{eventually, run};

/// Far longer than a change of the leader takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// The local resource belongs to the first process, which counts as gone soon,
const SOON_SILENT: &str =
    "[limits]\nsilent_replica_seconds = 5\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
/// or after more time than a test takes.
const LATE_SILENT: &str =
    "[limits]\nsilent_replica_seconds = 3600\n[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";

/// A process that leads and one that stands by, on one database.
fn two_processes(database: &TestDatabase, configuration: &str) -> (Server, Server) {
    let first = Server::configured(Some(database.url()), configuration);
    let second = Server::configured(Some(database.url()), configuration);
    (first, second)
}

fn signal(server: &Server, signal: Signal) {
    let process = i32::try_from(server.process()).ok().and_then(Pid::from_raw);
    kill_process(process.expect("the number of a process"), signal).expect("the service can be signalled");
}

async fn role(client: &Client) -> String {
    let text = client.get("/readyz").await.body;
    let role = text.lines().find_map(|line| line.strip_prefix("role: "));
    role.unwrap_or_default().to_owned()
}

async fn offer(client: &Client) -> Answer {
    // It ends before nodes that are out of use are planned with again.
    let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(12));
    // Without a key it is not sent again where a leader that is gone may have taken it.
    let request = client
        .request(Method::POST, "/agreements")
        .header("content-type", "application/xml")
        .header("idempotency-key", Uuid::now_v7().to_string());
    client.send(request.body(offer.xml())).await
}

async fn eventually_role(client: &Client, expected: &str) {
    eventually(expected, PATIENCE, async || {
        (role(client).await == expected).then_some(())
    })
    .await;
}

#[test]
fn any_process_answers_and_one_leads_where_the_leader_is_killed() {
    let database = TestDatabase::postgres();
    let (mut first, second) = two_processes(&database, LATE_SILENT);
    run(async {
        let (one, two) = (first.client(), second.client());
        assert_eq!(
            (role(&one).await, role(&two).await),
            ("leader".into(), "standby".into())
        );
        // Each data folder has an operator's key of its own, and each key is worth the same everywhere.
        let crossed = second.client_with(first.key());
        let made = offer(&crossed).await.created();
        for client in [&one, &two, &crossed] {
            let shown = client.get_json(&format!("/agreements/{made}")).await;
            assert_eq!(shown["id"], made.to_string());
        }
        // The plan is the leader's, and what is passed on is checked there.
        assert_eq!(two.get("/availability").await.status, StatusCode::OK);
        let wrong = second.client_with("bsp_0").get("/availability").await;
        assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
        let long = two.post("/agreements", " ".repeat(1 << 20)).await;
        assert_eq!(long.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(!long.text("ErrorCode").is_empty());
        let revoked = first.key_for("physics", "consumer");
        let physics = second.client_with(&revoked);
        assert_eq!(physics.get("/agreements").await.status, StatusCode::OK);
        first.kill9();
        let killed = Instant::now();
        let next = offer(&two).await.created();
        eprintln!("decided again {:?} after the kill", killed.elapsed());
        assert_eq!(role(&two).await, "leader");
        first.restart();
        let one = first.client();
        assert_eq!(role(&one).await, "standby");
        assert_eq!(
            one.get_json(&format!("/agreements/{next}")).await["id"],
            next.to_string()
        );
        offer(&one).await.created();
    });
    second.assert_verified();
}

#[test]
fn a_process_that_was_just_started_leaves_the_lead_to_one_that_stands_by() {
    let database = TestDatabase::postgres();
    run(async {
        let store = async |name| Store::open_as(database.url(), name).await.unwrap();
        let (one, two, three) = (store("one").await, store("two").await, store("three").await);
        let LeaderLook::Leads(first) = Candidate::of(&one).unwrap().look().await.unwrap() else {
            panic!("no other process is there");
        };
        let mut standing_by = Candidate::of(&two).unwrap();
        let follows = standing_by.look().await.unwrap();
        assert!(matches!(follows, LeaderLook::Follows(Some(leader)) if leader == "one"));
        assert!(leader::has_leader_or_candidate(&three, "two").await.unwrap());
        first.release().await;
        let mut started = Candidate::of(&three).unwrap();
        assert!(matches!(started.look().await.unwrap(), LeaderLook::Follows(None)));
        assert!(matches!(standing_by.look().await.unwrap(), LeaderLook::Leads(_)));
    });
}

#[test]
fn a_process_that_was_just_started_leads_where_those_that_stand_by_do_not_look() {
    let database = TestDatabase::postgres();
    run(async {
        let store = async |name| Store::open_as(database.url(), name).await.unwrap();
        let (one, two, three) = (store("one").await, store("two").await, store("three").await);
        let LeaderLook::Leads(first) = Candidate::of(&one).unwrap().look().await.unwrap() else {
            panic!("no other process is there");
        };
        let mut stands_still = Candidate::of(&two).unwrap();
        assert!(matches!(
            stands_still.look().await.unwrap(),
            LeaderLook::Follows(_)
        ));
        first.release().await;
        let mut started = Candidate::of(&three).unwrap();
        assert!(matches!(started.look().await.unwrap(), LeaderLook::Follows(None)));
        let lease = eventually("the lead", PATIENCE, async || {
            match started.look().await.unwrap() {
                LeaderLook::Leads(lease) => Some(lease),
                LeaderLook::Follows(_) => None,
            }
        })
        .await;
        assert_eq!(lease.epoch, 2);
        drop(stands_still);
    });
}

#[test]
fn a_leader_that_stands_still_is_deposed_and_says_nothing_afterwards() {
    let database = TestDatabase::postgres();
    let (mut first, second) = two_processes(&database, LATE_SILENT);
    run(async {
        let two = second.client();
        signal(&first, Signal::STOP);
        let stopped = Instant::now();
        eventually("an agreement", PATIENCE, async || {
            (offer(&two).await.status == StatusCode::CREATED).then_some(())
        })
        .await;
        eprintln!(
            "decided again {:?} after the leader stood still",
            stopped.elapsed()
        );
        eventually_role(&two, "leader").await;
        signal(&first, Signal::CONT);
        let status = first.wait_until_ended();
        assert!(
            !status.success() && first.log().contains("another process decides now"),
            "{}",
            first.log()
        );
        first.restart();
        assert_eq!(role(&first.client()).await, "standby");
    });
    second.assert_verified();
}

#[test]
fn a_job_is_run_by_the_process_of_its_machine_whichever_leads() {
    let database = TestDatabase::postgres();
    let (mut first, second) = two_processes(&database, LATE_SILENT);
    run(async {
        let two = second.client();
        let long = job(&two, 6).await;
        eventually("it runs", PATIENCE, async || {
            shown(&two, &long).await["started"].is_string().then_some(())
        })
        .await;
        first.kill9();
        offer(&two).await.created();
        assert_eq!(role(&two).await, "leader");
        // Another job waits for the machine, and the one that runs there goes on.
        let short = job(&two, 0).await;
        first.restart();
        for agreement in [&short, &long] {
            let over = eventually("its end", PATIENCE, async || {
                let now = shown(&two, agreement).await;
                (now["state"] == "Complete").then_some(now)
            })
            .await;
            assert_eq!(over["outcome"], "completed", "{over}");
            let path = format!("/agreements/{agreement}/files");
            for client in [&two, &first.client()] {
                let files = client.get_json(&path).await;
                assert!(files["files"].is_array(), "{files}");
                assert_eq!(client.get(&format!("{path}/stdout")).await.status, StatusCode::OK);
            }
        }
        let folders = |server: &Server| {
            let jobs = std::fs::read_dir(server.data_dir().join("jobs")).expect("a folder of jobs");
            jobs.count()
        };
        assert_eq!((folders(&first), folders(&second)), (2, 0));
    });
    second.assert_verified();
}

#[test]
fn nothing_new_is_placed_on_a_machine_whose_process_is_silent() {
    let database = TestDatabase::postgres();
    let (mut first, mut second) = two_processes(&database, SOON_SILENT);
    run(async {
        let two = second.client();
        let eventually_answered = async |client: &Client, expected: StatusCode| {
            eventually("nodes in use or not", PATIENCE, async || {
                (offer(client).await.status == expected).then_some(())
            })
            .await;
        };
        first.kill9();
        eventually_answered(&two, StatusCode::CONFLICT).await;
        first.restart();
        eventually_answered(&two, StatusCode::CREATED).await;
        first.kill9();
        eventually_answered(&two, StatusCode::CONFLICT).await;
        // The next leader has not heard it either.
        second.kill9();
        second.restart();
        assert_eq!(offer(&second.client()).await.status, StatusCode::CONFLICT);
        // And where the silent one leads, it is not silent.
        second.kill9();
        first.restart();
        eventually_answered(&first.client(), StatusCode::CREATED).await;
    });
    first.assert_verified();
}

#[test]
fn slow_bodies_without_a_key_leave_places_to_others() {
    let database = TestDatabase::postgres();
    let bounded = "[limits]\nrequests = 5\nparty_requests = 2\nbody_seconds = 600\n\
        [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
    let (_first, second) = two_processes(&database, bounded);
    let head_of = |path| format!("POST {path} HTTP/1.1\r\nhost: bespeak\r\ncontent-length: 9\r\n\r\n");
    let (answered, answers) = mpsc::channel();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(second.address()).expect("the service listens");
        // The pages need no key.
        let head = head_of("/portal/session");
        stream.write_all(head.as_bytes()).expect("it reads");
        let answered = answered.clone();
        std::thread::spawn(move || {
            let mut status = [0; 12];
            // The others are answered when the process ends, if at all.
            if stream.read_exact(&mut status).is_ok() {
                let _ = answered.send(String::from_utf8_lossy(&status).into_owned());
            }
        });
    }
    let turned_away = [(); 3].map(|()| answers.recv_timeout(PATIENCE).expect("an answer"));
    assert_eq!(turned_away, ["HTTP/1.1 429"; 3]);
    run(async { offer(&second.client()).await.created() });
    // Where a key is needed, no body is waited for.
    let mut stream = TcpStream::connect(second.address()).expect("the service listens");
    stream
        .write_all(head_of("/agreements").as_bytes())
        .expect("it reads");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 401");
}

#[test]
fn clients_that_read_slowly_do_not_keep_another_process_from_the_lead() {
    const LENGTH: usize = 32 << 20;
    let database = TestDatabase::postgres();
    let patient = "[limits]\nshutdown_seconds = 600\nwrite_seconds = 600\n\
        [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
    let (mut first, second) = two_processes(&database, patient);
    run(async {
        let client = first.client_with(&first.key_for("physics", "consumer"));
        let large = client.request(Method::PUT, "/files/large").body(vec![7; LENGTH]);
        assert_eq!(client.send(large).await.status, StatusCode::CREATED);
    });
    let key = first.key_for("physics", "consumer");
    let mut slow = TcpStream::connect(first.address()).expect("the service listens");
    let head = format!("host: bespeak\r\nauthorization: Bearer {key}\r\nconnection: close");
    write!(slow, "GET /files/large HTTP/1.1\r\n{head}\r\n\r\n").expect("it reads");
    let mut begun = [0; 1];
    slow.read_exact(&mut begun).expect("it answers");
    signal(&first, Signal::TERM);
    run(async {
        let two = second.client();
        eventually_role(&two, "leader").await;
        offer(&two).await.created();
    });
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("the whole answer");
    assert!(rest.len() > LENGTH, "{} bytes", rest.len());
    assert!(first.wait_until_ended().success(), "{}", first.log());
}

async fn job(client: &Client, seconds: u32) -> String {
    let offer = Offer::sleep(seconds, 600).within(now(), hours_ahead(2));
    client
        .post("/agreements", offer.xml())
        .await
        .created()
        .to_string()
}

async fn shown(client: &Client, id: &str) -> Value {
    client.get_json(&format!("/agreements/{id}")).await
}

#[test]
fn a_rolling_restart_under_load_fails_no_call_that_is_sent_again() {
    let database = TestDatabase::postgres();
    let (mut first, mut second) = two_processes(&database, LATE_SILENT);
    let addresses = || [first.address(), second.address()];
    let before = addresses();
    let key = first.key().to_owned();
    let going = Arc::new(AtomicBool::new(true));
    let (stop, ports) = (Arc::clone(&going), Arc::new(Mutex::new(before)));
    let (seen, keys) = (Arc::clone(&ports), key.clone());
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let load = std::thread::spawn(move || run(async { send_offers((&seen, &keys), &counts, &stop).await }));
    for turn in 0..4 {
        let enough = count.load(Ordering::Relaxed) + 3;
        run(eventually("agreements", PATIENCE, async || {
            (count.load(Ordering::Relaxed) >= enough).then_some(())
        }));
        let server = if turn % 2 == 0 { &mut first } else { &mut second };
        assert!(server.stop().success());
        server.restart();
        *ports.lock().expect("no test holds it in a panic") = [first.address(), second.address()];
    }
    going.store(false, Ordering::Relaxed);
    let made = load.join().expect("no call has failed for good");
    assert!(made.len() > 8, "{} agreements", made.len());
    run(async {
        let (mut listed, mut path) = (BTreeSet::new(), "/agreements?limit=200".to_owned());
        loop {
            let page = first.client().get_json(&path).await;
            for agreement in page["agreements"].as_array().expect("a list") {
                let id = agreement["id"].as_str().unwrap_or_default().to_owned();
                assert!(listed.insert(id), "each once");
            }
            match page["next"].as_str() {
                Some(next) => path = format!("/agreements?limit=200&after={next}"),
                None => break,
            }
        }
        assert_eq!(listed, made);
    });
    first.assert_verified();
}

/// Makes offers at one process after the other, each again with its key until it is answered, as a client behind a balancer does. Returns
/// the agreements.
async fn send_offers(
    (at, key): (&Mutex<[SocketAddr; 2]>, &str),
    count: &AtomicUsize,
    going: &AtomicBool,
) -> BTreeSet<String> {
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .build()
        .expect("a client");
    let mut made = BTreeSet::new();
    for number in 0.. {
        if !going.load(Ordering::Relaxed) {
            break;
        }
        let answer = eventually("an answer", PATIENCE, async || {
            let turn = made.len() % 2;
            let addresses = *at.lock().expect("no test holds it in a panic");
            for address in [addresses[turn], addresses[1 - turn]] {
                // It ends before nodes that are out of use are planned with again.
                let offer = Offer::reserve(1, 60).within(hours_ahead(2), hours_ahead(12));
                let sent = client
                    .post(format!("http://{address}/agreements"))
                    .bearer_auth(key)
                    .header("Idempotency-Key", format!("k{number}"))
                    .header("Content-Type", "application/xml")
                    .header("Accept", "application/json")
                    .body(offer.xml());
                match sent.send().await {
                    Ok(answer) if answer.status().is_server_error() => {}
                    Ok(answer) => {
                        let status = answer.status();
                        let body = answer.text().await.ok()?;
                        assert_eq!(status, StatusCode::CREATED, "{body}");
                        return serde_json::from_str::<Value>(&body).ok();
                    }
                    // It is not there, or was ended while it had the call.
                    Err(_) => {}
                }
            }
            None
        })
        .await;
        made.insert(answer["id"].as_str().expect("an id").to_owned());
        count.store(made.len(), Ordering::Relaxed);
    }
    made
}

#[test]
fn a_process_goes_on_with_the_schema_of_the_next_version_and_does_not_start_with_it() {
    let database = TestDatabase::postgres();
    let (mut first, second) = two_processes(&database, LATE_SILENT);
    run(async {
        // The next version sees these, and leaves what they need.
        let store = Store::open(database.url()).await.expect("it can be opened");
        let older_than = async |steps| {
            store
                .has_older_process(steps)
                .await
                .expect("a server that answers")
        };
        assert!(older_than(SCHEMA_VERSION + 1).await && !older_than(SCHEMA_VERSION).await);
        // As the next version does when it joins: it adds what the version before does not know.
        tamper(
            database.url(),
            "CREATE TABLE of_the_next_version (id BIGINT NOT NULL PRIMARY KEY)",
        )
        .await;
        tamper(
            database.url(),
            "INSERT INTO schema_migrations SELECT MAX(version) + 1, 'next', 'next' FROM schema_migrations",
        )
        .await;
        offer(&first.client()).await.created();
        offer(&second.client()).await.created();
        first.kill9();
        offer(&second.client()).await.created();
    });
    let refused = first.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("a later version of bespeak has been here"),
        "{said}"
    );
    run(async { offer(&second.client()).await.created() });
}

/// The status of a POST to a path, which is sent unchanged.
fn status_of_raw_post(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("the service listens");
    let head = "host: bespeak\r\ncontent-type: application/json\r\ncontent-length: 4\r\nconnection: close";
    write!(stream, "POST {path} HTTP/1.1\r\n{head}\r\n\r\nnull").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_client_that_calls_itself_a_replica_is_none() {
    let database = TestDatabase::postgres();
    let (first, second) = two_processes(&database, LATE_SILENT);
    let forged = |request: reqwest::RequestBuilder, name: &str, origin: &str| {
        request
            .header("bespeak-replica", name)
            .header("bespeak-replica-secret", "0".repeat(64))
            .header("bespeak-origin", origin)
    };
    run(async {
        let (one, two) = (first.client(), second.client());
        let text = one.get("/readyz").await.body;
        assert!(text.contains("role: leader"), "{text}");
        let text = two.get("/readyz").await.body;
        let leader = text.lines().find_map(|line| line.strip_prefix("leader: "));
        let leader = leader.expect("a standby names its leader");
        // Not even with an operator's key.
        for client in [&one, &two] {
            for (method, path) in [
                (Method::POST, "/replicas/questions".to_owned()),
                (Method::GET, format!("/replicas/outputs/{}", Uuid::nil())),
                (Method::GET, format!("/replicas/outputs/{}/stdout", Uuid::nil())),
                (Method::DELETE, format!("/replicas/outputs/{}", Uuid::nil())),
            ] {
                let plain = client.request(method.clone(), &path);
                let pretended = forged(client.request(method.clone(), &path), leader, "192.0.2.1");
                for request in [plain, pretended] {
                    let status = client.send(request.json(&Value::Null)).await.status;
                    // A standby does not lead, and says so to a replica.
                    let refused = [StatusCode::UNAUTHORIZED, StatusCode::MISDIRECTED_REQUEST];
                    assert!(refused.contains(&status), "{method} {path}: {status}");
                }
            }
        }
        // Nor by a path that becomes another one on its way to the leader.
        for server in [&first, &second] {
            for path in [
                "/replicas/questions",
                "/a/../replicas/questions",
                "/a/%2e%2e/replicas/questions",
            ] {
                let status = status_of_raw_post(server, path);
                assert!(["401", "404"].contains(&status.as_str()), "{path}: {status}");
            }
        }
        // Wrong keys count for the address that they come from, whatever they say.
        let wrong = first.client_with("bsp_0");
        for number in 0..8 {
            let request = wrong.request(Method::GET, "/agreements");
            let answer = wrong
                .send(forged(request, leader, &format!("192.0.2.{number}")))
                .await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
        let metrics = one.get("/metrics").await.body;
        let delayed = metrics
            .lines()
            .find_map(|line| line.strip_prefix("bespeak_http_wrong_keys_delayed_total "));
        let delayed: u32 = delayed.expect("a counter").parse().expect("a number");
        assert!(delayed >= 3, "{delayed} of eight were delayed");
    });
}
