//! Past runs predict how long the next will take, and a prediction is shown with its reasons.

mod forecasts;
mod knowledge;

use forecasts::predict_and_the_offer_that_follows_agree_to_the_second;

use std::time::Duration;

use domain::agreement::{Agreement, AgreementState, Execution, RunOutcome};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use domain::past::{Condition, PastExecution, Sample};
use prediction::Knowledge;
use scheduler::{Interval, Time};
use serde_json::Value;
use store::execution_hours;
use store::past_executions::{self, LearnedExecutions};
use store::pruning::{self, KeptExecutions};
use store::samples::{self, SamplesKept};
use store::{Error, Store};

use crate::portal::browser::Browser;
use crate::store::{RESOURCE, agreement, create, decide};
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    executions_are_read_by_their_ends_with_whose_they_were,
    old_samples_become_hours_and_say_the_same,
    a_sample_of_no_resource_is_refused,
    what_runs_seldom_is_not_forgotten_for_what_runs_often,
    old_executions_become_sums_and_no_estimate_changes;
    a_release_on_postgres:
    a_slot_is_sized_by_what_executions_took_and_says_how_sure_it_is,
    predict_and_the_offer_that_follows_agree_to_the_second,
);

/// No job or task here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);

const HOUR: i64 = 3_600;

/// This many of the last ones of all, and nothing else that matters here.
fn last(newest: u32) -> LearnedExecutions {
    LearnedExecutions { newest, each: 1 }
}

/// An execution of an agreement that ended `ended` seconds after the epoch.
fn execution(one_agreement: &Agreement, run: i64, ended: i64, outcome: RunOutcome) -> Execution {
    Execution {
        agreement: one_agreement.id,
        application: "solve".into(),
        version: None,
        arguments: vec!["case".into()],
        input_bytes: 0,
        output_bytes: 0,
        resource: RESOURCE.into(),
        nodes: 2,
        planned: Interval::of(Time(ended - run), 1_000),
        estimate: 1_000,
        queue_time: 0,
        run_time: run * MICROS_PER_SECOND,
        transfer_in: 0,
        transfer_out: 0,
        moved_in: 0,
        moved_out: 0,
        outcome,
        ended: ended * MICROS_PER_SECOND,
    }
}

async fn executions_are_read_by_their_ends_with_whose_they_were(url: String) {
    let (store, lease) = decide(&url).await;
    assert_eq!(
        past_executions::end_of_last_past_execution(&store)
            .await
            .expect("an answer"),
        None
    );
    let mut expected = vec![];
    for (party, ended) in [("a", 300), ("b", 100), ("c", 200)] {
        let agreement = agreement(party);
        let execution = execution(&agreement, 50, ended, RunOutcome::Completed);
        let batch = [
            create(&agreement),
            Change::RecordExecution(Box::new(execution.clone())),
        ];
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
        expected.push(PastExecution {
            execution,
            party: party.into(),
            agreed: agreement.created,
        });
    }
    expected.sort_by_key(|past| past.execution.ended);
    assert_eq!(
        past_executions::past_executions(&store, last(9))
            .await
            .expect("they are there"),
        expected
    );
    assert_eq!(
        past_executions::past_executions(&store, last(2))
            .await
            .expect("they are there"),
        expected[1..],
        "the last ones"
    );
    let last = past_executions::end_of_last_past_execution(&store)
        .await
        .expect("an answer");
    assert_eq!(last, Some(300 * MICROS_PER_SECOND));
}

