//! What the configuration says of this domain among others, and of each peer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use domain::agreement::{Money, part_of_amount};
use domain::resources::{PEER, Resource};

/// This domain among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FederationSettings {
    /// Its name on the paths of requests.
    pub name: String,
    /// How many domains, one after the other, its requests are passed on to; 0 for none.
    pub hops: u32,
    /// How long its peers are waited for.
    pub ask_within: Duration,
    /// Whether peers get an opaque id of the requester.
    pub tell_requesters: bool,
    /// Whether it names its peers to everybody.
    pub show_peers: bool,
    /// The templates whose requests are not passed on, by their ids.
    pub home_templates: BTreeSet<String>,
    /// Its peers, in the order of the configuration.
    pub peers: Vec<PeerSettings>,
}

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerSettings {
    /// Its name here, which is that of its resource, too.
    pub name: String,
    /// The address of its service, without a slash at the end.
    pub address: String,
    /// The key that it has given this domain.
    pub key: PeerSecret,
    /// Its templates for those of this domain, by their ids; the same id where none is named.
    pub templates: BTreeMap<String, String>,
    /// The most nodes that this domain has there at a time.
    pub nodes: u32,
    /// The most questions that it is asked in a minute.
    pub requests_per_minute: u32,
    /// The most node-hours that it holds for open offers of this domain.
    pub held_node_hours: u32,
    /// The most that the agreements that are not over there may cost together, in millionths of the currency; none for no limit.
    pub credit: Option<i64>,
    /// What is added to its prices, in millionths of a percent.
    pub markup: i64,
    /// Whether its own requests may be passed on to other peers.
    pub forwards: bool,
    /// The party that its key has at this domain.
    pub party: String,
}

/// A key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerSecret(String);

impl FederationSettings {
    /// The peer whose requests come from this party.
    pub fn peer_of_party(&self, party: &str) -> Option<&PeerSettings> {
        self.peers.iter().find(|peer| peer.party == party)
    }
}

impl PeerSettings {
    /// The template of the peer for one of this domain.
    pub fn template<'a>(&'a self, own: &'a str) -> &'a str {
        self.templates.get(own).map_or(own, String::as_str)
    }

    /// A price of the peer with what is added to it, to the nearest millionth.
    pub fn marked_up(&self, price: Money) -> Money {
        let added = part_of_amount(price, self.markup, 100 * 1_000_000);
        Money::new(price.micros.saturating_add(added.micros), price.currency)
    }

    /// The peer as a resource of the plan.
    pub fn resource(&self) -> Resource {
        Resource::new(&self.name, PEER, self.nodes)
    }
}

impl PeerSecret {
    /// Takes a key that can stand in a header: visible characters of ASCII, at least one.
    pub fn new(text: &str) -> Option<Self> {
        let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_one.then(|| Self(text.to_owned()))
    }

    /// Its text, for the peer alone.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PeerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use domain::agreement::Currency;

    use super::*;

    #[test]
    fn a_peer_is_a_resource_with_its_price_and_its_templates_and_hides_its_key() {
        let peer = PeerSettings {
            name: "south".into(),
            address: "http://127.0.0.1:1".into(),
            key: PeerSecret::new("bsp_secret").unwrap(),
            templates: [("sleep".to_owned(), "nap".to_owned())].into(),
            nodes: 7,
            requests_per_minute: 1,
            held_node_hours: 1,
            credit: None,
            markup: 12_500_000,
            forwards: true,
            party: "south".into(),
        };
        assert_eq!((peer.template("sleep"), peer.template("run")), ("nap", "run"));
        let eur = |micros| Money::new(micros, Currency::parse("EUR").unwrap());
        assert_eq!(peer.marked_up(eur(1_000_000)), eur(1_125_000));
        let resource = peer.resource();
        assert!(resource.is_peer() && resource.capacity == 7, "{resource:?}");
        assert!(!format!("{peer:?}").contains("bsp_secret"));
        for wrong in ["", "a b", "a\n", "ä"] {
            assert_eq!(PeerSecret::new(wrong), None, "{wrong:?}");
        }
    }
}
