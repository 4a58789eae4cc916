//! The templates that are offered: read and compiled at start, and again when the configuration or the resources have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::agreement::{Currency, Job};
use domain::resources::{Resource, Scaling};
use planner::{Pricing, Settings};
use prediction::{Knowledge, Work};
use scheduler::prediction::SLOT_PROBABILITY;
use scheduler::{Seconds, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use uuid::Uuid;
use wsag::agreements::Role;
use wsag::constraints::CompiledTemplate;
use wsag::templates::Template;
use wsag::terms::ServiceDescription;
use wsag::{Document, Message};

use crate::request::guarantee_values::values_of_guarantee;

/// The template offered where the configuration names none.
const BUILT_IN: &str = include_str!("../../../templates/agreements/advance-reservation.xml");

/// The template offered besides where there is a price list.
const GUARANTEED: &str = include_str!("../../../templates/agreements/guaranteed-reservation.xml");

/// A template, ready for offers.
pub(super) struct OfferedTemplate {
    pub(super) view: TemplateView,
    pub(super) template: Template,
    pub(super) compiled: CompiledTemplate,
    pub(super) document: String,
    /// The values that offers are made of, as they are kept with its version.
    kept: String,
    /// Words that name it in a message.
    what: String,
    /// Its version, which a change of it changes: the beginning of the digest of what is kept of it.
    pub(super) version: Uuid,
    /// The probability that a slot is long enough for its work, where an offer names no duration.
    pub(super) slot_probability: f64,
    /// By how much its slots are made longer for work that is not over, in percent, where it says that.
    overrun_percent: Option<u32>,
    on_loss: OnLoss,
}

/// A template as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateText {
    /// Words that name it in a message.
    pub what: String,
    /// Its document.
    pub text: Vec<u8>,
    /// The probability that a slot is long enough for its work, where an offer names no duration.
    pub slot_probability: f64,
    /// By how much its slots are made longer for work that is not over, in percent; the provider's own bound where it does
    /// not say.
    pub overrun_percent: Option<u32>,
    /// The handling of lost work.
    pub on_loss: OnLoss,
}

/// The handling of work that is lost with its nodes, or without a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLoss {
    /// It has failed, and so has its agreement.
    #[default]
    Fail,
    /// It is run again from its start, where there is a place for it in its window.
    Restart,
}

/// The templates that are offered.
pub struct Templates {
    /// As they were configured; none for the built-in ones.
    texts: Vec<TemplateText>,
    offered: Vec<Arc<OfferedTemplate>>,
    /// The price list; none where nothing is priced.
    pricing: Option<Pricing>,
    /// The nodes of the largest resource.
    capacity: u32,
    /// The resource that offers are placed on, where there is only one.
    resource: Option<String>,
}

/// The templates that are offered at the moment: cheap to clone, and one for all clones.
#[derive(Clone)]
pub(super) struct OfferedTemplates(watch::Sender<Arc<Templates>>);

impl OfferedTemplates {
    pub(super) fn of(templates: Templates) -> Self {
        Self(watch::Sender::new(Arc::new(templates)))
    }

    /// All of them as they are now.
    pub(super) fn now(&self) -> Arc<Templates> {
        Arc::clone(&self.0.borrow())
    }

    /// Offers others from now on.
    pub(super) fn replace(&self, templates: Templates) {
        self.0.send_replace(Arc::new(templates));
    }

    /// The one that is meant where none is named.
    pub(super) fn first(&self) -> Option<Arc<OfferedTemplate>> {
        self.0.borrow().offered.first().cloned()
    }

    /// The template that is offered in this version.
    pub(super) fn version(&self, version: Uuid) -> Option<Arc<OfferedTemplate>> {
        let now = self.0.borrow();
        now.offered
            .iter()
            .find(|offered| offered.version == version)
            .cloned()
    }

