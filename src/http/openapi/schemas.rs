//! The values of the API in JSON Schema, as OpenAPI 3.1 has it. Objects are closed: a member that is not described here is
//! none.

use serde_json::{Value, json};

/// A reference to one of [`all`].
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A simple type by its name.
pub(super) fn simple(kind: &str) -> Value {
    match kind {
        "count" => json!({ "type": "integer", "minimum": 1 }),
        "integer" => json!({ "type": "integer" }),
        "number" => json!({ "type": "number" }),
        "not-negative" => json!({ "type": "number", "minimum": 0 }),
        "boolean" => json!({ "type": "boolean" }),
        "uuid" => json!({ "type": "string", "format": "uuid" }),
        "date-time" => json!({ "type": "string", "format": "date-time" }),
        "decimal" => json!({ "type": "string", "pattern": "^-?[0-9]+(\\.[0-9]{1,6})?$" }),
        "texts" => json!({ "type": "array", "items": { "type": "string" } }),
        _ => json!({ "type": "string" }),
    }
}

/// A closed object. A member's type is simple, a schema's name with a capital, `[]` before it for a list of such; `?` after
/// the member's name says that it may be absent or null.
fn object(members: &[(&str, &str)]) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (name, kind) in members {
        let of = |kind: &str| {
            if kind.starts_with(|first: char| first.is_ascii_uppercase()) {
                reference(kind)
            } else {
                simple(kind)
            }
        };
        let schema = match kind.strip_prefix("[]") {
            Some(kind) => json!({ "type": "array", "items": of(kind) }),
            None => of(kind),
        };
        if let Some(name) = name.strip_suffix('?') {
            let schema = json!({ "anyOf": [schema, { "type": "null" }] });
            properties.insert(name.to_owned(), schema);
        } else {
            properties.insert((*name).to_owned(), schema);
            required.push(*name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn words(of: &[&str]) -> Value {
    json!({ "type": "string", "enum": of })
}

/// Every schema, by name.
pub(super) fn all() -> Value {
    let mut all = serde_json::Map::new();
    for group in [
        requests(),
        agreements(),
        parts(),
        negotiations(),
        resources(),
        others(),
    ] {
        if let Value::Object(group) = group {
            all.extend(group);
        }
    }
    Value::Object(all)
}

/// The members of a request for capacity.
const REQUEST: [(&str, &str); 14] = [
    ("template?", "text"),
    ("name?", "text"),
    ("application?", "text"),
    ("version?", "text"),
    ("arguments?", "Arguments"),
    ("nodes?", "Nodes"),
    ("durationSeconds?", "count"),
    ("window?", "Window"),
    ("moldability?", "Moldability"),
    ("preemption?", "Preemption"),
    ("budget?", "Budget"),
    ("maxDeviation?", "not-negative"),
    ("fixAt?", "not-negative"),
    ("weights?", "Weights"),
];

fn requests() -> Value {
    let with = |more: &[(&'static str, &'static str)]| object(&[REQUEST.as_slice(), more].concat());
    let offered = object(&[("offer", "uuid"), ("pending?", "boolean"), ("callback?", "text")]);
    let of_itself = [
        ("id?", "text"),
        ("counterOfferTo?", "text"),
        ("state?", "OfferState"),
        ("expires?", "date-time"),
        ("constraints?", "[]Constraint"),
    ];
    let opening = [
        ("agreement?", "uuid"),
        ("expires?", "date-time"),
        ("constraints?", "[]Constraint"),
    ];
    json!({
        "Offer": { "anyOf": [with(&[("pending?", "boolean"), ("callback?", "text")]), offered] },
        "NegotiationRequest": with(&opening),
        "OfferInNegotiation": with(&of_itself),
        "OffersInNegotiation": { "anyOf": [
            reference("OfferInNegotiation"),
            { "type": "array", "items": reference("OfferInNegotiation"), "minItems": 1, "maxItems": 32 },
        ] },
        "Constraint": {
            "type": "object", "required": ["of"], "additionalProperties": false,
            "properties": {
                "of": words(&["nodes", "start", "end", "durationSeconds"]),
                "min": reference("Bound"), "max": reference("Bound"),
                "importance": simple("count"),
            },
        },
        "Bound": { "anyOf": [simple("count"), simple("date-time")] },
        "Arguments": { "type": "array", "items": { "type": ["string", "number"] } },
        "Nodes": { "anyOf": [simple("count"), object(&[("min", "count"), ("max", "count")])] },
        "Window": object(&[("start?", "date-time"), ("end?", "date-time")]),
        "Moldability": { "anyOf": [
            object(&[("linear", "Linear")]),
            object(&[("table", "[]TableEntry")]),
            object(&[("constantWork", "number")]),
        ] },
        "Linear": object(&[("intercept", "number"), ("slope", "not-negative")]),
        "TableEntry": object(&[("nodes", "count"), ("durationSeconds", "count")]),
        "Preemption": object(&[("pieces", "count"), ("interval", "number"), ("independent", "boolean")]),
        "Budget": { "type": "object", "required": ["amount", "currency"], "additionalProperties": false, "properties": {
            "amount": { "type": ["string", "number"] },
            "currency": { "type": "string", "pattern": "^[A-Z]{3}$" },
        } },
        "Weights": object(&[
            ("start?", "not-negative"), ("size?", "not-negative"), ("duration?", "not-negative"),
            ("price?", "not-negative"),
        ]),
        "Reason": object(&[("reason?", "text")]),
    })
}

/// The members of an agreement.
const AGREEMENT: [(&str, &str); 29] = [
    ("id", "uuid"),
    ("name?", "text"),
    ("party", "text"),
    ("template", "text"),
    ("state", "AgreementState"),
    ("serviceState", "ServiceState"),
    ("resource", "text"),
    ("nodes", "count"),
    ("durationSeconds", "count"),
    ("ready", "date-time"),
    ("deadline", "date-time"),
    ("plannedStart", "date-time"),
    ("plannedEnd", "date-time"),
    ("pieces?", "[]Piece"),
    ("price?", "Money"),
    ("reservation?", "text"),
    ("confidence?", "number"),
    ("started?", "date-time"),
    ("ended?", "date-time"),
    ("application?", "text"),
    ("arguments?", "texts"),
    ("outcome?", "text"),
    ("exitStatus?", "integer"),
    ("guarantees", "[]Guarantee"),
    ("created", "date-time"),
    ("version", "count"),
    ("supersedes?", "uuid"),
    ("supersededBy?", "uuid"),
    ("proposals?", "Proposals"),
];

fn agreements() -> Value {
    let accepted = [
        AGREEMENT.as_slice(),
        &[("moved?", "Moves"), ("choices?", "Choices")],
    ]
    .concat();
    json!({
        "Agreement": object(&AGREEMENT),
        "Accepted": object(&accepted),
        "Piece": object(&[
            ("plannedStart", "date-time"), ("plannedEnd", "date-time"), ("nodes", "count"),
            ("started?", "date-time"), ("ended?", "date-time"),
        ]),
        "Moves": { "type": "array", "items": object(&[
            ("id", "uuid"), ("plannedStart", "date-time"), ("plannedEnd", "date-time"),
        ]) },
        "Choices": { "type": "array", "items": object(&[("path", "text"), ("members", "Numbers")]) },
        "Numbers": { "type": "array", "items": simple("count") },
        "Agreements": object(&[("agreements", "[]Agreement"), ("next?", "uuid")]),
        "AgreementState": words(&[
            "Pending", "PendingAndTerminating", "Observed", "ObservedAndTerminating", "Rejected", "Complete", "Terminated",
        ]),
        "ServiceState": words(&["NotReady", "Idle", "Processing", "Completed"]),
        "Guarantee": object(&[
            ("name", "text"), ("state", "GuaranteeState"), ("objective", "text"), ("evidence?", "text"),
        ]),
        "GuaranteeState": words(&["NotDetermined", "Fulfilled", "Violated"]),
        "Money": object(&[("amount", "decimal"), ("currency", "text")]),
        "Proposals": { "type": "array", "items": object(&[
            ("negotiation", "uuid"), ("reason", "text"), ("expires", "date-time"), ("penalties?", "[]Money"),
            ("offers", "[]Proposed"),
        ]) },
        "Proposed": object(&[
            ("id", "uuid"), ("resource", "text"), ("nodes", "count"), ("start", "date-time"), ("end", "date-time"),
            ("price?", "Money"),
        ]),
    })
}

fn parts() -> Value {
    let kind = |kind: &str, members: &[(&'static str, &'static str)]| {
        let mut schema = object(members);
        schema["properties"]["kind"] = json!({ "const": kind });
        if let Some(required) = schema["required"].as_array_mut() {
            required.push("kind".into());
        }
        schema
    };
    let named = |name: &str, more: &[(&'static str, &'static str)]| {
        kind(
            name,
            &[&[("name", "text"), ("serviceName", "text")], more].concat(),
        )
    };
    json!({
        "State": object(&[("state", "AgreementState"), ("version", "count")]),
        "ServiceTerms": object(&[("serviceState", "ServiceState")]),
        "GuaranteeTerms": object(&[("guarantees", "[]Guarantee")]),
        "Context": object(&[
            ("agreementInitiator?", "text"), ("agreementResponder?", "text"), ("serviceProvider", "text"),
            ("expirationTime?", "date-time"), ("templateId?", "text"), ("templateName?", "text"),
        ]),
        "Terms": object(&[("terms", "[]Term")]),
        "Term": { "anyOf": [
            kind("all", &[("terms", "[]Term")]),
            kind("exactlyOne", &[("terms", "[]Term")]),
            kind("oneOrMore", &[("terms", "[]Term")]),
            named("job", &[
                ("application?", "text"), ("version?", "text"), ("arguments?", "texts"), ("nodesMin?", "count"),
                ("nodesMax?", "count"),
            ]),
            named("time", &[("start?", "date-time"), ("end?", "date-time"), ("durationSeconds?", "integer")]),
            named("scheduling", &[
                ("moldability?", "Moldability"), ("preemption?", "Preemption"), ("budget?", "Money"),
                ("maxDeviation?", "number"), ("fixAt?", "number"), ("weights?", "Weights"),
            ]),
            named("reference", &[("address", "text")]),
            named("properties", &[("variables", "[]Variable")]),
            kind("guarantee", &[
                ("name", "text"), ("obligated", "text"), ("services", "texts"), ("qualifyingCondition?", "text"),
                ("objective", "text"), ("penalties?", "Compensations"), ("rewards?", "Compensations"),
            ]),
        ] },
        "Variable": object(&[("name", "text"), ("metric", "text"), ("location", "text")]),
        "Compensations": { "type": "array", "items": object(&[
            ("value", "text"), ("unit?", "text"), ("intervalSeconds?", "integer"), ("count?", "count"),
        ]) },
        "Trail": object(&[("lines", "[]TrailLine"), ("next?", "count")]),
        "TrailLine": object(&[
            ("number", "count"), ("at", "date-time"), ("kind", "text"), ("subject", "uuid"), ("negotiation?", "uuid"),
            ("party?", "text"), ("detail", "text"), ("hash", "text"),
        ]),
        "Timeline": object(&[("agreement", "uuid"), ("events", "[]Event")]),
        "Event": object(&[("at", "date-time"), ("kind", "text"), ("detail", "text")]),
    })
}

/// The members of a negotiation.
const NEGOTIATION: [(&str, &str); 8] = [
    ("id", "uuid"),
    ("party", "text"),
    ("agreement?", "uuid"),
    ("state", "text"),
    ("created", "date-time"),
    ("expires", "date-time"),
    ("proposed?", "text"),
    ("penalties?", "[]Money"),
];

/// The members of an offer.
const COUNTER_OFFER: [(&str, &str); 23] = [
    ("id", "text"),
    ("counterOfferTo", "text"),
    ("creator", "text"),
    ("state", "OfferState"),
    ("created", "date-time"),
    ("expires?", "date-time"),
    ("kind?", "text"),
    ("resource?", "text"),
    ("nodes?", "count"),
    ("durationSeconds?", "count"),
    ("start?", "date-time"),
    ("end?", "date-time"),
    ("pieces?", "[]Piece"),
    ("ready?", "date-time"),
    ("deadline?", "date-time"),
    ("deviation?", "number"),
    ("confidence?", "number"),
    ("price?", "Money"),
    ("priceDifference?", "Money"),
    ("fee?", "Money"),
    ("heldUntil?", "date-time"),
    ("agreement?", "uuid"),
    ("refusal?", "Anything"),
];

fn negotiations() -> Value {
    let with_offers = [NEGOTIATION.as_slice(), &[("offers?", "CounterOffers")]].concat();
    json!({
        "Negotiation": object(&with_offers),
        "Negotiations": object(&[("negotiations", "[]Negotiation"), ("next?", "uuid")]),
        "Negotiated": object(&[with_offers.as_slice(), &[("refusal?", "Anything")]].concat()),
        "Offers": object(&[("offers", "[]CounterOffer"), ("refusal?", "Anything")]),
        "Answers": { "anyOf": [reference("Offers"), object(&[("answers", "[]Offers")])] },
        "CounterOffers": { "type": "array", "items": reference("CounterOffer") },
        "CounterOffer": object(&COUNTER_OFFER),
        "FoundOffer": object(&[&[("negotiation", "uuid")], COUNTER_OFFER.as_slice()].concat()),
        "OfferState": words(&["Advisory", "Solicited", "Acceptable", "Rejected"]),
        "Anything": {},
    })
}

fn resources() -> Value {
    json!({
        "Resources": object(&[("resources", "[]Resource")]),
        "Resource": object(&[
            ("name", "text"), ("kind", "text"), ("nodes", "count"), ("up", "integer"), ("drained", "integer"),
            ("down", "integer"), ("troubles", "[]Trouble"),
        ]),
        "Trouble": object(&[("doing", "text"), ("message", "text"), ("since", "date-time")]),
        "NodeList": object(&[("resource", "text"), ("capacity", "count"), ("nodes", "[]Node")]),
        "Node": object(&[("number", "integer"), ("name", "text"), ("state", "NodeState"), ("said", "[]Said")]),
        "Said": object(&[
            ("by", "text"), ("state", "NodeState"), ("since", "date-time"), ("reason?", "text"),
        ]),
        "NodeState": words(&["up", "drained", "down"]),
        "NodeSaying": object(&[("state", "NodeState"), ("reason?", "text")]),
        "Repaired": object(&[
            ("resource", "text"), ("nodes", "[]Node"), ("lost", "integer"), ("moved", "integer"),
            ("broken", "integer"), ("withdrawn", "integer"),
        ]),
    })
}

fn others() -> Value {
    json!({
        "Template": object(&[("id", "text"), ("name", "text")]),
        "Templates": { "type": "array", "items": reference("Template") },
        "Files": object(&[("files", "[]File"), ("quotaBytes?", "integer")]),
        "File": object(&[("name", "text"), ("bytes", "integer"), ("modified", "date-time")]),
        "Accounts": object(&[("accounts", "[]Account"), ("entries", "[]Entry"), ("next?", "uuid")]),
        "Account": object(&[("account", "text"), ("balance", "Money")]),
        "Entry": object(&[
            ("posting", "uuid"), ("at", "date-time"), ("account", "text"), ("kind", "text"), ("agreement", "uuid"),
            ("amount", "Money"), ("detail", "text"),
        ]),
        "Availability": object(&[
            ("nodes", "count"), ("kind?", "text"), ("start", "date-time"), ("end", "date-time"), ("free", "[]Free"),
        ]),
        "Free": object(&[("start", "date-time"), ("end", "date-time")]),
        "Refused": object(&[("id", "uuid"), ("party", "text"), ("at", "date-time"), ("why", "text")]),
        "Refusal": object(&[
            ("id?", "uuid"), ("reason", "text"), ("bindingConstraint", "text"), ("cutShort?", "boolean"),
            ("alternatives", "[]Alternative"), ("relaxations", "[]Relaxation"),
        ]),
        "Alternative": object(&[
            ("direction", "text"), ("start", "date-time"), ("end", "date-time"), ("deviation", "number"),
        ]),
        "Relaxation": object(&[
            ("ready?", "date-time"), ("deadline?", "date-time"), ("nodes?", "count"), ("durationSeconds?", "count"),
            ("budget?", "Money"),
        ]),
        "Problem": object(&[
            ("type", "text"), ("title", "text"), ("status", "count"), ("detail", "text"), ("instance", "text"),
            ("code", "text"), ("requestId", "text"), ("violations?", "Violations"), ("refusal?", "Refusal"),
            ("offers?", "CounterOffers"),
        ]),
        "Violations": { "type": "array", "items": object(&[("path", "text"), ("message", "text")]) },
    })
}
