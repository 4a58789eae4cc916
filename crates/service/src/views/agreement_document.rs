//! From agreements and failures back to the documents of WS-Agreement.

use domain::agreement::{Agreement, AgreementState, AtPeer, Money, RunOutcome, ServiceState, Slot};
use domain::clock::Micros;
use scheduler::Time;
use store::ledger::MoneyMoved;
use wsag::Fragment;
use wsag::agreements::{self, AgreementOffer, AgreementProperties, Details};
use wsag::budget::Budget;
use wsag::endpoint::EndpointReference;
use wsag::operations::{create_agreement_response, create_pending_agreement_response, terminate_response};
use wsag::placement::{self, Moved, Placement};
use wsag::states::{self, Activity, ServiceTermState};
use wsag::time::DateTime;

use crate::views::accepted::AcceptedView;
use crate::views::agreement::AgreementView;
use crate::views::shape_changes::shape_changes_in_document;

pub(crate) fn piece_in_document(piece: &Slot) -> placement::Piece {
    placement::Piece {
        planned_start: date_time_in_document(piece.placement.start),
        planned_end: date_time_in_document(piece.placement.end),
        nodes: piece.nodes,
        started: piece.started.map(instant_in_document),
        ended: piece.ended.map(instant_in_document),
    }
}

/// A sum of money as documents have it.
pub(crate) fn sum_in_document(money: Money) -> Budget {
    Budget {
        amount_micros: money.micros,
        currency: money.currency.code().to_owned(),
    }
}

pub(crate) fn date_time_in_document(time: Time) -> DateTime {
    DateTime::from_seconds(time.seconds())
}

pub(crate) fn instant_in_document(at: Micros) -> DateTime {
    DateTime::from_micros(at)
}

/// The `CreatePendingAgreementResponse` with an agreement's address.
pub fn write_create_pending_response(accepted: &AcceptedView, base: &str) -> String {
    create_pending_agreement_response(&EndpointReference::new(accepted.agreement.address(base)))
}

/// The CreateAgreementResponse with an agreement's address and the first of the party's other agreements that moved for it.
pub fn write_create_response(accepted: &AcceptedView, base: &str) -> String {
    let moved: Vec<_> = accepted
        .moved
        .iter()
        .map(|other| Moved {
            agreement_id: other.id.to_string(),
            planned_start: date_time_in_document(other.planned_start),
            planned_end: date_time_in_document(other.planned_end),
        })
        .collect();
    create_agreement_response(
        &EndpointReference::new(accepted.agreement.address(base)),
        (&moved, accepted.moved_count.unwrap_or(0)),
        &accepted.agreement.choices,
    )
}

/// The TerminateResponse.
pub fn write_terminate_response() -> String {
    terminate_response()
}

/// The properties of an agreement, whose context and terms are in its maker's words.
pub(crate) fn agreement_in_document(
    agreement: &Agreement,
    offer: AgreementOffer,
    view: &AgreementView,
    (context, terms): (Fragment, Fragment),
    (money, at_peers): (&[MoneyMoved], &[AtPeer]),
) -> AgreementProperties {
    let sums = |which: fn(&MoneyMoved) -> Money| {
        let sums = money.iter().map(which).filter(|sum| sum.micros > 0);
        sums.map(sum_in_document).collect()
    };
    let (state, status) = service_state_in_document(agreement, view.reservation.as_deref());
    let services = offer
        .terms
        .descriptions()
        .map(|term| ServiceTermState {
            term_name: term.name.clone(),
            state: state.clone(),
            placement: agreement.is_placed().then(|| Placement {
                confidence: view.confidence,
                status: status.clone(),
                ..placement_in_document(agreement)
            }),
        })
        .collect();
    AgreementProperties {
        name: offer.name,
        agreement_id: offer.agreement_id.unwrap_or_else(|| agreement.id.to_string()),
        context,
        terms,
        state: agreement.state,
        details: Details {
            reason: view.rejection.clone(),
            choices: agreement.choices.clone(),
            supersedes: view.supersedes.map(|id| id.to_string()),
            superseded_by: view.superseded_by.map(|id| id.to_string()),
            charged: sums(|each| each.charged),
            paid: sums(|each| each.paid),
            at_peers: at_peers.iter().filter_map(at_peer_in_document).collect(),
        },
        guarantees: agreement
            .guarantees
            .iter()
            .map(|guarantee| (guarantee.name.clone(), guarantee.state))
            .collect(),
        services,
    }
}

/// Another domain's agreement; none where it was not made.
fn at_peer_in_document(row: &AtPeer) -> Option<agreements::AtPeer> {
    let sum = |micros: i64| Some(sum_in_document(Money::new(micros, row.price?.currency)));
    let guarantees = row
        .guarantees
        .iter()
        .map(|guarantee| agreements::GuaranteeAtPeer {
            name: guarantee.name.clone(),
            state: guarantee.state,
        });
    Some(agreements::AtPeer {
        peer: row.peer.clone(),
        state: AgreementState::from_word(&row.state)?,
        charged: sum(row.charged),
        paid: sum(row.paid_back),
        guarantees: guarantees.collect(),
    })
}

fn placement_in_document(agreement: &Agreement) -> Placement {
    Placement {
        resource: Some(agreement.resource.clone()),
        planned_start: date_time_in_document(agreement.placement().start),
        planned_end: date_time_in_document(agreement.placement().end),
        nodes: agreement.nodes(),
        confidence: None,
        fixed: agreement.fixed || !agreement.has_more_to_begin() || agreement.fills_its_window(),
        may_change: shape_changes_in_document(&agreement.constraints),
        price: agreement.price.map(sum_in_document),
        pieces: agreement.slots.pieces().iter().map(piece_in_document).collect(),
        node_names: Vec::new(),
        started: agreement.started.map(instant_in_document),
        ended: agreement.ended.map(instant_in_document),
        exit_status: agreement.outcome.and_then(RunOutcome::exit),
        outcome: agreement.outcome.map(|outcome| outcome.word().to_owned()),
        status: None,
    }
}

/// The state of its service, and what is being done in it.
fn service_state_in_document(
    agreement: &Agreement,
    reservation: Option<&str>,
) -> (states::ServiceState, Option<String>) {
    let (activity, status) = match agreement.service {
        ServiceState::NotReady => return (states::ServiceState::NotReady, None),
        ServiceState::Completed => return (states::ServiceState::Completed, None),
        ServiceState::Idle if agreement.is_between_slots() => {
            (Activity::Idle, "waiting for its next piece".to_owned())
        }
        ServiceState::Idle => (
            Activity::Idle,
            reservation.map_or("reserved".to_owned(), |name| format!("reserved as {name}")),
        ),
        ServiceState::Processing if agreement.is_being_brought() => {
            (Activity::Processing, "bringing files".to_owned())
        }
        ServiceState::Processing if agreement.slot_started().is_some() => {
            (Activity::Processing, "running".to_owned())
        }
        ServiceState::Processing => (Activity::Processing, "starting".to_owned()),
    };
    (states::ServiceState::Ready(activity), Some(status))
}
