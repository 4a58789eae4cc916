//! From agreements and failures back to the documents of WS-Agreement.

use scheduler::Time;
use wsag::Named;
use wsag::endpoint::EndpointReference;
use wsag::operations::{create_agreement_response, create_pending_agreement_response, terminate_response};
use wsag::placement::{self, Moved};
use wsag::refusals::{self, Direction};
use wsag::scheduling::Budget;
use wsag::states;
use wsag::terms::CompositorChoice;
use wsag::time::DateTime;

use super::agreement::AcceptedView;
use super::refusal::RefusalView;
use crate::agreement::{AgreementState, GuaranteeState, Money, Slot};
use crate::clock::Micros;

pub(in crate::negotiation) fn piece(piece: &Slot) -> placement::Piece {
    placement::Piece {
        planned_start: date_time(piece.placement.start),
        planned_end: date_time(piece.placement.end),
        nodes: piece.nodes,
        started: piece.started.map(instant),
        ended: piece.ended.map(instant),
    }
}

/// The state of an agreement, which has the same words here and there.
pub(in crate::negotiation) fn agreement_state(state: AgreementState) -> states::AgreementState {
    // A test compares the words.
    states::AgreementState::parse(state.word()).expect("a word of the specification")
}

/// The state of a guarantee.
pub(in crate::negotiation) fn guarantee_state(state: GuaranteeState) -> states::GuaranteeState {
    // A test compares the words.
    states::GuaranteeState::parse(state.word()).expect("a word of the specification")
}

/// A sum of money as documents have it.
pub(in crate::negotiation) fn sum(money: Money) -> Budget {
    Budget {
        amount_micros: money.micros,
        currency: money.currency.code().to_owned(),
    }
}

pub(in crate::negotiation) fn date_time(time: Time) -> DateTime {
    DateTime::from_seconds(time.seconds())
}

pub(in crate::negotiation) fn instant(at: Micros) -> DateTime {
    DateTime::from_micros(at)
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
    create_agreement_response(
        &EndpointReference::new(accepted.agreement.address(base)),
        &moved,
        &choices(&accepted.agreement.choices),
    )
}

/// What was chosen of an offer that left a choice.
pub(in crate::negotiation) fn choices(of: &[crate::agreement::CompositorChoice]) -> Vec<CompositorChoice> {
    let choices = of.iter().map(|of| CompositorChoice {
        path: of.path.clone(),
        members: of.members.clone(),
    });
    choices.collect()
}

/// The TerminateResponse.
pub fn terminated() -> String {
    terminate_response()
}

/// A refusal as it stands in documents.
pub(in crate::negotiation) fn refusal_document(refusal: &RefusalView) -> refusals::Refusal {
    refusals::Refusal {
        // A test compares the words.
        reason: refusals::Reason::parse(refusal.reason.word()).expect("a word of the closed list"),
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

#[cfg(test)]
mod tests {
    use scheduler::Reason;

    use super::*;

    #[test]
    fn states_and_reasons_have_the_same_words_in_documents() {
        for state in AgreementState::ALL {
            assert_eq!(agreement_state(state).name(), state.word());
        }
        for state in [
            GuaranteeState::NotDetermined,
            GuaranteeState::Fulfilled,
            GuaranteeState::Violated,
        ] {
            assert_eq!(guarantee_state(state).name(), state.word());
        }
        for reason in Reason::ALL {
            let written = refusals::Reason::parse(reason.word()).map(refusals::Reason::name);
            assert_eq!(written, Some(reason.word()));
        }
    }
}
