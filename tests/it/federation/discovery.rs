//! What domains find out about each other.

use serde_json::{Value, json};

use super::*;
use crate::portal::browser::Browser;

/// A domain of that name with these peers, each with its address.
fn domain(name: &str, more: &str, peers: &[(&str, &Server)]) -> Server {
    let peer = |(peer, each): &(&str, &Server)| {
        let address = each.address();
        format!("[[peer]]\nname = \"{peer}\"\naddress = \"http://{address}\"\nkey = \"bsp_{peer}\"\n")
    };
    let peers: String = peers.iter().map(peer).collect();
    let resource = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\ncpus = 2\n";
    Server::configured(
        None,
        &format!("{more}[federation]\nname = \"{name}\"\n{peers}{resource}"),
    )
}

/// What `GET /peers` says of the first peer, once it is looked at with all that it is to say.
async fn first_peer(server: &Server, is_whole: impl Fn(&Value) -> bool) -> Value {
    let client = server.client();
    eventually("the peer is looked at", PATIENCE, async || {
        let peer = client.get_json("/peers").await["peers"][0].clone();
        is_whole(&peer).then_some(peer)
    })
    .await
}

#[test]
fn a_domain_finds_out_what_its_peers_and_theirs_say_of_themselves() {
    run(async {
        let west = domain("west", "", &[]);
        let south = domain("south", "", &[("far-west", &west)]);
        // Its peers may tell addresses of this machine.
        let open = "[callbacks]\nprivate_addresses = true\n";
        let north = domain("north", open, &[("near-south", &south)]);
        let said = north.client_with("").get_json("/.well-known/bespeak").await;
        assert_eq!(said["domain"], "north", "{said}");
        assert_eq!(said["templates"], json!(["advance-reservation"]));
        assert_eq!(
            said["resources"],
            json!([{ "name": "local", "nodes": 4, "attributes": { "cpus": 2 } }])
        );
        assert_eq!(
            said["policy"],
            json!({ "forwards": true, "hops": 3, "holdSeconds": 300 })
        );
        assert_eq!(said["peers"][0]["name"], "near-south", "{said}");
        assert!(!said.to_string().contains("bsp_"), "{said}");

        let peer = first_peer(&north, |peer| peer["beyond"][0]["says"].is_object()).await;
        assert_eq!(peer["says"]["domain"], "south", "{peer}");
        assert_eq!(peer["says"]["policy"]["forwards"], true, "{peer}");
        let beyond = &peer["beyond"][0];
        assert_eq!(
            (&beyond["name"], &beyond["says"]["domain"]),
            (&json!("far-west"), &json!("west"))
        );
        assert_eq!(peer["health"]["asked"], 0, "to look is no question: {peer}");

        let table = north.run(&["peers"]);
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        assert!(
            table.contains("near-south") && table.contains("answers"),
            "{table}"
        );
        let one = north.run(&["peers", "near-south"]);
        let one = String::from_utf8_lossy(&one.stdout).into_owned();
        assert!(
            one.contains("calls itself") && one.contains("far-west (http://"),
            "{one}"
        );
        assert_eq!(north.run(&["peers", "none"]).status.code(), Some(1));
        let metrics = north.client().get("/metrics").await.body;
        for line in [
            "bespeak_peer_questions_total{peer=\"near-south\",outcome=\"late\"} 0\n",
            "bespeak_peer_not_asked{peer=\"near-south\"} 0\n",
        ] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
        let operator = Browser::signed_in(&north, north.key()).await;
        let page = operator.get("/portal/operator/peers").await;
        for text in ["near-south", "answers", "local (4)", "far-west"] {
            assert!(page.body.contains(text), "{text}: {page:?}");
        }
    });
}

#[test]
fn peers_of_peers_are_not_looked_for_where_one_side_does_not_name_its_own() {
    run(async {
        let west = domain("west", "", &[]);
        let south = domain("south", "", &[("far-west", &west)]);
        // Addresses of this machine that others tell are not looked at.
        let north = domain("north", "", &[("near-south", &south)]);
        let peer = first_peer(&north, |peer| peer["beyond"][0].is_object()).await;
        assert_eq!(peer["beyond"][0]["says"], Value::Null, "{peer}");
        let secretive = Server::configured(
            None,
            &format!(
                "[callbacks]\nprivate_addresses = true\n[federation]\nname = \"east\"\nshow_peers = false\n\
                 [[peer]]\nname = \"near-south\"\naddress = \"http://{}\"\nkey = \"k\"\n",
                south.address()
            ),
        );
        let said = secretive.client_with("").get_json("/.well-known/bespeak").await;
        assert_eq!(said["peers"], json!([]), "{said}");
        let peer = first_peer(&secretive, |peer| peer["says"].is_object()).await;
        assert_eq!(peer["beyond"], json!([]), "{peer}");
        let nameless = Server::local();
        let said = nameless.client_with("").get_json("/.well-known/bespeak").await;
        assert_eq!(
            (&said["domain"], &said["resources"]),
            (&Value::Null, &json!([])),
            "{said}"
        );
    });
}

#[test]
fn a_peer_that_says_nothing_of_itself_is_shown_with_the_reason() {
    run(async {
        let silent = Server::local();
        let mut north = domain("north", "", &[("south", &silent)]);
        let peer = first_peer(&north, |peer| peer["lookedAt"].is_string()).await;
        assert_eq!(peer["says"]["templates"], json!([]), "{peer}");
        drop(silent);
        north.stop();
        north.restart();
        let peer = first_peer(&north, |peer| peer["silent"].is_string()).await;
        assert_eq!(peer["says"], Value::Null, "{peer}");
    });
}
