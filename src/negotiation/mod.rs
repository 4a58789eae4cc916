//! The use cases, one file a verb, between the documents of WS-Agreement and the requests of the planner: the one
//! place where the two meet. HTTP and the portal call these and nothing below.

mod agreements;
mod idempotency;
mod negotiations;
mod request;
mod templates;
mod views;

use std::sync::Arc;
use std::time::Duration;

use scheduler::{Interval, Seconds};
use tokio::sync::{Notify, Semaphore};

pub use agreements::accept::LostOffer;
pub use agreements::files::{FileView, FilesView, Upload};
pub use agreements::list::{NegotiationsView, Page, Timeline};
pub use agreements::show::{Output, Part, Shown};
pub use agreements::terminate::{TerminateRequest, terminate_input};
pub use idempotency::RequestKey;
pub use negotiations::exchange::StoredAnswer;
pub use negotiations::flat::{AnswersView, NegotiatedView};
pub use negotiations::proposals::{ProposalView, ProposedView};
pub use negotiations::{NegotiationView, Opened, Opening, end_negotiation_input};
pub use request::flat_request::{FlatRequest, Run};
pub use templates::{OnLoss, TemplateText, Templates};
pub use views::accounts::{AccountView, Accounts, AccountsView, EntryView};
pub use views::availability::{AvailabilityQuery, AvailabilityView, FreeView};
pub use views::documents::{created, pending, terminated};
pub use views::nodes::{
    NodeView, NodesView, RepairedView, ResourceView, ResourcesView, SaidView, TroubleView,
};
pub use views::offer::{FoundOfferView, Negotiated, OfferView, QuotationView};
pub use views::reliability::{ReliabilityView, StatementView};
pub use views::scheduling::{MoldabilityView, PreemptionView, SchedulingView, TableEntryView, WeightsView};
pub use views::terms::{ContextView, TermView, TermsView};
pub use views::trail::{RefusedView, TrailLineView, TrailPage, TrailView};
pub use views::{
    AcceptedView, AgreementPage, AgreementView, AlternativeView, EventView, GuaranteeView, MoneyView,
    MovedView, PieceView, RefusalView, RelaxationView, TemplateView, TimelineView, ValueView,
};

use crate::agreement::{Agreement, Currency, Job, OfferTerms};
use crate::callbacks::Policy;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::execution;
use crate::execution::dispatcher::Shared;
use crate::execution::faults::{Doing, Faults};
use crate::execution::files::inputs::InputFiles;
use crate::execution::files::retention::JobFolders;
use crate::metrics::{Exposition, Kind};
use crate::planner::{self, Planner};
use crate::prediction::{Predictions, Work};
use crate::store::{self, Store};

/// The most names of input files in a list: more do not help in a choice.
const INPUT_FILES_SHOWN_MAX: usize = 500;

/// A store that does not answer for this time is not ready. Probes wait longer.
const PING_WAIT: Duration = Duration::from_secs(1);

/// The agreements that a caller may see: a party's own, or all for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One party's.
    Party(String),
    /// Every party's.
    All,
}

impl Scope {
    /// The party that it is restricted to.
    fn party(&self) -> Option<&str> {
        match self {
            Self::Party(party) => Some(party),
            Self::All => None,
        }
    }
}

/// The use cases: cheap to clone.
#[derive(Clone)]
pub struct Negotiation {
    planner: Planner,
    store: Store,
    templates: Arc<Templates>,
    catalogue: Arc<Catalogue>,
    clock: Clock,
    /// The files that jobs may read.
    files: InputFiles,
    /// The jobs' folders.
    jobs: JobFolders,
    /// The limits of negotiations.
    negotiating: planner::Negotiating,
    /// The currency of charges, where something is charged.
    currency: Option<Currency>,
    /// The knowledge of run times; none where the service does not learn them.
    predictions: Option<Predictions>,
    /// The allowed receivers of call-backs.
    call_backs: Policy,
    /// The present faults of resources.
    faults: Faults,
    /// The clusters by their resources, for their metrics and their refusals.
    clusters: Arc<[(String, Shared)]>,
    /// Rung when there is a pending agreement to decide.
    undecided: Arc<Notify>,
    /// Documents that are read at the same time: reading is work for a processor, so as many as there are.
    reading: Arc<Semaphore>,
}

