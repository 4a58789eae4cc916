//! From agreements and failures back to the documents of WS-Agreement.

use domain::agreement::{Money, Slot};
use domain::clock::Micros;
use scheduler::Time;
use wsag::NamedValue;
use wsag::budget::Budget;
use wsag::endpoint::EndpointReference;
use wsag::operations::{create_agreement_response, create_pending_agreement_response, terminate_response};
use wsag::placement::{self, Moved};
use wsag::refusals::{self, Direction};
use wsag::time::DateTime;

use super::agreement::AcceptedView;
use super::refusal::RefusalView;

pub(in crate::service) fn piece_in_document(piece: &Slot) -> placement::Piece {
    placement::Piece {
        planned_start: date_time_in_document(piece.placement.start),
        planned_end: date_time_in_document(piece.placement.end),
        nodes: piece.nodes,
        started: piece.started.map(instant_in_document),
        ended: piece.ended.map(instant_in_document),
    }
}

/// A sum of money as documents have it.
pub(in crate::service) fn sum_in_document(money: Money) -> Budget {
    Budget {
        amount_micros: money.micros,
        currency: money.currency.code().to_owned(),
    }
}

pub(in crate::service) fn date_time_in_document(time: Time) -> DateTime {
    DateTime::from_seconds(time.seconds())
}

pub(in crate::service) fn instant_in_document(at: Micros) -> DateTime {
    DateTime::from_micros(at)
}

/// The `CreatePendingAgreementResponse` with an agreement's address.
pub fn write_create_pending_response(accepted: &AcceptedView, base: &str) -> String {
    create_pending_agreement_response(&EndpointReference::new(accepted.agreement.address(base)))
}

/// The CreateAgreementResponse with an agreement's address and the party's other agreements that moved for it.
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
        &moved,
        &accepted.agreement.choices,
    )
}

/// The TerminateResponse.
pub fn write_terminate_response() -> String {
    terminate_response()
}

/// A refusal as it stands in documents.
pub(in crate::service) fn refusal_document(refusal: &RefusalView) -> refusals::Refusal {
    refusals::Refusal {
        // A test compares the words.
        reason: refusals::Reason::parse(refusal.reason.word()).expect("a word of the closed list"),
        binding_constraint: Some(refusal.binding_constraint.clone()),
        cut_short: refusal.cut_short,
        alternatives: refusal
            .alternatives
            .iter()
            .map(|alternative| refusals::Alternative {
                start: date_time_in_document(alternative.start),
                end: date_time_in_document(alternative.end),
                nodes: alternative.nodes,
                deviation: alternative.deviation,
                direction: if alternative.direction == "earlier" {
                    Direction::Earlier
                } else {
                    Direction::Later
                },
            })
            .collect(),
        relaxations: refusal
            .relaxations
            .iter()
            .map(|relaxation| refusals::Relaxation {
                start: relaxation.ready.map(date_time_in_document),
                deadline: relaxation.deadline.map(date_time_in_document),
                nodes: relaxation.nodes,
                duration: relaxation
                    .duration_seconds
                    .and_then(|seconds| u32::try_from(seconds).ok()),
                budget: relaxation.budget.map(sum_in_document),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Reason;

    use super::*;

    #[test]
    fn reasons_have_the_same_words_in_documents() {
        for reason in Reason::ALL {
            let written = refusals::Reason::parse(reason.word()).map(refusals::Reason::name);
            assert_eq!(written, Some(reason.word()));
        }
    }
}
