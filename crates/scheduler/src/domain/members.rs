//! Resources join a domain, leave it and become others while it decides.

use super::attributes::Catalogue;
use super::{Domain, HasPlan, Kind, Resource};
use crate::rate::Rate;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// From this number of changes on, a new index is made of all plans: a walk of each plan is cheaper then than to make room for
/// each change.
const RENEWED_FROM: usize = 64;

impl<P: HasPlan> Domain<P> {
    /// Takes in resources with their plans. For few of them O(r + b + s log n): r resources, b bits of the index (some
    /// megabytes for ten thousand resources) and s steps of their plans; for many the time of [`Domain::new`].
    ///
    /// # Panics
    /// If a resource has the id of another.
    pub fn insert(&mut self, more: Vec<(Resource, P)>) {
        if more.len() >= RENEWED_FROM {
            return self.renew(|all| all.extend(more));
        }
        for (resource, plan) in more {
            let key = order_among_members(&resource);
            let number = self
                .resources
                .partition_point(|resource| order_among_members(resource) < key);
            self.index.insert(number, plan.plan());
            self.resources.insert(number, resource);
            self.plans.insert(number, plan);
        }
        self.arrange();
    }

    /// Gives a resource and its plan back, which is no longer part of the domain; `None` for an unknown one. O(r + b) as
    /// [`Domain::insert`] has it.
    pub fn remove(&mut self, resource: u64) -> Option<(Resource, P)> {
        let number = *self.numbers.get(&resource)?;
        self.index.remove(number);
        let gone = (self.resources.remove(number), self.plans.remove(number));
        self.arrange();
        Some(gone)
    }

    /// Gives resources another rate, price or attributes, or takes note of another capacity of their plans. Unknown ones are left
    /// out. The time of as many calls of [`Domain::insert`] and [`Domain::remove`], or of [`Domain::new`].
    pub fn revise(&mut self, changed: Vec<Resource>) {
        if changed.len() < RENEWED_FROM {
            for resource in changed {
                if let Some((_, plan)) = self.remove(resource.id) {
                    self.insert(vec![(resource, plan)]);
                }
            }
            return;
        }
        let mut changed: BTreeMap<u64, Resource> =
            changed.into_iter().map(|changed| (changed.id, changed)).collect();
        self.renew(|all| {
            for (resource, _) in all {
                if let Some(next) = changed.remove(&resource.id) {
                    *resource = next;
                }
            }
        });
    }

    /// Changes all resources, and makes a new index of their plans.
    fn renew(&mut self, change: impl FnOnce(&mut Vec<(Resource, P)>)) {
        let resources = std::mem::take(&mut self.resources);
        let mut all: Vec<_> = resources
            .into_iter()
            .zip(std::mem::take(&mut self.plans))
            .collect();
        change(&mut all);
        all.sort_by_key(|(resource, _)| order_among_members(resource));
        (self.resources, self.plans) = all.into_iter().unzip();
        self.index.renew(&self.plans);
        self.arrange();
    }

    /// Finds the kinds of the resources, which are in order, and all that is known of each by its number, except the index.
    pub(super) fn arrange(&mut self) {
        let resources = &self.resources;
        self.numbers = resources.iter().enumerate().map(|(n, r)| (r.id, n)).collect();
        assert_eq!(
            self.numbers.len(),
            resources.len(),
            "resources of a domain have distinct ids"
        );
        self.kinds.clear();
        let mut first = 0;
        for alike in resources.chunk_by(|a, b| (a.rate, a.price) == (b.rate, b.price)) {
            self.kinds.push(Kind {
                rate: alike[0].rate,
                price: alike[0].price,
                members: first..first + alike.len(),
            });
            first += alike.len();
        }
        self.cheapest = (0..self.kinds.len()).collect();
        self.cheapest.sort_by(|a, b| {
            let (a, b) = (&self.kinds[*a], &self.kinds[*b]);
            // Price over rate, compared across without division.
            let cost = |k: &Kind, other: &Kind| u64::from(k.price) * u64::from(other.rate.millionths());
            cost(a, b).cmp(&cost(b, a))
        });
        self.catalogue = Catalogue::new(resources);
    }
}

/// Where a resource lies among the others: side by side with those that are alike in rate and price.
pub(super) fn order_among_members(resource: &Resource) -> (Reverse<Rate>, u32, u64) {
    (Reverse(resource.rate), resource.price, resource.id)
}
