//! The words of offers as they are kept, and their content. A document is kept as it came. A flat request is kept as the wish
//! that it was read into, with the version of the template that gives the rest. Its document is written on demand.

use domain::agreement::{NegotiationOffer, Wording};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::{Document, Fragment, Message, ValuePlaces, guard};

use super::flat_request::FlatRequest;
use super::offer::Draft;
use crate::negotiation::templates::OfferedTemplate;
use crate::negotiation::views::offer::WordedOffer;
use crate::negotiation::{Error, Result, Service};

/// The words of an offer, with all that they need to be read.
#[derive(Debug, Clone)]
pub(in crate::negotiation) enum Words {
    /// A document as it came.
    Document(String),
    /// The offer that a flat request makes of its template, and the places in the request.
    Offer(Box<AgreementOffer>, ValuePlaces),
}

impl Words {
    /// The offer.
    ///
    /// # Errors
    /// [`Error::Internal`] for a stored document that is none.
    pub(in crate::negotiation) fn offer(self) -> Result<Box<AgreementOffer>> {
        match self {
            Self::Offer(offer, _) => Ok(offer),
            Self::Document(text) => Ok(read_kept_offer(&text)?.1),
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
            Self::Document(text) => {
                let (document, offer) = read_kept_offer(&text)?;
                let (context, terms) = document.offer_fragments().ok_or_else(another_document)?;
                Ok((offer, context, terms))
            }
        }
    }
}

impl WordedOffer {
    /// An offer of a negotiation as it was stored, with its words.
    ///
    /// # Errors
    /// [`Error::Internal`] for a stored document that is none.
    pub(in crate::negotiation) fn read(row: NegotiationOffer, document: &str) -> Result<Self> {
        let first = |message| match message {
            Message::NegotiateInput(offers)
            | Message::NegotiateOutput(offers)
            | Message::AdvertiseInput(offers) => offers.into_iter().next(),
            _ => None,
        };
        let (_, words) = read_kept(document, first)?;
        Ok(Self { row, words })
    }
}

fn read_kept_offer(text: &str) -> Result<(Document<'_>, Box<AgreementOffer>)> {
    let offer = |message| match message {
        Message::AgreementOffer(offer) => Some(offer),
        _ => None,
    };
    read_kept(text, offer)
}

/// Reads a text that was kept, and the content of its message. Where rules have become stricter since, what they have against it does not
/// count.
///
/// # Errors
/// [`Error::Internal`] where it cannot be read.
fn read_kept<T>(text: &str, content: impl FnOnce(Message) -> Option<T>) -> Result<(Document<'_>, T)> {
    let document = Document::kept(text).map_err(unreadable_wording)?;
    let message = wsag::read_again(&document).map_err(unreadable_wording)?;
    let content = content(message).ok_or_else(another_document)?;
    Ok((document, content))
}

fn unreadable_wording(why: impl std::fmt::Display) -> Error {
    Error::Internal(format!("a stored offer cannot be read: {why}"))
}

fn another_document() -> Error {
    unreadable_wording("it is another document")
}

/// A wish about a template as it is kept.
pub(in crate::negotiation) fn wording_to_keep(wish: &FlatRequest, offered: &OfferedTemplate) -> Wording {
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

impl Service {
    /// The requests that stored words make by now.
    pub(in crate::negotiation) fn drafts_again(&self, words: Words, party: &str) -> Result<Vec<Draft>> {
        match words {
            Words::Offer(offer, places) => self.drafts_of(&offer, &places, party, None),
            Words::Document(text) => {
                let (document, offer) = read_kept_offer(&text)?;
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
            Wording::Document(text) => return Ok(Words::Document(text)),
            Wording::Request { template, request } => (template, request),
        };
        let (wish, places) = FlatRequest::from_json(&request).map_err(unreadable_wording)?;
        if let Some(offered) = self.templates.version(version) {
            return Ok(Words::Offer(Box::new(wish.offer(&offered.template)), places));
        }
        // The template has changed since.
        let text = self.store.template_version(version).await?;
        let text = text.ok_or_else(|| unreadable_wording("its template is not there"))?;
        let offer = self.run_document_work(move |_| {
            let offer = |message| match message {
                Message::Template(template) => Some(Box::new(wish.offer(&template))),
                _ => None,
            };
            read_kept(&text, offer).map(|(_, offer)| offer)
        });
        Ok(Words::Offer(offer.await??, places))
    }
}
