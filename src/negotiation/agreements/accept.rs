//! createAgreement from a counter offer: it repeats the words of the counter offer and takes over its hold.

use std::time::Duration;

use domain::agreement::{
    Agreement, Job, NegotiationInstance, NegotiationOffer, NegotiationState, OfferCreator, Shape, Wording,
};
use domain::change::AcceptanceEndpoint;
use planner::{Accept, OfferLoss, Request};
use scheduler::Time;
use serde_json::json;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::compare::first_difference;
use wsag::endpoint::EndpointReference;
use wsag::languages::TimeLanguages;
use wsag::negotiations::NegotiationOfferState;
use wsag::operations::CreateInput;
use wsag::{Document, NamedValue, ValuePlaces, Violations};

use crate::negotiation::error;
use crate::negotiation::idempotency::answer_of_repeated_request;
use crate::negotiation::negotiations::id_in_address;
use crate::negotiation::request::offer::wrong_labels;
use crate::negotiation::request::wording::verbatim_offer;
use crate::negotiation::request::{DecisionTime, places_of_any_request};
use crate::negotiation::views::offer::{LostOffer, WordedOffer, content_of_offer};
use crate::negotiation::{AcceptedView, Error, RequestKey, Result, Scope, Service};

/// How long a requester waits for a peer's word; it asks again under its key after that.
pub(super) const ACCEPT_WITHIN: Duration = Duration::from_secs(8);

/// The data of an acceptance.
#[derive(Clone)]
pub(in crate::negotiation) struct AcceptanceInput {
    /// The `OfferId` of the counter offer.
    pub(in crate::negotiation) offer: Uuid,
    /// The negotiation, where it is named.
    pub(in crate::negotiation) negotiation: Option<Uuid>,
    /// The agreement that is to be replaced, where it is named.
    pub(in crate::negotiation) replaced: Option<Uuid>,
    /// The offer in its own document; none where it is accepted as it stands.
    pub(in crate::negotiation) words: Option<String>,
    /// The path of the input; none where there is no document.
    pub(in crate::negotiation) input: &'static str,
    /// Whether the fresh offers are held, where it comes too late.
    pub(in crate::negotiation) holds: bool,
    /// How long the word of a peer is waited for, where one carries it out.
    pub(in crate::negotiation) within: Duration,
}

impl AcceptanceInput {
    /// All that distinguishes it from other acceptances of the same offer: also where its decision is to be told.
    pub(super) fn content(&self, told: Option<&AcceptanceEndpoint>) -> String {
        let told = told.map(|told| (&told.address, &told.parameters));
        json!((self.negotiation, self.replaced, &self.words, told)).to_string()
    }
}

/// The result of an acceptance before any decision.
pub(in crate::negotiation) enum AcceptanceCheck {
    /// It can be decided: the offer, its negotiation, and the request that it makes.
    Now(Box<NegotiationOffer>, NegotiationInstance, Box<Request>),
    /// The same request was answered before, with this.
    Before(Box<AcceptedView>),
}

impl AcceptanceInput {
    /// The acceptance of a counter offer as it stands.
    pub(in crate::negotiation) fn as_it_stands(offer: Uuid) -> Self {
        Self {
            offer,
            negotiation: None,
            replaced: None,
            words: None,
            input: "",
            holds: false,
            within: ACCEPT_WITHIN,
        }
    }
}

/// The places for faults, found by now, of an offer that is accepted in these words: the places of a request where there are no
/// words.
fn places_of_accepted_offer(words: Option<&str>) -> ValuePlaces {
    match words {
        Some(_) => ValuePlaces::document("/wsag:AgreementOffer"),
        None => places_of_any_request(),
    }
}

