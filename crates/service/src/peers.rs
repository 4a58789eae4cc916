//! This domain among others: the words that it says of itself, and how its peers do.

use domain::clock::MICROS_PER_SECOND;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::resources::list_offered_resources;
use crate::views::money_and_time::instant_as_date_time;
use crate::views::schemas;
use federation::Federation;
use federation::client::{Peer, PeerHealth};
use federation::neighbours::{Domain, DomainPolicy, DomainResource, PeerFindings};

/// What this domain says of itself to peers, and to everybody: nothing where the configuration gives it no name among others.
pub fn show_domain_to_peers(service: &Service) -> Domain {
    let Some(neighbours) = &service.neighbours else {
        return Domain::default();
    };
    let settings = neighbours.federation().settings();
    let templates = service.templates.now();
    let resources = list_offered_resources(service).resources.into_iter();
    let applications = service.catalogue();
    Domain {
        domain: Some(settings.name.clone()),
        templates: templates.ids().into_iter().map(str::to_owned).collect(),
        resources: resources
            .map(|resource| DomainResource {
                name: resource.name,
                nodes: resource.nodes,
                attributes: resource.attributes,
            })
            .collect(),
        applications: applications
            .applications()
            .iter()
            .map(|application| application.name.clone())
            .collect(),
        policy: DomainPolicy {
            forwards: settings.hops > 0 && !settings.peers.is_empty(),
            hops: settings.hops,
            hold_seconds: service.planner.negotiating().hold,
        },
        peers: neighbours.named_peers(),
    }
}

/// The peers, and how they do. For operators.
pub fn list_peers(service: &Service) -> PeersView {
    let Some(neighbours) = &service.neighbours else {
        return PeersView {
            domain: None,
            peers: Vec::new(),
        };
    };
    let federation = neighbours.federation();
    let view = |peer: &Peer| PeerView::of(peer, neighbours.found(peer.name()), federation);
    PeersView {
        domain: Some(federation.settings().name.clone()),
        peers: federation.peers().iter().map(view).collect(),
    }
}

/// The peers.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct PeersView {
    /// The name of this domain; none where it has none among others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"north")]
    pub domain: Option<String>,
    /// In the order of the configuration.
    pub peers: Vec<PeerView>,
}

/// A peer, how it does, and what it says of itself.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerView {
    /// The name of the peer here.
    #[schemars(example = &"south")]
    pub name: String,
    /// The address of its service.
    #[schemars(example = &"https://storage.example.org/data")]
    pub address: String,
    /// The most nodes that this domain has there at a time.
    #[schemars(range(min = 1), example = 1_000)]
    pub nodes: u32,
    /// How it does.
    pub health: PeerHealthView,
    /// What is agreed and held there.
    pub carries: CarriesView,
    /// When it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub looked_at: Option<String>,
    /// Why it then said nothing of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"connection refused")]
    pub silent: Option<String>,
    /// What it last said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<Domain>,
    /// The peers of the peer, which are shown and never asked.
    pub beyond: Vec<BeyondView>,
}

/// What a peer carries out for this domain.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriesView {
    /// Agreements that are not over on both sides.
    #[schemars(example = 3)]
    pub agreements: usize,
    /// Node-hours that it may hold for open offers, rounded up.
    #[schemars(example = 12)]
    pub held_node_hours: u64,
    /// Agreements that it has carried out, or ended as it was asked.
    #[schemars(example = 120)]
    pub kept: u64,
    /// Agreements that it has lost.
    #[schemars(example = 1)]
    pub broken: u64,
}

/// How a peer does.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerHealthView {
    /// Whether its last answer came and could be read; also before the first question.
    #[schemars(example = true)]
    pub reachable: bool,
    /// Since when it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub silent_since: Option<String>,
    /// Why it last did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"connection refused")]
    pub last_error: Option<String>,
    /// For how many more seconds it is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 4)]
    pub not_asked_seconds: Option<i64>,
    /// Questions that it was asked since the service has started.
    #[schemars(example = 42)]
    pub asked: u64,
    /// Questions that it answered in time.
    #[schemars(example = 40)]
    pub answered: u64,
    /// Questions that it answered without an offer.
    #[schemars(example = 10)]
    pub refused: u64,
    /// Questions that it did not answer in time.
    #[schemars(example = 1)]
    pub late: u64,
    /// Questions that failed: no connection, a fault of its own, an answer that cannot be read.
    #[schemars(example = 1)]
    pub failed: u64,
}

/// A peer of a peer.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PeerBeyond")]
pub struct BeyondView {
    /// The name of a peer's peer.
    #[schemars(example = &"west")]
    pub name: String,
    /// The address of its service.
    #[schemars(example = &"https://storage.example.org/data")]
    pub address: String,
    /// What it last said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<Domain>,
}

impl PeerView {
    pub(super) fn of(peer: &Peer, found: PeerFindings, federation: &Federation) -> Self {
        let settings = peer.settings();
        Self {
            name: settings.name.clone(),
            address: settings.address.clone(),
            nodes: settings.nodes,
            health: PeerHealthView::of(peer.health()),
            carries: CarriesView::of(peer.name(), federation),
            looked_at: found.at.map(instant_as_date_time),
            silent: found.error,
            says: found.domain,
            beyond: found
                .beyond
                .into_iter()
                .map(|(beyond, says)| BeyondView {
                    name: beyond.name,
                    address: beyond.address,
                    says,
                })
                .collect(),
        }
    }
}

impl CarriesView {
    fn of(peer: &str, federation: &Federation) -> Self {
        let (kept, broken) = federation.promises(peer);
        Self {
            agreements: federation.followed().count(peer),
            held_node_hours: federation.node_seconds_held_by_asked(peer).div_ceil(3_600),
            kept,
            broken,
        }
    }
}

impl PeerHealthView {
    fn of(health: PeerHealth) -> Self {
        Self {
            reachable: health.is_reachable,
            silent_since: health.since.map(instant_as_date_time),
            last_error: health.last_error.filter(|_| !health.is_reachable),
            not_asked_seconds: health.not_asked_for.map(|left| left / MICROS_PER_SECOND + 1),
            asked: health.asked,
            answered: health.answered,
            refused: health.refused,
            late: health.late,
            failed: health.failed,
        }
    }
}
