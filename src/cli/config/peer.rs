//! `[[peer]]` of the configuration: the other domains.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use address::Policy;
use domain::resources::{CAPACITY_MAX, is_resource_name};
use reqwest::Url;
use serde::Deserialize;

use super::ranges::{amount_in_range, check_range};
use federation::settings::{PeerSecret, PeerSettings};

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

/// One peer as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) name: String,
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

    pub(super) fn party(&self) -> &str {
        self.party.as_deref().unwrap_or(&self.name)
    }

    pub(super) fn check_config(&self) -> Result<(), String> {
        check_peer_name("name", &self.name)?;
        self.check_configured_address()?;
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
        self.configured_credit()?;
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
    fn check_configured_address(&self) -> Result<(), String> {
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

    pub(super) fn settings(&self, folder: &Path) -> Result<PeerSettings, String> {
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
            credit: self.configured_credit()?,
            markup: self.markup(),
            forwards: self.forwards,
            party: self.party().to_owned(),
        })
    }

    /// In millionths.
    fn configured_credit(&self) -> Result<Option<i64>, String> {
        let amount = |text: &str| amount_in_range("credit", text, 0..=CREDIT_MAX);
        self.credit.as_deref().map(amount).transpose()
    }

    /// Millionths of a percent.
    #[expect(clippy::cast_possible_truncation, reason = "it is at most a thousand percent")]
    fn markup(&self) -> i64 {
        (self.markup_percent * MARKUP_STEPS).round() as i64 * 1_000
    }
}

pub(super) fn check_peer_name(key: &str, name: &str) -> Result<(), String> {
    if is_resource_name(name) {
        return Ok(());
    }
    Err(format!(
        "{key}: expected letters, digits, '-', '_' or '.', found {name:?}"
    ))
}
