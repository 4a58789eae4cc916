//! From an offer's document to a request that can be planned: the terms are found, the application and its arguments
//! looked up in the catalogue, the window computed. Everything wrong is collected, each with the path of its element.

mod bounds;
mod change_of_running;
mod labels;
mod pieces;
mod staging;

use std::sync::Arc;

use scheduler::{Seconds, Time, counted};
use uuid::Uuid;
use wsag::agreements::{AgreementOffer, Role};
use wsag::guard::GuardError;
use wsag::job_definition::{JobDefinition, RangeValue};
use wsag::scheduling::{self, AllocationTimeConstraint, Moldability, Scheduling};
use wsag::terms::{
    ALTERNATIVES_MAX, Alternative, KNOWN_CONTENTS, OtherContent, ServiceDescription, Term, path_of_term,
    path_of_term_content,
};
use wsag::{Document, UnchosenTerms, ValuePlaces, Violation, ViolationKind, Violations, ns};

pub(crate) use labels::{can_be_agreement_id, wrong_labels};

use domain::agreement::{Agreement, Currency, Filter, Job, Money, Shape, ShapeChanges};
use domain::request::flat_request_seconds_between;
use domain::request::job_attributes::filters_of_job;
use domain::resources::Scaling;
use planner::Request;

use self::change_of_running::check_change_of_running;
use super::sizes;
use crate::codec::members::error_told_in_members;
use crate::error::violation_at_path;
use crate::predictions::predict_slot;
use crate::templates::OfferedTemplate;
use crate::{Error, Result, Service};

/// The data for the check of an offer.
pub(crate) struct OfferCheck<'a> {
    pub(crate) service: &'a Service,
    pub(crate) document: &'a Document<'a>,
    party: &'a str,
    pub(crate) offer: &'a AgreementOffer,
    pub(crate) offered: &'a OfferedTemplate,
    /// One way to read an offer that leaves a choice: the terms that hold.
    way: &'a Alternative<'a>,
    /// The job among the terms that hold.
    definition: Option<&'a JobDefinition>,
    /// The time among the terms that hold.
    time: Option<&'a AllocationTimeConstraint>,
    /// The scheduling among the terms that hold.
    scheduling: Option<&'a Scheduling>,
    pub(crate) left_out: UnchosenTerms,
    pub(crate) now: Time,
    /// The agreement that it would replace, where that one's slot has begun.
    begun: Option<&'a Agreement>,
    pub(crate) found: Vec<Violation>,
}

/// Checks an offer that was read from `document` against its template, the catalogue and the present, and makes the
/// request of it. An offer that leaves a choice makes a request for each valid way to read it, in the requester's
/// order. If it replaces an agreement with a slot that has begun, the parts that cannot change any more must be
/// equal.
pub(crate) fn requests_of_offer_document(
    service: &Service,
    document: &Document<'_>,
    offer: &AgreementOffer,
    party: &str,
    replaced: Option<&Agreement>,
) -> Result<Vec<Request>> {
    let Some(alternatives) = offer.terms.alternatives() else {
        let message =
            format!("choices between terms that can be read in at most {ALTERNATIVES_MAX} ways are expected");
        return Err(
            violation_at_path(document.path_outside_unknown_terms(ns::WSAG, "Terms", 0), message).into(),
        );
    };
    let offered = template_for_offer_check(service, document, offer)?;
    let mut requests = Vec::new();
    let mut first_wrong = None;
    for way in &alternatives {
        // Each is checked as if it were the offer: what is wrong with a term that is not chosen is wrong with other ways only.
        let left_out = way.left_out(&offer.terms, document, alternatives.len());
        let mut found = wsag::rules::check_rules_of_way(document, &left_out);
        found.extend(offered.compiled.check_way(document, way, &left_out));
        let check = OfferCheck {
            service,
            document,
            party,
            offer,
            offered: &offered,
            way,
            definition: None,
            time: None,
            scheduling: None,
            now: service.clock.now(),
            begun: replaced.filter(|agreement| agreement.is_being_carried_out()),
            left_out,
            found,
        };
        match check.request() {
            Ok(request) => requests.push(request),
            Err(why) => first_wrong = first_wrong.or(Some(why)),
        }
    }
    // There is always one way at least.
    match first_wrong {
        Some(why) if requests.is_empty() => Err(why),
        _ => Ok(requests),
    }
}

