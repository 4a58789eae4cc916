//! What domains say of themselves at `/.well-known/bespeak`, to everybody: fetched from peers again and again, and from the peers of
//! peers where both sides name theirs. The latter are shown and never asked for offers: whom a peer trusts is not trusted for that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use address::Policy;
use domain::clock::{Clock, Micros};
use domain::resources::is_resource_name;
use futures_util::future::join_all;
use metrics::{Exposition, metrics};
use reqwest::header::ACCEPT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use task::lock::lock;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Federation;
use super::client::{Peer, fetch_bounded};

/// How often domains are looked at, in the mean.
const LOOK_EVERY: Duration = Duration::from_mins(5);
/// Peers of peers that are looked at.
const BEYOND_MAX: usize = 64;
/// Peers of peers that are looked at at the same time.
const BEYOND_AT_ONCE: usize = 8;
/// How long one of these may take.
const BEYOND_WAIT: Duration = Duration::from_secs(10);
/// Entries of a list in a description.
const LISTED_MAX: usize = 1_000;
/// Bytes of a text in a description.
const TEXT_MAX: usize = 300;
/// Attributes of a resource in a description.
const ATTRIBUTES_MAX: usize = 100;

metrics! {
    QUESTIONS = Counter "bespeak_peer_questions_total":
        "Questions that peers were asked, by what became of them: offered, refused, late or failed.";
    NOT_ASKED = Gauge "bespeak_peer_not_asked": "Whether a peer is not asked for a while, because it failed.";
}

/// The words of a domain about itself. One without a name has none.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Domain {
    /// The name of a domain; none where it has none among others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"north")]
    pub domain: Option<String>,
    /// The ids of the templates that it offers.
    #[schemars(example = ["advance-reservation"])]
    pub templates: Vec<String>,
    /// Its resources.
    pub resources: Vec<DomainResource>,
    /// The names of its applications.
    #[schemars(example = ["sleep"])]
    pub applications: Vec<String>,
    /// How it deals with requests of other domains.
    pub policy: DomainPolicy,
    /// Its peers, where it names them.
    pub peers: Vec<NamedDomain>,
}

/// A resource of a domain.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DomainResource {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub name: String,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// The attributes of its nodes that requests may ask for.
    #[serde(default)]
    #[schemars(example = json!({"cpus": 16}))]
    pub attributes: BTreeMap<String, Value>,
}

/// How a domain deals with requests of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainPolicy {
    /// Whether it passes requests on to its own peers.
    #[schemars(example = true)]
    pub forwards: bool,
    /// To how many domains, one after the other, its requests are passed on.
    #[schemars(example = 3)]
    pub hops: u32,
    /// For how many seconds it holds its offers.
    #[schemars(example = 300)]
    pub hold_seconds: i64,
}

/// A domain and where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NamedDomain {
    /// The name of a domain.
    #[schemars(example = &"south")]
    pub name: String,
    /// The address of its service.
    #[schemars(example = &"https://south.example.org")]
    pub address: String,
}

/// The findings about a peer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PeerFindings {
    /// When it was last looked at, by our clock; none before.
    pub at: Option<Micros>,
    /// What it said of itself when it last did.
    pub domain: Option<Domain>,
    /// Why it said nothing when it was last looked at.
    pub error: Option<String>,
    /// Its own peers, with what they say of themselves, where that is known.
    pub beyond: Vec<(NamedDomain, Option<Domain>)>,
}

/// This domain, its peers, and what was found out about these. Cheap to clone, and one for all clones.
#[derive(Clone)]
pub struct Neighbours(Arc<Inner>);

struct Inner {
    federation: Federation,
    clock: Clock,
    /// The rule for addresses that peers tell.
    policy: Policy,
    found: Mutex<BTreeMap<String, PeerFindings>>,
}

