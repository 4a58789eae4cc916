//! The applications of the catalogue, as requesters see them.

use domain::catalogue::{Application, ArgumentKind, ArgumentSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::Service;

/// The applications of the catalogue, in the provider's order.
pub fn list_applications(service: &Service) -> ApplicationsView {
    let catalogue = service.catalogue();
    ApplicationsView {
        applications: catalogue.applications().iter().map(ApplicationView::of).collect(),
    }
}

/// The applications that offers may name.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ApplicationsView {
    /// The applications, in the provider's order.
    pub applications: Vec<ApplicationView>,
}

/// An application.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationView {
    /// The name that an offer gives.
    #[schemars(example = &"sleep")]
    pub name: String,
    /// The version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"1.0")]
    pub version: Option<String>,
    /// Its purpose.
    #[schemars(example = &"Waits, and does nothing")]
    pub description: String,
    /// The arguments, in their order; all are required.
    pub arguments: Vec<ArgumentView>,
    /// Whether it can save its work and go on with it, so that its work may be done in pieces.
    pub saves_work: bool,
}

/// An argument of an application.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentView {
    /// The name.
    #[schemars(example = &"seconds")]
    pub name: String,
    /// `integer`, `number`, `text`, `choice` or `file`, which is the name of an uploaded file.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["integer", "number", "text", "choice", "file"]))]
    pub kind: String,
    /// The least value, of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0.0)]
    pub minimum: Option<Value>,
    /// The greatest value, of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 604_800.0)]
    pub maximum: Option<Value>,
    /// Characters at most, of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 64)]
    pub max_length: Option<usize>,
    /// The characters that it may hold, as in `a-z0-9_`, of a text that may not hold all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"a-z0-9")]
    pub characters: Option<String>,
    /// The values that there are, of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["fast", "exact"])]
    pub values: Vec<String>,
    /// The value that is expected, in words.
    #[schemars(example = &"a whole number from 0 to 604800")]
    pub expected: String,
}

impl ApplicationView {
    pub(super) fn of(application: &Application) -> Self {
        Self {
            name: application.name.clone(),
            version: application.version.clone(),
            description: application.description.clone(),
            arguments: application.arguments.iter().map(ArgumentView::of).collect(),
            saves_work: application.checkpoint.is_some(),
        }
    }
}

impl ArgumentView {
    fn of(spec: &ArgumentSpec) -> Self {
        let view = |kind: &str| Self {
            name: spec.name.clone(),
            kind: kind.to_owned(),
            expected: spec.to_string(),
            ..Self::default()
        };
        let decimal = |number: f64| Number::from_f64(number).map(Value::Number);
        match &spec.kind {
            ArgumentKind::Integer(bounds) => Self {
                minimum: Some((*bounds.start()).into()),
                maximum: Some((*bounds.end()).into()),
                ..view("integer")
            },
            ArgumentKind::Number(bounds) => Self {
                minimum: decimal(*bounds.start()),
                maximum: decimal(*bounds.end()),
                ..view("number")
            },
            ArgumentKind::Text {
                max_length,
                characters,
            } => Self {
                max_length: Some(*max_length),
                characters: characters.as_ref().map(ToString::to_string),
                ..view("text")
            },
            ArgumentKind::Choice(values) => Self {
                values: values.clone(),
                ..view("choice")
            },
            ArgumentKind::File => view("file"),
        }
    }
}
