//! The lines of the audit trail besides the changes of agreements: offers, refusals and keys, for their party and for operators;
//! and that none of them can be changed unseen.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use sha2::{Digest, Sha256};
use store::trail_lines::{self, TrailLine};
use store::{Finding, Invariant, Store, hex};
use uuid::Uuid;

use crate::portal::browser::{Browser, Form};
use crate::store::tamper;
use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    operators_read_keys_and_refusals_in_the_trail,
    sign_ins_have_a_line_each_and_failed_ones_share_few,
    a_sign_in_whose_line_is_not_stored_ends_no_session,
    failed_sign_ins_whose_line_is_not_stored_are_in_the_next_line,
    whoever_changes_what_was_noted_is_found,
    a_trail_that_was_written_anew_by_its_public_formula_is_found_by_its_signed_heads;
    a_release_on_postgres:
    a_timeline_begins_with_what_was_negotiated,
    a_party_that_is_refused_without_end_is_noted_for_a_while_only,
);

/// Asks for nodes in a window of three hours, three hours ahead.
async fn negotiated(client: &Client, more: &Value) -> Value {
    let later = hours_ahead(3);
    let mut asked = json!({"nodes": 2, "durationSeconds": 3_600,
        "window": {"start": date_time(later), "end": date_time(later + 10_800)}});
    for (name, value) in more.as_object().into_iter().flatten() {
        asked[name] = value.clone();
    }
    let answer = client.post_json("/negotiations", &asked).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.json()
}

/// Kind and detail of each line of an agreement's timeline.
async fn told(client: &Client, agreement: &str) -> Vec<(String, String)> {
    let timeline = client.get_json(&format!("/agreements/{agreement}/events")).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = timeline["events"].as_array().cloned().unwrap_or_default();
    events
        .iter()
        .map(|event| (text(&event["kind"]), text(&event["detail"])))
        .collect()
}

/// Every line of the trail, read in small pages.
async fn trail(operator: &Client) -> Vec<Value> {
    let (mut lines, mut after) = (Vec::new(), 0);
    loop {
        let page = operator.get_json(&format!("/events?limit=3&after={after}")).await;
        lines.extend(page["lines"].as_array().cloned().unwrap_or_default());
        match page["next"].as_i64() {
            Some(next) => after = next,
            None => return lines,
        }
    }
}

/// The lines of a kind.
async fn lines_of(operator: &Client, kind: &str) -> Vec<Value> {
    let mut lines = trail(operator).await;
    lines.retain(|line| line["kind"] == kind);
    lines
}

async fn sign_ins_have_a_line_each_and_failed_ones_share_few(url: String) {
    const FAILED: usize = 6;
    let mut server = Server::start(&url);
    let operator = server.client();
    let wish = json!({ "party": "physics", "role": "consumer", "label": "a \"laptop\"" });
    let key = operator.post_json("/keys", &wish).await.json();
    let secret = key["key"].as_str().expect("it is shown once").to_owned();
    for _ in 0..2 {
        Browser::signed_in(&server, &secret).await;
    }
    let signed_in = lines_of(&operator, "signed-in").await;
    assert_eq!(signed_in.len(), 2, "{signed_in:?}");
    for line in signed_in {
        assert_eq!(
            (&line["subject"], &line["party"]),
            (&key["id"], &json!("physics"))
        );
        assert_eq!(line["detail"], "from 127.0.0.1: \"a \\\"laptop\\\"\"");
    }

    let fail = async || {
        let form = Form::default().with("key", "bsp_guessed");
        let page = Browser::new(&server).post("/portal/sign-in", &form).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{page:?}");
    };
    fail().await;
    eventually(
        "the first one is noted at once",
        Duration::from_mins(1),
        async || {
            let failed = lines_of(&operator, "sign-in-failed").await;
            (failed.first()?["detail"] == "1 from 127.0.0.1").then_some(())
        },
    )
    .await;
    for _ in 1..FAILED {
        fail().await;
    }
    // The last ones are noted at the end.
    server.stop();
    server.restart();
    let failed = lines_of(&server.client(), "sign-in-failed").await;
    let counts = failed.iter().map(|line| {
        let detail = line["detail"].as_str().expect("it has one");
        let count = detail
            .strip_suffix(" from 127.0.0.1")
            .expect("it names the address");
        count.parse::<usize>().expect("it counts")
    });
    assert_eq!(counts.sum::<usize>(), FAILED, "{failed:?}");
    assert!(failed.len() < FAILED, "{failed:?}");
    server.assert_verified();
}

