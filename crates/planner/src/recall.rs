//! What the writer gives back to a plan that is made anew from the store, and what it takes from the plan for those who listen.

use std::collections::HashMap;
use std::sync::Arc;

use domain::agreement::Agreement;
use domain::resources::{NodeRow, Resource};
use scheduler::Time;
use uuid::Uuid;

use crate::schedules::foresight::Foresight;
use crate::state::State;
use crate::table::suggestion::Suggestion;

impl State {
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

    /// Takes back the agreements with lost work. It checks again whether anything of the work still runs, because it is not
    /// known whether that was told to stop and has recorded its end. A slot that was lost within this second, begun or not, counts
    /// until the second is over.
    pub fn recall_lost(&mut self, lost: Vec<Agreement>) {
        let loads = lost.iter().flat_map(Agreement::loads);
        let kept = loads.filter(|(time, _)| (time.start..time.end).contains(&self.life.made()));
        if let Some(until) = kept.map(|(time, _)| time.end).max() {
            self.schedules.advance(until);
        }
        for agreement in lost {
            // A resource that is not known has no executor to ask; one that is retired has.
            if self.schedules.named_or_gone(&agreement.resource).is_some() {
                self.life.stop_lost_work_later(agreement);
            }
        }
    }
}
