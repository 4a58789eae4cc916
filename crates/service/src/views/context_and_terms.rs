//! The parts of an offer as flat values: its context and its terms.

use serde_json::json;
use wsag::NamedValue;
use wsag::agreements::Context;
use wsag::budget::Budget;
use wsag::guarantees::{AssessmentInterval, Compensation, GuaranteeTerm};
use wsag::job_definition::{CreationFlag, DataStaging, JobDefinition, RangeValue};
use wsag::scheduling::{Moldability, Preemption, Preference, Scheduling, ShapeChanges};
use wsag::terms::{ServiceDescription, Term, TermTree, Terms};
use wsag::time::DateTime;

use crate::codec::json::{Json, JsonObject};
use crate::views::conditions::view_resources;

/// The context of an offer: its sides as the document has them, the end of the agreement, and the template.
pub(crate) fn view_context(read_context: &Context) -> Json {
    let (initiator, responder) = (
        &read_context.agreement_initiator,
        &read_context.agreement_responder,
    );
    JsonObject::default()
        .with_any("agreementInitiator", initiator.as_ref().map(ToString::to_string))
        .with_any("agreementResponder", responder.as_ref().map(ToString::to_string))
        .with("serviceProvider", read_context.service_provider.name())
        .with_any(
            "expirationTime",
            read_context.expiration_time.map(date_time_as_text),
        )
        .with("templateId", read_context.template_id.clone())
        .with("templateName", read_context.template_name.clone())
        .into()
}

/// The terms of an offer: all of them hold.
pub(crate) fn view_terms(terms: &Terms) -> Json {
    let all = terms.all.iter().flatten().map(view_term_tree);
    JsonObject::default()
        .holding("terms", all.collect::<Json>())
        .into()
}

/// A term, or several of which all, one or some hold. The documents' guard bounds the depth of this recursion.
fn view_term_tree(member: &TermTree) -> JsonObject {
    let (kind, members) = match member {
        TermTree::All(members) => ("all", members),
        TermTree::ExactlyOne(members) => ("exactlyOne", members),
        TermTree::OneOrMore(members) => ("oneOrMore", members),
        TermTree::Term(term) => return self::view_term(term),
    };
    view_term_kind(kind).holding("terms", members.iter().map(view_term_tree).collect::<Json>())
}

fn view_term_kind(kind: &str) -> JsonObject {
    JsonObject::default().with("kind", kind)
}

fn view_term(term: &Term) -> JsonObject {
    let term_of = |kind, name: &str, service: &str| {
        view_term_kind(kind)
            .with("name", name)
            .with("serviceName", service)
    };
    match term {
        Term::ServiceDescription(term) => {
            let named_term_of = |kind| term_of(kind, &term.name, &term.service_name);
            match &term.content {
                ServiceDescription::JobDefinition(definition) => {
                    named_term_of("job").and(view_job_term(definition))
                }
                ServiceDescription::AllocationTime(time) => named_term_of("time")
                    .with_any("start", time.start.map(date_time_as_text))
                    .with_any("end", time.end.map(date_time_as_text))
                    .with_any("durationSeconds", time.duration),
                ServiceDescription::Scheduling(options) => {
                    named_term_of("scheduling").and(view_scheduling_terms(options))
                }
                ServiceDescription::Other(other) => named_term_of("other")
                    .with("namespace", other.namespace.clone())
                    .with("element", other.local.clone())
                    .with("xml", other.source.to_string()),
            }
        }
        Term::ServiceReference(term) => term_of("reference", &term.name, &term.service_name)
            .with("address", term.reference.address.clone()),
        Term::ServiceProperties(term) => {
            let variables = term.variables.iter().map(|variable| {
                JsonObject::default()
                    .with_any("name", variable.name.clone())
                    .with_any("metric", variable.metric.clone())
                    .with("location", variable.location.clone())
            });
            term_of("properties", &term.name, &term.service_name)
                .holding("variables", variables.collect::<Json>())
        }
        Term::Guarantee(term) => view_guarantee_term(term),
    }
}

/// The job, which is none where only nodes are reserved, its number of nodes, and the conditions on them.
fn view_job_term(job: &JobDefinition) -> JsonObject {
    let application = job.application.as_ref();
    let posix = application.and_then(|application| application.posix.as_ref());
    let nodes = job.resources.nodes.as_ref();
    let sizes = nodes.and_then(|range| range.whole_numbers().ok());
    let listed = nodes
        .and_then(RangeValue::listed)
        .filter(|listed| listed.len() > 1);
    let (attributes, conditions) = view_resources(&job.resources);
    JsonObject::default()
        .with(
            "application",
            application.map(|application| application.name.clone()),
        )
        .with_any(
            "version",
            application.and_then(|application| application.version.clone()),
        )
        .with_texts("arguments", posix.map_or(&[], |posix| &posix.arguments))
        .holding_any(
            "staging",
            (!job.staging.is_empty()).then(|| view_staging_terms(&job.staging)),
        )
        .with_any("jobName", job.job_name.clone())
        .with_any("description", job.description.clone())
        .with("nodesMin", sizes.map(|(least, _)| least))
        .with("nodesMax", sizes.and_then(|(_, greatest)| greatest))
        .with_any("nodesListed", listed)
        .with_any("timeLimitSeconds", posix.and_then(|posix| posix.wall_time_limit))
        .holding_any(
            "attributes",
            (!attributes.is_empty()).then(|| Json::from(json!(attributes))),
        )
        .holding_any(
            "conditions",
            (!conditions.is_empty()).then(|| Json::from(json!(conditions))),
        )
}

