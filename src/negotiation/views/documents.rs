//! From agreements and failures back to the documents of WS-Agreement.

use scheduler::{Reason, Time};
use wsag::agreements::{
    AgreementOffer, create_agreement_response, create_pending_agreement_response, terminate_response,
};
use wsag::endpoint::EndpointReference;
use wsag::guard;
use wsag::listings::{self, AgreementList, ListedAgreement, ListedNegotiation};
use wsag::placement::{self, Moved, Placement};
use wsag::refusals::{self, Description, Direction, Fault};
use wsag::scheduling::Budget;
use wsag::states::{self, Activity, AgreementProperties, ServiceTermState, status};
use wsag::terms::CompositorChoice;
use wsag::time::DateTime;
use wsag::{Document, Fragment};

use crate::agreement::{Agreement, AgreementState, GuaranteeState, Money, RunOutcome, ServiceState, Slot};
use crate::clock::Micros;
use crate::negotiation::agreements::list::{NegotiationsView, Page, Timeline};
use crate::negotiation::request::wording::Words;
use crate::negotiation::{
    AcceptedView, AgreementView, ContextView, Error, Negotiation, Part, RefusalView, Shown, TermsView,
};

/// An agreement with the document of one of its parts, from its state and the offer that it was made from.
pub(in crate::negotiation) fn shown(
    agreement: &Agreement,
    view: AgreementView,
    words: Words,
    part: Part,
) -> Result<Shown, Error> {
    let (offer, context, terms) = words.parts()?;
    let (flat_context, flat_terms) = (ContextView::of(&offer.context), TermsView::of(&offer.terms));
    Ok(Shown {
        document: properties(agreement, *offer, &view, (context, terms), part),
        view,
        context: flat_context,
        terms: flat_terms,
    })
}

fn properties(
    agreement: &Agreement,
    offer: AgreementOffer,
    view: &AgreementView,
    (context, terms): (Fragment, Fragment),
    part: Part,
) -> String {
    let services = offer
        .terms
        .descriptions()
        .map(|term| ServiceTermState {
            term_name: term.name.clone(),
            state: service_state(agreement, view.reservation.as_deref()),
            placement: Some(Placement {
                confidence: view.confidence,
                ..placement(agreement)
            }),
            extensions: Vec::new(),
        })
        .collect();
    let properties = AgreementProperties {
        name: offer.name,
        agreement_id: offer.agreement_id.unwrap_or_else(|| agreement.id.to_string()),
        context,
        terms,
        state: agreement_state(agreement.state),
        state_extensions: successors(view),
        guarantees: agreement
            .guarantees
            .iter()
            .map(|guarantee| (guarantee.name.clone(), guarantee_state(guarantee.state)))
            .collect(),
        services,
    };
    match part {
        Part::Whole => properties.to_xml(),
        Part::State => properties.part_xml(states::Part::State),
        Part::Terms => properties.part_xml(states::Part::Terms),
        Part::Context => properties.part_xml(states::Part::Context),
        Part::ServiceTerms => properties.part_xml(states::Part::Services),
        Part::GuaranteeTerms => properties.part_xml(states::Part::Guarantees),
    }
}

/// The agreements that one stands between, as elements of its state.
fn successors(view: &AgreementView) -> Vec<Fragment> {
    let old = view.supersedes.map(|id| states::supersedes(&id.to_string()));
    let new = view
        .superseded_by
        .map(|id| states::superseded_by(&id.to_string()));
    old.into_iter().chain(new).collect()
}

fn placement(agreement: &Agreement) -> Placement {
    Placement {
        resource: Some(agreement.resource.clone()),
        planned_start: date_time(agreement.placement().start),
        planned_end: date_time(agreement.placement().end),
        nodes: agreement.nodes(),
        confidence: None,
        fixed: agreement.fixed || !agreement.has_more_to_begin() || agreement.fills_its_window(),
        price: agreement.price.map(sum),
        pieces: agreement.slots.pieces().iter().map(piece).collect(),
        node_names: Vec::new(),
        started: agreement.started.map(instant),
        ended: agreement.ended.map(instant),
        exit_status: agreement.outcome.and_then(RunOutcome::exit),
        outcome: agreement.outcome.map(|outcome| outcome.word().to_owned()),
    }
}

