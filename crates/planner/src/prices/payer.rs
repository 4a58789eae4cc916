//! The party that pays.

use domain::agreement::{Agreement, Money};
use scheduler::Fraction;

use crate::request::Request;

/// The party that pays, and the most that it pays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    /// The party, for its price profile.
    pub(crate) party: &'a str,
    /// The most that it pays; none for no limit.
    pub(crate) budget: Option<Money>,
    /// The part of its wait after which it lets itself be moved no more, which is for its discount.
    pub(crate) fix_at: Option<Fraction>,
}

impl<'a> Payer<'a> {
    /// The payer of a proposal.
    pub(crate) fn of(request: &'a Request) -> Self {
        Self {
            party: &request.party,
            budget: request.budget,
            fix_at: payer_fixes_at(request.fix_at_ppm),
        }
    }

    /// The payer of an agreement, without a limit.
    pub(crate) fn of_agreement(agreement: &'a Agreement) -> Self {
        Self {
            party: &agreement.party,
            budget: None,
            fix_at: payer_fixes_at(agreement.constraints.fix_at_ppm),
        }
    }
}

/// A part in millionths.
pub(crate) fn payer_fixes_at(millionths: Option<u32>) -> Option<Fraction> {
    millionths.map(|numerator| Fraction {
        numerator,
        denominator: 1_000_000,
    })
}
