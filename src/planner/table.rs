//! The negotiations that go on, in memory: what is on the table, who put it there, and when it lapses.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::Time;
use uuid::Uuid;

use crate::agreement::{NegotiationInstance, NegotiationOffer};

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
}

impl Talks {
    /// When something lapses next: what is held, or the negotiation itself.
    fn next_due(&self) -> Time {
        let held = self.offers.values().filter(|offer| offer.is_held());
        held.filter_map(|offer| offer.expires)
            .fold(self.instance.expires, Time::min)
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
}
