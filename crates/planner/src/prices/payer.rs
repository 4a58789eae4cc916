//! The party that pays, and what its request allows that lowers the price.

use domain::agreement::{Agreement, Money, Shape};
use domain::resources::Scaling;
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Rate, Seconds};

use crate::request::Request;

/// The party that pays, the most that it pays, and the freedom that it leaves the provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    /// The party, for its price profile.
    pub(crate) party: &'a str,
    /// The most that it pays; none for no limit.
    pub(crate) budget: Option<Money>,
    /// The part of its wait after which it lets itself be moved no more, which is for its discount.
    pub(crate) fix_at: Option<Fraction>,
    /// The shapes that its request may have.
    pub(crate) freedom: ShapeFreedom,
}

/// The freedom of shape that a request leaves the provider (002, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShapeFreedom {
    /// Whether its work may be cut.
    pub(crate) is_preemptive: bool,
    /// How many shapes it allows, which is its flexibility factor.
    pub(crate) shapes: u64,
    /// The size on which it takes the shortest, and the meaning of that duration; none where it has one size.
    shortest: Option<(Shape, Scaling)>,
}

impl ShapeFreedom {
    /// Of nodes for a time: one size in one piece.
    pub(crate) const NONE: Self = Self {
        is_preemptive: false,
        shapes: 1,
        shortest: None,
    };

    /// That of sizes and cuts.
    pub(crate) fn of(sizes: &[Shape], scaling: Scaling, cuts: Option<Preemption>) -> Self {
        let cuts = cuts.unwrap_or(Preemption::NONE);
        let shortest = sizes.iter().min_by_key(|shape| shape.duration);
        Self {
            is_preemptive: cuts.pieces_max() > 1,
            shapes: cuts.flexibility(sizes.len().max(1)),
            shortest: shortest
                .filter(|_| sizes.len() > 1)
                .map(|shape| (*shape, scaling)),
        }
    }

    /// T^min: the seconds on its fastest size, on a resource of this rate; none where it has one size.
    pub(crate) fn fastest(&self, rate: Rate) -> Option<Seconds> {
        let (shape, scaling) = self.shortest?;
        Some(scaling.shape(shape, rate).duration)
    }
}

impl<'a> Payer<'a> {
    /// The payer of a proposal.
    pub(crate) fn of(request: &'a Request) -> Self {
        Self {
            party: &request.party,
            budget: request.budget,
            fix_at: payer_fixes_at(request.fix_at_ppm),
            freedom: ShapeFreedom::of(&request.shapes, request.scaling, request.preemption),
        }
    }

    /// The payer of an agreement, without a limit.
    pub(crate) fn of_agreement(agreement: &'a Agreement) -> Self {
        let constraints = &agreement.constraints;
        let sizes = &constraints.shapes;
        let scaling = constraints
            .predicted_ppm
            .map_or(Scaling::ReferenceRate, Scaling::Predicted);
        let cuts = constraints.cuts.and_then(|cuts| cuts.preemption(sizes.len()));
        Self {
            party: &agreement.party,
            budget: None,
            fix_at: payer_fixes_at(constraints.fix_at_ppm),
            freedom: ShapeFreedom::of(sizes, scaling, cuts),
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
