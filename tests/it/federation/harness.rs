//! Domains of their own that know each other: each a real service with its store, behind a way that stays where it is.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::breakable_proxy::BreakableProxy;
use crate::support::client::{Answer, Client};
use crate::support::fixture::column;
use crate::support::offers::date_time;
use crate::support::server::Server;

/// A domain.
pub(super) struct Domain {
    pub(super) name: &'static str,
    pub(super) server: Server,
    /// Others reach it by this.
    pub(super) way: BreakableProxy,
    /// A requester of it.
    pub(super) requester: Client,
    key: String,
}

/// What is different in a domain: its name, its nodes, its price of a node-hour, and the names of its peers.
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) nodes: u32,
    pub(super) node_hour: &'static str,
    /// The part of the price that it costs to end an agreement, in percent.
    pub(super) cancellation: u32,
    pub(super) peers: &'static [&'static str],
    /// Lines for each of its peers.
    pub(super) of_peers: &'static str,
    /// Lines for its part among others.
    pub(super) of_domain: &'static str,
    /// Configuration before everything else,
    pub(super) more: &'static str,
    /// and behind it.
    pub(super) last: String,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            name: "one",
            nodes: 1,
            node_hour: "1",
            cancellation: 0,
            peers: &[],
            of_peers: "",
            of_domain: "",
            more: "",
            last: String::new(),
        }
    }
}

impl Plan {
    /// Nodes, prices, and patience with a machine that stands still.
    fn own(&self) -> String {
        format!(
            "{}\n[limits]\nheader_seconds = 600\nbody_seconds = 600\n[[resource]]\nname = \"of-{}\"\nkind = \"local\"\nnodes = {}\n\
             [pricing]\ncurrency = \"EUR\"\nnode_hour = \"{}\"\ncancellation_percent = {}\n",
            self.more, self.name, self.nodes, self.node_hour, self.cancellation
        )
    }
}

/// Starts domains of these plans, on stores of their own, and makes each known to those that have it as a peer.
pub(super) async fn start_domains(plans: &[Plan]) -> Vec<Domain> {
    let mut servers: Vec<Server> = plans
        .iter()
        .map(|plan| Server::configured(None, &plan.own()))
        .collect();
    let mut ways = BTreeMap::new();
    let mut keys = BTreeMap::new();
    for (plan, server) in plans.iter().zip(&servers) {
        ways.insert(plan.name, BreakableProxy::to(server.address()).await);
        for other in plans.iter().filter(|other| other.peers.contains(&plan.name)) {
            keys.insert((other.name, plan.name), server.key_for(other.name, "consumer"));
        }
    }
    let mut domains = Vec::new();
    for (plan, mut server) in plans.iter().zip(servers.drain(..)) {
        let key = server.key_for("requester", "consumer");
        let mut configuration = plan.own();
        write!(
            configuration,
            "[federation]\nname = \"{}\"\nask_seconds = 8\n{}",
            plan.name, plan.of_domain
        )
        .expect("a text");
        for peer in plan.peers {
            let (address, key) = (ways[peer].address, &keys[&(plan.name, *peer)]);
            write!(
                configuration,
                "[[peer]]\nname = \"{peer}\"\naddress = \"http://{address}\"\nkey = \"{key}\"\n{}",
                plan.of_peers
            )
            .expect("a text");
        }
        configuration += &plan.last;
        server.reconfigure(&configuration);
        server.kill9();
        server.restart();
        let way = ways[plan.name].clone();
        way.lead_to(server.address());
        domains.push(Domain {
            name: plan.name,
            requester: server.client_with(&key),
            server,
            way,
            key,
        });
    }
    domains
}

impl Domain {
    /// Kills it, and starts it again on what it has left behind.
    pub(super) fn kill_and_restart(&mut self) {
        self.server.kill9();
        self.server.restart();
        self.way.lead_to(self.server.address());
        self.requester = self.server.client_with(&self.key);
    }

    /// The answer to a request for nodes in a window, which opens a negotiation.
    pub(super) async fn negotiate(&self, request: &Value) -> Value {
        let answer = self.requester.post_json("/negotiations", request).await;
        assert_eq!(answer.status.as_u16(), 201, "{}: {}", self.name, answer.body);
        answer.json()
    }

    /// Accepts an offer under a key.
    pub(super) async fn accept(&self, offer: &Value, key: &str) -> Answer {
        let request = self.requester.request(reqwest::Method::POST, "/agreements");
        let request = request
            .header("Idempotency-Key", key)
            .json(&json!({ "offer": offer["id"] }));
        self.requester.send(request).await
    }

    /// An agreement as its party here sees it.
    pub(super) async fn agreement(&self, id: &Value) -> Value {
        let id = id.as_str().unwrap_or_default();
        self.requester.get_json(&format!("/agreements/{id}")).await
    }

    /// All agreements here, of all parties, as an operator sees them.
    pub(super) async fn agreements(&self) -> Vec<Value> {
        let list = self.server.client().get_json("/agreements?limit=200").await;
        list["agreements"].as_array().cloned().unwrap_or_default()
    }

    /// The sum of an account here in millionths of a euro, by the ledger's entries.
    pub(super) async fn balance(&self, account: &str) -> i64 {
        let url = format!("sqlite:{}", self.server.data_dir().join("bespeak.db").display());
        let sums =
            format!("(SELECT SUM(amount_micros) AS sum FROM ledger WHERE account = '{account}') AS sums");
        let found = column(&url, &sums, "sum").await.expect("the ledger can be read");
        found.first().and_then(|sum| sum.parse().ok()).unwrap_or(0)
    }
}

/// A request for nodes for some seconds, with the program `sleep` for so long, in a window.
pub(super) fn wanted(nodes: u32, seconds: u32, (start, end): (i64, i64)) -> Value {
    json!({
        "application": "sleep", "arguments": [seconds.to_string()], "nodes": nodes, "durationSeconds": seconds + 20,
        "window": { "start": date_time(start), "end": date_time(end) },
    })
}
