//! createAgreement from a counter offer: it repeats the words of the counter offer and takes over its hold.

use domain::agreement::{
    Agreement, Job, NegotiationInstance, NegotiationOffer, NegotiationState, OfferCreator, Shape,
};
use planner::{Accept, OfferLoss, Request};
use scheduler::Time;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::compare::first_difference;
use wsag::{Document, ValuePlaces, Violations};

use crate::negotiation::codec::DecisionTime;
use crate::negotiation::codec::acceptance::{ACCEPT_WITHIN, AcceptanceInput};
use crate::negotiation::codec::kept::{KeptOffer, OFFER};
use crate::negotiation::codec::members::places_of_any_request;
use crate::negotiation::codec::xml::extension_of;
use crate::negotiation::error;
use crate::negotiation::idempotency::answer_of_repeated_request;
use crate::negotiation::request::offer::wrong_labels;
use crate::negotiation::views::offer::{LostOffer, WordedOffer, content_of_offer};
use crate::negotiation::{AcceptedView, Error, RequestKey, Result, Scope, Service};

/// The result of an acceptance before any decision.
pub(in crate::negotiation) enum AcceptanceCheck {
    /// It can be decided: the offer, its negotiation, and the request that it makes.
    Now(Box<NegotiationOffer>, NegotiationInstance, Box<Request>),
    /// The same request was answered before, with this.
    Before(Box<AcceptedView>),
}

/// The places for faults, found by now, of an offer that is accepted in these words: the places of a request where there are no
/// words.
fn places_of_accepted_offer(words: Option<&KeptOffer>) -> ValuePlaces {
    match words {
        Some(_) => ValuePlaces::document(OFFER),
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
        let form = places_of_accepted_offer(accepting.words.as_ref());
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
            let form = places_of_accepted_offer(accepting.words.as_ref());
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
        words: Option<KeptOffer>,
        instance: &NegotiationInstance,
    ) -> Result<Result<Request>> {
        let party = instance.party.clone();
        let replaced = self.replaced(instance).await?;
        self.run_work_with_files(move |this| this.draft_accepted(&said, words, &party, replaced.as_ref()))
            .await
    }

    /// The request of a counter offer: its promise at the time when it was made, even if templates and applications have
    /// changed since. The words that accept it have to say the same, but for their name; without them its own are taken.
    pub(super) fn draft_accepted(
        &self,
        said: &WordedOffer,
        words: Option<KeptOffer>,
        party: &str,
        replaced: Option<&Agreement>,
    ) -> Result<Request> {
        let offered = content_of_offer(&said.words);
        let kept = match words {
            None => KeptOffer::of_values(offered),
            Some(words) => {
                check_words_as_offered(&words.offer, &offered)?;
                words
            }
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
            name: kept.offer.name.clone(),
            initiator_id: kept.offer.agreement_id.clone(),
            template: promise.template.clone(),
            filters: promise.constraints.filters.clone(),
            barred: promise.constraints.barred.clone(),
            fix_at_ppm: promise.constraints.fix_at_ppm,
            ready: Some(terms.ready),
            deadline: Some(terms.deadline),
            expires: promise.constraints.expires.map(Time),
            job: promise.job.clone(),
            guarantees: promise.guarantees.clone(),
            document: kept.wording(),
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

/// Checks the words that accept a counter offer: the same as the offer, except for the name.
fn check_words_as_offered(words: &AgreementOffer, offered: &AgreementOffer) -> Result<()> {
    let places = ValuePlaces::document(OFFER);
    let (words_made, offered_made) = (words.make(), offered.make());
    let sent = Document::made(&words_made, &places).map_err(Error::Malformed)?;
    let offered = Document::made(&offered_made, &places).map_err(Error::Malformed)?;
    if let Some(difference) = first_difference(&sent, &offered) {
        return Err(difference.into());
    }
    let wrong = wrong_labels(&sent, words);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(Violations(wrong)))
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
