//! Where and when an agreement is planned and was run: `bsp:Placement`, in the state of the service term.

use crate::scheduling::{Budget, write_budget};
use crate::xml::datatypes::write_double;
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// The current placement of an agreement, and the real events so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Name of the resource.
    pub resource: Option<String>,
    /// Planned start.
    pub planned_start: DateTime,
    /// Planned end.
    pub planned_end: DateTime,
    /// Granted number of nodes.
    pub nodes: u32,
    /// Probability that it completes in time, 0 to 1, where it is known.
    pub confidence: Option<f64>,
    /// Whether start and end will not move any more.
    pub fixed: bool,
    /// Its price, where it is priced.
    pub price: Option<Budget>,
    /// The pieces in which its work is done, in order of time; none where it is done in one.
    pub pieces: Vec<Piece>,
    /// Names of the nodes, once they are bound.
    pub node_names: Vec<String>,
    /// Real start.
    pub started: Option<DateTime>,
    /// Real end.
    pub ended: Option<DateTime>,
    /// Exit status of the job.
    pub exit_status: Option<i32>,
    /// How it ended, in a word: `completed`, `failed`, `killed`, `lost`, …
    pub outcome: Option<String>,
}

/// A piece of an agreement's work: `bsp:Piece`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Planned start.
    pub planned_start: DateTime,
    /// Planned end.
    pub planned_end: DateTime,
    /// Number of nodes.
    pub nodes: u32,
    /// Real start.
    pub started: Option<DateTime>,
    /// Real end.
    pub ended: Option<DateTime>,
}

impl Piece {
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start("bsp:Piece");
        xml.element("bsp:PlannedStart", self.planned_start);
        xml.element("bsp:PlannedEnd", self.planned_end);
        xml.element("bsp:Nodes", self.nodes);
        xml.optional_element("bsp:Started", self.started);
        xml.optional_element("bsp:Ended", self.ended);
        xml.end();
    }
}

/// An agreement of the same party that moved inside its window: `bsp:Moved`, in the answer to the offer that it moved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Which agreement.
    pub agreement_id: String,
    /// Its planned start from now on.
    pub planned_start: DateTime,
    /// Its planned end from now on.
    pub planned_end: DateTime,
}

impl Moved {
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start("bsp:Moved");
        xml.element("bsp:AgreementId", &self.agreement_id);
        xml.element("bsp:PlannedStart", self.planned_start);
        xml.element("bsp:PlannedEnd", self.planned_end);
        xml.end();
    }
}

impl Placement {
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start("bsp:Placement");
        xml.optional_element("bsp:Resource", self.resource.as_deref());
        xml.element("bsp:PlannedStart", self.planned_start);
        xml.element("bsp:PlannedEnd", self.planned_end);
        xml.element("bsp:Nodes", self.nodes);
        xml.optional_element("bsp:Confidence", self.confidence.map(write_double));
        xml.element("bsp:Fixed", self.fixed);
        write_budget(xml, "bsp:Price", self.price.as_ref());
        for piece in &self.pieces {
            piece.write(xml);
        }
        for name in &self.node_names {
            xml.element("bsp:Node", name);
        }
        xml.optional_element("bsp:Started", self.started);
        xml.optional_element("bsp:Ended", self.ended);
        xml.optional_element("bsp:ExitStatus", self.exit_status);
        xml.optional_element("bsp:Outcome", self.outcome.as_deref());
        xml.end();
    }
}
