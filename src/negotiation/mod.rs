//! The use cases, one file a verb, between the documents of WS-Agreement and the requests of the planner: the one
//! place where the two meet. HTTP and the portal call these and nothing below.

mod agreements;
mod error;
mod idempotency;
mod negotiations;
mod request;
mod service;
mod templates;
mod views;

pub use agreements::files::{FileView, FilesView, Output, Upload};
pub use agreements::list::{Page, Timeline};
pub use agreements::show::Shown;
pub use agreements::terminate::{TerminateRequest, terminate_input};
pub use error::{Error, fault};
pub use idempotency::{RequestKey, StoredAnswer};
pub use negotiations::exchange::OfferMessage;
pub use negotiations::flat::{AnswersView, NegotiatedView};
pub use negotiations::list::NegotiationsView;
pub use negotiations::{NegotiationView, Opened, Opening, end_negotiation_input};
pub use request::flat_request::{FlatRequest, Run};
pub use service::{Input, Negotiation, Scope};
pub use templates::{OnLoss, TemplateText, Templates};
pub use views::accounts::{AccountView, Accounts, AccountsView, EntryView};
pub use views::agreement::{
    AcceptedView, AgreementPage, AgreementView, EventView, GuaranteeView, MovedView, PieceView, ProposalView,
    ProposedView, TemplateView, TimelineView, ValueView,
};
pub use views::availability::{AvailabilityQuery, AvailabilityView, FreeView};
pub use views::documents::{created, pending, terminated};
pub use views::nodes::{
    NodeView, NodesView, RepairedView, ResourceView, ResourcesView, SaidView, TroubleView,
};
pub use views::offer::{FoundOfferView, LostOffer, Negotiated, OfferView, QuotationView};
pub use views::refusal::{AlternativeView, RefusalView, RelaxationView};
pub use views::reliability::{ReliabilityView, StatementView};
pub use views::scheduling::{MoldabilityView, PreemptionView, SchedulingView, TableEntryView, WeightsView};
pub use views::terms::{ContextView, TermView, TermsView};
pub use views::trail::{RefusedView, TrailLineView, TrailPage, TrailView};
pub use views::values::MoneyView;
