//! While a batch is being stored the next one is decided on top of it. Where the first is not stored both are given up. Whenever
//! the process is killed, the store has the first batches in order, and every answered one is stored.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::agreement::Shape;
use domain::clock::Clock;
use domain::resources::{Resource, Scaling};
use planner::{AcceptedOffer, Error, Idempotency, Place, Request, Settings};
use sqlx::{Connection, PgConnection, SqliteConnection};
use store::{Store, agreements};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;

use crate::store::{RESOURCE, decide, tamper};
use crate::support::proxy::{Fault, Proxy};
use crate::support::stores::{TestDatabase, on_both_engines};
use crate::support::{eventually, run};

on_both_engines!(
    what_was_decided_on_a_batch_that_is_not_stored_is_given_up_with_it,
    a_key_of_a_batch_that_is_being_stored_has_one_effect,
    two_batches_are_stored_in_their_order_whenever_they_are_killed,
);

/// Names the database for the process that [`decides_two_batches`] is.
const DATABASE: &str = "BESPEAK_TEST_OVERLAPPING_DATABASE";
/// Far longer than a decision takes.
const DEADLINE: Duration = Duration::from_mins(1);

/// The agreements with an acceptance that has been decided, stored or not.
static DECIDED: Mutex<BTreeSet<Uuid>> = Mutex::new(BTreeSet::new());

/// Runs on the planner's task when it has decided.
fn note(accepted: &AcceptedOffer) -> String {
    let mut decided = DECIDED.lock().unwrap_or_else(PoisonError::into_inner);
    decided.insert(accepted.agreement.id);
    accepted.agreement.id.to_string()
}

async fn decided(id: Uuid) {
    eventually("a decision", DEADLINE, async || {
        let decided = DECIDED.lock().unwrap_or_else(PoisonError::into_inner);
        decided.contains(&id).then_some(())
    })
    .await;
}

/// An hour of a node, under a key.
fn proposal(name: &str, key: &str) -> Request {
    Request {
        expires: None,
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: Some(name.into()),
        template: "advance-reservation".into(),
        shapes: vec![Shape {
            nodes: 1,
            duration: 3_600,
        }],
        scaling: Scaling::Contract,
        preemption: None,
        shape_changes: None,
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: None,
        deadline: None,
        job: None,
        guarantees: Vec::new(),
        budget: None,
        spender: None,
        choices: Vec::new(),
        initiator_id: None,
        document: "<offer/>".into(),
        idempotency: Some(Idempotency {
            party: "physics".into(),
            key: key.into(),
            request_hash: name.into(),
            answer: note,
        }),
    }
}

/// A planner of eight nodes.
async fn planner(url: &str) -> (Store, Planner) {
    let (store, lease) = decide(url).await;
    let settings = Settings::new(vec![Resource::new(RESOURCE, "local", 8)], 86_400);
    let stop = CancellationToken::new();
    let started = Planner::start(settings, store.clone(), lease, Clock::system(), stop).await;
    (store, started.expect("the stored data make a plan").0)
}

/// Keeps every batch from being stored for as long as it lives.
enum Hold {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Hold {
    async fn take(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            let mut connection = SqliteConnection::connect(url).await.expect("the file is there");
            sqlx::raw_sql("BEGIN IMMEDIATE")
                .execute(&mut connection)
                .await
                .expect("no other process writes");
            Self::Sqlite(connection)
        } else {
            let mut connection = PgConnection::connect(url).await.expect("the server is there");
            sqlx::raw_sql("BEGIN; UPDATE lease SET epoch = epoch")
                .execute(&mut connection)
                .await
                .expect("no other process writes");
            Self::Postgres(connection)
        }
    }

    async fn release(self) {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
        }
        .expect("it can be closed");
    }
}

async fn stored(store: &Store) -> BTreeSet<Uuid> {
    let live = agreements::live_agreements(store)
        .await
        .expect("they can be read");
    live.into_iter().map(|one| one.id).collect()
}

