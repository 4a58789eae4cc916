//! A negotiation: its view, and how it is made and found.

use domain::agreement::{Agreement, AgreementState, NegotiationInstance, NegotiationState, ProposalReason};
use domain::clock::second_of;
use scheduler::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{agreements, negotiations};
use uuid::Uuid;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{InitiateInput, initiate_negotiation_output};

use crate::service::agreements::find::find_agreement;
use crate::service::idempotency::text_to_keep;
use crate::service::views::offer::OfferView;
use crate::service::views::schemas;
use crate::service::views::values::{MoneyView, instant_as_date_time, second_as_date_time};
use crate::service::{Error, Result, Scope, Service};

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
    pub(in crate::service) fn of(instance: &NegotiationInstance, now: Time) -> Self {
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
}

/// The answer to the opening of a negotiation, as it is kept for a repeated request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenedNegotiation {
    /// Its id.
    pub id: Uuid,
    /// It, as a flat value.
    pub json: String,
}

impl OpenedNegotiation {
    pub(in crate::service) fn of(instance: &NegotiationInstance) -> Self {
        Self {
            id: instance.id,
            json: text_to_keep(&NegotiationView::of(instance, second_of(instance.created))),
        }
    }

    /// Its path under the service's address.
    pub fn path(&self) -> String {
        format!("/negotiations/{}", self.id)
    }

    /// The InitiateNegotiationOutput with its address below the service's.
    pub fn document(&self, base: &str) -> String {
        initiate_negotiation_output(&EndpointReference::new(format!("{base}{}", self.path())))
    }
}

/// The request for a negotiation, from any form.
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct OpeningRequest {
    /// Until when it is to last; as long as the provider lets it where this is not said.
    pub expires: Option<Time>,
    /// The agreement that is to be replaced.
    pub agreement: Option<Uuid>,
}

/// The negotiation that is asked for; nothing is stored.
pub(in crate::service) async fn negotiation_opened_by(
    service: &Service,
    party: &str,
    opening: &OpeningRequest,
) -> Result<NegotiationInstance> {
    if let Some(agreement) = opening.agreement {
        let scope = Scope::Party(party.to_owned());
        let found = find_agreement(service, &scope, agreement).await?;
        if found.state != AgreementState::Observed {
            return Err(Error::Conflict(format!(
                "the agreement is {}, and can be changed while it is Observed only",
                found.state
            )));
        }
    }
    let latest = service.clock.now() + service.planner.negotiating().lasts;
    Ok(NegotiationInstance {
        id: Uuid::now_v7(),
        party: party.to_owned(),
        agreement: opening.agreement,
        created: service.clock.micros(),
        expires: opening.expires.unwrap_or(latest).min(latest),
        ended: None,
        proposed: None,
    })
}

/// The agreement that a negotiation is to replace.
pub(in crate::service) async fn replaced_agreement(
    service: &Service,
    instance: &NegotiationInstance,
) -> Result<Option<Agreement>> {
    match instance.agreement {
        None => Ok(None),
        Some(id) => Ok(agreements::agreement(&service.store, id).await?),
    }
}

/// A negotiation, if there is one and the caller may see it.
pub(in crate::service) async fn visible_negotiation(
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
pub(in crate::service) fn error_of_ended_negotiation(instance: &NegotiationInstance) -> Error {
    // It has left the planner's table, so an unended one has expired.
    match instance.state(Time::MIN) {
        NegotiationState::Terminated => Error::Conflict("the negotiation is terminated already".to_owned()),
        _ => Error::Gone("the negotiation has expired".to_owned()),
    }
}

/// What asks for a negotiation about a new agreement, or one in place of an agreement, as it is kept.
pub(in crate::service) fn negotiation_opening_to_keep(agreement: Option<Uuid>) -> String {
    let address = agreement.map(|agreement| EndpointReference::new(format!("/agreements/{agreement}")));
    text_to_keep(&InitiateInput::about(address))
}

/// Why a negotiation is no longer on the planner's table.
pub(in crate::service) async fn why_negotiation_is_over(
    service: &Service,
    before: &NegotiationInstance,
) -> Error {
    match visible_negotiation(service, &Scope::All, before.id).await {
        Ok(instance) => error_of_ended_negotiation(&instance),
        Err(why) => why,
    }
}
