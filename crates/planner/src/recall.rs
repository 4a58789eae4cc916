//! What the writer gives back to a plan that is made anew from the store, and what it takes from the plan for those who listen.

use std::collections::HashMap;
use std::sync::Arc;

use domain::resources::{NodeRow, Resource};
use scheduler::Time;
use uuid::Uuid;

use crate::plan::Plan;
use crate::schedules::foresight::Foresight;
use crate::table::suggestion::Suggestion;

impl Plan {
    /// Takes back how nodes stand.
    pub fn recall_nodes(&mut self, rows: Vec<NodeRow>, now: Time) {
        self.schedules.recall_nodes(rows, now);
    }

    /// Takes back what keys with a cap have spent, in millionths of the currency of each cap.
    pub fn recall_spent(&mut self, spent: HashMap<Uuid, i64>) {
        self.limits.recall_spent(spent);
    }

    /// Finds the agreements that could be moved up by now.
    pub fn find_improvable(&mut self) {
        self.schedules.find_improvable();
    }

    /// Notes that there may be free time on every resource.
    pub fn note_free_time_everywhere(&mut self) {
        self.schedules.note_free_time_everywhere();
    }

    /// Lets time pass until `now`.
    pub fn advance(&mut self, now: Time) {
        self.schedules.advance(now);
    }

    /// All resources, the retired ones among them.
    pub fn resources(&self) -> Vec<Resource> {
        self.schedules.list()
    }

    /// What foresees by the present settings.
    pub fn foresight(&self) -> &Arc<Foresight> {
        self.schedules.foresight()
    }

    /// Takes what is suggested that the provider proposes.
    pub fn take_suggestions(&mut self) -> Vec<Suggestion> {
        self.table.take_suggestions()
    }
}
