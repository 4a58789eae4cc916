//! When it is to run: `arp:AllocationTimeConstraint`. How it may be planned: `bsp:Scheduling`, our own optional term.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::languages;
use crate::xml::datatypes::{
    parse_boolean, parse_integer, parse_not_negative, parse_positive, parse_positive_integer,
    parse_positive_share, parse_share,
};
use crate::xml::ns::BSP;
use crate::xml::{DateTime, DocumentCheck, Node, Readable, WrittenValue, Xml, element, read_simple};

element! {
    /// The choices and preferences of the requester beyond node count and window. Everything is optional.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct Scheduling declares ["bsp"] {
        /// How long it takes on how many nodes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub moldability: Option<Moldability> = "bsp:Moldability",
        /// How it may be cut in pieces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub preemption: Option<Preemption> = "bsp:Preemption",
        /// The most that it may cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub budget: Option<Budget> = "bsp:Budget",
        /// Largest deviation φ = |alternative − asked| / duration that alternatives may have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_deviation: Option<f64> = "bsp:MaxDeviation" by parse_not_negative,
        /// Fraction of the wait, 0 to 1, after which the start is fixed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fix_at: Option<f64> = "bsp:FixAt" by parse_share,
        /// The preference in ranking alternatives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub preference: Option<Preference> = "bsp:Preference",
        /// The name of the one resource that it is to lie on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub resource: Option<String> = "bsp:Resource",
        /// What may still change of its shape after it is accepted; absent for all that it leaves open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub may_change: Option<ShapeChanges> = "bsp:MayChange",
    }
}

/// Duration as a function of the number of nodes, within the range of `jsdl:TotalResourceCount`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Moldability {
    /// `intercept − slope · nodes` seconds.
    Linear {
        /// Seconds.
        intercept: f64,
        /// Seconds per node.
        slope: f64,
    },
    /// Seconds for each allowed number of nodes.
    Table(Vec<(u32, u32)>),
    /// This many node-seconds, on any number of nodes.
    ConstantWork(f64),
}

element! {
    /// How a job may be cut.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    pub struct Preemption {
        /// Most pieces.
        pub pieces: u32 = "bsp:Pieces" by parse_positive_integer,
        /// Cuts are at multiples of this share of the work, above 0 and at most 1.
        pub interval: f64 = "bsp:Interval" by parse_positive_share,
        /// Whether each piece may have its own number of nodes.
        pub independent: bool = "bsp:Independent" by parse_boolean,
    }
}

element! {
    /// What may still change of the shape of an accepted agreement that waits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ShapeChanges {
        /// Whether it may get another of its sizes.
        pub sizes: bool = "bsp:Sizes" by parse_boolean,
        /// Whether its work may be cut in other pieces.
        pub cuts: bool = "bsp:Cuts" by parse_boolean,
        /// Until when; absent for until its slot begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub until: Option<DateTime> = "bsp:Until",
    }
}

impl ShapeChanges {
    /// Nothing may change.
    pub const NONE: Self = Self {
        sizes: false,
        cuts: false,
        until: None,
    };
}

element! {
    /// Weights, each from 0 on; absent means 0.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    pub struct Preference {
        /// Of an early start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<f64> = "bsp:Start" by parse_not_negative,
        /// Of many nodes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<f64> = "bsp:Size" by parse_not_negative,
        /// Of a short duration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub duration: Option<f64> = "bsp:Duration" by parse_not_negative,
        /// Of a low price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub price: Option<f64> = "bsp:Price" by parse_not_negative,
    }
}

impl Readable for Moldability {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Moldability> {
        check.children(node, |children| {
            let (name, child) = children.one_of(BSP, &["Linear", "Table", "ConstantWork"])?;
            match name {
                "Linear" => children.check.children(child, |children| {
                    let intercept = children.required(BSP, "Intercept", read_simple(parse_positive));
                    let slope = children.required(BSP, "Slope", read_simple(parse_not_negative));
                    Some(Moldability::Linear {
                        intercept: intercept?,
                        slope: slope?,
                    })
                }),
                "Table" => children.check.children(child, |children| {
                    let entries = children.at_least_one(BSP, "Entry", read_entry_of_moldability);
                    Some(Moldability::Table(entries))
                }),
                _ => read_simple(parse_positive)(children.check, child).map(Moldability::ConstantWork),
            }
        })
    }
}

fn read_entry_of_moldability(check: &mut DocumentCheck, node: Node<'_>) -> Option<(u32, u32)> {
    check.children(node, |children| {
        let nodes = children.required(BSP, "Nodes", read_simple(parse_positive_integer));
        let duration = children.required(BSP, "Duration", read_simple(parse_positive_integer));
        nodes.zip(duration)
    })
}

impl WrittenValue for Moldability {
    fn write(&self, xml: &mut Xml) {
        match self {
            Moldability::Linear { intercept, slope } => {
                xml.start("bsp:Linear");
                xml.add("bsp:Intercept", intercept);
                xml.add("bsp:Slope", slope);
                xml.end();
            }
            Moldability::Table(entries) => {
                xml.start("bsp:Table");
                for (nodes, duration) in entries {
                    xml.start("bsp:Entry");
                    xml.add("bsp:Nodes", nodes);
                    xml.add("bsp:Duration", duration);
                    xml.end();
                }
                xml.end();
            }
            Moldability::ConstantWork(node_seconds) => xml.add("bsp:ConstantWork", node_seconds),
        }
    }
}

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