/// Checks an offer that was composed here from its maker's input, with the places of the input in `places`, and makes the requests of it.
pub(crate) fn requests_of_offer(
    service: &Service,
    offer: &AgreementOffer,
    places: &ValuePlaces,
    party: &str,
    replaced: Option<&Agreement>,
) -> Result<Vec<Request>> {
    let made = offer.make();
    let document =
        Document::made(&made, places).map_err(|why| violation_of_unwritable_offer(places, &why))?;
    let requests = requests_of_offer_document(service, &document, offer, party, replaced);
    requests.map_err(|why| error_told_in_members(places, why))
}

/// The template that an offer names.
fn template_for_offer_check(
    service: &Service,
    document: &Document<'_>,
    offer: &AgreementOffer,
) -> Result<Arc<OfferedTemplate>> {
    let context = &offer.context;
    let known = || {
        let offered = service.templates.now();
        let ids = offered.all().map(|offered| offered.view.id.as_str());
        ids.collect::<Vec<_>>().join(", ")
    };
    let refused = |element: &str, message: String| {
        Err(violation_at_path(document.path_outside_unknown_terms(ns::WSAG, element, 0), message).into())
    };
    let Some(id) = &context.template_id else {
        let message = "wsag:TemplateId is expected: an offer is made from a template; offered are";
        return refused("Context", format!("{message} {}", known()));
    };
    let Some(name) = &context.template_name else {
        let message = "wsag:TemplateName is expected: an offer names its template by id and name";
        return refused("Context", message.to_owned());
    };
    let Some(offered) = service.templates.get(id) else {
        let message = format!("there is no template {id:?}; offered are {}", known());
        return refused("TemplateId", message);
    };
    if offered.view.name != *name {
        let message = format!(
            "the template {id:?} is named {:?}, not {name:?}",
            offered.view.name
        );
        return refused("TemplateName", message);
    }
    Ok(offered)
}

