//! Offers and their answers: one that fits is held, one that does not is countered with the nearest, and each offer of a message
//! stands on its own.

use std::fs;

use reqwest::StatusCode;

use crate::support::negotiation::{SentOffer, message, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_hold_outlives_a_crash_and_ends_with_its_negotiation;
    a_release_on_postgres:
    what_fits_is_offered_as_it_was_asked_and_held,
    what_does_not_fit_is_countered_with_the_nearest,
    what_scales_is_countered_with_other_sizes_which_can_be_accepted,
    no_counter_offer_breaks_a_creation_constraint,
);

const HOUR: i64 = 3_600;

async fn what_fits_is_offered_as_it_was_asked_and_held(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let id = open(&client).await;
    let start = hours_ahead(2);
    let ask = SentOffer::solicited("c-1", Offer::reserve(3, HOUR).within(start, start + HOUR));
    let answers = negotiate(&client, id, std::slice::from_ref(&ask)).await;
    let [answer] = answers.as_slice() else {
        panic!("one answer is enough: {answers:?}")
    };
    assert_eq!(
        (answer.state.as_str(), answer.text("Kind")),
        ("Acceptable", "Exact")
    );
    assert_eq!(answer.text("CounterOfferTo"), "c-1");
    assert_eq!(answer.text("PlannedStart"), date_time(start));
    assert_eq!(answer.text("HeldUntil"), answer.texts("ExpirationTime")[0]);
    // It says what another round may change, and to what.
    let item = |name: &str| {
        let named = format!("wsag:Name=\"{name}\"");
        let mut items = answer.xml.split("<wsag-neg:Item ");
        items
            .find(|item| item.contains(&named))
            .unwrap_or_else(|| panic!("no {name} in {answer:?}"))
    };
    for (name, bound) in [
        ("nodes", "minInclusive value=\"1\""),
        ("nodes", "maxInclusive value=\"4\""),
        ("start", "minInclusive value=\"20"),
        ("end", "maxInclusive value=\"20"),
        ("durationSeconds", "maxInclusive value=\"31536000\""),
    ] {
        assert!(item(name).contains(bound), "{name}: {bound}: {answer:?}");
    }
    let beyond = [Offer::reserve(5, HOUR), Offer::reserve(1, 31_536_001)];
    for (offer, name) in beyond.into_iter().zip(["c-3", "c-4"]) {
        let asked = SentOffer {
            to: answer.id.clone(),
            ..SentOffer::solicited(name, offer.within(start, start + 2 * 31_536_000))
        };
        let refused = negotiate(&client, id, &[asked]).await;
        assert_eq!(refused[0].state, "Rejected", "{refused:?}");
    }
    // Held nodes are not for others.
    let other = Offer::reserve(2, HOUR).within(start, start + HOUR).xml();
    let refused = client.post("/agreements", other).await;
    assert_eq!(refused.text("ErrorCode"), "NO_CAPACITY_IN_WINDOW", "{refused:?}");
    // Two alternatives keep no more than the greater of them; and an advisory offer keeps nothing.
    let more = SentOffer {
        id: "c-2".to_owned(),
        state: "Advisory",
        ..SentOffer::solicited("", Offer::reserve(1, HOUR).within(start, start + HOUR))
    };
    let advice = negotiate(&client, id, &[more]).await;
    assert_eq!(advice[0].state, "Advisory");
    assert!(advice[0].texts("HeldUntil").is_empty());
    client
        .post(
            "/agreements",
            Offer::reserve(1, HOUR).within(start, start + HOUR).xml(),
        )
        .await
        .created();
    let view = client.get_json(&format!("/negotiations/{id}")).await;
    let states: Vec<_> = view["offers"].as_array().into_iter().flatten().collect();
    assert_eq!(states.len(), 8, "{view}");
    assert_eq!(states[1]["heldUntil"], states[1]["expires"], "{view}");
    assert_eq!(states[1]["counterOfferTo"], "c-1");
    // In JSON it says the same of another round as in its document, and what its requester demands is no part of it.
    assert!(states[0].get("constraints").is_none(), "{view}");
    let values: Vec<_> = states[1]["constraints"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let names: Vec<_> = values.iter().filter_map(|values| values["of"].as_str()).collect();
    assert_eq!(names, ["nodes", "start", "end", "durationSeconds"], "{view}");
    let nodes = serde_json::json!({"of": "nodes", "min": 1, "max": 4});
    assert_eq!(*values[0], nodes, "{view}");
    for value in values {
        for (member, facet) in [("min", "minInclusive"), ("max", "maxInclusive")] {
            let bound = &value[member];
            let text = bound.as_str().map_or_else(|| bound.to_string(), str::to_owned);
            let in_words = format!("{facet} value=\"{text}\"");
            let item = item(value["of"].as_str().unwrap_or_default());
            assert!(item.contains(&in_words), "{in_words}: {item}");
        }
    }
    let shown = client.get(&format!("/negotiations/{id}")).await;
    assert_eq!(
        shown.body.matches("<wsag-neg:NegotiationOffer ").count(),
        8,
        "{shown:?}"
    );
    server.assert_verified();
}

async fn what_does_not_fit_is_countered_with_the_nearest(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(5);
    let block = Offer::reserve(3, HOUR / 2).within(start, start + HOUR / 2);
    client.post("/agreements", block.xml()).await.created();
    let id = open(&client).await;
    let rigid = Offer::reserve(4, HOUR).within(start - HOUR / 3, start + HOUR * 2 / 3);
    let ask = SentOffer::solicited("c-1", rigid.clone());
    let answers = negotiate(&client, id, std::slice::from_ref(&ask)).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.text("Kind")).collect();
    assert_eq!(kinds, ["Earlier", "Shorter", "Later"], "by distance: {answers:?}");
    let earlier = &answers[0];
    assert_eq!(earlier.text("StartTime"), date_time(start - HOUR));
    assert_eq!(earlier.text("EndTime"), date_time(start));
    assert!(earlier.text("Deviation").starts_with("0.66"), "{earlier:?}");
    assert_eq!(answers[1].text("Duration"), (HOUR / 3).to_string());
    for answer in &answers {
        assert_eq!(answer.state, "Acceptable", "{answer:?}");
    }
    // The requester's own bounds and preferences count. In another negotiation, so that nothing is held any more.
    client.post(&format!("/negotiations/{id}/terminate"), "").await;
    let id = open(&client).await;
    let near = ask.clone().wishing("<bsp:MaxDeviation>0.2</bsp:MaxDeviation>");
    let refused = negotiate(
        &client,
        id,
        &[SentOffer {
            id: "c-2".into(),
            ..near
        }],
    )
    .await;
    assert_eq!(refused[0].state, "Rejected");
    assert_eq!(refused[0].text("Reason"), "NO_CAPACITY_IN_WINDOW");
    let size = "<bsp:Preference><bsp:Duration>2</bsp:Duration></bsp:Preference>";
    let short = SentOffer {
        id: "c-3".into(),
        state: "Advisory",
        ..ask.clone().wishing(size)
    };
    assert_eq!(negotiate(&client, id, &[short]).await[0].text("Kind"), "Shorter");
    // Its demands hold in the answer, and its preferences weigh.
    let latest = |kind: &str| {
        format!(
            "<wsag-neg:Item wsag:Name=\"latest\" wsag-neg:Type=\"{kind}\" wsag-neg:Importance=\"3\"><wsag:Location>\
             //arp:AllocationTimeConstraint/arp:StartTime</wsag:Location><wsag:ItemConstraint>\
             <xs:minInclusive value=\"{}\"/></wsag:ItemConstraint></wsag-neg:Item>",
            date_time(start)
        )
    };
    let required = SentOffer {
        id: "c-4".into(),
        state: "Advisory",
        demands: latest("Required"),
        ..ask.clone()
    };
    let answers = negotiate(&client, id, &[required]).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.text("Kind")).collect();
    assert_eq!(kinds, ["Later"], "{answers:?}");
    let optional = SentOffer {
        id: "c-5".into(),
        state: "Advisory",
        demands: latest("Optional"),
        ..ask
    };
    let answers = negotiate(&client, id, &[optional]).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.text("Kind")).collect();
    assert_eq!(kinds, ["Later", "Earlier", "Shorter"], "{answers:?}");
    server.assert_verified();
}

