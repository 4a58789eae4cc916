//! The negotiations that go on, in memory: what is on the table, who put it there, and when it lapses.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::Time;
use uuid::Uuid;

use super::holds::Held;
use crate::agreement::{NegotiationInstance, NegotiationOffer, OfferTerms};

/// Schedules know what is kept by numbers from here on, and agreements by smaller ones.
const HOLDS: u64 = 1 << 63;

/// A negotiation that goes on, and its offers by id, which is the order in which they came.
pub(super) struct Talks {
    pub(super) instance: NegotiationInstance,
    pub(super) offers: BTreeMap<Uuid, NegotiationOffer>,
    /// When something of it lapses next.
    due: Time,
}

/// Every negotiation that goes on.
#[derive(Default)]
pub(super) struct Table {
    open: BTreeMap<Uuid, Talks>,
    due: BTreeSet<(Time, Uuid)>,
    /// What is kept for the offers that answer one.
    pub(super) holds: BTreeMap<Uuid, Vec<Held>>,
    /// How many numbers have been given to what is kept.
    held: u64,
    /// The minute in which a party has last asked what it could have, and how often in it.
    probes: BTreeMap<String, (i64, u32)>,
}

impl Talks {
    /// When something lapses next: what is held, or the negotiation itself.
    fn next_due(&self) -> Time {
        let held = self.offers.values().filter(|offer| offer.is_held());
        held.filter_map(|offer| offer.expires)
            .fold(self.instance.expires, Time::min)
    }

    /// What the offers amount to that answer one and are held.
    pub(super) fn held(&self, answer: Uuid) -> impl Iterator<Item = &OfferTerms> {
        let of = move |offer: &&NegotiationOffer| offer.parent == Some(answer) && offer.is_held();
        self.offers
            .values()
            .filter(of)
            .filter_map(|offer| offer.terms.as_ref())
    }

    /// The offers that have been answered by something that is held.
    fn held_answers(&self) -> BTreeSet<Uuid> {
        let held = self.offers.values().filter(|offer| offer.is_held());
        held.filter_map(|offer| offer.parent).collect()
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
        let talks = Talks {
            instance,
            offers: BTreeMap::new(),
            due,
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

    /// Every negotiation that a party has going on.
    pub(super) fn of<'a>(&'a self, party: &'a str) -> impl Iterator<Item = &'a Talks> {
        self.iter().filter(move |talks| talks.instance.party == party)
    }

    /// Takes over a new offer, or what has become of one.
    pub(super) fn put(&mut self, offer: NegotiationOffer) {
        let negotiation = offer.negotiation;
        if let Some(talks) = self.open.get_mut(&negotiation) {
            talks.offers.insert(offer.id, offer);
            self.note_due(negotiation);
        }
    }

    /// Lets a negotiation go.
    pub(super) fn close(&mut self, id: Uuid) -> Option<Talks> {
        let talks = self.open.remove(&id)?;
        self.due.remove(&(talks.due, id));
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

    fn note_due(&mut self, id: Uuid) {
        let Some(talks) = self.open.get_mut(&id) else {
            return;
        };
        let next = talks.next_due();
        if next != talks.due {
            self.due.remove(&(talks.due, id));
            self.due.insert((next, id));
            talks.due = next;
        }
    }

    /// A number for something that is kept.
    pub(super) fn next_hold(&mut self) -> u64 {
        self.held += 1;
        HOLDS + self.held
    }

    /// How many answers a party has held.
    pub(super) fn held_answers(&self, party: &str) -> usize {
        self.of(party).map(|talks| talks.held_answers().len()).sum()
    }

    /// The node-seconds that a party has held: of each answer the most that it can take of it.
    pub(super) fn node_seconds(&self, party: &str) -> u128 {
        let most = |talks: &Talks, answer: Uuid| {
            let areas = talks.held(answer).map(OfferTerms::node_seconds);
            areas.max().unwrap_or(0)
        };
        self.of(party)
            .flat_map(|talks| {
                talks
                    .held_answers()
                    .into_iter()
                    .map(move |answer| most(talks, answer))
            })
            .sum()
    }

    /// Whether something is held on the strength of the place that an agreement has.
    pub(super) fn is_counted_on(&self, agreement: Uuid) -> bool {
        self.about(agreement).next().is_some()
    }

    /// The offers to replace an agreement that are held.
    pub(super) fn about(&self, agreement: Uuid) -> impl Iterator<Item = &NegotiationOffer> {
        let talks = self
            .iter()
            .filter(move |talks| talks.instance.agreement == Some(agreement));
        talks.flat_map(|talks| talks.offers.values().filter(|offer| offer.is_held()))
    }

    /// The answers whose offers to replace an agreement are held.
    pub(super) fn answers_about(&self, agreement: Uuid) -> impl Iterator<Item = Uuid> {
        self.about(agreement).filter_map(|offer| offer.parent)
    }

    /// The negotiation of an answer, and its offers that are held, the best first.
    pub(super) fn answered(&self, answer: Uuid) -> Option<(Uuid, Vec<NegotiationOffer>)> {
        let talks = self.iter().find(|talks| talks.offers.contains_key(&answer))?;
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
