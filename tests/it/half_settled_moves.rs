//! The moves of a batch are one record, and settled in slices afterwards. Wherever the process is killed in between, each agreement
//! is where it was when the batch was acknowledged, and its timeline tells of one move in the end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::agreement::{EventKind, Shape};
use domain::clock::Clock;
use domain::resources::Resource;
use planner::{Place, Request, Settings};
use scheduler::{Seconds, Time};
use store::{Store, agreements, moves};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;

use crate::store::{RESOURCE, decide, tamper};
use crate::support::fixture::column;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

on_both_engines!(
    a_kill_before_anything_is_settled_loses_no_start,
    a_kill_in_the_middle_of_settling_loses_no_start,
);

/// Names the database for the process that [`moves_many_until_it_is_killed`] is.
const DATABASE: &str = "BESPEAK_TEST_MOVES_DATABASE";
/// Far longer than anything here takes.
const DEADLINE: Duration = Duration::from_mins(1);
/// The agreements that move.
const MANY: usize = 150;
/// The agreements of a slice.
const SLICE: usize = 64;
const NODES: u32 = 8;
const LONG: Seconds = 100;
/// Seconds until the first of them begins.
const AHEAD: Seconds = 7_200;

async fn planner(url: &str) -> (Store, Planner) {
    let (store, lease) = decide(url).await;
    let settings = Settings::new(vec![Resource::new(RESOURCE, "local", NODES)], 86_400);
    let stop = CancellationToken::new();
    let started = Planner::start(settings, store.clone(), lease, Clock::system(), stop).await;
    (store, started.expect("the stored data make a plan").0)
}

/// All nodes for a time, from an instant on.
fn whole(duration: Seconds, ready: Time, deadline: Option<Time>) -> Request {
    let shape = Shape {
        nodes: NODES,
        duration,
    };
    Request {
        ready: Some(ready),
        deadline,
        document: "<offer/>".into(),
        ..Request::new(Uuid::now_v7(), "physics", vec![shape])
    }
}

async fn a_kill_before_anything_is_settled_loses_no_start(url: String) {
    kill_where_settling_stops(&url, 0).await;
}

async fn a_kill_in_the_middle_of_settling_loses_no_start(url: String) {
    kill_where_settling_stops(&url, SLICE).await;
}

/// Kills a process that has moved many where so many are settled: the database refuses the next of them.
async fn kill_where_settling_stops(url: &str, settled: usize) {
    let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "half_settled_moves::moves_many_until_it_is_killed",
        ])
        .env(DATABASE, url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run");
    let said = BufReader::new(process.stdout.take().expect("it was given a pipe"));
    let mut said = said
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| Some(line.strip_prefix("mover: ")?.to_owned()));
    assert_eq!(said.next().as_deref(), Some("ready"));
    refuse_to_settle(url, settled).await;
    let mut told = process.stdin.take().expect("it was given a pipe");
    told.write_all(b"go\n").expect("it listens");
    // What is acknowledged: the first that moved, and from when on the newcomer has all nodes, and until when.
    let mut named = BTreeMap::new();
    let (begin, end) = loop {
        let line = said.next().expect("it answers");
        let words: Vec<&str> = line.split(' ').collect();
        let second = |at: usize| words[at].parse().map(Time).expect("a second");
        match words[0] {
            "moved" => named.insert(words[1].parse::<Uuid>().expect("an id"), second(2)),
            _ => break (second(1), second(2)),
        };
    };
    assert_eq!(named.len(), 10);
    eventually("the first slices", DEADLINE, async || {
        let rows = "(SELECT version FROM agreements WHERE version = 2) AS moved";
        let moved = column(url, rows, "version").await;
        (moved.expect("they can be counted").len() == settled).then_some(())
    })
    .await;
    process.kill().expect("it can be killed");
    process.wait().expect("it has ended");

    let store = Store::open(url).await.expect("the database is there");
    let starts = starts(&store).await;
    assert_eq!(starts.len(), MANY + 1);
    for (id, start) in &starts {
        assert!(*start >= end || *start == begin, "{id} is where the newcomer is");
        assert!(named.get(id).is_none_or(|told| told == start), "{id}");
    }
    assert_eq!(store.verify().await.expect("it can be read"), []);
    find_damage(url, &store).await;
    store.close().await;

    let on = if url.starts_with("sqlite:") {
        ""
    } else {
        " ON agreements"
    };
    tamper(url, &format!("DROP TRIGGER refuse{on}")).await;
    let (store, _planner) = planner(url).await;
    eventually("the rest is settled", DEADLINE, async || {
        let records = moves::move_records(&store).await.expect("they can be read");
        records.is_empty().then_some(())
    })
    .await;
    assert_eq!(self::starts(&store).await, starts, "all are where they were");
    for (id, start) in &starts {
        let events = agreements::events_of_agreement(&store, *id).await;
        let events = events.expect("they can be read");
        let moved = events.iter().filter(|event| event.kind == EventKind::Moved);
        let one = usize::from(*start != begin);
        assert_eq!(moved.count(), one, "{events:?}");
    }
    assert_eq!(store.verify().await.expect("it can be read"), []);
}