impl Service {
    /// Accepts a counter offer as it stands, by its id. If it comes too late, the fresh offers are held. The same request under the
    /// same key gets the same answer.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Lost`] where it cannot be accepted any more, [`Error::KeyReused`],
    /// [`Error::Unavailable`].
    pub async fn accept_offer(
        &self,
        party: &str,
        offer: Uuid,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        if let Some(answer) = self.earlier_answer(key.as_ref()).await? {
            return self.word_of_peer(answer, ACCEPT_WITHIN).await;
        }
        let accepting = AcceptanceInput {
            holds: true,
            ..AcceptanceInput::as_it_stands(offer)
        };
        Box::pin(self.accept(party, accepting, key)).await
    }

    /// Makes an agreement of a counter offer.
    pub(in crate::negotiation) async fn accept(
        &self,
        party: &str,
        accepting: AcceptanceInput,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        let form = places_of_accepted_offer(accepting.words.as_deref());
        let acceptable = self.acceptable(party, &accepting, false, key.as_ref()).await?;
        let (row, instance, mut proposal) = match acceptable {
            AcceptanceCheck::Now(row, instance, proposal) => (row, instance, *proposal),
            AcceptanceCheck::Before(answer) => return Ok(*answer),
        };
        self.check_new_id(&proposal, &instance).await?;
        if row.terms.as_ref().is_some_and(|terms| terms.peer.is_some()) {
            return self
                .accept_at_peer(party, &accepting, (*row, proposal), key)
                .await;
        }
        let again = key.as_ref().map(|key| key.step(0));
        proposal.idempotency = key.map(RequestKey::of_acceptance);
        proposal.spender = self.spender;
        let acceptance = Accept {
            negotiation: instance.id,
            offer: row.id,
            barred: self.barred_by_now(&row, &proposal).await,
            proposal,
        };
        match self.send(acceptance).await {
            Err(planner::Error::Lost(lost)) => {
                if let Some(answer) = self.accepted_before(party, &accepting, false).await? {
                    return Ok(answer);
                }
                let scope = Scope::Party(party.to_owned());
                let instance = self.visible_negotiation(&scope, instance.id).await?;
                Err(self
                    .error_of_lost_offer(lost, (&row, &instance), accepting.holds, form, again)
                    .await)
            }
            accepted => {
                if let Some(federation) = self.federation.as_ref().filter(|_| accepted.is_ok()) {
                    // Peers held others beside it.
                    federation.end_unused(instance.id, None, &[]);
                }
                answer_of_repeated_request(accepted, |accepted| AcceptedView::of(&accepted))
            }
        }
    }

    /// Accepts a counter offer now or later. The same acceptance again has the same agreement.
    pub(super) async fn take_offer(
        &self,
        party: &str,
        accepting: AcceptanceInput,
        decision: DecisionTime,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        let (same, is_pending) = (accepting.clone(), matches!(decision, DecisionTime::Later(_)));
        let taken = match decision {
            DecisionTime::Now => Box::pin(self.accept(party, accepting, key)).await,
            DecisionTime::Later(acceptance) => {
                Box::pin(self.pend_offer(party, accepting, acceptance, key)).await
            }
        };
        match taken {
            // The same acceptance came at the same time, or its decision is still to come.
            Err(Error::IdTaken(id)) => {
                let before = self.accepted_before(party, &same, is_pending).await?;
                before.ok_or(Error::IdTaken(id))
            }
            taken => taken,
        }
    }

    /// A counter offer that can be accepted, its negotiation, and the request that its acceptance makes. If the same request
    /// has accepted it before, the answer of that time. `is_pending` is whether it is decided later.
    pub(in crate::negotiation) async fn acceptable(
        &self,
        party: &str,
        accepting: &AcceptanceInput,
        is_pending: bool,
        key: Option<&RequestKey>,
    ) -> Result<AcceptanceCheck> {
        let (said, instance) = self.offer_with_negotiation(party, accepting.offer).await?;
        let row = said.row.clone();
        check_accepted_names(accepting, &instance)?;
        if let Some(lost) = self.why_lost(&row, &instance) {
            let before = match self.earlier_answer(key).await? {
                None => self.accepted_before(party, accepting, is_pending).await?,
                answer => answer,
            };
            if let Some(answer) = before {
                return Ok(AcceptanceCheck::Before(Box::new(answer)));
            }
            let again = key.map(|key| key.step(0));
            let form = places_of_accepted_offer(accepting.words.as_deref());
            return Err(self
                .error_of_lost_offer(lost, (&row, &instance), accepting.holds, form, again)
                .await);
        }
        let words = accepting.words.clone();
        let proposal = self.proposal_accepted(said, words, &instance).await?;
        let proposal = proposal.map_err(|why| faults_of_accepted_offer(accepting.input, why))?;
        Ok(AcceptanceCheck::Now(Box::new(row), instance, Box::new(proposal)))
    }

