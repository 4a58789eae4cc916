//! What requests in JSON may say that more than one operation takes, as the description of the API has it. The use cases read them, with
//! the place of each mistake; a test holds the members that they know to these.

#![expect(
    dead_code,
    reason = "the use cases read these, with the place of each mistake"
)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use uuid::Uuid;
use wsag::NamedValue;
use wsag::job_definition::CreationFlag;

use service::{ShapeChangesView, schemas};

/// An instant in a query, with a zone that dateTimes of XML know, too.
pub(super) enum InstantInRequest {}

impl JsonSchema for InstantInRequest {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let date_time = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?";
        let zone = r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])$";
        json_schema!({ "type": "string", "format": "date-time", "pattern": format!("{date_time}{zone}") })
    }
}

/// A sum of money.
#[derive(JsonSchema)]
pub(super) struct Budget {
    /// The amount, with up to six decimals.
    #[schemars(extend("type" = ["string", "number"]), example = &"12.5")]
    amount: String,
    /// The currency, three capital letters of ISO 4217.
    #[schemars(regex(pattern = r"^[A-Z]{3}$"), example = &"EUR")]
    currency: String,
}

/// Why something is ended.
#[derive(JsonSchema)]
#[schemars(example = json!({"reason": "it is not needed any more"}))]
pub(super) struct Reason {
    /// The reason.
    #[schemars(example = &"a disk is replaced")]
    reason: Option<String>,
}

/// The members of each request for capacity.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Wish {
    /// The template; the first of GET /templates where none is named.
    #[schemars(example = &"advance-reservation")]
    template: Option<String>,
    /// A name for the requester's own list.
    #[schemars(length(max = 200), example = &"nightly")] // NAME_LENGTH_MAX
    name: Option<String>,
    /// An application of the catalogue (GET /applications); none where nodes are reserved and nothing runs.
    #[schemars(example = &"sleep")]
    application: Option<String>,
    /// The version of the application.
    #[schemars(example = &"1.0")]
    version: Option<String>,
    /// The values of the application's arguments, in their order.
    #[schemars(length(max = 64), example = ["30"])] // ARGUMENTS_MAX
    arguments: Option<Vec<ArgumentValue>>,
    /// The files that are moved for the job.
    #[schemars(
        length(max = 100), // FILES_MAX
        example = json!([{"file": "input.csv", "source": "https://storage.example.org/input.csv"}])
    )]
    staging: Option<Vec<StagedFile>>,
    /// How many nodes.
    #[schemars(example = 2)]
    nodes: Option<Nodes>,
    /// What each node must have: at least so much of a number, and the architecture as it is.
    attributes: Option<schemas::ResourceAttributesSchema>,
    /// The duration, in seconds.
    #[schemars(range(min = 1), example = 3_600)]
    duration_seconds: Option<u32>,
    /// The earliest start and the latest end; of nodes alone without durationSeconds they mean all of the time between them.
    #[schemars(example = json!({"start": "2026-11-21T08:00:00Z", "end": "2026-11-21T12:00:00Z"}))]
    window: Option<Window>,
    /// How the duration follows from the number of nodes.
    moldability: Option<Moldability>,
    /// Whether the work may be done in pieces; for applications that save their work.
    #[schemars(example = json!({"pieces": 2, "interval": 0.25, "independent": false}))]
    preemption: Option<Preemption>,
    /// The most that it may cost.
    budget: Option<Budget>,
    /// How far from the request an alternative may lie, in durations of the request.
    #[schemars(range(min = 0), example = 1.0)]
    max_deviation: Option<f64>,
    /// The part of its wait after which it moves no more.
    #[schemars(range(min = 0, max = 1), example = 0.5)]
    fix_at: Option<f64>,
    /// How much each difference from the request weighs, for the order of the offers.
    #[schemars(example = json!({"start": 1.0, "price": 2.0}))]
    weights: Option<Weights>,
    /// The one resource that it is to lie on.
    #[schemars(example = &"local")]
    resource: Option<String>,
    /// What may still change of its shape after it is accepted, to let others in; without this all that it leaves open, until its slot
    /// begins.
    #[schemars(example = json!({"sizes": true, "cuts": false}))]
    may_change: Option<ShapeChangesView>,
}

/// A value of an argument.
#[derive(JsonSchema)]
#[serde(untagged)]
enum ArgumentValue {
    Text(String),
    Number(f64),
}

