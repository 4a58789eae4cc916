//! What somebody wants, read from any form, and the offer that asks for it: a template's terms with the request in them.

pub mod job_attributes;

use std::collections::BTreeMap;

use job_attributes::{attributes_of_job, put_job_attributes};
use scheduler::domain::Attribute;
use scheduler::{Seconds, Time};
use serde::{Deserialize, Serialize};
use wsag::agreements::{AgreementOffer, Context};
use wsag::job_definition::{Application, DataStaging, JobDefinition, PosixApplication, RangeValue};
use wsag::scheduling::AllocationTimeConstraint;
use wsag::scheduling::Scheduling;
use wsag::templates::Template;
use wsag::terms::{ServiceDescription, ServiceDescriptionTerm, Term, TermTree, Terms};
use wsag::time::DateTime;

/// A time that has begun is meant from so long after the present on, in seconds: until then it is decided on.
const DECIDED_WITHIN: Seconds = 10;

/// Names of the job, time and scheduling terms, for templates without such a term.
const JOB_TERM: &str = "JOB";
const TIME_TERM: &str = "TIME";
const SCHEDULING_TERM: &str = "SCHEDULING";

/// What somebody wants. A template gives what it leaves out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// For the requester's own list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The job to run; none where only nodes are reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RequestedJob>,
    /// The files that are moved for it; none where nothing is said of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staging: Option<Vec<DataStaging>>,
    /// How many nodes, least and greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<(u32, u32)>,
    /// What each node must have: at least this of a number, and the word as it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", with = "crate::kept_attributes")]
    pub attributes: BTreeMap<String, Attribute>,
    /// Earliest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<DateTime>,
    /// Latest completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<DateTime>,
    /// For how many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<i32>,
    /// How it may be planned.
    pub scheduling: Scheduling,
}

/// An application of the catalogue and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedJob {
    /// Its name.
    pub name: String,
    /// Its version, where one is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl RequestedJob {
    /// The application that a document names.
    fn of(application: &Application) -> Self {
        let posix = application.posix.as_ref();
        Self {
            name: application.name.clone(),
            version: application.version.clone(),
            arguments: posix.map_or_else(Vec::new, |posix| posix.arguments.clone()),
        }
    }
}

/// The seconds that a start and an end mean for nodes alone where no duration is said: all of the time between them, or what is left
/// of it. `None` where one of them is not said, or nothing is left.
pub fn flat_request_seconds_between(
    start: Option<DateTime>,
    end: Option<DateTime>,
    now: Time,
) -> Option<i32> {
    let (start, end) = (start?.ceil(), end?.floor());
    let from = if start > now.seconds() {
        start
    } else {
        now.seconds() + DECIDED_WITHIN
    };
    let seconds = i32::try_from(end.checked_sub(from)?).ok();
    seconds.filter(|seconds| *seconds > 0)
}

impl Request {
    /// This request with its duration said, where a start and an end say it (see [`flat_request_seconds_between`]). The duration of an application is
    /// predicted, and follows from a law of scaling, of the wish or of its template.
    #[must_use]
    pub fn saying_duration(&self, template: &Template, now: Time) -> Self {
        let has_law = self.scheduling.moldability.is_some();
        let follows = self.run.is_some() || has_law || flat_request_has_law(&template.terms);
        let meant = flat_request_seconds_between(self.start, self.end, now).filter(|_| !follows);
        Self {
            duration: self.duration.or(meant),
            ..self.clone()
        }
    }

    /// This request for a change of an offer of nodes alone that says no duration. The duration that it means stays where its window
    /// changes.
    fn keeping_duration(&self, offer: &AgreementOffer, template: Option<&Template>) -> Self {
        let said = Self::of_offer(offer);
        let runs = said.run.is_some() || self.run.is_some();
        let follows = runs || self.scheduling.moldability.is_some() || flat_request_has_law(&offer.terms);
        let is_said = said.duration.or(self.duration).is_some();
        if follows || is_said || self.start.or(self.end).is_none() {
            return self.clone();
        }
        let proposed = template.and_then(|template| {
            let mut descriptions = template.terms.descriptions();
            descriptions.find_map(|description| match &description.content {
                ServiceDescription::AllocationTime(time) => time.duration,
                _ => None,
            })
        });
        Self {
            duration: flat_request_seconds_between(said.start, said.end, Time::MIN).or(proposed),
            ..self.clone()
        }
    }

