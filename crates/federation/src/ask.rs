//! Asking peers side by side, within a budget of time: for what the own domain cannot place exactly.
//!
//! A request travels with its path, so that it never comes back to a domain, and with the number of domains that it may still be
//! passed on to. One that comes by several ways is answered once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::agreement::AtPeer;
use sha2::{Digest, Sha256};
use task::lock::lock;
use tokio::fs::File;
use tokio::task::JoinSet;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::travel::Travel;

use super::Federation;
use super::client::{Peer, PeerAnswer, PeerOffer};

/// For how long a request is known when it comes again: longer than any negotiation about it goes on from domain to domain.
const SEEN_FOR: Duration = Duration::from_mins(10);
/// Requests that are known at most: the oldest are forgotten before.
const SEEN_MAX: usize = 100_000;
/// The part of the time that we are given for which we let others wait, in percent: the rest is for our own answer.
const PASSED_ON_PERCENT: u32 = 80;

/// A request that the own domain cannot place exactly.
pub struct PeerQuestion<'a> {
    /// In its requester's words, without an open choice.
    pub offer: &'a AgreementOffer,
    /// How it has come here, where it came from another domain.
    pub travel: Option<&'a Travel>,
    /// The negotiation here.
    pub negotiation: Uuid,
    /// The offer in it.
    pub offer_here: Uuid,
    /// Its party here.
    pub party: &'a str,
    /// Node-seconds that it asks for.
    pub node_seconds: u64,
    /// The files that its job reads: they are passed on first.
    pub files: Vec<PassedFile>,
    /// The only peer that it may go to, where it names one.
    pub only: Option<String>,
    /// The agreement at a peer that it is to change, where there is one: that peer is asked to change it.
    pub changes: Option<&'a AtPeer>,
}

impl PeerQuestion<'_> {
    /// The address of the agreement that a peer is asked to change, if it has that.
    fn address_to_change(&self, peer: &Peer) -> Option<String> {
        let there = self.changes.filter(|there| there.peer == peer.name());
        there.and_then(|there| there.address.clone())
    }
}

/// A file that a peer gets before it is asked.
#[derive(Debug, Clone)]
pub struct PassedFile {
    /// Its name there.
    pub name: String,
    /// Where it is here.
    pub path: PathBuf,
}

/// An offer that a peer holds.
pub struct FoundAtPeer {
    /// The peer.
    pub peer: Peer,
    /// The address of the negotiation there.
    pub negotiation: String,
    /// The offer.
    pub offer: PeerOffer,
    /// When it came.
    pub received: Instant,
    /// The part of its promises that the peer has kept, from 0 to 1.
    pub kept: f64,
    /// The address of the peer's agreement that it takes the place of, where it changes one.
    pub replaces: Option<String>,
}

/// The requests that were seen lately.
#[derive(Default)]
pub(super) struct RecentRequests(BTreeMap<Uuid, (Uuid, Instant)>);

/// A negotiation at a peer in which it may hold something for us.
pub(super) struct HeldThere {
    peer: String,
    pub(super) negotiation: String,
    /// The offer here that it was asked for.
    offer_here: Uuid,
    node_seconds: u64,
    until: Instant,
}

impl RecentRequests {
    /// Whether a request came before, in another negotiation than this one; it is known from now on.
    fn note_request(&mut self, request: Uuid, negotiation: Uuid, now: Instant) -> bool {
        if self.0.len() >= SEEN_MAX {
            self.0.retain(|_, (_, at)| now.duration_since(*at) < SEEN_FOR);
        }
        if self.0.len() >= SEEN_MAX {
            self.0.pop_first();
        }
        let (first, at) = self.0.entry(request).or_insert((negotiation, now));
        if now.duration_since(*at) >= SEEN_FOR {
            (*first, *at) = (negotiation, now);
        }
        *first != negotiation
    }
}

