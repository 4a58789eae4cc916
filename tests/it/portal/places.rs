//! Where a request lies: on the resource that it names, or on one whose nodes have what it asks for.

use reqwest::StatusCode;
use serde_json::json;

use super::browser::Browser;
use super::requests::ASK;
use super::{CONFIGURATION, accept, reserve};
use crate::support::offers::hours_ahead;
use crate::support::run;
use crate::support::server::Server;

#[test]
fn a_request_lies_on_the_resource_that_it_names() {
    let large = "\n[[resource]]\nname = \"large\"\nkind = \"local\"\nnodes = 8\nmemory_bytes = 8000000000\n";
    let server = Server::configured(None, &format!("{CONFIGURATION}{large}"));
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let page = browser.get("/portal").await;
        assert!(page.body.contains("large (8 nodes, 8 GB a node)"), "{page:?}");
        let (from, to) = (hours_ahead(2), hours_ahead(3));
        for resource in ["large", "local"] {
            let form = reserve(browser.form().await, 1, from, to).with("resource", resource);
            let path = browser.post(ASK, &form).await.location().to_owned();
            let page = browser.get(&path).await;
            assert!(page.body.contains(&format!("<dd>{resource}</dd>")), "{page:?}");
            let again = browser.get(&page.link("Change the request")).await.form();
            assert_eq!(again.0["resource"], resource);
            let action = accept(&page);
            let made = browser
                .post(&action, &page.form_to(&action))
                .await
                .location()
                .to_owned();
            let made = made.trim_start_matches("/portal");
            let shown = server.client().get_json(made).await;
            assert_eq!(shown["resource"], resource, "{shown}");
        }
        let gone = reserve(browser.form().await, 1, from, to).with("resource", "gone");
        let refused = browser.post("/portal/agreements", &gone).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        let why = "there is no resource of this name; there are large, local";
        assert!(refused.body.contains(why), "{refused:?}");
        server.assert_verified();
    });
}

#[test]
fn a_request_says_what_each_node_must_have() {
    let large = "\n[[resource]]\nname = \"large\"\nkind = \"local\"\nnodes = 8\ncpus = 16\nmemory_bytes = 64000000000\n\
                 cpu_architecture = \"x86_64\"\n";
    let server = Server::configured(None, &format!("{CONFIGURATION}{large}"));
    run(async {
        let mut browser = Browser::signed_in(&server, server.key()).await;
        let (from, to) = (hours_ahead(2), hours_ahead(3));
        let empty = browser.get("/portal").await;
        assert!(
            empty
                .body
                .contains("Nodes here have Processors: 16, Memory (GB): 64."),
            "{empty:?}"
        );
        assert!(
            !empty.form().0.contains_key("disk-gb"),
            "nothing is known of disks"
        );
        let asked = [("cpus", "8"), ("memory-gb", "32.5"), ("architecture", "x86_64")];
        let form = asked
            .iter()
            .fold(reserve(empty.form(), 1, from, to), |form, (name, value)| {
                form.with(name, value)
            });
        let path = browser.post(ASK, &form).await.location().to_owned();
        let page = browser.get(&path).await;
        for part in [
            "<dd>large</dd>",
            "Processors: 8 or more",
            "Memory (GB): 32.5 or more",
        ] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        // Another round keeps them, and so does the form.
        let filled = browser
            .get(&page.link("Ask for something else instead"))
            .await
            .form();
        let again = browser.get(&page.link("Change the request")).await.form();
        for (name, value) in asked {
            assert_eq!(
                (filled.0[name].as_str(), again.0[name].as_str()),
                (value, value),
                "{name}"
            );
        }
        let counter = format!("{path}/offers");
        let fewer = filled.with("memory-gb", "16");
        assert_eq!(browser.post(&counter, &fewer).await.location(), path);
        let page = browser.get(&path).await;
        assert!(page.body.contains("Memory (GB): 16 or more"), "{page:?}");
        let action = accept(&page);
        let made = browser
            .post(&action, &page.form_to(&action))
            .await
            .location()
            .to_owned();
        let shown = server.client().get_json(made.trim_start_matches("/portal")).await;
        assert_eq!(shown["resource"], "large", "{shown}");

        // All mistakes at once.
        let wrong = form
            .clone()
            .with("cpus", "some")
            .with("memory-gb", "0")
            .with("nodes", "x");
        let page = browser.post(ASK, &wrong).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(page.form(), wrong, "the values entered are kept");
        for part in [
            "href=\"#cpus\">Processors: Enter a number above 0",
            "href=\"#memory-gb\">Memory (GB): Enter a number above 0",
            "href=\"#nodes\">Nodes: ",
        ] {
            assert!(page.body.contains(part), "no {part} in {page:?}");
        }
        page.element("attributes-group-error");
        let much = browser.post("/portal/agreements", &form.with("cpus", "17")).await;
        assert_eq!(much.status, StatusCode::CONFLICT);
        assert!(
            much.body
                .contains("no resource has the cpus that is asked for; nodes have 16"),
            "{much:?}"
        );

        // The API says the same in its own words, and documents in those of JSDL.
        let wish = json!({ "nodes": 1, "durationSeconds": 60, "attributes": { "cpus": 16, "cpu_architecture": "x86_64" } });
        let client = server.client();
        let made = client.post_json("/agreements", &wish).await.created();
        let shown = client.get_json(&format!("/agreements/{made}")).await;
        assert_eq!(shown["resource"], "large", "{shown}");
        let document = client.get(&format!("/agreements/{made}")).await.body;
        let jsdl = "<jsdl:IndividualCPUCount><jsdl:LowerBoundedRange>16";
        assert!(document.replace(['\n', ' '], "").contains(jsdl), "{document}");
        server.assert_verified();
    });
}
