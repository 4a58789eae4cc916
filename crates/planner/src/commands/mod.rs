//! The commands: what the planner is asked for. Each is a struct in the file of its verb, with its answer, how it is counted, and one
//! `decide` from the plan to the changes that are stored and the answer that is given. A question is a command without changes. The structs of
//! [`QuoteOffers`] and of the calendar are in `table/candidates.rs` and `calendar.rs`, where they are read.

mod accept;
mod add_fees_of_change;
mod begin_due;
mod change_resource;
mod check_change_at_peer;
mod check_closed;
mod check_later_start;
mod configure;
mod count_nodes;
mod decide_pending;
mod end_negotiation;
mod end_without_peer;
mod evict;
mod exchange_offers;
mod foresee_reservation;
mod initiate;
mod keep_answer;
mod keep_nodes;
mod list_bound_nodes;
mod list_nodes;
mod list_planned;
mod list_running;
mod move_agreement;
mod move_to_peer;
mod open_resource;
mod override_nodes;
mod place;
mod propose;
mod put_at_peer;
mod quote_ending;
mod quote_offers;
mod report_at_peer;
mod report_brought;
mod report_ended;
mod report_handing_over;
mod report_reserving;
mod report_staging;
mod report_started;
mod report_stopped;
mod report_unable;
mod report_unused;
mod set_nodes;
mod set_tariff;
mod show_availability;
mod show_calendar;
mod show_operations;
mod show_policies;
mod show_standings;
mod show_usage;
mod submit_pending;
mod take_census;
mod take_picture;
mod terminate;

use uuid::Uuid;

use crate::decider::{Decider, DecisionStep};
use crate::error::Result;
use crate::refusal::Refusal;
use crate::request::Scope;

pub use accept::Accept;
pub use add_fees_of_change::AddFeesOfChange;
pub use begin_due::BeginDue;
pub use change_resource::ChangeResource;
pub use check_change_at_peer::CheckChangeAtPeer;
pub use check_closed::CheckClosed;
pub use check_later_start::CheckLaterStart;
pub use configure::Configure;
pub use count_nodes::CountNodes;
pub use decide_pending::{CallBackTarget, DecidePending, PendingRequest};
pub use end_negotiation::EndNegotiation;
pub use end_without_peer::EndWithoutPeer;
pub use evict::{Evict, EvictedAgreement};
pub use exchange_offers::ExchangeOffers;
pub use foresee_reservation::ForeseeReservation;
pub use initiate::Initiate;
pub use keep_answer::KeepAnswer;
pub use keep_nodes::KeepNodes;
pub use list_bound_nodes::ListBoundNodes;
pub use list_nodes::ListNodes;
pub use list_planned::ListPlanned;
pub use list_running::ListRunning;
pub use move_agreement::MoveAgreement;
pub use move_to_peer::MoveToPeer;
pub use open_resource::OpenResource;
pub use override_nodes::OverrideNodes;
pub use place::Place;
pub use propose::Propose;
pub use put_at_peer::PutAtPeer;
pub use quote_ending::QuoteEnding;
pub use quote_offers::QuoteOffers;
pub use report_at_peer::ReportAtPeer;
pub use report_brought::ReportBrought;
pub use report_ended::ReportEnded;
pub use report_handing_over::ReportHandingOver;
pub use report_reserving::ReportReserving;
pub use report_staging::ReportStaging;
pub use report_started::ReportStarted;
pub use report_stopped::ReportStopped;
pub use report_unable::ReportUnable;
pub use report_unused::ReportUnused;
pub use set_nodes::SetNodes;
pub use set_tariff::SetTariff;
pub use show_availability::ShowAvailability;
pub use show_operations::{Operations, ResourceOperations, ShowOperations};
pub use show_policies::ShowPolicies;
pub use show_standings::{ResourceStanding, ShowStandings};
pub use show_usage::ShowUsage;
pub use submit_pending::SubmitPending;
pub use take_census::TakeCensus;
pub use take_picture::TakePicture;
pub use terminate::Terminate;

/// What is asked of the planner.
pub trait Command: Sized + Send + Sync + 'static {
    /// What it is answered with.
    type Answer: Send + 'static;

    /// The word under which decisions about it are counted; none where they are not.
    const COUNTED_AS: Option<&'static str> = None;

    /// The name under which its answer is remembered, where it is to have one effect only.
    fn scope(&self) -> Option<Scope> {
        None
    }

    /// The agreement that it would make, where it may have to wait until the agreement's cluster holds the nodes.
    fn awaited_agreement(&self) -> Option<Uuid> {
        None
    }

    /// The party for which a refusal of it is noted in the audit trail, and the subject of the note.
    fn noted_for(&self) -> Option<(String, Uuid)> {
        None
    }

    /// What an answer is counted as.
    fn outcome(_: &Self::Answer) -> Outcome<'_> {
        Outcome::Granted
    }

    /// Decides it.
    ///
    /// # Errors
    /// Those that the command names.
    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self>;
}

/// The decision about a command.
pub type Decision<C> = Result<DecisionStep<<C as Command>::Answer, C>>;

/// What an answer is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// What was asked for is granted.
    Granted,
    /// It is refused, for a reason that may be told in words only.
    Refused(Option<&'a Refusal>),
}
