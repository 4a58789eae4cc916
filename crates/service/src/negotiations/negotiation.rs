//! A negotiation: its view, and how it is found.

use domain::agreement::{
    Agreement, NegotiationInstance, NegotiationOffer, NegotiationRole, NegotiationState, OfferState,
    ProposalReason,
};
use scheduler::Time;
use schemars::JsonSchema;
use serde::Serialize;
use store::{agreements, negotiations};
use uuid::Uuid;

use crate::views::money_and_time::{MoneyView, instant_as_date_time, second_as_date_time};
use crate::views::offer::OfferView;
use crate::views::schemas;
use crate::{Error, Result, Scope, Service};

/// A negotiation.
#[derive(Debug, Clone, JsonSchema, Serialize)]
pub struct NegotiationView {
    /// The id.
    pub id: Uuid,
    /// The party that asked for it.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The agreement that it is to replace, where it is a renegotiation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Uuid>,
    /// The state.
    #[schemars(extend("enum" = ["open", "expired", "terminated"]), example = &"open")]
    pub state: &'static str,
    /// When it was asked for.
    #[schemars(with = "schemas::Instant")]
    pub created: String,
    /// From when on nothing more is negotiated or accepted.
    #[schemars(with = "schemas::Instant")]
    pub expires: String,
    /// Why the provider has opened it by itself: better-fit or broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"better-fit")]
    pub proposed: Option<&'static str>,
    /// The payment because the agreement could not be kept, where this is the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<MoneyView>,
    /// Every offer and counter offer, oldest first; each names the one that it answers.
    pub offers: Vec<OfferView>,
}

impl NegotiationView {
    /// The view of a negotiation as it stands at `now`.
    pub(crate) fn of(instance: &NegotiationInstance, now: Time) -> Self {
        Self {
            id: instance.id,
            party: instance.party.clone(),
            agreement: instance.agreement,
            state: instance.state(now).word(),
            created: instant_as_date_time(instance.created),
            expires: second_as_date_time(instance.expires),
            proposed: instance.proposed.map(ProposalReason::word),
            penalties: Vec::new(),
            offers: Vec::new(),
        }
    }

    /// Whether offers are still taken in it.
    pub fn is_open(&self) -> bool {
        self.state == NegotiationState::Open.word()
    }
}

/// The agreement that a negotiation is to replace.
pub(crate) async fn agreement_replaced_by_negotiation(
    service: &Service,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    match instance.agreement {
        None => Ok(None),
        Some(id) => Ok(agreements::agreement(&service.store, id).await?),
    }
}

/// A negotiation, if there is one and the caller may see it.
pub(crate) async fn visible_negotiation(
    service: &Service,
    scope: &Scope,
    id: Uuid,
) -> Result<NegotiationInstance> {
    let instance = negotiations::negotiation(&service.store, id)
        .await?
        .ok_or(Error::NotFound)?;
    match scope.party() {
        Some(party) if party != instance.party => Err(Error::NotFound),
        _ => Ok(instance),
    }
}

/// Why nothing more is done in a negotiation that goes on no longer.
pub(crate) fn error_of_ended_negotiation(instance: &NegotiationInstance) -> Error {
    // It has left the planner's table, so an unended one has expired.
    match instance.state(Time::MIN) {
        NegotiationState::Terminated => Error::Conflict("the negotiation is terminated already".to_owned()),
        _ => Error::Gone("the negotiation has expired".to_owned()),
    }
}

/// Why a negotiation is no longer on the planner's table.
pub(crate) async fn why_negotiation_is_over(service: &Service, before: &NegotiationInstance) -> Error {
    match visible_negotiation(service, &Scope::All, before.id).await {
        Ok(instance) => error_of_ended_negotiation(&instance),
        Err(why) => why,
    }
}

/// A new offer of a negotiation, named by its id, of which nothing else is known yet.
pub(crate) fn new_offer_row_of_negotiation(
    service: &Service,
    negotiation: Uuid,
    parent: Option<Uuid>,
    creator: NegotiationRole,
    state: OfferState,
) -> NegotiationOffer {
    let id = Uuid::now_v7();
    NegotiationOffer {
        id,
        negotiation,
        name: id.to_string(),
        parent,
        creator,
        state,
        created: service.clock.micros(),
        expires: None,
        terms: None,
        refusal: None,
        held: None,
        released: None,
        agreement: None,
    }
}
