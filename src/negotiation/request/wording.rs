//! The words of offers as they are kept, and their content. A document is kept as it came. A flat request is kept as the wish
//! that it was read into, with the version of the template that gives the rest. Its document is written on demand.

use domain::agreement::{NegotiationOffer, Wording};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::languages::TimeLanguages;
use wsag::terms::{ServiceDescription, Term, Terms};
use wsag::{Document, Fragment, Message, ValuePlaces, guard};

use super::flat_request::FlatRequest;
use super::offer::Draft;
use crate::negotiation::templates::OfferedTemplate;
use crate::negotiation::views::offer::WordedOffer;
use crate::negotiation::{Error, Result, Service};

/// The words of an offer, with all that they need to be read.
#[derive(Debug, Clone)]
pub(in crate::negotiation) enum Words {
    /// A document as it came, and the languages in which it may say when.
    Document(String, TimeLanguages),
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
            Self::Document(text, languages) => Ok(read_kept_offer(&text, &languages)?.1),
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
                let (document, offer) = read_kept_offer(&text, &languages)?;
                let (context, terms) = document.offer_fragments().ok_or_else(another_document)?;
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
        let first = |message| match message {
            Message::NegotiateInput(offers)
            | Message::NegotiateOutput(offers)
            | Message::AdvertiseInput(offers) => offers.into_iter().next(),
            _ => None,
        };
        let (_, words) = read_kept(document, languages, first, |offer| &offer.terms)?;
        Ok(Self { row, words })
    }
}

fn read_kept_offer<'t>(
    text: &'t str,
    languages: &TimeLanguages,
) -> Result<(Document<'t>, Box<AgreementOffer>)> {
    let offer = |message| match message {
        Message::AgreementOffer(offer) => Some(offer),
        _ => None,
    };
    read_kept(text, languages, offer, |offer| &offer.terms)
}

/// Reads a text that was kept, and the content of its message with the terms of an offer, in the languages in which it was written. A
/// language that is known since then may have a name for an element that meant something else. So these are the first in which the text
/// is valid, and says when once at most; where rules have become stricter since, the first in which it can be read so.
///
/// # Errors
/// [`Error::Internal`] where it cannot be read.
fn read_kept<'t, T>(
    text: &'t str,
    languages: &TimeLanguages,
    content: impl Fn(Message) -> Option<T>,
    terms: impl Fn(&T) -> &Terms,
) -> Result<(Document<'t>, T)> {
    let (mut ambiguous, mut wrong) = (None, None);
    for read in [wsag::read as fn(&Document<'_>) -> _, wsag::read_again] {
        for languages in languages.of_kept_texts() {
            let document = Document::kept_in(text, &languages).map_err(unreadable_wording)?;
            match read(&document) {
                Err(why) => drop(wrong.get_or_insert(why)),
                Ok(message) => {
                    let content = content(message).ok_or_else(another_document)?;
                    if says_when_once(terms(&content)) {
                        return Ok((document, content));
                    }
                    ambiguous.get_or_insert((document, content));
                }
            }
        }
    }
    ambiguous.ok_or_else(|| wrong.map_or_else(another_document, unreadable_wording))
}

/// Whether each way to read an offer says at most once when.
fn says_when_once(terms: &Terms) -> bool {
    let is_time = |term: &&&Term| matches!(&***term, Term::ServiceDescription(description) if matches!(description.content, ServiceDescription::AllocationTime(_)));
    let ways = terms.alternatives().unwrap_or_default();
    ways.iter()
        .all(|way| way.terms.iter().filter(is_time).count() <= 1)
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
            Words::Document(text, languages) => {
                let (document, offer) = read_kept_offer(&text, &languages)?;
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
        let offer = self.run_document_work(move |this| {
            let offer = |message| match message {
                Message::Template(template) => Some(Box::new(wish.offer(&template))),
                _ => None,
            };
            let read = read_kept(&text, &this.templates.languages(), offer, |offer| &offer.terms);
            read.map(|(_, offer)| offer)
        });
        Ok(Words::Offer(offer.await??, places))
    }
}