pub(in crate::negotiation) fn piece(piece: &Slot) -> placement::Piece {
    placement::Piece {
        planned_start: date_time(piece.placement.start),
        planned_end: date_time(piece.placement.end),
        nodes: piece.nodes,
        started: piece.started.map(instant),
        ended: piece.ended.map(instant),
    }
}

fn agreement_state(state: AgreementState) -> states::AgreementState {
    match state {
        AgreementState::Pending => states::AgreementState::Pending,
        AgreementState::PendingAndTerminating => states::AgreementState::PendingAndTerminating,
        AgreementState::Observed => states::AgreementState::Observed,
        AgreementState::ObservedAndTerminating => states::AgreementState::ObservedAndTerminating,
        AgreementState::Rejected => states::AgreementState::Rejected,
        AgreementState::Complete => states::AgreementState::Complete,
        AgreementState::Terminated => states::AgreementState::Terminated,
    }
}

fn guarantee_state(state: GuaranteeState) -> states::GuaranteeState {
    match state {
        GuaranteeState::NotDetermined => states::GuaranteeState::NotDetermined,
        GuaranteeState::Fulfilled => states::GuaranteeState::Fulfilled,
        GuaranteeState::Violated => states::GuaranteeState::Violated,
    }
}

fn service_state(agreement: &Agreement, reservation: Option<&str>) -> states::ServiceState {
    match agreement.service {
        ServiceState::NotReady => states::ServiceState::NotReady,
        ServiceState::Idle if agreement.is_between_slots() => {
            states::ServiceState::Ready(Activity::Idle(status("waiting for its next piece")))
        }
        ServiceState::Idle => {
            let reserved = reservation.map_or("reserved".to_owned(), |name| format!("reserved as {name}"));
            states::ServiceState::Ready(Activity::Idle(status(&reserved)))
        }
        ServiceState::Processing => {
            let doing = if agreement.slot_started().is_some() {
                "running"
            } else {
                "starting"
            };
            states::ServiceState::Ready(Activity::Processing(status(doing)))
        }
        ServiceState::Completed => states::ServiceState::Completed,
    }
}

/// A sum of money as documents have it.
pub(in crate::negotiation) fn sum(money: Money) -> Budget {
    Budget {
        amount_micros: money.micros,
        currency: money.currency.code().to_owned(),
    }
}

fn date_time(time: Time) -> DateTime {
    DateTime::from_seconds(time.seconds())
}

fn instant(at: Micros) -> DateTime {
    DateTime::from_micros(at)
}

impl Page {
    /// As a document, with the agreements' addresses below the service's.
    pub fn document(&self, base: &str) -> String {
        let agreements = self.agreements.iter().map(|agreement| ListedAgreement {
            agreement_id: agreement.id.to_string(),
            name: agreement.name.clone(),
            address: Some(format!("{base}/agreements/{}", agreement.id)),
            state: agreement_state(agreement.state),
            planned_start: Some(date_time(agreement.placement().start)),
            planned_end: Some(date_time(agreement.placement().end)),
            nodes: Some(agreement.nodes()),
        });
        AgreementList {
            agreements: agreements.collect(),
            next: self.next.map(|id| id.to_string()),
        }
        .to_xml()
    }
}

impl NegotiationsView {
    /// As a document, with the negotiations' addresses below the service's. Their offers are there.
    pub fn document(&self, base: &str) -> String {
        let listed = self.negotiations.iter().map(|view| ListedNegotiation {
            id: view.id.to_string(),
            address: format!("{base}/negotiations/{}", view.id),
            party: &view.party,
            agreement: view.agreement.map(|id| id.to_string()),
            state: view.state,
            created: &view.created,
            expires: &view.expires,
            proposed: view.proposed,
            offers: view.offers.iter().map(|offer| offer.id.as_str()).collect(),
        });
        let next = self.next.map(|id| id.to_string());
        listings::negotiations(&listed.collect::<Vec<_>>(), next.as_deref())
    }
}

impl Timeline {
    /// As a document.
    pub fn document(&self) -> String {
        let events = self.events.iter().map(|event| listings::Event {
            at: instant(event.at),
            kind: event.kind.clone(),
            detail: Some(event.detail.clone()).filter(|detail| !detail.is_empty()),
        });
        listings::Timeline {
            agreement_id: self.agreement.to_string(),
            events: events.collect(),
        }
        .to_xml()
    }
}

