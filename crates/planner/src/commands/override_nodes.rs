//! An operator says how nodes stand.

use std::collections::BTreeSet;

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use domain::resources::{NodeState, Repaired, Reporter};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::resources::{node_status, repair};
use crate::schedules::resource_plan::NodeStatus;

/// The word of an operator about nodes of a resource, from now on: the plan is repaired as by [`SetNodes`](super::SetNodes), and nodes that
/// are not named stand as before. The answer is what followed, and how the named ones stand then.
///
/// # Errors
/// [`Error::NotFound`] where there is no such resource or node, [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideNodes {
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
}

impl Command for OverrideNodes {
    type Answer = (Repaired, Vec<NodeStatus>);

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let resource = decider
            .state
            .schedules
            .named(&self.resource)
            .ok_or(Error::NotFound)?;
        let capacity = resource.resource.capacity;
        if self.nodes.last().is_none_or(|last| *last >= capacity) {
            return Err(Error::NotFound);
        }
        let report = resource
            .nodes
            .with(resource.extent(), &self.nodes, self.state, self.reason.as_deref());
        let why = self
            .reason
            .as_deref()
            .map_or_else(String::new, |reason| format!(", {reason}"));
        let state = self.state.word();
        let detail = format!("{} of {}: {state}{why}", self.words, self.resource);
        decider.batch.push(Change::Note(Note {
            party: Some(self.party.clone()),
            ..Note::new(decider.now, NoteKind::NodesSaid, (self.id, None), detail)
        }));
        let decided = decider.batch.len();
        let mut repaired = repair::repair_nodes(decider, &self.resource, Reporter::Operator, &report)?;
        repaired.note_penalties(&decider.batch[decided..]);
        let mut standings = node_status::statuses_of_nodes(decider.view(), &self.resource)?;
        standings.retain(|standing| self.nodes.contains(&standing.node));
        Ok(DecisionStep::Done((repaired, standings)))
    }
}