    /// The template with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<OfferedTemplate>> {
        let now = self.0.borrow();
        now.offered.iter().find(|offered| offered.view.id == id).cloned()
    }

    /// The currency of all prices; none where nothing is priced.
    pub(super) fn currency(&self) -> Option<Currency> {
        self.0.borrow().pricing().map(|pricing| pricing.currency)
    }

    /// The nodes of the largest resource.
    pub(super) fn capacity(&self) -> u32 {
        self.0.borrow().capacity
    }
}

impl Templates {
    /// Reads templates; the built-in one, with its node count bounded by the largest resource, where there are none.
    ///
    /// # Errors
    /// A sentence that names the template and its fault.
    pub fn load(texts: &[TemplateText], settings: &Settings) -> Result<Self, String> {
        Self::offered_on(texts, settings.pricing.as_ref(), &settings.resources)
    }

    /// The same templates where there are these resources.
    ///
    /// # Errors
    /// As [`Templates::load`], though none is expected: they have been read before.
    pub(super) fn fitted_to(&self, resources: &[Resource]) -> Result<Self, String> {
        Self::offered_on(&self.texts, self.pricing.as_ref(), resources)
    }

    /// The price list; none where nothing is priced.
    pub(super) fn pricing(&self) -> Option<&Pricing> {
        self.pricing.as_ref()
    }

    /// Whether other resources change nothing.
    pub(super) fn fit(&self, resources: &[Resource]) -> bool {
        (self.capacity, &self.resource)
            == (
                most_nodes_for_templates(resources),
                &only_resource_for_templates(resources),
            )
    }

    fn offered_on(
        texts: &[TemplateText],
        pricing: Option<&Pricing>,
        resources: &[Resource],
    ) -> Result<Self, String> {
        let currency = pricing.map(|pricing| pricing.currency);
        let (capacity, configured) = (most_nodes_for_templates(resources), texts.to_vec());
        let is_built_in = texts.is_empty();
        let texts = match texts {
            // Guarantees that are worth a part of the price, where there are prices.
            [] => [Some(BUILT_IN), currency.map(|_| GUARANTEED)]
                .into_iter()
                .flatten()
                .map(built_in_template)
                .collect(),
            configured => configured.to_vec(),
        };
        let mut offered: Vec<Arc<OfferedTemplate>> = Vec::new();
        for text in texts {
            let what = &text.what;
            let mut template = read_template(&text.text).map_err(|why| format!("{what}: {why}"))?;
            if is_built_in {
                template = template.with_nodes_max(capacity.max(1));
            }
            if template.name.is_none() {
                return Err(format!(
                    "{what}: it has no wsag:Name; offers name their template by its TemplateId and its Name"
                ));
            }
            let next = OfferedTemplate::new(template, &text);
            let compiled = &next.compiled;
            let contradictions = compiled.contradictions();
            let wrong = compiled.unbound().iter().chain(compiled.unknown_types());
            if let Some(why) = wrong.chain(&contradictions).next() {
                return Err(format!("{what}: {why}"));
            }
            if offered.iter().any(|other| other.view.id == next.view.id) {
                return Err(format!(
                    "{what}: its TemplateId {:?} is that of another template",
                    next.view.id
                ));
            }
            if let Some(why) = why_never_accepted(&next.template, currency) {
                return Err(format!("{what}: no offer of it could be accepted: {why}"));
            }
            for term in next.template.terms.descriptions() {
                if let Some(other) = term.content.other() {
                    tracing::warn!(
                        template = next.view.id,
                        term = term.name,
                        "{what}: its term {:?} has {} of {:?}, which is in no language that is known: it is kept, and it \
                         decides nothing",
                        term.name,
                        other.local,
                        other.namespace
                    );
                }
            }
            for why in next.compiled.problems() {
                tracing::warn!(
                    template = next.view.id,
                    "{what}: {why}; offers from it will be refused"
                );
            }
            offered.push(Arc::new(next));
        }
        Ok(Self {
            texts: configured,
            offered,
            pricing: pricing.cloned(),
            capacity,
            resource: only_resource_for_templates(resources),
        })
    }

