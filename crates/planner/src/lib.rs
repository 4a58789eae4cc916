//! The decisions of a domain: from a plan in memory and a request to the changes that are stored and the answer that is given. Nothing
//! here waits, stores or asks for the time.
//!
//! The [`State`] has one slot tree a resource and every agreement that still occupies one. A [`Decider`] is made on it for a batch of
//! commands, each of which is a struct that is a [`Command`]. Where something is found in the plan that must never happen, the plan is made anew
//! from the store before anything else is decided.

mod agreements;
mod calendar;
mod census;
mod commands;
mod context;
mod decider;
mod decisions;
mod elsewhere;
mod error;
mod free_time;
mod idempotency;
mod impossible;
#[cfg(feature = "faults")]
mod injected_faults;
mod journal;
mod life;
mod limits;
mod options;
mod overruns;
mod picture;
mod placement;
mod prices;
mod refusal;
mod request;
mod resources;
mod schedules;
mod settings;
mod state;
mod table;
mod timetable;
mod tried_place;

pub use calendar::{Calendar, CalendarCell, CalendarResource, ShowCalendar};
pub use census::{AHEAD, Census, ResourceCensus};
pub use commands::{
    Accept, AddFeesOfChange, BeginDue, CallBackTarget, ChangeResource, CheckChangeAtPeer, CheckClosed,
    CheckLaterStart, Command, Configure, CountNodes, DecidePending, Decision, EndNegotiation, EndWithoutPeer,
    Evict, EvictedAgreement, ExchangeOffers, ForeseeReservation, Initiate, KeepAnswer, KeepNodes,
    ListBoundNodes, ListNodes, ListPlanned, ListRunning, MoveAgreement, MoveToPeer, OpenResource, Operations,
    Outcome, OverrideNodes, PendingRequest, Place, Propose, PutAtPeer, QuoteEnding, QuoteOffers,
    ReportAtPeer, ReportBrought, ReportEnded, ReportHandingOver, ReportReserving, ReportStaging,
    ReportStarted, ReportStopped, ReportUnable, ReportUnused, ResourceOperations, ResourceStanding, SetNodes,
    SetTariff, ShowAvailability, ShowOperations, ShowPolicies, ShowStandings, ShowUsage, SubmitPending,
    TakeCensus, TakePicture, Terminate,
};
pub use decider::{Decider, DecisionStep};
pub use elsewhere::HolderWord;
pub use elsewhere::peer::MadeAtPeer;
pub use error::{Error, Inconsistent, OfferLoss, Result};
pub use impossible::IMPOSSIBLE;
pub use life::unsettled_moves::UnsettledMoves;
pub use limits::party_usage::{PartyUsage, ResourceUsage};
pub use options::CommandOptions;
pub use overruns::Overruns;
pub use picture::{Picture, PicturedResource, PicturedSlot, PicturedSlotOf};
pub use prices::energy::{Energy, Kwh, Watts};
pub use prices::pricing::Pricing;
pub use refusal::{AlternativeSlot, Refusal};
pub use request::{AcceptedOffer, Idempotency, RememberedAnswers, Request, Scope};
pub use resources::machines::{machines_as_configured, machines_of_rows};
pub use resources::orders::{RESOURCES_MAX, ResourceChanges, ResourceVerb, ResourceWish};
pub use schedules::failures::Failures;
pub use schedules::foresight::Foresight;
pub use schedules::resource_plan::NodeStatus;
pub use settings::{ImprovementSettings, NegotiationLimits, Policies, Proposals, Quotas, Refusals, Settings};
pub use state::State;
pub use table::candidates::{Candidate, OfferOrigin, OfferWords, Weights};
pub use table::quote::Quote;
pub use table::ranking::rank_best_candidates;
pub use table::suggestion::{SUGGESTIONS_MAX, Suggestion};
pub use tried_place::{TrialResult, TriedPlace, try_place_for_request};

#[cfg(test)]
mod tests;
