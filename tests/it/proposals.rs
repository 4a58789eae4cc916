//! The provider proposes changes by itself, and nothing moves unless the party accepts.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::eventually;
use crate::support::offers::{Offer, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

const HOUR: i64 = 3_600;
/// Nothing here takes so long, on a machine that runs other tests.
const SOON: Duration = Duration::from_mins(1);
/// How long a proposal stands where a test waits for its lapse.
const BRIEFLY: Duration = Duration::from_secs(5);
pub(crate) const PROPOSING: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
                         [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[failures]\nrepair_hours = 1\n\
                         [negotiation]\nproposals_max = 5\nproposal_discount_percent = 25\n";

on_both_engines!(
    a_move_that_would_let_more_in_is_proposed_and_left_to_its_party;
    a_release_on_postgres:
    whoever_cannot_be_kept_a_promise_is_offered_another_place,
    whoever_has_lost_what_ran_is_offered_to_run_it_again,
    a_proposal_that_is_declined_leaves_everything_as_it_was,
    a_proposal_that_nobody_takes_leaves_everything_as_it_was,
    a_proposal_about_what_has_been_changed_or_is_over_cannot_be_accepted,
);

/// A service, two parties with their keys, and an agreement of the first that fills it for an hour.
struct Crowded {
    server: Server,
    keys: [String; 2],
    full: Offer,
    id: Uuid,
}

impl Crowded {
    async fn new(url: &str, configuration: &str) -> Self {
        let server = Server::configured(Some(url), configuration);
        let keys = ["physics", "biology"].map(|party| server.key_for(party, "consumer"));
        let start = hours_ahead(4);
        let full = Offer::reserve(4, HOUR).within(start, start + HOUR);
        let holder = server.client_with(&keys[0]);
        let id = holder.post("/agreements", full.xml()).await.created();
        Self {
            server,
            keys,
            full,
            id,
        }
    }

    fn holder(&self) -> Client {
        self.server.client_with(&self.keys[0])
    }

    fn other(&self) -> Client {
        self.server.client_with(&self.keys[1])
    }

    /// The other party asks for the same and is refused; the proposal to the first.
    async fn crowd(&self) -> Value {
        let refused = self.other().post("/agreements", self.full.xml()).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        proposed(&self.holder(), self.id).await
    }

    /// The same where it lasts for [`BRIEFLY`]: where it is over before it is seen, there is another.
    async fn crowd_briefly(&self) -> Value {
        eventually("a proposal that is seen", SOON, async || {
            timeout(2 * BRIEFLY, self.crowd()).await.ok()
        })
        .await
    }

    /// The request of a party that wants the place of a proposal.
    fn there(proposal: &Value) -> Value {
        let offer = &proposal["offers"][0];
        json!({
            "nodes": 4, "durationSeconds": HOUR, "window": { "start": offer["start"], "end": offer["end"] },
        })
    }

    /// The agreement as its party sees it.
    async fn shown(&self) -> Value {
        self.holder().get_json(&format!("/agreements/{}", self.id)).await
    }
}

/// The provider's proposal about an agreement.
pub(crate) async fn proposed(client: &Client, id: Uuid) -> Value {
    eventually("a proposal", SOON, async || {
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        shown["proposals"].get(0).cloned()
    })
    .await
}

/// Where the negotiation of a proposal is found.
fn path_of(proposal: &Value) -> String {
    format!(
        "/negotiations/{}",
        proposal["negotiation"].as_str().unwrap_or_default()
    )
}

async fn a_move_that_would_let_more_in_is_proposed_and_left_to_its_party(url: String) {
    let mut crowded = Crowded::new(&url, PROPOSING).await;
    let before = crowded.shown().await;
    let proposal = crowded.crowd().await;
    assert_eq!(proposal["reason"], "better-fit", "{proposal}");
    assert!(proposal.get("penalties").is_none(), "{proposal}");
    let offer = &proposal["offers"][0];
    assert_ne!(offer["start"], before["plannedStart"], "{offer}");
    assert_eq!(offer["price"]["amount"], "3", "a quarter less: {offer}");
    crowded.server.assert_verified();
    // It outlives a crash. No other party sees it or may accept it, and meanwhile nothing has moved.
    crowded.server.kill9();
    crowded.server.restart();
    let listed = crowded.other().get_json("/negotiations").await;
    assert_eq!(listed["negotiations"], json!([]), "{listed}");
    let accept = json!({ "offer": offer["id"] });
    let foreign = crowded.other().post_json("/agreements", &accept).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{foreign:?}");
    let path = path_of(&proposal);
    let foreign = crowded
        .other()
        .post_json(&format!("{path}/terminate"), &json!({}))
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{foreign:?}");
    let shown = crowded.shown().await;
    assert_eq!(shown["plannedStart"], before["plannedStart"], "{shown}");
    assert_eq!(shown["proposals"], json!([proposal]), "{shown}");
    let listed = crowded.holder().get_json("/negotiations").await;
    let first = &listed["negotiations"][0];
    assert_eq!(
        (&first["proposed"], &first["agreement"], &first["offers"][0]["id"]),
        (&"better-fit".into(), &json!(crowded.id), &offer["id"]),
        "{listed}"
    );
    assert_eq!(first["offers"][0]["priceDifference"]["amount"], "-1", "{listed}");
    assert!(first["offers"][0].get("fee").is_none(), "{listed}");
    // It is taken or left: any other request is made elsewhere.
    let asked = crowded
        .holder()
        .post_json(&format!("{path}/offers"), &json!({ "nodes": 1 }))
        .await;
    assert_eq!(asked.status, StatusCode::CONFLICT, "{asked:?}");
    assert!(asked.body.contains("proposal"), "{asked:?}");
    let events = crowded
        .holder()
        .get_json(&format!("/agreements/{}/events", crowded.id))
        .await;
    assert!(events.to_string().contains("another place for"), "{events}");
    let shown = crowded.server.run(&["show", &crowded.id.to_string()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = format!("bespeak accept {}", offer["id"].as_str().unwrap_or_default());
    assert!(shown.contains(&line), "{shown}");
    let new = crowded.holder().post_json("/agreements", &accept).await.created();
    let replaced = crowded.shown().await;
    assert_eq!(replaced["supersededBy"], json!(new), "{replaced}");
    assert!(replaced.get("proposals").is_none(), "{replaced}");
    crowded
        .other()
        .post("/agreements", crowded.full.xml())
        .await
        .created();
    crowded.server.assert_verified();
    // Once is enough: or two parties could work a price down together.
    let new = crowded.holder().get_json(&format!("/agreements/{new}")).await;
    assert_eq!(new["price"]["amount"], "3", "{new}");
    let again = crowded.holder().post_json("/agreements", &accept).await;
    assert_eq!(again.json()["id"], new["id"], "{again:?}");
}

async fn whoever_cannot_be_kept_a_promise_is_offered_another_place(url: String) {
    let mut server = Server::configured(Some(&url), PROPOSING);
    let client = server.client();
    let start = now() + HOUR / 2;
    let rigid = Offer::reserve(4, HOUR).within(start, start + HOUR);
    let id = client.post("/agreements", rigid.guaranteed_xml()).await.created();
    let down = client
        .request(Method::PUT, "/resources/local/nodes/0,1")
        .header("accept", "application/json")
        .json(&json!({"state": "down", "reason": "no power"}));
    let down = client.send(down).await;
    assert_eq!(down.json()["broken"], 1, "{down:?}");
    let proposal = proposed(&client, id).await;
    assert_eq!(proposal["reason"], "broken", "{proposal}");
    // Half of the price, and a fifth of it because it has not begun either.
    let penalties = json!([{ "amount": "2.8", "currency": "EUR" }]);
    assert_eq!(proposal["penalties"], penalties, "{proposal}");
    let path = path_of(&proposal);
    let negotiation = client.get_json(&path).await;
    assert_eq!(negotiation["penalties"], penalties, "{negotiation}");
    assert_eq!(
        negotiation["offers"][0]["creator"], "NegotiationResponder",
        "{negotiation}"
    );
    server.assert_verified();
    server.kill9();
    server.restart();
    let client = server.client();
    assert_eq!(proposed(&client, id).await, proposal);
    // Somewhere else, and not for less time than was promised.
    let accept = json!({ "offer": proposal["offers"][0]["id"] });
    let new = client.post_json("/agreements", &accept).await.created();
    let broken = client.get_json(&format!("/agreements/{id}")).await;
    assert_eq!(
        (
            &broken["outcome"],
            &broken["supersededBy"],
            broken.get("proposals")
        ),
        (&"lost".into(), &json!(new), None),
        "{broken}"
    );
    let new = client.get_json(&format!("/agreements/{new}")).await;
    assert_eq!(
        (&new["supersedes"], &new["state"], &new["price"]["amount"]),
        (&json!(id), &"Observed".into(), &"4".into()),
        "{new}"
    );
    // The penalty is owed, whichever agreement takes the place.
    let ledger = client.get_json("/accounts").await;
    assert_eq!(ledger["accounts"][0]["balance"]["amount"], "2.8", "{ledger}");
    server.assert_verified();
}

async fn whoever_has_lost_what_ran_is_offered_to_run_it_again(url: String) {
    let mut server = Server::configured(Some(&url), PROPOSING);
    let client = server.client();
    let id = client
        .post("/agreements", Offer::sleep(600, 900).on(2).xml())
        .await
        .created();
    eventually("its start", SOON, async || {
        let shown = client.get_json(&format!("/agreements/{id}")).await;
        shown["started"].is_string().then_some(())
    })
    .await;
    let down = client
        .request(Method::PUT, "/resources/local/nodes/0")
        .header("accept", "application/json")
        .json(&json!({ "state": "down" }));
    let down = client.send(down).await;
    assert_eq!(down.json()["lost"], 1, "{down:?}");
    // Also where the service is killed before it has done that.
    server.kill9();
    server.restart();
    let client = server.client();
    let proposal = proposed(&client, id).await;
    assert_eq!(proposal["reason"], "broken", "{proposal}");
    let accept = json!({ "offer": proposal["offers"][0]["id"] });
    let new = client.post_json("/agreements", &accept).await.created();
    let new = client.get_json(&format!("/agreements/{new}")).await;
    assert_eq!(
        (&new["supersedes"], &new["application"], &new["durationSeconds"]),
        (&json!(id), &"sleep".into(), &900.into()),
        "{new}"
    );
    server.assert_verified();
}

async fn a_proposal_that_is_declined_leaves_everything_as_it_was(url: String) {
    let crowded = Crowded::new(&url, PROPOSING).await;
    let before = crowded.shown().await;
    let proposal = crowded.crowd().await;
    let path = path_of(&proposal);
    // It keeps its place for its party.
    let there = Crowded::there(&proposal);
    let refused = crowded.other().post_json("/agreements", &there).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    // After a rejection it gives the nodes back at once.
    let no = json!({ "counterOfferTo": proposal["offers"][0]["id"], "state": "Rejected" });
    let no = crowded.holder().post_json(&format!("{path}/offers"), &no).await;
    assert_eq!(no.status, StatusCode::OK, "{no:?}");
    let accept = json!({ "offer": proposal["offers"][0]["id"] });
    let declined = crowded.holder().post_json("/agreements", &accept).await;
    assert_eq!(declined.status, StatusCode::CONFLICT, "{declined:?}");
    let after = crowded.shown().await;
    assert_eq!(after, before, "nothing has changed");
    crowded.other().post_json("/agreements", &there).await.created();
    crowded.server.assert_verified();
}

async fn a_proposal_that_nobody_takes_leaves_everything_as_it_was(url: String) {
    let brief = format!("{PROPOSING}hold_seconds = {}\n", BRIEFLY.as_secs());
    let crowded = Crowded::new(&url, &brief).await;
    let before = crowded.shown().await;
    let mut proposals = Vec::new();
    // Left alone, it lapses, and the same can be proposed again.
    for _ in 0..2 {
        let proposal = crowded.crowd_briefly().await;
        eventually("the end of the proposal", SOON, async || {
            let shown = crowded.holder().get_json(&path_of(&proposal)).await;
            (shown["state"] == "expired").then_some(())
        })
        .await;
        eventually("its lapse", SOON, async || {
            let shown = crowded.shown().await;
            shown.get("proposals").is_none().then_some(())
        })
        .await;
        proposals.push(proposal);
    }
    assert_ne!(proposals[0]["negotiation"], proposals[1]["negotiation"]);
    let accept = json!({ "offer": proposals[1]["offers"][0]["id"] });
    let late = crowded.holder().post_json("/agreements", &accept).await;
    assert_eq!(late.status, StatusCode::GONE, "{late:?}");
    let there = Crowded::there(&proposals[1]);
    crowded.other().post_json("/agreements", &there).await.created();
    assert_eq!(crowded.shown().await["plannedStart"], before["plannedStart"]);
    crowded.server.assert_verified();
}

async fn a_proposal_about_what_has_been_changed_or_is_over_cannot_be_accepted(url: String) {
    let crowded = Crowded::new(&url, PROPOSING).await;
    let proposal = crowded.crowd().await;
    let accept = json!({ "offer": proposal["offers"][0]["id"] });
    // Its party changes it by itself: the proposal about it is gone.
    let change = json!({ "agreement": crowded.id, "nodes": 3 });
    let change = crowded.holder().post_json("/negotiations", &change).await.json();
    let changed = json!({ "offer": change["offers"][0]["id"] });
    let changed = crowded
        .holder()
        .post_json("/agreements", &changed)
        .await
        .created();
    let lost = crowded.holder().post_json("/agreements", &accept).await;
    assert_eq!(lost.status, StatusCode::CONFLICT, "{lost:?}");
    crowded.server.assert_verified();
    // A proposal about an agreement that this ends goes with it.
    let refused = crowded.other().post("/agreements", crowded.full.xml()).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
    let proposal = proposed(&crowded.holder(), changed).await;
    let end = format!("/agreements/{changed}/terminate");
    assert_eq!(
        crowded.holder().post_json(&end, &json!({})).await.status,
        StatusCode::OK
    );
    let accept = json!({ "offer": proposal["offers"][0]["id"] });
    let lost = crowded.holder().post_json("/agreements", &accept).await;
    assert_eq!(lost.status, StatusCode::CONFLICT, "{lost:?}");
    crowded
        .other()
        .post("/agreements", crowded.full.xml())
        .await
        .created();
    crowded.server.assert_verified();
}