async fn what_runs_seldom_is_not_forgotten_for_what_runs_often(url: String) {
    let (store, lease) = decide(&url).await;
    let past_agreement = Agreement {
        state: AgreementState::Complete,
        ..agreement("a")
    };
    let one = |application: &str, resource: &str, ended: i64| Execution {
        application: application.into(),
        resource: resource.into(),
        ..execution(&past_agreement, 50, ended, RunOutcome::Completed)
    };
    let mut past: Vec<_> = (100..105)
        .map(|ended| one("a-seldom", RESOURCE, ended))
        .chain((105..109).map(|ended| one("solve", "elsewhere", ended)))
        .chain((109..112).map(|ended| one("z-seldom", "elsewhere", ended)))
        .chain((200..230).map(|ended| one("solve", RESOURCE, ended)))
        .collect();
    let record = |one: &Execution| Change::RecordExecution(Box::new(one.clone()));
    let mut batch = vec![create(&past_agreement)];
    batch.extend(past.iter().map(record));
    store.commit(lease.epoch, &batch).await.expect("it can be stored");
    let learned = LearnedExecutions { newest: 10, each: 3 };
    let read = async || -> Vec<Execution> {
        let past = past_executions::past_executions(&store, learned)
            .await
            .expect("they are there");
        past.into_iter().map(|past| past.execution).collect()
    };
    // The last ten of all, and the last three of each of the others.
    past.retain(|one| ![100, 101, 105].contains(&(one.ended / MICROS_PER_SECOND)));
    past.retain(|one| !(200..220).contains(&(one.ended / MICROS_PER_SECOND)));
    assert_eq!(read().await, past);
    let kept = KeptExecutions {
        since: i64::MAX,
        each: 1,
        learned,
    };
    assert_eq!(
        pruning::prune_executions(&store, &kept, 100)
            .await
            .expect("it can"),
        23
    );
    assert_eq!(read().await, past, "executions that are learned from are kept");
}

fn sample(at: i64, free_cpu: i64, bandwidth_in: Option<i64>) -> Sample {
    Sample {
        resource: RESOURCE.into(),
        at: at * MICROS_PER_SECOND,
        condition: Condition {
            free_cpu: Some(free_cpu),
            bandwidth_in,
            nodes_up: Some(8),
            ..Condition::default()
        },
    }
}

