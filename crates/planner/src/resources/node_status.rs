//! How nodes stand, as operators see it and say it.

use std::collections::BTreeSet;

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use domain::resources::{NodeCounts, NodeState, Repaired, Reporter, Resource};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::resources::resource_plan::NodeStatus;

/// The word of an operator about nodes of a resource, from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOverride {
    /// Its own, in the audit trail.
    pub id: Uuid,
    /// The source of the report.
    pub party: String,
    /// The nodes in the words of the source.
    pub words: String,
    /// Name of the resource.
    pub resource: String,
    /// Numbers of the nodes.
    pub nodes: BTreeSet<u32>,
    /// How they stand. Up takes back the operator's earlier word; the executor's report still stands.
    pub state: NodeState,
    /// Why, where that is said; forgotten with the state.
    pub reason: Option<String>,
    /// Whether it is only asked what would follow.
    pub is_dry: bool,
}

impl Decider<'_> {
    /// Takes the word of an operator about some nodes.
    pub fn override_nodes(&mut self, mut saying: NodeOverride) -> Result<(Repaired, Vec<NodeStatus>)> {
        if std::mem::take(&mut saying.is_dry) {
            return self.decide_on_copy_of_plan(|decider| decider.override_nodes(saying));
        }
        let resource = self
            .plan
            .resources
            .named(&saying.resource)
            .ok_or(Error::NotFound)?;
        let capacity = resource.resource.capacity;
        if saying.nodes.last().is_none_or(|last| *last >= capacity) {
            return Err(Error::NotFound);
        }
        let report = resource.nodes.with(
            resource.extent(),
            &saying.nodes,
            saying.state,
            saying.reason.as_deref(),
        );
        let why = saying
            .reason
            .as_deref()
            .map_or_else(String::new, |reason| format!(", {reason}"));
        let state = saying.state.word();
        let detail = format!("{} of {}: {state}{why}", saying.words, saying.resource);
        self.batch.push(Change::Note(Note {
            party: Some(saying.party.clone()),
            ..Note::new(self.now, NoteKind::NodesSaid, (saying.id, None), detail)
        }));
        let decided = self.batch.len();
        let mut repaired = self.set_nodes(&saying.resource, Reporter::Operator, &report)?;
        repaired.note_penalties(&self.batch[decided..]);
        let mut standings = self.nodes(&saying.resource)?;
        standings.retain(|standing| saying.nodes.contains(&standing.node));
        Ok((repaired, standings))
    }

    /// The names of some nodes of a resource, for people.
    pub(crate) fn names_of(&self, resource: &str, nodes: &[u32]) -> String {
        let one_resource = self.plan.resources.named(resource);
        one_resource.map_or_else(String::new, |each| each.resource.names_of(nodes))
    }

    /// The resources, and how many nodes of each stand how.
    pub fn node_counts(&self) -> Vec<(Resource, Option<NodeCounts>)> {
        let resources = self.plan.resources.list().into_iter();
        let count = |resource: Resource| {
            let one_resource = self.plan.resources.named(&resource.name);
            let counts = one_resource.map(|decider| decider.nodes.counts(resource.capacity));
            (resource, counts)
        };
        resources.map(count).collect()
    }

    /// How the nodes of a resource stand.
    pub fn nodes(&self, resource: &str) -> Result<Vec<NodeStatus>> {
        let Some(resource_plan) = self.plan.resources.named(resource) else {
            let known = self.plan.resources.named_or_gone(resource);
            return known.map(|_| Vec::new()).ok_or(Error::NotFound);
        };
        Ok(resource_plan.statuses(0..resource_plan.resource.capacity))
    }
}
