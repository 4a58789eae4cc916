//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use std::sync::Arc;

use address::is_no_place;
use domain::agreement::{NegotiationInstance, Wording};
use domain::change::AcceptanceEndpoint;
use domain::request::Request;
use domain::resources::Scaling;
use planner::Place;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::operations::CreateInput;
use wsag::scheduling::Moldability;
use wsag::{Document, Fragment, Message, ValuePlaces, ns};

use super::repeated_offers::OfferIdentity;
use crate::negotiation::codec::acceptance::{ACCEPT_WITHIN, AcceptanceInput};
use crate::negotiation::codec::form::places_of_form;
use crate::negotiation::codec::json::{Json, JsonCheck, LocatedValue};
use crate::negotiation::codec::kept::{KeptOffer, wording_of_request};
use crate::negotiation::codec::xml::read_accepting;
use crate::negotiation::codec::{DecisionTime, ReadRequest};
use crate::negotiation::error::violation_at_path;
use crate::negotiation::idempotency::{answer_of_repeated_request, text_to_keep};
use crate::negotiation::request::offer::{Draft, only_reading_of_offer};
use crate::negotiation::templates::OfferedTemplate;
use crate::negotiation::{AcceptedView, Error, Input, RefusalView, RequestKey, Result, Service};

impl Service {
    /// Takes an offer: bare, in its CreateAgreementInput, or as a flat request. Of an offer that leaves a choice, the
    /// first way to read it that can be had is taken; one that asks for it is answered as Pending. Once this answers, the agreement is stored, and the same request
    /// under the same key gets the same answer for a day, also a refusal. An offer with an AgreementId that came before gets the answer of
    /// that time.
    ///
    /// Where it accepts a counter offer that cannot be had any more, there are fresh offers, held only where `holds` asks for that.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::MalformedJson`], [`Error::Invalid`] and [`Error::NotOffered`] for faults of the
    /// offer, [`Error::Refused`] where the plan has no place, [`Error::Lost`] where it accepts a counter offer that
    /// cannot be had any more, [`Error::IdTaken`] where another offer has its AgreementId, [`Error::KeyReused`], [`Error::Unavailable`].
    pub async fn create_agreement(
        &self,
        party: &str,
        input: Input,
        holds: bool,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        // An accepted offer stays accepted, even if the same offer would come too late by now.
        if let Some(answer) = self.earlier_answer(key.as_ref()).await? {
            return self.word_of_peer(answer, ACCEPT_WITHIN).await;
        }
        let own_party = party.to_owned();
        let read = self
            .run_work_with_files(move |this| this.read_offer(&input, &own_party))
            .await??;
        let (made, identity) = match read {
            CreateRequest::New {
                offer,
                drafts,
                decision,
                identity,
            } => {
                if let Some(identity) = &identity
                    && let Some(answer) = self.first_answer(party, identity).await?
                {
                    return Ok(answer);
                }
                let drafts = drafts?;
                let made = match decision {
                    DecisionTime::Now => self.place_agreement(party, offer, drafts, key.clone()).await,
                    DecisionTime::Later(acceptance) => {
                        let proposal = only_reading_of_offer(drafts)?.proposal;
                        self.pend_proposal(proposal, acceptance, None, key.clone()).await
                    }
                };
                (made, identity)
            }
            CreateRequest::Offered(accepting, decision) => {
                let accepting = AcceptanceInput { holds, ..accepting };
                let made = Box::pin(self.take_offer(party, accepting, decision, key.clone())).await;
                (made, None)
            }
        };
        let made = match (made, identity) {
            // The same offer came at the same time.
            (Err(Error::IdTaken(id)), Some(identity)) => {
                let first = self.first_answer(party, &identity).await;
                first.and_then(|answer| answer.ok_or(Error::IdTaken(id)))
            }
            (made, _) => made,
        };
        self.keep_refusal(key, made).await
    }

