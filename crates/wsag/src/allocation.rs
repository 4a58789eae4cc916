//! When it is to run: `arp:AllocationTimeConstraint`.

use serde::{Deserialize, Serialize};

use crate::languages;
use crate::xml::datatypes::parse_integer;
use crate::xml::{DateTime, Xml, element};

element! {
    /// `arp:AllocationTimeConstraint`: run `duration` seconds anywhere between `start` and `end`. Each part may be absent; whether
    /// it then has a default is the service's decision. That the end lies after the start is a rule of the service
    /// ([`crate::rules`]), not of the document.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct AllocationTimeConstraint declares ["arp"] {
        /// Earliest start. Round up ([`DateTime::ceil`]).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<DateTime> = "arp:StartTime",
        /// Latest completion. Round down ([`DateTime::floor`]).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub end: Option<DateTime> = "arp:EndTime",
        /// Seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub duration: Option<i32> = "arp:Duration" by parse_seconds_of_allocation,
    }
}

impl AllocationTimeConstraint {
    /// Writes it as WSAG4J's time constraint.
    pub(crate) fn write_for_wsag4j(&self, xml: &mut Xml) {
        xml.start_as(
            "arp:AllocationTimeConstraint",
            languages::ELEMENT,
            Some(languages::WSAG4J),
        );
        let mut part = |meant, written, value: Option<String>| {
            if let Some(value) = value {
                xml.start_as(meant, written, None);
                xml.text(&value);
                xml.end();
            }
        };
        part("arp:StartTime", "StartTime", self.start.map(|at| at.to_string()));
        part("arp:EndTime", "EndTime", self.end.map(|at| at.to_string()));
        part(
            "arp:Duration",
            "Duration",
            self.duration.map(|duration| duration.to_string()),
        );
        xml.end();
    }
}

fn parse_seconds_of_allocation(text: &str) -> Result<i32, &'static str> {
    let value = parse_integer(text)
        .ok()
        .and_then(|value| i32::try_from(value).ok());
    value.ok_or("a whole number of seconds is expected, such as 3600")
}
