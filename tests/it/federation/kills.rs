//! Domains are killed, cut off and delayed at every step between a question and the end: what one side has in force, the other has, too,
//! and once.

use std::collections::BTreeSet;
use std::env;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::harness::{Domain, Plan, start_domains, wanted};
use crate::support::breakable_proxy::Break;
use crate::support::fixture::column;
use crate::support::random::Random;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);
const HOUR: i64 = 3_600;
/// Seeds; `BESPEAK_TEST_SEEDS` asks for more.
const SEEDS: u64 = 3;
/// Agreements that are asked for with one seed, each with a fault.
const ROUNDS: usize = 5;
/// The requests of our domain at which something happens: questions, acceptances, looks and ends.
const REQUESTS: [&str; 6] = [
    "POST /negotiations HTTP",
    "POST /negotiations/",
    "POST /agreements HTTP",
    "POST /agreements HTTP",
    "POST /agreements HTTP",
    "GET /agreements/",
];

/// What happens at a request of our domain.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The connection is cut.
    Cut(Break),
    /// The answer comes late.
    Delay,
    /// Our domain is killed while it waits for the answer.
    KillOurs,
    /// The peer is killed once it has answered, and the answer is lost.
    KillTheirs,
    /// Both are.
    KillBoth,
}

const FAULTS: [Fault; 7] = [
    Fault::Cut(Break::CutBefore),
    Fault::Cut(Break::CutAfter),
    Fault::Delay,
    Fault::KillOurs,
    Fault::KillOurs,
    Fault::KillTheirs,
    Fault::KillBoth,
];

/// The states of agreements that are in force, or were to their end.
const LIVE: [&str; 3] = ["Observed", "Complete", "ObservedAndTerminating"];

/// Our domain and its only peer, which has the nodes.
const PAIR: [Plan; 2] = [
    Plan {
        name: "one",
        nodes: 1,
        node_hour: "2",
        cancellation: 0,
        peers: &["two"],
        of_peers: "markup_percent = 5\nrequests_per_minute = 100000\n",
        of_domain: "",
        more: "[negotiation]\nopen_max = 100000\nholds_max = 1000\n",
        last: String::new(),
    },
    Plan {
        name: "two",
        nodes: 64,
        node_hour: "1",
        cancellation: 0,
        peers: &[],
        of_peers: "",
        of_domain: "",
        more: "[negotiation]\nopen_max = 100000\nholds_max = 1000\n[quotas]\nshare_percent = 100\n",
        last: String::new(),
    },
];

/// A request for an agreement that only the peer can carry out.
fn request(ours: &Domain, key: &str, start: i64) -> RequestBuilder {
    let request = ours.requester.request(Method::POST, "/agreements");
    let request = request.header("Idempotency-Key", key);
    request.json(&wanted(2, 1, (start, start + HOUR)))
}

/// Asks for an agreement, and has something happen at the next such request to the peer, if there is one before the answer.
async fn ask_with_fault(domains: &mut [Domain], sent: RequestBuilder, at: &'static str, fault: Fault) {
    let way = domains[1].way.clone();
    way.break_at(
        at,
        match fault {
            Fault::Cut(how) => how,
            _ => Break::KeepAfter,
        },
    );
    let asked = tokio::spawn(sent.send());
    eventually("it is answered, or breaks", PATIENCE, async || {
        (way.has_broken() || asked.is_finished()).then_some(())
    })
    .await;
    if way.has_broken() {
        if matches!(fault, Fault::KillOurs | Fault::KillBoth) {
            domains[0].kill_and_restart();
        }
        if matches!(fault, Fault::KillTheirs | Fault::KillBoth) {
            domains[1].kill_and_restart();
        }
    }
    way.mend();
    // Whatever has become of it: it is asked again.
    drop(asked.await);
}

/// Repeats a request until it has an answer for good; whether that is an agreement.
async fn is_settled(ours: &Domain, key: &str, start: i64) -> bool {
    eventually("it is answered for good", PATIENCE, async || {
        let answer = request(ours, key, start).send().await.ok()?;
        match answer.status().as_u16() {
            201 => Some(true),
            // The offer has lapsed or was withdrawn, or there was none.
            409 | 410 | 422 => Some(false),
            _ => None,
        }
    })
    .await
}

/// Changes the newest agreement, with a fault as that is accepted; whether it was changed.
async fn is_changed(domains: &mut [Domain], key: &str, at: &'static str, fault: Fault) -> bool {
    let newest = domains[0].agreements().await.remove(0);
    let change = json!({ "agreement": newest["id"], "durationSeconds": 15 });
    let asked = domains[0].requester.post_json("/negotiations", &change).await;
    let offer = match asked.status.as_u16() {
        201 => asked.json()["offers"][0]["id"].clone(),
        _ => Value::Null,
    };
    if offer.is_null() {
        return false;
    }
    let accept = |ours: &Domain| {
        let request = ours.requester.request(Method::POST, "/agreements");
        request
            .header("Idempotency-Key", key)
            .json(&json!({ "offer": offer }))
    };
    let sent = accept(&domains[0]);
    ask_with_fault(domains, sent, at, fault).await;
    eventually(
        "the change is answered for good",
        PATIENCE,
        async || match accept(&domains[0]).send().await.ok()?.status().as_u16() {
            201 => Some(true),
            409 | 410 | 422 => Some(false),
            _ => None,
        },
    )
    .await
}

