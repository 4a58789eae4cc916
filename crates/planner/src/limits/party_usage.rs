//! What parties have, beside what they may have.

use std::collections::BTreeSet;

use crate::context::View;
use crate::limits::quotas::is_near_bound;
use crate::limits::{quotas, share, usage};

/// What a party has of the resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartyUsage {
    /// Its name.
    pub party: String,
    /// Agreements with a place that are not over.
    pub agreements: usize,
    /// Agreements that it may have, those among them that wait for their decision; none without a bound.
    pub agreements_max: Option<u32>,
    /// Questions that it has asked in the present minute.
    pub questions: u32,
    /// Questions that it may ask in a minute; none without a bound.
    pub questions_max: Option<u32>,
    /// Negotiations that go on.
    pub negotiations: usize,
    /// Answers with offers that are held for it.
    pub held_answers: usize,
    /// What it has on each resource, those left out where it has nothing.
    pub resources: Vec<ResourceUsage>,
}

/// What a party has of one resource, with what waits to be reserved and what is held for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUsage {
    /// The name of the resource.
    pub resource: String,
    /// All node-seconds.
    pub node_seconds: u128,
    /// The most node-seconds in any 30 days.
    pub most_in_30_days: u128,
    /// The node-seconds that the resource has in 30 days.
    pub capacity_in_30_days: u128,
    /// The part of these that it may have while others have work, in percent; none without a bound.
    pub share_percent: Option<u32>,
}

/// What each party has, by their names.
pub(crate) fn usage_of_all_parties(view: View<'_>) -> Vec<PartyUsage> {
    let agreed = view.limits.parties();
    let parties: BTreeSet<&str> = agreed.chain(view.table.parties()).collect();
    let parties = parties.into_iter();
    parties
        .map(|party| usage_of_party(view, party.to_owned()))
        .collect()
}

/// What a party has.
pub(crate) fn usage_of_party(view: View<'_>, party: String) -> PartyUsage {
    let quotas = view.settings.quotas_of(&party);
    let share_percent = quotas.share_percent;
    let (negotiations, quotes) = view.table.count(&party);
    let on = usage::usage_by_resource(view, &party, None).into_iter();
    let on = on.map(|(resource, usage)| {
        let capacity = view
            .schedules
            .named(&resource)
            .map_or(0, |resource| resource.resource.capacity);
        ResourceUsage {
            resource,
            node_seconds: usage.node_seconds(),
            most_in_30_days: usage.most_in_span(),
            capacity_in_30_days: share::bound_of_share(capacity, 100).most,
            share_percent,
        }
    });
    let resources = on.collect();
    PartyUsage {
        agreements: view.limits.holdings_of(&party).map_or(0, |each| each.agreements),
        agreements_max: quotas.agreements,
        questions: quotas::questions_against_quota(view, &party),
        questions_max: quotas.probes_per_minute,
        negotiations: negotiations + quotes,
        held_answers: view.table.held_answers(&party),
        resources,
        party,
    }
}

impl PartyUsage {
    /// Whether it has nearly as many agreements as it may have, or has asked nearly as often.
    pub fn is_near_quota(&self) -> bool {
        let agreements = u32::try_from(self.agreements).unwrap_or(u32::MAX);
        is_near_bound(agreements, self.agreements_max) || is_near_bound(self.questions, self.questions_max)
    }
}