impl Domain {
    /// Reads what a domain says of itself.
    ///
    /// # Errors
    /// The expected form, in words.
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let domain: Self =
            serde_json::from_slice(bytes).map_err(|why| format!("it cannot be read: {why}"))?;
        let lists = [
            domain.templates.len(),
            domain.resources.len(),
            domain.applications.len(),
            domain.peers.len(),
        ];
        if lists.iter().any(|length| *length > LISTED_MAX) {
            return Err(format!("at most {LISTED_MAX} entries of a list are expected"));
        }
        let names = domain
            .domain
            .iter()
            .chain(domain.peers.iter().map(|peer| &peer.name));
        if let Some(name) = names.into_iter().find(|name| !is_resource_name(name)) {
            return Err(format!("the name of a domain is expected, not {name:.80?}"));
        }
        let resources = || domain.resources.iter();
        if resources().any(|resource| resource.attributes.len() > ATTRIBUTES_MAX) {
            return Err(format!("at most {ATTRIBUTES_MAX} attributes are expected"));
        }
        let attributes = || resources().flat_map(|resource| &resource.attributes);
        if attributes().any(|(_, value)| !value.is_string() && !value.is_number()) {
            return Err("a text or a number is expected as an attribute".to_owned());
        }
        let texts = domain.templates.iter().chain(&domain.applications);
        let texts = texts.chain(domain.peers.iter().map(|peer| &peer.address));
        let texts = texts.chain(resources().map(|resource| &resource.name));
        let texts = texts.chain(attributes().map(|(name, _)| name));
        let mut texts = texts
            .map(String::as_str)
            .chain(attributes().filter_map(|(_, value)| value.as_str()));
        if texts.any(|text| text.len() > TEXT_MAX) {
            return Err(format!("at most {TEXT_MAX} bytes of a text are expected"));
        }
        Ok(domain)
    }
}

impl Neighbours {
    /// Of a domain, to whose peers a rule for addresses applies. Nothing is sent yet.
    pub fn new(federation: Federation, policy: Policy, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            federation,
            clock,
            policy,
            found: Mutex::default(),
        }))
    }

    /// This domain.
    pub fn federation(&self) -> &Federation {
        &self.0.federation
    }

    /// What was found out about the peer of a name.
    pub fn found(&self, name: &str) -> PeerFindings {
        lock(&self.0.found).get(name).cloned().unwrap_or_default()
    }

    /// The peers as this domain names them to everybody.
    pub fn named_peers(&self) -> Vec<NamedDomain> {
        let peers = self
            .federation()
            .peers()
            .iter()
            .filter(|_| self.federation().settings().show_peers);
        let named = |peer: &Peer| NamedDomain {
            name: peer.name().to_owned(),
            address: peer.settings().address.clone(),
        };
        peers.map(named).collect()
    }

    /// Looks at all peers and their peers again and again, until `stop`. The seed is of the times in between.
    pub async fn keep_looking(self, seed: u64, stop: CancellationToken) {
        let look = async {
            for round in 0.. {
                self.look_around().await;
                task::note_success();
                tokio::time::sleep(wait_until_neighbours_are_due(seed, round)).await;
            }
        };
        stop.run_until_cancelled(look).await;
    }

    /// Looks at all peers, and then at theirs.
    pub async fn look_around(&self) {
        join_all(self.federation().peers().iter().map(|peer| self.look_at(peer))).await;
        if !self.federation().settings().show_peers {
            return;
        }
        let beyond = self.named_beyond();
        let mut said: BTreeMap<String, Domain> = BTreeMap::new();
        for some in beyond.chunks(BEYOND_AT_ONCE) {
            let looked = join_all(some.iter().map(|address| self.look_beyond(address))).await;
            said.extend(
                some.iter()
                    .cloned()
                    .zip(looked)
                    .filter_map(|(at, some)| Some((at, some?))),
            );
        }
        for found in lock(&self.0.found).values_mut() {
            let named = found.domain.iter().flat_map(|domain| &domain.peers);
            let named = named.filter(|named| beyond.contains(&named.address));
            let beyond = named.map(|named| (named.clone(), said.get(&named.address).cloned()));
            found.beyond = beyond.collect();
        }
    }

    async fn look_at(&self, peer: &Peer) {
        let said = peer.description().await.map_err(|why| why.to_string());
        let said = said.and_then(|bytes| Domain::read(&bytes));
        let at = Some(self.0.clock.micros());
        let mut found = lock(&self.0.found);
        let found = found.entry(peer.name().to_owned()).or_default();
        found.at = at;
        match said {
            Ok(domain) => (found.domain, found.error) = (Some(domain), None),
            Err(why) => found.error = Some(why),
        }
    }

    /// The addresses of peers' peers, but for this domain and its own peers.
    fn named_beyond(&self) -> Vec<String> {
        let own: BTreeSet<&str> = self
            .federation()
            .peers()
            .iter()
            .map(|peer| &*peer.settings().address)
            .collect();
        let found = lock(&self.0.found);
        let named = found.values().filter_map(|found| found.domain.as_ref());
        let named = named.flat_map(|domain| &domain.peers);
        let named = named.filter(|named| {
            named.name != self.federation().settings().name
                && !own.contains(named.address.trim_end_matches('/'))
        });
        let all: BTreeSet<&String> = named.map(|named| &named.address).collect();
        all.into_iter().take(BEYOND_MAX).cloned().collect()
    }

    /// What a peer's peer says of itself; nothing is told of one that says nothing.
    async fn look_beyond(&self, address: &str) -> Option<Domain> {
        let look = async {
            let at = format!("{}/.well-known/bespeak", address.trim_end_matches('/'));
            let target = self.0.policy.resolved(&at).await?;
            let client = target.client(|client| client.timeout(BEYOND_WAIT))?;
            let request = client.get(target.url).header(ACCEPT, "application/json");
            let bytes = fetch_bounded(request).await.map_err(|why| why.to_string())?;
            Domain::read(&bytes)
        };
        let looked = tokio::time::timeout(BEYOND_WAIT, look).await;
        let looked = looked.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
        looked
            .inspect_err(|why| debug!(address, why, "a domain beyond a peer says nothing of itself"))
            .ok()
    }

    /// Writes out what peers were asked.
    pub fn expose(&self, text: &mut Exposition) {
        let health: Vec<_> = self
            .federation()
            .peers()
            .iter()
            .map(|peer| (peer.name(), peer.health()))
            .collect();
        let mut family = text.family(QUESTIONS);
        for (peer, one_health) in &health {
            let offered = one_health.answered.saturating_sub(one_health.refused);
            for (outcome, count) in [
                ("offered", offered),
                ("refused", one_health.refused),
                ("late", one_health.late),
                ("failed", one_health.failed),
            ] {
                family.sample(&[("peer", peer), ("outcome", outcome)], count);
            }
        }
        let not_asked = health
            .iter()
            .map(|(peer, health)| (peer, u8::from(health.not_asked_for.is_some())));
        text.numbers(NOT_ASKED, "peer", not_asked);
    }
}

