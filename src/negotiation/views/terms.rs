//! The parts of an offer as flat values: its context and its terms.

use serde::Serialize;
use wsag::agreements::{Context, Role};
use wsag::guarantees::{AssessmentInterval, Compensation, GuaranteeTerm, Obligated};
use wsag::job::JobDefinition;
use wsag::terms::{ServiceDescription, ServiceDescriptionTerm, Term, TermTree, Terms, Variable};
use wsag::time::DateTime;

use super::scheduling::SchedulingView;

/// The context of an offer.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextView {
    /// The initiator, as the document has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement_initiator: Option<String>,
    /// The responder, as the document has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement_responder: Option<String>,
    /// Which of the two provides the service.
    pub service_provider: &'static str,
    /// When the agreement ends to be valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<String>,
    /// The template that the offer was made from.
    pub template_id: Option<String>,
    /// Its name.
    pub template_name: Option<String>,
}

/// The terms of an offer.
#[derive(Debug, Clone, Serialize)]
pub struct TermsView {
    /// All of them hold.
    pub terms: Vec<TermView>,
}

/// A term, or several of which some hold.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TermView {
    /// All of these hold.
    All {
        /// Which.
        terms: Vec<TermView>,
    },
    /// Exactly one of these holds.
    ExactlyOne {
        /// Which.
        terms: Vec<TermView>,
    },
    /// At least one of these holds.
    OneOrMore {
        /// Which.
        terms: Vec<TermView>,
    },
    /// The job and its number of nodes.
    Job {
        /// Name of the term.
        name: String,
        /// The service that it describes.
        service_name: String,
        /// Application of the catalogue; none where nodes are reserved and nothing runs.
        application: Option<String>,
        /// Its version, where one is asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Its arguments.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<String>,
        /// Least number of nodes.
        nodes_min: Option<u32>,
        /// Greatest number of nodes, where one is named.
        nodes_max: Option<u32>,
    },
    /// When it runs.
    Time {
        /// Name of the term.
        name: String,
        /// The service that it describes.
        service_name: String,
        /// Earliest start.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<String>,
        /// Latest completion.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<String>,
        /// For how long.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<i32>,
    },
    /// How it may be planned.
    Scheduling {
        /// Name of the term.
        name: String,
        /// The service that it describes.
        service_name: String,
        /// The options and preferences.
        #[serde(flatten)]
        scheduling: Box<SchedulingView>,
    },
    /// Where the service is.
    Reference {
        /// Name of the term.
        name: String,
        /// The service.
        service_name: String,
        /// Its address.
        address: String,
    },
    /// The measured properties of a service.
    Properties {
        /// Name of the term.
        name: String,
        /// The service.
        service_name: String,
        /// The names for it.
        variables: Vec<VariableView>,
    },
    /// The guarantees.
    Guarantee(GuaranteeTermView),
}

/// A name for something that is measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableView {
    /// The name.
    pub name: String,
    /// Its type or unit.
    pub metric: String,
    /// Where it stands.
    pub location: String,
}

/// A guarantee term.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuaranteeTermView {
    /// Its name.
    pub name: String,
    /// The side that owes it.
    pub obligated: &'static str,
    /// The services that it is about.
    pub services: Vec<String>,
    /// When it counts; always, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualifying_condition: Option<String>,
    /// The objective.
    pub objective: String,
    /// The payment when it is violated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<CompensationView>,
    /// The payment when it is fulfilled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewards: Vec<CompensationView>,
}

/// A penalty or a reward.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompensationView {
    /// The amount, an expression.
    pub value: String,
    /// Its currency or other unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Paid once in each such time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<i64>,
    /// Paid once in this number of invocations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl ContextView {
    pub(in crate::negotiation) fn of(context: &Context) -> Self {
        Self {
            agreement_initiator: context.agreement_initiator.as_ref().map(ToString::to_string),
            agreement_responder: context.agreement_responder.as_ref().map(ToString::to_string),
            service_provider: match context.service_provider {
                Role::AgreementInitiator => "AgreementInitiator",
                Role::AgreementResponder => "AgreementResponder",
            },
            expiration_time: context.expiration_time.map(text),
            template_id: context.template_id.clone(),
            template_name: context.template_name.clone(),
        }
    }
}

