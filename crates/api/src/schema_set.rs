//! The schemas in the description of the API: derived from the structs that are read and written, and given the form that all have in common.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Gives the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An example of an id.
pub(super) const ID: &str = "019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3";

/// The schemas of what is read and of what is written. They differ in what may be left out.
pub(super) struct SchemaSet {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl SchemaSet {
    /// Without a schema.
    pub(super) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self {
            read: settings.clone().for_deserialize().into_generator(),
            written: settings.for_serialize().into_generator(),
        }
    }

    /// The schema of something that is read.
    pub(super) fn read(&mut self, schema_of: SchemaOf) -> Value {
        tidied_schema(schema_of(&mut self.read).to_value())
    }

    /// The schema of something that is written.
    pub(super) fn written(&mut self, schema_of: SchemaOf) -> Value {
        tidied_schema(schema_of(&mut self.written).to_value())
    }

    /// The schemas that the others refer to, by their names.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        let read = self.read.take_definitions(true);
        let written = self.written.take_definitions(true);
        let mut all = Map::new();
        for (name, schema) in read.into_iter().chain(written) {
            let (name, schema) = (without_view(&name).to_owned(), tidied_schema(schema));
            debug_assert!(
                all.get(&name).is_none_or(|other| *other == schema),
                "{name} is two schemas"
            );
            all.insert(name, schema);
        }
        all
    }
}

/// The name of a schema: that of its struct without the word for what is shown.
fn without_view(name: &str) -> &str {
    name.strip_suffix("View").unwrap_or(name)
}

/// A schema as it is shown: with examples for types that every example is good for, without what only Rust knows, and closed, as
/// bodies are read and answers are tested.
fn tidied_schema(mut schema: Value) -> Value {
    tidy_schema(&mut schema);
    schema
}

fn tidy_schema(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::String(reference)) = members.get_mut("$ref") {
        *reference = without_view(reference).to_owned();
    }
    if let Some(Value::String(words)) = members.get_mut("description") {
        *words = words.replace('\n', " ");
    }
    members.remove("default");
    let kind = members.get("type").map(|kind| kind.get(0).unwrap_or(kind));
    let kind = kind.and_then(Value::as_str).unwrap_or_default();
    let format = members.get("format").and_then(Value::as_str);
    let example = match (kind, format) {
        ("boolean", _) => Some(json!(false)),
        ("string", Some("uuid")) => Some(json!(ID)),
        ("string", Some("date-time")) => Some(json!("2026-11-21T08:00:00Z")),
        _ => None,
    };
    let is_closed = members.contains_key("properties") && !members.contains_key("additionalProperties");
    if matches!(kind, "integer" | "number") {
        members.remove("format");
    }
    if let Some(example) = example.filter(|_| !members.contains_key("examples")) {
        members.insert("examples".to_owned(), json!([example]));
    }
    if is_closed {
        members.insert("additionalProperties".to_owned(), json!(false));
    }
    for part in ["items", "additionalProperties"] {
        members.get_mut(part).into_iter().for_each(tidy_schema);
    }
    for parts in ["anyOf", "oneOf", "allOf"] {
        let parts = members.get_mut(parts).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(tidy_schema);
    }
    if let Some(properties) = members.get_mut("properties") {
        members_of(properties).for_each(|(_, property)| tidy_schema(property));
    }
}

/// The members of an object.
pub(super) fn members_of(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flat_map(Map::iter_mut)
}

/// A schema of one type or of null as that of the type alone.
pub(super) fn schema_without_null(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.retain(|_, member| !member.is_null());
        if let Some(kind) = members.get("type").and_then(|kinds| kinds.get(0)).cloned() {
            members.insert("type".to_owned(), kind);
        }
    }
    schema
}