/// A service whose template is the built-in one with other creation constraints.
fn constrained(url: &str, constraints: &str) -> Server {
    let template = file("templates/agreements/advance-reservation.xml");
    let (terms, _) = template
        .split_once("<wsag:CreationConstraints>")
        .expect("it has some");
    let template =
        format!("{terms}<wsag:CreationConstraints>{constraints}</wsag:CreationConstraints></wsag:Template>");
    let configuration = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n[[template]]\nfile = \"template.xml\"\n";
    Server::prepared(Some(url), |folder| {
        fs::write(folder.join("template.xml"), template).expect("a file can be written");
        fs::write(folder.join("bespeak.toml"), configuration).expect("a file can be written");
    })
}

async fn no_counter_offer_breaks_a_creation_constraint(url: String) {
    let start = hours_ahead(5);
    let from = start - HOUR / 3;
    let earliest = format!(
        "<wsag:Item wsag:Name=\"earliest\"><wsag:Location>//arp:StartTime</wsag:Location><wsag:ItemConstraint>\
         <xs:minInclusive value=\"{}\"/></wsag:ItemConstraint></wsag:Item>",
        date_time(from)
    );
    let server = constrained(&url, &earliest);
    let client = server.client();
    let block = Offer::reserve(3, HOUR / 2).within(start, start + HOUR / 2);
    client.post("/agreements", block.xml()).await.created();
    // Without the constraint the nearest would be an earlier one (`what_does_not_fit_is_countered_with_the_nearest`).
    let id = open(&client).await;
    let rigid = Offer::reserve(4, HOUR).within(from, from + HOUR);
    let answers = negotiate(&client, id, &[SentOffer::solicited("c-1", rigid)]).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.text("Kind")).collect();
    assert_eq!(kinds, ["Shorter", "Later"], "{answers:?}");
    server.assert_verified();
}

