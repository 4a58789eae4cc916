//! Why an offer is refused and which change would have been accepted: `bsp:Refusal`, and the fault that carries it.

use crate::scheduling::{Budget, write_budget};
use crate::xml::datatypes::write_double;
use crate::xml::fragment::Fragment;
use crate::xml::names::Named;
use crate::xml::ns::BSP;
use crate::xml::time::DateTime;
use crate::xml::violation::Violation;
use crate::xml::writer::Xml;

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

impl Named for Reason {
    const NAMES: &'static [(Reason, &'static str)] = &[
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
}

/// `bsp:Refusal`.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The obstacle, in words of the request.
    pub binding_constraint: Option<String>,
    /// Whether the search for a place was cut short: a longer one might have found one.
    pub cut_short: bool,
    /// Slots outside the window, or of another shape, that are free.
    pub alternatives: Vec<Alternative>,
    /// The smallest changes of the request that would have been accepted.
    pub relaxations: Vec<Relaxation>,
}

/// `bsp:Alternative`: a slot that is possible instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// Its start.
    pub start: DateTime,
    /// Its end.
    pub end: DateTime,
    /// Its number of nodes, where it differs from the request.
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

impl Named for Direction {
    const NAMES: &'static [(Direction, &'static str)] =
        &[(Direction::Earlier, "Earlier"), (Direction::Later, "Later")];
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
    pub error_code: String,
    /// For people, each with its language where it is known.
    pub descriptions: Vec<Description>,
    /// Why the plan refuses, where it does.
    pub refusal: Option<Refusal>,
    /// The violations of the document, where it has any: `bsp:Violations`.
    pub violations: Vec<FaultViolation>,
    /// Other foreign elements, verbatim.
    pub extensions: Vec<Fragment>,
}

/// `wsrf-bf:Description`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The text.
    pub text: String,
    /// `xml:lang`.
    pub language: Option<String>,
}

/// `bsp:Violation`: an element and the value that was expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultViolation {
    /// Path of the element or attribute.
    pub path: String,
    /// The found and the expected value.
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
            error_code: error_code.to_owned(),
            descriptions: vec![Description {
                text: description.to_owned(),
                language: Some("en".to_owned()),
            }],
            refusal: None,
            violations: Vec::new(),
            extensions: Vec::new(),
        }
    }

    /// As `wsag:ContinuingFault`. Base faults take foreign elements before everything else.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("wsag:ContinuingFault", &["wsag", "wsrf-bf", "bsp"]);
        if let Some(refusal) = &self.refusal {
            write_refusal(&mut xml, refusal, &[]);
        }
        if !self.violations.is_empty() {
            xml.insert(&violations_fragment(&self.violations));
        }
        xml.insert_all(&self.extensions);
        xml.element("wsrf-bf:Timestamp", self.timestamp);
        xml.start("wsrf-bf:ErrorCode");
        xml.attribute("dialect", BSP);
        xml.text(&self.error_code);
        xml.end();
        for description in &self.descriptions {
            xml.start("wsrf-bf:Description");
            xml.optional_attribute("xml:lang", description.language.as_deref());
            xml.text(&description.text);
            xml.end();
        }
        xml.finish()
    }
}

/// `bsp:Violations`: the violations of a document, for a place that takes foreign elements.
pub fn violations_fragment(violations: &[FaultViolation]) -> Fragment {
    let mut xml = Xml::fragment("bsp:Violations", &["bsp"]);
    for violation in violations {
        xml.start("bsp:Violation");
        xml.element("bsp:Path", &violation.path);
        xml.element("bsp:Message", &violation.message);
        xml.end();
    }
    xml.into_fragment()
}

impl Refusal {
    /// As a fragment, for a place that takes foreign elements.
    pub fn to_fragment(&self) -> Fragment {
        let mut xml = Xml::default();
        write_refusal(&mut xml, self, &["bsp"]);
        xml.into_fragment()
    }
}

fn write_refusal(xml: &mut Xml, refusal: &Refusal, prefixes: &[&str]) {
    xml.start_with("bsp:Refusal", prefixes);
    xml.element("bsp:Reason", refusal.reason.name());
    xml.optional_element("bsp:BindingConstraint", refusal.binding_constraint.as_deref());
    xml.optional_element("bsp:CutShort", refusal.cut_short.then_some("true"));
    for alternative in &refusal.alternatives {
        xml.start("bsp:Alternative");
        xml.element("bsp:Start", alternative.start);
        xml.element("bsp:End", alternative.end);
        xml.optional_element("bsp:Nodes", alternative.nodes);
        xml.element("bsp:Deviation", write_double(alternative.deviation));
        xml.element("bsp:Direction", alternative.direction.name());
        xml.end();
    }
    for relaxation in &refusal.relaxations {
        xml.start("bsp:Relaxation");
        xml.optional_element("bsp:Start", relaxation.start);
        xml.optional_element("bsp:Deadline", relaxation.deadline);
        xml.optional_element("bsp:Nodes", relaxation.nodes);
        xml.optional_element("bsp:Duration", relaxation.duration);
        write_budget(xml, "bsp:Budget", relaxation.budget.as_ref());
        xml.end();
    }
    xml.end();
}
