//! The stored values of resources and of their nodes.

use scheduler::{Interval, Rate};
use uuid::Uuid;

use crate::clock::Micros;

/// A set of identical nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its name, which agreements refer to.
    pub name: String,
    /// Which executor it has.
    pub kind: String,
    /// Its nodes.
    pub capacity: u32,
    /// Its place among the others: ties go to the lower one.
    pub position: u32,
    /// How fast its nodes work, in millionths of the reference.
    pub rate: u32,
    /// All else that is planned with, as JSON.
    pub details: String,
    /// The resource as the configuration file last had it, as JSON; none where it did not have it.
    pub configured: Option<String>,
    /// Since when nothing new is placed on it.
    pub retired: Option<Micros>,
    /// The instant from which nothing new is placed on the resource; agreements stay there.
    pub frozen: Option<Micros>,
}

impl ResourceRow {
    /// Nodes of which nothing particular is known, and which no configuration file has.
    pub fn new(name: &str, kind: &str, capacity: u32) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            capacity,
            position: 0,
            rate: Rate::REFERENCE.millionths(),
            details: "{}".to_owned(),
            configured: None,
            retired: None,
            frozen: None,
        }
    }
}

/// A node that is not up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// Name of the resource.
    pub resource: String,
    /// Number of the node.
    pub node: u32,
    /// The reporter, in a word.
    pub reporter: String,
    /// How it stands, in a word.
    pub state: String,
    /// Since when.
    pub since: Micros,
    /// The reason, where one is given.
    pub reason: Option<String>,
}

/// A node that an agreement has for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Name of the resource.
    pub resource: String,
    /// Number of the node in the resource, from 0.
    pub node: u32,
    /// From when until when.
    pub interval: Interval,
    /// Its owner.
    pub agreement: Uuid,
}
