//! How the nodes of a resource stand.

use scheduler::Interval;
use uuid::Uuid;

use crate::agreement::Agreement;

/// How one node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// It can be given to anybody.
    Up,
    /// It keeps what runs on it and is given to nobody else.
    Drained,
    /// It is gone, and what ran on it with it.
    Down,
}

/// A time in which a node is not ours: others' reservations and jobs, maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyTime {
    /// Number of the node in the resource, from 0.
    pub node: u32,
    /// From when until when.
    pub interval: Interval,
}

/// What becomes of nodes that were given to a party that does not use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// The party is told.
    Warn,
    /// They are taken back, and others may have them.
    Reclaim,
}

/// An agreement with its place on a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The agreement.
    pub agreement: Agreement,
    /// Numbers of the nodes that it was given when its slot began; none before.
    pub nodes: Vec<u32>,
}

/// The nodes that a resource keeps for an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNodes {
    /// The agreement.
    pub agreement: Uuid,
    /// Numbers of the nodes in the resource, from 0.
    pub nodes: Vec<u32>,
}

/// How the nodes of a resource stand, and when they are not ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The state of each node by its number; those beyond the end are up.
    pub states: Vec<NodeState>,
    /// When nodes are others'.
    pub busy: Vec<BusyTime>,
}