async fn what_was_decided_on_a_batch_that_is_not_stored_is_given_up_with_it(url: String) {
    let refuse = if url.starts_with("sqlite:") {
        "CREATE TRIGGER refuse BEFORE INSERT ON agreements WHEN NEW.name = 'first' \
         BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    } else {
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON agreements FOR EACH ROW WHEN (NEW.name = 'first') \
         EXECUTE FUNCTION refuse()"
    };
    tamper(&url, refuse).await;
    let (store, planner) = planner(&url).await;
    let hold = Hold::take(&url).await;
    let (first, second) = (proposal("first", "1"), proposal("second", "2"));
    let mut placed = Vec::new();
    for one in [first, second.clone()] {
        // The second comes when the first is on its way.
        let (planner, id) = (planner.clone(), one.id);
        placed.push(tokio::spawn(async move { planner.send(Place(one)).await }));
        decided(id).await;
    }
    hold.release().await;
    for answer in placed {
        let answer = answer.await.expect("it does not panic");
        assert!(matches!(answer, Err(Error::Unavailable)), "{answer:?}");
    }
    assert!(stored(&store).await.is_empty(), "nothing was agreed");
    // Its key has not been used.
    let again = eventually("a plan that was read anew", DEADLINE, async || {
        planner.send(Place(second.clone())).await.ok()
    });
    let again = again.await.agreement.id;
    assert_eq!(stored(&store).await, BTreeSet::from([again]));
    assert_eq!(store.verify().await.expect("it can be read"), []);
}

async fn a_key_of_a_batch_that_is_being_stored_has_one_effect(url: String) {
    let (store, planner) = planner(&url).await;
    let hold = Hold::take(&url).await;
    let (first, same) = (proposal("first", "1"), proposal("first", "1"));
    let id = first.id;
    let before = tokio::spawn({
        let planner = planner.clone();
        async move { planner.send(Place(first)).await }
    });
    decided(id).await;
    let after = tokio::spawn({
        let planner = planner.clone();
        async move { planner.send(Place(same)).await }
    });
    hold.release().await;
    let before = before.await.expect("it does not panic");
    assert!(before.is_ok(), "{before:?}");
    match after.await.expect("it does not panic") {
        Err(Error::Repeated(answer)) => assert_eq!(answer, id.to_string()),
        other => panic!("{other:?}"),
    }
    assert_eq!(stored(&store).await, BTreeSet::from([id]));
}

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
enum Kill<'a> {
    /// Both are decided, and neither is stored. PostgreSQL may have got the first as one statement, which goes on without the process.
    WhileHeld,
    /// Something may be on its way.
    OnRelease,
    /// The first, or the second, has been answered.
    OnAnswer(usize),
    /// A proxy stands still where the first batch (0) or the second is committed.
    AtCommit(&'a Proxy, Fault, usize),
}

async fn two_batches_are_stored_in_their_order_whenever_they_are_killed(url: String) {
    for kill in [
        Kill::WhileHeld,
        Kill::OnRelease,
        Kill::OnAnswer(1),
        Kill::OnAnswer(2),
    ] {
        let (many, _) = stored_of_two(&url, &url, kill).await;
        let sent = usize::from(url.starts_with("postgres"));
        assert!(
            many <= sent || !matches!(kill, Kill::WhileHeld),
            "{kill:?}: {many} are stored"
        );
    }
}

#[test]
fn a_batch_is_stored_by_its_commit_whether_or_not_the_process_lives_to_hear_of_it() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    run(async move {
        for batch in [0, 1] {
            for (fault, stored) in [
                (Fault::StandStillBefore, batch),
                (Fault::StandStillAfter, batch + 1),
            ] {
                let proxy = Proxy::before(&url).await;
                let kill = Kill::AtCommit(&proxy, fault, batch);
                let (many, answered) = stored_of_two(&url, &proxy.to(&url), kill).await;
                assert_eq!(many, stored, "{fault:?} of batch {batch}");
                assert!(
                    answered <= batch,
                    "{fault:?} of batch {batch}: {answered} answered"
                );
            }
        }
    });
}