    /// The offer from a template that asks for it.
    pub fn offer(&self, template: &Template) -> AgreementOffer {
        let name = template.name.clone().unwrap_or_default();
        let mut members = template.terms.all.clone().unwrap_or_default();
        // Of a job whose duration is not said it is predicted, where something is known of it; else that of the template counts.
        let is_sized = self.run.is_some() && self.duration.is_none();
        // These are the requester's alone to say.
        change_flat_request_descriptions(&mut members, &mut |content| match content {
            ServiceDescription::JobDefinition(definition) => {
                (definition.application, definition.staging) = (None, Vec::new());
            }
            ServiceDescription::AllocationTime(window) => {
                (window.start, window.end) = (None, None);
                window.duration = window.duration.filter(|_| !is_sized);
            }
            ServiceDescription::Scheduling(_) | ServiceDescription::Other(_) => {}
        });
        AgreementOffer {
            name: self.name.clone(),
            agreement_id: None,
            context: Context::for_template(template.template_id.clone(), name),
            terms: self.flat_terms_in(members, &template.terms),
        }
    }

    /// An offer with the values of this wish in place of its own. Its other values stay. A term that it left to its template
    /// is named as there.
    pub fn change(&self, offer: &AgreementOffer, template: Option<&Template>) -> AgreementOffer {
        let members = offer.terms.all.clone().unwrap_or_default();
        let wish = self.keeping_duration(offer, template);
        AgreementOffer {
            name: self.name.clone().or_else(|| offer.name.clone()),
            agreement_id: None,
            context: offer.context.clone(),
            terms: wish.flat_terms_in(members, template.map_or(&offer.terms, |template| &template.terms)),
        }
    }

    /// The wish that an offer says. Where the offer leaves a choice, it is the first way to read it.
    pub fn of_offer(offer: &AgreementOffer) -> Self {
        let mut wish = Self {
            name: offer.name.clone(),
            ..Self::default()
        };
        for description in offer.terms.descriptions() {
            match &description.content {
                ServiceDescription::JobDefinition(definition) => {
                    wish.run = wish
                        .run
                        .or_else(|| definition.application.as_ref().map(RequestedJob::of));
                    let sizes = definition.resources.nodes.as_ref();
                    let sizes = sizes.and_then(|range| range.whole_numbers().ok());
                    wish.nodes = wish.nodes.or(sizes.map(|(min, max)| (min, max.unwrap_or(min))));
                    wish.attributes.extend(attributes_of_job(&definition.resources));
                }
                ServiceDescription::AllocationTime(window) => {
                    wish.start = wish.start.or(window.start);
                    wish.end = wish.end.or(window.end);
                    wish.duration = wish.duration.or(window.duration);
                }
                ServiceDescription::Scheduling(scheduling) => wish.scheduling = (**scheduling).clone(),
                ServiceDescription::Other(_) => {}
            }
        }
        wish
    }

    /// The members of an `All` with this in them, and with the terms that it needs besides, named as the template's.
    fn flat_terms_in(&self, mut members: Vec<TermTree>, template: &Terms) -> Terms {
        change_flat_request_descriptions(&mut members, &mut |content| match content {
            ServiceDescription::JobDefinition(definition) => self.job(definition),
            ServiceDescription::AllocationTime(window) => self.time(window),
            ServiceDescription::Scheduling(scheduling) => self.plan(scheduling),
            ServiceDescription::Other(_) => {}
        });
        for (name, content) in self.contents() {
            let known = template
                .descriptions()
                .find(|description| is_same_kind(&description.content, &content));
            let first = known.or_else(|| template.descriptions().next());
            let term = ServiceDescriptionTerm {
                name: known.map_or(name, |known| &known.name).to_owned(),
                service_name: first.map_or_else(String::new, |each| each.service_name.clone()),
                content,
                is_wsag4j: known.is_some_and(|known| known.is_wsag4j),
            };
            add_flat_request_term(&mut members, &term);
        }
        Terms { all: Some(members) }
    }

    /// The contents of terms that say this and nothing else, with the names of the terms where the template has none.
    fn contents(&self) -> Vec<(&'static str, ServiceDescription)> {
        let mut contents = Vec::new();
        let mut definition = JobDefinition::default();
        self.job(&mut definition);
        if definition != JobDefinition::default() || self.staging.is_some() {
            contents.push((JOB_TERM, ServiceDescription::JobDefinition(Box::new(definition))));
        }
        let mut window = AllocationTimeConstraint::default();
        self.time(&mut window);
        if window != AllocationTimeConstraint::default() {
            contents.push((TIME_TERM, ServiceDescription::AllocationTime(window)));
        }
        if self.scheduling != Scheduling::default() {
            let scheduling = Box::new(self.scheduling.clone());
            contents.push((SCHEDULING_TERM, ServiceDescription::Scheduling(scheduling)));
        }
        contents
    }