    /// Why no offer of one of the templates can be accepted any more, where its own time is over.
    pub fn why_expired(&self, now: Time) -> Option<String> {
        let is_over = |template: &&OfferedTemplate| {
            let expires = template.template.context.expiration_time;
            expires.is_some_and(|at| at.floor() <= now.seconds())
        };
        let over = self.all().find(is_over)?;
        Some(format!(
            "{}: no offer of it can be accepted: its wsag:ExpirationTime is over; a later one is expected, or none",
            over.what
        ))
    }

    /// By how much slots of templates that say it are made longer for work that is not over, in percent, by their ids.
    pub fn overruns(&self) -> BTreeMap<String, u32> {
        let percent =
            |template: &OfferedTemplate| Some((template.view.id.clone(), template.overrun_percent?));
        self.all().filter_map(percent).collect()
    }

    /// The ids of the templates that allow a restart of lost work.
    pub fn restarting(&self) -> BTreeSet<String> {
        let restarts = self.all().filter(|each| each.on_loss == OnLoss::Restart);
        restarts.map(|restart| restart.view.id.clone()).collect()
    }

    /// The duration in seconds of offers that name none, from the first template.
    pub fn duration(&self) -> Seconds {
        self.offered
            .first()
            .map_or(DURATION_DEFAULT, |offered| offered.defaults().duration)
    }

    /// The probability with which slots of offers that name no duration hold their work, from the first template.
    pub fn slot_probability(&self) -> f64 {
        self.offered
            .first()
            .map_or(SLOT_PROBABILITY, |offered| offered.slot_probability)
    }

    /// The seconds at the reference rate that hold a job of a party with a probability, where any of its application has been seen,
    /// and what they mean: each resource is foreseen by itself, unless estimates decide nothing.
    pub fn sized(
        &self,
        known: &Knowledge,
        (party, job): (&str, &Job),
        nodes: u32,
        probability: f64,
    ) -> Option<(Seconds, Scaling)> {
        let work = Work {
            resource: self.resource.as_deref(),
            ..Work::of_job(party, job, nodes)
        };
        let seconds = known.slot(&work, probability)?;
        let scaling = match known.deciding_ladder() {
            Some(_) => Scaling::Predicted(millionths(probability)),
            None => Scaling::ReferenceRate,
        };
        Some((seconds, scaling))
    }

    /// Their ids.
    pub fn ids(&self) -> Vec<&str> {
        self.all().map(|each| each.view.id.as_str()).collect()
    }

    /// Every template.
    pub(super) fn all(&self) -> impl Iterator<Item = &OfferedTemplate> {
        self.offered.iter().map(Arc::as_ref)
    }

    /// The versions of the offered templates, each with what is kept of it.
    pub fn versions(&self) -> Vec<(Uuid, &str)> {
        self.all()
            .map(|template| (template.version, template.kept.as_str()))
            .collect()
    }
}

/// The nodes of the largest resource in service; 1 where there is none, since a template asks for nodes.
fn most_nodes_for_templates(resources: &[Resource]) -> u32 {
    let in_service = resources.iter().filter(|resource| !resource.is_retired());
    in_service.map(|each| each.capacity).max().unwrap_or(1)
}

/// The name of the only resource in service.
fn only_resource_for_templates(resources: &[Resource]) -> Option<String> {
    let mut in_service = resources
        .iter()
        .filter(|resource| !resource.is_retired() && !resource.is_peer());
    let first = in_service.next()?;
    in_service.next().is_none().then(|| first.name.clone())
}

/// A probability in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a probability, so at most a million"
)]
pub fn millionths(probability: f64) -> u32 {
    (probability.clamp(0.0, 1.0) * 1e6).round() as u32
}

/// A template that is offered where the configuration names none.
fn built_in_template(text: &str) -> TemplateText {
    TemplateText {
        what: "a built-in template".to_owned(),
        text: text.into(),
        slot_probability: SLOT_PROBABILITY,
        overrun_percent: None,
        on_loss: OnLoss::Fail,
    }
}