/// The ids of a domain's agreements in these states.
async fn in_states(domain: &Domain, states: &[&str]) -> BTreeSet<String> {
    let all = domain.agreements().await;
    let named = all
        .iter()
        .filter(|each| states.contains(&each["state"].as_str().unwrap_or_default()));
    named
        .filter_map(|named| named["id"].as_str().map(ToOwned::to_owned))
        .collect()
}

/// What stands in SQL for the live agreements of a domain.
const IS_LIVE: &str = "a.state IN ('Observed', 'Complete', 'ObservedAndTerminating')";
/// The same for agreements that were ended here, and whose work was over at the peer before it heard of that.
const IS_ENDED_TOO_LATE: &str = "a.state = 'Terminated' AND p.state = 'Complete'";

/// The ids of the peer's agreements behind those of a domain that are so.
async fn behind(domain: &Domain, which: &str) -> Vec<String> {
    let url = format!("sqlite:{}", domain.server.data_dir().join("bespeak.db").display());
    let rows = format!(
        "(SELECT p.address FROM peer_agreements p JOIN agreements a ON a.id = p.agreement WHERE {which}) AS rows"
    );
    let addresses = column(&url, &rows, "address")
        .await
        .expect("the rows can be read");
    let ids = addresses.iter().filter_map(|address| address.rsplit('/').next());
    ids.map(Into::into).collect()
}

async fn seed(seed: u64) {
    let mut random = Random::new(seed);
    let mut domains = start_domains(&PAIR).await;
    // With every other seed they run meanwhile.
    let later = i64::try_from(seed % 2).expect("it is small") * HOUR;
    let start = domain::clock::Clock::system().now().seconds() + later;
    let mut settled = 0;
    for round in 0..ROUNDS {
        let at = *random.choose(&REQUESTS).expect("there are some");
        let fault = *random.choose(&FAULTS).expect("there are some");
        let key = format!("{seed}-{round}");
        let sent = request(&domains[0], &key, start);
        ask_with_fault(&mut domains, sent, at, fault).await;
        let made = is_settled(&domains[0], &key, start).await;
        settled += usize::from(made);
        // A change is one agreement more, which takes the place of the other.
        if made && later > 0 && random.below(3) == 0 {
            let fault = *random.choose(&FAULTS).expect("there are some");
            let key = format!("{key}-changed");
            settled += usize::from(is_changed(&mut domains, &key, "POST /agreements ", fault).await);
        }
        // Every third of them is ended, with a fault at that.
        if made && random.below(3) == 0 {
            let newest = domains[0].agreements().await.remove(0);
            let path = format!(
                "/agreements/{}/terminate",
                newest["id"].as_str().unwrap_or_default()
            );
            let ended = domains[0].requester.request(Method::POST, &path).json(&json!({}));
            let fault = *random.choose(&FAULTS).expect("there are some");
            ask_with_fault(&mut domains, ended, "POST /agreements/", fault).await;
        }
    }
    // One more without a fault, so that there is one at least. A peer that has failed is left alone for a while.
    let mut tries = 0;
    eventually("an agreement is made", PATIENCE, async || {
        tries += 1;
        is_settled(&domains[0], &format!("{seed}-last-{tries}"), start)
            .await
            .then_some(())
    })
    .await;
    let (ours, theirs) = (&domains[0], &domains[1]);
    // An end on one side reaches the other one a moment later.
    eventually("both sides have the same in force", PATIENCE, async || {
        let undecided = ["Pending", "ObservedAndTerminating"];
        let is_decided = in_states(ours, &undecided).await.is_empty();
        let mut here = behind(ours, IS_LIVE).await;
        here.extend(behind(ours, IS_ENDED_TOO_LATE).await);
        let here: BTreeSet<String> = here.into_iter().collect();
        (is_decided && here == in_states(theirs, &LIVE).await).then_some(())
    })
    .await;
    let here = in_states(ours, &LIVE).await;
    let ended = in_states(ours, &["Terminated"]).await;
    let of_keys = here.len() + ended.len();
    assert_eq!(of_keys, settled + 1, "seed {seed}: each key has one agreement");
    // Each of ours has one of theirs behind it, and no other has it.
    let behind = behind(ours, IS_LIVE).await;
    let once: BTreeSet<&String> = behind.iter().collect();
    assert_eq!(
        (behind.len(), once.len()),
        (here.len(), here.len()),
        "seed {seed}"
    );
    for domain in &domains {
        domain.server.assert_verified();
    }
}

#[test]
fn whatever_dies_or_is_cut_off_there_is_no_orphan_and_no_double() {
    let seeds =
        env::var("BESPEAK_TEST_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number of seeds"));
    run(async {
        for number in 0..seeds {
            seed(number).await;
        }
    });
}
