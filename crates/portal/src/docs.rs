//! The description of the API as a page, made of the same value as `/openapi.json`. It is large, needs no key, and is the same for all:
//! so it is rendered once, and all answers share its text.

use std::sync::LazyLock;

use askama::Template;
use axum::body::Bytes;
use axum::response::{Html, IntoResponse};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{Answer, Frame};

/// The page, or why it cannot be rendered.
static PAGE: LazyLock<Result<Bytes, String>> = LazyLock::new(render_docs_page);

#[derive(Template)]
#[template(path = "portal/docs.html")]
struct Docs<'a> {
    frame: Frame,
    about: &'a str,
    groups: Vec<Group<'a>>,
    schemas: Vec<(&'a String, Vec<Row<'a>>)>,
}

/// The operations with a tag.
struct Group<'a> {
    tag: &'a str,
    about: &'a str,
    operations: Vec<Operation<'a>>,
}

struct Operation<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: &'a str,
    /// The parts of its path, query and headers.
    parameters: Vec<Row<'a>>,
    /// The body of its request, where it has one, and its answers by their statuses.
    bodies: Vec<Body<'a>>,
    curl: String,
}

/// A line of a table.
struct Row<'a> {
    name: String,
    kind: String,
    is_required: bool,
    description: &'a str,
}

struct Body<'a> {
    heading: String,
    description: &'a str,
    /// The media types, with what stands in each.
    kinds: Vec<(&'a String, String)>,
    /// The schema of the one in JSON, where it has a name.
    schema: Option<String>,
    /// An example, in JSON.
    example: Option<String>,
}

/// GET /docs: needs no session, because it only describes the service.
pub(super) async fn show_docs_page() -> Answer {
    let page = PAGE.clone();
    let page = page.map_err(|why| Failure::internal(format!("a page cannot be rendered: {why}")))?;
    Ok(Html(page).into_response())
}

fn render_docs_page() -> Result<Bytes, String> {
    let description = api::openapi_description();
    let tags = description["tags"].as_array().into_iter().flatten();
    let groups = tags.map(|tag| Group {
        tag: text(&tag["name"]),
        about: text(&tag["description"]),
        operations: docs_operations_of_tag(description, &tag["name"]),
    });
    let schemas = members(&description["components"]["schemas"]).map(|(name, schema)| {
        let mut rows = Vec::new();
        collect_docs_properties(schema, &mut rows);
        if rows.is_empty() {
            rows.push(docs_property_row(String::new(), schema, schema, false));
        }
        (name, rows)
    });
    let shown = Docs {
        frame: Frame::outside("API"),
        about: text(&description["info"]["description"]),
        groups: groups.collect(),
        schemas: schemas.collect(),
    };
    shown.render().map(Bytes::from).map_err(|why| why.to_string())
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn docs_property_row<'a>(name: String, value: &'a Value, schema: &'a Value, is_required: bool) -> Row<'a> {
    Row {
        name,
        kind: docs_kind_of_schema(schema),
        is_required,
        description: text(&value["description"]),
    }
}

fn docs_operations_of_tag<'a>(description: &'a Value, tag: &Value) -> Vec<Operation<'a>> {
    let mut operations = Vec::new();
    for (path, methods) in members(&description["paths"]) {
        for (method, is) in members(methods).filter(|(_, is)| is["tags"][0] == *tag) {
            let given = is["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let parameters = given.iter().map(|given| {
                let name = format!("{} ({})", text(&given["name"]), text(&given["in"]));
                docs_property_row(name, given, &given["schema"], given["required"] == true)
            });
            let request = is.get("requestBody").map(|body| ("Request".to_owned(), body));
            let answers = members(&is["responses"]).map(|(status, body)| match status.as_str() {
                "default" => (
                    "Errors".to_owned(),
                    &description["components"]["responses"]["Problem"],
                ),
                status => (format!("Answer {status}"), body),
            });
            operations.push(Operation {
                id: text(&is["operationId"]),
                method: method.to_uppercase(),
                path,
                summary: text(&is["summary"]),
                parameters: parameters.collect(),
                bodies: request.into_iter().chain(answers).map(docs_body).collect(),
                curl: docs_curl_line(method, path, is, given),
            });
        }
    }
    operations
}