/// Why no offer of a template can be accepted, whenever it comes, where that is so.
fn why_never_accepted(template: &Template, currency: Option<Currency>) -> Option<String> {
    if template.context.service_provider != Role::AgreementResponder {
        let why = "its wsag:ServiceProvider is AgreementInitiator, and the service provides: AgreementResponder is expected";
        return Some(why.to_owned());
    }
    let is_job =
        |description: &ServiceDescription| matches!(description, ServiceDescription::JobDefinition(_));
    if !template
        .terms
        .descriptions()
        .any(|description| is_job(&description.content))
    {
        let why = "each offer needs a jsdl:JobDefinition, and it has no wsag:ServiceDescriptionTerm with one";
        return Some(why.to_owned());
    }
    let mut guarantees = template.terms.guarantees();
    guarantees.find_map(|term| {
        let why = values_of_guarantee(term, currency).err()?;
        Some(format!("the worth of its guarantee {:?}: {why}", term.name))
    })
}

/// Reads the document of a template.
pub(super) fn read_template(text: &[u8]) -> Result<Template, String> {
    let document = Document::parse(text).map_err(|why| why.to_string())?;
    match wsag::read(&document).map_err(|why| why.to_string())? {
        Message::Template(template) => Ok(*template),
        _ => Err("expected a document with the root wsag:Template".to_owned()),
    }
}

/// A template's value where an offer has none.
pub(super) struct Defaults {
    pub(super) nodes: u32,
    pub(super) duration: Seconds,
}

/// The duration of a request where its template has none either.
const DURATION_DEFAULT: Seconds = 3_600;

impl OfferedTemplate {
    /// Its value where an offer has none.
    pub(super) fn defaults(&self) -> Defaults {
        let (nodes, duration) = self.proposed();
        Defaults {
            nodes: nodes.unwrap_or(1),
            duration: duration.map_or(DURATION_DEFAULT, Seconds::from),
        }
    }

    /// The nodes and the seconds that it proposes, where it does.
    pub(super) fn proposed(&self) -> (Option<u32>, Option<i32>) {
        let (mut nodes, mut duration) = (None, None);
        for description in self.template.terms.descriptions() {
            match &description.content {
                ServiceDescription::JobDefinition(job) => {
                    let range = job.resources.nodes.as_ref();
                    let range = range.and_then(|range| range.whole_numbers().ok());
                    nodes = range.map(|(least, _)| least).or(nodes);
                }
                ServiceDescription::AllocationTime(time) => duration = time.duration.or(duration),
                ServiceDescription::Scheduling(_) | ServiceDescription::Other(_) => {}
            }
        }
        (nodes, duration)
    }

    fn new(template: Template, text: &TemplateText) -> Self {
        // A template is strings, numbers and lists of such: writing it cannot fail.
        let kept = serde_json::to_string(&template).expect("a template is JSON");
        let digest: [u8; 32] = Sha256::digest(&kept).into();
        let mut version = [0; 16];
        version.copy_from_slice(&digest[..16]);
        Self {
            slot_probability: text.slot_probability,
            overrun_percent: text.overrun_percent,
            on_loss: text.on_loss,
            version: Uuid::from_bytes(version),
            what: text.what.clone(),
            view: TemplateView {
                id: template.template_id.clone(),
                name: template.name.clone().unwrap_or_default(),
            },
            document: template.to_xml(),
            kept,
            compiled: CompiledTemplate::compile(&template),
            template,
        }
    }
}

/// A template, as far as one needs to know it to choose.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct TemplateView {
    /// The id, to be named in an offer.
    #[schemars(example = &"advance-reservation")]
    pub id: String,
    /// The name, to be named in an offer.
    #[schemars(example = &"advance-reservation")]
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_template_proposes_a_size() {
        let template = read_template(BUILT_IN.as_bytes()).expect("a template");
        let (nodes, duration) = OfferedTemplate::new(template, &built_in_template(BUILT_IN)).proposed();
        assert!(nodes.is_some() && duration.is_some());
    }
}
