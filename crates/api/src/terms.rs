//! The terms and the context of an offer, as clients read them. An offer's terms stand in each other, so each kind of term is a schema
//! with a name: generators of clients know recursion by names alone.

#![expect(dead_code, reason = "the use case writes these")]

use schemars::JsonSchema;
use serde_json::json;

use super::requests::{Moldability, Preemption, StagedFile, Weights};
use service::{ConditionView, MoneyView, ShapeChangesView, schemas};

/// The terms of an offer.
#[derive(JsonSchema)]
pub(super) struct Terms {
    /// The terms, all of which hold.
    terms: Vec<Term>,
}

/// A term, or several of which all, one or some hold.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(
    extend("discriminator" = {
        "propertyName": "kind",
        "mapping": {
            "all": "#/components/schemas/AllTerms",
            "exactlyOne": "#/components/schemas/ExactlyOneTerm",
            "oneOrMore": "#/components/schemas/OneOrMoreTerms",
            "job": "#/components/schemas/JobTerm",
            "time": "#/components/schemas/TimeTerm",
            "scheduling": "#/components/schemas/SchedulingTerm",
            "other": "#/components/schemas/OtherTerm",
            "reference": "#/components/schemas/ReferenceTerm",
            "properties": "#/components/schemas/PropertiesTerm",
            "guarantee": "#/components/schemas/GuaranteeTerm",
        },
    }),
    example = json!({"kind": "time", "name": "TIME", "serviceName": "BATCH", "durationSeconds": 3_600})
)]
enum Term {
    All(AllTerms),
    ExactlyOne(ExactlyOneTerm),
    OneOrMore(OneOrMoreTerms),
    Job(Box<JobTerm>),
    Time(TimeTerm),
    Scheduling(Box<SchedulingTerm>),
    Other(OtherTerm),
    Reference(ReferenceTerm),
    Properties(PropertiesTerm),
    Guarantee(GuaranteeTerm),
}

/// Terms of which all hold.
#[derive(JsonSchema)]
struct AllTerms {
    /// The kind of the term.
    #[schemars(extend("const" = "all"))]
    kind: String,
    /// The terms, all of which hold.
    terms: Vec<Term>,
}

/// Terms of which exactly one holds.
#[derive(JsonSchema)]
struct ExactlyOneTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "exactlyOne"))]
    kind: String,
    /// The terms, exactly one of which holds.
    terms: Vec<Term>,
}

/// Terms of which one or more hold.
#[derive(JsonSchema)]
struct OneOrMoreTerms {
    /// The kind of the term.
    #[schemars(extend("const" = "oneOrMore"))]
    kind: String,
    /// The terms, one or more of which hold.
    terms: Vec<Term>,
}

/// What is to run, and on how many nodes.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct JobTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "job"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"JOB")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// The name of the job, for people.
    #[schemars(example = &"nightly")]
    job_name: Option<String>,
    /// What the job is, for people.
    #[schemars(example = &"The nightly run")]
    description: Option<String>,
    /// An application of the catalogue; none where nodes are reserved and nothing runs.
    #[schemars(example = &"sleep")]
    application: Option<String>,
    /// The version of the application.
    #[schemars(example = &"1.0")]
    version: Option<String>,
    /// The values of the application's arguments, in their order.
    #[schemars(example = ["30"])]
    arguments: Option<Vec<String>>,
    /// The files that are moved for the job.
    staging: Option<Vec<StagedFile>>,
    /// The least number of nodes.
    #[schemars(range(min = 1), example = 2)]
    nodes_min: Option<u32>,
    /// The greatest number of nodes.
    #[schemars(range(min = 1), example = 4)]
    nodes_max: Option<u32>,
    /// The numbers of nodes that it may have, where only these.
    #[schemars(inner(range(min = 1)), example = [1, 2, 4])]
    nodes_listed: Option<Vec<u32>>,
    /// The most seconds that the job may run by its own words.
    #[schemars(example = 3_600)]
    time_limit_seconds: Option<u64>,
    /// What each node must have: at least so much of a number, and the architecture as it is.
    attributes: Option<schemas::ResourceAttributesSchema>,
    /// The conditions on its nodes that are more than a least number or a word.
    conditions: Option<Vec<ConditionView>>,
}

/// When it is to be done.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TimeTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "time"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"TIME")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// The earliest start.
    #[schemars(with = "Option<schemas::Instant>")]
    start: Option<String>,
    /// The latest end.
    #[schemars(with = "Option<schemas::Instant>", example = &"2026-11-21T12:00:00Z")]
    end: Option<String>,
    /// The duration, in seconds.
    #[schemars(example = 3_600)]
    duration_seconds: Option<i64>,
}