async fn a_sign_in_whose_line_is_not_stored_ends_no_session(url: String) {
    let server = Server::start(&url);
    let early = Browser::signed_in(&server, server.key()).await;
    let no_second = "CREATE UNIQUE INDEX no_second ON notes (kind) WHERE kind = 'signed-in'";
    tamper(&url, no_second).await;
    let form = Form::default().with("key", server.key());
    // More than the sessions that a key may have.
    for _ in 0..33 {
        let mut late = Browser::new(&server);
        let answer = late.post("/portal/sign-in", &form).await;
        assert!(answer.status.is_server_error(), "{answer:?}");
        assert_eq!(late.cookie, None);
    }
    assert_eq!(early.get("/portal/operator").await.status, StatusCode::OK);
    tamper(&url, "DROP INDEX no_second").await;
    Browser::signed_in(&server, server.key()).await;
    assert_eq!(lines_of(&server.client(), "signed-in").await.len(), 2);
    server.assert_verified();
}

async fn failed_sign_ins_whose_line_is_not_stored_are_in_the_next_line(url: String) {
    let mut server = Server::start(&url);
    // The first key has its line: one of the other kind would be a second row.
    let no_line = "CREATE UNIQUE INDEX no_line ON notes \
        ((CASE kind WHEN 'sign-in-failed' THEN 'key-added' ELSE kind END)) \
        WHERE kind IN ('key-added', 'sign-in-failed')";
    tamper(&url, no_line).await;
    let form = Form::default().with("key", "bsp_guessed");
    let page = Browser::new(&server).post("/portal/sign-in", &form).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{page:?}");
    eventually("the line is tried", Duration::from_mins(1), async || {
        let said = "failed sign-ins are not in the audit trail";
        server.log().contains(said).then_some(())
    })
    .await;
    tamper(&url, "DROP INDEX no_line").await;
    server.stop();
    server.restart();
    let failed = lines_of(&server.client(), "sign-in-failed").await;
    let details: Vec<_> = failed.iter().map(|line| &line["detail"]).collect();
    assert_eq!(details, ["1 from 127.0.0.1"]);
    server.assert_verified();
}

async fn a_timeline_begins_with_what_was_negotiated(url: String) {
    let server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let first = negotiated(&physics, &json!({})).await;
    let offer = first["offers"][0]["id"].as_str().expect("an offer").to_owned();
    let accepted = physics.post_json("/agreements", &json!({ "offer": offer })).await;
    let id = accepted.created().to_string();
    let lines = told(&physics, &id).await;
    let kinds: Vec<&str> = lines.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds[..3], ["negotiating", "asked", "countered"], "{lines:?}");
    let place = |kind| {
        kinds
            .iter()
            .position(|one_kind| *one_kind == kind)
            .expect("it is told")
    };
    assert!(place("countered") < place("accepted"), "{lines:?}");
    assert!(place("accepted") < place("taken"), "{lines:?}");
    assert!(lines[2].1.contains("held: 2 nodes of local"), "{lines:?}");
    assert!(
        lines[place("taken")].1.ends_with(&format!("by {id}")),
        "{lines:?}"
    );

    // A change of it stands in the timelines of both agreements, and an offer that was not taken lapses.
    let change = negotiated(&physics, &json!({"agreement": id, "nodes": 1})).await;
    let change = change["offers"][0]["id"].as_str().expect("an offer").to_owned();
    let changed = physics
        .post_json("/agreements", &json!({ "offer": change }))
        .await;
    let new = changed.created().to_string();
    for one in [&id, &new] {
        let lines = told(&physics, one).await;
        let taken = lines
            .iter()
            .any(|(kind, detail)| kind == "taken" && detail.ends_with(&new));
        assert!(taken, "{lines:?}");
    }
    assert!(told(&physics, &id).await.len() > told(&physics, &new).await.len());
    // At the command line it is the same.
    let shown = server.run(&["show", &new, "--key", server.key()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("countered"), "{shown}");
    server.assert_verified();
}

