//! An offer of a requester as it comes in, and as it stands once it is checked against the tree of its negotiation.

use std::sync::Arc;

use domain::agreement::{NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState};
use planner::{OfferOrigin, OfferWords, Request, Suggestion};
use scheduler::Time;
use store::negotiations;
use uuid::Uuid;
use wsag::constraints::CompiledConstraints;
use wsag::negotiations::{NegotiationConstraints, NegotiationOffer as OfferDocument, negotiate_input};
use wsag::{ValuePlaces, Violation, Violations, guard};

use crate::codec::json_check::TOKEN_MAX;
use crate::codec::kept_offer::read_kept_offer;
use crate::error::violation_at_path;
use crate::idempotency::text_to_keep;
use crate::negotiations::negotiation::new_offer_row_of_negotiation;
use crate::{Error, Result, Service};

/// An offer, and where its maker has it.
pub(crate) struct IncomingOffer {
    pub(crate) offer: OfferDocument,
    pub(crate) places: ValuePlaces,
    /// The request that it makes, where that was found as it was read and it leaves no choice.
    pub(crate) request: Option<Request>,
    /// How many possible offers its maker wants to see at most.
    pub(crate) answers_max: usize,
}

impl IncomingOffer {
    /// An offer whose request is not found yet. It is given an id where its maker has given it none.
    pub(crate) fn new(mut offer: OfferDocument, places: ValuePlaces) -> Self {
        offer.offer_id.get_or_insert_with(|| Uuid::now_v7().to_string());
        Self {
            offer,
            places,
            request: None,
            answers_max: usize::MAX,
        }
    }

    /// An offer that was found to make these requests.
    pub(crate) fn checked(offer: OfferDocument, requests: Vec<Request>, places: ValuePlaces) -> Self {
        let first = requests.into_iter().next();
        Self {
            request: first.filter(|_| offer.terms.is_conjunctive()),
            ..Self::new(offer, places)
        }
    }
}

/// A checked offer of the requester.
pub(crate) struct CheckedIncomingOffer {
    /// Its state.
    pub(crate) state: OfferState,
    /// What its answers must keep to.
    pub(crate) demands: Arc<CompiledConstraints>,
    /// What the answers are about.
    pub(crate) about: OfferOrigin,
}

impl CheckedIncomingOffer {
    /// A question to which the answers are not held, in a negotiation that is not opened.
    pub(crate) fn of_question(instance: &NegotiationInstance) -> Self {
        let none = NegotiationConstraints::default();
        Self {
            state: OfferState::Advisory,
            demands: Arc::new(CompiledConstraints::compile(&none)),
            about: OfferOrigin::Opening(Box::new(instance.clone())),
        }
    }

    /// Whether peers may be asked: they would hold what they offer.
    pub(crate) fn may_ask_peers(&self) -> bool {
        self.state != OfferState::Advisory && !matches!(self.about, OfferOrigin::Proposal(_))
    }

    /// A question of the provider to itself; it proposes the answer.
    pub(crate) fn of_provider(suggestion: Suggestion, demands: &NegotiationConstraints) -> Self {
        Self {
            state: OfferState::Solicited,
            demands: Arc::new(CompiledConstraints::compile(demands)),
            about: OfferOrigin::Proposal(Box::new(suggestion)),
        }
    }
}

/// Checks an offer against the rules of the tree. The first offer finds the tree empty. The result has the other offers
/// that are stored with it.
pub(crate) async fn check_incoming_offer(
    service: &Service,
    instance: &NegotiationInstance,
    IncomingOffer { offer, places, .. }: &IncomingOffer,
    is_first: bool,
) -> Result<Result<(CheckedIncomingOffer, OfferWords), Vec<Violation>>> {
    let context = &offer.offer_context;
    let mut found = Vec::new();
    let name = offer.offer_id.clone().unwrap_or_default();
    if name.len() > TOKEN_MAX {
        let message = format!("at most {TOKEN_MAX} bytes are expected");
        found.push(violation_below_offer(places, "/@wsag-neg:OfferId", message));
    }
    let mut wrong = |local: &str, message: &str| {
        let below = format!("/wsag-neg:NegotiationOfferContext/wsag-neg:{local}");
        found.push(violation_below_offer(places, &below, message));
    };
    if context.creator != NegotiationRole::Initiator {
        let message = "NegotiationInitiator is expected: counter offers are the service's to make";
        wrong("Creator", message);
    }
    if let Some(at) = context.expiration_time
        && at.floor() <= service.clock.now().seconds()
    {
        wrong("ExpirationTime", "an instant in the future is expected");
    }
    let to = context.counter_offer_to.as_str();
    let answered = if is_first {
        None
    } else {
        negotiations::negotiation_offer_named(&service.store, instance.id, to).await?
    };
    let parent = match answered {
        Some((parent, document)) => {
            let id = parent.id;
            let words = read_kept_offer(parent, &document)?.words;
            if words.context.template_id != offer.context.template_id {
                let message = "the offer that it answers was made from another template";
                wrong("CounterOfferTo", message);
            }
            Some(id)
        }
        None if incoming_offer_answers_template(offer, to) => None,
        None => {
            let message = format!(
                "{to:?} is neither an offer of this negotiation nor the template of this offer, which is named by \
                 its TemplateId, its TemplateName or TemplateId-TemplateName"
            );
            wrong("CounterOfferTo", &message);
            None
        }
    };
    let said = offer.clone();
    let (demands, checked, document) = service
        .run_document_work(move |_| {
            let demands = CompiledConstraints::compile(&said.constraints);
            // It is cut out of its message, and written anew where it is shown: there it must still pass a guard.
            let written = negotiate_input(std::slice::from_ref(&said));
            let checked = guard::guard_document(written.as_bytes()).map(|_| ());
            (Arc::new(demands), checked, text_to_keep(&said))
        })
        .await?;
    for problem in demands.problems() {
        found.push(Violation {
            path: places.below(&problem.path),
            ..problem.clone()
        });
    }
    if let Err(why) = checked {
        let message = format!("it cannot be kept as a document of its own: {why}");
        found.push(violation_below_offer(places, "", message));
    }
    if !found.is_empty() {
        return Ok(Err(found));
    }
    let state = context.state;
    let understood = CheckedIncomingOffer {
        state,
        demands,
        about: OfferOrigin::Negotiation(instance.id),
    };
    let row = NegotiationOffer {
        name,
        expires: context.expiration_time.map(|at| Time(at.floor())),
        ..new_offer_row_of_negotiation(service, instance.id, parent, NegotiationRole::Initiator, state)
    };
    Ok(Ok((understood, OfferWords { offer: row, document })))
}

/// Whether a first offer names its own template as the document that it answers, in one of the three forms.
fn incoming_offer_answers_template(offer: &OfferDocument, to: &str) -> bool {
    let id = offer.context.template_id.as_deref().unwrap_or_default();
    let name = offer.context.template_name.as_deref().unwrap_or_default();
    !to.is_empty() && (to == id || to == name || to == format!("{id}-{name}"))
}

/// A fault at a path below an offer.
pub(crate) fn violation_below_offer(
    places: &ValuePlaces,
    below: &str,
    message: impl Into<String>,
) -> Violation {
    violation_at_path(places.below(below), message)
}

pub(crate) fn invalid_offer(violations: Vec<Violation>) -> Error {
    Error::Invalid(Violations::of(violations))
}