impl TermsView {
    pub(in crate::negotiation) fn of(terms: &Terms) -> Self {
        Self {
            terms: views(terms.all.as_deref().unwrap_or_default()),
        }
    }
}

/// The documents' guard bounds the depth of this recursion.
fn views(members: &[TermTree]) -> Vec<TermView> {
    let view = |member: &TermTree| match member {
        TermTree::All(members) => TermView::All {
            terms: views(members),
        },
        TermTree::ExactlyOne(members) => TermView::ExactlyOne {
            terms: views(members),
        },
        TermTree::OneOrMore(members) => TermView::OneOrMore {
            terms: views(members),
        },
        TermTree::Term(term) => TermView::of(term),
    };
    members.iter().map(view).collect()
}

impl TermView {
    fn of(term: &Term) -> Self {
        match term {
            Term::ServiceDescription(term) => Self::described(term),
            Term::ServiceReference(term) => Self::Reference {
                name: term.name.clone(),
                service_name: term.service_name.clone(),
                address: term.reference.address.clone(),
            },
            Term::ServiceProperties(term) => Self::Properties {
                name: term.name.clone(),
                service_name: term.service_name.clone(),
                variables: term.variables.iter().map(VariableView::of).collect(),
            },
            Term::Guarantee(term) => Self::Guarantee(GuaranteeTermView::of(term)),
        }
    }

    fn described(term: &ServiceDescriptionTerm) -> Self {
        let (name, service_name) = (term.name.clone(), term.service_name.clone());
        match &term.content {
            ServiceDescription::JobDefinition(job) => Self::job(name, service_name, job),
            ServiceDescription::AllocationTime(time) => Self::Time {
                name,
                service_name,
                start: time.start.map(text),
                end: time.end.map(text),
                duration_seconds: time.duration,
            },
            ServiceDescription::Scheduling(scheduling) => Self::Scheduling {
                name,
                service_name,
                scheduling: Box::new(SchedulingView::of(scheduling)),
            },
        }
    }

    fn job(name: String, service_name: String, job: &JobDefinition) -> Self {
        let application = job.application.as_ref();
        let nodes = job.resources.nodes.as_ref();
        let sizes = nodes.and_then(|range| range.whole_numbers().ok());
        Self::Job {
            name,
            service_name,
            application: application.map(|of| of.name.clone()),
            version: application.and_then(|of| of.version.clone()),
            arguments: application
                .and_then(|of| of.posix.as_ref())
                .map_or_else(Vec::new, |posix| posix.arguments.clone()),
            nodes_min: sizes.map(|(least, _)| least),
            nodes_max: sizes.and_then(|(_, greatest)| greatest),
        }
    }
}

impl VariableView {
    fn of(variable: &Variable) -> Self {
        Self {
            name: variable.name.clone(),
            metric: variable.metric.clone(),
            location: variable.location.clone(),
        }
    }
}

impl GuaranteeTermView {
    fn of(term: &GuaranteeTerm) -> Self {
        Self {
            name: term.name.clone(),
            obligated: match term.obligated {
                Obligated::ServiceConsumer => "ServiceConsumer",
                Obligated::ServiceProvider => "ServiceProvider",
            },
            services: term.scopes.clone(),
            qualifying_condition: term
                .qualifying_condition
                .as_ref()
                .map(|of| of.text.trim().to_owned()),
            objective: term.objective.level.text.trim().to_owned(),
            penalties: term.values.penalties.iter().map(CompensationView::of).collect(),
            rewards: term.values.rewards.iter().map(CompensationView::of).collect(),
        }
    }
}

impl CompensationView {
    fn of(compensation: &Compensation) -> Self {
        let (interval_seconds, count) = match compensation.interval {
            AssessmentInterval::Time(duration) => (duration.seconds(), None),
            AssessmentInterval::Count(count) => (None, Some(count)),
        };
        Self {
            value: compensation.value.text.trim().to_owned(),
            unit: compensation.unit.clone(),
            interval_seconds,
            count,
        }
    }
}

fn text(time: DateTime) -> String {
    time.to_string()
}