/// How many nodes: a number, or the least and the greatest.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Nodes {
    Exactly(#[schemars(range(min = 1))] u32),
    Between(NodeRange),
}

/// The least and the greatest number of nodes.
#[derive(JsonSchema)]
struct NodeRange {
    /// The least.
    #[schemars(range(min = 1), example = 2)]
    min: u32,
    /// The greatest.
    #[schemars(range(min = 1), example = 4)]
    max: u32,
}

/// A time.
#[derive(JsonSchema)]
struct Window {
    /// The earliest start.
    #[schemars(with = "Option<schemas::Instant>")]
    start: Option<String>,
    /// The latest end.
    #[schemars(with = "Option<schemas::Instant>", example = &"2026-11-21T12:00:00Z")]
    end: Option<String>,
}

/// How the duration follows from the number of nodes: by one of three laws.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum Moldability {
    Linear(LinearLaw),
    Table(TableLaw),
    ConstantWork(ConstantWorkLaw),
}

/// A duration that each node shortens by the same.
#[derive(JsonSchema)]
pub(super) struct LinearLaw {
    /// The duration in seconds is intercept - slope * nodes: 7200 - 600 * 8 = 2400 s on 8 nodes. A number of nodes for which that
    /// is not above 0 is refused.
    linear: Linear,
}

/// A line.
#[derive(JsonSchema)]
struct Linear {
    /// The duration in seconds that the line has at no node, above 0.
    #[schemars(example = 7_200.0)]
    intercept: f64,
    /// By how many seconds each node shortens it, from 0 on.
    #[schemars(range(min = 0), example = 600.0)]
    slope: f64,
}

/// A duration for each size.
#[derive(JsonSchema)]
pub(super) struct TableLaw {
    /// The sizes that are possible, each with its duration.
    #[schemars(length(min = 1), example = json!([{"nodes": 2, "durationSeconds": 3_600}]))]
    table: Vec<TableEntry>,
}

/// A size and its duration.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TableEntry {
    /// How many nodes.
    #[schemars(range(min = 1), example = 2)]
    nodes: u32,
    /// The duration, in seconds.
    #[schemars(range(min = 1), example = 3_600)]
    duration_seconds: u32,
}

/// A duration in which all nodes together do the same work.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConstantWorkLaw {
    /// The work in node-seconds, above 0: on n nodes it takes the n-th part.
    #[schemars(example = 3_600.0)]
    constant_work: f64,
}

/// How work may be done in pieces.
#[derive(JsonSchema)]
pub(super) struct Preemption {
    /// In how many pieces at most.
    #[schemars(range(min = 1, max = u32::MAX), example = 2)]
    pieces: u32,
    /// The part of the work at multiples of which it may be cut, above 0.
    #[schemars(range(max = 1), example = 0.25)]
    interval: f64,
    /// Whether each piece may have a number of nodes of its own; pieces never overlap.
    independent: bool,
}

/// The weights of differences from a request.
#[derive(JsonSchema)]
pub(super) struct Weights {
    /// The weight of a later start.
    #[schemars(range(min = 0), example = 1.0)]
    start: Option<f64>,
    /// The weight of another number of nodes.
    #[schemars(range(min = 0), example = 1.0)]
    size: Option<f64>,
    /// The weight of a longer duration.
    #[schemars(range(min = 0), example = 1.0)]
    duration: Option<f64>,
    /// The weight of a higher price.
    #[schemars(range(min = 0), example = 1.0)]
    price: Option<f64>,
}

/// A file that is moved for a job.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StagedFile {
    /// The name of the file in the job's folder.
    #[schemars(example = &"input.csv")]
    file: String,
    /// The address from which it is fetched before the start.
    #[schemars(length(max = 2_048), example = &"https://storage.example.org/input.csv")]
    // LENGTH_MAX of addresses
    source: Option<String>,
    /// The address to which it is sent after the end.
    #[schemars(length(max = 2_048), example = &"https://storage.example.org/output.csv")]
    // LENGTH_MAX of addresses
    target: Option<String>,
    /// The size, in bytes.
    #[schemars(example = 4_096)]
    bytes: Option<u64>,
    /// Whether the file is removed when the job is over.
    #[schemars(example = true)]
    delete_on_termination: Option<bool>,
    /// What is done where the file is there already.
    #[schemars(extend("enum" = CreationFlag::NAMES.iter().map(|(_, word)| Some(*word)).chain([None]).collect::<Vec<_>>()))]
    creation_flag: Option<String>,
}

