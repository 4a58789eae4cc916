//! An operator's view of a cluster: its nodes with the states that Slurm and operators set, its troubles, and its past condition.

use serde_json::Value;

use super::service::{SOON, reserved, script, serve};
use crate::support::offers::{Offer, date_time, now};
use crate::support::server::Server;
use crate::support::slurm::Cluster;
use crate::support::{eventually, run};

fn say(server: &Server, arguments: &[&str]) -> Value {
    let arguments = [&["nodes", "cluster"], arguments, &["--json"]].concat();
    let said = server.run(&arguments);
    assert!(
        said.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    serde_json::from_slice(&said.stdout).expect("it is JSON")
}

/// The state of a node, and which reporter says it.
fn standing(node: &Value) -> (&str, Vec<[&str; 3]>) {
    let said = node["said"].as_array().into_iter().flatten();
    let said = said.map(|said| ["by", "state", "reason"].map(|key| said[key].as_str().unwrap_or_default()));
    (node["state"].as_str().unwrap_or_default(), said.collect())
}

#[test]
fn nodes_are_as_bad_as_slurm_or_an_operator_says_and_a_controller_that_is_down_is_shown() {
    run(async {
        let mut cluster = Cluster::start();
        // Two of sixteen processors.
        let batch = script(&cluster, "sleep 600");
        let job = ["-n2", "-wn1", "-t60", "-o/dev/null", "--chdir=/", &batch];
        cluster.run("sbatch", &job);
        eventually("the others' job", SOON, async || {
            cluster
                .jobs()
                .iter()
                .any(|[_, _, state]| state == "RUNNING")
                .then_some(())
        })
        .await;
        let server = serve(&cluster);
        let client = server.client();
        let before = date_time(now() + 7_200);
        let predict = [
            "predict",
            "--app",
            "sleep",
            "--argument",
            "1",
            "--resource",
            "cluster",
            "--before",
            &before,
            "--json",
        ];
        eventually("a sample that predictions use", SOON, async || {
            let predicted = server.run(&predict);
            let predicted: Value = serde_json::from_slice(&predicted.stdout).ok()?;
            predicted["steps"].to_string().contains("0.875").then_some(())
        })
        .await;

        cluster.run(
            "scontrol",
            &["update", "nodename=n2", "state=drain", "reason=a fan | is\nloud"],
        );
        say(&server, &["n[2-3]", "--set", "down", "--reason", "power"]);
        eventually("what both say", SOON, async || {
            let nodes = client.get_json("/resources/cluster/nodes").await;
            let both = [
                ["executor", "drained", "a fan | is"],
                ["operator", "down", "power"],
            ];
            let [second, third] = [1, 2].map(|node| standing(&nodes["nodes"][node]));
            (second == ("down", both.into()) && third == ("down", both[1..].into())).then_some(())
        })
        .await;
        // An operator takes back the operator's own statement, and not Slurm's.
        let said = say(&server, &["n[2-3]", "--set", "up"]);
        assert_eq!(
            standing(&said["nodes"][0]),
            ("drained", vec![["executor", "drained", "a fan | is"]])
        );
        assert_eq!(standing(&said["nodes"][1]), ("up", vec![]));

        let troubles = async || client.get_json("/resources").await["resources"][0]["troubles"].clone();
        assert_eq!(troubles().await, Value::Array(Vec::new()));
        cluster.kill_controller();
        eventually("the trouble", SOON, async || {
            let shown = troubles().await.to_string();
            (shown.contains("follow the plan") && shown.contains("cannot be reached")).then_some(())
        })
        .await;
        let shown = server.run(&["resources"]);
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.contains("does not follow the plan since"), "{shown}");
        eventually("the text of readiness", SOON, async || {
            let ready = client.get("/readyz").await;
            assert_eq!(ready.status, 200, "other resources go on: {}", ready.body);
            ready
                .body
                .contains("cluster does not report the states of its nodes")
                .then_some(())
        })
        .await;
        cluster.start_controller();
        eventually("its end", SOON, async || {
            (troubles().await == Value::Array(Vec::new())).then_some(())
        })
        .await;
        server.assert_verified();
    });
}

#[test]
fn a_slot_is_moved_from_a_node_that_an_operator_takes_out_of_use() {
    run(async {
        let cluster = Cluster::start();
        let server = serve(&cluster);
        let start = now() + 600;
        let offer = Offer::reserve(1, 60).within(start, start + 60).xml();
        let id = server.client().post("/agreements", offer).await.created();
        for said in ["drained", "down"] {
            let held = reserved(&cluster, id, 1).await;
            let node = held.first().map(String::as_str).unwrap_or_default();
            say(&server, &[node, "--set", said, "--reason", "a fan"]);
            eventually("another node", SOON, async || {
                (reserved(&cluster, id, 1).await != held).then_some(())
            })
            .await;
        }
        server.assert_verified();
    });
}
