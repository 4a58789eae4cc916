//! Offers with an AgreementId and acceptances of counter offers that come again: the same words have the agreement of the first time, also
//! where both came at once.

use domain::agreement::{
    Agreement, AgreementState, EventKind, NegotiationInstance, NegotiationOffer, Wording,
};
use store::agreements::{self, AgreementFilter};
use store::{negotiations, trail_lines, undecided_agreements};
use uuid::Uuid;

use crate::agreements::find::{find_why_agreement_was_rejected, view_found_agreement};
use crate::codec::acceptance::AcceptanceInput;
use crate::codec::kept_offer::{KeptOffer, read_kept_offer_by_id};
use crate::idempotency::earlier_answer;
use crate::negotiations::negotiation::agreement_replaced_by_negotiation;
use crate::views::worded_offer::{WordedOffer, content_of_offer};
use crate::{AcceptedView, Error, RequestKey, Result, Service};

/// An offer with an AgreementId, by which the same offer is known when it comes again.
pub(crate) struct OfferIdentity {
    id: String,
    words: Wording,
    /// Whether it asks to be decided later.
    is_pending: bool,
}

impl OfferIdentity {
    /// The identity of an offer with an AgreementId. An offer that accepts a counter offer is known by that too, and has another: see
    /// [`answer_to_repeated_offer_acceptance`].
    pub(super) fn of(kept: &KeptOffer, is_pending: bool) -> Option<Self> {
        Some(Self {
            id: kept.offer.agreement_id.clone()?,
            words: kept.wording(),
            is_pending,
        })
    }
}

/// The AgreementId, if any, and the words of an acceptance of a counter offer: its own, or those of the counter offer as it stands.
fn words_of_repeated_acceptance(own: Option<KeptOffer>, offered: &WordedOffer) -> (Option<String>, Wording) {
    let words = own.unwrap_or_else(|| KeptOffer::of_values(content_of_offer(&offered.words)));
    (words.offer.agreement_id.clone(), words.wording())
}

/// The answer to an offer with an AgreementId, if the same offer came before under this id.
///
/// # Errors
/// [`Error::IdTaken`] where that was another offer, or it came by the other operation; [`Error::Unavailable`].
pub(super) async fn first_answer_to_offer(
    service: &Service,
    party: &str,
    named: &OfferIdentity,
) -> Result<Option<AcceptedView>> {
    let Some(first) = agreements::first_agreement_with_id(&service.store, party, &named.id).await? else {
        return Ok(None);
    };
    match answer_to_repeated_offer(service, &first, &named.words, named.is_pending).await? {
        None => Err(Error::IdTaken(named.id.clone())),
        answer => Ok(answer),
    }
}

/// The answer to the acceptance of a counter offer, if the same words have accepted the same counter offer before: it can be accepted
/// once, so that this is the same request.
///
/// # Errors
/// [`Error::Unavailable`].
pub(super) async fn answer_to_repeated_offer_acceptance(
    service: &Service,
    party: &str,
    accepting: &AcceptanceInput,
    is_pending: bool,
) -> Result<Option<AcceptedView>> {
    let offered = read_kept_offer_by_id(service, accepting.offer).await?;
    let (id, words) = words_of_repeated_acceptance(accepting.words.clone(), &offered);
    let waiting = match &id {
        Some(id) if is_pending => repeated_offer_waiting_for(service, party, id, accepting.offer).await?,
        _ => None,
    };
    let first = match waiting {
        Some(waiting) => Some(waiting),
        // Read again: an acceptance that waited when the offer was read may be decided by now.
        None => match negotiations::negotiation_offer(&service.store, accepting.offer).await? {
            Some((row, _)) => agreement_of_repeated_offer(service, &row).await?,
            None => None,
        },
    };
    match first.filter(|agreement| agreement.party == party && agreement.initiator_id == id) {
        Some(first) => answer_to_repeated_offer(service, &first, &words, is_pending).await,
        None => Ok(None),
    }
}

async fn agreement_of_repeated_offer(
    service: &Service,
    offer: &NegotiationOffer,
) -> Result<Option<Agreement>> {
    match offer.agreement {
        Some(agreement) => Ok(agreements::agreement(&service.store, agreement).await?),
        None => Ok(None),
    }
}

