//! The description of an operation, which stands beside its handler: what it is for, what it takes, and what it answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wsag::ns::{BSP, WSAG, WSAG_NEG};

use super::query::ChangeParameters;
use super::schema_set::{ID, SchemaOf, SchemaSet, schema_without_null};

/// An operation: one method of one path.
pub(super) struct Operation {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    is_for_operators: bool,
    is_open: bool,
    query: Option<SchemaOf>,
    /// The texts in the path that have a meaning of their own: the name of each, what it is, and an example.
    path: Vec<(&'static str, &'static str, &'static str)>,
    headers: Vec<Value>,
    body: Option<(Content, bool)>,
    /// The answers with success: the status, what it means, the body, and whether the next page is linked.
    answers: Vec<(u16, &'static str, Content, bool)>,
    /// The documents that stand in XML for the body and for the answer.
    xml: (&'static str, &'static str),
}

/// What a body consists of.
#[derive(Clone, Copy)]
enum Content {
    Nothing,
    Bytes,
    Text,
    /// JSON that the service reads.
    Read(SchemaOf),
    /// JSON that the service writes.
    Written(SchemaOf),
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What 200 means where nothing else is said.
const AS_ASKED: &str = "As asked.";

impl Operation {
    /// An operation by its name for programs, under a tag, and in a line for people.
    pub(super) fn new(id: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            is_for_operators: false,
            is_open: false,
            query: None,
            path: Vec::new(),
            headers: Vec::new(),
            body: None,
            answers: Vec::new(),
            xml: ("", ""),
        }
    }

    /// A change that only operators make, and can try without making it.
    pub(super) fn of_change(id: &'static str, summary: &'static str) -> Self {
        Self::new(id, "operation", summary)
            .for_operators()
            .query::<ChangeParameters>()
    }

    /// Only operators may do this, as the handler checks.
    pub(super) fn for_operators(mut self) -> Self {
        self.is_for_operators = true;
        self
    }

    /// No key is needed.
    pub(super) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// The members of this struct are the parameters of the query.
    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    /// A text in the path is something else than the id or the name of what this is about.
    pub(super) fn path(mut self, name: &'static str, words: &'static str, example: &'static str) -> Self {
        self.path.push((name, words, example));
        self
    }

    /// An `Idempotency-Key` is taken.
    pub(super) fn once(self) -> Self {
        self.header(
            "Idempotency-Key",
            "The same request under the same key has one effect and gets the same answer for a day.",
            &json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" }),
        )
    }

    /// `If-Match` is taken: a change of a version that was seen.
    pub(super) fn if_match(self) -> Self {
        let words = "The entity tag that the agreement must still have; 412 otherwise.";
        self.header("If-Match", words, &entity_tag())
    }

    /// `If-None-Match` is taken: an answer that is not sent twice.
    pub(super) fn if_none_match(mut self) -> Self {
        let words = "It has the entity tag that If-None-Match names, and is not sent again.";
        self.answers.push((304, words, Content::Nothing, false));
        let words = "The entity tag of the answer that the client has: 304 while the agreement still has it. Any read takes \
                     If-Match and If-None-Match.";
        self.header("If-None-Match", words, &entity_tag())
    }

    fn header(mut self, name: &str, words: &str, schema: &Value) -> Self {
        let header = json!({ "name": name, "in": "header", "description": words, "schema": schema });
        self.headers.push(header);
        self
    }

    /// The body is this in JSON.
    pub(super) fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some((Content::Read(schema_of::<T>), true));
        self
    }

    /// The body is this in JSON, or nothing.
    pub(super) fn may_take<T: JsonSchema>(mut self) -> Self {
        self.body = Some((Content::Read(schema_of::<T>), false));
        self
    }

    /// The body is the bytes of a file.
    pub(super) fn takes_bytes(mut self) -> Self {
        self.body = Some((Content::Bytes, false));
        self
    }

    /// The body and the answer are these documents in XML, each a prefix and a name; an empty one is none.
    pub(super) fn xml(mut self, body: &'static str, answer: &'static str) -> Self {
        self.xml = (body, answer);
        self
    }

    /// The answer is this in JSON.
    pub(super) fn answers<T: JsonSchema>(self) -> Self {
        self.answer(200, AS_ASKED, Content::Written(schema_of::<T>))
    }

    /// The answer is this in JSON, which is described as clients read it and not by a struct that is written.
    pub(super) fn answers_as_read<T: JsonSchema>(self) -> Self {
        self.answer(200, AS_ASKED, Content::Read(schema_of::<T>))
    }

    /// The answer is a page of a list, with the address of the next one.
    pub(super) fn answers_page<T: JsonSchema>(mut self) -> Self {
        self.answers
            .push((200, AS_ASKED, Content::Written(schema_of::<T>), true));
        self
    }

    /// The answer is the bytes of a file.
    pub(super) fn answers_bytes(self) -> Self {
        self.answer(200, AS_ASKED, Content::Bytes)
    }

    /// The answer is a text.
    pub(super) fn answers_text(self) -> Self {
        self.answer(200, AS_ASKED, Content::Text)
    }

    /// The answer says that something was made, and is this in JSON.
    pub(super) fn makes<T: JsonSchema>(self) -> Self {
        self.answer(201, MADE, Content::Written(schema_of::<T>))
    }

    /// The answer says that a file was made.
    pub(super) fn makes_file(self) -> Self {
        self.answer(201, MADE, Content::Nothing)
    }

    /// The answer is empty once this is done.
    pub(super) fn answers_nothing(self) -> Self {
        self.answer(204, "Done.", Content::Nothing)
    }

    /// The answer of this status, which means this, is this in JSON.
    pub(super) fn answers_with<T: JsonSchema>(self, status: u16, words: &'static str) -> Self {
        self.answer(status, words, Content::Written(schema_of::<T>))
    }

    /// The answer leads elsewhere.
    pub(super) fn leads(self, words: &'static str) -> Self {
        self.answer(303, words, Content::Nothing)
    }

    fn answer(mut self, status: u16, words: &'static str, content: Content) -> Self {
        self.answers.push((status, words, content, false));
        self
    }

    /// The operation of a method at a path, as OpenAPI says it.
    pub(super) fn describe(&self, path: &str, method: &str, schemas: &mut SchemaSet) -> Value {
        let query = self
            .query
            .map(|schema_of| query_parameters_of_operation(schema_of, schemas));
        let query = query.unwrap_or_default();
        let takes_dry_run = query.iter().any(|parameter| parameter["name"] == "dryRun");
        let mut parameters = self.path_parameters(path);
        parameters.extend(query);
        parameters.extend(self.headers.iter().cloned());
        let mut summary = self.summary.to_owned();
        if self.is_for_operators {
            summary += "; for operators";
        }
        if method != "get" && !takes_dry_run {
            summary += "; it takes no dryRun";
        }
        let mut operation = json!({ "operationId": self.id, "tags": [self.tag], "summary": summary });
        if self.is_open {
            operation["security"] = json!([]);
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some((content, is_required)) = self.body {
            let content = describe_content_of_operation(content, self.xml.0, schemas);
            operation["requestBody"] = json!({ "content": content, "required": is_required });
        }
        let mut responses = Map::new();
        for (status, words, content, is_linked) in &self.answers {
            let mut answer = json!({ "description": words });
            let content = describe_content_of_operation(*content, self.xml.1, schemas);
            if !content.is_empty() {
                answer["content"] = content.into();
            }
            if *is_linked {
                answer["headers"] = json!({ "Link": { "$ref": "#/components/headers/Link" } });
            }
            responses.insert(status.to_string(), answer);
        }
        responses.insert(
            "default".to_owned(),
            json!({ "$ref": "#/components/responses/Problem" }),
        );
        operation["responses"] = responses.into();
        operation
    }

    /// The texts in braces in a path: by default the id or the name of something that a list shows.
    fn path_parameters(&self, path: &str) -> Vec<Value> {
        let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let parameters = names.map(|name| {
            let own = self.path.iter().find(|(own, ..)| *own == name);
            let (words, schema) = match (own, name) {
                (Some((_, words, example)), _) => (
                    *words,
                    json!({ "type": "string", "minLength": 1, "examples": [example] }),
                ),
                (None, "id") => (
                    "The id, as the list or the answer to the request that made it shows it",
                    json!({ "type": "string", "format": "uuid", "examples": [ID] }),
                ),
                _ => (
                    "The name, as its list shows it",
                    json!({ "type": "string", "minLength": 1 }),
                ),
            };
            json!({ "name": name, "in": "path", "required": true, "description": words, "schema": schema })
        });
        parameters.collect()
    }
}

/// What 201 means.
const MADE: &str = "Made; Location says where.";

fn entity_tag() -> Value {
    json!({ "type": "string", "pattern": "^(\\*|\"[!#-~]*\")$", "examples": ["\"3\""] })
}

/// The members of a struct as parameters of a query, in which nothing is null.
fn query_parameters_of_operation(schema_of: SchemaOf, schemas: &mut SchemaSet) -> Vec<Value> {
    let Value::Object(members) = schemas.read(schema_of)["properties"].take() else {
        return Vec::new();
    };
    let parameters = members.into_iter().map(|(name, mut schema)| {
        let words = schema["description"].take();
        let schema = match schema["anyOf"].get(0) {
            Some(some) => some.clone(),
            None => schema,
        };
        json!({ "name": name, "in": "query", "description": words, "schema": schema_without_null(schema) })
    });
    parameters.collect()
}

/// The media types of a body, where `xml` names the document that stands for its JSON.
fn describe_content_of_operation(content: Content, xml: &str, schemas: &mut SchemaSet) -> Map<String, Value> {
    let mut media = Map::new();
    let mut put = |kind: &str, schema: Value| media.insert(kind.to_owned(), json!({ "schema": schema }));
    match content {
        Content::Nothing => {}
        Content::Bytes => {
            put(
                "application/octet-stream",
                json!({ "type": "string", "format": "binary" }),
            );
        }
        Content::Text => {
            put("text/plain", json!({ "type": "string" }));
        }
        Content::Read(schema_of) => {
            put("application/json", schemas.read(schema_of));
        }
        Content::Written(schema_of) => {
            put("application/json", schemas.written(schema_of));
        }
    }
    if let Some(document) = describe_xml_document(xml).filter(|_| media.contains_key("application/json")) {
        media.insert("application/xml".to_owned(), json!({ "schema": document }));
    }
    media
}

/// A document of WS-Agreement by its prefix and its name: the schema of XML says the rest.
pub(super) fn describe_xml_document(name: &str) -> Option<Value> {
    let (prefix, local) = name.split_once(':')?;
    let namespace = match prefix {
        "bsp" => BSP,
        "wsag" => WSAG,
        _ => WSAG_NEG,
    };
    Some(json!({
        "description": format!("{name} of schemas/{prefix}.xsd"),
        "xml": { "name": local, "prefix": prefix, "namespace": namespace },
    }))
}