    /// An offer in a negotiation of a party, and the negotiation.
    async fn offer_with_negotiation(
        &self,
        party: &str,
        offer: Uuid,
    ) -> Result<(WordedOffer, NegotiationInstance)> {
        let said = self.worded_offer(offer).await?;
        let scope = Scope::Party(party.to_owned());
        let instance = self.visible_negotiation(&scope, said.row.negotiation).await?;
        Ok((said, instance))
    }

    /// The acceptance of a counter offer that was found to be acceptable before.
    pub(in crate::negotiation) async fn still_acceptable(&self, party: &str, offer: Uuid) -> Result<Accept> {
        let (said, instance) = self.offer_with_negotiation(party, offer).await?;
        let row = said.row.clone();
        if let Some(lost) = self.why_lost(&row, &instance) {
            return Err(Error::Conflict(lost.to_string()));
        }
        let proposal = self.proposal_accepted(said, None, &instance).await??;
        Ok(Accept {
            negotiation: instance.id,
            offer,
            barred: self.barred_by_now(&row, &proposal).await,
            proposal,
        })
    }

    /// The request of a counter offer that is accepted, in these words where there are some.
    async fn proposal_accepted(
        &self,
        said: WordedOffer,
        words: Option<String>,
        instance: &NegotiationInstance,
    ) -> Result<Result<Request>> {
        let party = instance.party.clone();
        let replaced = self.replaced(instance).await?;
        self.run_work_with_files(move |this| {
            this.draft_accepted(&said, words.as_deref(), &party, replaced.as_ref())
        })
        .await
    }

    /// The request of a counter offer: its promise at the time when it was made, even if templates and applications have
    /// changed since. The words that accept it have to say the same, but for their name; without them its own are taken.
    pub(super) fn draft_accepted(
        &self,
        said: &WordedOffer,
        words: Option<&str>,
        party: &str,
        replaced: Option<&Agreement>,
    ) -> Result<Request> {
        let offered = content_of_offer(&said.words);
        let (offer, wording) = match words {
            None => {
                let text = offered.to_xml();
                (offered, Wording::from(text))
            }
            Some(words) => read_words_as_offered(words, &offered, &self.templates.languages())?,
        };
        let promised = said.row.terms.as_ref();
        let Some((terms, promise)) = promised.and_then(|terms| Some((terms, terms.promise.as_deref()?)))
        else {
            return Err(Error::Internal(
                "an offer that was held has no promise".to_owned(),
            ));
        };
        let goes_on = replaced.is_some_and(Agreement::is_being_carried_out);
        let job = promise.job.as_ref().filter(|_| !goes_on);
        if job.is_some_and(|job| !self.has_application_of(job)) {
            return Err(Error::Lost(Box::new(LostOffer {
                lost: OfferLoss::NoApplication,
                fresh: Vec::new(),
            })));
        }
        let (nodes, duration) = (terms.nodes(), terms.duration());
        Ok(Request {
            name: offer.name,
            initiator_id: offer.agreement_id,
            template: promise.template.clone(),
            filters: promise.constraints.filters.clone(),
            barred: promise.constraints.barred.clone(),
            fix_at_ppm: promise.constraints.fix_at_ppm,
            ready: Some(terms.ready),
            deadline: Some(terms.deadline),
            expires: promise.constraints.expires.map(Time),
            job: promise.job.clone(),
            guarantees: promise.guarantees.clone(),
            document: wording,
            ..Request::new(Uuid::now_v7(), party, vec![Shape { nodes, duration }])
        })
    }