    fn job(&self, definition: &mut JobDefinition) {
        if let Some(run) = &self.run {
            definition.application = Some(Application {
                name: run.name.clone(),
                version: run.version.clone(),
                description: None,
                posix: Some(PosixApplication {
                    arguments: run.arguments.clone(),
                    ..PosixApplication::default()
                }),
            });
        }
        if let Some(staging) = &self.staging {
            definition.staging.clone_from(staging);
        }
        put_job_attributes(&self.attributes, &mut definition.resources);
        match self.nodes {
            None => {}
            Some((least, greatest)) if least == greatest => {
                definition.resources.nodes = Some(RangeValue::exactly(f64::from(least)));
            }
            Some((least, greatest)) => {
                definition.resources.nodes = Some(RangeValue::between(least.into(), greatest.into()));
            }
        }
    }

    fn time(&self, window: &mut AllocationTimeConstraint) {
        window.start = self.start.or(window.start);
        window.end = self.end.or(window.end);
        // From a law of scaling the duration follows.
        let follows = self.scheduling.moldability.is_some();
        window.duration = self.duration.or(window.duration.filter(|_| !follows));
    }

    fn plan(&self, scheduling: &mut Scheduling) {
        let wish = self.scheduling.clone();
        *scheduling = Scheduling {
            moldability: wish.moldability.or(scheduling.moldability.take()),
            preemption: wish.preemption.or(scheduling.preemption),
            budget: wish.budget.or(scheduling.budget.take()),
            max_deviation: wish.max_deviation.or(scheduling.max_deviation),
            fix_at: wish.fix_at.or(scheduling.fix_at),
            preference: wish.preference.or(scheduling.preference),
            resource: wish.resource.or(scheduling.resource.take()),
            may_change: wish.may_change.or(scheduling.may_change),
        };
    }
}

/// Whether one of these terms has a law of how the duration follows from the number of nodes.
fn flat_request_has_law(terms: &Terms) -> bool {
    terms
        .descriptions()
        .any(|description| match &description.content {
            ServiceDescription::Scheduling(scheduling) => scheduling.moldability.is_some(),
            _ => false,
        })
}

/// Changes every service description in these trees.
pub fn change_flat_request_descriptions(
    trees: &mut [TermTree],
    change: &mut impl FnMut(&mut ServiceDescription),
) {
    for tree in trees {
        match tree {
            TermTree::All(members) | TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) => {
                change_flat_request_descriptions(members, change);
            }
            TermTree::Term(term) => {
                if let Term::ServiceDescription(description) = &mut **term {
                    change(&mut description.content);
                }
            }
        }
    }
}

/// Adds a term to the members of an `All` where they have none of its kind; where only some ways to read them have one, to the
/// others.
fn add_flat_request_term(members: &mut Vec<TermTree>, term: &ServiceDescriptionTerm) {
    match members
        .iter_mut()
        .find(|member| has_term_of_flat_request(member, &term.content))
    {
        None => members.push(TermTree::Term(Box::new(Term::ServiceDescription(term.clone())))),
        Some(TermTree::Term(_)) => {}
        Some(TermTree::All(members)) => add_flat_request_term(members, term),
        Some(TermTree::ExactlyOne(ways) | TermTree::OneOrMore(ways)) => {
            for way in ways {
                let mut both = vec![std::mem::replace(way, TermTree::All(Vec::new()))];
                add_flat_request_term(&mut both, term);
                *way = if both.len() == 1 {
                    both.remove(0)
                } else {
                    TermTree::All(both)
                };
            }
        }
    }
}

/// Whether a tree has a term of this kind.
fn has_term_of_flat_request(tree: &TermTree, content: &ServiceDescription) -> bool {
    match tree {
        TermTree::All(members) | TermTree::ExactlyOne(members) | TermTree::OneOrMore(members) => members
            .iter()
            .any(|member| has_term_of_flat_request(member, content)),
        TermTree::Term(term) => {
            matches!(&**term, Term::ServiceDescription(description) if is_same_kind(&description.content, content))
        }
    }
}

fn is_same_kind(one: &ServiceDescription, other: &ServiceDescription) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

#[cfg(test)]
mod tests;