/// The reason why a use case failed, by the action that a caller would take.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are no document.
    #[error("{0}")]
    Malformed(wsag::guard::GuardError),
    /// The bytes are no JSON, or beyond bounds.
    #[error("{0}")]
    MalformedJson(String),
    /// The document breaks rules, each with its path.
    #[error("{0}")]
    Invalid(wsag::Violations),
    /// The document is right and asks for a feature that this version does not have.
    #[error("{0}")]
    NotOffered(wsag::Violations),
    /// The plan has no place for the offer.
    #[error("{}: {}", .0.reason.word(), .0.binding_constraint)]
    Refused(RefusalView),
    /// There is no such thing, or it is another party's.
    #[error("there is no such thing, or it is not yours to see")]
    NotFound,
    /// The state of the agreement or the negotiation does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The time for it is over.
    #[error("{0}")]
    Gone(String),
    /// The agreement is in another version than the request was made for.
    #[error("the agreement has changed since the version that If-Match names")]
    Changed,
    /// The offer cannot be accepted any more.
    #[error("{}", .0.lost)]
    Lost(Box<LostOffer>),
    /// The idempotency key came before, with another body.
    #[error("this Idempotency-Key was used for another request")]
    KeyReused,
    /// A name that no file can have.
    #[error(
        "a file's name is 1 to 255 letters, digits, '_', '.' and '-', the first a letter, a digit or '_'"
    )]
    BadName,
    /// The quota of a party is used up.
    #[error("{0}")]
    QuotaExceeded(String),
    /// A party asks for quotes more often than it may.
    #[error("{0}")]
    TooOften(String),
    /// Nothing was stored; worth another try.
    #[error("the service cannot store decisions at the moment; try again")]
    Unavailable,
    /// This machine is short of something, which the log tells; worth another try.
    #[error("the service is short of resources at the moment; try again")]
    Short(String),
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

/// A body of a request, in one of the two representations.
#[derive(Debug, Clone)]
pub enum Input {
    /// A document of WS-Agreement.
    Xml(Vec<u8>),
    /// A flat value.
    Json(Vec<u8>),
}

impl Input {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Xml(bytes) | Self::Json(bytes) => bytes,
        }
    }
}

impl Error {
    /// The feature that is not offered, at the element of negotiation that asks for it, or at the root.
    fn not_offered(document: &wsag::Document<'_>, element: &str, what: &str) -> Self {
        Self::NotOffered(wsag::Violations(vec![wsag::Violation {
            path: document.path_to(wsag::ns::WSAG_NEG, element, 0),
            kind: wsag::ViolationKind::NotSupported,
            message: what.to_owned(),
        }]))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_) | store::Error::Unknown { .. } => Self::Unavailable,
            other => Self::Internal(other.to_string()),
        }
    }
}

impl Negotiation {
    /// The use cases over a planner, a store and the provider's templates.
    pub fn new(
        planner: Planner,
        store: Store,
        templates: Templates,
        catalogue: Arc<Catalogue>,
        clock: Clock,
        files: InputFiles,
        jobs: JobFolders,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let negotiating = planner.negotiating();
        let currency = planner.currency();
        Self {
            planner,
            store,
            templates: Arc::new(templates),
            catalogue,
            clock,
            files,
            jobs,
            negotiating,
            currency,
            predictions: None,
            call_backs: Policy::default(),
            faults: Faults::default(),
            clusters: Arc::default(),
            undecided: Arc::default(),
            reading: Arc::new(Semaphore::new(processors)),
        }
    }

    /// The same with durations from past executions, where offers name none.
    #[must_use]
    pub fn predicting(mut self, predictions: Predictions) -> Self {
        self.predictions = Some(predictions);
        self
    }

    /// The seconds at the reference rate that hold such a job of a party with the template's probability, where any of its
    /// application has been seen.
    fn predicted(&self, party: &str, offered: &templates::Offered, job: &Job, nodes: u32) -> Option<Seconds> {
        let work = Work {
            application: &job.application,
            version: job.version.as_deref(),
            arguments: Some(&job.arguments),
            party: Some(party),
            resource: self.templates.resource(),
            nodes: Some(nodes),
        };
        let known = self.predictions.as_ref()?.now();
        known.slot(&work, offered.slot_probability)
    }

    /// The probability that an agreement's job ends by itself before its slot does, to three digits, where that is known.
    fn confidence(&self, agreement: &Agreement) -> Option<f64> {
        let known = self.predictions.as_ref()?.now();
        let confidence = known.confidence(agreement, self.clock.micros())?;
        Some(three_digits(confidence))
    }

    /// The probability that such a job of a party would end by itself before a slot that could be offered does, to three
    /// digits, where that is known: as the agreement would state it before its slot begins.
    fn confidence_in(&self, slot: &OfferTerms, party: &str, job: &Job) -> Option<f64> {
        let work = Work {
            application: &job.application,
            version: job.version.as_deref(),
            arguments: Some(&job.arguments),
            party: Some(party),
            resource: Some(&slot.resource),
            nodes: Some(slot.nodes()),
        };
        let known = self.predictions.as_ref()?.now();
        known.probability(&work, slot.duration()).map(three_digits)
    }