impl OfferCheck<'_> {
    /// The request that this way to read the offer makes.
    fn request(mut self) -> Result<Request> {
        self.found.extend(wrong_labels(self.document, self.offer));
        self.context();
        self.find_terms();
        let job = self.definition.and_then(|definition| self.job(definition));
        let mut filters = self
            .definition
            .map_or_else(Vec::new, |definition| filters_of_job(&definition.resources));
        let resource = self
            .scheduling
            .and_then(|scheduling| scheduling.resource.as_ref());
        filters.extend(resource.map(|name| Filter::of_resource(name)));
        let mut request = self.sizes_and_window(job.as_ref());
        if let Some(begun) = self.begun {
            check_change_of_running(&mut self, begun, request.as_mut(), job.as_ref(), &filters);
        }
        let preemption = self.preemption_in_pieces(job.as_ref(), request.as_ref());
        let guarantees = self.guarantees();
        let budget = self.budget();
        let found = std::mem::take(&mut self.found);
        let Some(request) = request.filter(|_| found.is_empty()) else {
            return Err(Error::Invalid(Violations::of(found)));
        };
        let fix_at = self.scheduling.and_then(|scheduling| scheduling.fix_at);
        let deviation = self.scheduling.and_then(|scheduling| scheduling.max_deviation);
        let may_change = self.scheduling.and_then(|scheduling| scheduling.may_change);
        let mut request = Request {
            name: self.offer.name.clone(),
            initiator_id: self.offer.agreement_id.clone(),
            template: self.offered.view.id.clone(),
            preemption,
            shape_changes: may_change.map(shape_changes_in_offer),
            filters,
            fix_at_ppm: fix_at.map(sizes::millionths),
            deviation_max: deviation.map(sizes::size_fraction_of_ratio),
            job,
            guarantees,
            budget,
            choices: self.way.choices.clone(),
            ..request
        };
        self.service.planner.foresee(&request);
        self.keep_within_bounds(&mut request)?;
        Ok(request)
    }

    /// Notes a violation at the `nth` element of this name, or at the root where there is none.
    pub(crate) fn violation(&mut self, namespace: &str, local: &str, nth: usize, message: impl Into<String>) {
        let path = self.document.path_outside_unknown_terms(namespace, local, nth);
        self.found.push(violation_at_path(path, message));
    }

    /// Notes a violation at the `nth` term of the offer.
    fn wrong_term(&mut self, nth: usize, message: String) {
        self.found
            .push(violation_at_path(path_of_term(self.document, nth), message));
    }

    fn not_offered(&mut self, namespace: &str, local: &str, message: &str) {
        self.found.push(Violation {
            kind: ViolationKind::NotSupported,
            ..violation_at_path(
                self.document.path_outside_unknown_terms(namespace, local, 0),
                message,
            )
        });
    }

    /// When its agreement expires.
    fn expires(&self) -> Option<Time> {
        let at = self.offer.context.expiration_time?;
        Some(Time(at.floor()))
    }

    fn context(&mut self) {
        let context = &self.offer.context;
        if context.service_provider != Role::AgreementResponder {
            let message = "AgreementResponder is expected: the service provides";
            self.violation(ns::WSAG, "ServiceProvider", 0, message);
        }
        if context
            .expiration_time
            .is_some_and(|at| at.floor() <= self.now.seconds())
        {
            let message = "an instant in the future is expected";
            self.violation(ns::WSAG, "ExpirationTime", 0, message);
        }
    }

    /// Finds the terms, each of which must be one of the template's; how to schedule may be said in any offer.
    fn find_terms(&mut self) {
        let offer = self.offer;
        for (nth, term) in offer.terms.flatten().into_iter().enumerate() {
            if matches!(term, Term::Guarantee(_)) || !self.is_chosen(term) {
                continue;
            }
            let optional = matches!(
                term,
                Term::ServiceDescription(description) if matches!(description.content, ServiceDescription::Scheduling(_))
            );
            let is_in_template = self.is_in_template(term);
            let other = match term {
                Term::ServiceDescription(description) => description.content.other(),
                _ => None,
            };
            match other {
                _ if optional || is_in_template => {}
                Some(other) => self.unknown_content(nth, other),
                None => self.not_in_template(nth, term),
            }
            let Term::ServiceDescription(description) = term else {
                continue;
            };
            let (is_another, what) = match &description.content {
                ServiceDescription::JobDefinition(job) => {
                    (self.definition.replace(job).is_some(), "jsdl:JobDefinition")
                }
                ServiceDescription::AllocationTime(time) => {
                    (self.time.replace(time).is_some(), "arp:AllocationTimeConstraint")
                }
                ServiceDescription::Scheduling(scheduling) => {
                    (self.scheduling.replace(scheduling).is_some(), "bsp:Scheduling")
                }
                ServiceDescription::Other(_) => continue,
            };
            if is_another {
                let message = format!("one {what} is expected, this is another");
                self.wrong_term(nth, message);
            }
        }
        if self.definition.is_none() {
            let message = "a ServiceDescriptionTerm with a jsdl:JobDefinition is expected";
            self.violation(ns::WSAG, "Terms", 0, message);
        }
    }

    fn not_in_template(&mut self, nth: usize, term: &Term) {
        let message = format!(
            "the template has no term named {:?} for this service; it has {}",
            term.name(),
            self.template_names()
        );
        self.wrong_term(nth, message);
    }

    /// Notes that the content of the `nth` term is in a language that is not known, and not declared by the template.
    fn unknown_content(&mut self, nth: usize, content: &OtherContent) {
        let message = format!(
            "not a term that is known here: {KNOWN_CONTENTS} is expected, or what a term of the template of this name has in it, \
             and the template has no {} of {:?} there",
            content.local, content.namespace
        );
        self.found.push(Violation {
            kind: ViolationKind::UnknownTerm,
            ..violation_at_path(path_of_term_content(self.document, nth), message)
        });
    }

    /// Whether a term of the offer is among the chosen ones.
    pub(crate) fn is_chosen(&self, term: &Term) -> bool {
        self.way.terms.iter().any(|chosen| std::ptr::eq(*chosen, term))
    }

    /// Whether the template has a term of the same kind, name and service; of properties, the same term; of a description in a
    /// language that is not known, one with the same element.
    fn is_in_template(&self, term: &Term) -> bool {
        let service = |term: &Term| match term {
            Term::ServiceDescription(description) => description.service_name.clone(),
            Term::ServiceReference(reference) => reference.service_name.clone(),
            Term::ServiceProperties(properties) => properties.service_name.clone(),
            Term::Guarantee(_) => String::new(),
        };
        let other = |term: &Term| match term {
            Term::ServiceDescription(description) => {
                let other = description.content.other();
                other.map(|content| (content.namespace.clone(), content.local.clone()))
            }
            _ => None,
        };
        let is_alike = |known: &Term| {
            std::mem::discriminant(known) == std::mem::discriminant(term)
                && known.name() == term.name()
                && service(known) == service(term)
                // Their variables mean what they mean in the template.
                && (known == term || !matches!(term, Term::ServiceProperties(_)))
                && (other(term).is_none() || other(known) == other(term))
        };
        self.offered.template.terms.flatten().into_iter().any(is_alike)
    }

    fn template_names(&self) -> String {
        let terms = self.offered.template.terms.flatten();
        terms.into_iter().map(Term::name).collect::<Vec<_>>().join(", ")
    }

    /// The job to run; none where only nodes are reserved.
    fn job(&mut self, definition: &JobDefinition) -> Option<Job> {
        let Some(wanted) = &definition.application else {
            self.no_staging(definition);
            return None;
        };
        let service = self.service;
        let catalogue = service.catalogue();
        let Some(application) = catalogue.find(&wanted.name, wanted.version.as_deref()) else {
            let known: Vec<_> = catalogue
                .applications()
                .iter()
                .map(|application| application.name.as_str())
                .collect();
            let version = wanted
                .version
                .as_deref()
                .map_or_else(String::new, |version| format!(" {version:?}"));
            let message = format!(
                "the application {:?}{version} is not in the catalogue; it has {}",
                wanted.name,
                known.join(", ")
            );
            self.violation(ns::JSDL, "ApplicationName", 0, message);
            return None;
        };
        let arguments = wanted
            .posix
            .as_ref()
            .map_or_else(Vec::new, |posix| posix.arguments.clone());
        if let Err(wrong) =
            application.check(&arguments, |name| service.files.find(self.party, name).is_some())
        {
            let message = wrong.to_string();
            if wrong.index < arguments.len() {
                self.violation(ns::JSDL_POSIX, "Argument", wrong.index, message);
            } else {
                self.violation(ns::JSDL, "Application", 0, message);
            }
        }
        // Both outputs are captured, under names of their own.
        if wanted.posix.as_ref().is_some_and(|posix| posix.input.is_some()) {
            let message = "standard input is empty: name the file in an argument";
            self.not_offered(ns::JSDL_POSIX, "Input", message);
        }
        let named = application.files(&arguments);
        let staging = self.staging(definition, &named);
        Some(Job {
            application: application.name.clone(),
            version: application.version.clone(),
            uploaded_bytes: self.uploaded_and_staged_bytes(&named, &staging),
            staging,
            arguments,
            ..Job::default()
        })
    }

    /// The request with its nodes, its duration and its window, and with nothing else of the offer. The template's defaults count
    /// where the offer is silent. None where the rules of offers are broken already.
    fn sizes_and_window(&mut self, job: Option<&Job>) -> Option<Request> {
        let defaults = self.offered.defaults();
        let mut time = self.time.copied().unwrap_or_default();
        let law = self
            .scheduling
            .and_then(|scheduling| scheduling.moldability.as_ref());
        let sizes = self
            .definition
            .and_then(|definition| definition.resources.nodes.as_ref());
        if let Some(limit) = self.definition.and_then(wall_time_limit_of_offer) {
            let least = time.duration.unwrap_or(1);
            if law.is_some() || limit < least {
                let message = format!(
                    "at least {least} is expected, the length of the slot, and none beside bsp:Moldability"
                );
                self.violation(ns::JSDL_POSIX, "WallTimeLimit", 0, message);
            } else {
                // As batch systems take it: for so long the job has its nodes.
                time.duration.get_or_insert(limit);
            }
        }
        let (shapes, scaling) = if let Some(law) = law {
            let shapes = self.shapes_in_offer(law, sizes, defaults.nodes, time.duration)?;
            (shapes, Scaling::ReferenceRate)
        } else {
            // Without a law of how the duration changes with the size, the least size is as good as any.
            let nodes = match sizes {
                Some(range) => range.whole_numbers().ok()?.0,
                None => defaults.nodes,
            };
            // A learned duration is that of the work, on each resource its own; a stated duration is a contract.
            let begun = self.begun.map(|begun| begun.duration);
            let (duration, scaling) = match (
                time.duration.map(Seconds::from).or(begun),
                job.and_then(|job| predict_slot(self.service, self.party, self.offered, job, nodes)),
            ) {
                (Some(said), _) => (said, Scaling::Contract),
                (None, Some(learned)) => learned,
                (None, None) => {
                    let between = flat_request_seconds_between(time.start, time.end, self.now);
                    let meant = between.filter(|_| job.is_none()).map(Seconds::from);
                    (meant.unwrap_or(defaults.duration), Scaling::Contract)
                }
            };
            (vec![Shape { nodes, duration }], scaling)
        };
        let duration = shapes.iter().map(|shape| shape.duration).min().unwrap_or(0);
        // Windows round inward.
        let ready = time.start.map(|start| Time(start.ceil()));
        // No slot goes on after the agreement has expired.
        let deadline = time.end.map(|end| Time(end.floor()));
        let deadline = deadline.map(|end| self.expires().map_or(end, |at| at.min(end)));
        // A length that is none is a violation already, and says nothing about the window.
        // Nor does one that faster nodes may undercut.
        let contracted = scaling == Scaling::Contract && duration > 0 && self.begun.is_none();
        if contracted
            && deadline
                .or(self.expires())
                .is_some_and(|end| end - duration < self.now)
        {
            let message = format!(
                "the window is in the past: it has to end {} from now or later",
                counted(duration, "second")
            );
            self.violation(ns::ARP, "EndTime", 0, message);
        }
        Some(Request {
            scaling,
            ready,
            deadline,
            expires: self.expires(),
            // An offer that becomes an agreement is given its words where it is taken.
            ..Request::new(Uuid::now_v7(), self.party, shapes)
        })
    }

    /// The sizes that a law of scaling allows, with the durations on them; none where they are wrong.
    fn shapes_in_offer(
        &mut self,
        law: &Moldability,
        sizes: Option<&RangeValue>,
        otherwise: u32,
        duration: Option<i32>,
    ) -> Option<Vec<Shape>> {
        if duration.is_some() {
            let message = "the duration follows from bsp:Moldability: no arp:Duration is expected beside it";
            self.violation(ns::ARP, "Duration", 0, message);
        }
        let exactly = RangeValue::exactly(f64::from(otherwise));
        let found = sizes::sizes_of_range(law, sizes.unwrap_or(&exactly), self.service.templates.capacity());
        found
            .map_err(|message| self.violation(ns::BSP, "Moldability", 0, message))
            .ok()
    }

    /// Its budget: an amount in the currency of the price list. Where nothing is priced any budget will do.
    fn budget(&mut self) -> Option<Money> {
        let budget = self.scheduling?.budget.as_ref()?;
        let currency = Currency::parse(&budget.currency)?;
        let charged = self.service.templates.currency();
        if let Some(charged) = charged.filter(|charged| *charged != currency) {
            let message = format!("prices are in {charged}, a budget in that currency is expected");
            self.violation(ns::BSP, "Currency", 0, message);
        }
        Some(Money::new(budget.amount_micros, currency))
    }
}

/// What an offer says may still change of its shape; the instant is rounded inward.
fn shape_changes_in_offer(said: scheduling::ShapeChanges) -> ShapeChanges {
    ShapeChanges {
        sizes: said.sizes,
        cuts: said.cuts,
        until: said.until.map(wsag::time::DateTime::floor),
    }
}

/// Most seconds that a job may run by its own words, or the most that a slot may have.
fn wall_time_limit_of_offer(job: &JobDefinition) -> Option<i32> {
    let limit = job.application.as_ref()?.posix.as_ref()?.wall_time_limit?;
    Some(i32::try_from(limit).unwrap_or(i32::MAX))
}

/// The one way to read an offer that leaves no choice.
pub(crate) fn only_request_of_offer(requests: Vec<Request>) -> Result<Request> {
    let first = requests.into_iter().next();
    first.ok_or_else(|| Error::Internal("an offer can be read in no way".to_owned()))
}

/// The fault of an offer that no document can carry.
pub(crate) fn violation_of_unwritable_offer(places: &ValuePlaces, why: &GuardError) -> Violation {
    violation_at_path(
        places.root(),
        format!("it cannot be written into a document: {why}"),
    )
}