/// A limit that the offers in answer have to keep.
#[derive(JsonSchema)]
struct Constraint {
    /// The value that is limited.
    #[schemars(extend("enum" = ["nodes", "start", "end", "durationSeconds"]))]
    of: String,
    /// The least.
    #[schemars(example = 2)]
    min: Option<Bound>,
    /// The greatest.
    #[schemars(example = 4)]
    max: Option<Bound>,
    /// How much it weighs; without it, it has to be met.
    #[schemars(range(min = 1, max = u32::MAX), example = 2)]
    importance: Option<u32>,
}

/// A bound: a number, or an instant.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Bound {
    Number(#[schemars(range(min = 1))] u32),
    Instant(#[schemars(with = "schemas::Instant")] String),
}

/// An offer that is to become an agreement: a new one, or one of a negotiation.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(
    example = json!({"application": "sleep", "arguments": [30], "nodes": 1, "durationSeconds": 60, "name": "nightly"}),
    example = json!({"offer": "019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3"})
)]
pub(super) enum Offer {
    New(Box<NewOffer>),
    Negotiated(NegotiatedOffer),
}

/// A new offer.
#[derive(JsonSchema)]
pub(super) struct NewOffer {
    #[serde(flatten)]
    wish: Wish,
    #[serde(flatten)]
    decision: Decision,
}

/// An offer of a negotiation, which is accepted.
#[derive(JsonSchema)]
pub(super) struct NegotiatedOffer {
    /// The id of an offer in a negotiation, which becomes the agreement.
    offer: Uuid,
    #[serde(flatten)]
    decision: Decision,
}

/// When an offer is decided.
#[derive(JsonSchema)]
struct Decision {
    /// Whether it is answered at once and decided afterwards.
    #[schemars(example = true)]
    pending: Option<bool>,
    /// The address that is told the decision about a pending agreement; none is called where it is the anonymous or the none address
    /// of WS-Addressing.
    #[schemars(length(max = 2_048), example = &"https://client.example.org/decided")]
    // LENGTH_MAX of addresses
    callback: Option<String>,
}

/// A request that opens a negotiation.
#[derive(JsonSchema)]
#[schemars(example = json!({
    "nodes": {"min": 1, "max": 2},
    "durationSeconds": 600,
    "hold": false,
    "constraints": [{"of": "nodes", "min": 1}],
}))]
pub(super) struct NegotiationRequest {
    #[serde(flatten)]
    wish: Wish,
    /// The agreement that is to be replaced.
    agreement: Option<Uuid>,
    /// From when on nothing more is negotiated.
    #[schemars(with = "Option<schemas::Instant>")]
    expires: Option<String>,
    /// Whether the nodes of the offers in answer are kept for a while. With false it is a quote: it costs no quota.
    hold: Option<bool>,
    /// The limits that the offers in answer have to keep.
    #[schemars(length(max = 32), example = json!([{"of": "nodes", "min": 2}]))] // CONSTRAINTS_MAX
    constraints: Option<Vec<Constraint>>,
}

/// A request in a negotiation, or several.
#[derive(JsonSchema)]
#[serde(untagged)]
pub(super) enum OffersInNegotiation {
    One(Box<OfferInNegotiation>),
    Several(#[schemars(length(min = 1, max = 32))] Vec<OfferInNegotiation>), // OFFERS_MAX
}

/// A request in a negotiation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "counterOfferTo": "019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3",
    "nodes": 1,
    "durationSeconds": 1_200,
}))]
pub(super) struct OfferInNegotiation {
    #[serde(flatten)]
    wish: Wish,
    /// The requester's own id of the offer.
    #[schemars(length(max = 255), example = &"first")] // TOKEN_MAX
    id: Option<String>,
    /// The id of the offer that it answers, or the template.
    #[schemars(length(max = 255), example = &"advance-reservation")] // TOKEN_MAX
    counter_offer_to: Option<String>,
    /// The state.
    state: Option<schemas::OfferState>,
    /// From when on it is no longer taken.
    #[schemars(with = "Option<schemas::Instant>")]
    expires: Option<String>,
    /// The limits that the offers in answer have to keep.
    #[schemars(length(max = 32), example = json!([{"of": "nodes", "min": 2}]))] // CONSTRAINTS_MAX
    constraints: Option<Vec<Constraint>>,
}