/// How long to wait after a round: from nine to eleven tenths of [`LOOK_EVERY`], so that domains do not look all at once.
fn wait_until_neighbours_are_due(seed: u64, round: u64) -> Duration {
    // One step of splitmix64.
    let mut mixed = seed.wrapping_add(round.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let per_mille = 900 + (mixed ^ (mixed >> 31)) % 201;
    LOOK_EVERY * u32::try_from(per_mille).unwrap_or(1_000) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_some_five_minutes_apart_and_the_same_for_a_seed() {
        let waits: Vec<_> = (0..100)
            .map(|round| wait_until_neighbours_are_due(7, round))
            .collect();
        let (least, most) = (Duration::from_secs(270), Duration::from_secs(330));
        assert!(
            waits.iter().all(|wait| (least..=most).contains(wait)),
            "{waits:?}"
        );
        assert!(waits.windows(2).any(|pair| pair[0] != pair[1]));
        assert_eq!(waits[3], wait_until_neighbours_are_due(7, 3));
        assert_ne!(
            waits,
            (0..100)
                .map(|round| wait_until_neighbours_are_due(8, round))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_description_is_read_within_bounds_and_what_is_new_in_it_is_passed_over() {
        let said = r#"{"domain":"south","templates":["a"],"resources":[{"name":"r","nodes":4,
            "attributes":{"cpus":2,"cpu_architecture":"x86_64"}}],"new":{"deep":[1]},
            "peers":[{"name":"west","address":"https://west.example.org"}]}"#;
        let domain = Domain::read(said.as_bytes()).unwrap();
        assert_eq!(domain.domain.as_deref(), Some("south"));
        assert_eq!((domain.resources[0].nodes, domain.policy.forwards), (4, false));
        let long = "x".repeat(TEXT_MAX + 1);
        for (wrong, why) in [
            ("<html>".to_owned(), "cannot be read"),
            (r#"{"domain":"a b"}"#.to_owned(), "name of a domain"),
            (
                r#"{"peers":[{"name":"<b>","address":""}]}"#.to_owned(),
                "name of a domain",
            ),
            (format!(r#"{{"templates":["{long}"]}}"#), "bytes of a text"),
            (
                r#"{"resources":[{"name":"r","nodes":1,"attributes":{"a":[1]}}]}"#.to_owned(),
                "a text or a number",
            ),
            (
                r#"{"resources":[{"name":"r","nodes":-1}]}"#.to_owned(),
                "cannot be read",
            ),
            (
                format!(r#"{{"templates":[{}""]}}"#, r#""a","#.repeat(LISTED_MAX)),
                "entries of a list",
            ),
        ] {
            let found = Domain::read(wrong.as_bytes()).unwrap_err();
            assert!(found.contains(why), "{wrong:.80}: {found}");
        }
    }
}
