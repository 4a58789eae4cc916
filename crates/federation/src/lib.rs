//! Federation: other domains, the peers: they are asked before a requester is turned down, and carry out what they have agreed with us.
//!
//! [`client`] is the way to one peer, over the same messages that our own clients use: answers of peers are hostile input. [`ask`] asks
//! several side by side within a budget of time. What a peer holds for an offer of ours is kept with that offer; once it is accepted,
//! [`make`] asks the peer for its agreement, [`follow`] looks how the peer's agreement stands, and [`executor`] tells the dispatcher.
//! [`neighbours`] finds out what domains say of themselves. Nothing here decides: the planner does.

pub mod ask;
pub mod client;
mod executor;
mod follow;
mod followed_agreements;
mod make;
pub mod neighbours;
pub mod requester_secret;
pub mod settings;

pub use ask::{FoundAtPeer, PassedFile, PeerQuestion};
pub use executor::PeerExecutor;
pub use follow::Follower;
pub use followed_agreements::FollowedAgreements;
pub use make::make_at_peer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ring::hmac;
use task::lock::lock;
use uuid::Uuid;

use client::Peer;
use domain::clock::Clock;
use settings::FederationSettings;

/// The peers of this domain. Cheap to clone.
#[derive(Clone)]
pub struct Federation(Arc<FederationState>);

struct FederationState {
    settings: FederationSettings,
    peers: Vec<Peer>,
    followed: FollowedAgreements,
    /// The secret for the ids of requesters, which are opaque and always the same.
    secret: hmac::Key,
    /// The requests that were seen lately, each with the negotiation in which it is answered.
    seen: Mutex<ask::RecentRequests>,
    /// The holds at peers for the negotiations here.
    held: Mutex<BTreeMap<Uuid, Vec<ask::HeldThere>>>,
    /// Held from the look at what agreements at a peer cost until the next one is stored.
    crediting: tokio::sync::Mutex<()>,
    /// How peers have kept their word.
    kept: Mutex<BTreeMap<String, PeerRecord>>,
}

/// How a peer has kept its word.
#[derive(Debug, Clone, Copy, Default)]
struct PeerRecord {
    kept: u64,
    broken: u64,
}

impl PeerRecord {
    /// The part that it has kept; one promise that is kept is taken for granted.
    fn rate(self) -> f64 {
        let real = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
        (real(self.kept) + 1.0) / (real(self.kept) + real(self.broken) + 1.0)
    }
}

impl Federation {
    /// The peers of these settings; `secret` makes the ids of requesters opaque.
    ///
    /// # Errors
    /// Why a peer cannot be spoken to, in words.
    pub fn new(
        settings: FederationSettings,
        followed: FollowedAgreements,
        secret: &[u8],
        clock: &Clock,
    ) -> Result<Self, String> {
        let peers = settings
            .peers
            .iter()
            .map(|peer| Peer::new(peer.clone(), clock.clone()));
        Ok(Self(Arc::new(FederationState {
            peers: peers.collect::<Result<_, _>>()?,
            settings,
            followed,
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            seen: Mutex::default(),
            held: Mutex::default(),
            crediting: tokio::sync::Mutex::default(),
            kept: Mutex::default(),
        })))
    }

    /// What the configuration says of this domain among others.
    pub fn settings(&self) -> &FederationSettings {
        &self.0.settings
    }

    /// The peers, in the order of the configuration.
    pub fn peers(&self) -> &[Peer] {
        &self.0.peers
    }

    /// The peer of this name.
    pub fn peer(&self, name: &str) -> Option<Peer> {
        self.0.peers.iter().find(|peer| peer.name() == name).cloned()
    }

    /// The agreements that peers carry out.
    pub fn followed(&self) -> &FollowedAgreements {
        &self.0.followed
    }

    /// While it is held, no other agreement that costs is made at a peer.
    pub async fn credit_lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.crediting.lock().await
    }

    /// Takes back how a peer has kept its word before.
    fn recall_kept(&self, peer: &str, kept: u64, broken: u64) {
        let mut all = lock(&self.0.kept);
        all.insert(peer.to_owned(), PeerRecord { kept, broken });
    }

    /// Notes how a peer has kept its word.
    fn note_kept(&self, peer: &str, is_kept: bool) {
        let mut all = lock(&self.0.kept);
        let record = all.entry(peer.to_owned()).or_default();
        if is_kept {
            record.kept += 1;
        } else {
            record.broken += 1;
        }
    }

    /// The id by which peers may know a party, which tells nothing else of it.
    fn opaque_id(&self, party: &str) -> String {
        store::hex(&hmac::sign(&self.0.secret, party.as_bytes()).as_ref()[..16])
    }

    /// How many agreements a peer has carried out or ended as it was asked, and how many it has lost.
    pub fn promises(&self, peer: &str) -> (u64, u64) {
        let PeerRecord { kept, broken } = self.record_of(peer);
        (kept, broken)
    }

    fn record_of(&self, peer: &str) -> PeerRecord {
        let kept = lock(&self.0.kept);
        kept.get(peer).copied().unwrap_or_default()
    }

    /// Whether requests of a party that is a peer are passed on.
    fn passes_on_for(&self, party: &str) -> bool {
        let peer_settings = self.0.settings.peer_of_party(party);
        peer_settings.is_none_or(|peer| peer.forwards)
    }
}