    /// Whether the catalogue has the application of a job.
    fn has_application_of(&self, job: &Job) -> bool {
        let version = job.version.as_deref();
        self.catalogue().find(&job.application, version).is_some()
    }

    /// Why an offer cannot be accepted, as far as the store tells.
    fn why_lost(&self, row: &NegotiationOffer, instance: &NegotiationInstance) -> Option<OfferLoss> {
        let now = self.clock.now();
        if row.agreement.is_some() {
            Some(OfferLoss::Accepted)
        } else if row.creator == OfferCreator::Initiator {
            Some(OfferLoss::NotHeld)
        } else if row.is_withdrawn() {
            Some(OfferLoss::Withdrawn)
        } else if row.is_expired(now) || instance.state(now) == NegotiationState::Expired {
            Some(OfferLoss::Expired)
        } else if !row.is_held() {
            Some(OfferLoss::NotHeld)
        } else {
            None
        }
    }

    /// The failure to accept an offer of a negotiation, with fresh offers: the same for the same request under its key. They are held
    /// where that was asked for.
    async fn error_of_lost_offer(
        &self,
        lost: OfferLoss,
        (row, instance): (&NegotiationOffer, &NegotiationInstance),
        holds: bool,
        form: ValuePlaces,
        key: Option<RequestKey>,
    ) -> Error {
        let mut fresh = Vec::new();
        if instance.state(self.clock.now()) == NegotiationState::Open
            && lost != OfferLoss::Replaced
            && let Some(parent) = row.parent.filter(|_| row.creator == OfferCreator::Responder)
        {
            match self.answer_again(instance, parent, holds, form, key).await {
                Ok(answers) => fresh = answers,
                // The answer reports the loss, without fresh offers.
                Err(why) => tracing::debug!(error = %why, "there are no fresh offers"),
            }
        }
        Error::Lost(Box::new(LostOffer { lost, fresh }))
    }
}

/// The content of the words that accept a counter offer: the same as the offer, except for the name. They may say when in these
/// languages.
fn read_words_as_offered(
    words: &str,
    offered: &AgreementOffer,
    languages: &TimeLanguages,
) -> Result<(AgreementOffer, Wording)> {
    let document = Document::parse_in(words.as_bytes(), languages).map_err(Error::Malformed)?;
    let (offered, places) = (offered.make(languages), ValuePlaces::document(""));
    let offered = Document::made(&offered, &places).map_err(Error::Malformed)?;
    if let Some(difference) = first_difference(&document, &offered) {
        return Err(difference.into());
    }
    let wsag::Message::AgreementOffer(offer) = wsag::read(&document).map_err(Error::Invalid)? else {
        return Err(Error::Internal("an offer is no offer".to_owned()));
    };
    let wrong = wrong_labels(&document, &offer);
    if !wrong.is_empty() {
        return Err(Error::Invalid(Violations(wrong)));
    }
    Ok((*offer, verbatim_offer(&document)?.into()))
}

/// The name of the element that says which offer is accepted.
fn extension_of(is_replacing: bool) -> &'static str {
    if is_replacing {
        "RenegotiationExtension"
    } else {
        "NegotiationExtension"
    }
}

/// The names of the negotiation and the agreement are the right ones.
fn check_accepted_names(accepting: &AcceptanceInput, instance: &NegotiationInstance) -> Result<()> {
    let extension = extension_of(accepting.replaced.is_some());
    let wrong = |below: &str, message: &str| {
        let path = format!("{}/wsag-neg:{extension}{below}", accepting.input);
        Err(error::violation_at_path(path, message).into())
    };
    if accepting.negotiation.is_some_and(|id| id != instance.id) {
        let message = "the offer was made in another negotiation";
        return wrong("/wsag-neg:ResponderNegotiationEPR", message);
    }
    if accepting.words.is_none() || accepting.replaced == instance.agreement {
        return Ok(());
    }
    match (instance.agreement, accepting.replaced) {
        (Some(_), Some(_)) => wrong(
            "/wsag-neg:ResponderAgreementEPR",
            "the agreement that the offer would replace is expected",
        ),
        (Some(_), None) => wrong(
            "",
            "RenegotiationExtension is expected, with the agreement that the offer would replace",
        ),
        (None, _) => wrong(
            "",
            "NegotiationExtension is expected: the offer replaces no agreement",
        ),
    }
}

