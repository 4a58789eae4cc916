//! Proposals of the provider: a negotiation that it opens about a party's agreement, with offers that the party may accept
//! like any other. The planner makes suggestions; here they become documents. An offer that is not accepted lapses, and
//! nothing has moved.

use domain::agreement::{
    Agreement, GuaranteeState, Money, NegotiationInstance, Obligated, OfferState, ProposalReason,
};
use domain::clock::MICROS_PER_SECOND;
use domain::request::Request;
use planner::{ExchangeOffers, Propose, Suggestion};
use store::{agreements, negotiations};
use task::note_success;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wsag::ValuePlaces;
use wsag::time::DateTime;

use crate::codec::kept_offer::{kept_offer_of_agreement, offer_words_to_keep};
use crate::negotiations::answers::negotiation_answers_to_offer;
use crate::negotiations::counter_offers::counter_offer_of_provider;
use crate::negotiations::incoming_offer::{CheckedIncomingOffer, IncomingOffer};
use crate::negotiations::initiate::negotiation_opening_to_keep;
use crate::views::agreement::{ProposalView, ProposedView};
use crate::views::money_and_time::{MoneyView, second_as_date_time};
use crate::{Error, Result, Service};

/// Agreements that were lost just before a restart for which something is proposed after it.
const UNANSWERED_MAX: u32 = 1_000;
/// Seconds by which a proposal outlives its offers, which are found a little after it was thought of.
const OUTLIVES: i64 = 10;

/// Makes offers of the planner's suggestions, until it is told to stop; first for the agreements that were lost just
/// before a restart.
pub async fn propose_changes(
    service: Service,
    mut suggestions: broadcast::Receiver<Suggestion>,
    stop: CancellationToken,
) {
    let since = service.clock.micros() - service.planner.negotiating().hold * MICROS_PER_SECOND;
    match agreements::unanswered_lost_agreements(&service.store, since, UNANSWERED_MAX).await {
        Ok(lost) => {
            for agreement in lost {
                try_to_propose(&service, Suggestion::instead_of(agreement)).await;
            }
        }
        Err(why) => tracing::warn!(error = %why, "the agreements lost before the start are not known"),
    }
    loop {
        let suggestion = tokio::select! {
            () = stop.cancelled() => return,
            suggestion = suggestions.recv() => suggestion,
        };
        match suggestion {
            Ok(suggestion) => {
                try_to_propose(&service, suggestion).await;
                note_success();
            }
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "changes are not proposed"),
            Err(RecvError::Closed) => return,
        }
    }
}

async fn try_to_propose(service: &Service, suggestion: Suggestion) {
    let (agreement, reason) = (suggestion.agreement.id, suggestion.reason.word());
    match propose_change(service, suggestion).await {
        Ok(id) => tracing::info!(%agreement, reason, negotiation = %id, "a change is proposed"),
        Err(why) => tracing::debug!(%agreement, reason, error = %why, "nothing is proposed"),
    }
}

