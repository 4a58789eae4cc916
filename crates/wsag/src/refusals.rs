//! Why an offer is refused and what would have been accepted: `bsp:Refusal`, and the fault that carries it.

use crate::document::{Fragment, Node};
use crate::ns::{BSP, WSAG, WSRF_BF, XML};
use crate::reader::{Check, Sequence, fragments};
use crate::scheduling::{Budget, amount, count, currency, write_budget};
use crate::terms::token;
use crate::time::DateTime;
use crate::violation::Violation;
use crate::writer::Xml;

/// The closed list of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Everything in the window is taken.
    NoCapacityInWindow,
    /// More nodes than there are.
    SizeExceedsCapacity,
    /// The window is shorter than the duration, or ends before it starts.
    WindowContradictory,
    /// Too late to complete in time, even if started now.
    WindowInThePast,
    /// Later than reservations are taken.
    HorizonExceeded,
    /// More than the party may hold.
    QuotaExceeded,
    /// Costs more than was offered.
    BudgetTooLow,
    /// No such application or resource here.
    ResourceNotOffered,
    /// The provider does not want to.
    PolicyDenied,
}

impl Reason {
    const NAMES: [(Reason, &'static str); 9] = [
        (Reason::NoCapacityInWindow, "NO_CAPACITY_IN_WINDOW"),
        (Reason::SizeExceedsCapacity, "SIZE_EXCEEDS_CAPACITY"),
        (Reason::WindowContradictory, "WINDOW_CONTRADICTORY"),
        (Reason::WindowInThePast, "WINDOW_IN_THE_PAST"),
        (Reason::HorizonExceeded, "HORIZON_EXCEEDED"),
        (Reason::QuotaExceeded, "QUOTA_EXCEEDED"),
        (Reason::BudgetTooLow, "BUDGET_TOO_LOW"),
        (Reason::ResourceNotOffered, "RESOURCE_NOT_OFFERED"),
        (Reason::PolicyDenied, "POLICY_DENIED"),
    ];

    /// The reason as it is written.
    pub fn name(self) -> &'static str {
        Reason::NAMES
            .iter()
            .find(|(known, _)| *known == self)
            .map_or("", |(_, name)| name)
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<Reason> {
        Reason::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(reason, _)| *reason)
    }
}

/// `bsp:Refusal`.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// What stands in the way, in words of the request.
    pub binding_constraint: Option<String>,
    /// Whether the search for a place was cut short: a longer one might have found one.
    pub cut_short: bool,
    /// Slots outside the window, or of another shape, that are free.
    pub alternatives: Vec<Alternative>,
    /// The smallest changes of the request that would have been accepted.
    pub relaxations: Vec<Relaxation>,
}

/// `bsp:Alternative`: a slot that could be had instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// Its start.
    pub start: DateTime,
    /// Its end.
    pub end: DateTime,
    /// Its number of nodes, where it differs from what was asked.
    pub nodes: Option<u32>,
    /// φ: how far it lies outside the window, in durations of the request.
    pub deviation: f64,
    /// On which side.
    pub direction: Direction,
}

/// On which side of the window an alternative lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It starts before the window.
    Earlier,
    /// It ends after the window.
    Later,
}

impl Direction {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Earlier => "Earlier",
            Direction::Later => "Later",
        }
    }
}

/// `bsp:Relaxation`: changes that together make the request acceptable; one, or two where no single one does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relaxation {
    /// The latest earlier start of the window that suffices.
    pub start: Option<DateTime>,
    /// The earliest deadline that suffices.
    pub deadline: Option<DateTime>,
    /// The largest number of nodes that fits.
    pub nodes: Option<u32>,
    /// The longest duration that fits, in seconds.
    pub duration: Option<u32>,
    /// The lowest budget that suffices.
    pub budget: Option<Budget>,
}

/// `wsag:ContinuingFault`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// When it happened.
    pub timestamp: DateTime,
    /// A stable word for the kind of fault, in the dialect `urn:bespeak:terms:1`.
    pub error_code: Option<String>,
    /// For people, each with its language where it is known.
    pub descriptions: Vec<Description>,
    /// Why the plan refuses, where it does.
    pub refusal: Option<Refusal>,
    /// What is wrong with the document, where something is: `bsp:Violations`.
    pub violations: Vec<FaultViolation>,
    /// Other foreign elements, verbatim.
    pub extensions: Vec<Fragment>,
    /// Who says so, verbatim.
    pub originator: Option<Fragment>,
    /// Another fault behind it, verbatim.
    pub cause: Option<Fragment>,
}

/// `wsrf-bf:Description`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The text.
    pub text: String,
    /// `xml:lang`.
    pub language: Option<String>,
}

/// `bsp:Violation`: an element and what was expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultViolation {
    /// Path of the element or attribute.
    pub path: String,
    /// What was found and expected.
    pub message: String,
}

impl From<&Violation> for FaultViolation {
    fn from(violation: &Violation) -> FaultViolation {
        FaultViolation {
            path: violation.path.clone(),
            message: violation.message.clone(),
        }
    }
}