/// An offer with a duration that follows from its size: four node-hours on some of the sizes.
fn scaling(id: &str, sizes: &str, window: (i64, i64)) -> SentOffer {
    let law = "<bsp:Moldability><bsp:ConstantWork>14400</bsp:ConstantWork></bsp:Moldability>";
    let offer = Offer::reserve(7, 1).within(window.0, window.1);
    SentOffer::solicited(id, offer)
        .wishing(&format!("{law}<bsp:MaxDeviation>1</bsp:MaxDeviation>"))
        .replacing("<jsdl:Exact>7</jsdl:Exact>", sizes)
        .replacing("<arp:Duration>1</arp:Duration>", "")
}

async fn what_scales_is_countered_with_other_sizes_which_can_be_accepted(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let start = hours_ahead(5);
    // One node of four is taken for two hours.
    let block = Offer::reserve(1, 2 * HOUR).within(start, start + 2 * HOUR);
    client.post("/agreements", block.xml()).await.created();
    let id = open(&client).await;
    // Four nodes would take an hour. Three take an hour and 20 minutes, and two take two hours.
    let all = "<jsdl:Exact>4</jsdl:Exact>";
    let ask = scaling("c-1", all, (start, start + 2 * HOUR));
    let answers = negotiate(&client, id, std::slice::from_ref(&ask)).await;
    let told: Vec<_> = answers
        .iter()
        .map(|answer| {
            (
                answer.text("Kind"),
                answer.text("Nodes"),
                answer.text("Deviation"),
            )
        })
        .collect();
    assert_eq!(told[0].0, "Fewer", "{answers:?}");
    assert_eq!(told[0].1, "3", "the nearest: {answers:?}");
    assert!(told[0].2.starts_with("0.33"), "a third longer: {answers:?}");
    assert!(told.iter().all(|(kind, ..)| *kind != "Shorter"), "{answers:?}");
    for kind in ["Earlier", "Later"] {
        assert!(told.iter().any(|told| told.0 == kind), "{kind}: {answers:?}");
    }
    // Each of them, when taken, says the same as its offer.
    let accepted = client
        .post("/agreements", answers[0].acceptance())
        .await
        .created();
    let view = client.get_json(&format!("/agreements/{accepted}")).await;
    assert_eq!(
        (&view["nodes"], &view["durationSeconds"]),
        (&3.into(), &4_800.into()),
        "{view}"
    );
    client
        .post(&format!("/agreements/{accepted}/terminate"), "")
        .await;
    let id = open(&client).await;
    let answers = negotiate(&client, id, &[ask]).await;
    let later = answers
        .iter()
        .find(|answer| answer.text("Kind") == "Later")
        .expect("it is there");
    let accepted = client.post("/agreements", later.acceptance()).await.created();
    let view = client.get_json(&format!("/agreements/{accepted}")).await;
    assert_eq!(
        (&view["nodes"], &view["durationSeconds"]),
        (&4.into(), &HOUR.into()),
        "{view}"
    );
    client
        .post(&format!("/agreements/{accepted}/terminate"), "")
        .await;
    // One or two nodes are too slow for an hour and a half, and three are more than that.
    let few =
        "<jsdl:Range><jsdl:LowerBound>1</jsdl:LowerBound><jsdl:UpperBound>2</jsdl:UpperBound></jsdl:Range>";
    let more = scaling("c-2", few, (start, start + HOUR * 3 / 2));
    let answers = negotiate(&client, id, &[more]).await;
    assert_eq!(
        (answers[0].text("Kind"), answers[0].text("Nodes")),
        ("More", "3"),
        "{answers:?}"
    );
    server.assert_verified();
}