/// Opens a negotiation about an agreement with offers on its table; its id.
async fn propose_change(service: &Service, suggestion: Suggestion) -> Result<Uuid> {
    let Suggestion {
        agreement, reason, ..
    } = &suggestion;
    let (about, now) = (agreement.id, service.clock.now());
    if *reason == ProposalReason::BetterFit
        && negotiations::was_proposed_in_negotiation(&service.store, about).await?
    {
        // Or two parties could work a price down together.
        return Err(Error::Conflict("the agreement was moved before".to_owned()));
    }
    let offer = kept_offer_of_agreement(service, about).await?.offer;
    let hold = service.planner.negotiating().hold;
    // The replacement of a slot that was to be over by now may end later.
    let late = agreement.deadline - agreement.placement().duration() < now + hold;
    let end = now + hold + agreement.placement().duration();
    let wish = Request {
        end: late.then(|| DateTime::from_seconds(end.seconds())),
        ..Request::default()
    };
    let instance = NegotiationInstance {
        id: Uuid::now_v7(),
        party: agreement.party.clone(),
        agreement: Some(about),
        created: service.clock.micros(),
        // Its offers stand no longer than they are held, which begins a little later.
        expires: now + hold + OUTLIVES,
        ended: None,
        proposed: Some(*reason),
    };
    let offered = service.templates.get(&agreement.template);
    let agreed = wish.change(&offer, offered.as_ref().map(|offered| &offered.template));
    // The root of the proposal is the agreement in the provider's words.
    let template = agreed.context.template_id.clone().unwrap_or_default();
    let mut root = counter_offer_of_provider(
        service,
        instance.id,
        (None, &template),
        OfferState::Advisory,
        agreed,
    );
    root.row.expires = Some(instance.expires);
    let incoming = offer_words_to_keep(&root);
    let understood = CheckedIncomingOffer::of_provider(suggestion, &root.words.constraints);
    let placed = IncomingOffer::new(root.words, ValuePlaces::document(""));
    let answers = negotiation_answers_to_offer(service, &instance, root.row.id, understood, &placed).await?;
    if answers
        .iter()
        .all(|answer| answer.row.state == OfferState::Rejected)
    {
        return Err(Error::Conflict("there is no other place".to_owned()));
    }
    let proposed = Propose {
        document: negotiation_opening_to_keep(Some(about)),
        offers: ExchangeOffers {
            opening: None,
            negotiation: instance.id,
            incoming: Some(incoming),
            answers: answers.iter().map(offer_words_to_keep).collect(),
            otherwise: OfferState::Rejected,
            idempotency: None,
        },
        negotiation: instance.clone(),
    };
    service.send(proposed).await?;
    Ok(instance.id)
}

/// The present proposals of the provider about an agreement.
pub(crate) async fn proposals_about(service: &Service, agreement: &Agreement) -> Result<Vec<ProposalView>> {
    let now = service.clock.now();
    let mut proposals = Vec::new();
    for instance in negotiations::negotiations_proposed_about(&service.store, agreement.id, now).await? {
        let held = negotiations::held_offers_of_negotiation(&service.store, instance.id).await?;
        let held = held.iter().filter(|(row, _)| !row.is_expired(now));
        let offers: Vec<_> = held
            .filter_map(|(row, _)| Some(ProposedView::of(row.id, row.terms.as_ref()?)))
            .collect();
        if !offers.is_empty() {
            proposals.push(ProposalView {
                negotiation: instance.id,
                reason: instance.proposed.map_or("", ProposalReason::word).to_owned(),
                expires: second_as_date_time(instance.expires),
                penalties: penalties_of_proposal(agreement, &instance),
                offers,
            });
        }
    }
    Ok(proposals)
}

/// The payment because the agreement of a negotiation was not kept.
pub(crate) async fn penalties_about_proposal(
    service: &Service,
    instance: &NegotiationInstance,
) -> Result<Vec<MoneyView>> {
    let broken = instance.proposed == Some(ProposalReason::Broken);
    match instance.agreement.filter(|_| broken) {
        None => Ok(Vec::new()),
        Some(id) => {
            let agreement = agreements::agreement(&service.store, id)
                .await?
                .ok_or(Error::NotFound)?;
            Ok(penalties_of_proposal(&agreement, instance))
        }
    }
}

/// The payment to its party, by the terms of an agreement that could not be kept.
fn penalties_of_proposal(agreement: &Agreement, instance: &NegotiationInstance) -> Vec<MoneyView> {
    if instance.proposed != Some(ProposalReason::Broken) {
        return Vec::new();
    }
    let owed = agreement.guarantees.iter().filter(|guarantee| {
        guarantee.state == GuaranteeState::Violated && guarantee.values.obligated == Obligated::Provider
    });
    let amounts = owed.flat_map(|owed| &owed.values.penalties);
    let amounts = amounts.filter_map(|amount| amount.amount(amount.paid, agreement.price));
    let mut sums: Vec<Money> = Vec::new();
    for amount in amounts {
        match sums.iter_mut().find(|sum| sum.currency == amount.currency) {
            Some(sum) => sum.micros = sum.micros.saturating_add(amount.micros),
            None => sums.push(amount),
        }
    }
    sums.into_iter().map(MoneyView::of).collect()
}

/// The agreements of a party for which the provider proposes something now that can be accepted.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn proposals_to(service: &Service, party: &str) -> Result<Vec<Uuid>> {
    Ok(
        negotiations::agreements_with_proposed_negotiations(&service.store, party, service.clock.now())
            .await?,
    )
}
