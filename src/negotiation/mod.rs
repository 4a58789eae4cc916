//! The use cases, one file a verb, between the documents of WS-Agreement and the requests of the planner: the one
//! place where the two meet. HTTP and the portal call these and nothing below.

mod agreements;
mod calendar;
mod call_backs;
mod chart_rows;
mod codec;
mod discovery;
mod error;
mod gantt;
mod idempotency;
mod keys;
mod maintenance;
mod negotiations;
mod past_use;
mod peers;
mod reconcile;
mod replicas;
mod request;
mod resources;
mod service;
mod templates;
mod views;

pub use crate::federation::discovery::Domain;
pub use agreements::ending::{EndingAtPeerView, EndingView, PaymentView};
pub use agreements::evict::{EvictRequest, EvictedView};
pub use agreements::files::{FilesView, Output, Upload};
pub use agreements::list::agreements_within;
pub use agreements::move_to::MoveRequest;
pub use agreements::reservations::{ReservationPage, ReservationPlace};
pub use agreements::show::AgreementDetails;
pub use agreements::terminate::{TerminateRequest, terminate_input};
pub use call_backs::{CallBackView, CallBacksView, EventsView};
pub use codec::json::Json;
pub use domain::request::{CatalogueJob, Request};
use error::Result;
pub use error::{Error, continuing_fault};
pub use execution::lead::LeaderQuestion;
pub use idempotency::{RequestKey, StoredAnswer};
pub use keys::{KeyRequest, read_key_expiry};
pub use negotiations::exchange::OfferMessage;
pub use negotiations::flat_offers::{AnswersView, NegotiatedView};
pub use negotiations::forms::{EstimateView, ReadOffer};
pub use negotiations::list::{NegotiationsView, negotiations_opened_within};
pub use negotiations::{NegotiationView, end_negotiation_input};
pub use planner::ResourceVerb;
pub use reconcile::{DifferenceView, ReconciledView};
pub use resources::{NAMED_VERBS, NamedVerb};
pub use scheduler::domain::Attribute;
pub use service::{Input, Scope, Service};
pub use store::{AgreementFilter, NegotiationFilter, ReservationFilter};
pub use templates::{OnLoss, TemplateText, Templates, millionths};
pub use views::accounts::{AccountsView, EntryView, MonthView, NamedEntryView, is_month};
pub use views::agreement::{
    AcceptedView, AgreementPage, AgreementView, AtPeerView, EventView, GuaranteeView, PieceView,
    ProposalView, StagedView, TemplateView, TimelineView,
};
pub use views::availability::{AvailabilityQuery, AvailabilityView};
pub use views::calendar::{CalendarCellView, CalendarQuery, CalendarResourceView, CalendarView};
pub use views::chart_slot::ChartSlotView;
pub use views::conditions::{AttributesView, ConditionView, WithinView};
pub use views::discovery::{
    ApplicationsView, CostView, OfferedResourceView, OfferedResourcesView, PriceListView, PricesView,
};
pub use views::documents::{write_create_pending_response, write_create_response, write_terminate_response};
pub use views::explanation::{ExplanationView, FlexibilityView};
pub use views::gantt::{GanttQuery, GanttResourceView, GanttUnusedView, GanttView, PlanChangeView};
pub use views::maintenance::{MaintenanceView, MaintenancesView};
pub use views::nodes::{NodeView, NodesView, RepairedView};
pub use views::offer::{FoundOfferView, OfferView, QuotationView};
pub use views::operations::{OperationsView, UtilisationView, WaitingView};
pub use views::past_use::{PastUseView, PeriodUseView, ResourcePastUseView};
pub use views::peers::{PeerView, PeersView};
pub use views::policies::{PoliciesView, QuotasView};
pub use views::refusal::{RefusalView, RelaxationView};
pub use views::reliability::ReliabilityView;
pub use views::resources::{
    PlaceChangeView, ReloadOrder, ReloadedView, ResourceChangesView, ResourceView, ResourcesView,
};
pub(crate) use views::schemas;
pub use views::trail::{RefusedView, TrailLineView, TrailView};
pub use views::usage::UsageView;
pub use views::values::MoneyView;
pub use views::values::second_as_date_time;
