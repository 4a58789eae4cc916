//! An offer of a negotiation with its words, and how it is shown: as a flat value, and as the element of a document in its present state.

use domain::agreement::{NegotiationOffer, NegotiationRole};
use serde_json::Value;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::NegotiationOffer as OfferDocument;
use wsag::refusals::Refusal;
use wsag::{Fragment, NamedValue};

use crate::views::agreement_document::date_time_in_document;
use crate::views::conditions::view_conditions;
use crate::views::money_and_time::{instant_as_date_time, second_as_date_time};
use crate::views::offer::{OfferConstraintView, OfferView};
use crate::views::quotation::{QuotationView, quotation_of_offer};

/// An offer, and how it is said.
#[derive(Debug)]
pub(crate) struct WordedOffer {
    pub(crate) row: NegotiationOffer,
    pub(crate) words: OfferDocument,
}

/// Offers as flat values, in order.
pub(crate) fn view_offers(said: &[WordedOffer]) -> Vec<OfferView> {
    said.iter().map(WordedOffer::view).collect()
}

/// Offers as documents have them.
pub(crate) fn documents_of_offers(said: &[WordedOffer]) -> Vec<OfferDocument> {
    said.iter().map(WordedOffer::document).collect()
}

/// The content of an offer, without its place in a negotiation.
pub(crate) fn content_of_offer(words: &OfferDocument) -> AgreementOffer {
    AgreementOffer {
        name: words.name.clone(),
        agreement_id: None,
        context: words.context.clone(),
        terms: words.terms.clone(),
    }
}

impl WordedOffer {
    /// As a flat value.
    pub(crate) fn view(&self) -> OfferView {
        let (row, items) = (&self.row, &self.words.constraints.items);
        let (attributes, conditions) = view_conditions(&self.words.terms);
        OfferView {
            id: row.name.clone(),
            counter_offer_to: self.words.offer_context.counter_offer_to.clone(),
            creator: row.creator.word(),
            state: row.state.word(),
            created: instant_as_date_time(row.created),
            expires: row.expires.map(second_as_date_time),
            attributes,
            conditions,
            quotation: row.terms.as_ref().map(QuotationView::of),
            held_until: row.expires.filter(|_| row.is_held()).map(second_as_date_time),
            constraints: match row.creator {
                NegotiationRole::Responder => items.iter().map(OfferConstraintView::of).collect(),
                NegotiationRole::Initiator => Vec::new(),
            },
            agreement: row.agreement,
            refusal: row
                .refusal
                .as_deref()
                .and_then(|refusal| serde_json::from_str(refusal).ok()),
        }
    }

    /// As a document's element, in the state that it has come to.
    pub(crate) fn document(&self) -> OfferDocument {
        let row = &self.row;
        let mut spoken = self.words.clone();
        let context = &mut spoken.offer_context;
        if context.state != row.state {
            context.state = row.state;
            context.state_extensions = self.reason().into_iter().collect();
        }
        if let Some(expires) = row.expires {
            context.expiration_time = Some(date_time_in_document(expires));
        }
        if let Some(terms) = &row.terms {
            let held_until = row.expires.filter(|_| row.is_held());
            context
                .extensions
                .push(quotation_of_offer(terms, held_until).to_fragment());
        }
        spoken
    }

    /// Why an offer came to be rejected after its words were chosen.
    fn reason(&self) -> Option<Fragment> {
        let refusal: Value = serde_json::from_str(self.row.refusal.as_deref()?).ok()?;
        let refusal = Refusal {
            reason: wsag::refusals::Reason::parse(refusal["reason"].as_str()?)?,
            binding_constraint: refusal["bindingConstraint"].as_str().map(ToOwned::to_owned),
            cut_short: refusal["cutShort"].as_bool().unwrap_or(false),
            alternatives: Vec::new(),
            relaxations: Vec::new(),
        };
        Some(refusal.to_fragment())
    }
}