/// The answer to an acceptance that is decided later, if it was taken before under this key, which is that of its own content.
///
/// # Errors
/// [`Error::Unavailable`].
pub(super) async fn repeated_offer_taken_before(
    service: &Service,
    key: &RequestKey,
) -> Result<Option<AcceptedView>> {
    let Some(answer) = earlier_answer::<AcceptedView>(service, Some(key)).await? else {
        return Ok(None);
    };
    let taken = agreements::agreement(&service.store, answer.agreement.id).await?;
    match taken.filter(|taken| taken.state == AgreementState::Rejected) {
        Some(rejected) => answer_to_repeated_offer_once_pending(service, &rejected)
            .await
            .map(Some),
        None => Ok(Some(answer)),
    }
}

/// The answer about an agreement that was pending: as it was then, or that it is rejected, and why.
async fn answer_to_repeated_offer_once_pending(
    service: &Service,
    agreement: &Agreement,
) -> Result<AcceptedView> {
    let mut view = view_found_agreement(service, agreement);
    view.rejection = find_why_agreement_was_rejected(service, agreement).await?;
    if view.rejection.is_none() {
        AgreementState::Pending.word().clone_into(&mut view.state);
    }
    Ok(AcceptedView::alone(view))
}

/// The agreement of a party with an AgreementId that is to be decided about a counter offer.
async fn repeated_offer_waiting_for(
    service: &Service,
    party: &str,
    id: &str,
    offer: Uuid,
) -> Result<Option<Agreement>> {
    let filter = AgreementFilter {
        party: Some(party.to_owned()),
        initiator_id: Some(id.to_owned()),
        ..AgreementFilter::default()
    };
    // An agreement that takes the place of another under the same id is newer than that.
    let (newest, _) = agreements::agreements_page(&service.store, &filter, None, 1).await?;
    let Some((newest, _)) = newest.into_iter().next() else {
        return Ok(None);
    };
    let before = Uuid::from_u128(newest.id.as_u128().saturating_sub(1));
    let waiting = undecided_agreements::undecided_agreements(&service.store, before, 1).await?;
    let is_this = waiting
        .first()
        .is_some_and(|waiting| waiting.agreement == newest.id && waiting.offer == Some(offer));
    Ok(is_this.then_some(newest))
}

/// The answer to an offer that an agreement was made of; none where its words or its operation were others.
async fn answer_to_repeated_offer(
    service: &Service,
    first: &Agreement,
    words: &Wording,
    is_pending: bool,
) -> Result<Option<AcceptedView>> {
    let kept = agreements::agreement_document(&service.store, first.id).await?;
    // One operation answers with what is decided, the other with what is pending: neither has the answer of the other.
    let events = trail_lines::trail_lines_of_agreement(&service.store, first.id).await?;
    let was_pending = events.iter().any(|event| event.kind == EventKind::Offered.word());
    if kept.as_ref() != Some(words) || was_pending != is_pending {
        return Ok(None);
    }
    if was_pending {
        return answer_to_repeated_offer_once_pending(service, first)
            .await
            .map(Some);
    }
    Ok(Some(AcceptedView::alone(view_found_agreement(service, first))))
}

/// Refuses the AgreementId of an agreement from a negotiation that another of its party has. The one that takes the place of
/// an agreement may keep its id.
///
/// # Errors
/// [`Error::IdTaken`], [`Error::Unavailable`].
pub(crate) async fn check_offer_is_not_repeated(
    service: &Service,
    proposal: &planner::Request,
    instance: &NegotiationInstance,
) -> Result<()> {
    let Some(id) = &proposal.initiator_id else {
        return Ok(());
    };
    let replaced = agreement_replaced_by_negotiation(service, instance).await?;
    if replaced.is_some_and(|replaced| replaced.initiator_id.as_ref() == Some(id)) {
        return Ok(());
    }
    match agreements::first_agreement_with_id(&service.store, &proposal.party, id).await? {
        None => Ok(()),
        Some(_) => Err(Error::IdTaken(id.clone())),
    }
}
