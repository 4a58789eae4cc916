//! The words of offers as they are kept, and their content. A document is kept as it came. A flat request is kept as the wish
//! that it was read into, with the version of the template that gives the rest. Its document is written on demand.

use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::languages::TimeLanguages;
use wsag::{Document, Fragment, Message, Places, guard};

use super::flat_request::FlatRequest;
use super::offer::Draft;
use crate::agreement::{NegotiationOffer, Wording};
use crate::negotiation::templates::{self, Offered};
use crate::negotiation::views::offer::WordedOffer;
use crate::negotiation::{Error, Negotiation, Result};

/// The words of an offer, with all that they need to be read.
#[derive(Debug, Clone)]
pub(in crate::negotiation) enum Words {
    /// A document as it came, and the languages in which it may say when.
    Document(String, TimeLanguages),
    /// The offer that a flat request makes of its template, and the places in the request.
    Offer(Box<AgreementOffer>, Places),
}

impl Words {
    /// The offer.
    ///
    /// # Errors
    /// [`Error::Internal`] for a stored document that is none.
    pub(in crate::negotiation) fn offer(self) -> Result<Box<AgreementOffer>> {
        match self {
            Self::Offer(offer, _) => Ok(offer),
            Self::Document(text, languages) => {
                let document = Document::written_in(&text, &languages).map_err(unreadable_wording)?;
                offer_of_document(&document)
            }
        }
    }

    /// The offer, and its context and its terms as elements: verbatim where it came as a document.
    ///
    /// # Errors
    /// [`Error::Internal`] for a stored document that is none.
    pub(in crate::negotiation) fn parts(self) -> Result<(Box<AgreementOffer>, Fragment, Fragment)> {
        match self {
            Self::Offer(offer, _) => {
                let parts = (offer.context.to_fragment(), offer.terms.to_fragment());
                Ok((offer, parts.0, parts.1))
            }
            Self::Document(text, languages) => {
                let document = Document::written_in(&text, &languages).map_err(unreadable_wording)?;
                let offer = offer_of_document(&document)?;
                let (context, terms) = document
                    .offer_fragments()
                    .ok_or_else(|| unreadable_wording("it is another document"))?;
                Ok((offer, context, terms))
            }
        }
    }
}

impl WordedOffer {
    /// An offer of a negotiation as it was stored, with its words, which may say when in these languages.
    ///
    /// # Errors
    /// [`Error::Internal`] for a stored document that is none.
    pub(in crate::negotiation) fn read(
        row: NegotiationOffer,
        document: &str,
        languages: &TimeLanguages,
    ) -> Result<Self> {
        // As negotiation constraints were written before they were held to the published schemas.
        let document = document.replace("wsag-neg:Constraint", "wsag:Constraint");
        let read = Document::written_in(&document, languages).map_err(unreadable_wording)?;
        let words = match wsag::read_again(&read).map_err(unreadable_wording)? {
            Message::NegotiateInput(offers)
            | Message::NegotiateOutput(offers)
            | Message::AdvertiseInput(offers) => offers.into_iter().next(),
            _ => None,
        };
        let words = words.ok_or_else(|| unreadable_wording("it is another document"))?;
        Ok(Self { row, words })
    }
}

fn offer_of_document(document: &Document<'_>) -> Result<Box<AgreementOffer>> {
    match wsag::read_again(document).map_err(unreadable_wording)? {
        Message::AgreementOffer(offer) => Ok(offer),
        _ => Err(unreadable_wording("it is another document")),
    }
}

fn unreadable_wording(why: impl std::fmt::Display) -> Error {
    Error::Internal(format!("a stored offer cannot be read: {why}"))
}

/// A wish about a template as it is kept.
pub(in crate::negotiation) fn wording_to_keep(wish: &FlatRequest, offered: &Offered) -> Wording {
    Wording::Request {
        template: offered.version,
        request: wish.to_json(),
    }
}

/// The offer as it came, complete in itself, to be kept and shown again.
pub(in crate::negotiation) fn verbatim_offer(document: &Document<'_>) -> Result<String> {
    let text = document
        .offer_xml()
        .ok_or_else(|| Error::Internal("a document with an offer has none".to_owned()))?;
    // An offer cut out of a message bears the declarations that it inherited; where it is shown, it must still pass a guard.
    guard::guard_document(text.as_bytes()).map_err(Error::Malformed)?;
    Ok(text)
}

impl Negotiation {
    /// The requests that stored words make by now.
    pub(in crate::negotiation) fn drafts_again(&self, words: Words, party: &str) -> Result<Vec<Draft>> {
        match words {
            Words::Offer(offer, places) => self.drafts_of(&offer, &places, party, None),
            Words::Document(text, languages) => {
                let document = Document::written_in(&text, &languages).map_err(unreadable_wording)?;
                let offer = offer_of_document(&document)?;
                self.drafts(&document, &offer, party, None)
            }
        }
    }

    /// The words of the offer that an agreement was made from.
    pub(in crate::negotiation) async fn words_of(&self, agreement: Uuid) -> Result<Words> {
        let wording = self.store.agreement_document(agreement).await?;
        self.words(wording.ok_or(Error::NotFound)?).await
    }

    /// The content of stored words.
    pub(in crate::negotiation) async fn words(&self, wording: Wording) -> Result<Words> {
        let (version, request) = match wording {
            Wording::Document(text) => return Ok(Words::Document(text, self.templates.languages())),
            Wording::Request { template, request } => (template, request),
        };
        let (wish, places) = FlatRequest::from_json(&request).map_err(unreadable_wording)?;
        if let Some(offered) = self.templates.version(version) {
            return Ok(Words::Offer(Box::new(wish.offer(&offered.template)), places));
        }
        // The template has changed since.
        let text = self.store.template_version(version).await?;
        let text = text.ok_or_else(|| unreadable_wording("its template is not there"))?;
        let template = self
            .run_document_work(move |this| {
                templates::read_template(text.as_bytes(), &this.templates.languages())
            })
            .await?
            .map_err(unreadable_wording)?;
        Ok(Words::Offer(Box::new(wish.offer(&template)), places))
    }
}