impl Fault {
    /// A fault with one English description.
    pub fn new(timestamp: DateTime, error_code: &str, description: &str) -> Fault {
        Fault {
            timestamp,
            error_code: Some(error_code.to_owned()),
            descriptions: vec![Description {
                text: description.to_owned(),
                language: Some("en".to_owned()),
            }],
            refusal: None,
            violations: Vec::new(),
            extensions: Vec::new(),
            originator: None,
            cause: None,
        }
    }

    /// As `wsag:ContinuingFault`. Base faults take foreign elements before everything else.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag:ContinuingFault", &["wsag", "wsrf-bf", "bsp"]);
        if let Some(refusal) = &self.refusal {
            write_refusal(&mut xml, refusal);
        }
        if !self.violations.is_empty() {
            xml.insert(&violations_fragment(&self.violations));
        }
        xml.insert_all(&self.extensions);
        xml.element("wsrf-bf:Timestamp", &self.timestamp.to_string());
        xml.insert_all(self.originator.as_slice());
        if let Some(code) = &self.error_code {
            xml.start("wsrf-bf:ErrorCode");
            xml.attribute("dialect", BSP);
            xml.text(code);
            xml.end();
        }
        for description in &self.descriptions {
            xml.start("wsrf-bf:Description");
            xml.optional_attribute("xml:lang", description.language.as_deref());
            xml.text(&description.text);
            xml.end();
        }
        xml.insert_all(self.cause.as_slice());
        xml.finish()
    }
}

/// `bsp:Violations`: what is wrong with a document, for a place that takes foreign elements.
pub fn violations_fragment(violations: &[FaultViolation]) -> Fragment {
    let mut xml = Xml::fragment("bsp:Violations", &["bsp"]);
    for violation in violations {
        xml.start("bsp:Violation");
        xml.element("bsp:Path", &violation.path);
        xml.element("bsp:Message", &violation.message);
        xml.end();
    }
    Fragment::written(xml.finish())
}

impl Refusal {
    /// As a fragment, for a place that takes foreign elements.
    pub fn to_fragment(&self) -> Fragment {
        let mut xml = Xml::fragment("bsp:Refusal", &["bsp"]);
        write_content(&mut xml, self);
        Fragment::written(xml.finish())
    }
}

fn write_refusal(xml: &mut Xml, refusal: &Refusal) {
    xml.start("bsp:Refusal");
    write_content(xml, refusal);
}

fn write_content(xml: &mut Xml, refusal: &Refusal) {
    xml.element("bsp:Reason", refusal.reason.name());
    xml.optional_element("bsp:BindingConstraint", refusal.binding_constraint.as_deref());
    xml.optional_element("bsp:CutShort", refusal.cut_short.then_some("true"));
    for alternative in &refusal.alternatives {
        xml.start("bsp:Alternative");
        xml.element("bsp:Start", &alternative.start.to_string());
        xml.element("bsp:End", &alternative.end.to_string());
        xml.optional_element(
            "bsp:Nodes",
            alternative.nodes.map(|nodes| nodes.to_string()).as_deref(),
        );
        xml.element("bsp:Deviation", &crate::job::write_double(alternative.deviation));
        xml.element("bsp:Direction", alternative.direction.name());
        xml.end();
    }
    for relaxation in &refusal.relaxations {
        xml.start("bsp:Relaxation");
        xml.optional_element(
            "bsp:Start",
            relaxation.start.map(|time| time.to_string()).as_deref(),
        );
        xml.optional_element(
            "bsp:Deadline",
            relaxation.deadline.map(|time| time.to_string()).as_deref(),
        );
        xml.optional_element(
            "bsp:Nodes",
            relaxation.nodes.map(|nodes| nodes.to_string()).as_deref(),
        );
        xml.optional_element(
            "bsp:Duration",
            relaxation.duration.map(|seconds| seconds.to_string()).as_deref(),
        );
        if let Some(budget) = &relaxation.budget {
            write_budget(xml, "bsp:Budget", budget);
        }
        xml.end();
    }
    xml.end();
}

