//! The decisions of a domain: from a plan in memory and a request to the changes that are stored and the answer that is given. Nothing
//! here waits, stores or asks for the time.
//!
//! The [`Plan`] has one slot tree a resource and every agreement that still occupies one. A [`Decider`] is made on it for a batch of
//! requests, each of which is one of its methods. Where something is found in the plan that must never happen, the plan is made anew
//! from the store before anything else is decided.

#![expect(
    clippy::missing_errors_doc,
    reason = "the handle to the writer says of each verb when it fails"
)]
#![cfg_attr(
    test,
    expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method of a decider of one lifetime is none of every decider"
    )
)]

mod admission;
mod census;
mod decide;
mod decider;
mod error;
mod fault;
mod faults;
mod free_time;
mod idempotency;
mod invariant;
mod lifecycle;
mod live_agreements;
mod offers;
mod picture;
mod placement;
mod plan;
mod recall;
mod request;
mod requests;
mod reserving;
mod resources;
mod settings;
mod slot_numbers;
mod timetable;
mod trial;
mod words;

pub use admission::allowance::Allowance;
pub use admission::availability::Availability;
pub use admission::energy::{Energy, Kwh, Watts};
pub use admission::price_list::Pricing;
pub use admission::share::{PartyUsage, ResourceUsage};
pub use census::{AHEAD, Census, ResourceCensus};
pub use decider::{Decider, DecisionStep};
pub use error::{AlternativeSlot, Error, Inconsistent, OfferLoss, Refusal, Result};
pub use fault::IMPOSSIBLE;
pub use lifecycle::at_peer::MadeAtPeer;
pub use lifecycle::eviction::{EvictedAgreement, Eviction};
pub use lifecycle::overruns::Overruns;
pub use lifecycle::pending::{CallBackTarget, Pending, PendingRequest, Settlement};
pub use offers::messages::{
    Acceptance, Bargain, Candidate, Initiation, NegotiationEnd, OfferOrigin, OfferRequest, OfferWords,
    ProposedNegotiation, Quote, Weights,
};
pub use offers::ranking::best_candidates;
pub use offers::suggestion::{SUGGESTIONS_MAX, Suggestion};
pub use picture::{Picture, PicturedResource, PicturedSlot, SlotOf};
pub use placement::ordered_moves::MoveOrder;
pub use plan::Plan;
pub use request::{AcceptedOffer, Idempotency, RememberedAnswers, Request, Scope, Termination};
pub use resources::failures::Failures;
pub use resources::foresight::Foresight;
pub use resources::machines::{machines_as_configured, machines_of_rows};
pub use resources::node_status::NodeOverride;
pub use resources::orders::{
    RESOURCES_MAX, Reconfiguration, ResourceChanges, ResourceOrder, ResourceVerb, ResourceWish,
};
pub use resources::resource_plan::NodeStatus;
pub use settings::{ImprovementSettings, NegotiationLimits, Policies, Proposals, Quotas, Refusals, Settings};
pub use trial::{TrialResult, TriedPlace, try_request};

#[cfg(test)]
mod tests;
