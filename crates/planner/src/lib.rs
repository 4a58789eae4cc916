//! The decisions of a domain: from a plan in memory and a request to the changes that are stored and the answer that is given. Nothing
//! here waits, stores or asks for the time.
//!
//! The [`Plan`] has one slot tree a resource and every agreement that still occupies one. A [`Decider`] is made on it for a batch of
//! commands, each of which is a struct that is a [`Command`]. Where something is found in the plan that must never happen, the plan is made anew
//! from the store before anything else is decided.

mod admission;
mod census;
mod commands;
mod context;
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

pub use admission::energy::{Energy, Kwh, Watts};
pub use admission::price_list::Pricing;
pub use admission::share::{PartyUsage, ResourceUsage};
pub use census::{AHEAD, Census, ResourceCensus};
pub use commands::{
    Accept, AddFeesOfChange, BeginDue, CallBackTarget, ChangeResource, CheckChangeAtPeer, CheckClosed,
    CheckLaterStart, Command, CommandOptions, Configure, CountNodes, DecidePending, Decision, EndNegotiation,
    EndSought, Evict, EvictedAgreement, ExchangeOffers, ForeseeReservation, Initiate, KeepAnswer, KeepNodes,
    ListBoundNodes, ListNodes, ListPlanned, ListRunning, MoveAgreement, OpenResource, Outcome, OverrideNodes,
    PendingRequest, Place, PlaceSought, Propose, PutAtPeer, QuoteEnding, QuoteOffers, ReportAtPeer,
    ReportBrought, ReportEnded, ReportHandingOver, ReportReserving, ReportStaging, ReportStarted,
    ReportStopped, ReportUnable, ReportUnused, SetNodes, SetTariff, ShowAvailability, ShowUsage,
    SubmitPending, TakeCensus, TakePicture, Terminate,
};
pub use decider::{Decider, DecisionStep};
pub use error::{AlternativeSlot, Error, Inconsistent, OfferLoss, Refusal, Result};
pub use fault::IMPOSSIBLE;
pub use lifecycle::at_peer::MadeAtPeer;
pub use lifecycle::overruns::Overruns;
pub use offers::messages::{Candidate, OfferOrigin, OfferWords, Quote, Weights};
pub use offers::ranking::best_candidates;
pub use offers::suggestion::{SUGGESTIONS_MAX, Suggestion};
pub use picture::{Picture, PicturedResource, PicturedSlot, SlotOf};
pub use plan::Plan;
pub use request::{AcceptedOffer, Idempotency, RememberedAnswers, Request, Scope};
pub use resources::failures::Failures;
pub use resources::foresight::Foresight;
pub use resources::machines::{machines_as_configured, machines_of_rows};
pub use resources::orders::{RESOURCES_MAX, ResourceChanges, ResourceVerb, ResourceWish};
pub use resources::resource_plan::NodeStatus;
pub use settings::{ImprovementSettings, NegotiationLimits, Policies, Proposals, Quotas, Refusals, Settings};
pub use trial::{TrialResult, TriedPlace, try_request};

#[cfg(test)]
mod tests;
