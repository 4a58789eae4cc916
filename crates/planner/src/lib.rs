//! The single writer of a domain. It owns the plan: one slot tree a resource and every agreement that still occupies
//! one. Commands come in by a bounded queue and are decided one after another. They are answered only after their batch
//! is stored (group commit), so that every answer to a client survives a crash.
//!
//! The database is the truth. When a commit fails, or its outcome is unknown, or something is found in the plan that must
//! never happen, the plan is read anew before anything else is decided.

#![expect(
    clippy::missing_errors_doc,
    reason = "the handle to the writer says of each verb when it fails"
)]
#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method of a decider of one lifetime is none of every decider"
)]

mod admission;
mod batches;
mod census;
mod command;
mod decide;
mod decider;
mod error;
mod fault;
mod free_time;
mod handle;
mod idempotency;
mod invariant;
mod lifecycle;
mod live_agreements;
mod metrics;
mod offers;
mod picture;
mod placement;
mod plan;
mod recall;
mod recent_view;
mod request;
mod requests;
mod reserving;
mod resources;
mod settings;
mod signals;
mod slot_numbers;
mod start_error;
mod stored_plan;
mod stored_trial;
mod timetable;
mod trial;
mod verbs;
mod words;
mod writer;

pub use admission::availability::Availability;
pub use admission::energy::{Energy, Kwh, Watts};
pub use admission::price_list::Pricing;
pub use admission::share::{PartyUsage, ResourceUsage};
pub use census::{AHEAD, Census, ResourceCensus};
pub use decider::{Decider, DecisionStep};
pub use error::{AlternativeSlot, Error, Inconsistent, OfferLoss, Refusal, Result};
pub use fault::IMPOSSIBLE;
pub use handle::Planner;
pub use idempotency::RememberedAnswers;
pub use lifecycle::at_peer::MadeAtPeer;
pub use lifecycle::eviction::{EvictedAgreement, Eviction};
pub use lifecycle::overruns::Overruns;
pub use lifecycle::pending::{CallBackTarget, Pending, PendingRequest, Settlement};
pub use offers::messages::{
    Acceptance, Bargain, Candidate, Initiation, NegotiationEnd, OfferOrigin, OfferRequest, OfferWords,
    ProposedNegotiation, Quote, Weights,
};
pub use offers::ranking::best_candidates;
pub use offers::suggestion::{Suggestion, WAITING_MAX};
pub use picture::{Picture, PicturedResource, PicturedSlot, SlotOf};
pub use placement::ordered_moves::MoveOrder;
pub use plan::Plan;
pub use request::{AcceptedOffer, Idempotency, Request, Scope, Termination};
pub use resources::failures::Failures;
pub use resources::foresight::Foresight;
pub use resources::machines::{machines_as_configured, machines_of_rows};
pub use resources::node_status::NodeOverride;
pub use resources::orders::{
    RESOURCES_MAX, Reconfiguration, ResourceChanges, ResourceOrder, ResourceVerb, ResourceWish,
};
pub use resources::resource_plan::NodeStatus;
pub use settings::{ImprovementSettings, NegotiationLimits, Policies, Proposals, Quotas, Refusals, Settings};
pub use start_error::StartError;
pub use stored_trial::try_proposal;
pub use trial::{TrialResult, TriedPlace, try_request};

#[cfg(test)]
mod tests;
