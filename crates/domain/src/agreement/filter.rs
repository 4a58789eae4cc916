//! The conditions that the nodes of an agreement must meet.

use scheduler::domain::{Attribute, Requirement};
use serde::{Deserialize, Serialize};
use wsag::job_definition::FilterKind;

/// The name of a resource, as an attribute that each resource has.
pub const RESOURCE: &str = "resource";

/// The nodes that a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Of each node.
    Node,
    /// Of all nodes granted, together.
    Total,
}

/// A condition on nodes, that is, on an attribute of their resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// The attribute is this word.
    Word {
        /// Its name.
        attribute: String,
        /// The value that it must have.
        is: String,
    },
    /// The attribute is a number within one of these bounds, both included.
    Number {
        /// Its name.
        attribute: String,
        /// The nodes that the number is about.
        measure: Measure,
        /// From the first to the second.
        within: Vec<(i64, i64)>,
    },
}

impl Filter {
    /// That it is the resource of this name.
    pub fn of_resource(name: &str) -> Self {
        Self::Word {
            attribute: RESOURCE.to_owned(),
            is: name.to_owned(),
        }
    }

    /// The requirement on each node of a resource when this many of them are granted.
    pub fn requirement(&self, nodes: u32) -> Requirement {
        match self {
            Self::Word { attribute, is } => Requirement::Is(attribute.clone(), Attribute::Word(is.clone())),
            Self::Number {
                attribute,
                measure: Measure::Node,
                within,
            } => Requirement::Within(attribute.clone(), within.clone()),
            Self::Number {
                attribute,
                measure: Measure::Total,
                within,
            } => {
                let nodes = i64::from(nodes.max(1));
                // All nodes are alike, so that each has its part of the whole, bounds rounded inward.
                let each = |(least, most): &(i64, i64)| {
                    let up = least.div_euclid(nodes) + i64::from(least.rem_euclid(nodes) > 0);
                    (up, most.div_euclid(nodes))
                };
                Requirement::Within(attribute.clone(), within.iter().map(each).collect())
            }
        }
    }

    /// Whether it is about all nodes together.
    pub fn is_total(&self) -> bool {
        matches!(
            self,
            Self::Number {
                measure: Measure::Total,
                ..
            }
        )
    }

    /// The attribute that it is about.
    pub fn attribute(&self) -> &str {
        match self {
            Self::Word { attribute, .. } | Self::Number { attribute, .. } => attribute,
        }
    }
}

/// The attribute that a condition of a document is about, and whether each node has to meet it.
pub const fn attribute_of_filter_kind(kind: FilterKind) -> (&'static str, Measure) {
    match kind {
        FilterKind::IndividualCpuSpeed => ("cpu_speed_hz", Measure::Node),
        FilterKind::IndividualCpuCount => ("cpus", Measure::Node),
        FilterKind::IndividualNetworkBandwidth => ("network_bits_per_second", Measure::Node),
        FilterKind::IndividualPhysicalMemory => ("memory_bytes", Measure::Node),
        FilterKind::IndividualVirtualMemory => ("virtual_memory_bytes", Measure::Node),
        FilterKind::IndividualDiskSpace => ("disk_bytes", Measure::Node),
        FilterKind::TotalCpuCount => ("cpus", Measure::Total),
        FilterKind::TotalPhysicalMemory => ("memory_bytes", Measure::Total),
        FilterKind::TotalVirtualMemory => ("virtual_memory_bytes", Measure::Total),
        FilterKind::TotalDiskSpace => ("disk_bytes", Measure::Total),
        FilterKind::IndividualGpuCount => ("gpus", Measure::Node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_shared_by_the_nodes_and_bounds_round_inward() {
        let filter = Filter::Number {
            attribute: "memory".into(),
            measure: Measure::Total,
            within: vec![(10, 20), (0, i64::MAX)],
        };
        let Requirement::Within(_, within) = filter.requirement(3) else {
            panic!("bounds stay bounds")
        };
        assert_eq!(within, [(4, 6), (0, i64::MAX / 3)]);
    }
}
