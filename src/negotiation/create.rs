//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use wsag::agreements::{AgreementOffer, CreateInput};
use wsag::{Document, Message};

use super::idempotency::{kept, repeated};
use super::json::Json;
use super::offer::Draft;
use super::request::in_request;
use super::{AcceptedView, Error, Input, Negotiation, RefusalView, RequestKey};
use crate::planner::{self, Accepted};

impl Negotiation {
    /// Takes an offer: bare, in its CreateAgreementInput, or as a flat request. Of an offer that leaves a choice, the
    /// first way to read it that can be had is taken. Once this answers, the agreement is stored, and the same request
    /// under the same key gets the same answer for a day.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::MalformedJson`], [`Error::Invalid`] and [`Error::NotOffered`] for what is wrong
    /// with the offer, [`Error::Refused`] where the plan has no place, [`Error::KeyReused`], [`Error::Unavailable`].
    pub async fn create(
        &self,
        party: &str,
        input: Input,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView, Error> {
        // What was accepted once is so, even if the same offer would come too late by now.
        if let Some(answer) = self.answered(key.as_ref()).await? {
            return Ok(answer);
        }
        let of = party.to_owned();
        let drafts = self.reading(move |this| this.read_offer(&input, &of)).await??;
        let hash = key.as_ref().map(RequestKey::hash);
        let mut refusal = None;
        for Draft { mut proposal, window } in drafts {
            let key = key.clone();
            proposal.idempotency = key.map(|key| key.kept(|done: &Accepted| kept(&AcceptedView::of(done))));
            match self.planner.place(proposal).await {
                Ok(accepted) => return Ok(AcceptedView::of(&accepted)),
                // What the requester would like best is what the refusal is about.
                Err(planner::Error::Refused(why)) => {
                    refusal.get_or_insert_with(|| RefusalView::of(&why, window));
                }
                Err(planner::Error::Repeated(earlier)) => return repeated(&earlier, hash.as_deref()),
                Err(why) => return Err(why.into()),
            }
        }
        Err(refusal.map_or_else(
            || Error::Internal("an offer can be read in no way".to_owned()),
            Error::Refused,
        ))
    }

    /// The requests that an offer makes: one, or one for each way to read it.
    fn read_offer(&self, input: &Input, party: &str) -> Result<Vec<Draft>, Error> {
        let body = match input {
            Input::Xml(body) => body,
            Input::Json(body) => return self.read_flat(&Json::parse(body)?, party),
        };
        let document = Document::parse(body).map_err(Error::Malformed)?;
        let offer = match wsag::read(&document).map_err(Error::Invalid)? {
            Message::AgreementOffer(offer) => *offer,
            Message::CreateAgreementInput(input) => create_input(&document, *input)?,
            Message::CreatePendingAgreementInput(_) => {
                let what = "pending agreements are not offered by this version; send CreateAgreementInput";
                return Err(Error::not_offered(&document, "", what));
            }
            _ => {
                let what = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected here";
                return Err(Error::not_offered(&document, "", what));
            }
        };
        self.drafts(&document, &offer, party)
    }

    /// The requests of a flat request: it becomes an offer, which is read and checked as one that came as a document.
    fn read_flat(&self, request: &Json, party: &str) -> Result<Vec<Draft>, Error> {
        let (wish, offered) = self.read_request(request)?;
        let text = wish.offer(&offered.template).to_xml();
        let read = || {
            let document = Document::parse(text.as_bytes()).map_err(Error::Malformed)?;
            match wsag::read(&document).map_err(Error::Invalid)? {
                Message::AgreementOffer(offer) => self.drafts(&document, &offer, party),
                _ => Err(Error::Internal(
                    "an offer was written as something else".to_owned(),
                )),
            }
        };
        read().map_err(in_request)
    }
}

/// The offer of an input whose extensions ask for nothing more.
fn create_input(document: &Document<'_>, input: CreateInput) -> Result<AgreementOffer, Error> {
    let what = "agreements from negotiated offers are not offered by this version; send the offer without the extension";
    if input.negotiation.is_some() {
        return Err(Error::not_offered(document, "NegotiationExtension", what));
    }
    if input.renegotiation.is_some() {
        return Err(Error::not_offered(document, "RenegotiationExtension", what));
    }
    Ok(input.offer)
}
