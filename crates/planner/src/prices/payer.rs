//! The party that pays, and what its request allows that lowers the price.

use domain::agreement::{Agreement, BarredResource, Filter, Money, Shape};
use domain::resources::{Resource, Scaling};
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Rate, Seconds};

use crate::request::Request;
use crate::schedules::needed_sizes::able_needed_sizes;

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
    pub(crate) shapes: AllowedShapes<'a>,
}

/// The sizes and the cuts that a request allows, and the resources that it allows them on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedShapes<'a> {
    /// Its sizes; one that is not told where there are none.
    pub(crate) sizes: &'a [Shape],
    /// The meaning of their durations.
    pub(crate) scaling: Scaling,
    /// How its work may be cut.
    pub(crate) cuts: Preemption,
    /// The conditions on the nodes.
    pub(crate) filters: &'a [Filter],
    /// The resources that may not have it.
    pub(crate) barred: &'a [BarredResource],
}

/// The freedom of shape that a request leaves the provider on a resource (002, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShapeFreedom {
    /// Whether its work may be cut.
    pub(crate) is_preemptive: bool,
    /// How many shapes it allows, which is its flexibility factor.
    pub(crate) shapes: u64,
    /// T^min: the seconds on its fastest size; none where it has one size.
    pub(crate) fastest: Option<Seconds>,
}

impl AllowedShapes<'_> {
    /// Of nodes for a time: one size in one piece.
    pub(crate) const ONE: AllowedShapes<'static> = AllowedShapes {
        sizes: &[],
        scaling: Scaling::Contract,
        cuts: Preemption::NONE,
        filters: &[],
        barred: &[],
    };

    /// What the freedom on a resource depends on, of those that meet the conditions on each node; none where it depends on more.
    pub(crate) fn alike_on(&self, resource: &Resource) -> Option<(u32, Rate)> {
        let is_plain = self.barred.is_empty() && !self.filters.iter().any(Filter::is_total);
        is_plain.then_some((resource.capacity, resource.rate))
    }

    /// The freedom of shape on a resource. A size counts only where the resource has its nodes and may take it: one that no
    /// resource takes leaves no freedom.
    pub(crate) fn on(&self, resource: &Resource) -> ShapeFreedom {
        let mut able = 0;
        let mut fastest: Option<Seconds> = None;
        for size in able_needed_sizes(resource, self.sizes, self.filters, self.barred) {
            let duration = self.scaling.shape(size, resource.rate).duration;
            able += 1;
            fastest = Some(fastest.map_or(duration, |fastest| fastest.min(duration)));
        }
        ShapeFreedom {
            is_preemptive: self.cuts.pieces_max() > 1,
            shapes: self.cuts.flexibility(able.max(1)),
            fastest: fastest.filter(|_| able > 1),
        }
    }
}

impl ShapeFreedom {
    /// Of nodes for a time: one size in one piece.
    pub(crate) const NONE: Self = Self {
        is_preemptive: false,
        shapes: 1,
        fastest: None,
    };
}

impl<'a> Payer<'a> {
    /// The payer of a proposal.
    pub(crate) fn of(request: &'a Request) -> Self {
        Self {
            party: &request.party,
            budget: request.budget,
            fix_at: payer_fixes_at(request.fix_at_ppm),
            shapes: AllowedShapes {
                sizes: &request.shapes,
                scaling: request.scaling,
                cuts: request.preemption.unwrap_or(Preemption::NONE),
                filters: &request.filters,
                barred: &request.barred,
            },
        }
    }

    /// The payer of an agreement, without a limit.
    pub(crate) fn of_agreement(agreement: &'a Agreement) -> Self {
        let constraints = &agreement.constraints;
        let sizes = &constraints.shapes;
        let cuts = constraints.cuts.and_then(|cuts| cuts.preemption(sizes.len()));
        Self {
            party: &agreement.party,
            budget: None,
            fix_at: payer_fixes_at(constraints.fix_at_ppm),
            shapes: AllowedShapes {
                sizes,
                scaling: constraints
                    .predicted_ppm
                    .map_or(Scaling::ReferenceRate, Scaling::Predicted),
                cuts: cuts.unwrap_or(Preemption::NONE),
                filters: &constraints.filters,
                barred: &constraints.barred,
            },
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
