//! The acceptance of a counter offer, checked before any decision: it repeats the words of the counter offer, which is still held.

use domain::agreement::{
    Agreement, Job, NegotiationInstance, NegotiationOffer, NegotiationRole, NegotiationState, Shape,
};
use planner::{Accept, OfferLoss, Request};
use scheduler::Time;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::compare::first_difference;
use wsag::{Document, ValuePlaces, Violations};

use crate::agreements::repeated_offers::answer_to_repeated_offer_acceptance;
use crate::codec::acceptance::{AcceptanceInput, element_of_acceptance};
use crate::codec::kept_offer::{KeptOffer, OFFER, read_kept_offer_by_id};
use crate::codec::members::member_places_of_any_request;
use crate::idempotency::earlier_answer;
use crate::negotiations::answers::answer_offer_again;
use crate::negotiations::negotiation::{agreement_replaced_by_negotiation, visible_negotiation};
use crate::request::cluster_policy::barred_by_clusters_now;
use crate::request::offer::wrong_labels;
use crate::views::lost_offer::LostOffer;
use crate::views::worded_offer::{WordedOffer, content_of_offer};
use crate::{AcceptedView, Error, RequestKey, Result, Scope, Service, error};

/// The result of an acceptance before any decision.
pub(crate) enum AcceptanceCheck {
    /// It can be decided: the offer, its negotiation, and the request that it makes.
    Now(Box<NegotiationOffer>, NegotiationInstance, Box<Request>),
    /// The same request was answered before, with this.
    Before(Box<AcceptedView>),
}

/// The places for faults, found by now, of an offer that is accepted in these words: the places of a request where there are no
/// words.
pub(super) fn places_of_checked_acceptance(words: Option<&KeptOffer>) -> ValuePlaces {
    match words {
        Some(_) => ValuePlaces::document(OFFER),
        None => member_places_of_any_request(),
    }
}

/// A counter offer that can be accepted, its negotiation, and the request that its acceptance makes. If the same request
/// has accepted it before, the answer of that time. `is_pending` is whether it is decided later.
pub(crate) async fn check_acceptance(
    service: &Service,
    party: &str,
    accepting: &AcceptanceInput,
    is_pending: bool,
    key: Option<&RequestKey>,
) -> Result<AcceptanceCheck> {
    let (said, instance) = offer_of_checked_acceptance(service, party, accepting.offer).await?;
    let row = said.row.clone();
    check_accepted_names(accepting, &instance)?;
    if let Some(lost) = why_accepted_offer_is_lost(service, &row, &instance) {
        let before = match earlier_answer(service, key).await? {
            None => answer_to_repeated_offer_acceptance(service, party, accepting, is_pending).await?,
            answer => answer,
        };
        if let Some(answer) = before {
            return Ok(AcceptanceCheck::Before(Box::new(answer)));
        }
        let again = key.map(|key| key.step(0));
        let form = places_of_checked_acceptance(accepting.words.as_ref());
        return Err(
            error_of_lost_acceptance(service, lost, (&row, &instance), accepting.holds, form, again).await,
        );
    }
    let words = accepting.words.clone();
    let proposal = request_of_acceptance(service, said, words, &instance).await?;
    let proposal = proposal.map_err(|why| faults_of_checked_acceptance(accepting.input, why))?;
    Ok(AcceptanceCheck::Now(Box::new(row), instance, Box::new(proposal)))
}

/// An offer in a negotiation of a party, and the negotiation.
async fn offer_of_checked_acceptance(
    service: &Service,
    party: &str,
    offer: Uuid,
) -> Result<(WordedOffer, NegotiationInstance)> {
    let said = read_kept_offer_by_id(service, offer).await?;
    let scope = Scope::Party(party.to_owned());
    let instance = visible_negotiation(service, &scope, said.row.negotiation).await?;
    Ok((said, instance))
}

/// The acceptance of a counter offer that was found to be acceptable before.
pub(crate) async fn check_acceptance_again(service: &Service, party: &str, offer: Uuid) -> Result<Accept> {
    let (said, instance) = offer_of_checked_acceptance(service, party, offer).await?;
    let row = said.row.clone();
    if let Some(lost) = why_accepted_offer_is_lost(service, &row, &instance) {
        return Err(Error::Conflict(lost.to_string()));
    }
    let proposal = request_of_acceptance(service, said, None, &instance).await??;
    Ok(Accept {
        negotiation: instance.id,
        offer,
        barred: barred_by_clusters_now(service, &row, &proposal).await,
        proposal,
    })
}

