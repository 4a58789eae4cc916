//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use uuid::Uuid;
use wsag::agreements::{AgreementOffer, CreateInput};
use wsag::{Document, Message, Violation, ViolationKind, Violations, ns};

use super::accept::{Accepting, accepting};
use super::pending::DecisionTime;
use crate::agreement::Wording;
use crate::negotiation::idempotency::{kept, repeated};
use crate::negotiation::request::json::{At, Check, Json};
use crate::negotiation::request::offer::Draft;
use crate::negotiation::request::wording;
use crate::negotiation::views::documents::verbatim;
use crate::negotiation::{AcceptedView, Error, Input, Negotiation, RefusalView, RequestKey};
use crate::planner::{self, Accepted};

impl Negotiation {
    /// Takes an offer: bare, in its CreateAgreementInput, or as a flat request. Of an offer that leaves a choice, the
    /// first way to read it that can be had is taken; one that asks for it is answered as Pending. Once this answers, the agreement is stored, and the same request
    /// under the same key gets the same answer for a day.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::MalformedJson`], [`Error::Invalid`] and [`Error::NotOffered`] for faults of the
    /// offer, [`Error::Refused`] where the plan has no place, [`Error::Lost`] where it accepts a counter offer that
    /// cannot be had any more, [`Error::KeyReused`], [`Error::Unavailable`].
    pub async fn create(
        &self,
        party: &str,
        input: Input,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView, Error> {
        // An accepted offer stays accepted, even if the same offer would come too late by now.
        if let Some(answer) = self.answered(key.as_ref()).await? {
            return Ok(answer);
        }
        let of = party.to_owned();
        let (offer, drafts, decision) = match self.reading(move |this| this.read_offer(&input, &of)).await?? {
            CreateRequest::New(offer, drafts, decision) => (offer, drafts, decision),
            CreateRequest::Offered(accepting, DecisionTime::Now) => {
                return self.accept(party, accepting, key).await;
            }
            CreateRequest::Offered(accepting, DecisionTime::Later(acceptance)) => {
                return self.pend_offer(party, accepting, acceptance, key).await;
            }
        };
        if let DecisionTime::Later(acceptance) = decision {
            return self.pend(drafts, acceptance, key).await;
        }
        let hash = key.as_ref().map(RequestKey::hash);
        let mut refusal = None;
        for Draft { mut proposal, window } in drafts {
            let id = Some(proposal.id);
            let key = key.clone();
            proposal.idempotency = key.map(|key| key.kept(|done: &Accepted| kept(&AcceptedView::of(done))));
            self.bar(&mut proposal, &[]).await;
            match self.planner.place(proposal).await {
                Ok(accepted) => return Ok(AcceptedView::of(&accepted)),
                // The refusal is about the requester's first preference.
                Err(planner::Error::Refused(why)) if refusal.is_none() => {
                    let view = RefusalView {
                        id,
                        ..RefusalView::of(&why, window)
                    };
                    let offer = offer.clone();
                    refusal = Some(self.reading(move |this| this.offerable(view, &offer)).await?);
                }
                Err(planner::Error::Refused(_)) => {}
                Err(planner::Error::Repeated(earlier)) => return repeated(&earlier, hash.as_deref()),
                Err(why) => return Err(why.into()),
            }
        }
        Err(refusal.map_or_else(
            || Error::Internal("an offer can be read in no way".to_owned()),
            Error::Refused,
        ))
    }

    /// The requests that an offer makes: one, or one for each way to read it, and the time of its decision; or the
    /// acceptance of a counter offer.
    pub(in crate::negotiation) fn read_offer(
        &self,
        input: &Input,
        party: &str,
    ) -> Result<CreateRequest, Error> {
        let body = match input {
            Input::Xml(body) => body,
            Input::Json(body) => return self.read_flat(&Json::parse(body)?, party),
        };
        let document = Document::parse(body).map_err(Error::Malformed)?;
        let mut decision = DecisionTime::Now;
        let offer = match wsag::read(&document).map_err(Error::Invalid)? {
            Message::AgreementOffer(offer) => offer,
            Message::CreateAgreementInput(input) => {
                match accepting(&document, &input, "/wsag:CreateAgreementInput")? {
                    Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                    None => Box::new(input.offer),
                }
            }
            Message::CreatePendingAgreementInput(input) => {
                decision = DecisionTime::Later(self.acceptance(&document, &input)?);
                match accepting(&document, &input, "/wsag:CreatePendingAgreementInput")? {
                    Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                    None => Box::new(input.offer),
                }
            }
            _ => {
                let what = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected here; negotiations begin at \
                            /negotiations";
                return Err(Error::not_offered(&document, "", what));
            }
        };
        let mut drafts = self.drafts(&document, &offer, party, None)?;
        worded(&mut drafts, &verbatim(&document)?.into());
        Ok(CreateRequest::New(offer, drafts, decision))
    }

    /// Where the decision is to be told.
    fn acceptance(&self, document: &Document<'_>, input: &CreateInput) -> Result<Option<String>, Error> {
        let Some(endpoint) = &input.acceptance else {
            return Ok(None);
        };
        match self.call_backs.check(&endpoint.address) {
            Ok(()) => Ok(Some(endpoint.address.clone())),
            Err(message) => Err(Error::Invalid(Violations(vec![Violation {
                path: document.path_to(ns::WSA, "Address", 0),
                kind: ViolationKind::Value,
                message,
            }]))),
        }
    }

    /// The requests of a flat request: it becomes an offer, which is checked as one that came as a document.
    fn read_flat(&self, request: &Json, party: &str) -> Result<CreateRequest, Error> {
        if let Some((offer, decision)) = self.accepted_offer(request)? {
            return Ok(CreateRequest::Offered(Accepting::as_it_stands(offer), decision));
        }
        let (request, ()) = self.read_request(&At::root(request), &[], |_, _| ())?;
        let offer = Box::new(request.wish.offer(&request.offered.template));
        let mut drafts = self.drafts_of(&offer, &request.places, party, None)?;
        worded(&mut drafts, &wording::kept(&request.wish, &request.offered));
        Ok(CreateRequest::New(offer, drafts, request.decision))
    }

    /// The counter offer that a request accepts, if it says nothing else but when that is to be decided.
    fn accepted_offer(&self, request: &Json) -> Result<Option<(Uuid, DecisionTime)>, Error> {
        let Json::Object(members) = request else {
            return Ok(None);
        };
        if !members.iter().any(|(name, _)| name == "offer") {
            return Ok(None);
        }
        let mut check = Check::default();
        let object = check.object(&At::root(request), &["offer", "pending", "callback"]);
        let read = object.and_then(|object| {
            let decision = self.read_decision(&mut check, &object);
            let at = object.required(&mut check, "offer")?;
            let id = check.text(&at)?.parse().ok();
            if id.is_none() {
                check.add(&at.pointer, "the id of an offer is expected");
            }
            Some((id?, decision))
        });
        check.finish(read).map(Some)
    }
}

/// Notes the words in which the requests of an offer came.
fn worded(drafts: &mut [Draft], wording: &Wording) {
    for draft in drafts {
        draft.proposal.document = wording.clone();
    }
}

/// The source of a new agreement.
pub(in crate::negotiation) enum CreateRequest {
    /// An offer, with the request for each way to read it; and when it is to be decided.
    New(Box<AgreementOffer>, Vec<Draft>, DecisionTime),
    /// A counter offer of ours; and when that is to be decided.
    Offered(Accepting, DecisionTime),
}