async fn operators_read_keys_and_refusals_in_the_trail(url: String) {
    let server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let later = hours_ahead(3);
    let offer = |nodes| Offer::reserve(nodes, 3_600).within(later, later + 3_600).xml();
    let id = physics.post("/agreements", offer(3)).await.created().to_string();
    let refused = physics.post("/agreements", offer(2)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let keys = server.run(&["key", "list", "--json"]);
    let keys: Value = serde_json::from_slice(&keys.stdout).expect("it is JSON");
    let keys = keys
        .as_array()
        .or_else(|| keys["keys"].as_array())
        .expect("a list");
    let key = keys
        .iter()
        .find(|key| key["party"] == "physics")
        .expect("it is listed");
    let revoked = server.run(&["key", "revoke", key["id"].as_str().expect("an id")]);
    assert!(revoked.status.success());

    let lines = trail(&server.client()).await;
    let numbers: Vec<i64> = lines.iter().filter_map(|line| line["number"].as_i64()).collect();
    assert!(
        numbers
            .iter()
            .copied()
            .eq(1..=i64::try_from(lines.len()).expect("few"))
    );
    let lines_of = |kind: &str, party: &str| {
        let found = lines
            .iter()
            .find(|line| line["kind"] == kind && (line["party"] == party || party.is_empty()));
        found.unwrap_or_else(|| panic!("{kind} of {party}: {lines:#?}"))
    };
    assert_eq!(
        lines_of("key-added", "operator")["detail"],
        "as operator: \"made at start\""
    );
    assert_eq!(lines_of("key-added", "physics")["subject"], key["id"]);
    assert_eq!(lines_of("key-revoked", "")["subject"], key["id"]);
    assert_eq!(lines_of("accepted", "")["subject"], id.as_str());
    let why = lines_of("refused", "physics")["detail"]
        .as_str()
        .unwrap_or_default();
    assert!(why.starts_with("NO_CAPACITY_IN_WINDOW: "), "{why}");
    // A page at a time, and at the command line.
    let page = server.client().get_json("/events?limit=2").await;
    assert_eq!(page["lines"].as_array().map(Vec::len), Some(2), "{page}");
    assert_eq!(page["next"], 2, "{page}");
    let printed = server.run(&["trail", "--limit", "0", "--key", server.key()]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert_eq!(printed.lines().count(), lines.len(), "{printed}");
    assert!(printed.contains("NO_CAPACITY_IN_WINDOW"), "{printed}");
    server.assert_verified();
}

/// Changes to the notes, and the faults that must be found then.
const DAMAGE: &[(&str, &str)] = &[
    (
        "UPDATE notes SET party = 'chemistry' WHERE kind = 'key-added'",
        "is not what was written",
    ),
    (
        "UPDATE notes SET party = NULL WHERE kind = 'refused'",
        "is not what was written",
    ),
    (
        "UPDATE notes SET detail = 'free' WHERE kind = 'countered'",
        "is not what was written",
    ),
    (
        "UPDATE notes SET at_us = at_us + 1 WHERE kind = 'negotiating'",
        "is not what was written",
    ),
    (
        "UPDATE notes SET negotiation = NULL WHERE kind = 'asked'",
        "what has become of offer",
    ),
    ("DELETE FROM notes WHERE kind = 'refused'", "is missing"),
    (
        "DELETE FROM notes WHERE kind = 'taken'",
        "what has become of offer",
    ),
    (
        "DELETE FROM notes WHERE kind = 'released'",
        "what has become of offer",
    ),
    (
        "DELETE FROM notes WHERE kind = 'negotiating'",
        "what has become of negotiation",
    ),
    (
        "DELETE FROM notes WHERE kind = 'withdrawn'",
        "what has become of negotiation",
    ),
    (
        "DELETE FROM notes WHERE kind = 'key-revoked'",
        "what has become of key",
    ),
    (
        "UPDATE api_keys SET revoked_us = 1 WHERE party = 'operator'",
        "what has become of key",
    ),
];

async fn whoever_changes_what_was_noted_is_found(url: String) {
    let mut server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let asked = negotiated(&physics, &json!({})).await;
    let offer = asked["offers"][0]["id"].as_str().expect("an offer").to_owned();
    physics
        .post_json("/agreements", &json!({ "offer": offer }))
        .await
        .created();
    let other = negotiated(&physics, &json!({})).await;
    let withdrawn = format!("/negotiations/{}/terminate", other["id"].as_str().expect("an id"));
    let ending = physics
        .post(
            &withdrawn,
            file("tests/messages/m17-negotiation-terminate-input.xml"),
        )
        .await;
    assert_eq!(ending.status, StatusCode::OK, "{ending:?}");
    let start = asked["offers"][0]["start"].as_str().expect("a start");
    let later = start.parse::<jiff::Timestamp>().expect("an instant").as_second();
    let too_many = Offer::reserve(4, 10_800).within(later, later + 10_800).xml();
    assert_eq!(
        physics.post("/agreements", too_many).await.status,
        StatusCode::CONFLICT
    );
    let keys = server.run(&["key", "list", "--json"]);
    let keys = String::from_utf8_lossy(&keys.stdout).into_owned();
    let keys: Value = serde_json::from_str(&keys).expect("it is JSON");
    let keys = keys
        .as_array()
        .or_else(|| keys["keys"].as_array())
        .expect("a list");
    let key = keys
        .iter()
        .find(|key| key["party"] == "physics")
        .expect("it is listed");
    assert!(
        server
            .run(&["key", "revoke", key["id"].as_str().expect("an id")])
            .status
            .success()
    );
    server.stop();

    let store = Store::open(&url).await.expect("it can be opened");
    assert_eq!(findings(&store).await, []);
    tamper(&url, "CREATE TABLE kept AS SELECT * FROM notes").await;
    for (sql, said) in DAMAGE {
        tamper(&url, sql).await;
        let found = findings(&store).await;
        let names = |finding: &Finding| finding.invariant == Invariant::I10 && finding.what.contains(said);
        assert!(found.iter().any(names), "{sql}: {found:#?}");
        let mended = "DELETE FROM notes; INSERT INTO notes SELECT * FROM kept; \
            UPDATE api_keys SET revoked_us = NULL WHERE party = 'operator'";
        tamper(&url, mended).await;
        assert_eq!(findings(&store).await, [], "{sql}");
    }
}

async fn findings(store: &Store) -> Vec<Finding> {
    store.verify().await.expect("it can be read")
}

async fn a_party_that_is_refused_without_end_is_noted_for_a_while_only(url: String) {
    let server = Server::start(&url);
    let physics = server.client_with(&server.key_for("physics", "consumer"));
    let later = hours_ahead(3);
    let offer = |nodes| Offer::reserve(nodes, 3_600).within(later, later + 3_600).xml();
    physics.post("/agreements", offer(4)).await.created();
    // Two minutes' worth and more, in less than a minute unless the machine is very slow.
    eventually(
        "a minute with many refusals",
        Duration::from_mins(1),
        async || {
            for _ in 0..70 {
                let refused = physics.post("/agreements", offer(1)).await;
                assert_eq!(refused.status, StatusCode::CONFLICT);
            }
            let lines = trail(&server.client()).await;
            let refused: Vec<&str> = lines
                .iter()
                .filter(|line| line["kind"] == "refused")
                .filter_map(|line| line["detail"].as_str())
                .collect();
            refused
                .iter()
                .any(|detail| detail.ends_with("in this minute are not noted"))
                .then_some(())
        },
    )
    .await;
    server.assert_verified();
}

/// The hash of a note by the public formula (`crates/store/src/batch/trail.rs`), after the line with that hash.
fn hash_of_note(before: &str, line: &TrailLine) -> String {
    let mut digest = Sha256::new();
    digest.update(before);
    digest.update(line.number.to_be_bytes());
    digest.update(Uuid::max().as_bytes());
    digest.update(line.subject.as_bytes());
    digest.update(line.negotiation.unwrap_or_default().as_bytes());
    digest.update(line.at.to_be_bytes());
    digest.update([u8::from(line.party.is_some())]);
    for text in [
        &line.kind,
        line.party.as_deref().unwrap_or_default(),
        &line.detail,
    ] {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    hex(&digest.finalize())
}

async fn a_trail_that_was_written_anew_by_its_public_formula_is_found_by_its_signed_heads(url: String) {
    let mut server = Server::configured(Some(&url), "[trail]\ninterval_seconds = 1\n");
    for party in ["physics", "biology", "chemistry"] {
        server.key_for(party, "consumer");
    }
    let heads = server.data_dir().join("trail-heads");
    let store = Store::open_existing(&url).await.expect("the store is there");
    let lines = trail_lines::trail_lines_after(&store, 0, 100)
        .await
        .expect("they can be read");
    let last = lines.last().expect("a line").number;
    eventually("the head of the last line", Duration::from_mins(1), async || {
        let signed = std::fs::read_to_string(&heads).unwrap_or_default();
        signed.contains(&format!("\"number\":{last},")).then_some(())
    })
    .await;
    server.stop();
    server.assert_verified();
    // Who can write the database writes another key's party, and all lines from there on.
    let place = lines
        .iter()
        .position(|line| line.party.as_deref() == Some("physics"));
    let place = place.expect("the line of a key");
    let mut before = lines[place - 1].hash.clone();
    let mut sql = String::new();
    for (index, line) in lines.iter().enumerate().skip(place) {
        let mut line = line.clone();
        if index == place {
            line.party = Some("geology".to_owned());
        }
        line.hash = hash_of_note(&before, &line);
        let party = line.party.as_deref().unwrap_or_default();
        sql += &format!(
            "UPDATE notes SET party = '{party}', hash = '{}' WHERE number = {};",
            line.hash, line.number
        );
        before = line.hash;
    }
    let end = format!("UPDATE lease SET trail_hash = '{before}', checked_number = 0, checked_hash = ''");
    tamper(&url, &(sql + &end)).await;
    assert_eq!(
        store.verify().await.expect("it can be read"),
        [],
        "the chain itself is whole"
    );
    let found = server.run(&["verify"]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        !found.status.success() && said.contains("not what was signed"),
        "{said}"
    );
    // And one that was made shorter.
    let shorter = format!(
        "DELETE FROM notes WHERE number = {last}; \
        UPDATE lease SET trail_number = {0}, trail_hash = (SELECT hash FROM notes WHERE number = {0})",
        last - 1
    );
    tamper(&url, &shorter).await;
    let found = server.run(&["verify"]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        said.contains(&format!("line {last} was stored and is not there")),
        "{said}"
    );
    // The public key may come from elsewhere; another one's signatures are none.
    let public = std::fs::read_to_string(server.data_dir().join("trail.pub")).expect("it is there");
    let other = server.run(&["verify", "--trail-key", &"0".repeat(64)]);
    assert!(String::from_utf8_lossy(&other.stdout).contains("not signed with the trail's key"));
    let own = server.run(&["verify", "--trail-key", &public]);
    assert!(!String::from_utf8_lossy(&own.stdout).contains("not signed"));
}
