//! Why an offer is refused and which change would have been accepted: `bsp:Refusal`, and the fault that carries it.

use crate::endpoint::EndpointReference;
use crate::scheduling::Budget;
use crate::xml::datatypes::{parse_boolean, parse_double, parse_positive_integer, parse_token};
use crate::xml::ns::{BSP, WSRF_BF, XML};
use crate::xml::{
    DateTime, DocumentCheck, Fragment, Node, Readable, Violation, WrittenValue, Xml, element, named_values,
    read_simple,
};

named_values! {
    /// The closed list of reasons.
    pub enum Reason {
        /// Everything in the window is taken.
        NoCapacityInWindow = "NO_CAPACITY_IN_WINDOW",
        /// More nodes than there are.
        SizeExceedsCapacity = "SIZE_EXCEEDS_CAPACITY",
        /// The window is shorter than the duration, or ends before it starts.
        WindowContradictory = "WINDOW_CONTRADICTORY",
        /// Too late to complete in time, even if started now.
        WindowInThePast = "WINDOW_IN_THE_PAST",
        /// Later than reservations are taken.
        HorizonExceeded = "HORIZON_EXCEEDED",
        /// More than the party may hold.
        QuotaExceeded = "QUOTA_EXCEEDED",
        /// Costs more than was offered.
        BudgetTooLow = "BUDGET_TOO_LOW",
        /// No such application or resource here.
        ResourceNotOffered = "RESOURCE_NOT_OFFERED",
        /// The provider does not want to.
        PolicyDenied = "POLICY_DENIED",
    }
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

element! {
    /// `bsp:Alternative`: a slot that is possible instead.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Alternative {
        /// Its start.
        pub start: DateTime = "bsp:Start",
        /// Its end.
        pub end: DateTime = "bsp:End",
        /// Its number of nodes, where it differs from the request.
        pub nodes: Option<u32> = "bsp:Nodes" by parse_positive_integer,
        /// φ: how far it lies outside the window, in durations of the request.
        pub deviation: f64 = "bsp:Deviation" by parse_double,
        /// On which side.
        pub direction: Direction = "bsp:Direction",
    }
}

named_values! {
    /// On which side of the window an alternative lies.
    pub enum Direction {
        /// It starts before the window.
        Earlier = "Earlier",
        /// It ends after the window.
        Later = "Later",
    }
}

element! {
    /// `bsp:Relaxation`: changes that together make the request acceptable; one, or two where no single one does.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Relaxation {
        /// The latest earlier start of the window that suffices.
        pub start: Option<DateTime> = "bsp:Start",
        /// The earliest deadline that suffices.
        pub deadline: Option<DateTime> = "bsp:Deadline",
        /// The largest number of nodes that fits.
        pub nodes: Option<u32> = "bsp:Nodes" by parse_positive_integer,
        /// The longest duration that fits, in seconds.
        pub duration: Option<u32> = "bsp:Duration" by parse_positive_integer,
        /// The lowest budget that suffices.
        pub budget: Option<Budget> = "bsp:Budget",
    }
}

/// `wsag:ContinuingFault`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// When it happened.
    pub timestamp: DateTime,
    /// A stable word for the kind of fault, in the dialect `urn:bespeak:terms:1`; empty in a fault of another service that has none.
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

element! {
    /// `bsp:Violation`: an element and the value that was expected of it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FaultViolation {
        /// Path of the element or attribute.
        pub path: String = "bsp:Path",
        /// The found and the expected value.
        pub message: String = "bsp:Message",
    }
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
        xml.add("bsp:Refusal", &self.refusal);
        if !self.violations.is_empty() {
            xml.insert(&violations_fragment(&self.violations));
        }
        xml.insert_all(&self.extensions);
        xml.add("wsrf-bf:Timestamp", &self.timestamp);
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

impl Readable for Fault {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Fault> {
        // It may have any attribute.
        check.children_only(node, |children| {
            let (mut refusal, mut violations, mut extensions) = (None, Vec::new(), Vec::new());
            for extension in children.foreign(WSRF_BF) {
                if extension.is(BSP, "Refusal") && refusal.is_none() {
                    refusal = Refusal::read(children.check, extension);
                } else if extension.is(BSP, "Violations") && violations.is_empty() {
                    violations = read_violations(children.check, extension);
                } else {
                    extensions.push(extension.fragment());
                }
            }
            let timestamp = children.required(WSRF_BF, "Timestamp", DateTime::read);
            children.optional(WSRF_BF, "Originator", EndpointReference::read);
            let error_code = children.optional(WSRF_BF, "ErrorCode", read_error_code);
            let descriptions = children.many(WSRF_BF, "Description", Description::read);
            children.optional(WSRF_BF, "FaultCause", |_, _| Some(()));
            Some(Fault {
                timestamp: timestamp?,
                error_code: error_code.unwrap_or_default(),
                descriptions,
                refusal,
                violations,
                extensions,
            })
        })
    }
}

fn read_error_code(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
    check.attributes(node, &[("", "dialect")]);
    check.simple_only(node, parse_token)
}

impl Readable for Description {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Description> {
        check.attributes(node, &[(XML, "lang")]);
        Some(Description {
            text: check.text_only(node)?.into_owned(),
            language: node.attribute(XML, "lang").map(str::to_owned),
        })
    }
}

/// Reads `bsp:Violations`.
pub(crate) fn read_violations(check: &mut DocumentCheck, node: Node<'_>) -> Vec<FaultViolation> {
    check.children(node, |children| {
        children.at_least_one(BSP, "Violation", FaultViolation::read)
    })
}

/// `bsp:Violations`: the violations of a document, for a place that takes foreign elements.
pub fn violations_fragment(violations: &[FaultViolation]) -> Fragment {
    let mut xml = Xml::fragment("bsp:Violations", &["bsp"]);
    xml.add_all("bsp:Violation", violations);
    xml.into_fragment()
}

impl Refusal {
    /// As a fragment, for a place that takes foreign elements.
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("bsp:Refusal", &["bsp"])
    }
}

impl Readable for Refusal {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Refusal> {
        check.children(node, |children| {
            let reason = children.required(BSP, "Reason", Reason::read);
            Some(Refusal {
                binding_constraint: children.optional(BSP, "BindingConstraint", DocumentCheck::string),
                cut_short: children
                    .optional(BSP, "CutShort", read_simple(parse_boolean))
                    .unwrap_or(false),
                alternatives: children.many(BSP, "Alternative", Alternative::read),
                relaxations: children.many(BSP, "Relaxation", Relaxation::read),
                reason: reason?,
            })
        })
    }
}

impl WrittenValue for Refusal {
    fn write(&self, xml: &mut Xml) {
        xml.add("bsp:Reason", &self.reason);
        xml.add("bsp:BindingConstraint", &self.binding_constraint);
        xml.add("bsp:CutShort", &self.cut_short.then_some(true));
        xml.add("bsp:Alternative", &self.alternatives);
        xml.add("bsp:Relaxation", &self.relaxations);
    }
}
