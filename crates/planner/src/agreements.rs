//! The agreements that are not over, and how many of them are in each state: a count needs no walk over all of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::agreement::{Agreement, AgreementState, ServiceState};
use scheduler::Time;
use uuid::Uuid;

use crate::journal::{Journal, TakeBack};

/// Every agreement that is not over.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreements {
    by_id: HashMap<Uuid, Agreement>,
    states: BTreeMap<&'static str, u64>,
    /// How many have each id that an initiator gave, by party.
    initiator_ids: HashMap<String, HashMap<String, usize>>,
    /// The agreements that go on with the work of another, by the id of that one.
    going_on: HashMap<Uuid, Uuid>,
    /// The agreements with a slot that has begun and is not over.
    begun: BTreeSet<Uuid>,
    /// The agreements that are accepted and wait for their slots, by start.
    waiting: BTreeSet<(Time, Uuid)>,
    /// The agreements that are decided, on each resource that has any, by start.
    on_resources: HashMap<String, BTreeSet<(Time, Uuid)>>,
    /// How many each party has.
    parties: HashMap<String, u32>,
    /// The versions before.
    journal: Journal<(Uuid, Option<Agreement>)>,
}

impl Agreements {
    /// None yet, with room for so many: they are large, and would be copied each time that there is no room.
    pub(super) fn with_room_for(count: usize) -> Self {
        Self {
            by_id: HashMap::with_capacity(count),
            ..Self::default()
        }
    }

    pub(super) fn get(&self, id: Uuid) -> Option<&Agreement> {
        self.by_id.get(&id)
    }

    /// All of them, in no order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Agreement> {
        self.by_id.values()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Takes in an agreement, in place of the version of it that is there.
    pub(super) fn insert(&mut self, agreement: Agreement) {
        let id = agreement.id;
        let before = self.take(id);
        self.put(agreement);
        self.journal.note(|| (id, before));
    }

    pub(super) fn remove(&mut self, id: Uuid) -> Option<Agreement> {
        let gone = self.take(id)?;
        self.journal.note(|| (id, Some(gone.clone())));
        Some(gone)
    }

    fn put(&mut self, agreement: Agreement) {
        *self.states.entry(agreement.state.word()).or_default() += 1;
        if let Some(origin) = agreement.origin {
            self.going_on.insert(origin, agreement.id);
        }
        if agreement.service.is_ready() {
            self.begun.insert(agreement.id);
        }
        if agreement.is_waiting() {
            self.waiting.insert((agreement.placement().start, agreement.id));
        }
        if !is_undecided_agreement(&agreement) {
            let place = (agreement.placement().start, agreement.id);
            if let Some(there) = self.on_resources.get_mut(&agreement.resource) {
                there.insert(place);
            } else {
                let name = agreement.resource.clone();
                self.on_resources.insert(name, [place].into());
            }
        }
        if let Some(id) = &agreement.initiator_id {
            let ids_of_party = self.initiator_ids.entry(agreement.party.clone()).or_default();
            *ids_of_party.entry(id.clone()).or_default() += 1;
        }
        *self.parties.entry(agreement.party.clone()).or_default() += 1;
        self.by_id.insert(agreement.id, agreement);
    }

    fn take(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.by_id.remove(&id)?;
        if let Some(count) = self.states.get_mut(agreement.state.word()) {
            *count -= 1;
            if *count == 0 {
                self.states.remove(agreement.state.word());
            }
        }
        if let Some(origin) = agreement.origin
            && self.going_on.get(&origin) == Some(&id)
        {
            self.going_on.remove(&origin);
        }
        self.begun.remove(&id);
        if agreement.is_waiting() {
            self.waiting.remove(&(agreement.placement().start, id));
        }
        if let Some(there) = self.on_resources.get_mut(&agreement.resource) {
            there.remove(&(agreement.placement().start, id));
            if there.is_empty() {
                self.on_resources.remove(&agreement.resource);
            }
        }
        if let Some(count) = self.parties.get_mut(&agreement.party) {
            *count -= 1;
            if *count == 0 {
                self.parties.remove(&agreement.party);
            }
        }
        self.forget_initiator_id(&agreement);
        Some(agreement)
    }

    fn forget_initiator_id(&mut self, agreement: &Agreement) {
        let Some(id) = &agreement.initiator_id else { return };
        let Some(ids_of_party) = self.initiator_ids.get_mut(&agreement.party) else {
            return;
        };
        if let Some(count) = ids_of_party.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                ids_of_party.remove(id);
            }
        }
        if ids_of_party.is_empty() {
            self.initiator_ids.remove(&agreement.party);
        }
    }

    /// How many of a party have an id from their initiator.
    pub(super) fn with_initiator_id(&self, party: &str, id: &str) -> usize {
        let initiator_id = self.initiator_ids.get(party);
        initiator_id.and_then(|each| each.get(id)).copied().unwrap_or(0)
    }

    /// How many a party has.
    pub(super) fn of_party(&self, party: &str) -> u32 {
        self.parties.get(party).copied().unwrap_or(0)
    }

    /// The parties that have some, in no order, each with their number.
    pub(super) fn parties(&self) -> impl Iterator<Item = (&str, u32)> {
        self.parties.iter().map(|(party, count)| (party.as_str(), *count))
    }

    /// The agreement that goes on with the work of another.
    pub(super) fn going_on_with(&self, origin: Uuid) -> Option<&Agreement> {
        self.going_on.get(&origin).and_then(|id| self.by_id.get(id))
    }

    /// The agreements with a slot that has begun and is not over, by id.
    pub(super) fn begun(&self) -> impl Iterator<Item = &Agreement> {
        self.begun.iter().filter_map(|id| self.by_id.get(id))
    }

    /// The agreements that are being processed, by id.
    pub(super) fn processing(&self) -> impl Iterator<Item = &Agreement> {
        self.begun()
            .filter(|agreement| agreement.service == ServiceState::Processing)
    }

    /// How many are accepted and wait for their slots.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The agreements that are accepted and wait for their slots, by start.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Agreement> {
        self.waiting.iter().filter_map(|(_, id)| self.by_id.get(id))
    }

    /// The agreements that are decided and have their place on a resource, by start.
    pub(super) fn on_resource(&self, resource: &str) -> impl Iterator<Item = &Agreement> {
        let there = self.on_resources.get(resource).into_iter().flatten();
        there.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// How many there are in a state.
    pub(super) fn count(&self, state: AgreementState) -> u64 {
        self.states.get(state.word()).copied().unwrap_or(0)
    }
}

impl TakeBack for Agreements {
    type Before = ();

    fn begin_try(&mut self) {
        self.journal.begin();
    }

    fn take_back(&mut self, (): ()) {
        for (id, before) in self.journal.end() {
            self.take(id);
            if let Some(before) = before {
                self.put(before);
            }
        }
    }
}

/// Whether an agreement has no place, because it is not decided yet.
pub(crate) fn is_undecided_agreement(agreement: &Agreement) -> bool {
    matches!(
        agreement.state,
        AgreementState::Pending | AgreementState::PendingAndTerminating
    )
}
