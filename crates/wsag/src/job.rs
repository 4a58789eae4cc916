//! The job: the part of JSDL 1.0 (GFD.56) that the service honours.
//!
//! JSDL can ask for much that a provider of catalogue applications must not grant (an executable, an
//! environment, a user name) or does not offer (file systems, candidate hosts). Such an element is refused by its
//! path: ignoring it would promise something else than was asked. An element that asks for nothing (a project, an
//! annotation), or for what every node gives (Linux, nodes of its own), is read and needs no more. Attributes of JSDL
//! are unqualified.

mod elements;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub use crate::job::elements::ARCHITECTURES;
use crate::job::elements::read_honoured_children;
pub(crate) use crate::job::elements::{
    read_architecture_element, read_identification, read_job_description, read_operating_system, read_place,
};
use crate::xml::datatypes::{Double, parse_non_negative_integer};
use crate::xml::ns::{BSP, JSDL};
use crate::xml::{NamedValue, element, named_values};

/// `jsdl:JobDefinition`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobDefinition {
    /// `JobIdentification/JobName`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// `JobIdentification/Description`, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The application to run; without it nodes are reserved and nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// How many nodes, and the conditions on them.
    pub resources: Resources,
    /// Files to move before and after, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<DataStaging>,
}

element! {
    /// `jsdl:Application`.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Application by read_honoured_children {
        /// Name in the provider's catalogue.
        pub name: String = "jsdl:ApplicationName",
        /// Version in the provider's catalogue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String> = "jsdl:ApplicationVersion",
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub description: Option<String> = "jsdl:Description",
        /// `jsdl-posix:POSIXApplication`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub posix: Option<PosixApplication> = "jsdl-posix:POSIXApplication",
    }
}

element! {
    /// `jsdl-posix:POSIXApplication`, without the parts that the provider decides.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct PosixApplication by read_honoured_children {
        /// Arguments, one entry of the argument vector each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub arguments: Vec<String> = "jsdl-posix:Argument",
        /// File to read as standard input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input: Option<String> = "jsdl-posix:Input",
        /// File to write standard output to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output: Option<String> = "jsdl-posix:Output",
        /// File to write standard error to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<String> = "jsdl-posix:Error",
        /// Most seconds that it may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub wall_time_limit: Option<u64> = "jsdl-posix:WallTimeLimit" by parse_non_negative_integer,
    }
}

/// `jsdl:Resources`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// `CPUArchitecture/CPUArchitectureName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<String>,
    /// Ranges that a resource or its nodes must lie in, in the order of JSDL, each kind at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// `TotalResourceCount`: nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<RangeValue>,
}

/// One range that a resource must satisfy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The measured attribute.
    pub kind: FilterKind,
    /// The range in which it must lie.
    pub range: RangeValue,
}

named_values! {
    /// The attribute that a [`Filter`] measures, in the order of JSDL's schema; those without a word in JSDL come last.
    #[derive(PartialOrd, Ord)]
    pub enum FilterKind {
        /// Hertz of a processor.
        IndividualCpuSpeed = "IndividualCPUSpeed",
        /// Processors of a node.
        IndividualCpuCount = "IndividualCPUCount",
        /// Bits per second of a node.
        IndividualNetworkBandwidth = "IndividualNetworkBandwidth",
        /// Bytes of memory of a node.
        IndividualPhysicalMemory = "IndividualPhysicalMemory",
        /// Bytes of virtual memory of a node.
        IndividualVirtualMemory = "IndividualVirtualMemory",
        /// Bytes of disk of a node.
        IndividualDiskSpace = "IndividualDiskSpace",
        /// Processors of all nodes together.
        TotalCpuCount = "TotalCPUCount",
        /// Bytes of memory of all nodes together.
        TotalPhysicalMemory = "TotalPhysicalMemory",
        /// Bytes of virtual memory of all nodes together.
        TotalVirtualMemory = "TotalVirtualMemory",
        /// Bytes of disk of all nodes together.
        TotalDiskSpace = "TotalDiskSpace",
        /// GPUs of a node.
        IndividualGpuCount = "IndividualGPUCount",
    }
}

impl FilterKind {
    /// The name of its element, with the usual prefix.
    pub fn element(self) -> String {
        let prefix = if self.namespace() == JSDL { "jsdl" } else { "bsp" };
        format!("{prefix}:{}", self.name())
    }

    /// The namespace of its element: ours, where JSDL has no word for the attribute.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            FilterKind::IndividualGpuCount => BSP,
            _ => JSDL,
        }
    }
}

element! {
    /// `jsdl:RangeValue_Type`: the value must meet any one of its parts.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct RangeValue {
        /// `UpperBoundedRange`: everything up to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub upper: Option<Bound> = "jsdl:UpperBoundedRange",
        /// `LowerBoundedRange`: everything from it on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lower: Option<Bound> = "jsdl:LowerBoundedRange",
        /// `Exact`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub exact: Vec<Exact> = "jsdl:Exact",
        /// `Range`: from the first to the second.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub ranges: Vec<(Bound, Bound)> = "jsdl:Range",
    }
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Double, bool)", from = "(Double, bool)")]
pub struct Bound {
    /// Where it is.
    pub value: f64,
    /// Whether the end itself is outside.
    pub exclusive: bool,
}

/// `jsdl:Exact`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Double, Option<Double>)", from = "(Double, Option<Double>)")]
pub struct Exact {
    /// The value.
    pub value: f64,
    /// How far off is still the same; 0 if absent.
    pub epsilon: Option<f64>,
}

