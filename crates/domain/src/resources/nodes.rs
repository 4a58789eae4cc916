//! How the nodes of a resource stand, and what is known and reported of them.

use std::collections::BTreeMap;
use std::ops::Range;

use scheduler::{Interval, Time, worded};
use uuid::Uuid;

use crate::agreement::{Agreement, Run};
use crate::clock::Micros;

worded! {
    /// How one node stands, from best to worst.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NodeState {
        /// Any agreement can get it.
        Up = "up",
        /// It keeps its running work and takes no new work.
        Drained = "drained",
        /// It is gone, and its work with it.
        Down = "down",
    }
}

worded! {
    /// The source of a report on nodes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reporter {
        /// The executor on them.
        Executor = "executor",
        /// A person.
        Operator = "operator",
    }
}

/// A time in which a node is not ours: others' reservations and jobs, maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyTime {
    /// Number of the node in the resource, from 0.
    pub node: u32,
    /// From when until when.
    pub interval: Interval,
}

/// Nodes that are not used for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedNodes {
    /// Their numbers.
    pub nodes: Range<u32>,
    /// From when until when, as far as it is foreseen.
    pub interval: Interval,
    /// Why.
    pub why: WhyUnused,
}

/// Why nodes are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnused {
    /// By plan.
    Maintenance,
    /// They are not up.
    State(NodeState),
    /// Others use them: reservations and jobs that are not ours.
    Others,
}

/// The treatment of nodes that a party has and does not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// The party is told.
    Warn,
    /// They are taken back, and others may have them.
    Reclaim,
}

/// The plan's data for a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceAgreements {
    /// The agreements with a place there, in order of start, each with the numbers of the nodes that it was given when its slot
    /// began; none before.
    pub agreements: Vec<(Agreement, Vec<u32>)>,
    /// The ones among them that are made only when their nodes are held.
    pub waiting: Vec<Uuid>,
    /// The work of the agreements that some of these take the place of, by the ids of these.
    pub replaced: BTreeMap<Uuid, Uuid>,
    /// The work of the agreements that have moved for these.
    pub moved: Vec<Uuid>,
    /// When nodes are not to be used, by the word of operators and of the configuration: the executor there does not know
    /// it.
    pub left_out: Vec<BusyTime>,
}

/// The nodes that a resource keeps for an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNodes {
    /// The run that they are kept for.
    pub run: Run,
    /// Numbers of the nodes in the resource, from 0.
    pub nodes: Vec<u32>,
    /// Since when, or from when on.
    pub since: Time,
}

/// How the nodes of a resource stand, and when they are not ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The state of each node by its number; those beyond the end are up.
    pub states: Vec<NodeState>,
    /// When nodes are others'.
    pub busy: Vec<BusyTime>,
    /// Why nodes are not up, by their numbers, where that is said.
    pub reasons: BTreeMap<u32, String>,
}

impl NodeReport {
    fn state(&self, node: usize) -> NodeState {
        self.states.get(node).copied().unwrap_or(NodeState::Up)
    }

    /// Whether a node is worse than in an earlier report.
    pub fn is_worse_than(&self, before: &Self) -> bool {
        let mut states = self.states.iter().enumerate();
        states.any(|(node, state)| *state > before.state(node))
    }

    /// The nodes that are down, and were not down in an earlier report.
    pub fn newly_down(&self, before: &Self) -> Vec<u32> {
        let is_new = |node: &u32| before.state(*node as usize) != NodeState::Down;
        let down = (0..)
            .zip(&self.states)
            .filter(|(_, state)| **state == NodeState::Down);
        down.map(|(node, _)| node).filter(is_new).collect()
    }

    /// Makes nodes that are down keep their running work and get nothing new.
    pub fn spare(&mut self, nodes: &[u32]) {
        for node in nodes {
            if let Some(state) = self.states.get_mut(*node as usize) {
                *state = (*state).min(NodeState::Drained);
            }
        }
    }

    /// This report with each node as the better of the two has it.
    #[must_use]
    pub fn or_better(mut self, other: &Self) -> Self {
        for (node, state) in self.states.iter_mut().enumerate() {
            *state = (*state).min(other.state(node));
        }
        let (states, is_up) = (&self.states, |state: &NodeState| *state == NodeState::Up);
        self.reasons
            .retain(|node, _| !states.get(*node as usize).is_none_or(is_up));
        self
    }
}

impl NodeState {
    /// The meaning of the state for nodes, behind "nodes are drained:".
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Up => "any agreement can get them",
            Self::Drained => "they keep their running work and get no other",
            Self::Down => "they are gone, and their work with them",
        }
    }
}

/// How many nodes of a resource are in each state, in the order of [`NodeState::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts([u32; NodeState::ALL.len()]);

impl NodeCounts {
    /// So many nodes that are all up.
    pub fn all_up(nodes: u32) -> Self {
        let mut counts = Self::default();
        counts.0[NodeState::Up as usize] = nodes;
        counts
    }

    /// How many nodes are in a state.
    pub fn count(&self, state: NodeState) -> u32 {
        self.0[state as usize]
    }

    /// Takes one of the nodes that are up for one in another state.
    pub fn take_out(&mut self, state: NodeState) {
        self.0[NodeState::Up as usize] -= 1;
        self.0[state as usize] += 1;
    }
}

/// A report on a node that is not up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedState {
    /// How it stands.
    pub state: NodeState,
    /// Since when.
    pub since: Micros,
    /// Why, where that is said.
    pub reason: Option<String>,
}
