//! What is foreseen of each resource decides, and `predict` says before what an offer gets.

use domain::agreement::{Agreement, AgreementState, EventKind, Execution, RunOutcome, Slots};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use domain::past::{Condition, Sample};
use domain::resources::ResourceRow;
use scheduler::{Interval, Time};
use serde_json::Value;
use store::{Store, samples};

use super::{HOUR, SOON, execution, text, without_duration};
use crate::store::verify::{change, over};
use crate::store::{agreement, create};
use crate::support::eventually;
use crate::support::offers::{Offer, date_time, now};
use crate::support::server::Server;

/// Two resources, of which the faster one is loaded in the second half of each half day.
const RESOURCES: &str = "[scheduling]\nobjective = \"earliest-completion\"\n[[resource]]\nname = \"steady\"\nkind = \"local\"\nnodes = 2\n\
    [[resource]]\nname = \"loaded\"\nkind = \"local\"\nnodes = 2\nrate = 1.5\n";

/// Hours of samples, and one run in each.
const HOURS: i64 = 14 * 24;

fn is_loaded(hour: i64) -> bool {
    hour.rem_euclid(12) >= 6
}

/// A run that ended in an hour.
fn run_in(hour: i64, resource: &str, seconds: i64) -> (Agreement, Execution) {
    let ended = hour * HOUR + 3_000;
    let slot = Interval::of(Time(ended - seconds), seconds);
    let past_agreement = Agreement {
        resource: resource.into(),
        created: (slot.start.seconds() - 60) * MICROS_PER_SECOND,
        ready: slot.start,
        deadline: slot.end,
        duration: seconds,
        slots: Slots::one((slot, 1)),
        ..agreement("operator")
    };
    let execution = Execution {
        application: "sleep".into(),
        arguments: vec!["5".into()],
        resource: resource.into(),
        nodes: 1,
        planned: slot,
        ..execution(&past_agreement, seconds, ended, RunOutcome::Completed)
    };
    (past_agreement, execution)
}

/// Stores two weeks of samples and runs, up to now.
async fn remember(url: &str) {
    let store = Store::open(url).await.expect("a database can be opened");
    let lease = store.acquire_lease().await.expect("no other process decides");
    let mut rows = Vec::new();
    for (name, position) in [("steady", 0), ("loaded", 1)] {
        rows.push(Change::PutResource(ResourceRow {
            position,
            ..ResourceRow::new(name, "local", 2)
        }));
        rows.push(Change::SetCapacity {
            resource: name.into(),
            steps: vec![(0, 2)],
        });
    }
    store
        .commit(lease.epoch, &rows)
        .await
        .expect("resources can be stored");
    let last = now().div_euclid(HOUR);
    for hour in last - HOURS..last {
        let free = if is_loaded(hour) { 100_000 } else { 900_000 };
        for (name, free_cpu) in [("steady", 800_000), ("loaded", free)] {
            let sample = Sample {
                resource: name.into(),
                at: (hour * HOUR + 5) * MICROS_PER_SECOND,
                condition: Condition {
                    free_cpu: Some(free_cpu),
                    ..Condition::default()
                },
            };
            samples::record_sample(&store, &sample)
                .await
                .expect("it can be kept");
        }
        let slowed = if is_loaded(hour) { 1_900 } else { 1_100 };
        let mut batch = Vec::new();
        for (resource, seconds) in [("steady", 1_500 + hour % 7), ("loaded", slowed + hour % 5)] {
            if (hour + i64::from(resource == "steady")) % 3 > 0 {
                let (past_agreement, execution) = run_in(hour, resource, seconds);
                // One that was ended early needs no nodes to be right.
                let ended = over(
                    &past_agreement,
                    AgreementState::Terminated,
                    past_agreement.created + 1,
                );
                batch.extend([
                    create(&past_agreement),
                    change(&ended, &[EventKind::Terminating, EventKind::Closed]),
                    Change::RecordExecution(Box::new(execution)),
                ]);
            }
        }
        store.commit(lease.epoch, &batch).await.expect("it can be stored");
    }
}

/// What `predict` says of the next offer in a window.
fn predicted(server: &Server, (start, end): (i64, i64), more: &[&str]) -> Value {
    let (after, before) = (date_time(start), date_time(end));
    let arguments = [
        &[
            "predict",
            "--app",
            "sleep",
            "--argument",
            "5",
            "--party",
            "operator",
            "--json",
        ],
        &["--after", &after, "--before", &before][..],
        more,
    ];
    let told = server.run(&arguments.concat());
    assert!(told.status.success(), "{}", text(told.stderr));
    serde_json::from_slice(&told.stdout).expect("it is JSON")
}

