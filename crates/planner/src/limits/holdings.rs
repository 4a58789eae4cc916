//! The slots that parties have in agreements that are not over.

use std::collections::{BTreeMap, HashMap};

use domain::agreement::Agreement;

use crate::limits::usage::Usage;

/// The slots of agreements that have a place, by party.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holdings {
    of_parties: HashMap<String, OfParty>,
}

/// The slots of one party.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfParty {
    pub(crate) agreements: usize,
    /// By resource.
    pub(crate) on: BTreeMap<String, Usage>,
}

impl Holdings {
    /// Takes in an agreement that has got a place.
    pub(crate) fn add(&mut self, agreement: &Agreement) {
        let party = self.of_parties.entry(agreement.party.clone()).or_default();
        party.agreements += 1;
        let on = party.on.entry(agreement.resource.clone()).or_default();
        for slot in agreement.slots.iter().filter(|slot| slot.ended.is_none()) {
            on.add(slot.stretch());
        }
    }

    /// Lets go of an agreement as it was taken in.
    pub(crate) fn remove(&mut self, agreement: &Agreement) {
        let Some(party) = self.of_parties.get_mut(&agreement.party) else {
            return;
        };
        party.agreements = party.agreements.saturating_sub(1);
        if let Some(on) = party.on.get_mut(&agreement.resource) {
            for slot in agreement.slots.iter().filter(|slot| slot.ended.is_none()) {
                on.remove(slot.stretch());
            }
            if on.is_empty() {
                party.on.remove(&agreement.resource);
            }
        }
        if party.agreements == 0 {
            self.of_parties.remove(&agreement.party);
        }
    }

    /// What a party has; none where it has nothing.
    pub(crate) fn of(&self, party: &str) -> Option<&OfParty> {
        self.of_parties.get(party)
    }

    /// The parties that have something, in no order.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &str> {
        self.of_parties.keys().map(String::as_str)
    }

    /// Whether any other party has something.
    pub(crate) fn has_others(&self, party: &str) -> bool {
        let own = usize::from(self.of_parties.contains_key(party));
        self.of_parties.len() > own
    }
}