/// A provider that reveals little in refusals reveals no more in counter offers.
#[test]
fn what_a_provider_does_not_tell_is_in_no_counter_offer() {
    const NODES: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
    crate::support::run(async {
        let start = hours_ahead(5);
        for (setting, expected) in [
            ("relaxations = false", &["Earlier", "Later"][..]),
            ("alternatives_percent = 0", &[]),
            // Nothing of it begins at a full hour.
            ("coarsen_seconds = 3600", &[]),
            ("coarsen_seconds = 900", &["Earlier", "Fewer", "Later"]),
            ("", &["Earlier", "Fewer", "Later"]),
        ] {
            let server = Server::configured(None, &format!("[scheduling]\n{setting}\n{NODES}"));
            let client = server.client();
            // In all of the window a node is taken.
            let block = Offer::reserve(1, HOUR * 3 / 2).within(start + HOUR / 4, start + HOUR * 7 / 4);
            client.post("/agreements", block.xml()).await.created();
            let id = open(&client).await;
            let window = (start + HOUR / 4, start + HOUR * 7 / 4);
            let ask = scaling("c-1", "<jsdl:Exact>4</jsdl:Exact>", window);
            let answers = negotiate(&client, id, &[ask]).await;
            let mut kinds: Vec<_> = answers.iter().flat_map(|answer| answer.texts("Kind")).collect();
            kinds.sort_unstable();
            kinds.dedup();
            assert_eq!(kinds, expected, "{setting}: {answers:?}");
            for answer in &answers {
                if answer.state == "Rejected" {
                    assert_eq!(answer.text("Reason"), "NO_CAPACITY_IN_WINDOW", "{setting}");
                    assert!(answer.texts("Alternative").is_empty(), "{setting}: {answer:?}");
                    let silent = answer.texts("Relaxation").is_empty();
                    assert_eq!(silent, setting.starts_with("relax"), "{setting}: {answer:?}");
                }
            }
        }
    });
}

async fn a_hold_outlives_a_crash_and_ends_with_its_negotiation(url: String) {
    let mut server = Server::start(&url);
    let client = server.client();
    let id = open(&client).await;
    let start = hours_ahead(2);
    let all = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let answers = negotiate(&client, id, &[SentOffer::solicited("c-1", all.clone())]).await;
    assert_eq!(answers[0].state, "Acceptable");
    let path = format!("/negotiations/{id}");
    let before = client.get_json(&path).await;
    server.kill9();
    server.restart();
    let client = server.client();
    assert_eq!(client.get_json(&path).await, before, "a restart changes nothing");
    let refused = client.post("/agreements", all.xml()).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    server.assert_verified();
    client.post(&format!("{path}/terminate"), "").await;
    client.post("/agreements", all.xml()).await.created();
    server.assert_verified();
}