    /// An agreement as it is shown.
    fn view(&self, agreement: &Agreement) -> AgreementView {
        AgreementView {
            confidence: self.confidence(agreement),
            ..AgreementView::of(agreement)
        }
    }

    /// The same, with call-backs to the receivers that `policy` allows.
    #[must_use]
    pub fn telling(mut self, policy: Policy) -> Self {
        self.call_backs = policy;
        self
    }

    /// The same service with the faults of resources, and the metrics of clusters, for operators.
    #[must_use]
    pub fn showing(mut self, faults: Faults, clusters: Vec<(String, Shared)>) -> Self {
        self.faults = faults;
        self.clusters = clusters.into();
        self
    }

    /// Whether offers can be decided now: the plan is in step with the store, which answers, and no other process has
    /// taken over.
    pub async fn is_ready(&self) -> bool {
        let epoch = tokio::time::timeout(PING_WAIT, self.store.epoch());
        self.planner.is_ready() && matches!(epoch.await, Ok(Ok(epoch)) if epoch == self.planner.epoch())
    }

    /// The fault that was found in the store, because of which nothing is decided any more.
    pub fn distrusted(&self) -> Option<&str> {
        self.planner.distrusted()
    }

    /// The resources on which nothing new is promised, because they have not passed their checks.
    pub fn closed(&self) -> Vec<String> {
        self.faults.failing_in(Doing::PassChecks)
    }

    /// The clusters that do not tell how their nodes stand.
    pub fn silent(&self) -> Vec<String> {
        self.faults.failing_in(Doing::TellNodes)
    }

    /// Writes the counts of this module and the ones below.
    pub async fn expose(&self, text: &mut Exposition) {
        self.planner.expose(text).await;
        execution::expose(&self.clusters, text);
        let mut family = text.family(
            "bespeak_resource_troubles",
            Kind::Gauge,
            "In how many of its doings a resource fails at the moment; /resources says which and why.",
        );
        for resource in self.planner.resources() {
            let faults = self.faults.of(&resource.name);
            family.sample(&[("resource", &resource.name)], faults.len());
        }
        let waiting = tokio::time::timeout(PING_WAIT, self.store.call_backs_waiting()).await;
        if let Ok(Ok(waiting)) = waiting {
            text.family(
                "bespeak_call_backs_waiting",
                Kind::Gauge,
                "Decisions with a call-back that is still to be made.",
            )
            .sample(&[], waiting);
        }
    }

    /// The code of the currency that agreements are charged in; `None` where nothing is charged.
    pub fn currency(&self) -> Option<&str> {
        self.currency.as_ref().map(Currency::code)
    }

    /// The applications that offers may name.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The clock that decisions go by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The names of files that this party's offers may use, in order, for a choice: the first [`INPUT_FILES_SHOWN_MAX`]
    /// found, and none where the folders cannot be read. An offer may name any file that is there.
    pub async fn input_files(&self, party: &str) -> Vec<String> {
        let (files, party) = (self.files.clone(), party.to_owned());
        let names = tokio::task::spawn_blocking(move || files.names(&party, INPUT_FILES_SHOWN_MAX));
        names.await.unwrap_or_default()
    }

    /// Runs work on a document off the threads that serve connections, a bounded number at a time.
    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        // The semaphore is never closed.
        let permit = Arc::clone(&self.reading)
            .acquire_owned()
            .await
            .map_err(|_| Error::Unavailable)?;
        tokio::task::spawn_blocking(move || {
            let done = work(&this);
            drop(permit);
            done
        })
        .await
        .map_err(|why| Error::Internal(format!("reading a document failed: {why}")))
    }
}

/// A probability to three digits, rounded down: it is not stated higher than it is known to be.
fn three_digits(probability: f64) -> f64 {
    (probability * 1_000.0).floor() / 1_000.0
}

impl From<planner::Error> for Error {
    fn from(error: planner::Error) -> Self {
        match error {
            planner::Error::NotFound => Self::NotFound,
            planner::Error::Refused(refusal) => {
                let any = Interval::new(scheduler::Time::MIN, scheduler::Time::MAX);
                Self::Refused(RefusalView::of(&refusal, any))
            }
            planner::Error::Conflict(state) => Self::Conflict(format!("the agreement is {state}")),
            planner::Error::Changed => Self::Changed,
            planner::Error::Lost(lost) => Self::Conflict(lost.to_string()),
            planner::Error::Stale(why) => Self::Conflict(why.to_owned()),
            planner::Error::Unavailable => Self::Unavailable,
            planner::Error::Repeated(_) => Self::Internal(error.to_string()),
        }
    }
}
