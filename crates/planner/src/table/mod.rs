//! Negotiations: those that go on with their offers, the side that made each, and when it lapses; quotes, holds, and the provider's
//! proposals.

pub(super) mod candidates;
pub(super) mod change_end;
pub(super) mod fees;
pub(super) mod give_way;
pub(super) mod holds;
pub(super) mod negotiations;
pub(super) mod open_negotiation;
pub(super) mod propose;
pub(super) mod quote;
pub(super) mod ranking;
pub(super) mod replace;
pub(super) mod suggest_move;
pub(super) mod suggestion;

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{NegotiationInstance, NegotiationOffer, NegotiationRole, ProposalReason};
use scheduler::Time;
use uuid::Uuid;

use crate::journal::{JournaledMap, TakeBack};
use crate::table::holds::Holds;
use crate::table::open_negotiation::OpenNegotiation;
use crate::table::suggestion::Suggestion;
use crate::timetable::Timetable;

/// Every negotiation that goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    open: JournaledMap<BTreeMap<Uuid, OpenNegotiation>>,
    /// When something lapses next in each.
    due: Timetable<Uuid>,
    /// The open negotiations of each party with their holds; none where it has none.
    parties: JournaledMap<BTreeMap<String, PartyAtTable>>,
    /// The negotiations about the replacement of an agreement, by that agreement.
    #[expect(clippy::zero_sized_map_values, reason = "a set whose changes are noted")]
    about: JournaledMap<BTreeMap<(Uuid, Uuid), ()>>,
    /// How many of them propose to move an agreement.
    moves: usize,
    /// In which of them each offer lies.
    offers: JournaledMap<BTreeMap<Uuid, Uuid>>,
    /// The service's offers that lead on, by the instants at which they expire, and whether each is held.
    standing: JournaledMap<BTreeMap<(Time, Uuid), bool>>,
    /// How many of these are held.
    standing_held: usize,
    holds: Holds,
    /// How many numbers have been given to holds.
    held: u64,
    /// The proposals to make once the batch is stored.
    suggested: Vec<Suggestion>,
}

/// The negotiations that a party has opened.
#[derive(Debug, Clone, Default)]
struct PartyAtTable {
    talks: BTreeSet<Uuid>,
    /// How many of them are only about prices.
    quotes: usize,
    /// The answers of which it has something held, and the most node-seconds that it can take of each.
    held: BTreeMap<Uuid, u128>,
}

impl PartyAtTable {
    /// Takes over of which answers of a negotiation something is held, instead of those before.
    fn holds(&mut self, before: &BTreeMap<Uuid, u128>, now: &BTreeMap<Uuid, u128>) {
        for answer in before.keys() {
            self.held.remove(answer);
        }
        self.held.extend(now);
    }
}

impl Table {
    /// Takes in a negotiation with its offers.
    pub(crate) fn open(
        &mut self,
        instance: NegotiationInstance,
        offers: impl IntoIterator<Item = NegotiationOffer>,
    ) {
        let (id, due) = (instance.id, instance.expires);
        match instance.proposed {
            None => {
                let mut party = self.parties.remove(&instance.party).unwrap_or_default();
                party.talks.insert(id);
                self.parties.insert(instance.party.clone(), party);
            }
            Some(ProposalReason::BetterFit) => self.moves += 1,
            Some(ProposalReason::Broken) => {}
        }
        if let Some(agreement) = instance.agreement {
            self.about.insert((agreement, id), ());
        }
        let talks = OpenNegotiation {
            instance,
            offers: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        self.open.insert(id, talks);
        self.due.set(id, Some(due));
        for offer in offers {
            self.put(offer);
        }
    }

    /// A negotiation that goes on.
    pub(crate) fn get(&self, id: Uuid) -> Option<&OpenNegotiation> {
        self.open.get(&id)
    }

    /// The negotiation that goes on in which an offer lies.
    pub(crate) fn of_offer(&self, offer: Uuid) -> Option<&OpenNegotiation> {
        self.open.get(self.offers.get(&offer)?)
    }

    /// Every negotiation that goes on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenNegotiation> {
        self.open.values()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// The choice to which the offers of an answer belong. Of a choice one offer can be taken, so its holds are shared. The offers for
    /// a change of one agreement are one choice, by the id of the agreement; else those of one answer are, by its id.
    pub(crate) fn choice_of(&self, negotiation: Uuid, answer: Uuid) -> Uuid {
        let talks = self.open.get(&negotiation);
        let changed = talks.and_then(|talks| talks.instance.changed_agreement());
        changed.unwrap_or(answer)
    }

    /// The parties with negotiations that go on, in no order.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &str> {
        self.parties.keys().map(String::as_str)
    }

    /// How many negotiations a party has going on, and how many more only about prices; those left out that the provider has opened.
    pub(crate) fn count(&self, party: &str) -> (usize, usize) {
        let one_party = self.parties.get(party);
        one_party.map_or((0, 0), |party| (party.talks.len() - party.quotes, party.quotes))
    }

