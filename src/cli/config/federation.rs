//! `[federation]` and `[[peer]]` of the configuration: this domain among others, and the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use address::Policy;
use domain::resources::{CAPACITY_MAX, is_resource_name};
use reqwest::Url;
use serde::Deserialize;

use super::ranges::{amount_within, check_range, table};
use crate::federation::settings::{Federation, PeerSecret, PeerSettings};

/// Peers at most: all are asked side by side.
const PEERS_MAX: usize = 64;
/// Questions of a minute beyond this are a slip of the pen.
const REQUESTS_MAX: u32 = 100_000;
/// Node-hours of open offers beyond this are a slip of the pen.
const NODE_HOURS_MAX: u32 = 1_000_000_000;
/// The largest credit at a peer.
const CREDIT_MAX: i64 = 1_000_000_000;
/// More than eleven times the price of a peer is a slip of the pen.
const MARKUP_MAX: f64 = 1_000.0;
/// Decimals of a percent that count, as a factor.
const MARKUP_STEPS: f64 = 1_000.0;
/// An operator's own address may lie anywhere.
const ANYWHERE: Policy = Policy {
    private_addresses: true,
};

table! {
    "federation"
    /// The table as written.
    pub(super) struct Federating {
        /// The name of this domain on the paths of requests.
        name: Option<String> = None;
        /// How many domains, one after the other, requests are passed on to.
        hops: u32 = 3, 0..=8;
        /// How many seconds peers are waited for.
        ask_seconds: u64 = 2, 1..=8;
        /// Whether peers get an opaque id of the requester.
        tell_requesters: bool = false;
        /// Whether the peers are named to everybody.
        show_peers: bool = true;
        /// The templates whose requests are not passed on.
        home_templates: Vec<String> = Vec::new();
    }
}

/// One peer as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    name: String,
    address: String,
    /// Whether keys go to it in clear over the network.
    #[serde(default)]
    plain: bool,
    key: Option<String>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    templates: BTreeMap<String, String>,
    #[serde(default = "Peer::nodes")]
    nodes: u32,
    #[serde(default = "Peer::requests_per_minute")]
    requests_per_minute: u32,
    #[serde(default = "Peer::held_node_hours")]
    held_node_hours: u32,
    /// An amount in the currency of the prices here.
    credit: Option<String>,
    #[serde(default)]
    markup_percent: f64,
    #[serde(default = "Peer::forwards")]
    forwards: bool,
    party: Option<String>,
}

impl Federating {
    /// Checks it beside the peers and the names of resources. Returns the wrong key and the expected value, if there is one.
    pub(super) fn check(&self, peers: &[Peer], resources: &[&str]) -> Result<(), String> {
        self.check_ranges()?;
        let name = self.name.as_deref();
        if let Some(name) = name {
            check_name("federation.name", name)?;
        } else if !peers.is_empty() {
            return Err("federation.name: expected where there is a [[peer]]".to_owned());
        }
        if peers.len() > PEERS_MAX {
            return Err(format!("peer: expected at most {PEERS_MAX} of them"));
        }
        let (mut names, mut parties) = (BTreeSet::new(), BTreeSet::new());
        for (index, peer) in peers.iter().enumerate() {
            let key = |key: &str| format!("peer[{index}].{key}");
            peer.check().map_err(|why| key(&why))?;
            let one_name = &peer.name;
            if Some(one_name.as_str()) == name {
                return Err(key(&format!("name: {one_name:?} is the name of this domain")));
            }
            if resources.contains(&one_name.as_str()) {
                return Err(key(&format!("name: {one_name:?} is the name of a resource")));
            }
            if !names.insert(one_name) {
                return Err(key(&format!("name: {one_name:?} is the name of another peer")));
            }
            if !parties.insert(peer.party()) {
                let party = peer.party();
                return Err(key(&format!("party: {party:?} is the party of another peer")));
            }
        }
        Ok(())
    }

    /// What they say together, with the keys that stand in files; none where this domain has no name. Paths are meant from a folder.
    ///
    /// # Errors
    /// The key of the configuration and why its file cannot be read.
    pub(super) fn federation(&self, peers: &[Peer], folder: &Path) -> Result<Option<Federation>, String> {
        let Some(name) = &self.name else {
            return Ok(None);
        };
        let peers = peers.iter().enumerate().map(|(index, peer)| {
            peer.settings(folder)
                .map_err(|why| format!("peer[{index}].{why}"))
        });
        Ok(Some(Federation {
            name: name.clone(),
            hops: self.hops,
            ask_within: Duration::from_secs(self.ask_seconds),
            tell_requesters: self.tell_requesters,
            show_peers: self.show_peers,
            home_templates: self.home_templates.iter().cloned().collect(),
            peers: peers.collect::<Result<_, _>>()?,
        }))
    }
}

