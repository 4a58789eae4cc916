//! Decisions in time: the cost of a decision is bounded, and work that no client waits for comes after the answers.

use serde_json::{Value, json};

use crate::support::offers::{Offer, date_time, hours_ahead};
use crate::support::run;
use crate::support::server::Server;

const NODES: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
const HOUR: i64 = 3_600;

/// Fills ten hours of four nodes except for three node-hours, asks for the first of these hours whole, and answers with the
/// problem in JSON and the fault in XML. Others would have to move, and there is not room for all of them.
async fn refused_beside_many(server: &Server) -> (Value, String) {
    let client = server.client();
    let start = hours_ahead(3);
    for _ in 0..157 {
        let flexible = Offer::reserve(1, HOUR).within(start, start + 40 * HOUR);
        client.post("/agreements", flexible.xml()).await.created();
    }
    let asked = json!({
        "nodes": 4,
        "durationSeconds": HOUR,
        "window": { "start": date_time(start), "end": date_time(start + HOUR) },
    });
    let problem = client.post_json("/agreements", &asked).await;
    let rigid = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let fault = client.post("/agreements", rigid.xml()).await;
    assert_eq!((problem.status.as_u16(), fault.status.as_u16()), (409, 409));
    fault.assert_valid();
    (problem.json(), fault.body)
}

#[test]
fn a_refusal_says_that_the_search_was_cut_short_and_is_counted() {
    run(async {
        let server = Server::configured(None, &format!("[scheduling]\ndecision_work = 1000\n{NODES}"));
        let (problem, fault) = refused_beside_many(&server).await;
        let refusal = &problem["refusal"];
        assert_eq!(refusal["reason"], "NO_CAPACITY_IN_WINDOW", "{problem}");
        assert_eq!(refusal["cutShort"], true, "{problem}");
        let words = "the search for agreements that could make room was cut short";
        let binding = refusal["bindingConstraint"].as_str().unwrap_or_default();
        assert!(binding.contains(words), "{problem}");
        assert!(fault.contains("<bsp:CutShort>true</bsp:CutShort>"), "{fault}");
        let explained = server.run(&["explain", refusal["id"].as_str().unwrap_or_default()]);
        let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
        assert!(explained.contains(words), "{explained}");
        let counted = server.client().get("/metrics").await.body;
        let line = "bespeak_refusals_cut_short_total{request=\"offer\"} 2\n";
        assert!(counted.contains(line), "{counted}");
        server.assert_verified();
    });
}

#[test]
fn an_offer_that_fits_moves_others_only_where_the_published_rule_is_configured() {
    run(async {
        for (setting, moves) in [
            ("", false),
            ("decision = \"standing\"\n", false),
            ("decision = \"published\"\n", true),
        ] {
            let server =
                Server::configured(None, &format!("[scheduling]\nimprove = false\n{setting}{NODES}"));
            let (client, start) = (server.client(), hours_ahead(3));
            let within = async |hours: i64| {
                let offer = Offer::reserve(4, HOUR).within(start, start + hours * HOUR);
                client.post("/agreements", offer.xml()).await.created()
            };
            let planned =
                async |id| client.get_json(&format!("/agreements/{id}")).await["plannedStart"].clone();
            let first = within(40).await;
            // It has to start sooner, and fits behind the first.
            let second = within(10).await;
            let (early, late) = (json!(date_time(start)), json!(date_time(start + HOUR)));
            let expected = if moves { [late, early] } else { [early, late] };
            assert_eq!(
                [planned(first).await, planned(second).await],
                expected,
                "{setting}"
            );
            // One that has no place otherwise moves others by each rule.
            let rigid = within(1).await;
            assert_eq!(planned(rigid).await, json!(date_time(start)), "{setting}");
            server.assert_verified();
        }
    });
}

#[test]
fn a_refusal_after_a_whole_search_says_nothing_of_one_cut_short() {
    run(async {
        let server = Server::configured(None, NODES);
        let (problem, fault) = refused_beside_many(&server).await;
        assert_eq!(problem["refusal"].get("cutShort"), None, "{problem}");
        assert!(!fault.contains("CutShort"), "{fault}");
        let counted = server.client().get("/metrics").await.body;
        assert!(
            !counted.contains("bespeak_refusals_cut_short_total{"),
            "{counted}"
        );
    });
}