    /// Refuses the AgreementId of an agreement from a negotiation that another of its party has. The one that takes the place of
    /// an agreement may keep its id.
    ///
    /// # Errors
    /// [`Error::IdTaken`], [`Error::Unavailable`].
    pub(in crate::negotiation) async fn check_new_id(
        &self,
        proposal: &planner::Request,
        instance: &NegotiationInstance,
    ) -> Result<()> {
        let Some(id) = &proposal.initiator_id else {
            return Ok(());
        };
        let replaced = self.replaced(instance).await?;
        if replaced.is_some_and(|replaced| replaced.initiator_id.as_ref() == Some(id)) {
            return Ok(());
        }
        match self.store.first_with_id(&proposal.party, id).await? {
            None => Ok(()),
            Some(_) => Err(Error::IdTaken(id.clone())),
        }
    }

    /// Takes the request of a form, which becomes an offer from the first template; once for each form, which `once` names.
    ///
    /// # Errors
    /// The errors of [`Service::create_agreement`] for such an offer.
    pub async fn create_from_form(&self, party: &str, request: Request, once: Uuid) -> Result<AcceptedView> {
        let text = text_to_keep(&request);
        let key = RequestKey::new(party, &once.to_string(), "a form of the portal", text.as_bytes());
        let key = Some(key);
        if let Some(answer) = self.earlier_answer(key.as_ref()).await? {
            return Ok(answer);
        }
        let own_party = party.to_owned();
        let drafted = self.run_work_with_files(move |this| this.drafts_of_form(&request, &own_party));
        let (offer, drafts) = drafted.await??;
        // A refusal is not kept: the form is corrected, and sent again under the same name.
        self.place_agreement(party, offer, drafts, key).await
    }

    /// Checks the request of a form, and decides nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::NotOffered`] for its faults, each at its place in the request; [`Error::Unavailable`].
    pub async fn check_form(&self, party: &str, request: Request) -> Result<()> {
        let party = party.to_owned();
        self.run_work_with_files(move |this| this.drafts_of_form(&request, &party))
            .await?
            .map(drop)
    }

    /// The offer from the first template that the request of a form makes, and its requests. All its faults are found at once.
    fn drafts_of_form(&self, request: &Request, party: &str) -> Result<(Box<AgreementOffer>, Vec<Draft>)> {
        let places = places_of_form(request);
        let offered = self.first_template()?;
        let request = &request.saying_duration(&offered.template, self.clock.now());
        let made = self.drafts_of_flat(request, &offered, &places, party);
        let stated = match &made {
            Ok((_, drafts)) => check_size_is_stated(request, drafts, places.root()),
            // Whether its duration is predicted is not known of an offer with faults.
            Err(_) if request.duration.is_some() => check_size_is_stated(request, &[], places.root()),
            Err(_) => Ok(()),
        };
        match (made, stated) {
            (Err(Error::Invalid(mut found)), Err(Error::Invalid(others))) => {
                found.0.extend(others.0);
                Err(Error::Invalid(found))
            }
            (made, stated) => made.and_then(|made| stated.map(|()| made)),
        }
    }

    /// The template that forms make their offers from.
    ///
    /// # Errors
    /// [`Error::Internal`] where none is offered.
    pub(in crate::negotiation) fn first_template(&self) -> Result<Arc<OfferedTemplate>> {
        let offered = self.templates.first();
        offered.ok_or_else(|| Error::Internal("no template is offered".to_owned()))
    }