/// How many of two batches are stored, and how many were answered, when the process that decides them is killed. It reaches the
/// database by an address of its own.
async fn stored_of_two(url: &str, of_process: &str, kill: Kill<'_>) -> (usize, usize) {
    let store = Store::open(url).await.expect("the database is there");
    let before = stored(&store).await;
    let mut decider = Decider::start(of_process);
    assert_eq!(decider.line().as_deref(), Some("ready"));
    let hold = Hold::take(url).await;
    if let Kill::AtCommit(proxy, fault, batch) = kill {
        proxy.plan(fault, batch);
    }
    decider.go();
    let line = decider.line().expect("it prints its decision");
    let ids: Vec<Uuid> = line
        .strip_prefix("decided ")
        .expect("both are decided")
        .split(' ')
        .map(|id| id.parse().expect("an id"))
        .collect();
    let mut answered = BTreeSet::new();
    let hold = match kill {
        Kill::WhileHeld => Some(hold),
        Kill::OnRelease => {
            hold.release().await;
            None
        }
        Kill::OnAnswer(many) => {
            hold.release().await;
            while answered.len() < many {
                let id = decider.answered();
                answered.insert(id.expect("it answers both before it ends"));
            }
            None
        }
        Kill::AtCommit(proxy, ..) => {
            hold.release().await;
            eventually("a commit", DEADLINE, async || proxy.has_happened().then_some(())).await;
            None
        }
    };
    // Its last output while it dies still counts.
    decider.process.kill().expect("it can be killed");
    while let Some(id) = decider.answered() {
        answered.insert(id);
    }
    decider.process.wait().expect("it has ended");
    if let Some(hold) = hold {
        hold.release().await;
    }
    // A lease is given when no batch is being written any more.
    let lease = store.acquire_lease().await.expect("no process decides any more");
    lease.release().await;
    let now = stored(&store).await;
    let new: BTreeSet<_> = now.difference(&before).copied().collect();
    let is_prefix = (0..=2).any(|many| new == ids[..many].iter().copied().collect());
    assert!(is_prefix, "{kill:?}: of {ids:?} are stored {new:?}");
    assert!(
        answered.is_subset(&new),
        "{kill:?}: answered and gone: {answered:?}"
    );
    assert_eq!(store.verify().await.expect("it can be read"), [], "{kill:?}");
    store.close().await;
    (new.len(), answered.len())
}

/// A process that decides two batches, one on top of the other.
struct Decider {
    process: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
}

impl Decider {
    fn start(url: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "overlapping_batches::decides_two_batches",
            ])
            .env(DATABASE, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run");
        Self {
            said: BufReader::new(process.stdout.take().expect("it was given a pipe")),
            told: process.stdin.take().expect("it was given a pipe"),
            process,
        }
    }

    fn go(&mut self) {
        self.told.write_all(b"go\n").expect("it listens");
    }

    /// Its next line, past the output of the test runner; none when it is dead.
    fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(said) = line.trim_end().strip_prefix("decider: ") {
                return Some(said.to_owned());
            }
        }
    }

    fn answered(&mut self) -> Option<Uuid> {
        let line = self.line()?;
        Some(line.strip_prefix("answered ")?.parse().expect("an id"))
    }
}

fn say(what: &str) {
    // On a line of its own, after any output of the test runner.
    println!("\ndecider: {what}");
    std::io::stdout().flush().expect("the output is read");
}

#[test]
#[ignore = "another test runs it as a process of its own, and kills it"]
fn decides_two_batches() {
    let url = std::env::var(DATABASE).expect("the test that starts this names a database");
    run(async move {
        let (_store, planner) = planner(&url).await;
        say("ready");
        std::io::stdin()
            .read_line(&mut String::new())
            .expect("it is told to go on");
        let both = [(); 2].map(|()| {
            let key = Uuid::now_v7().to_string();
            proposal(&key, &key)
        });
        let ids = both.clone().map(|one| one.id);
        let mut placed = Vec::new();
        for one in both {
            let (planner, id) = (planner.clone(), one.id);
            placed.push(tokio::spawn(async move {
                planner.send(Place(one)).await.expect("it is stored in the end");
                say(&format!("answered {id}"));
            }));
            decided(id).await;
        }
        say(&format!("decided {} {}", ids[0], ids[1]));
        for one in placed {
            one.await.expect("it does not panic");
        }
        std::future::pending::<()>().await;
    });
}
