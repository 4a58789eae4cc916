//! The description of the API in JSON, OpenAPI 3.1, at `/openapi.json`. It is made of what stands beside the routes, and of the
//! structs that are read and written there. Tests hold real answers and all examples to its schemas.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::error::Problem;
use super::operation::{Operation, describe_xml_document};
use super::routes::Routes;
use super::schema_set::{SchemaSet, members_of};

/// Where the description is.
const PATH: &str = "/openapi.json";

/// The tags of operations, in the order of the page about them.
const TAGS: [(&str, &str); 8] = [
    ("discovery", "What can be asked for, and what it costs"),
    (
        "negotiations",
        "Requests for capacity that are answered with offers",
    ),
    ("agreements", "What has been promised"),
    ("files", "The files that jobs read and write"),
    ("call-backs", "Where a party has its events told"),
    ("accounts", "What is owed"),
    ("operation", "For the operators of the service"),
    ("service", "The service itself"),
];

const ABOUT: &str = "Operations on templates, agreements and negotiations also speak WS-Agreement 1.0 and WS-Agreement Negotiation \
                     1.0 as application/xml, by Content-Type and Accept; their schemas are in `schemas/`. This describes the flat \
                     JSON, and names the document that stands in XML for each body. A body has at most 256 KiB, 2,000 values and \
                     32 levels. Errors are problem details (RFC 9457). Every answer bears X-Request-Id.";

const PROBLEM: &str = "What went wrong: 400 malformed, 401 no key, 403 not allowed, 404 not found or not yours, 406 and 415 no such \
                       representation, 409 the plan or the state refuses, 410 expired, 412 changed meanwhile, 413 too large, 414 \
                       a longer path and query than any, 422 never acceptable (with a pointer to each mistake), 503 busy (with \
                       Retry-After).";

const LINK: &str =
    "The address of the next page (RFC 8288), absent on the last one: `<ADDRESS>; rel=\"next\"`.";

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| describe_api(&super::api_routes().operations));

static TEXT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", *DESCRIPTION));

/// The route of the description.
pub(super) fn openapi_routes() -> Routes {
    Routes::default().get(
        PATH,
        get_openapi,
        Operation::new("getDescription", "service", "This description")
            .open()
            .answers::<Map<String, Value>>(),
    )
}

/// The whole description.
pub fn openapi_description() -> &'static Value {
    &DESCRIPTION
}

/// GET /openapi.json: needs no key, because it only describes the service.
async fn get_openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// The description of an API with these operations, each with its path and its method.
fn describe_api(operations: &[(&str, &str, Operation)]) -> Value {
    let mut schemas = SchemaSet::new();
    let mut paths = Map::new();
    for (path, method, operation) in operations {
        let described = operation.describe(path, method, &mut schemas);
        let methods = paths.entry(*path).or_insert_with(|| json!({}));
        methods[*method] = described;
    }
    let problem = schemas.written(SchemaGenerator::subschema_for::<Problem<'_>>);
    let schemas = schemas.finish();
    for methods in paths.values_mut() {
        for (_, operation) in members_of(methods) {
            if let Some(body) = operation.get_mut("requestBody") {
                add_example(body, &schemas);
            }
            for (_, answer) in members_of(&mut operation["responses"]) {
                add_example(answer, &schemas);
            }
        }
    }
    let tags = TAGS.map(|(name, about)| json!({ "name": name, "description": about }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bespeak",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": env!("CARGO_PKG_DESCRIPTION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "externalDocs": { "description": "This description as a page", "url": "/docs" },
        "tags": tags,
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "headers": { "Link": { "description": LINK, "schema": { "type": "string" } } },
            "responses": { "Problem": { "description": PROBLEM, "content": {
                "application/problem+json": { "schema": problem },
                "application/xml": { "schema": describe_xml_document("wsag:ContinuingFault") },
            } } },
            "schemas": schemas,
        },
    })
}

/// Gives the JSON of a body its example.
fn add_example(body: &mut Value, schemas: &Map<String, Value>) {
    let Some(json) = body
        .get_mut("content")
        .and_then(|content| content.get_mut("application/json"))
    else {
        return;
    };
    if let Some(example) = example_of_schema(&json["schema"], schemas) {
        json["example"] = example;
    }
}

/// A value that a schema allows: its example, or one made of the examples of its parts.
fn example_of_schema(schema: &Value, schemas: &Map<String, Value>) -> Option<Value> {
    let own = schema["examples"]
        .get(0)
        .or(schema.get("const"))
        .or(schema["enum"].get(0));
    if let Some(own) = own {
        return Some(own.clone());
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return example_of_schema(schemas.get(reference.rsplit('/').next()?)?, schemas);
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