/// The `CreatePendingAgreementResponse` with an agreement's address.
pub fn pending(accepted: &AcceptedView, base: &str) -> String {
    create_pending_agreement_response(&EndpointReference::new(accepted.agreement.address(base)))
}

/// The CreateAgreementResponse with an agreement's address and the party's other agreements that moved for it.
pub fn created(accepted: &AcceptedView, base: &str) -> String {
    let moved: Vec<_> = accepted
        .moved
        .iter()
        .map(|other| Moved {
            agreement_id: other.id.to_string(),
            planned_start: date_time(other.planned_start),
            planned_end: date_time(other.planned_end),
        })
        .collect();
    let choices: Vec<_> = accepted
        .choices
        .iter()
        .map(|of| CompositorChoice {
            path: of.path.clone(),
            members: of.members.clone(),
        })
        .collect();
    create_agreement_response(
        &EndpointReference::new(accepted.agreement.address(base)),
        &moved,
        &choices,
    )
}

/// The TerminateResponse.
pub fn terminated() -> String {
    terminate_response()
}

impl Negotiation {
    /// The ContinuingFault of a failure: its code, its descriptions, and the refusal or the violations behind it.
    pub fn fault(&self, code: &str, descriptions: &[String], error: Option<&Error>) -> String {
        let mut fault = Fault::new(instant(self.clock.micros()), code, "");
        fault.descriptions = descriptions
            .iter()
            .map(|text| Description {
                text: text.clone(),
                language: Some("en".to_owned()),
            })
            .collect();
        match error {
            Some(Error::Refused(refusal)) => fault.refusal = Some(refusal_document(refusal)),
            Some(Error::Lost(lost)) => {
                fault.extensions = lost.fresh.fragment().into_iter().collect();
            }
            Some(Error::Invalid(violations) | Error::NotOffered(violations)) => {
                fault.violations = violations.0.iter().map(Into::into).collect();
            }
            _ => {}
        }
        fault.to_xml()
    }
}

/// A refusal as it stands in documents.
pub(in crate::negotiation) fn refusal_document(refusal: &RefusalView) -> refusals::Refusal {
    refusals::Refusal {
        reason: reason(refusal.reason),
        binding_constraint: Some(refusal.binding_constraint.clone()),
        cut_short: refusal.cut_short,
        alternatives: refusal
            .alternatives
            .iter()
            .map(|of| refusals::Alternative {
                start: date_time(of.start),
                end: date_time(of.end),
                nodes: of.nodes,
                deviation: of.deviation,
                direction: if of.direction == "earlier" {
                    Direction::Earlier
                } else {
                    Direction::Later
                },
            })
            .collect(),
        relaxations: refusal
            .relaxations
            .iter()
            .map(|of| refusals::Relaxation {
                start: of.ready.map(date_time),
                deadline: of.deadline.map(date_time),
                nodes: of.nodes,
                duration: of
                    .duration_seconds
                    .and_then(|seconds| u32::try_from(seconds).ok()),
                budget: of.budget.map(sum),
            })
            .collect(),
    }
}

fn reason(reason: Reason) -> refusals::Reason {
    match reason {
        Reason::NoCapacityInWindow => refusals::Reason::NoCapacityInWindow,
        Reason::SizeExceedsCapacity => refusals::Reason::SizeExceedsCapacity,
        Reason::WindowContradictory => refusals::Reason::WindowContradictory,
        Reason::WindowInThePast => refusals::Reason::WindowInThePast,
        Reason::HorizonExceeded => refusals::Reason::HorizonExceeded,
        Reason::QuotaExceeded => refusals::Reason::QuotaExceeded,
        Reason::BudgetTooLow => refusals::Reason::BudgetTooLow,
        Reason::ResourceNotOffered => refusals::Reason::ResourceNotOffered,
        Reason::PolicyDenied => refusals::Reason::PolicyDenied,
    }
}

/// The offer as it came, complete in itself, to be kept and shown again.
pub(in crate::negotiation) fn verbatim(document: &Document<'_>) -> Result<String, Error> {
    let text = document
        .offer_xml()
        .ok_or_else(|| Error::Internal("a document with an offer has none".to_owned()))?;
    // An offer cut out of a message bears the declarations that it inherited; where it is shown, it must still pass a guard.
    guard::check(text.as_bytes()).map_err(Error::Malformed)?;
    Ok(text)
}
