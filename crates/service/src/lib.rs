//! The use cases, between the documents of WS-Agreement and the requests of the planner: the one
//! place where the two meet. Each is a function that takes the `Service`. HTTP and the portal call these, by the names that
//! are handed on here, and nothing below.

mod accounts;
mod agreements;
mod applications;
mod availability;
mod calendar;
mod call_backs;
mod chart_rows;
mod codec;
mod configuration;
mod error;
mod failed_sign_ins;
mod files;
mod forms;
mod gantt;
mod handle;
mod idempotency;
mod input;
mod keys;
mod maintenance;
mod negotiations;
mod nodes;
mod operations;
mod pages;
mod past_use;
mod peer_credit;
mod peers;
mod plan_changes;
mod policies;
mod predictions;
mod prices;
mod reconcile;
mod reliability;
mod replicas;
mod request;
mod resources;
mod scope;
mod show_templates;
mod sign_ins;
mod templates;
mod timeline;
mod trail;
mod usage;
mod views;

pub use accounts::{
    AccountsView, EntryView, MonthView, NamedEntryView, is_month, list_account_entries, list_account_months,
    list_accounts,
};
pub use agreements::accept::accept_offer;
pub use agreements::create::create_agreement;
pub use agreements::ending::{EndingAtPeerView, EndingPaymentView, EndingView, cost_of_ending};
pub use agreements::evict::{EvictRequest, EvictedView, evict_agreement};
pub use agreements::list::{agreement_list_filter, list_agreements};
pub use agreements::move_to::{MoveRequest, move_agreement};
pub use agreements::pending::decide_pending;
pub use agreements::place_at_peer::seek_places_at_peers;
pub use agreements::reservations::{ReservationPage, ReservationPlace, list_reservations};
pub use agreements::show::{AgreementDetails, show_agreement};
pub use agreements::terminate::{TerminateRequest, terminate_agreement, terminate_agreement_input};
pub use applications::{ApplicationsView, list_applications};
pub use availability::{AvailabilityQuery, AvailabilityView, show_availability};
pub use calendar::{CalendarCellView, CalendarQuery, CalendarResourceView, CalendarView, show_calendar};
pub use call_backs::{
    CallBackView, CallBacksView, EventsView, list_call_back_events, list_call_backs, register_call_back,
    show_call_back, unregister_call_back,
};
pub use codec::json::Json;
pub use configuration::{apply_configuration, fit_templates_to_resources, reload_configuration};
pub use domain::request::{Request, RequestedJob};
use error::Result;
pub use error::{Error, fault_of_error};
pub use execution::lead::LeaderQuestion;
pub use federation::neighbours::Domain;
pub use files::{
    FileUpload, FilesView, Output, list_files, list_input_files, list_outputs, open_file, open_output,
    remove_file, remove_outputs, upload_file,
};
pub use forms::{
    EstimateView, change_from_form, check_form, counter_from_form, create_from_form, estimate_from_form,
    offer_from_form, reject_from_form,
};
pub use gantt::{GanttQuery, GanttResourceView, GanttUnusedView, GanttView, show_gantt};
pub use handle::Service;
pub use idempotency::{RequestKey, StoredAnswer, earlier_answer, keep_answer};
pub use input::Input;
pub use keys::{KeyRequest, read_key_expiry};
pub use maintenance::{
    MaintenanceView, MaintenancesView, add_maintenance, list_maintenance, remove_maintenance,
};
pub use negotiations::end::{end_negotiation, end_negotiation_input};
pub use negotiations::exchange::{OfferMessage, exchange_offers};
pub use negotiations::initiate::{NegotiatedView, initiate_negotiation};
pub use negotiations::list::{
    NegotiationsView, list_negotiations, list_open_negotiations, negotiation_list_filter,
};
pub use negotiations::negotiation::NegotiationView;
pub use negotiations::proposals::{proposals_to, propose_changes};
pub use negotiations::show::{ReadOffer, show_negotiation, show_negotiation_as_read, show_offer_by_id};
pub use nodes::{NodeView, NodesView, RepairedView, list_nodes, override_nodes};
pub use operations::{OperationsQueueEntryView, OperationsView, UtilisationView, show_operations};
pub use past_use::show_past_use;
pub use peers::{PeerView, PeersView, list_peers, show_domain_to_peers};
pub use plan_changes::{PlanChangeView, list_plan_changes};
pub use planner::ResourceVerb;
pub use policies::{PoliciesView, QuotaPolicyView, show_policies};
pub use prices::{PriceListView, PricePartsView, PricesView, list_prices, price_parts_of_offer};
pub use reconcile::{DifferenceView, ReconciledView, reconcile_peer};
pub use reliability::{ReliabilityView, show_reliability};
pub use replicas::{answer_replica, is_replica};
pub use resources::{
    NAMED_VERBS, NamedVerb, change_resource, list_offered_resources, list_resources,
    list_resources_with_nodes, put_resource,
};
pub use scheduler::domain::Attribute;
pub use scope::Scope;
pub use show_templates::{factory_properties, list_templates, show_template, size_proposed_by_templates};
pub use sign_ins::{count_failed_sign_in, note_failed_sign_ins};
pub use store::agreements::AgreementFilter;
pub use store::negotiations::NegotiationFilter;
pub use store::reservations::ReservationFilter;
pub use templates::{OnLoss, TemplateText, TemplateView, Templates, millionths};
pub use timeline::{TimelineEventView, TimelineView, show_timeline};
pub use trail::{
    RefusedView, TrailLineView, TrailView, list_trail, list_trail_before, show_refusal_in_trail,
};
pub use usage::{UsageView, show_usage};
pub use views::accepted::AcceptedView;
pub use views::agreement::{
    AgreementPage, AgreementStagingView, AgreementView, AtPeerView, PieceView, ProposalView,
};
pub use views::agreement_document::{
    write_create_pending_response, write_create_response, write_terminate_response,
};
pub use views::answers::AnswersView;
pub use views::chart_slot::ChartSlotView;
pub use views::conditions::{AttributesView, ConditionBoundsView, ConditionView};
pub use views::explanation::{ExplanationView, FlexibilityExplanationView};
pub use views::guarantees::GuaranteeView;
pub use views::money_and_time::{MoneyView, second_as_date_time};
pub use views::offer::{FoundOfferView, OfferView};
pub use views::past_use::{PastUseView, PeriodUseView, ResourcePastUseView};
pub use views::place_changes::PlaceChangeView;
pub use views::quotation::QuotationView;
pub use views::refusal::{RefusalView, RelaxationView};
pub use views::resource_changes::{ReloadOrder, ReloadedView, ResourceChangesView};
pub use views::resources::{OfferedResourceView, OfferedResourcesView, ResourceView, ResourcesView};
pub use views::schemas;
pub use views::shape_changes::ShapeChangesView;
