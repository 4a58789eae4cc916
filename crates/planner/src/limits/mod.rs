//! What parties have, spend and ask, and how much they may: quotas and caps; and which refusals are noted.

pub(super) mod allowance;
mod part_of_usage;
pub(super) mod party_usage;
mod per_minute;
pub(super) mod quotas;
pub(super) mod refusal_log;
pub(super) mod share;
pub(super) mod spending;
mod usage;
pub(super) mod window;

use std::collections::HashMap;

use domain::agreement::Agreement;
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::journal::{Journal, JournaledMap, TakeBack};
use crate::limits::per_minute::PerMinute;
use crate::limits::usage::{AgreedUsage, AgreedUsageOfParty};

/// What parties have, spend and ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// The recent refusals of parties.
    refused: PerMinute,
    /// How often parties asked for quotes.
    questions: PerMinute,
    /// What keys with a cap have spent, in millionths of the currency of each cap.
    spent: JournaledMap<HashMap<Uuid, i64>>,
    /// The keys and prices of the agreements that commands wait for, by the ids of these; some commands may be gone.
    spent_by_waiting: HashMap<Uuid, (Uuid, i64)>,
    /// The node-seconds that each party has in agreements.
    node_seconds: HashMap<String, u128>,
    /// The slots that each party has.
    holdings: AgreedUsage,
    /// The agreements that were counted, and those that were counted no more.
    journal: Journal<(Agreement, Counted)>,
}

/// Whether an agreement was counted or is counted no more.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Added,
    Removed,
}

impl Limits {
    /// Counts an agreement that has a place now.
    pub(crate) fn add(&mut self, agreement: &Agreement) {
        self.journal.note(|| (agreement.clone(), Counted::Added));
        self.count(agreement);
    }

    /// Counts an agreement no more that had a place, as it was counted.
    pub(crate) fn remove(&mut self, agreement: &Agreement) {
        self.journal.note(|| (agreement.clone(), Counted::Removed));
        self.discount(agreement);
    }

    fn count(&mut self, agreement: &Agreement) {
        *self.node_seconds.entry(agreement.party.clone()).or_default() += agreement.node_seconds();
        self.holdings.add(agreement);
    }

    fn discount(&mut self, agreement: &Agreement) {
        if let Some(used) = self.node_seconds.get_mut(&agreement.party) {
            *used = used.saturating_sub(agreement.node_seconds());
            if *used == 0 {
                self.node_seconds.remove(&agreement.party);
            }
        }
        self.holdings.remove(agreement);
    }

    /// The node-seconds that a party has in agreements that are not over.
    pub(crate) fn node_seconds(&self, party: &str) -> u128 {
        self.node_seconds.get(party).copied().unwrap_or(0)
    }

    /// What a party has; none where it has nothing.
    fn holdings_of(&self, party: &str) -> Option<&AgreedUsageOfParty> {
        self.holdings.of(party)
    }

    /// The first slots of a party on a resource that start in a time and are not over, at most `most`, by their starts and agreements;
    /// and how many there are.
    pub(crate) fn starts_of(
        &self,
        party: &str,
        resource: &str,
        period: Interval,
        most: usize,
    ) -> (impl Iterator<Item = (Time, Uuid)>, usize) {
        let starts = self
            .holdings_of(party)
            .and_then(|holdings| holdings.starts.get(resource));
        let count = starts.map_or(0, |starts| starts.count_within(period));
        let there = starts.into_iter().flat_map(move |starts| starts.within(period));
        (there.take(most), count)
    }

    /// Whether a party has something on a resource.
    pub(crate) fn has_some_on(&self, party: &str, resource: &str) -> bool {
        let holdings = self.holdings_of(party);
        holdings.is_some_and(|holdings| holdings.starts.contains_key(resource))
    }

    /// The parties that have something, in no order.
    pub(crate) fn parties(&self) -> impl Iterator<Item = &str> {
        self.holdings.parties()
    }

    /// Whether any other party has something.
    pub(crate) fn has_others(&self, party: &str) -> bool {
        self.holdings.has_others(party)
    }

    /// Counts a question of a party; how many it has asked in the minute.
    pub(crate) fn count_question(&mut self, party: &str, minute: i64) -> u32 {
        self.questions.count(party, minute)
    }

    /// How many questions a party has asked in a minute that is not over.
    fn questions_in(&self, party: &str, minute: i64) -> u32 {
        self.questions.in_minute(party, minute)
    }

    /// The parties that have asked something in the last minute in which one was asked.
    pub(crate) fn asking(&self) -> impl Iterator<Item = &str> {
        self.questions.parties()
    }

    /// Counts a refusal of a party; how many there were in the minute.
    fn count_refusal(&mut self, party: &str, minute: i64) -> u32 {
        self.refused.count(party, minute)
    }
}

impl TakeBack for Limits {
    /// The recent refusals, and what commands wait for. A question counts also where it asks for nothing: it tells something about other
    /// parties.
    type Before = (PerMinute, HashMap<Uuid, (Uuid, i64)>);

    fn begin_try(&mut self) -> Self::Before {
        self.journal.begin();
        self.spent.begin_try();
        (self.refused.clone(), self.spent_by_waiting.clone())
    }

    fn take_back(&mut self, (refused, spent_by_waiting): Self::Before) {
        for (agreement, counted) in self.journal.end() {
            match counted {
                Counted::Added => self.discount(&agreement),
                Counted::Removed => self.count(&agreement),
            }
        }
        self.spent.take_back(());
        (self.refused, self.spent_by_waiting) = (refused, spent_by_waiting);
    }
}

#[cfg(test)]
impl Limits {
    /// All but the questions.
    pub(crate) fn without_questions(&self) -> Self {
        Self {
            questions: PerMinute::default(),
            ..self.clone()
        }
    }
}