    /// Takes over a new offer, or the new state of one.
    pub(crate) fn put(&mut self, offer: NegotiationOffer) {
        let (id, negotiation) = (offer.id, offer.negotiation);
        let Some(talks) = self.open.get_mut(&negotiation) else {
            return;
        };
        self.offers.insert(id, negotiation);
        if let Some(key) = talks.offers.get(&id).and_then(key_of_offer_on_table) {
            self.standing_held -= usize::from(self.standing.remove(&key) == Some(true));
        }
        if let Some(key) = key_of_offer_on_table(&offer) {
            self.standing.insert(key, offer.is_held());
            self.standing_held += usize::from(offer.is_held());
        }
        let (before, was_quote) = (std::mem::take(&mut talks.held), talks.is_quote());
        self.due.set(negotiation, Some(talks.put(offer)));
        if talks.instance.proposed.is_none()
            && let Some(party) = self.parties.get_mut(&talks.instance.party)
        {
            party.holds(&before, &talks.held);
            party.quotes = party.quotes + usize::from(talks.is_quote()) - usize::from(was_quote);
        }
    }

    /// Lets a negotiation go.
    pub(crate) fn close(&mut self, id: Uuid) -> Option<OpenNegotiation> {
        let talks = self.open.remove(&id)?;
        self.due.set(id, None);
        if talks.instance.proposed == Some(ProposalReason::BetterFit) {
            self.moves -= 1;
        }
        if talks.instance.proposed.is_none()
            && let Some(party) = self.parties.get_mut(&talks.instance.party)
        {
            party.talks.remove(&id);
            party.quotes -= usize::from(talks.is_quote());
            party.holds(&talks.held, &BTreeMap::new());
            if party.talks.is_empty() {
                self.parties.remove(&talks.instance.party);
            }
        }
        if let Some(agreement) = talks.instance.agreement {
            self.about.remove(&(agreement, id));
        }
        for offer in talks.offers.values() {
            self.offers.remove(&offer.id);
            if let Some(key) = key_of_offer_on_table(offer) {
                self.standing_held -= usize::from(self.standing.remove(&key) == Some(true));
            }
        }
        Some(talks)
    }

    /// Leaves the offers that have expired by `now` out of these counts.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(first) = self.standing.first_key_value().map(|(first, _)| *first)
            && first.0 <= now
        {
            self.standing_held -= usize::from(self.standing.remove(&first) == Some(true));
        }
    }

    /// Whether something is held on the strength of the place that an agreement has.
    pub(crate) fn is_counted_on(&self, agreement: Uuid) -> bool {
        self.held_offers_about(agreement).next().is_some()
    }

    /// The negotiations that are about an agreement.
    pub(crate) fn negotiations_about(&self, agreement: Uuid) -> impl Iterator<Item = &OpenNegotiation> {
        let ids = self
            .about
            .range((agreement, Uuid::nil())..=(agreement, Uuid::max()));
        ids.filter_map(|((_, id), ())| self.open.get(id))
    }

    /// The negotiations of which something lapses by `now`.
    fn lapsing_by(&self, now: Time) -> Vec<Uuid> {
        self.due.due_by(now)
    }

    /// The next instant at which something lapses.
    pub(crate) fn next_lapse(&self) -> Option<Time> {
        self.due.next()
    }

    /// The service's offers that lead on, and how many of them are held.
    pub(crate) fn standing(&self) -> (usize, usize) {
        (self.standing.len(), self.standing_held)
    }

    /// What is kept for offers.
    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }
}

/// The parts of the table that are small.
pub(crate) struct TableBefore {
    moves: usize,
    standing_held: usize,
    held: u64,
    suggested: Vec<Suggestion>,
}

impl TakeBack for Table {
    type Before = TableBefore;

    fn begin_try(&mut self) -> TableBefore {
        self.open.begin_try();
        self.due.begin_try();
        self.parties.begin_try();
        self.about.begin_try();
        self.offers.begin_try();
        self.standing.begin_try();
        self.holds.begin_try();
        TableBefore {
            moves: self.moves,
            standing_held: self.standing_held,
            held: self.held,
            suggested: self.suggested.clone(),
        }
    }

    fn take_back(&mut self, before: TableBefore) {
        self.open.take_back(());
        self.due.take_back(());
        self.parties.take_back(());
        self.about.take_back(());
        self.offers.take_back(());
        self.standing.take_back(());
        self.holds.take_back(());
        let TableBefore {
            moves,
            standing_held,
            held,
            suggested,
        } = before;
        (self.moves, self.standing_held) = (moves, standing_held);
        (self.held, self.suggested) = (held, suggested);
    }
}

/// The key of an offer of the service's that leads on.
fn key_of_offer_on_table(offer: &NegotiationOffer) -> Option<(Time, Uuid)> {
    let leads_on = offer.creator == NegotiationRole::Responder && offer.is_open();
    leads_on.then(|| (offer.expires.unwrap_or(Time::MAX), offer.id))
}
