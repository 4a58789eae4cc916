//! Schemas of what views have as texts, as words of an enumeration or as values of another crate. The schemas of all other views are
//! derived from their structs.

use std::borrow::Cow;

use domain::agreement;
use domain::resources::NUMBERS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// An instant, as a dateTime in UTC.
pub enum Instant {}

impl JsonSchema for Instant {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// Types of which only the schema is there: the words of enumerations.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident: $enumeration:ty;)*) => {$(
        $(#[$about])*
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": <$enumeration>::ALL.map(<$enumeration>::word) })
            }
        }
    )*};
}

words! {
    /// The state of an agreement.
    AgreementState: agreement::AgreementState;
    /// The state of the service of an agreement.
    ServiceState: agreement::ServiceState;
    /// The state of a guarantee.
    GuaranteeState: agreement::GuaranteeState;
    /// The state of an offer in a negotiation.
    OfferState: agreement::OfferState;
    /// The state of a node.
    NodeState: domain::resources::NodeState;
    /// The reason of a refusal.
    RefusalReason: scheduler::Reason;
}

/// How many nodes of a resource are in each state.
pub enum NodeCountsSchema {}

impl JsonSchema for NodeCountsSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NodeCounts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let states = domain::resources::NodeState::ALL;
        let properties = states.map(|state| {
            let schema = json!({
                "type": "integer",
                "format": "uint32",
                "description": format!("How many nodes are {state}: {}.", state.meaning()),
                "minimum": 0,
                "examples": [0],
            });
            (state.word().to_owned(), schema)
        });
        let properties: Map<String, Value> = properties.into_iter().collect();
        json_schema!({
            "type": "object",
            "properties": properties,
            "required": states.map(domain::resources::NodeState::word),
        })
    }
}

/// What was taken of a compositor of an offer.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the schema of a struct of the domain")]
pub struct Choice {
    /// The path of the compositor.
    #[schemars(example = &"/wsag:Terms/wsag:All/wsag:ExactlyOne")]
    path: String,
    /// The members that hold, counted from 1.
    #[schemars(inner(range(min = 1)), example = [2])]
    members: Vec<u32>,
}

/// Attributes of a node, by the names that the configuration has for them.
pub enum ResourceAttributesSchema {}

impl JsonSchema for ResourceAttributesSchema {
    fn schema_name() -> Cow<'static, str> {
        "ResourceAttributes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let numbers = NUMBERS
            .iter()
            .map(|number| (number.name, number.description, number.example, 1, i64::MAX));
        let mut properties = schema_of_view_numbers(numbers);
        let architecture = json!({
            "type": ["string", "null"],
            "description": "The architecture of the processors.",
            "maxLength": domain::resources::ARCHITECTURE_LENGTH_MAX,
            "examples": ["x86_64"],
        });
        properties.insert(domain::resources::ARCHITECTURE.to_owned(), architecture);
        json_schema!({ "type": "object", "properties": properties })
    }
}

/// The most MiB that a limit of jobs may say.
const MIB_MAX: i64 = 1 << 30;
/// The most of anything that is counted that a limit of jobs may say.
const COUNT_MAX: i64 = 1 << 22;

/// Limits of the jobs of a resource, by the names that the configuration has for them.
pub enum ResourceLimitsSchema {}

impl JsonSchema for ResourceLimitsSchema {
    fn schema_name() -> Cow<'static, str> {
        "ResourceLimits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let limits = [
            (
                "files_mib",
                "How much the files of a job may take, in MiB.",
                1_024,
                1,
                MIB_MAX,
            ),
            (
                "memory_mib",
                "How much memory a job may have, in MiB.",
                4_096,
                1,
                MIB_MAX,
            ),
            (
                "open_files",
                "How many files a job may have open.",
                1_024,
                16,
                COUNT_MAX,
            ),
            (
                "output_mib",
                "How much a job may write to stdout and stderr, in MiB.",
                64,
                1,
                MIB_MAX,
            ),
            (
                "processes",
                "How many processes a job may have.",
                256,
                1,
                COUNT_MAX,
            ),
        ];
        json_schema!({ "type": "object", "properties": schema_of_view_numbers(limits) })
    }
}

/// Members that are whole numbers and may be left out: the name of each, its description, an example, its least and its greatest
/// value.
fn schema_of_view_numbers<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a str, i64, i64, i64)>,
) -> Map<String, Value> {
    let members = members
        .into_iter()
        .map(|(name, words, example, least, greatest)| {
            let schema = json!({
                "type": ["integer", "null"],
                "description": words,
                "minimum": least,
                "maximum": greatest,
                "examples": [example],
            });
            (name.to_owned(), schema)
        });
    members.collect()
}
