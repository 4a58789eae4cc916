//! The templates that are offered: read and compiled once, at start.

use wsag::constraints::CompiledTemplate;
use wsag::templates::{Template, agreement_factory_properties};
use wsag::{Document, Message};

use super::{Negotiation, TemplateView};
use crate::agreement::Currency;
use crate::planner::Settings;

/// The template offered where the configuration names none.
const BUILT_IN: &str = include_str!("../../templates/agreements/advance-reservation.xml");

/// A template, ready for offers.
pub(super) struct Offered {
    pub(super) view: TemplateView,
    pub(super) template: Template,
    pub(super) compiled: CompiledTemplate,
    document: String,
}

/// The templates that are offered.
pub struct Templates {
    offered: Vec<Offered>,
    currency: Option<Currency>,
}

impl Templates {
    /// Reads templates, each with the words that name it in a message; the built-in one, with its node count bounded
    /// by the largest resource, where there are none.
    ///
    /// # Errors
    /// A sentence that names the template and what is wrong with it.
    pub fn load(texts: &[(String, Vec<u8>)], settings: &Settings) -> Result<Self, String> {
        let currency = settings.pricing.as_ref().map(|pricing| pricing.currency);
        let capacity = settings.resources.iter().map(|of| of.capacity).max().unwrap_or(0);
        if texts.is_empty() {
            let template =
                read(BUILT_IN.as_bytes()).map_err(|why| format!("the built-in template: {why}"))?;
            return Ok(Self {
                offered: vec![Offered::new(template.with_nodes_max(capacity))],
                currency,
            });
        }
        let mut offered: Vec<Offered> = Vec::new();
        for (what, text) in texts {
            let next = Offered::new(read(text).map_err(|why| format!("{what}: {why}"))?);
            if offered.iter().any(|other| other.view.id == next.view.id) {
                return Err(format!(
                    "{what}: its TemplateId {:?} is that of another template",
                    next.view.id
                ));
            }
            for why in next.compiled.problems() {
                tracing::warn!(
                    template = next.view.id,
                    "{what}: {why}; offers from it will be refused"
                );
            }
            offered.push(next);
        }
        Ok(Self { offered, currency })
    }

    /// What everything is priced in; none where nothing is.
    pub(super) fn currency(&self) -> Option<Currency> {
        self.currency
    }

    /// Every template.
    pub(super) fn all(&self) -> impl Iterator<Item = &Template> {
        self.offered.iter().map(|offered| &offered.template)
    }

    /// The one that is meant where none is named.
    pub(super) fn first(&self) -> Option<&Offered> {
        self.offered.first()
    }

    /// The template with this id.
    pub(super) fn get(&self, id: &str) -> Option<&Offered> {
        self.offered.iter().find(|offered| offered.view.id == id)
    }
}

fn read(text: &[u8]) -> Result<Template, String> {
    let document = Document::parse(text).map_err(|why| why.to_string())?;
    match wsag::read(&document).map_err(|why| why.to_string())? {
        Message::Template(template) => Ok(*template),
        _ => Err("expected a document with the root wsag:Template".to_owned()),
    }
}

impl Offered {
    fn new(template: Template) -> Self {
        Self {
            view: TemplateView {
                id: template.template_id.clone(),
                name: template.name.clone().unwrap_or_default(),
            },
            document: template.to_xml(),
            compiled: CompiledTemplate::compile(&template),
            template,
        }
    }
}

impl Negotiation {
    /// The templates that are offered.
    pub fn templates(&self) -> Vec<TemplateView> {
        self.templates
            .offered
            .iter()
            .map(|offered| offered.view.clone())
            .collect()
    }

    /// A template and its document.
    pub fn template(&self, id: &str) -> Option<(TemplateView, String)> {
        self.templates
            .get(id)
            .map(|offered| (offered.view.clone(), offered.document.clone()))
    }

    /// The AgreementFactoryProperties with every template.
    pub fn factory_properties(&self) -> String {
        agreement_factory_properties(self.templates.offered.iter().map(|offered| &offered.template))
    }
}