impl Federation {
    /// Why a request that has travelled is not answered here, in words; none where it is.
    pub fn why_question_is_not_answered(&self, travel: &Travel, negotiation: Uuid) -> Option<&'static str> {
        if travel.path.contains(&self.0.settings.name) {
            return Some("it has been in this domain before");
        }
        let mut seen = lock(&self.0.seen);
        let is_again = seen.note_request(travel.request, negotiation, Instant::now());
        is_again.then_some("it has come to this domain by another way, and is answered there")
    }

    /// Asks the peers that may be asked, side by side, and returns what they hold, in no order. It waits for the slowest, but no
    /// longer than is allowed; what comes later is given back.
    pub async fn ask(&self, question: PeerQuestion<'_>) -> Vec<FoundAtPeer> {
        let Some((travel, within)) = self.next_travel(&question) else {
            return Vec::new();
        };
        let mut asked = JoinSet::new();
        for peer in self
            .0
            .peers
            .iter()
            .filter(|peer| self.may_ask(peer, &travel, &question))
        {
            let (peer, offer, travel) = (peer.clone(), question.offer.clone(), travel.clone());
            let files = question.files.clone();
            let about = question.address_to_change(&peer);
            asked.spawn(async move {
                let since = Instant::now();
                let passed = tokio::time::timeout(within, pass_files_before_asking(&peer, &files)).await;
                let answer = match passed {
                    Ok(Ok(())) => {
                        let left = within.saturating_sub(since.elapsed());
                        peer.ask(&offer, &travel, about.as_deref(), left)
                            .await
                            .map_err(|why| why.to_string())
                    }
                    Ok(Err(why)) => Err(why),
                    Err(_) => Err("its files are not passed on in time".to_owned()),
                };
                (peer, answer, Instant::now())
            });
        }
        let mut found = Vec::new();
        while let Some(answered) = asked.join_next().await {
            let Ok((peer, answer, received)) = answered else {
                continue;
            };
            match answer {
                Ok(answer) => {
                    found.extend(self.take_answer_of_asked_peer(&peer, (answer, received), &question));
                }
                Err(why) => tracing::debug!(peer = peer.name(), error = %why, "a peer offers nothing"),
            }
        }
        found
    }

    /// The way on of a request from here, and how long peers are waited for; none where it goes no further.
    fn next_travel(&self, question: &PeerQuestion<'_>) -> Option<(Travel, Duration)> {
        let settings = &self.0.settings;
        // Only a peer says where a request has been.
        let is_of_peer = self.0.settings.peer_of_party(question.party).is_some();
        let came = question.travel.filter(|_| is_of_peer);
        let (request, mut path, hops, waits) = match came {
            Some(travel) => {
                let waits = travel.waits / 100 * PASSED_ON_PERCENT;
                (
                    travel.request,
                    travel.path.clone(),
                    travel.hops.min(settings.hops),
                    waits,
                )
            }
            None => (Uuid::now_v7(), Vec::new(), settings.hops, u32::MAX),
        };
        let hops = hops.checked_sub(1)?;
        if came.is_some() && !self.passes_on_for(question.party) {
            return None;
        }
        if came.is_none() {
            // It may come back by another way.
            let mut seen = lock(&self.0.seen);
            seen.note_request(request, question.negotiation, Instant::now());
        }
        path.push(settings.name.clone());
        let own = u32::try_from(settings.ask_within.as_millis()).unwrap_or(u32::MAX);
        let waits = own.min(waits);
        let requester = settings
            .tell_requesters
            .then(|| self.opaque_id(question.party))
            .filter(|_| came.is_none());
        let requester = requester.or_else(|| came.and_then(|travel| travel.requester.clone()));
        let travel = Travel {
            request,
            path,
            hops,
            waits,
            requester,
        };
        Some((travel, Duration::from_millis(waits.into())))
    }

    /// The name under which a file of a party is passed on: other parties' files of the same name have others there.
    pub fn name_of_passed_file(&self, party: &str, name: &str) -> String {
        let name = Sha256::digest(name);
        format!("{}-{}", &self.opaque_id(party)[..16], store::hex(&name[..16]))
    }

    fn may_ask(&self, peer: &Peer, travel: &Travel, question: &PeerQuestion<'_>) -> bool {
        let held =
            u128::from(self.node_seconds_held_by_asked(peer.name())) + u128::from(question.node_seconds);
        // Files are not sent to one that would not be asked.
        peer.health().not_asked_for.is_none()
            && question.only.as_deref().is_none_or(|name| name == peer.name())
            && !travel.path.iter().any(|domain| domain == peer.name())
            && held <= u128::from(peer.settings().held_node_hours) * 3_600
    }

    /// Node-seconds that a peer may hold for open offers.
    pub fn node_seconds_held_by_asked(&self, peer: &str) -> u64 {
        let mut held = lock(&self.0.held);
        let now = Instant::now();
        for holds in held.values_mut() {
            holds.retain(|held| held.until > now);
        }
        held.retain(|_, held| !held.is_empty());
        let of_peer = held.values().flatten().filter(|held| held.peer == peer);
        of_peer.map(|held| held.node_seconds).sum()
    }

    /// The offers of an answer that are held. A negotiation without any is ended there.
    fn take_answer_of_asked_peer(
        &self,
        peer: &Peer,
        (answer, received): (PeerAnswer, Instant),
        question: &PeerQuestion<'_>,
    ) -> Vec<FoundAtPeer> {
        let (negotiation, offers) = (answer.negotiation, answer.offers);
        let held: Vec<PeerOffer> = offers
            .into_iter()
            .filter(|offer| offer.held_for.is_some())
            .collect();
        let Some(longest) = held.iter().filter_map(|offer| offer.held_for).max() else {
            peer.end_behind(negotiation);
            return Vec::new();
        };
        let there = HeldThere {
            peer: peer.name().to_owned(),
            negotiation: negotiation.clone(),
            offer_here: question.offer_here,
            node_seconds: question.node_seconds,
            until: Instant::now() + longest,
        };
        let mut all = lock(&self.0.held);
        all.entry(question.negotiation).or_default().push(there);
        drop(all);
        let record = self.record_of(peer.name());
        let found = held.into_iter().map(|offer| FoundAtPeer {
            peer: peer.clone(),
            negotiation: negotiation.clone(),
            offer,
            received,
            kept: record.rate(),
            replaces: question.address_to_change(peer),
        });
        found.collect()
    }

    /// Ends the negotiations at peers about one here, or about one offer in it, but for those whose offers are used: their addresses.
    pub fn end_unused_at_asked_peers(&self, negotiation: Uuid, offer_here: Option<Uuid>, used: &[&str]) {
        let mut all = lock(&self.0.held);
        let Some(there) = all.remove(&negotiation) else {
            return;
        };
        let (stay, go): (Vec<_>, Vec<_>) = there.into_iter().partition(|held| {
            offer_here.is_some_and(|offer| offer != held.offer_here)
                || used.contains(&held.negotiation.as_str())
        });
        if !stay.is_empty() {
            all.insert(negotiation, stay);
        }
        drop(all);
        for held_there in go {
            if let Some(peer) = self.peer(&held_there.peer) {
                peer.end_behind(held_there.negotiation);
            }
        }
    }
}

/// Passes files on to a peer, in place of earlier ones of the same names.
async fn pass_files_before_asking(peer: &Peer, files: &[PassedFile]) -> Result<(), String> {
    for PassedFile { name, path } in files {
        let file = File::open(path)
            .await
            .map_err(|why| format!("{}: {why}", path.display()))?;
        let length = file.metadata().await.map_err(|why| why.to_string())?.len();
        let passed = peer.put_input(name, file, length).await;
        passed.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}
