//! The description of the API in JSON, OpenAPI 3.1, at `/openapi.json`: the document `schemas/openapi.json` with the version of
//! the service and, from `schemas/openapi-words.toml`, the words about each property and the names of the XML documents. Tests hold
//! its paths to the router, and real answers and all examples to its schemas.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// The description, with no real version.
const DOCUMENT: &str = include_str!("../../schemas/openapi.json");

/// What it leaves out.
const WORDS: &str = include_str!("../../schemas/openapi-words.toml");

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    // A test reads it.
    let mut description: Value = serde_json::from_str(DOCUMENT).expect("the description is JSON");
    // A test reads them.
    let words: Value = toml::from_str(WORDS).expect("the words are TOML");
    description["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    for (name, schema) in members_of(&mut description["components"]["schemas"]) {
        describe_properties(name, schema, &words["properties"]);
    }
    let schemas = description["components"]["schemas"].clone();
    for (_, path) in members_of(&mut description["paths"]) {
        for (_, operation) in members_of(path).filter(|(_, members_of)| members_of.is_object()) {
            let names = &words["documents"][operation["operationId"].as_str().unwrap_or_default()];
            if let Some(body) = operation.get_mut("requestBody") {
                complete_bodies(body, &names[0], &schemas, &words["namespaces"]);
            }
            for (_, response) in members_of(&mut operation["responses"]) {
                complete_bodies(response, &names[1], &schemas, &words["namespaces"]);
            }
        }
    }
    description
});

static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", *DESCRIPTION));

/// The whole description.
pub(crate) fn openapi_description() -> &'static Value {
    &DESCRIPTION
}

/// GET /openapi.json: needs no key, because it only describes the service.
pub(super) async fn get_openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

fn members_of(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flat_map(Map::iter_mut)
}

/// Gives each property in a part of the schema `name` its description, its example and its bounds.
fn describe_properties(name: &str, part: &mut Value, words: &Value) {
    for (property, schema) in part.get_mut("properties").into_iter().flat_map(members_of) {
        let own = words.get(format!("{name}.{property}"));
        let Some([description, more @ ..]) = own
            .or(words.get(property))
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        else {
            continue;
        };
        schema["description"] = description.clone();
        if let Some(example) = more.first() {
            schema["examples"] = json!([example]);
        }
        for (bound, value) in more.get(1).and_then(Value::as_object).into_iter().flatten() {
            schema[bound] = value.clone();
        }
    }
    match part {
        Value::Array(parts) => parts
            .iter_mut()
            .for_each(|part| describe_properties(name, part, words)),
        _ => members_of(part).for_each(|(_, part)| describe_properties(name, part, words)),
    }
}

/// Gives the JSON of a body its example, and names its XML document.
fn complete_bodies(body: &mut Value, document: &Value, schemas: &Value, namespaces: &Value) {
    let Some(content) = body.get_mut("content") else {
        return;
    };
    let Some(json) = content.get_mut("application/json") else {
        return;
    };
    if let Some(example) = example_of_schema(&json["schema"], schemas) {
        json["example"] = example;
    }
    if let Some((prefix, name)) = document.as_str().and_then(|name| name.split_once(':')) {
        content["application/xml"] = json!({"schema": {
            "description": format!("{prefix}:{name} of schemas/{prefix}.xsd"),
            "xml": {"name": name, "prefix": prefix, "namespace": namespaces[prefix]},
        }});
    }
}

/// A value that a schema allows: its example, or one made of the examples of its parts.
fn example_of_schema(schema: &Value, schemas: &Value) -> Option<Value> {
    let own = schema["examples"]
        .get(0)
        .or(schema.get("const"))
        .or(schema["enum"].get(0));
    if let Some(own) = own {
        return Some(own.clone());
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return example_of_schema(&schemas[reference.rsplit('/').next()?], schemas);
    }
    if let Some(items) = schema.get("items") {
        return example_of_schema(items, schemas).map(|item| json!([item]));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let members = properties
            .iter()
            .filter_map(|(name, property)| Some((name.clone(), example_of_schema(property, schemas)?)));
        return Some(Value::Object(members.collect()));
    }
    example_of_schema(schema["anyOf"].get(0)?, schemas)
}
