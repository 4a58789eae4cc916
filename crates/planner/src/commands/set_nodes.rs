//! The states of nodes are taken over.

use domain::resources::{NodeReport, Repaired, Reporter};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::resources::repair;

/// A report about the nodes of a resource: the plan is repaired. Work on nodes that are gone is lost. A waiting agreement that no longer
/// fits gets another place, or its party is told that there is none. Nodes that come back are used.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where there is no such resource, [`Error::Unavailable`](crate::Error::Unavailable) where it
/// could not be stored.
#[derive(Debug, Clone)]
pub struct SetNodes {
    /// The name of the resource.
    pub resource: String,
    /// Who reports it.
    pub by: Reporter,
    /// The report.
    pub report: NodeReport,
}

impl Command for SetNodes {
    type Answer = Repaired;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let repaired = repair::repair_nodes(decider, &self.resource, self.by, &self.report)?;
        Ok(DecisionStep::Done(repaired))
    }
}
