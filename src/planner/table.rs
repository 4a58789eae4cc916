//! The negotiations that go on, in memory: what is on the table, who put it there, and when it lapses.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::Time;
use uuid::Uuid;

use super::holds::Held;
use crate::agreement::{NegotiationInstance, NegotiationOffer, OfferTerms, ProposalReason};

/// Schedules know what is kept by numbers from here on, and agreements by smaller ones.
const HOLDS: u64 = 1 << 63;

/// A negotiation that goes on, and its offers by id, which is the order in which they came.
pub(super) struct Talks {
    pub(super) instance: NegotiationInstance,
    pub(super) offers: BTreeMap<Uuid, NegotiationOffer>,
    /// When something of it lapses next.
    due: Time,
    /// The answers of which something is held, and the most node-seconds that can be taken of each.
    held: BTreeMap<Uuid, u128>,
}

/// The negotiations that a party has opened and that go on.
#[derive(Default)]
struct Party {
    open: BTreeSet<Uuid>,
    /// The answers of which something is held, and the most node-seconds that can be taken of them together: summed up, as a
    /// party may have tens of thousands.
    answers: usize,
    node_seconds: u128,
}

/// Every negotiation that goes on.
#[derive(Default)]
pub(super) struct Table {
    open: BTreeMap<Uuid, Talks>,
    due: BTreeSet<(Time, Uuid)>,
    /// What each party has going on; none where it has nothing.
    parties: BTreeMap<String, Party>,
    /// Those that are about replacing an agreement, by that agreement.
    about: BTreeSet<(Uuid, Uuid)>,
    /// How many of them propose to move an agreement.
    moves: usize,
    /// In which of them each offer lies.
    offers: BTreeMap<Uuid, Uuid>,
    /// What is kept for the offers that answer one.
    pub(super) holds: BTreeMap<Uuid, Vec<Held>>,
    /// How many numbers have been given to what is kept.
    held: u64,
    /// The minute in which a party has last asked what it could have, and how often in it.
    probes: BTreeMap<String, (i64, u32)>,
}

impl Talks {
    /// What the offers amount to that answer one and are held.
    pub(super) fn held(&self, answer: Uuid) -> impl Iterator<Item = &OfferTerms> {
        let of = move |offer: &&NegotiationOffer| offer.parent == Some(answer) && offer.is_held();
        self.offers
            .values()
            .filter(of)
            .filter_map(|offer| offer.terms.as_ref())
    }

    /// The answers of which something is held.
    pub(super) fn answers_held(&self) -> impl Iterator<Item = Uuid> {
        self.held.keys().copied()
    }

    /// The most node-seconds that can be taken of what is held for an answer; none where nothing is.
    pub(super) fn most_held(&self, answer: Uuid) -> Option<u128> {
        self.held.get(&answer).copied()
    }

    /// The answers of which something is held, and the most node-seconds that can be taken of them together.
    fn sums(&self) -> (usize, u128) {
        (self.held.len(), self.held.values().sum())
    }

    /// Takes in an offer, or what has become of one.
    fn put(&mut self, offer: NegotiationOffer) {
        self.offers.insert(offer.id, offer);
        self.due = self.instance.expires;
        self.held.clear();
        for offer in self.offers.values().filter(|offer| offer.is_held()) {
            self.due = offer.expires.map_or(self.due, |at| self.due.min(at));
            if let Some(answer) = offer.parent {
                let most = self.held.entry(answer).or_default();
                *most = (*most).max(offer.terms.as_ref().map_or(0, OfferTerms::node_seconds));
            }
        }
    }
}

impl Table {
    /// Takes in a negotiation with its offers.
    pub(super) fn open(
        &mut self,
        instance: NegotiationInstance,
        offers: impl IntoIterator<Item = NegotiationOffer>,
    ) {
        let (id, due) = (instance.id, instance.expires);
        match instance.proposed {
            None => {
                let of = self.parties.entry(instance.party.clone()).or_default();
                of.open.insert(id);
            }
            Some(ProposalReason::BetterFit) => self.moves += 1,
            Some(ProposalReason::Broken) => {}
        }
        if let Some(agreement) = instance.agreement {
            self.about.insert((agreement, id));
        }
        let talks = Talks {
            instance,
            offers: BTreeMap::new(),
            due,
            held: BTreeMap::new(),
        };
        self.open.insert(id, talks);
        self.due.insert((due, id));
        for offer in offers {
            self.put(offer);
        }
    }

    /// A negotiation that goes on.
    pub(super) fn get(&self, id: Uuid) -> Option<&Talks> {
        self.open.get(&id)
    }