/// The request of a counter offer that is accepted, in these words where there are some.
async fn request_of_acceptance(
    service: &Service,
    said: WordedOffer,
    words: Option<KeptOffer>,
    instance: &NegotiationInstance,
) -> Result<Result<Request>> {
    let party = instance.party.clone();
    let replaced = agreement_replaced_by_negotiation(service, instance).await?;
    service
        .run_work_with_files(move |service| {
            request_of_checked_acceptance(service, &said, words.clone(), &party, replaced.as_ref())
        })
        .await
}

/// The request of a counter offer: its promise at the time when it was made, even if templates and applications have
/// changed since. The words that accept it have to say the same, but for their name; without them its own are taken.
pub(super) fn request_of_checked_acceptance(
    service: &Service,
    said: &WordedOffer,
    words: Option<KeptOffer>,
    party: &str,
    replaced: Option<&Agreement>,
) -> Result<Request> {
    let offered = content_of_offer(&said.words);
    let kept = match words {
        None => KeptOffer::of_values(offered),
        Some(words) => {
            check_words_as_offered(&words, &offered)?;
            words
        }
    };
    let promised = said.row.terms.as_ref();
    let Some((terms, promise)) = promised.and_then(|terms| Some((terms, terms.promise.as_deref()?))) else {
        return Err(Error::Internal(
            "an offer that was held has no promise".to_owned(),
        ));
    };
    let goes_on = replaced.is_some_and(Agreement::is_being_carried_out);
    let job = promise.job.as_ref().filter(|_| !goes_on);
    if job.is_some_and(|job| !accepted_job_is_in_catalogue(service, job)) {
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
fn accepted_job_is_in_catalogue(service: &Service, job: &Job) -> bool {
    let version = job.version.as_deref();
    service.catalogue().find(&job.application, version).is_some()
}

/// Why an offer cannot be accepted, as far as the store tells.
fn why_accepted_offer_is_lost(
    service: &Service,
    row: &NegotiationOffer,
    instance: &NegotiationInstance,
) -> Option<OfferLoss> {
    let now = service.clock.now();
    if row.agreement.is_some() {
        Some(OfferLoss::Accepted)
    } else if row.creator == NegotiationRole::Initiator {
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
pub(super) async fn error_of_lost_acceptance(
    service: &Service,
    lost: OfferLoss,
    (row, instance): (&NegotiationOffer, &NegotiationInstance),
    holds: bool,
    form: ValuePlaces,
    key: Option<RequestKey>,
) -> Error {
    let mut fresh = Vec::new();
    if instance.state(service.clock.now()) == NegotiationState::Open
        && lost != OfferLoss::Replaced
        && let Some(parent) = row.parent.filter(|_| row.creator == NegotiationRole::Responder)
    {
        match answer_offer_again(service, instance, parent, holds, form, key).await {
            Ok(answers) => fresh = answers,
            // The answer reports the loss, without fresh offers.
            Err(why) => tracing::debug!(error = %why, "there are no fresh offers"),
        }
    }
    Error::Lost(Box::new(LostOffer { lost, fresh }))
}

/// Checks the words that accept a counter offer: the same as the offer, except for the name.
fn check_words_as_offered(words: &KeptOffer, offered: &AgreementOffer) -> Result<()> {
    let places = ValuePlaces::document(OFFER);
    let made = offered.make();
    let offered = Document::made(&made, &places).map_err(Error::Malformed)?;
    // An agreement shows the words: what no value says in them must have been offered, too.
    let text = words.document().unwrap_or_else(|| words.offer.to_xml());
    let sent = Document::written(&text).map_err(Error::Malformed)?;
    if let Some(difference) = first_difference(&sent, &offered) {
        return Err(difference.into());
    }
    let wrong = wrong_labels(&sent, &words.offer);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(Violations(wrong)))
    }
}

/// The names of the negotiation and the agreement are the right ones.
fn check_accepted_names(accepting: &AcceptanceInput, instance: &NegotiationInstance) -> Result<()> {
    let extension = element_of_acceptance(accepting.replaced.is_some());
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
fn faults_of_checked_acceptance(input: &str, error: Error) -> Error {
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
