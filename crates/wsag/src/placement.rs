//! Where and when an agreement is planned and was run: `bsp:Placement`, in the state of the service term.

use crate::datatypes;
use crate::document::Node;
use crate::job::{boolean, double, write_double};
use crate::ns::BSP;
use crate::reader::{Check, Sequence};
use crate::refusals::read_budget;
use crate::scheduling::{Budget, count, write_budget};
use crate::terms::Choice;
use crate::terms::token;
use crate::time::DateTime;
use crate::writer::Xml;

/// The current placement of an agreement, and what really happened so far.
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
    /// What it costs, where it is priced.
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
        xml.element("bsp:PlannedStart", &self.planned_start.to_string());
        xml.element("bsp:PlannedEnd", &self.planned_end.to_string());
        xml.element("bsp:Nodes", &self.nodes.to_string());
        xml.optional_element("bsp:Started", self.started.map(|at| at.to_string()).as_deref());
        xml.optional_element("bsp:Ended", self.ended.map(|at| at.to_string()).as_deref());
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
        xml.element("bsp:PlannedStart", &self.planned_start.to_string());
        xml.element("bsp:PlannedEnd", &self.planned_end.to_string());
        xml.end();
    }
}

/// What the service has chosen where an offer left it a choice: `bsp:Choice`, in the answer to the offer.
impl Choice {
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start("bsp:Choice");
        xml.element("bsp:Path", &self.path);
        for member in &self.members {
            xml.element("bsp:Member", &member.to_string());
        }
        xml.end();
    }
}

/// Reads a placement; None only after a violation was added.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<Placement> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let resource = sequence
        .optional(BSP, "Resource")
        .and_then(|node| check.simple(node, token));
    let planned_start = sequence
        .required(check, BSP, "PlannedStart")
        .and_then(|node| check.date_time(node));
    let planned_end = sequence
        .required(check, BSP, "PlannedEnd")
        .and_then(|node| check.date_time(node));
    let nodes = sequence
        .required(check, BSP, "Nodes")
        .and_then(|node| check.simple(node, count));
    let confidence = sequence
        .optional(BSP, "Confidence")
        .and_then(|node| check.simple(node, double));
    let fixed = sequence
        .required(check, BSP, "Fixed")
        .and_then(|node| check.simple(node, boolean));
    let price = sequence
        .optional(BSP, "Price")
        .and_then(|node| read_budget(check, node));
    let pieces = sequence.many(BSP, "Piece");
    let names = sequence.many(BSP, "Node");
    let started = sequence
        .optional(BSP, "Started")
        .and_then(|node| check.date_time(node));
    let ended = sequence
        .optional(BSP, "Ended")
        .and_then(|node| check.date_time(node));
    let exit_status = sequence
        .optional(BSP, "ExitStatus")
        .and_then(|node| check.simple(node, status));
    let outcome = sequence
        .optional(BSP, "Outcome")
        .and_then(|node| check.simple(node, token));
    sequence.end(check);
    Some(Placement {
        resource,
        planned_start: planned_start?,
        planned_end: planned_end?,
        nodes: nodes?,
        confidence,
        fixed: fixed?,
        price,
        pieces: pieces
            .into_iter()
            .filter_map(|node| read_piece(check, node))
            .collect(),
        node_names: names
            .into_iter()
            .filter_map(|node| check.simple(node, token))
            .collect(),
        started,
        ended,
        exit_status,
        outcome,
    })
}

fn read_piece(check: &mut Check, node: Node<'_>) -> Option<Piece> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let planned_start = sequence
        .required(check, BSP, "PlannedStart")
        .and_then(|node| check.date_time(node));
    let planned_end = sequence
        .required(check, BSP, "PlannedEnd")
        .and_then(|node| check.date_time(node));
    let nodes = sequence
        .required(check, BSP, "Nodes")
        .and_then(|node| check.simple(node, count));
    let started = sequence
        .optional(BSP, "Started")
        .and_then(|node| check.date_time(node));
    let ended = sequence
        .optional(BSP, "Ended")
        .and_then(|node| check.date_time(node));
    sequence.end(check);
    Some(Piece {
        planned_start: planned_start?,
        planned_end: planned_end?,
        nodes: nodes?,
        started,
        ended,
    })
}

fn status(text: &str) -> Result<i32, String> {
    let value = datatypes::integer(text).and_then(|value| i32::try_from(value).ok());
    value.ok_or_else(|| "an exit status is expected".to_owned())
}

impl Placement {
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start("bsp:Placement");
        xml.optional_element("bsp:Resource", self.resource.as_deref());
        xml.element("bsp:PlannedStart", &self.planned_start.to_string());
        xml.element("bsp:PlannedEnd", &self.planned_end.to_string());
        xml.element("bsp:Nodes", &self.nodes.to_string());
        xml.optional_element("bsp:Confidence", self.confidence.map(write_double).as_deref());
        xml.element("bsp:Fixed", if self.fixed { "true" } else { "false" });
        if let Some(price) = &self.price {
            write_budget(xml, "bsp:Price", price);
        }
        for piece in &self.pieces {
            piece.write(xml);
        }
        for name in &self.node_names {
            xml.element("bsp:Node", name);
        }
        xml.optional_element(
            "bsp:Started",
            self.started.map(|time| time.to_string()).as_deref(),
        );
        xml.optional_element("bsp:Ended", self.ended.map(|time| time.to_string()).as_deref());
        xml.optional_element(
            "bsp:ExitStatus",
            self.exit_status.map(|status| status.to_string()).as_deref(),
        );
        xml.optional_element("bsp:Outcome", self.outcome.as_deref());
        xml.end();
    }
}
