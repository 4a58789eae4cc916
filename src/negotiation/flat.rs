//! Negotiation for clients that speak JSON: a flat request opens a negotiation and is answered in it with what can be had;
//! an offer's id accepts it. Underneath are the same offers and counter offers as in XML.

use scheduler::Time;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer, NegotiationOfferContext, NegotiationOfferState, NegotiationRole,
};
use wsag::{Document, Message};

use super::json::{At, Check, Json};
use super::negotiations::Opening;
use super::offer_views::Said;
use super::pending::Decision;
use super::request::in_request;
use super::wish::Wish;
use super::{Error, Negotiation, NegotiationView, OfferView, Scope};
use crate::agreement::NegotiationInstance;

/// What a request is about beside what is wanted.
const ABOUT: [&str; 2] = ["agreement", "expires"];

/// A negotiation, and what a request in it was answered with.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NegotiatedView {
    /// The negotiation; its offers are the answers to the request, the best first.
    #[serde(flatten)]
    pub negotiation: NegotiationView,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Value>,
}

/// The answers to a request in a negotiation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswersView {
    /// What can be had, the best first.
    pub offers: Vec<OfferView>,
    /// Why there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Value>,
}

impl Negotiation {
    /// Opens a negotiation with a flat request, about a new agreement or in place of one, and answers the request in it.
    ///
    /// # Errors
    /// [`Error::MalformedJson`], [`Error::Invalid`] and [`Error::NotOffered`] for what is wrong with the request; those of
    /// opening a negotiation.
    pub async fn request(&self, party: &str, body: Vec<u8>) -> Result<NegotiatedView, Error> {
        let (request, opening) = self
            .reading(move |this| this.read_opening_request(&body))
            .await??;
        let offer = self.asked(party, opening.agreement, request).await?;
        let mut negotiation = self.open_negotiation(party, opening).await?;
        let scope = Scope::Party(party.to_owned());
        let instance = self.instance(&scope, negotiation.id).await?;
        let AnswersView { offers, refusal } = self.answers(&instance, offer).await?;
        negotiation.offers = offers;
        Ok(NegotiatedView { negotiation, refusal })
    }

    /// Answers another flat request in a negotiation.
    ///
    /// # Errors
    /// Those of [`Negotiation::request`]; [`Error::NotFound`], and [`Error::Conflict`] and [`Error::Gone`] where the
    /// negotiation is over.
    pub async fn request_in(&self, scope: &Scope, id: Uuid, body: Vec<u8>) -> Result<AnswersView, Error> {
        let instance = self.instance(scope, id).await?;
        let request = self.reading(move |_| Json::parse(&body)).await??;
        let offer = self.asked(&instance.party, instance.agreement, request).await?;
        self.answers(&instance, offer).await
    }

    async fn answers(
        &self,
        instance: &NegotiationInstance,
        offer: AgreementOffer,
    ) -> Result<AnswersView, Error> {
        let said = self.answer(instance, solicited(offer), String::new()).await?;
        let views: Vec<_> = said.iter().map(Said::view).collect();
        let refusal = views.iter().find_map(|view| view.refusal.clone());
        let offers: Vec<_> = views
            .into_iter()
            .filter(|view| view.state != "Rejected")
            .collect();
        Ok(AnswersView {
            refusal: refusal.filter(|_| offers.is_empty()),
            offers,
        })
    }

    /// What a request says about its negotiation, and the rest of it.
    fn read_opening_request(&self, body: &[u8]) -> Result<(Json, Opening), Error> {
        let Json::Object(members) = Json::parse(body)? else {
            return Ok((Json::parse(body)?, Opening::default()));
        };
        let (about, request): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|(name, _)| ABOUT.contains(&name.as_str()));
        let about = Json::Object(about);
        let mut check = Check::default();
        let root = At {
            value: &about,
            pointer: String::new(),
        };
        let object = check.object(&root, &ABOUT);
        let opening = object.map(|object| {
            let agreement = object.get("agreement").and_then(|at| {
                let id = check.text(&at)?.parse().ok();
                if id.is_none() {
                    check.add(&at.pointer, "the id of an agreement is expected");
                }
                id
            });
            let expires = object.get("expires").and_then(|at| {
                let time = Time(check.date_time(&at)?.floor());
                if time <= self.clock.now() {
                    check.add(&at.pointer, "an instant in the future is expected");
                }
                Some(time)
            });
            Opening { expires, agreement }
        });
        Ok((Json::Object(request), check.finish(opening)?))
    }

    /// The offer that a request asks with, found to be right: of its template, or of an agreement with what is to change.
    async fn asked(
        &self,
        party: &str,
        agreement: Option<Uuid>,
        request: Json,
    ) -> Result<AgreementOffer, Error> {
        let replaced = match agreement {
            None => None,
            Some(id) => {
                let agreement = self.stored(&Scope::Party(party.to_owned()), id).await?;
                let document = self.store.agreement_document(id).await?;
                Some((agreement, document.ok_or(Error::NotFound)?))
            }
        };
        let party = party.to_owned();
        self.reading(move |this| {
            let (wish, offered, decision) = this.read_request(&request)?;
            if decision != Decision::Now {
                let mut check = Check::default();
                check.add("/pending", "what is negotiated is decided by accepting it");
                return check.finish(None);
            }
            let offer = match &replaced {
                None => wish.offer(&offered.template),
                Some((_, text)) => changed(&wish, text)?,
            };
            let replaced = replaced.map(|(agreement, _)| agreement);
            let text = offer.to_xml();
            let document = Document::parse(text.as_bytes())
                .map_err(Error::Malformed)
                .map_err(in_request)?;
            this.drafts(&document, &offer, &party, replaced.as_ref())
                .map_err(in_request)?;
            Ok(offer)
        })
        .await?
    }
}

/// A stored offer with what a wish changes of it.
fn changed(wish: &Wish, text: &str) -> Result<AgreementOffer, Error> {
    let unreadable = || Error::Internal("a stored offer cannot be read".to_owned());
    let document = Document::parse(text.as_bytes()).map_err(|_| unreadable())?;
    match wsag::read(&document) {
        Ok(Message::AgreementOffer(offer)) => Ok(wish.change(&offer)),
        _ => Err(unreadable()),
    }
}

/// An offer as it is put into a negotiation, to be answered with what can be accepted.
fn solicited(offer: AgreementOffer) -> NegotiationOffer {
    NegotiationOffer {
        offer_id: Uuid::now_v7().to_string(),
        name: offer.name,
        offer_context: NegotiationOfferContext {
            counter_offer_to: offer.context.template_id.clone().unwrap_or_default(),
            expiration_time: None,
            creator: NegotiationRole::NegotiationInitiator,
            state: NegotiationOfferState::Solicited,
            state_extensions: Vec::new(),
            extensions: Vec::new(),
        },
        context: offer.context,
        terms: offer.terms,
        constraints: NegotiationConstraints::default(),
    }
}