/// Reads a fault; None only after a violation was added.
pub(crate) fn read_fault(check: &mut Check, node: Node<'_>) -> Option<Fault> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let foreign = sequence.foreign(WSRF_BF);
    let timestamp = sequence
        .required(check, WSRF_BF, "Timestamp")
        .and_then(|node| check.date_time(node));
    let originator = sequence.one_of(WSRF_BF, &["OriginatorReference", "Originator"]);
    let code = sequence.optional(WSRF_BF, "ErrorCode");
    let descriptions = sequence.many(WSRF_BF, "Description");
    let cause = sequence.optional(WSRF_BF, "FaultCause");
    sequence.end(check);
    let error_code = code.and_then(|node| {
        check.attributes(node, &[("", "dialect")]);
        check.required_attribute(node, ("", "dialect"), token);
        check.simple_only(node, token)
    });
    let descriptions = descriptions.into_iter().filter_map(|node| {
        check.attributes(node, &[(XML, "lang")]);
        let language = node.attribute(XML, "lang").map(str::to_owned);
        Some(Description {
            text: check.text_only(node)?.into_owned(),
            language,
        })
    });
    let descriptions = descriptions.collect();
    let (mut refusal, mut violations, mut extensions) = (None, Vec::new(), Vec::new());
    for node in foreign {
        if node.namespace() == WSAG {
            check.structure(
                node,
                "an element of WS-Agreement itself does not belong in a fault",
            );
        } else if node.is(BSP, "Refusal") && refusal.is_none() {
            refusal = read_refusal(check, node);
        } else if node.is(BSP, "Violations") && violations.is_empty() {
            violations = read_violations(check, node);
        } else {
            extensions.push(node);
        }
    }
    Some(Fault {
        timestamp: timestamp?,
        error_code,
        descriptions,
        refusal,
        violations,
        extensions: fragments(&extensions),
        originator: originator.map(|(_, node)| node.fragment()),
        cause: cause.map(Node::fragment),
    })
}

fn read_violations(check: &mut Check, node: Node<'_>) -> Vec<FaultViolation> {
    let mut sequence = Sequence::of(check, node);
    let nodes = sequence.at_least_one(check, BSP, "Violation");
    sequence.end(check);
    let read = nodes.into_iter().filter_map(|node| {
        let mut sequence = Sequence::of(check, node);
        let path = sequence
            .required(check, BSP, "Path")
            .and_then(|node| check.string(node));
        let message = sequence
            .required(check, BSP, "Message")
            .and_then(|node| check.string(node));
        sequence.end(check);
        Some(FaultViolation {
            path: path?,
            message: message?,
        })
    });
    read.collect()
}

fn read_refusal(check: &mut Check, node: Node<'_>) -> Option<Refusal> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let reason = sequence.required(check, BSP, "Reason").and_then(|node| {
        check.simple(node, |text| {
            Reason::parse(text).ok_or_else(|| "a reason of the list is expected".to_owned())
        })
    });
    let binding_constraint = sequence
        .optional(BSP, "BindingConstraint")
        .and_then(|node| check.string(node));
    let cut_short = sequence
        .optional(BSP, "CutShort")
        .and_then(|node| check.simple(node, crate::job::boolean));
    let alternatives = sequence.many(BSP, "Alternative");
    let relaxations = sequence.many(BSP, "Relaxation");
    sequence.end(check);
    let alternatives = alternatives
        .into_iter()
        .filter_map(|node| read_alternative(check, node))
        .collect();
    let relaxations = relaxations
        .into_iter()
        .map(|node| read_relaxation(check, node))
        .collect();
    Some(Refusal {
        reason: reason?,
        binding_constraint,
        cut_short: cut_short.unwrap_or(false),
        alternatives,
        relaxations,
    })
}

fn read_alternative(check: &mut Check, node: Node<'_>) -> Option<Alternative> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let start = sequence
        .required(check, BSP, "Start")
        .and_then(|node| check.date_time(node));
    let end = sequence
        .required(check, BSP, "End")
        .and_then(|node| check.date_time(node));
    let nodes = sequence
        .optional(BSP, "Nodes")
        .and_then(|node| check.simple(node, count));
    let deviation = sequence.required(check, BSP, "Deviation");
    let direction = sequence.required(check, BSP, "Direction").and_then(|node| {
        check.simple(node, |text| match text {
            "Earlier" => Ok(Direction::Earlier),
            "Later" => Ok(Direction::Later),
            _ => Err("Earlier or Later is expected".to_owned()),
        })
    });
    sequence.end(check);
    let deviation = deviation.and_then(|node| check.simple(node, crate::job::double));
    Some(Alternative {
        start: start?,
        end: end?,
        nodes,
        deviation: deviation?,
        direction: direction?,
    })
}

fn read_relaxation(check: &mut Check, node: Node<'_>) -> Relaxation {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let start = sequence
        .optional(BSP, "Start")
        .and_then(|node| check.date_time(node));
    let deadline = sequence
        .optional(BSP, "Deadline")
        .and_then(|node| check.date_time(node));
    let nodes = sequence
        .optional(BSP, "Nodes")
        .and_then(|node| check.simple(node, count));
    let duration = sequence
        .optional(BSP, "Duration")
        .and_then(|node| check.simple(node, count));
    let budget = sequence
        .optional(BSP, "Budget")
        .and_then(|node| read_budget(check, node));
    sequence.end(check);
    Relaxation {
        start,
        deadline,
        nodes,
        duration,
        budget,
    }
}

/// A sum of money: `Amount`, `Currency`.
pub(crate) fn read_budget(check: &mut Check, node: Node<'_>) -> Option<Budget> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let amount = sequence
        .required(check, BSP, "Amount")
        .and_then(|node| check.simple(node, amount));
    let currency = sequence
        .required(check, BSP, "Currency")
        .and_then(|node| check.simple(node, currency));
    sequence.end(check);
    Some(Budget {
        amount_micros: amount?,
        currency: currency?,
    })
}