/// How it may be planned.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SchedulingTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "scheduling"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"SCHEDULING")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// How the duration follows from the number of nodes.
    moldability: Option<Moldability>,
    /// Whether the work may be done in pieces.
    preemption: Option<Preemption>,
    /// The most that it may cost.
    budget: Option<MoneyView>,
    /// How far from the request an alternative may lie, in durations of the request.
    #[schemars(example = 1.0)]
    max_deviation: Option<f64>,
    /// The part of its wait after which it moves no more.
    #[schemars(example = 0.5)]
    fix_at: Option<f64>,
    /// How much each difference from the request weighs, for the order of the offers.
    weights: Option<Weights>,
    /// The one resource that it is to lie on.
    #[schemars(example = &"local")]
    resource: Option<String>,
    /// What may still change of its shape after it is accepted.
    may_change: Option<ShapeChangesView>,
}

/// A term in a language that is not known here.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OtherTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "other"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"COLOURS")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// The namespace of the language.
    #[schemars(example = &"urn:example:colours")]
    namespace: String,
    /// The name of its element, in its namespace.
    #[schemars(example = &"Colours")]
    element: String,
    /// The element in the words of its document.
    #[schemars(example = &"<Colours xmlns=\"urn:example:colours\"/>")]
    xml: String,
}

/// A service elsewhere.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReferenceTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "reference"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"STORAGE")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// The address of the service.
    #[schemars(example = &"https://storage.example.org/data")]
    address: String,
}

/// The variables of a service.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PropertiesTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "properties"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"PROPERTIES")]
    name: String,
    /// The service that it belongs to.
    #[schemars(example = &"BATCH")]
    service_name: String,
    /// The variables that constraints and guarantees may name.
    variables: Vec<Variable>,
}

/// A variable of a service.
#[derive(JsonSchema)]
struct Variable {
    /// The name.
    #[schemars(example = &"nodes")]
    name: Option<String>,
    /// The type.
    #[schemars(example = &"xs:integer")]
    metric: Option<String>,
    /// The path of its place in the offer.
    #[schemars(example = &"//jsdl:TotalResourceCount/jsdl:Exact")]
    location: String,
}

/// A guarantee, and what is paid for it.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GuaranteeTerm {
    /// The kind of the term.
    #[schemars(extend("const" = "guarantee"))]
    kind: String,
    /// The name of the term.
    #[schemars(example = &"START")]
    name: String,
    /// The side that gives the guarantee.
    #[schemars(example = &"ServiceProvider")]
    obligated: String,
    /// The services that it is about.
    #[schemars(example = ["BATCH"])]
    services: Vec<String>,
    /// The condition under which the guarantee is given.
    #[schemars(example = &"nodes ge 2")]
    qualifying_condition: Option<String>,
    /// The objective, an expression.
    #[schemars(example = &"completed le deadline")]
    objective: String,
    /// The indicator that the objective is a target of.
    #[schemars(example = &"completion")]
    kpi_name: Option<String>,
    /// How much the guarantee weighs beside others.
    #[schemars(example = 2)]
    importance: Option<i64>,
    /// Values in other languages, each an element in the words of its document.
    #[schemars(example = ["<w:Worth xmlns:w=\"urn:example:worth\"/>"])]
    custom: Option<Vec<String>>,
    /// What is paid where the guarantee is violated.
    penalties: Option<Vec<Compensation>>,
    /// What is paid where the guarantee is fulfilled.
    rewards: Option<Vec<Compensation>>,
}

/// A penalty or a reward.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Compensation {
    /// The amount, an expression.
    #[schemars(example = &"5.00")]
    value: String,
    /// The currency, or the unit of the value.
    #[schemars(example = &"EUR")]
    unit: Option<String>,
    /// The seconds of each interval for which it is paid.
    #[schemars(example = 60)]
    interval_seconds: Option<i64>,
    /// The number of times in which it is paid once.
    #[schemars(range(min = 1), example = 1)]
    count: Option<u32>,
}

/// The context of an offer.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Context {
    /// The side that made the offer.
    #[schemars(example = &"urn:bespeak:party:physics")]
    agreement_initiator: Option<String>,
    /// The side that answers the offer.
    #[schemars(example = &"https://bespeak.example.org")]
    agreement_responder: Option<String>,
    /// The side that provides the service.
    #[schemars(example = &"AgreementResponder")]
    service_provider: String,
    /// The instant at which the agreement ends.
    #[schemars(with = "Option<schemas::Instant>")]
    expiration_time: Option<String>,
    /// The id of the template.
    #[schemars(example = &"advance-reservation")]
    template_id: Option<String>,
    /// The name of the template.
    #[schemars(example = &"advance-reservation")]
    template_name: Option<String>,
}