pub(super) async fn predict_and_the_offer_that_follows_agree_to_the_second(url: String) {
    remember(&url).await;
    let server = Server::configured(Some(&url), RESOURCES);
    let client = server.client();
    // The next hour in which the fast resource is loaded, and one in which it is free.
    let next = now().div_euclid(HOUR) + 2;
    let run_times = |loaded: bool| {
        (next..next + 24).find(|hour| is_loaded(*hour) == loaded && is_loaded(hour + 1) == loaded)
    };
    let [free, loaded] = [run_times(false), run_times(true)].map(|hour| hour.unwrap_or(next) * HOUR);
    eventually("something is learned", SOON, async || {
        let offer = Offer::sleep(5, 3_600).within(free + 40 * 24 * HOUR, free + 41 * 24 * HOUR);
        let id = client
            .post("/agreements", without_duration(&offer))
            .await
            .created();
        let seen = client.get_json(&format!("/agreements/{id}")).await;
        (seen["durationSeconds"] != 3_600).then_some(())
    })
    .await;
    let mut chosen = Vec::new();
    // At the end of an hour the service learns what the hour was like, and until then it knows less than `predict`.
    eventually("the middle of an hour", SOON * 3, async || {
        (30..HOUR - 60).contains(&now().rem_euclid(HOUR)).then_some(())
    })
    .await;
    for (start, length) in [
        (free, 2),
        (loaded, 2),
        (free, 30),
        (loaded, 2),
        (loaded, 2),
        (free, 2),
    ] {
        let window = (start, start + length * HOUR);
        let told = predicted(&server, window, &[]);
        let offer = Offer::sleep(5, 3_600).within(window.0, window.1);
        let id = client
            .post("/agreements", without_duration(&offer))
            .await
            .created();
        let seen = client.get_json(&format!("/agreements/{id}")).await;
        assert_eq!(seen["resource"], told["resource"], "{told:#} {seen:#}");
        assert_eq!(
            seen["plannedStart"], told["earliest"]["start"],
            "{told:#} {seen:#}"
        );
        assert_eq!(
            seen["durationSeconds"], told["slot"]["seconds"],
            "{told:#} {seen:#}"
        );
        let stated = told["slot"]["probability"].as_f64().expect("a number");
        let confidence = seen["confidence"].as_f64().expect("a number");
        assert!((confidence - stated).abs() < 0.0011, "{confidence} {stated}");
        chosen.push((
            told["resource"].as_str().unwrap_or_default().to_owned(),
            told["slot"]["seconds"].as_i64(),
        ));
    }
    // By night the fast one, by day the steady one; and each slot is as long as the work takes there and then.
    assert_eq!(chosen[0].0, "loaded", "{chosen:?}");
    assert_eq!(chosen[1].0, "steady", "{chosen:?}");
    assert!((1_100..1_400).contains(&chosen[0].1.unwrap_or(0)), "{chosen:?}");
    assert!((1_500..1_700).contains(&chosen[1].1.unwrap_or(0)), "{chosen:?}");
    // On the loaded one it would take longer then.
    let there = predicted(&server, (loaded, loaded + 3 * HOUR), &["--resource", "loaded"]);
    assert!(there["slot"]["seconds"].as_i64() > Some(1_800), "{there:#}");
    // What is stated is held.
    let stated = predicted(&server, (free, free + 9 * HOUR), &["--for", "900"]);
    let offer = Offer::sleep(5, 900).within(free, free + 9 * HOUR);
    let id = client.post("/agreements", offer.xml()).await.created();
    let seen = client.get_json(&format!("/agreements/{id}")).await;
    assert_eq!(seen["durationSeconds"], 900);
    assert_eq!(
        (&seen["resource"], &seen["plannedStart"]),
        (&stated["resource"], &stated["earliest"]["start"]),
        "{stated:#}"
    );
    candidates_are_compared_in_words(&server, (free, free + 9 * HOUR));
    server.assert_verified();
}

fn candidates_are_compared_in_words(server: &Server, (start, end): (i64, i64)) {
    let (after, before) = (date_time(start), date_time(end));
    let asked = ["predict", "--after", &after, "--before", &before, "--app"];
    let told = text(
        server
            .run(&[&asked[..], &["sleep", "--argument", "5"]].concat())
            .stdout,
    );
    for expected in [
        "candidates",
        "steady: ",
        "loaded: ",
        "chosen: ",
        "the earliest expected completion",
        "mean of ",
        "for the load",
        "expected completion: ",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in {told}");
    }
    let unknown = server.run(&[&asked[..], &["nothing"]].concat());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(unknown.stderr).contains("not in the catalogue; it has"));
    // Arguments that an offer would be refused for, in the words of that refusal.
    for (arguments, expected) in [
        (&["--argument", "a-word"][..], "argument 1 of sleep: expected "),
        (&[], "argument 1 of sleep: expected "),
        (
            &["--argument", "5", "--argument", "6"],
            "argument 2 of sleep: expected no more than 1 argument\n",
        ),
    ] {
        let refused = server.run(&[&asked[..], &["sleep"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let told = text(refused.stderr);
        assert!(told.contains(expected), "{told}");
    }
    let elsewhere = ["sleep", "--argument", "5", "--resource", "moon"];
    let elsewhere = server.run(&[&asked[..], &elsewhere].concat());
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(text(elsewhere.stderr).contains("steady, loaded"));
    let calibrated = text(server.run(&["calibrate"]).stdout);
    for expected in ["history alone", "with load", "loaded ", "steady ", "trust RT (s)"] {
        assert!(
            calibrated.contains(expected),
            "{expected:?} is not in {calibrated}"
        );
    }
    let calibrated: Value =
        serde_json::from_slice(&server.run(&["calibrate", "--json"]).stdout).expect("JSON");
    let weights = calibrated["weights"].as_array().expect("a list");
    let one_weight = weights
        .iter()
        .find(|weight| weight["resource"] == "loaded")
        .expect("it is there");
    assert!(
        one_weight["load"].as_f64().is_some_and(|weight| weight > 0.9),
        "{calibrated:#}"
    );
}