async fn old_samples_become_hours_and_say_the_same(url: String) {
    let (store, _lease) = decide(&url).await;
    let first = 1_000 * HOUR;
    for (second, free, bandwidth) in [
        (0, 100_000, None),
        (60, 300_000, Some(70)),
        (HOUR - 1, 500_003, Some(75)),
        (HOUR, 900_000, None),
        (10 * HOUR, 200_000, Some(1)),
    ] {
        samples::record_sample(&store, &sample(first + second, free, bandwidth))
            .await
            .expect("it can be kept");
    }
    // The same instant again changes nothing.
    samples::record_sample(&store, &sample(first, 999_999, None))
        .await
        .expect("it is there already");
    let before = samples::sample_hours_of_resources(&store, Time(0))
        .await
        .expect("they are there");
    let seen: Vec<_> = before
        .iter()
        .map(|hour| {
            (
                hour.start.0 - first,
                hour.samples,
                hour.condition.free_cpu,
                hour.condition.bandwidth_in,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (0, 3, Some(300_001), Some(72)),
            (HOUR, 1, Some(900_000), None),
            (10 * HOUR, 1, Some(200_000), Some(1)),
        ]
    );
    // Half of the second hour is older than is kept: it stays as it is until all of it is.
    let kept = SamplesKept {
        samples: 3 * 24 * HOUR,
        hours: 50 * 24 * HOUR,
    };
    let now = Time(first + kept.samples + HOUR + HOUR / 2);
    for _ in 0..2 {
        samples::fold_samples(&store, now, kept)
            .await
            .expect("they can be folded");
        assert_eq!(
            samples::sample_hours_of_resources(&store, Time(0))
                .await
                .expect("they are there"),
            before
        );
    }
    let later = samples::sample_hours_of_resources(&store, Time(first + HOUR))
        .await
        .expect("they are there");
    assert_eq!(later, before[1..]);
    samples::fold_samples(&store, now + (kept.hours - kept.samples), kept)
        .await
        .expect("they can be folded");
    let left = samples::sample_hours_of_resources(&store, Time(0))
        .await
        .expect("they are there");
    assert_eq!(left, before[1..], "the oldest are forgotten");
}

/// Two executions an hour, of two applications and with two outcomes; every tenth of an agreement that goes on.
fn two_an_hour(over: &Agreement, live: &Agreement) -> Vec<Execution> {
    let one = |number: i64| {
        let state = if number % 10 == 0 { live } else { over };
        let outcome = match number % 3 {
            0 => RunOutcome::Failed { exit: 1 },
            _ => RunOutcome::Completed,
        };
        Execution {
            application: if number % 2 == 0 { "solve" } else { "mesh" }.into(),
            output_bytes: number,
            ..execution(state, 50 + number, 10_000 * HOUR + number * HOUR / 2, outcome)
        }
    };
    (0..200).map(one).collect()
}

async fn old_executions_become_sums_and_no_estimate_changes(url: String) {
    const LEARNED: u32 = 40;
    let (store, lease) = decide(&url).await;
    let over = Agreement {
        state: AgreementState::Complete,
        ..agreement("a")
    };
    let live = agreement("b");
    let count = |number: usize| i64::try_from(number).expect("few");
    let before = two_an_hour(&over, &live);
    let of_live = before.iter().filter(|one| one.agreement == live.id).count();
    let mut batch = vec![create(&over), create(&live)];
    let record = |one: &Execution| Change::RecordExecution(Box::new(one.clone()));
    batch.extend(before.iter().map(record));
    store.commit(lease.epoch, &batch).await.expect("it can be stored");
    let past = async |count| {
        let past = past_executions::past_executions(&store, last(count)).await;
        past.expect("they are there")
    };
    let prune = async |kept: &KeptExecutions, at_most| {
        let pruned = pruning::prune_executions(&store, kept, at_most).await;
        pruned.expect("it can")
    };
    let hours_pruned = async || {
        execution_hours::pruned_execution_hours(&store)
            .await
            .expect("they are there")
    };
    let knowledge = async || {
        let past = past(LEARNED).await;
        Knowledge::of(&past, &[], Default::default(), Time(0))
    };
    let known = knowledge().await;
    let none_is_old = KeptExecutions {
        since: 0,
        each: 1,
        learned: last(LEARNED),
    };
    assert_eq!(prune(&none_is_old, 1_000).await, 0);
    // All are old except the last forty; twenty of these are of either application.
    let kept = KeptExecutions {
        since: i64::MAX,
        each: 30,
        learned: last(LEARNED),
    };
    let mut pruned = 0;
    while let count @ 1.. = prune(&kept, 33).await {
        pruned += count;
    }
    assert_eq!(knowledge().await, known);
    let left = past(1_000).await;
    assert_eq!(left.len() + pruned, 200);
    let lives = left.iter().filter(|past| past.execution.agreement == live.id);
    assert_eq!(lives.count(), of_live, "they go on");
    for application in ["solve", "mesh"] {
        let one_application = |past: &&PastExecution| past.execution.application == application;
        let last: Vec<_> = left.iter().filter(one_application).rev().take(30).collect();
        let expected: Vec<_> = before
            .iter()
            .filter(|each| each.application == application)
            .rev()
            .take(30)
            .collect();
        assert!(
            last.iter()
                .zip(expected)
                .all(|(past, one)| past.execution == *one)
        );
    }
    let hours = hours_pruned().await;
    let sum =
        |function: fn(&store::execution_hours::ExecutionHour) -> i64| hours.iter().map(function).sum::<i64>();
    let gone = before
        .iter()
        .filter(|one| !left.iter().any(|past| past.execution == **one));
    let gone: Vec<_> = gone.collect();
    assert_eq!(sum(|hour| hour.runs), count(gone.len()));
    assert_eq!(
        sum(|hour| hour.run_time),
        gone.iter().map(|one| one.run_time).sum::<i64>()
    );
    assert_eq!(
        sum(|hour| hour.output_bytes),
        gone.iter().map(|one| one.output_bytes).sum::<i64>()
    );
    let first = &hours[0];
    assert_eq!(
        (first.application.as_str(), first.start),
        ("mesh", Time(10_000 * HOUR))
    );
    // A further one of an hour that has sums is added to them.
    let late = execution(&over, 7, 10_000 * HOUR + 7, RunOutcome::Completed);
    let late = [Change::RecordExecution(Box::new(Execution {
        application: "mesh".into(),
        ..late
    }))];
    store.commit(lease.epoch, &late).await.expect("it can be stored");
    assert_eq!(prune(&kept, 33).await, 1);
    let again = hours_pruned().await;
    assert_eq!((again.len(), again[0].runs), (hours.len(), first.runs + 1));
    every_run_is_shown_once(&url, 201, count(gone.len()) + 1);
}

/// Runs `bespeak executions` on a store of `runs` runs of two applications; `summed` of them are known by sums only.
fn every_run_is_shown_once(url: &str, runs: i64, summed: i64) {
    let listed = |more: &[&str]| {
        let program = env!("CARGO_BIN_EXE_bespeak");
        let arguments = [&["executions", "--database-url", url], more].concat();
        let output = std::process::Command::new(program).args(arguments).output();
        let output = output.expect("it can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let lines = |more: &[&str]| -> Vec<serde_json::Value> {
        serde_json::from_str(&listed(&[&["--json"], more].concat())).expect("it is JSON")
    };
    let sum = |lines: &[serde_json::Value], name: &str| -> i64 {
        lines.iter().filter_map(|line| line[name].as_i64()).sum()
    };
    let all = lines(&[]);
    assert_eq!(all.len(), 4, "two applications, two outcomes: {all:#?}");
    assert_eq!((sum(&all, "runs"), sum(&all, "summed")), (runs, summed));
    let hours = lines(&["--hours", "--app", "mesh"]);
    assert!(hours.len() > all.len() && hours.iter().all(|line| line["firstHour"] == line["lastHour"]));
    let mesh: Vec<_> = all
        .iter()
        .filter(|line| line["application"] == "mesh")
        .cloned()
        .collect();
    assert_eq!(sum(&hours, "runs"), sum(&mesh, "runs"));
    let text = listed(&["--app", "mesh"]);
    assert_eq!(text.lines().count(), 3, "{text}");
}

async fn a_sample_of_no_resource_is_refused(url: String) {
    let (store, _lease) = decide(&url).await;
    let nowhere = Sample {
        resource: "nowhere".into(),
        ..sample(0, 1, None)
    };
    let refused = samples::record_sample(&store, &nowhere).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}

/// An offer that leaves the duration to the service.
fn without_duration(offer: &Offer) -> String {
    offer.xml().replace("<arp:Duration>3600</arp:Duration>", "")
}

async fn a_slot_is_sized_by_what_executions_took_and_says_how_sure_it_is(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let unknown = client
        .post("/agreements", without_duration(&Offer::sleep(1, 3_600)))
        .await
        .created();
    let unknown = client.get_json(&format!("/agreements/{unknown}")).await;
    assert_eq!(
        unknown["durationSeconds"], 3_600,
        "nothing is known yet: {unknown}"
    );
    assert_eq!(unknown["confidence"], Value::Null);

    for _ in 0..4 {
        client
            .post("/agreements", Offer::sleep(1, 20).xml())
            .await
            .created();
    }
    // As runs end, they become known. The window has room for as many offers as are made until then.
    let later = Offer::sleep(1, 3_600).within(now() + 86_400, now() + 300 * 86_400);
    let seen = eventually("a slot sized by executions", SOON, async || {
        let id = client
            .post("/agreements", without_duration(&later))
            .await
            .created();
        let seen = client.get_json(&format!("/agreements/{id}")).await;
        let sized = seen["durationSeconds"]
            .as_i64()
            .is_some_and(|seconds| seconds < 20);
        sized.then_some(seen)
    })
    .await;
    let seconds = seen["durationSeconds"].as_i64().unwrap_or_default();
    assert!((1..20).contains(&seconds), "{seen}");
    let confidence = seen["confidence"].as_f64().expect("it is known");
    assert!((0.5..=1.0).contains(&confidence), "{seen}");
    let document = client
        .get(&format!(
            "/agreements/{}",
            seen["id"].as_str().unwrap_or_default()
        ))
        .await;
    let written: f64 = document.text("Confidence").parse().expect("a number");
    assert!((written - confidence).abs() < 1e-9, "{written} {confidence}");

    let id = seen["id"].as_str().unwrap_or_default();
    let shown = text(server.run(&["show", id]).stdout);
    let percent = format!("{:.1} % that its job ends", 100.0 * confidence);
    assert!(shown.contains(&percent), "{percent:?} is not in {shown}");

    offers_say_how_sure_they_are(&client, &server).await;
    predict_explains_step_by_step(&server);

    // This one is agreed when others have ended, so that something would have been stated.
    client
        .post("/agreements", Offer::sleep(1, 20).xml())
        .await
        .created();
    let table = eventually("a statement and its outcome", SOON, async || {
        let calibrated = server.run(&["calibrate"]);
        calibrated.status.success().then(|| text(calibrated.stdout))
    })
    .await;
    assert!(
        table.contains("90 % interval") && table.contains("outcomes"),
        "{table}"
    );
    let browser = Browser::signed_in(&server, server.key()).await;
    eventually("the same on a page", SOON, async || {
        let page = browser.get("/portal/operator/reliability").await;
        (page.body.contains("90 % interval") && page.body.contains("should hold 90 % of the runs"))
            .then_some(())
    })
    .await;

    let store = Store::open(&url)
        .await
        .expect("the store can be read beside the service");
    eventually("a sample of this machine", SOON, async || {
        let hours = samples::sample_hours_of_resources(&store, Time(0))
            .await
            .expect("an answer");
        hours.into_iter().find(|hour| {
            hour.resource == RESOURCE
                && hour.condition.nodes_up == Some(4)
                && hour.condition.free_cpu.is_some()
        })
    })
    .await;
    server.assert_verified();
}

/// Offers of such a job state the same as the agreement would, in both representations and in the table. Offers of unknown
/// applications, and offers that run nothing, state nothing.
async fn offers_say_how_sure_they_are(client: &Client, server: &Server) {
    let start = now() + 100_000;
    let known = Offer::sleep(1, 30).within(start, start + 30);
    let id = open(client).await;
    let ask = |id: &str, offer: &Offer| SentOffer {
        state: "Advisory",
        ..SentOffer::solicited(id, offer.clone())
    };
    let answers = negotiate(client, id, &[ask("a", &known), ask("b", &Offer::reserve(1, 30))]).await;
    let sure: f64 = answers[0].text("Confidence").parse().expect("a number");
    assert!((0.5..=1.0).contains(&sure), "{answers:?}");
    assert!(answers[1].texts("Confidence").is_empty(), "{answers:?}");
    let offers = client.get_json(&format!("/negotiations/{id}")).await;
    assert_eq!(offers["offers"][1]["confidence"], sure, "{offers}");
    assert_eq!(offers["offers"][3]["confidence"], Value::Null, "{offers}");
    // A slot that is too short for nearly all of them is less sure.
    let short = Offer::sleep(1, 1).within(start, start + 1);
    let less = negotiate(client, id, &[ask("c", &short)]).await;
    let less: f64 = less[0].text("Confidence").parse().expect("a number");
    assert!(less < sure, "{less} {sure}");
    let asked = [
        "negotiate",
        "--app",
        "sleep",
        "--nodes",
        "1",
        "--for",
        "30s",
        "--",
        "1",
    ];
    let table = text(server.run(&asked).stdout);
    let mut words = table.split_whitespace();
    let shown: f64 = words
        .find_map(|word| word.strip_suffix('%')?.parse().ok())
        .expect("a probability");
    assert!((shown - 100.0 * sure).abs() < 0.1, "{sure}: {table}");
}

/// The prediction for another such job, in words and in JSON, and where there is no room for it.
fn predict_explains_step_by_step(server: &Server) {
    let before = date_time(now() + 600);
    let arguments = [
        "predict",
        "--app",
        "sleep",
        "--resource",
        "local",
        "--before",
        &before,
        "--argument",
        "1",
    ];
    let predicted = server.run(&arguments);
    let told = text(predicted.stdout);
    for expected in [
        "executions on this resource",
        "processors",
        "completion",
        "slot:",
        "what decides",
    ] {
        let why = text(predicted.stderr.clone());
        assert!(told.contains(expected), "{expected:?} is not in {told}{why}");
    }
    let told: Value =
        serde_json::from_slice(&server.run(&[&arguments[..], &["--json"]].concat()).stdout).expect("JSON");
    assert!(told["slot"]["seconds"].as_i64().is_some_and(|s| s < 20), "{told}");
    let crowded = server.run(&[&arguments[..], &["--nodes", "5"]].concat());
    assert_eq!(crowded.status.code(), Some(1));
    assert!(text(crowded.stderr).contains("no gap"), "there are four nodes");
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the output is text")
}
