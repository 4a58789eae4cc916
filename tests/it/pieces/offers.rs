//! Offers of work in pieces.

use reqwest::StatusCode;
use serde_json::Value;

use super::{GRACE, counting, show, start_with};
use crate::portal::browser::Browser;
use crate::support::negotiation::{SentOffer, negotiate, open};
use crate::support::offers::{Offer, hours_ahead};

/// Nodes are held for five minutes, so that the pieces lie hours ahead.
#[test]
fn what_has_no_place_in_one_is_offered_in_pieces_that_are_held_and_accepted_as_they_stand() {
    crate::support::run(async {
        let (server, _programs) = start_with(None, 1, GRACE, "");
        let client = server.client();
        let start = hours_ahead(5);
        let block = Offer::reserve(1, 60).within(start + 600, start + 660).xml();
        client.post("/agreements", block).await.created();
        let negotiation = open(&client).await;
        let cut = "<bsp:Preemption><bsp:Pieces>2</bsp:Pieces><bsp:Interval>0.25</bsp:Interval>\
                   <bsp:Independent>false</bsp:Independent></bsp:Preemption>\
                   <bsp:MaxDeviation>0</bsp:MaxDeviation>";
        let asked =
            SentOffer::solicited("c-1", counting("count", 900).within(start, start + 1_200)).wishing(cut);
        let answers = negotiate(&client, negotiation, &[asked]).await;
        let [offer] = answers.as_slice() else {
            panic!("{answers:?}")
        };
        assert_eq!(
            (
                offer.state.as_str(),
                offer.text("Kind"),
                offer.text("Deviation").parse::<f64>().ok().map(f64::abs)
            ),
            ("Acceptable", "InPieces", Some(0.0))
        );
        assert_eq!(offer.xml.matches("<bsp:Piece>").count(), 2, "{offer:?}");
        let shown = client.get_json(&format!("/offers/{}", offer.id)).await;
        assert_eq!(shown["pieces"].as_array().map(Vec::len), Some(2), "{shown}");
        let in_the_first = Offer::reserve(1, 60).within(start + 390, start + 450).xml();
        let refused = client.post("/agreements", in_the_first).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        let between = Offer::reserve(1, 150).within(start + 450, start + 600).xml();
        client.post("/agreements", between).await.created();
        server.assert_verified();
        let id = client.post("/agreements", offer.acceptance()).await.created();
        let made = show(&client, id).await;
        let members_of =
            |piece: &Value| ["plannedStart", "plannedEnd", "nodes"].map(|member| piece[member].clone());
        let pieces = |of_what: &Value| of_what["pieces"].as_array().cloned().unwrap_or_default();
        let [made, offered] =
            [&made, &shown].map(|what| pieces(what).iter().map(members_of).collect::<Vec<_>>());
        assert_eq!(made, offered);
        assert_eq!(made.len(), 2);
        server.assert_verified();
    });
}

/// Four node-hours at a euro: half off because the work may be cut, and for one shape beyond the first a fifth of half of the rest.
#[test]
fn an_offer_says_how_much_less_cuts_and_shapes_make_it_cost() {
    crate::support::run(async {
        let prices = "[pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\npreemptive_percent = 50\nshapes_percent = 50\n";
        let (server, _programs) = start_with(None, 1, GRACE, prices);
        let client = server.client();
        let start = hours_ahead(5);
        let work = |from| counting("count", 14_400).within(from, from + 14_400);
        let negotiation = open(&client).await;
        let cut = "<bsp:Preemption><bsp:Pieces>2</bsp:Pieces><bsp:Interval>0.5</bsp:Interval>\
                   <bsp:Independent>false</bsp:Independent></bsp:Preemption>";
        let asked = SentOffer::solicited("c-1", work(start)).wishing(cut);
        let answers = negotiate(&client, negotiation, &[asked]).await;
        let offer = &answers[0];
        assert_eq!(offer.texts("Amount"), ["1.8", "2", "0.2"], "{offer:?}");
        for discount in ["<bsp:PreemptiveDiscount>", "<bsp:ShapesDiscount>"] {
            assert!(offer.xml.contains(discount), "{offer:?}");
        }
        let shown = client.get_json(&format!("/offers/{}", offer.id)).await;
        let amounts =
            ["price", "preemptiveDiscount", "shapesDiscount"].map(|part| shown[part]["amount"].clone());
        assert_eq!(amounts, ["1.8", "2", "0.2"], "{shown}");
        let browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get(&format!("/portal/negotiations/{negotiation}")).await;
        for part in [
            "2 EUR less because its work may be cut",
            "0.2 EUR less for the number of shapes",
        ] {
            assert!(page.body.contains(part), "{part} is not in {page:?}");
        }
        let made = client.post("/agreements", offer.acceptance()).await.created();
        let why = server.run(&["explain", &made.to_string()]);
        let why = String::from_utf8_lossy(&why.stdout).into_owned();
        for part in [
            "4 EUR for 1 node for 14400 seconds",
            "2 EUR less because its work may be cut",
            "0.2 EUR less for the number of its shapes",
        ] {
            assert!(why.contains(part), "{part} is not in {why}");
        }
        // In one shape it costs what its nodes do, and nothing is told of others.
        let asked = SentOffer::solicited("c-2", work(start + 14_400));
        let plain = negotiate(&client, negotiation, &[asked]).await;
        assert_eq!(plain[0].texts("Amount"), ["4"], "{plain:?}");
        server.assert_verified();
    });
}
