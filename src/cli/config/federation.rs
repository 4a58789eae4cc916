//! `[federation]` of the configuration: this domain among others.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::peer::{Peer, check_peer_name};
use super::ranges::table;
use federation::settings::FederationSettings;

/// Peers at most: all are asked side by side.
const PEERS_MAX: usize = 64;

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

impl Federating {
    /// Checks it beside the peers and the names of resources. Returns the wrong key and the expected value, if there is one.
    pub(super) fn check(&self, peers: &[Peer], resources: &[&str]) -> Result<(), String> {
        self.check_ranges()?;
        let name = self.name.as_deref();
        if let Some(name) = name {
            check_peer_name("federation.name", name)?;
        } else if !peers.is_empty() {
            return Err("federation.name: expected where there is a [[peer]]".to_owned());
        }
        if peers.len() > PEERS_MAX {
            return Err(format!("peer: expected at most {PEERS_MAX} of them"));
        }
        let (mut names, mut parties) = (BTreeSet::new(), BTreeSet::new());
        for (index, peer) in peers.iter().enumerate() {
            let key = |key: &str| format!("peer[{index}].{key}");
            peer.check_config().map_err(|why| key(&why))?;
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
    pub(super) fn federation(
        &self,
        peers: &[Peer],
        folder: &Path,
    ) -> Result<Option<FederationSettings>, String> {
        let Some(name) = &self.name else {
            return Ok(None);
        };
        let peers = peers.iter().enumerate().map(|(index, peer)| {
            peer.settings(folder)
                .map_err(|why| format!("peer[{index}].{why}"))
        });
        Ok(Some(FederationSettings {
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
