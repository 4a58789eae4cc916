//! What follows for agreements from a change of nodes or resources.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::agreement::{Account, Agreement, Money, PostingKind, add_to_sums};
use crate::change::Change;
use crate::resources::planned_place::{PlaceChange, PlannedPlace};

/// The effects of a change of nodes or resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Agreements that lost their work with its nodes.
    pub lost: usize,
    /// Agreements that got another place, with those that have moved for others.
    pub moved: usize,
    /// Agreements for which there is no place any more.
    pub broken: usize,
    /// Offers that were held and cannot be kept.
    pub withdrawn: usize,
    /// The agreements that have lost their work or their place or got another one, with those that have moved for others, by their
    /// ids.
    pub changes: BTreeMap<Uuid, PlaceChange>,
    /// What the provider pays for that because guarantees are violated: a sum for each currency.
    pub penalties: Vec<Money>,
}

impl Repaired {
    /// Adds the effects of a change that came after.
    pub fn add(&mut self, later: Self) {
        self.lost += later.lost;
        self.broken += later.broken;
        self.withdrawn += later.withdrawn;
        for (id, change) in later.changes {
            let known = self.changes.entry(id).or_insert_with(|| change.clone());
            known.to = change.to;
        }
        self.count_moved();
    }

    /// Counts the agreements that lie elsewhere now.
    pub fn count_moved(&mut self) {
        self.moved = self.changes.values().filter(|change| change.has_moved()).count();
    }

    /// Notes another place of an agreement, or that it has none any more.
    pub fn note(&mut self, before: &Agreement, after: Option<&Agreement>) {
        let known = self.changes.entry(before.id).or_insert_with(|| PlaceChange {
            party: before.party.clone(),
            name: before.name.clone(),
            application: before.job.as_ref().map(|job| job.application.clone()),
            from: PlannedPlace::of(before),
            to: None,
            penalties: Vec::new(),
        });
        known.to = after.map(PlannedPlace::of);
    }

    /// Notes the penalties that the provider pays by the changes of a decision.
    pub fn note_penalties(&mut self, decided: &[Change]) {
        for (agreement, amount) in penalties_of_provider(decided) {
            add_to_sums(&mut self.penalties, amount);
            if let Some(change) = self.changes.get_mut(&agreement) {
                add_to_sums(&mut change.penalties, amount);
            }
        }
    }
}

/// The penalties that the provider pays by the changes of a decision, each with its agreement.
pub fn penalties_of_provider(decided: &[Change]) -> impl Iterator<Item = (Uuid, Money)> {
    decided.iter().filter_map(|change| match change {
        Change::Post(posting)
            if posting.kind == PostingKind::Penalty && posting.from == Account::Provider =>
        {
            Some((posting.agreement, posting.amount))
        }
        _ => None,
    })
}
