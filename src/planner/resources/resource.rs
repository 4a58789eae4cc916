//! The resources of a provider: sets of nodes, their speed, and the meaning of durations on them.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use scheduler::{Interval, Rate};

use crate::agreement::Shape;

/// The kind of resources that are all this machine.
pub(in crate::planner) const LOCAL: &str = "local";
/// The kind of resources that others use, too.
pub(in crate::planner) const CLUSTER: &str = "slurm";

/// A set of identical nodes that placements are made on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its name, unique in the domain.
    pub name: String,
    /// Its executor; `local` is this machine.
    pub kind: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// How fast its nodes work.
    pub rate: Rate,
    /// The attributes of its nodes that a request may ask for.
    pub attributes: BTreeMap<String, Attribute>,
    /// The names of its nodes, by number. Nodes beyond the end of the list go by their numbers.
    pub node_names: Vec<String>,
    /// When it will be without a number of nodes, the ones with the highest numbers.
    pub maintenance: Vec<(Interval, u32)>,
    /// Whether nothing new is promised on it until [`Planner::open`](crate::planner::Planner::open): it has to be checked first.
    pub closed: bool,
}

impl Resource {
    /// Nodes of the reference rate of which nothing particular is known.
    pub fn new(name: &str, kind: &str, capacity: u32) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            capacity,
            rate: Rate::REFERENCE,
            attributes: BTreeMap::new(),
            node_names: Vec::new(),
            maintenance: Vec::new(),
            closed: false,
        }
    }

    /// The names of some of its nodes, for people.
    pub(in crate::planner) fn names_of(&self, nodes: &[u32]) -> String {
        let name = |node: &u32| {
            let named = self.node_names.get(*node as usize);
            named.cloned().unwrap_or_else(|| node.to_string())
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

/// The meaning of the durations of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// As contracted: the nodes are held for that time, on any resource.
    Contract,
    /// At the reference rate: a resource divides them by its own.
    ReferenceRate,
    /// As predicted: on each resource and at each time as long as the work takes there with this probability, in millionths. Where
    /// nothing is foreseen of a resource, they are at the reference rate.
    Predicted(u32),
}

impl Scaling {
    /// A size with the duration that it has on a resource of that rate.
    pub fn shape(self, shape: Shape, rate: Rate) -> Shape {
        match self {
            Self::Contract => shape,
            Self::ReferenceRate | Self::Predicted(_) => shape.at(rate),
        }
    }
}
