//! When it is to run: `arp:AllocationTimeConstraint`.

use crate::xml::datatypes;
use crate::xml::document::Node;
use crate::xml::ns::ARP;
use crate::xml::reader::{Check, simple};
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// Run `duration` seconds anywhere between `start` and `end`. Each part may be absent; whether it then has a
/// default is the service's decision. That the end lies after the start is a rule of the service
/// ([`crate::rules`]), not of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllocationTimeConstraint {
    /// Earliest start. Round up ([`DateTime::ceil`]).
    pub start: Option<DateTime>,
    /// Latest completion. Round down ([`DateTime::floor`]).
    pub end: Option<DateTime>,
    /// Seconds.
    pub duration: Option<i32>,
}

/// Reads a window.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<AllocationTimeConstraint> {
    check.children(node, |children| {
        Some(AllocationTimeConstraint {
            start: children.optional(ARP, "StartTime", simple(str::parse)),
            end: children.optional(ARP, "EndTime", simple(str::parse)),
            duration: children.optional(ARP, "Duration", simple(seconds)),
        })
    })
}

fn seconds(text: &str) -> Result<i32, &'static str> {
    let value = datatypes::integer(text).and_then(|value| i32::try_from(value).ok());
    value.ok_or("a whole number of seconds is expected, such as 3600")
}

impl AllocationTimeConstraint {
    /// Writes the element.
    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.start_with("arp:AllocationTimeConstraint", &["arp"]);
        xml.optional_element("arp:StartTime", self.start);
        xml.optional_element("arp:EndTime", self.end);
        xml.optional_element("arp:Duration", self.duration);
        xml.end();
    }
}