fn view_guarantee_term(term: &GuaranteeTerm) -> JsonObject {
    let services = term.scopes.iter().filter_map(|scope| scope.service_name.clone());
    let condition = term.qualifying_condition.as_ref();
    let custom: Vec<String> = term.values.custom.iter().map(ToString::to_string).collect();
    view_term_kind("guarantee")
        .with("name", term.name.clone())
        .with("obligated", term.obligated.name())
        .with("services", services.collect::<Vec<_>>())
        .with_any(
            "qualifyingCondition",
            condition.map(|condition| condition.text.trim()),
        )
        .with_any("kpiName", term.objective.kpi_name.clone())
        .with("objective", term.objective.level.text.trim())
        .with_any("importance", term.values.importance)
        .holding_any("penalties", view_compensations_of_term(&term.values.penalties))
        .holding_any("rewards", view_compensations_of_term(&term.values.rewards))
        .with_any("custom", (!custom.is_empty()).then_some(custom))
}

/// Penalties or rewards, where there are any: the amount, an expression; its unit; and for how long or how often it is paid once.
fn view_compensations_of_term(all: &[Compensation]) -> Option<Json> {
    let each = all.iter().map(|compensation| {
        let amount = JsonObject::default()
            .with("value", compensation.value.text.trim())
            .with_any("unit", compensation.unit.clone());
        match compensation.interval {
            AssessmentInterval::Time(time) => amount.with_any("intervalSeconds", time.seconds()),
            AssessmentInterval::Count(count) => amount.with("count", count),
        }
    });
    (!all.is_empty()).then(|| each.collect())
}

fn date_time_as_text(time: DateTime) -> String {
    time.to_string()
}

/// The requester's options and preferences beyond size and window, each where there is one. They have the names, the units and
/// the order of the members of a request.
fn view_scheduling_terms(scheduling: &Scheduling) -> JsonObject {
    JsonObject::default()
        .holding_any(
            "moldability",
            scheduling.moldability.as_ref().map(view_moldability_terms),
        )
        .holding_any(
            "preemption",
            scheduling.preemption.as_ref().map(view_preemption_terms),
        )
        .holding_any("budget", scheduling.budget.as_ref().map(view_budget_terms))
        .with_any("maxDeviation", scheduling.max_deviation)
        .with_any("fixAt", scheduling.fix_at)
        .holding_any(
            "weights",
            scheduling.preference.as_ref().map(view_weights_of_term),
        )
        .with_any("resource", scheduling.resource.as_deref())
        .holding_any(
            "mayChange",
            scheduling.may_change.as_ref().map(view_shape_changes_of_term),
        )
}

fn view_shape_changes_of_term(changes: &ShapeChanges) -> JsonObject {
    JsonObject::default()
        .with("sizes", changes.sizes)
        .with("cuts", changes.cuts)
        .with_any("until", changes.until.map(date_time_as_text))
}

/// Duration as a function of the number of nodes.
fn view_moldability_terms(law: &Moldability) -> JsonObject {
    let empty = JsonObject::default();
    match law {
        Moldability::Linear { intercept, slope } => {
            let law = JsonObject::default()
                .with("intercept", *intercept)
                .with("slope", *slope);
            empty.holding("linear", law)
        }
        Moldability::Table(entries) => {
            let entry = |(nodes, seconds): &(u32, u32)| {
                JsonObject::default()
                    .with("nodes", *nodes)
                    .with("durationSeconds", *seconds)
            };
            empty.holding("table", entries.iter().map(entry).collect::<Json>())
        }
        Moldability::ConstantWork(node_seconds) => empty.with("constantWork", *node_seconds),
    }
}

fn view_preemption_terms(preemption: &Preemption) -> JsonObject {
    JsonObject::default()
        .with("pieces", preemption.pieces)
        .with("interval", preemption.interval)
        .with("independent", preemption.independent)
}

fn view_budget_terms(budget: &Budget) -> JsonObject {
    JsonObject::default()
        .with("amount", wsag::budget::write_amount(budget.amount_micros))
        .with("currency", budget.currency.clone())
}

fn view_weights_of_term(preference: &Preference) -> JsonObject {
    JsonObject::default()
        .with_any("start", preference.start)
        .with_any("size", preference.size)
        .with_any("duration", preference.duration)
        .with_any("price", preference.price)
}

/// The files of an offer, as the members of a request have them.
fn view_staging_terms(stagings: &[DataStaging]) -> Json {
    let file = |file: &DataStaging| {
        let flag = Some(file.creation_flag).filter(|flag| *flag != CreationFlag::Overwrite);
        JsonObject::default()
            .with("file", file.file_name.clone())
            .with_any("source", file.source.clone())
            .with_any("target", file.target.clone())
            .with_any("bytes", file.bytes)
            .with_any("deleteOnTermination", file.delete_on_termination)
            .with_any("creationFlag", flag.map(NamedValue::name))
    };
    stagings.iter().map(file).collect()
}