fn docs_body((heading, is): (String, &Value)) -> Body<'_> {
    let kinds = members(&is["content"]).map(|(kind, member)| (kind, docs_kind_of_schema(&member["schema"])));
    let named = ["application/json", "application/problem+json"].map(|kind| &is["content"][kind]["schema"]);
    let named = named.into_iter().find(|schema| schema["$ref"].is_string());
    let example = &is["content"]["application/json"]["example"];
    Body {
        heading,
        description: text(&is["description"]),
        kinds: kinds.collect(),
        schema: named.map(docs_kind_of_schema),
        example: (!example.is_null()).then(|| format!("{example:#}")),
    }
}

/// A call with the example, as a line for a shell, which has the address of the service in the variable `SERVER`.
fn docs_curl_line(method: &str, path: &str, is: &Value, parameters: &[Value]) -> String {
    let mut url = format!("$SERVER{path}");
    for parameter in parameters.iter().filter(|parameter| parameter["in"] == "path") {
        let name = text(&parameter["name"]);
        let example = parameter["schema"]["examples"][0].as_str().unwrap_or(name);
        url = url.replace(&format!("{{{name}}}"), example);
    }
    let mut call = format!("curl -X {} \"{url}\"", method.to_uppercase());
    if is.get("security").is_none() {
        call += " -H \"Authorization: Bearer $KEY\" -H 'Accept: application/json'";
    }
    let content = &is["requestBody"]["content"];
    let example = &content["application/json"]["example"];
    if !example.is_null() {
        let example = example.to_string().replace('\'', "'\\''");
        call += &format!(" -H 'Content-Type: application/json' -d '{example}'");
    } else if content.is_object() {
        call += " --data-binary @FILE";
    }
    call
}

/// The properties in a schema, those of its unnamed parts too.
fn collect_docs_properties<'a>(schema: &'a Value, rows: &mut Vec<Row<'a>>) {
    for (name, member) in members(&schema["properties"]) {
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|all| all.iter().any(|required| required == name));
        rows.push(docs_property_row(name.clone(), member, member, is_required));
        collect_docs_properties(member, rows);
    }
    let parts = schema["anyOf"].as_array().into_iter().flatten();
    for part in parts.chain(schema.get("items")) {
        collect_docs_properties(part, rows);
    }
}

/// The type of a schema, in words.
fn docs_kind_of_schema(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(parts) = schema["anyOf"].as_array() {
        return parts
            .iter()
            .map(docs_kind_of_schema)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(text).collect::<Vec<_>>().join(", ");
    }
    if let Some(items) = schema.get("items") {
        return format!("list of {}", docs_kind_of_schema(items));
    }
    if schema.get("xml").is_some() {
        return text(&schema["description"]).to_owned();
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        kind => schema["const"].as_str().unwrap_or(text(kind)).to_owned(),
    };
    let bounds = [("from", "minimum"), ("to", "maximum"), ("at most", "maxLength")];
    let bounds = bounds
        .iter()
        .filter_map(|(word, bound)| Some(format!(" {word} {}", schema.get(bound)?)));
    let format = schema["format"].as_str().map(|format| format!(" ({format})"));
    kinds + &format.unwrap_or_default() + &bounds.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_answers_share_the_text_of_the_page() {
        let mut texts = Vec::new();
        for _ in 0..2 {
            let answer = show_docs_page()
                .await
                .unwrap_or_else(|_| panic!("it is rendered"));
            let text = axum::body::to_bytes(answer.into_body(), usize::MAX)
                .await
                .unwrap();
            assert!(text.starts_with(b"<!doctype html>"));
            texts.push(text);
        }
        assert_eq!(texts[0].as_ptr(), texts[1].as_ptr());
    }
}