    /// Has the first of the requests that has a place become an agreement.
    async fn place_agreement(
        &self,
        party: &str,
        offer: Box<AgreementOffer>,
        drafts: Vec<Draft>,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        let mut refusal = None;
        for Draft { mut proposal, window } in drafts {
            proposal.idempotency = key.clone().map(RequestKey::of_acceptance);
            proposal.spender = self.spender;
            self.note_barred_clusters(&mut proposal, &[]).await;
            match self.send(Place(proposal)).await {
                // The refusal is about the requester's first preference.
                Err(planner::Error::Refused(why)) if refusal.is_none() => {
                    let view = RefusalView {
                        // A dry run is not noted in the end, and what is not noted cannot be explained.
                        id: why.noted.filter(|_| !self.options.is_dry),
                        ..RefusalView::of(&why, window)
                    };
                    let offer = offer.clone();
                    refusal = Some(
                        self.run_document_work(move |this| this.offerable(view, &offer))
                            .await?,
                    );
                }
                Err(planner::Error::Refused(_)) => {}
                accepted => {
                    return answer_of_repeated_request(accepted, |accepted| AcceptedView::of(&accepted));
                }
            }
        }
        let Some(refusal) = refusal else {
            return Err(Error::Internal("an offer can be read in no way".to_owned()));
        };
        let forwarded = self.forward_offer(party, &offer, &refusal, key).await?;
        forwarded.ok_or(Error::Refused(refusal))
    }

    /// The requests that an offer makes: one, or one for each way to read it, and the time of its decision; or the
    /// acceptance of a counter offer.
    pub(in crate::negotiation) fn read_offer(&self, input: &Input, party: &str) -> Result<CreateRequest> {
        let body = match input {
            Input::Xml(body) => body,
            Input::Json(body) => return self.read_flat(&Json::parse(body)?, party),
        };
        let document = Document::parse(body).map_err(Error::Malformed)?;
        let mut decision = DecisionTime::Now;
        let offer = match wsag::read(&document).map_err(Error::Invalid)? {
            Message::AgreementOffer(offer) => offer,
            Message::CreateAgreementInput(input) => {
                match read_accepting(&document, &input, "/wsag:CreateAgreementInput")? {
                    Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                    None => Box::new(input.offer),
                }
            }
            Message::CreatePendingAgreementInput(input) => {
                decision = DecisionTime::Later(self.read_acceptance_endpoint(&document, &input)?);
                match read_accepting(&document, &input, "/wsag:CreatePendingAgreementInput")? {
                    Some(accepting) => return Ok(CreateRequest::Offered(accepting, decision)),
                    None => Box::new(input.offer),
                }
            }
            _ => {
                let what = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected here; negotiations begin at \
                            /negotiations";
                return Err(Error::not_offered(&document, what));
            }
        };
        let kept = KeptOffer::of_document(&document, offer)?;
        let drafts = self.drafts(&document, &kept.offer, party, None);
        Ok(CreateRequest::New {
            drafts: drafts.map(|drafts| with_wording(drafts, &kept.wording())),
            identity: OfferIdentity::of(&kept, decision != DecisionTime::Now),
            offer: kept.offer,
            decision,
        })
    }

    /// Where the decision is to be told; nowhere where that is no place, and its party polls.
    fn read_acceptance_endpoint(
        &self,
        document: &Document<'_>,
        input: &CreateInput,
    ) -> Result<Option<AcceptanceEndpoint>> {
        let named = input.acceptance.as_ref();
        let Some(endpoint) = named.filter(|named| !is_no_place(&named.address)) else {
            return Ok(None);
        };
        let faulty =
            |element, message| Error::from(violation_at_path(document.path_to(ns::WSA, element, 0), message));
        let address = endpoint.address.clone();
        self.may_call
            .check(&address)
            .map_err(|why| faulty("Address", why))?;
        let parameters = endpoint.parameters.as_ref().map(ToString::to_string);
        // With the declarations of the elements around it, it may be more than is read again when the decision is told.
        if let Some(Err(why)) = parameters.as_deref().map(Fragment::parse) {
            let message =
                format!("it cannot stand alone in the call, with the namespaces that it uses: {why}");
            return Err(faulty("ReferenceParameters", message));
        }
        Ok(Some(AcceptanceEndpoint { address, parameters }))
    }

