//! Random documents of a provider, and elements of our own.

#![expect(clippy::unwrap_used, reason = "the values made here are valid")]

use uuid::Uuid;
use wsag::agreement_state::AgreementState;
use wsag::agreements::{AgreementProperties, AtPeer, Details, GuaranteeAtPeer};
use wsag::faults::{Description, Fault, FaultViolation};
use wsag::placement::{Piece, Placement};
use wsag::quotation::{Energy, OfferKind, Quotation};
use wsag::refusals::{Alternative, Direction, Reason, Refusal, Relaxation};
use wsag::states::{Activity, GuaranteeState, ServiceState, ServiceTermState};
use wsag::travel::{PATH_MAX, Travel};

use super::make::DocumentMaker;

impl DocumentMaker {
    pub(crate) fn travel(&mut self) -> Travel {
        Travel {
            request: Uuid::from_u128(u128::from(self.0.next()) << 64 | u128::from(self.0.next())),
            path: (0..=self.0.below(PATH_MAX))
                .map(|number| format!("domain-{number}"))
                .collect(),
            hops: u32::try_from(self.0.below(17)).unwrap(),
            waits: u32::try_from(self.0.below(60_001)).unwrap(),
            requester: self.maybe(DocumentMaker::name),
        }
    }

    pub(crate) fn quotation(&mut self) -> Quotation {
        Quotation {
            kind: *self
                .0
                .pick(&[OfferKind::Exact, OfferKind::Later, OfferKind::InPieces]),
            start: self.time(),
            end: self.time(),
            nodes: self.count(),
            pieces: self.some(0, DocumentMaker::piece),
            may_change: self.maybe(DocumentMaker::shape_changes),
            deviation: self.number(),
            confidence: self.maybe(DocumentMaker::share),
            price: self.maybe(DocumentMaker::budget),
            preemptive_discount: self.maybe(DocumentMaker::budget),
            shapes_discount: self.maybe(DocumentMaker::budget),
            difference: self.maybe(DocumentMaker::budget),
            fee: self.maybe(DocumentMaker::budget),
            fee_reason: self.maybe(DocumentMaker::name),
            energy: self.maybe(|make| Energy {
                watt_hours: i64::from(make.count()),
                cost: make.budget(),
                carbon_grams: i64::from(make.count()),
            }),
            carried_out_by: self.maybe(DocumentMaker::name),
            added: self.maybe(DocumentMaker::budget),
            held_until: self.maybe(DocumentMaker::time),
        }
    }

    pub(crate) fn piece(&mut self) -> Piece {
        Piece {
            planned_start: self.time(),
            planned_end: self.time(),
            nodes: self.count(),
            started: self.maybe(DocumentMaker::time),
            ended: self.maybe(DocumentMaker::time),
        }
    }

    pub(crate) fn placement(&mut self) -> Placement {
        Placement {
            resource: self.maybe(DocumentMaker::name),
            planned_start: self.time(),
            planned_end: self.time(),
            nodes: self.count(),
            confidence: self.maybe(DocumentMaker::share),
            fixed: self.flag(),
            may_change: self.maybe(DocumentMaker::shape_changes),
            price: self.maybe(Self::budget),
            pieces: self.some(0, DocumentMaker::piece),
            node_names: self.some(0, DocumentMaker::name),
            started: self.maybe(DocumentMaker::time),
            ended: self.maybe(DocumentMaker::time),
            exit_status: self.maybe(|make| i32::try_from(make.0.below(256)).unwrap() - 128),
            outcome: self.maybe(DocumentMaker::name),
            status: self.maybe(DocumentMaker::text),
        }
    }

    pub(crate) fn properties(&mut self) -> AgreementProperties {
        let states = [
            AgreementState::Pending,
            AgreementState::Observed,
            AgreementState::Complete,
        ];
        AgreementProperties {
            name: self.maybe(DocumentMaker::text),
            agreement_id: self.name(),
            context: self.context().to_fragment(),
            terms: self.terms().to_fragment(),
            state: *self.0.pick(&states),
            details: Details {
                reason: self.maybe(DocumentMaker::text),
                choices: self.some(0, |make| super::items::choice(make.text())),
                supersedes: self.maybe(DocumentMaker::name),
                superseded_by: self.maybe(DocumentMaker::name),
                charged: self.some(0, DocumentMaker::budget),
                paid: self.some(0, DocumentMaker::budget),
                at_peers: self.some(0, |make| AtPeer {
                    peer: make.name(),
                    state: *make.0.pick(&states),
                    charged: make.maybe(DocumentMaker::budget),
                    paid: make.maybe(DocumentMaker::budget),
                    guarantees: make.some(0, |make| GuaranteeAtPeer {
                        name: make.name(),
                        state: GuaranteeState::Violated,
                    }),
                }),
            },
            guarantees: self.some(0, |make| {
                let states = [
                    GuaranteeState::NotDetermined,
                    GuaranteeState::Fulfilled,
                    GuaranteeState::Violated,
                ];
                (make.name(), *make.0.pick(&states))
            }),
            services: self.some(0, |make| ServiceTermState {
                term_name: make.name(),
                state: match make.0.below(4) {
                    0 => ServiceState::NotReady,
                    1 => ServiceState::Completed,
                    2 => ServiceState::Ready(Activity::Idle),
                    _ => ServiceState::Ready(Activity::Processing),
                },
                placement: make.maybe(DocumentMaker::placement),
            }),
        }
    }

    pub(crate) fn fault(&mut self) -> Fault {
        Fault {
            timestamp: self.time(),
            error_code: self.name(),
            descriptions: self.some(0, |make| Description {
                text: make.text(),
                language: make.maybe(|make| (*make.0.pick(&["en", "de-AT"])).to_owned()),
            }),
            refusal: self.maybe(|make| Refusal {
                reason: *make.0.pick(&[
                    Reason::NoCapacityInWindow,
                    Reason::BudgetTooLow,
                    Reason::PolicyDenied,
                ]),
                binding_constraint: make.maybe(DocumentMaker::text),
                cut_short: make.flag(),
                alternatives: make.some(0, |make| Alternative {
                    start: make.time(),
                    end: make.time(),
                    nodes: make.maybe(DocumentMaker::count),
                    deviation: make.number(),
                    direction: if make.flag() {
                        Direction::Earlier
                    } else {
                        Direction::Later
                    },
                }),
                relaxations: make.some(0, |make| Relaxation {
                    start: make.maybe(DocumentMaker::time),
                    deadline: make.maybe(DocumentMaker::time),
                    nodes: make.maybe(DocumentMaker::count),
                    duration: make.maybe(DocumentMaker::count),
                    budget: make.maybe(DocumentMaker::budget),
                }),
            }),
            violations: self.some(0, |make| FaultViolation {
                path: make.text(),
                message: make.text(),
            }),
            extensions: self.some(0, DocumentMaker::fragment),
        }
    }
}