/// The faults of an offer, at their places in its input.
fn faults_of_accepted_offer(input: &str, error: Error) -> Error {
    let moved = |mut violations: Violations| {
        for violation in &mut violations.0 {
            violation.path.insert_str(0, input);
        }
        violations
    };
    match error {
        Error::Invalid(violations) => Error::Invalid(moved(violations)),
        Error::NotOffered(violations) => Error::NotOffered(moved(violations)),
        other => other,
    }
}

/// The words of an input at the path `root` about the counter offer that it accepts; none where it accepts none.
pub(in crate::negotiation) fn read_accepting(
    document: &Document<'_>,
    input: &CreateInput,
    root: &'static str,
) -> Result<Option<AcceptanceInput>> {
    let (context, negotiation, replaced) = match (&input.negotiation, &input.renegotiation) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "either a NegotiationExtension or a RenegotiationExtension is expected";
            return Err(
                error::violation_at_path(format!("{root}/wsag-neg:RenegotiationExtension"), message).into(),
            );
        }
        (Some(offer), None) => (&offer.context, offer.negotiation.as_ref(), None),
        (None, Some(extension)) => (
            &extension.context,
            Some(&extension.negotiation),
            Some(&extension.responder_agreement),
        ),
    };
    let extension = extension_of(replaced.is_some());
    let at = |below: &str, message: &str| {
        Error::from(error::violation_at_path(
            format!("{root}/wsag-neg:{extension}/wsag-neg:{below}"),
            message,
        ))
    };
    let id = |endpoint: &EndpointReference, local: &str, what: &str| {
        id_in_address(endpoint).ok_or_else(|| at(local, &format!("the address of {what} here is expected")))
    };
    if context.state != NegotiationOfferState::Acceptable {
        let message = format!(
            "wsag-neg:Acceptable is expected: nothing is concluded from an offer that is {}",
            context.state.name()
        );
        return Err(at("NegotiationOfferContext/wsag-neg:State", &message));
    }
    let negotiation = negotiation
        .map(|negotiation| id(negotiation, "ResponderNegotiationEPR", "a negotiation"))
        .transpose()?;
    let replaced = replaced
        .map(|replaced| id(replaced, "ResponderAgreementEPR", "an agreement"))
        .transpose()?;
    let Ok(offer) = context.counter_offer_to.parse() else {
        return Err(at(
            "NegotiationOfferContext/wsag-neg:CounterOfferTo",
            "the OfferId of a counter offer of this service is expected",
        ));
    };
    let words = document
        .offer_xml()
        .ok_or_else(|| Error::Internal("a document with an offer has none".to_owned()))?;
    Ok(Some(AcceptanceInput {
        negotiation,
        replaced,
        words: Some(words),
        input: root,
        ..AcceptanceInput::as_it_stands(offer)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_that_is_told_elsewhere_is_another_one() {
        let accepting = AcceptanceInput::as_it_stands(Uuid::from_u128(1));
        let told_at = |address: &str| AcceptanceEndpoint {
            address: address.to_owned(),
            parameters: None,
        };
        let (one, two) = (told_at("https://a.example"), told_at("https://b.example"));
        let content = |told| accepting.content(told);
        assert_eq!(content(Some(&one)), content(Some(&one)));
        assert_ne!(content(Some(&one)), content(Some(&two)));
        assert_ne!(content(Some(&one)), content(None));
        let named = AcceptanceInput {
            negotiation: Some(Uuid::from_u128(2)),
            ..accepting.clone()
        };
        assert_ne!(named.content(None), content(None));
    }
}
