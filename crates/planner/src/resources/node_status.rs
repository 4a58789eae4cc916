//! How nodes stand, as operators see it and say it.

use std::collections::BTreeSet;

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use domain::resources::{NodeCounts, NodeState, Repaired, Reporter, Resource};
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::handle::Planner;
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

impl Planner {
    /// The resources, as [`Planner::resources`] has them, and how many nodes of each stand how at one moment; none where it is
    /// retired and nothing is planned on it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the planner has stopped.
    pub async fn node_counts(&self) -> Result<Vec<(Resource, Option<NodeCounts>)>> {
        self.ask(|decider| Ok(decider.node_counts())).await
    }

    /// How the nodes of a resource stand, by their numbers; none of a retired resource on which nothing is planned.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource, [`Error::Unavailable`] when the planner has stopped.
    pub async fn nodes(&self, resource: String) -> Result<Vec<NodeStatus>> {
        self.ask(move |decider| decider.nodes(&resource)).await
    }

    /// Takes the word of an operator about nodes and repairs the plan, as [`Planner::set_nodes`] does; nodes that are
    /// not named stand as before. Returns what followed, and how the named ones stand then.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such resource or node, [`Error::Unavailable`] where it could not be stored.
    pub async fn override_nodes(&self, saying: NodeOverride) -> Result<(Repaired, Vec<NodeStatus>)> {
        self.ask(move |decider| decider.override_nodes(saying)).await
    }
}

impl Decider<'_> {
    /// Takes the word of an operator about some nodes.
    pub(crate) fn override_nodes(&mut self, mut saying: NodeOverride) -> Result<(Repaired, Vec<NodeStatus>)> {
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
    pub(crate) fn node_counts(&self) -> Vec<(Resource, Option<NodeCounts>)> {
        let resources = self.plan.resources.list().into_iter();
        let count = |resource: Resource| {
            let one_resource = self.plan.resources.named(&resource.name);
            let counts = one_resource.map(|decider| decider.nodes.counts(resource.capacity));
            (resource, counts)
        };
        resources.map(count).collect()
    }

    /// How the nodes of a resource stand.
    pub(crate) fn nodes(&self, resource: &str) -> Result<Vec<NodeStatus>> {
        let Some(resource_plan) = self.plan.resources.named(resource) else {
            let known = self.plan.resources.named_or_gone(resource);
            return known.map(|_| Vec::new()).ok_or(Error::NotFound);
        };
        Ok(resource_plan.statuses(0..resource_plan.resource.capacity))
    }
}