impl Peer {
    fn nodes() -> u32 {
        1_000
    }

    fn requests_per_minute() -> u32 {
        120
    }

    fn held_node_hours() -> u32 {
        1_000
    }

    fn forwards() -> bool {
        true
    }

    fn party(&self) -> &str {
        self.party.as_deref().unwrap_or(&self.name)
    }

    fn check(&self) -> Result<(), String> {
        check_name("name", &self.name)?;
        self.check_address()?;
        match (&self.key, &self.key_file) {
            (Some(key), None) if PeerSecret::new(key).is_none() => {
                return Err("key: expected letters, digits and signs without spaces".to_owned());
            }
            (Some(_), None) | (None, Some(_)) => {}
            _ => return Err("key_file: expected, or key in its place".to_owned()),
        }
        if let Some((own, theirs)) = self
            .templates
            .iter()
            .find(|(own, theirs)| own.is_empty() || theirs.is_empty())
        {
            return Err(format!(
                "templates: expected ids of templates, found {own:?} = {theirs:?}"
            ));
        }
        check_range("nodes", self.nodes, 1..=CAPACITY_MAX)?;
        check_range("requests_per_minute", self.requests_per_minute, 1..=REQUESTS_MAX)?;
        check_range("held_node_hours", self.held_node_hours, 0..=NODE_HOURS_MAX)?;
        self.credit()?;
        check_range("markup_percent", self.markup_percent, 0.0..=MARKUP_MAX)?;
        let steps = self.markup_percent * MARKUP_STEPS;
        if (steps - steps.round()).abs() > 1e-6 {
            let found = self.markup_percent;
            return Err(format!(
                "markup_percent: expected at most three decimals, found {found}"
            ));
        }
        if self.party.as_deref().is_some_and(str::is_empty) {
            return Err("party: expected the name of a party, found \"\"".to_owned());
        }
        Ok(())
    }

    /// Checks its address: with TLS, but on this machine, or where it is said that the way to it needs none.
    fn check_address(&self) -> Result<(), String> {
        ANYWHERE
            .check(&self.address)
            .map_err(|why| format!("address: {why}"))?;
        let url: Url = self.address.parse().map_err(|why| format!("address: {why}"))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("address: expected one without ? and #".to_owned());
        }
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if url.scheme() != "https" && !is_here && !self.plain {
            return Err(
                "address: expected https://…, or plain = true where the network on the way may read the key"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn settings(&self, folder: &Path) -> Result<PeerSettings, String> {
        let key = match (&self.key, &self.key_file) {
            (_, Some(file)) => {
                let path = folder.join(file);
                let text = std::fs::read_to_string(&path)
                    .map_err(|why| format!("key_file: cannot read {}: {why}", path.display()))?;
                PeerSecret::new(text.trim()).ok_or_else(|| {
                    format!("key_file: expected a key and nothing else in {}", path.display())
                })?
            }
            (Some(key), None) => PeerSecret::new(key).ok_or("key: expected a key")?,
            (None, None) => return Err("key_file: expected, or key in its place".to_owned()),
        };
        Ok(PeerSettings {
            name: self.name.clone(),
            address: self.address.trim_end_matches('/').to_owned(),
            key,
            templates: self.templates.clone(),
            nodes: self.nodes,
            requests_per_minute: self.requests_per_minute,
            held_node_hours: self.held_node_hours,
            credit: self.credit()?,
            markup: self.markup(),
            forwards: self.forwards,
            party: self.party().to_owned(),
        })
    }

    /// In millionths.
    fn credit(&self) -> Result<Option<i64>, String> {
        let amount = |text: &str| amount_within("credit", text, 0..=CREDIT_MAX);
        self.credit.as_deref().map(amount).transpose()
    }

    /// Millionths of a percent.
    #[expect(clippy::cast_possible_truncation, reason = "it is at most a thousand percent")]
    fn markup(&self) -> i64 {
        (self.markup_percent * MARKUP_STEPS).round() as i64 * 1_000
    }
}

fn check_name(key: &str, name: &str) -> Result<(), String> {
    if is_resource_name(name) {
        return Ok(());
    }
    Err(format!(
        "{key}: expected letters, digits, '-', '_' or '.', found {name:?}"
    ))
}