#[test]
fn each_offer_stands_on_its_own_and_a_dead_branch_stays_dead() {
    crate::support::run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let start = hours_ahead(2);
        let good = Offer::reserve(1, HOUR).within(start, start + HOUR);
        let first = |name: &str, to: &str, offer: &Offer| SentOffer {
            to: to.to_owned(),
            ..SentOffer::solicited(name, offer.clone())
        };
        let answers = negotiate(
            &client,
            id,
            &[
                first("a", "advance-reservation", &good),
                first("b", "advance-reservation-advance-reservation", &good),
                first("c", "nowhere", &good),
                first(
                    "d",
                    "advance-reservation",
                    &Offer::reserve(9, HOUR).within(start, start + HOUR),
                ),
                first("a", "advance-reservation", &good),
                first(
                    "e",
                    "advance-reservation",
                    &Offer {
                        run: Some(("rm", vec![])),
                        ..good.clone()
                    },
                ),
            ],
        )
        .await;
        let states: Vec<_> = answers.iter().map(|answer| answer.state.as_str()).collect();
        assert_eq!(
            states,
            [
                "Acceptable",
                "Acceptable",
                "Rejected",
                "Rejected",
                "Rejected",
                "Rejected"
            ]
        );
        assert!(
            answers[2]
                .text("Path")
                .ends_with("NegotiationOffer[3]/wsag-neg:NegotiationOfferContext/wsag-neg:CounterOfferTo")
        );
        assert!(answers[3].text("Path").contains("NegotiationOffer[4]/wsag:Terms"));
        assert!(
            answers[4]
                .text("Path")
                .ends_with("NegotiationOffer[5]/@wsag-neg:OfferId")
        );
        assert!(answers[5].text("Path").contains("NegotiationOffer[6]/wsag:Terms"));
        // A counter offer is countered; a rejected one and those after it are not.
        let again = negotiate(&client, id, &[first("f", &answers[0].id, &good)]).await;
        assert_eq!(again[0].state, "Acceptable");
        let no = SentOffer {
            state: "Rejected",
            ..first("g", &answers[0].id, &good)
        };
        assert!(negotiate(&client, id, &[no]).await.is_empty());
        for (name, to) in [
            ("h", answers[0].id.as_str()),
            ("i", "f"),
            ("j", again[0].id.as_str()),
            ("k", "d"),
        ] {
            let dead = negotiate(&client, id, &[first(name, to, &good)]).await;
            assert_eq!(dead[0].state, "Rejected", "{name}: {dead:?}");
            assert!(dead[0].text("Message").contains("rejected"), "{name}: {dead:?}");
        }
        let back = negotiate(&client, id, &[first("l", "b", &good)]).await;
        assert_eq!(back[0].state, "Acceptable", "an earlier offer is gone back to");
        server.assert_verified();
    });
}

#[test]
fn advertisements_are_kept_and_not_answered() {
    crate::support::run(async {
        let server = Server::local();
        let client = server.client();
        let id = open(&client).await;
        let start = hours_ahead(2);
        let offer = Offer::reserve(1, HOUR).within(start, start + HOUR);
        let said = SentOffer {
            state: "Advisory",
            ..SentOffer::solicited("ad", offer.clone())
        };
        let path = format!("/negotiations/{id}/advertisements");
        let answer = client
            .post(&path, message("AdvertiseInput", std::slice::from_ref(&said)))
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert!(answer.body.contains("AdvertiseOutput"));
        let lost = SentOffer {
            id: "x".into(),
            to: "nowhere".into(),
            ..said
        };
        let answer = client.post(&path, message("AdvertiseInput", &[lost])).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
        let taken = SentOffer {
            to: "ad".into(),
            ..SentOffer::solicited("c", offer)
        };
        assert_eq!(negotiate(&client, id, &[taken]).await[0].state, "Acceptable");
        let view = client.get_json(&format!("/negotiations/{id}")).await;
        assert_eq!(view["offers"].as_array().map(Vec::len), Some(3), "{view}");
    });
}
