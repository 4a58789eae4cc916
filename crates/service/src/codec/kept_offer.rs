//! Offers as they are kept: their values as JSON, and beside them the context and the terms of a document as they came, because answers
//! repeat a requester's words, and a pending offer is decided by the words that it was taken by. A flat request is kept as it was read,
//! with the version of the template that gives the rest. No value is read from kept words again.

use domain::agreement::{NegotiationOffer, Wording};
use domain::request::Request;
use planner::OfferWords;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{agreements, negotiations, templates};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::templates::Template;
use wsag::{Document, Fragment, guard};

use crate::codec::form::places_of_form;
use crate::idempotency::text_to_keep;
use crate::request::offer::{requests_of_offer, requests_of_offer_document};
use crate::templates::OfferedTemplate;
use crate::views::worded_offer::WordedOffer;
use crate::{Error, Result, Service};

/// The place of an offer in a document of its own.
pub(crate) const OFFER: &str = "/wsag:AgreementOffer";

/// An offer, with its maker's words where it came as a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptOffer {
    /// The values of the offer.
    pub(crate) offer: Box<AgreementOffer>,
    /// Its context and its terms as they came; none where it came in another form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<(Fragment, Fragment)>,
}

impl KeptOffer {
    /// The first offer of a document, which was read from there.
    ///
    /// # Errors
    /// [`Error::Malformed`] where its words cannot stand alone.
    pub(crate) fn of_document(document: &Document<'_>, offer: Box<AgreementOffer>) -> Result<Self> {
        let none = || Error::Internal("a document with an offer has none".to_owned());
        // An offer cut out of a message bears the declarations that it inherited; where it is shown, it must still pass a guard.
        let alone = document.offer_xml().ok_or_else(none)?;
        guard::guard_document(alone.as_bytes()).map_err(Error::Malformed)?;
        Ok(Self {
            offer,
            words: Some(document.offer_fragments().ok_or_else(none)?),
        })
    }

    /// An offer that was made of values here.
    pub(crate) fn of_values(offer: AgreementOffer) -> Self {
        Self {
            offer: Box::new(offer),
            words: None,
        }
    }

    /// Its document in its maker's words; none where it came in another form.
    pub(crate) fn document(&self) -> Option<String> {
        let (context, terms) = self.words.as_ref()?;
        Some(self.offer.to_xml_in_words(context, terms))
    }

    /// The offer as it is kept with its agreement.
    pub(crate) fn wording(&self) -> Wording {
        Wording::Offer(text_to_keep(self))
    }

    /// The offer, and its context and its terms as elements: verbatim where it came as a document.
    pub(crate) fn parts(self) -> (Box<AgreementOffer>, Fragment, Fragment) {
        let Self { offer, words } = self;
        let (context, terms) =
            words.unwrap_or_else(|| (offer.context.to_fragment(), offer.terms.to_fragment()));
        (offer, context, terms)
    }
}

/// An offer of a negotiation as it was stored, with its words.
///
/// # Errors
/// [`Error::Internal`] for stored words that are none.
pub(crate) fn read_kept_offer(row: NegotiationOffer, kept: &str) -> Result<WordedOffer> {
    let words = read_kept(kept)?;
    Ok(WordedOffer { row, words })
}

/// The offer as the planner stores it.
pub(crate) fn offer_words_to_keep(said: &WordedOffer) -> OfferWords {
    OfferWords {
        offer: said.row.clone(),
        document: text_to_keep(&said.words),
    }
}

/// A value that was kept.
///
/// # Errors
/// [`Error::Internal`] where it cannot be read.
pub(crate) fn read_kept<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|why| Error::Internal(format!("a stored offer cannot be read: {why}")))
}

/// A request about a template as it is kept.
pub(crate) fn kept_wording_of_request(request: &Request, offered: &OfferedTemplate) -> Wording {
    Wording::Request {
        template: offered.version,
        request: text_to_keep(request),
    }
}

/// The requests that a kept offer makes by now. Faults of one that came as no document are told as those of a form.
pub(crate) fn requests_of_kept_offer(
    service: &Service,
    kept: &KeptOffer,
    party: &str,
) -> Result<Vec<planner::Request>> {
    let Some(text) = kept.document() else {
        let places = places_of_form(&Request::of_offer(&kept.offer));
        return requests_of_offer(service, &kept.offer, &places, party, None);
    };
    // Its template may ask for what the values leave out.
    let document = Document::written(&text).map_err(Error::Malformed)?;
    requests_of_offer_document(service, &document, &kept.offer, party, None)
}

/// The offer that an agreement was made from.
pub(crate) async fn kept_offer_of_agreement(service: &Service, agreement: Uuid) -> Result<KeptOffer> {
    let wording = agreements::agreement_document(&service.store, agreement).await?;
    kept_offer_of_wording(service, wording.ok_or(Error::NotFound)?).await
}

/// The offer that stored words are.
pub(crate) async fn kept_offer_of_wording(service: &Service, wording: Wording) -> Result<KeptOffer> {
    let (version, request) = match wording {
        Wording::Offer(kept) => return read_kept(&kept),
        Wording::Request { template, request } => (template, request),
    };
    let request: Request = read_kept(&request)?;
    let offer = if let Some(offered) = service.templates.version(version) {
        request.offer(&offered.template)
    } else {
        // The template has changed since.
        let kept = templates::template_version(&service.store, version).await?;
        let kept = kept.ok_or_else(|| Error::Internal("a stored template is not there".to_owned()))?;
        request.offer(&read_kept::<Template>(&kept)?)
    };
    Ok(KeptOffer::of_values(offer))
}

/// A stored offer, with its words.
pub(crate) async fn read_kept_offer_by_id(service: &Service, id: Uuid) -> Result<WordedOffer> {
    let (row, document) = negotiations::negotiation_offer(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    read_kept_offer(row, &document)
}