/// Has the database refuse that the agreement of this place in their order is changed.
async fn refuse_to_settle(url: &str, at: usize) {
    let refuse = if url.starts_with("sqlite:") {
        format!(
            "CREATE TRIGGER refuse BEFORE UPDATE ON agreements WHEN NEW.name = 'wait-{at}' \
             BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    } else {
        format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
             CREATE TRIGGER refuse BEFORE UPDATE ON agreements FOR EACH ROW WHEN (NEW.name = 'wait-{at}') \
             EXECUTE FUNCTION refuse()"
        )
    };
    tamper(url, &refuse).await;
}

/// Where all agreements are, as readers are told.
async fn starts(store: &Store) -> BTreeMap<Uuid, Time> {
    let live = agreements::live_agreements(store).await;
    let live = live.expect("they can be read").into_iter();
    live.map(|one| (one.id, one.placement().start)).collect()
}

/// A record that is changed, or deleted, by hand is found.
async fn find_damage(url: &str, store: &Store) {
    tamper(url, "CREATE TABLE right_moves AS SELECT * FROM moves").await;
    for damage in [
        "UPDATE moves SET moves = REPLACE(moves, '],[', '], [')",
        "UPDATE moves SET why = 'for nothing'",
        "DELETE FROM moves",
        "INSERT INTO moves SELECT number + 1, at_us, cause, why, moves FROM moves",
    ] {
        tamper(url, damage).await;
        let found = store.verify().await.expect("it can be read");
        let is_found = |said: &str| said.starts_with("the rows of moves are not those");
        assert!(
            found.iter().any(|found| is_found(&found.what)),
            "{damage}: {found:?}"
        );
        tamper(
            url,
            "DELETE FROM moves; INSERT INTO moves SELECT * FROM right_moves",
        )
        .await;
    }
    assert_eq!(store.verify().await.expect("it can be read"), []);
}

fn say(what: &str) {
    // On a line of its own, after any output of the test runner.
    println!("\nmover: {what}");
    std::io::stdout().flush().expect("the output is read");
}

#[test]
#[ignore = "another test runs it as a process of its own, and kills it"]
fn moves_many_until_it_is_killed() {
    let url = std::env::var(DATABASE).expect("the test that starts this names a database");
    run(async move {
        let (_store, planner) = planner(&url).await;
        let begin = Clock::system().now() + AHEAD;
        for at in 0..MANY {
            let flexible = Request {
                name: Some(format!("wait-{at}")),
                ..whole(LONG, begin, None)
            };
            planner.send(Place(flexible)).await.expect("there is room");
        }
        say("ready");
        std::io::stdin()
            .read_line(&mut String::new())
            .expect("it is told to go on");
        let end = begin + LONG * i64::try_from(MANY).expect("few");
        let rigid = whole(end - begin, begin, Some(end));
        let accepted = planner.send(Place(rigid)).await.expect("they can move");
        assert_eq!(accepted.moved_count, MANY);
        for moved in &accepted.moved {
            say(&format!(
                "moved {} {}",
                moved.id,
                moved.placement().start.seconds()
            ));
        }
        say(&format!("answered {} {}", begin.seconds(), end.seconds()));
        std::future::pending::<()>().await;
    });
}