    /// The requests of a flat request: it becomes an offer, which is checked as one that came as a document.
    fn read_flat(&self, request: &Json, party: &str) -> Result<CreateRequest> {
        if let Some((offer, decision)) = self.accepted_offer(request)? {
            return Ok(CreateRequest::Offered(
                AcceptanceInput::as_it_stands(offer),
                decision,
            ));
        }
        let (request, ()) = self.read_request(&LocatedValue::root(request), &[], |_, _| ())?;
        let ReadRequest {
            wish,
            places,
            offered,
            decision,
            ..
        } = request;
        let wish = wish.saying_duration(&offered.template, self.clock.now());
        let (offer, drafts) = self.drafts_of_flat(&wish, &offered, &places, party)?;
        check_size_is_stated(&wish, &drafts, places.root())?;
        Ok(CreateRequest::New {
            offer,
            drafts: Ok(drafts),
            decision,
            identity: None,
        })
    }

    /// The offer from a template that a wish makes, and its requests.
    fn drafts_of_flat(
        &self,
        wish: &Request,
        offered: &OfferedTemplate,
        places: &ValuePlaces,
        party: &str,
    ) -> Result<(Box<AgreementOffer>, Vec<Draft>)> {
        let offer = Box::new(wish.offer(&offered.template));
        let drafts = self.drafts_of(&offer, places, party, None)?;
        Ok((offer, with_wording(drafts, &wording_of_request(wish, offered))))
    }

    /// The counter offer that a request accepts, if it says nothing else but when that is to be decided.
    fn accepted_offer(&self, request: &Json) -> Result<Option<(Uuid, DecisionTime)>> {
        let Json::Object(members) = request else {
            return Ok(None);
        };
        if !members.iter().any(|(name, _)| name == "offer") {
            return Ok(None);
        }
        let mut check = JsonCheck::default();
        let object = check.object(&LocatedValue::root(request), &["offer", "pending", "callback"]);
        let read = object.and_then(|object| {
            let decision = self.read_decision(&mut check, &object);
            let id = object.read_required(&mut check, "offer", |check, at| {
                let id = check.text(at)?.parse().ok();
                id.or_else(|| check.wrong(at, "the id of an offer is expected"))
            });
            Some((id?, decision))
        });
        check.finish(read).map(Some)
    }
}

/// Refuses a request that leaves to its template how much it buys: the nodes are stated, and so is the duration where it is not
/// predicted.
fn check_size_is_stated(wish: &Request, drafts: &[Draft], root: &str) -> Result<()> {
    let law = &wish.scheduling.moldability;
    let says_nodes = wish.nodes.is_some() || matches!(law, Some(Moldability::Table(_)));
    let is_predicted = drafts
        .iter()
        .any(|draft| draft.proposal.scaling != Scaling::Contract);
    let mut check = JsonCheck::default();
    if !says_nodes {
        check.add(&format!("{root}/nodes"), "a number of nodes is expected");
    }
    if wish.duration.is_none() && law.is_none() && !is_predicted {
        let message = match &wish.run {
            None => "a duration in seconds is expected, or a start and an end".to_owned(),
            Some(run) => format!(
                "a duration in seconds is expected: it is not known yet how long {} takes",
                run.name
            ),
        };
        check.add(&format!("{root}/durationSeconds"), message);
    }
    check.finish(Some(()))
}

/// The requests of an offer, with the words in which it came.
fn with_wording(mut drafts: Vec<Draft>, wording: &Wording) -> Vec<Draft> {
    for draft in &mut drafts {
        draft.proposal.document = wording.clone();
    }
    drafts
}

/// The source of a new agreement.
pub(in crate::negotiation) enum CreateRequest {
    /// An offer by itself.
    New {
        /// The offer.
        offer: Box<AgreementOffer>,
        /// The request for each way to read it, or what is wrong with it.
        drafts: Result<Vec<Draft>>,
        /// When it is to be decided.
        decision: DecisionTime,
        /// By what it is known when it comes again, where it has an AgreementId.
        identity: Option<OfferIdentity>,
    },
    /// A counter offer of ours; and when that is to be decided.
    Offered(AcceptanceInput, DecisionTime),
}