impl From<Bound> for (Double, bool) {
    fn from(bound: Bound) -> (Double, bool) {
        (bound.value.into(), bound.exclusive)
    }
}

impl From<(Double, bool)> for Bound {
    fn from((value, exclusive): (Double, bool)) -> Bound {
        Bound {
            value: value.into(),
            exclusive,
        }
    }
}

impl From<Exact> for (Double, Option<Double>) {
    fn from(exact: Exact) -> (Double, Option<Double>) {
        (exact.value.into(), exact.epsilon.map(Double::from))
    }
}

impl From<(Double, Option<Double>)> for Exact {
    fn from((value, epsilon): (Double, Option<Double>)) -> Exact {
        Exact {
            value: value.into(),
            epsilon: epsilon.map(f64::from),
        }
    }
}

impl RangeValue {
    /// Exactly one value.
    pub fn exactly(value: f64) -> RangeValue {
        RangeValue {
            exact: vec![Exact { value, epsilon: None }],
            ..RangeValue::default()
        }
    }

    /// Everything from one value to another, ends included.
    pub fn between(lower: f64, upper: f64) -> RangeValue {
        let bound = |value| Bound {
            value,
            exclusive: false,
        };
        RangeValue {
            ranges: vec![(bound(lower), bound(upper))],
            ..RangeValue::default()
        }
    }

    /// Everything from one value on.
    pub fn at_least(value: f64) -> RangeValue {
        let exclusive = false;
        RangeValue {
            lower: Some(Bound { value, exclusive }),
            ..RangeValue::default()
        }
    }

    /// Whether a value meets it. A range without parts asks for nothing.
    pub fn contains(&self, value: f64) -> bool {
        let lies = |side: Ordering, bound: &Bound| {
            let order = value.partial_cmp(&bound.value);
            order == Some(side) || (order == Some(Ordering::Equal) && !bound.exclusive)
        };
        let below = |bound| lies(Ordering::Less, bound);
        let above = |bound| lies(Ordering::Greater, bound);
        *self == RangeValue::default()
            || self.upper.as_ref().is_some_and(below)
            || self.lower.as_ref().is_some_and(above)
            || self
                .exact
                .iter()
                .any(|exact| (value - exact.value).abs() <= exact.epsilon.unwrap_or(0.0))
            || self
                .ranges
                .iter()
                .any(|(lower, upper)| above(lower) && below(upper))
    }

    /// The whole numbers it allows, as least and greatest; the greatest is absent where nothing bounds it. Only where it is exact
    /// numbers or one range: anything else is no size of a request. [`RangeValue::listed`] tells which of the numbers between
    /// least and greatest a list allows.
    ///
    /// # Errors
    /// The error is a sentence with the expected value.
    pub fn whole_numbers(&self) -> Result<(u32, Option<u32>), &'static str> {
        const EXPECTED: &str =
            "Exact, once or several times, or one Range, LowerBoundedRange or UpperBoundedRange is expected";
        let (least, greatest) = match (&self.upper, &self.lower, &self.exact[..], &self.ranges[..]) {
            (None, None, [_, ..], []) => {
                let listed = self
                    .listed()
                    .ok_or("Exact must be a whole number from 1 to 4294967295")?;
                let least = listed.iter().min().ok_or(EXPECTED)?;
                return Ok((*least, listed.iter().max().copied()));
            }
            (None, None, [], [(lower, upper)]) => (Some(lower), Some(upper)),
            (Some(upper), None, [], []) => (None, Some(upper)),
            (None, Some(lower), [], []) => (Some(lower), None),
            _ => return Err(EXPECTED),
        };
        let least = match least {
            Some(bound) if bound.exclusive => whole_number(bound.value.floor() + 1.0),
            Some(bound) => whole_number(bound.value.ceil().max(1.0)),
            None => Some(1),
        };
        let greatest = greatest.map(|bound| {
            whole_number(if bound.exclusive {
                bound.value.ceil() - 1.0
            } else {
                bound.value.floor()
            })
        });
        match (least, greatest) {
            (Some(least), None) => Ok((least, None)),
            (Some(least), Some(Some(greatest))) if least <= greatest => Ok((least, Some(greatest))),
            _ => Err("the range holds no whole number from 1 to 4294967295"),
        }
    }

    /// The whole numbers that it lists, where it is nothing but a list of such.
    pub fn listed(&self) -> Option<Vec<u32>> {
        let only = self.upper.is_none() && self.lower.is_none() && self.ranges.is_empty();
        let listed: Option<Vec<u32>> = self.exact.iter().map(|exact| whole_number(exact.value)).collect();
        listed.filter(|listed| only && !listed.is_empty())
    }
}

/// A whole number from 1 to `u32::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn whole_number(value: f64) -> Option<u32> {
    (value >= 1.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value as u32)
}

/// `jsdl:DataStaging`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataStaging {
    /// Name of the file in the job's folder.
    pub file_name: String,
    /// The action where the file exists.
    pub creation_flag: CreationFlag,
    /// Whether it is removed when the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// `Source/URI`: where it comes from. Never fetched by this crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `Target/URI`: where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `bsp:Bytes`: how many bytes it has, for estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

named_values! {
    /// `jsdl:CreationFlag`.
    pub enum CreationFlag {
        /// Replace it.
        Overwrite = "overwrite",
        /// Leave it.
        DontOverwrite = "dontOverwrite",
        /// Write at its end.
        Append = "append",
    }
}
