//! The wish of a request in any form, and the offer that asks for it: a template's terms with the wish in them. A flat
//! request in JSON and the form of the portal become offers here, and are checked, shown and stored as any other.

use wsag::agreements::{AgreementOffer, Context};
use wsag::allocation::AllocationTimeConstraint;
use wsag::job::{Application, JobDefinition, PosixApplication, RangeValue};
use wsag::scheduling::Scheduling;
use wsag::templates::Template;
use wsag::terms::{ServiceDescription, ServiceDescriptionTerm, Term, TermTree, Terms};
use wsag::time::DateTime;

/// Name of the term that says how a request may be planned, where the template has none.
const SCHEDULING_TERM: &str = "SCHEDULING";

/// The wish. The template gives the members that it leaves out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlatRequest {
    /// For the requester's own list.
    pub name: Option<String>,
    /// The job to run; none where only nodes are reserved.
    pub run: Option<Run>,
    /// How many nodes, least and greatest.
    pub nodes: Option<(u32, u32)>,
    /// Earliest start.
    pub start: Option<DateTime>,
    /// Latest completion.
    pub end: Option<DateTime>,
    /// For how many seconds.
    pub duration: Option<i32>,
    /// How it may be planned.
    pub scheduling: Scheduling,
}

/// An application of the catalogue and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// Its version, where one is asked for.
    pub version: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl FlatRequest {
    /// The offer from a template that asks for it.
    pub fn offer(&self, template: &Template) -> AgreementOffer {
        let name = template.name.clone().unwrap_or_default();
        let mut members: Vec<_> = template
            .terms
            .all
            .iter()
            .flatten()
            .map(|tree| self.filled(tree))
            .collect();
        let plans = |term: &ServiceDescriptionTerm| matches!(term.content, ServiceDescription::Scheduling(_));
        if self.scheduling != Scheduling::default() && !template.terms.descriptions().any(plans) {
            let service = template.terms.descriptions().next();
            let term = ServiceDescriptionTerm {
                name: SCHEDULING_TERM.to_owned(),
                service_name: service.map_or_else(String::new, |of| of.service_name.clone()),
                content: ServiceDescription::Scheduling(Box::new(self.scheduling.clone())),
            };
            members.push(TermTree::Term(Box::new(Term::ServiceDescription(term))));
        }
        AgreementOffer {
            name: self.name.clone(),
            agreement_id: None,
            context: Context::for_template(template.template_id.clone(), name),
            terms: Terms { all: Some(members) },
        }
    }

    /// An offer with the values of this wish in place of its own. Its other values stay.
    pub fn change(&self, offer: &AgreementOffer) -> AgreementOffer {
        let mut wish = self.clone();
        for term in offer.terms.descriptions() {
            match &term.content {
                ServiceDescription::JobDefinition(job) => {
                    let run = job.application.as_ref().map(|of| Run {
                        name: of.name.clone(),
                        version: of.version.clone(),
                        arguments: of
                            .posix
                            .as_ref()
                            .map_or_else(Vec::new, |posix| posix.arguments.clone()),
                    });
                    wish.run = wish.run.or(run);
                }
                ServiceDescription::AllocationTime(time) => {
                    wish.start = wish.start.or(time.start);
                    wish.end = wish.end.or(time.end);
                }
                ServiceDescription::Scheduling(_) => {}
            }
        }
        let members = offer.terms.all.iter().flatten().map(|tree| wish.filled(tree));
        AgreementOffer {
            name: wish.name.clone().or_else(|| offer.name.clone()),
            agreement_id: None,
            context: offer.context.clone(),
            terms: Terms {
                all: Some(members.collect()),
            },
        }
    }

    fn filled(&self, tree: &TermTree) -> TermTree {
        let all = |members: &[TermTree]| members.iter().map(|tree| self.filled(tree)).collect();
        match tree {
            TermTree::All(members) => TermTree::All(all(members)),
            TermTree::ExactlyOne(members) => TermTree::ExactlyOne(all(members)),
            TermTree::OneOrMore(members) => TermTree::OneOrMore(all(members)),
            TermTree::Term(term) => {
                let mut term = term.clone();
                if let Term::ServiceDescription(description) = &mut *term {
                    match &mut description.content {
                        ServiceDescription::JobDefinition(definition) => self.job(definition),
                        ServiceDescription::AllocationTime(window) => self.time(window),
                        ServiceDescription::Scheduling(scheduling) => self.plan(scheduling),
                    }
                }
                TermTree::Term(term)
            }
        }
    }

    fn job(&self, definition: &mut JobDefinition) {
        definition.application = self.run.as_ref().map(|run| Application {
            name: run.name.clone(),
            version: run.version.clone(),
            posix: Some(PosixApplication {
                arguments: run.arguments.clone(),
                ..PosixApplication::default()
            }),
        });
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
        window.start = self.start;
        window.end = self.end;
        window.duration = self.duration.or(window.duration);
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
        };
    }
}