    /// Every negotiation that goes on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Talks> {
        self.open.values()
    }

    /// Every negotiation that a party has going on, those left out that the provider has opened.
    pub(super) fn of(&self, party: &str) -> impl Iterator<Item = &Talks> {
        let of = self.parties.get(party).into_iter().flat_map(|of| &of.open);
        of.filter_map(|id| self.open.get(id))
    }

    /// How many of these there are.
    pub(super) fn count(&self, party: &str) -> usize {
        self.parties.get(party).map_or(0, |of| of.open.len())
    }

    /// Takes over a new offer, or what has become of one.
    pub(super) fn put(&mut self, offer: NegotiationOffer) {
        let (id, negotiation) = (offer.id, offer.negotiation);
        if let Some(talks) = self.open.get_mut(&negotiation) {
            self.offers.insert(id, negotiation);
            self.due.remove(&(talks.due, negotiation));
            let before = talks.sums();
            talks.put(offer);
            self.due.insert((talks.due, negotiation));
            if let Some(of) = self.parties.get_mut(&talks.instance.party)
                && talks.instance.proposed.is_none()
            {
                let after = talks.sums();
                of.answers = of.answers + after.0 - before.0;
                of.node_seconds = of.node_seconds + after.1 - before.1;
            }
        }
    }

    /// Lets a negotiation go.
    pub(super) fn close(&mut self, id: Uuid) -> Option<Talks> {
        let talks = self.open.remove(&id)?;
        self.due.remove(&(talks.due, id));
        if talks.instance.proposed == Some(ProposalReason::BetterFit) {
            self.moves -= 1;
        }
        if let Some(of) = self.parties.get_mut(&talks.instance.party) {
            if of.open.remove(&id) {
                let (answers, node_seconds) = talks.sums();
                of.answers -= answers;
                of.node_seconds -= node_seconds;
            }
            if of.open.is_empty() {
                self.parties.remove(&talks.instance.party);
            }
        }
        if let Some(agreement) = talks.instance.agreement {
            self.about.remove(&(agreement, id));
        }
        for offer in talks.offers.keys() {
            self.offers.remove(offer);
        }
        Some(talks)
    }

    /// The next instant at which something lapses.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The negotiations in which something has lapsed by `now`.
    pub(super) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.due
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| *id)
            .collect()
    }

    /// A number for something that is kept.
    pub(super) fn next_hold(&mut self) -> u64 {
        self.held += 1;
        HOLDS + self.held
    }

    /// How many answers a party has held.
    pub(super) fn held_answers(&self, party: &str) -> usize {
        self.parties.get(party).map_or(0, |of| of.answers)
    }

    /// The node-seconds that a party has held: of each answer the most that it can take of it.
    pub(super) fn node_seconds(&self, party: &str) -> u128 {
        self.parties.get(party).map_or(0, |of| of.node_seconds)
    }

    /// Whether something is held on the strength of the place that an agreement has.
    pub(super) fn is_counted_on(&self, agreement: Uuid) -> bool {
        self.about(agreement).next().is_some()
    }

    /// The negotiations that are about an agreement.
    pub(super) fn talks_about(&self, agreement: Uuid) -> impl Iterator<Item = &Talks> {
        let ids = self
            .about
            .range((agreement, Uuid::nil())..=(agreement, Uuid::max()));
        ids.filter_map(|(_, id)| self.open.get(id))
    }

    /// How many moves of agreements the provider proposes.
    pub(super) fn moves_proposed(&self) -> usize {
        self.moves
    }

    /// The offers to replace an agreement that are held.
    pub(super) fn about(&self, agreement: Uuid) -> impl Iterator<Item = &NegotiationOffer> {
        let talks = self.talks_about(agreement);
        talks.flat_map(|talks| talks.offers.values().filter(|offer| offer.is_held()))
    }

    /// The answers whose offers to replace an agreement are held.
    pub(super) fn answers_about(&self, agreement: Uuid) -> impl Iterator<Item = Uuid> {
        self.about(agreement).filter_map(|offer| offer.parent)
    }

    /// The negotiation of an answer, and its offers that are held, the best first.
    pub(super) fn answered(&self, answer: Uuid) -> Option<(Uuid, Vec<NegotiationOffer>)> {
        let talks = self.open.get(self.offers.get(&answer)?)?;
        let held = |offer: &&NegotiationOffer| offer.parent == Some(answer) && offer.is_held();
        let offers = talks.offers.values().filter(held).cloned().collect();
        Some((talks.instance.id, offers))
    }

    /// Counts that a party asks in a minute; how often it has done so by now.
    pub(super) fn count_probe(&mut self, party: &str, minute: i64) -> u32 {
        self.probes.retain(|_, (last, _)| *last == minute);
        let (_, count) = self.probes.entry(party.to_owned()).or_insert((minute, 0));
        *count = count.saturating_add(1);
        *count
    }
}
