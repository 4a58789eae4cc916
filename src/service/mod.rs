//! The use cases, one file a verb, between the documents of WS-Agreement and the requests of the planner: the one
//! place where the two meet. Each is a function that takes the `Service`. HTTP and the portal call these, by the names that
//! are handed on here, and nothing below.

mod agreements;
mod calendar;
mod call_backs;
mod chart_rows;
mod codec;
mod discovery;
mod error;
mod gantt;
mod handle;
mod idempotency;
mod keys;
mod maintenance;
mod negotiations;
mod past_use;
mod peers;
mod predictions;
mod reconcile;
mod replicas;
mod request;
mod resources;
mod templates;
mod views;

pub use crate::federation::discovery::Domain;
pub use agreements::accept::accept_offer;
pub use agreements::create::{check_form, create_agreement, create_from_form};
pub use agreements::ending::{EndingAtPeerView, EndingView, PaymentView, cost_of_ending};
pub use agreements::evict::{EvictRequest, EvictedView, evict_agreement};
pub use agreements::files::{
    FilesView, Output, Upload, list_files, list_outputs, open_file, open_output, remove_file, remove_outputs,
    upload_file,
};
pub use agreements::list::{agreements_within, list_agreements, show_timeline};
pub use agreements::move_to::{MoveRequest, move_agreement};
pub use agreements::pending::decide_pending;
pub use agreements::place_at_peer::seek_places;
pub use agreements::reservations::{ReservationPage, ReservationPlace, list_reservations};
pub use agreements::show::{AgreementDetails, show_agreement};
pub use agreements::terminate::{TerminateRequest, terminate_agreement, terminate_input};
pub use calendar::show_calendar;
pub use call_backs::{
    CallBackView, CallBacksView, EventsView, list_call_backs, list_events, register_call_back,
    show_call_back, unregister_call_back,
};
pub use codec::json::Json;
pub use discovery::{
    cost_of_offer, factory_properties, list_applications, list_offered_resources, list_prices,
    list_templates, proposed_size, show_template,
};
pub use domain::request::{CatalogueJob, Request};
use error::Result;
pub use error::{Error, continuing_fault};
pub use execution::lead::LeaderQuestion;
pub use gantt::{list_plan_changes, show_gantt};
pub use handle::{Input, Scope, Service};
pub use idempotency::{RequestKey, StoredAnswer, earlier_answer, keep_answer};
pub use keys::{KeyRequest, read_key_expiry};
pub use maintenance::{add_maintenance, list_maintenance, remove_maintenance};
pub use negotiations::exchange::{OfferMessage, exchange_offers};
pub use negotiations::flat_offers::{AnswersView, NegotiatedView};
pub use negotiations::forms::{
    EstimateView, ReadOffer, change_from_form, counter_from_form, estimate_request, offer_from_form,
    read_negotiation, reject_from_form,
};
pub use negotiations::list::{
    NegotiationsView, list_negotiations, list_open_negotiations, negotiations_opened_within, proposals_to,
};
pub use negotiations::proposals::propose_changes;
pub use negotiations::{
    NegotiationView, end_negotiation, end_negotiation_input, initiate_negotiation, offer_by_id,
    show_negotiation,
};
pub use past_use::show_past_use;
pub use peers::{list_peers, show_domain};
pub use planner::ResourceVerb;
pub use reconcile::{DifferenceView, ReconciledView, reconcile_peer};
pub use replicas::{answer_replica, is_replica};
pub use resources::{
    NAMED_VERBS, NamedVerb, apply_configuration, change_resource, fit_templates, list_recent_resources,
    list_resources, put_resource, reload_configuration,
};
pub use scheduler::domain::Attribute;
pub use store::agreements::AgreementFilter;
pub use store::negotiations::NegotiationFilter;
pub use store::reservations::ReservationFilter;
pub use templates::{OnLoss, TemplateText, Templates, millionths};
pub use views::accounts::{
    AccountsView, EntryView, MonthView, NamedEntryView, is_month, list_account_entries, list_account_months,
    list_accounts,
};
pub use views::agreement::{
    AcceptedView, AgreementPage, AgreementView, AtPeerView, EventView, GuaranteeView, PieceView,
    ProposalView, StagedView, TemplateView, TimelineView,
};
pub use views::availability::{AvailabilityQuery, AvailabilityView, show_availability};
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
pub use views::nodes::{NodeView, NodesView, RepairedView, list_nodes, override_nodes};
pub use views::offer::{FoundOfferView, OfferView, QuotationView};
pub use views::operations::{OperationsView, UtilisationView, WaitingView, show_operations};
pub use views::past_use::{PastUseView, PeriodUseView, ResourcePastUseView};
pub use views::peers::{PeerView, PeersView};
pub use views::policies::{PoliciesView, QuotasView, show_policies};
pub use views::refusal::{RefusalView, RelaxationView};
pub use views::reliability::{ReliabilityView, show_reliability};
pub use views::resources::{
    PlaceChangeView, ReloadOrder, ReloadedView, ResourceChangesView, ResourceView, ResourcesView,
};
pub(crate) use views::schemas;
pub use views::trail::{RefusedView, TrailLineView, TrailView, list_trail, list_trail_before, show_refusal};
pub use views::usage::{UsageView, show_recent_usage, show_usage};
pub use views::values::MoneyView;
pub use views::values::second_as_date_time;
