//! The description of the API in JSON, OpenAPI 3.1, at `/openapi.json`. The operations are a table here, the values are
//! in [`schemas`]; a test holds the table to the router, real answers to the schemas, and the whole to
//! `schemas/openapi.json`.

mod operations;
mod schemas;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use operations::{OPERATIONS, Operation};

/// GET /openapi.json: needs no key, because it only describes the service.
pub(super) async fn show() -> Response {
    let text = format!("{:#}\n", description());
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The whole description.
fn description() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let item = paths
            .entry(operation.path)
            .or_insert_with(|| json!({ "parameters": path_parameters(operation.path) }));
        item[operation.method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bespeak",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Negotiated, guaranteed reservations of computing capacity in advance",
            "description": "Every operation also speaks WS-Agreement 1.0 and WS-Agreement Negotiation 1.0 as \
                application/xml, by Content-Type and Accept; their schemas are in `schemas/`. This describes the flat \
                JSON. Errors are problem details (RFC 9457). Every answer bears X-Request-Id.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas::all(),
            "responses": {
                "Problem": {
                    "description": "What went wrong: 400 malformed, 401 no key, 403 not allowed, 404 not found or not yours, \
                        406 and 415 no such representation, 409 the plan or the state refuses, 410 expired, 412 \
                        changed meanwhile, 413 too large, 422 never acceptable (with a pointer to each mistake), 503 \
                        busy (with Retry-After).",
                    "content": { "application/problem+json": { "schema": schemas::reference("Problem") } },
                },
            },
        },
    })
}

/// An operation in the words of OpenAPI.
fn described(operation: &Operation) -> Value {
    let mut answers = Map::new();
    if !operation.answer.is_empty() {
        answers.insert("200".to_owned(), answer(200, operation.answer));
    }
    for (status, schema) in operation.others {
        answers.insert(status.to_string(), answer(*status, schema));
    }
    answers.insert(
        "default".to_owned(),
        json!({ "$ref": "#/components/responses/Problem" }),
    );
    let mut described = json!({ "summary": operation.summary, "responses": answers });
    let mut parameters: Vec<Value> = operation
        .query
        .iter()
        .map(|(name, kind, description)| {
            json!({ "name": name, "in": "query", "description": description, "schema": schemas::simple(kind) })
        })
        .collect();
    if operation.method == "post" {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "The same request under the same key has one effect and gets the same answer for a day.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }));
    }
    if operation.path == "/agreements/{id}/terminate" {
        parameters.push(json!({
            "name": "If-Match", "in": "header",
            "description": "The entity tag that the agreement must still have; 412 otherwise.",
            "schema": { "type": "string" },
        }));
    }
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(schema) = operation.request {
        described["requestBody"] = match schema {
            "bytes" => json!({ "required": true, "content": { "application/octet-stream": {} } }),
            schema => json!({ "content": { "application/json": { "schema": schemas::reference(schema) } } }),
        };
    }
    if operation.is_open {
        described["security"] = json!([]);
    }
    described
}

fn answer(status: u16, schema: &str) -> Value {
    let description = match status {
        201 => "Made; Location says where.",
        202 => "Taken, and decided later; Location says where.",
        204 => "Done.",
        _ => "As asked.",
    };
    let content = match schema {
        "" => return json!({ "description": description }),
        "text" => json!({ "text/plain": { "schema": { "type": "string" } } }),
        "bytes" => json!({ "application/octet-stream": {} }),
        "openapi" => json!({ "application/json": { "schema": { "type": "object" } } }),
        schema => json!({ "application/json": { "schema": schemas::reference(schema) } }),
    };
    json!({ "description": description, "content": content })
}

/// The parameters that stand in a path.
fn path_parameters(path: &str) -> Vec<Value> {
    path.split(['{', '}'])
        .skip(1)
        .step_by(2)
        .map(|name| {
            let is_id = name == "id" && !path.starts_with("/templates");
            let kind = if is_id { "uuid" } else { "text" };
            json!({ "name": name, "in": "path", "required": true, "schema": schemas::simple(kind) })
        })
        .collect()
}
