//! Faults: `wsag:ContinuingFault`, with the violations of a document or the refusal that it carries.

use crate::endpoint::EndpointReference;
use crate::refusals::Refusal;
use crate::xml::datatypes::parse_token;
use crate::xml::ns::{BSP, WSRF_BF, XML};
use crate::xml::{DateTime, DocumentCheck, Fragment, Node, Readable, Violation, Xml, element};

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
                    violations = read_violations_of_fault(children.check, extension);
                } else {
                    extensions.push(extension.fragment());
                }
            }
            let timestamp = children.required(WSRF_BF, "Timestamp", DateTime::read);
            children.optional(WSRF_BF, "Originator", EndpointReference::read);
            let error_code = children.optional(WSRF_BF, "ErrorCode", read_error_code_of_fault);
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

fn read_error_code_of_fault(check: &mut DocumentCheck, node: Node<'_>) -> Option<String> {
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
pub(crate) fn read_violations_of_fault(check: &mut DocumentCheck, node: Node<'_>) -> Vec<FaultViolation> {
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
