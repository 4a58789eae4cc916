//! A need: work or nodes to be placed on one of the resources, for a request that is new or for an agreement that has lost its
//! place.

use std::borrow::Cow;

use domain::agreement::{Agreement, BarredResource, Filter, Guarantee, Job, Money, Shape, Slots};
use domain::clock::second_of;
use scheduler::{Fraction, Interval, Move, Time};

use crate::planner::admission::payer::Payer;
use crate::planner::request::Request;
use crate::planner::resources::resource::{Resource, Scaling};

/// Sizes of one need that are tried where others are to move.
const SHAPES_MAX: usize = 4;

/// The work that something is foreseen of.
#[derive(Debug, Clone, Copy)]
pub(in crate::planner) struct Foreseeable<'a> {
    pub(in crate::planner) party: &'a str,
    pub(in crate::planner) job: Option<&'a Job>,
    pub(in crate::planner) guarantees: &'a [Guarantee],
    pub(in crate::planner) scaling: Scaling,
    /// How many sizes it may have.
    pub(in crate::planner) sizes: usize,
}

impl<'a> Foreseeable<'a> {
    /// That of a proposal.
    pub(in crate::planner) fn of(proposal: &'a Request) -> Self {
        Self {
            party: &proposal.party,
            job: proposal.job.as_ref(),
            guarantees: &proposal.guarantees,
            scaling: proposal.scaling,
            sizes: proposal.shapes.len(),
        }
    }
}

/// Work or nodes to be placed on one of the resources.
#[derive(Clone)]
pub(in crate::planner) struct Need<'a> {
    pub(in crate::planner) number: u64,
    pub(in crate::planner) payer: Payer<'a>,
    pub(in crate::planner) submitted: Time,
    pub(in crate::planner) window: Interval,
    /// From most nodes to fewest.
    pub(in crate::planner) shapes: Cow<'a, [Shape]>,
    /// What something can be foreseen of.
    pub(in crate::planner) work: Foreseeable<'a>,
    pub(in crate::planner) filters: &'a [Filter],
    /// The resources where the cluster would refuse it.
    pub(in crate::planner) barred: &'a [BarredResource],
    /// How far outside the window alternatives may lie, where the requester says.
    pub(in crate::planner) deviation_max: Option<Fraction>,
    /// When its agreement expires, where it does: no slot ends later, and no alternative.
    pub(in crate::planner) expires: Option<Time>,
    /// The resource that may not be taken.
    pub(in crate::planner) except: Option<usize>,
    /// Whether it would be a new promise, which closed resources do not make.
    pub(in crate::planner) is_new: bool,
    /// The agreement that it is another place for.
    pub(in crate::planner) of: Option<&'a Agreement>,
}

impl<'a> Need<'a> {
    /// That of a proposal in a window, submitted now.
    pub(in crate::planner) fn of(proposal: &'a Request, number: u64, window: Interval, now: Time) -> Self {
        Self {
            number,
            payer: Payer::of(proposal),
            submitted: now,
            window,
            shapes: Cow::Borrowed(&proposal.shapes),
            work: Foreseeable::of(proposal),
            filters: &proposal.filters,
            barred: &proposal.barred,
            deviation_max: proposal.deviation_max,
            expires: proposal.expires,
            except: None,
            is_new: true,
            of: None,
        }
    }

    /// That of an agreement for as much as it has, in a window.
    pub(in crate::planner) fn of_agreement(agreement: &'a Agreement, window: Interval) -> Self {
        let (shape, scaling) = shape_of_agreement(agreement);
        Self {
            number: u64::MAX,
            payer: Payer::of_agreement(agreement),
            submitted: second_of(agreement.created),
            window,
            shapes: Cow::Owned(vec![shape]),
            work: Foreseeable {
                party: &agreement.party,
                job: agreement.job.as_ref(),
                guarantees: &agreement.guarantees,
                scaling,
                sizes: 1,
            },
            filters: &agreement.constraints.filters,
            barred: &agreement.constraints.barred,
            deviation_max: None,
            expires: agreement.constraints.expires.map(Time),
            except: None,
            is_new: false,
            of: Some(agreement),
        }
    }

    /// A few of its sizes, from largest to smallest.
    pub(in crate::planner) fn some_shapes(&self) -> Vec<Shape> {
        evenly_spread_sizes(&self.shapes, SHAPES_MAX)
    }

    /// The latest end of its slots, also of those outside its window, within a horizon.
    pub(in crate::planner) fn latest_end(&self, horizon: Time) -> Time {
        self.expires.map_or(horizon, |at| at.min(horizon))
    }

    /// Whether its slots are as long as its work is predicted to take.
    pub(in crate::planner) fn is_sized(&self) -> bool {
        matches!(self.work.scaling, Scaling::Predicted(_))
    }

    /// The request of a size as it is on a resource.
    pub(in crate::planner) fn request(&self, shape: Shape) -> scheduler::Request {
        scheduler::Request {
            id: self.number,
            submitted: self.submitted,
            ready: self.window.start,
            deadline: self.window.end,
            duration: shape.duration,
            nodes: shape.nodes,
            revenue: 0,
        }
    }
}

/// A place of a request in the plan, and what others have done to make room for it.
#[derive(Clone)]
pub(in crate::planner) struct Placement {
    pub(in crate::planner) resource: usize,
    pub(in crate::planner) slots: Slots,
    pub(in crate::planner) price: Option<Money>,
    pub(in crate::planner) moved: Vec<Move>,
    pub(in crate::planner) transferred: Vec<Transfer>,
}

impl Placement {
    /// One for which others do nothing.
    pub(in crate::planner) fn at(resource: usize, slots: Slots, price: Option<Money>) -> Self {
        let (moved, transferred) = (Vec::new(), Vec::new());
        Self {
            resource,
            slots,
            price,
            moved,
            transferred,
        }
    }
}

/// A waiting agreement that went from one resource to another.
#[derive(Clone)]
pub(in crate::planner) struct Transfer {
    /// As it is now.
    pub(in crate::planner) placed: Agreement,
    /// Its old resource, and its requests there with their starts.
    pub(in crate::planner) from: usize,
    pub(in crate::planner) was: Vec<(scheduler::Request, Time)>,
}

/// The size that an agreement has, as other resources have to be asked for it.
pub(in crate::planner) fn shape_of_agreement(agreement: &Agreement) -> (Shape, Scaling) {
    let in_one = !agreement.slots.is_split();
    let granted = |shape: &&Shape| in_one && shape.nodes == agreement.nodes();
    match agreement.constraints.shapes.iter().find(granted) {
        Some(shape) => {
            let predicted = agreement.constraints.predicted_ppm.map(Scaling::Predicted);
            (*shape, predicted.unwrap_or(Scaling::ReferenceRate))
        }
        None => (
            Shape {
                nodes: agreement.nodes(),
                duration: agreement.duration,
            },
            Scaling::Contract,
        ),
    }
}

/// Whether a resource may take a size, by the conditions on its nodes and by its cluster.
pub(in crate::planner) fn may_take_shape(
    on: &Resource,
    shape: Shape,
    filters: &[Filter],
    barred: &[BarredResource],
) -> bool {
    let mut required = filters.iter().map(|filter| filter.requirement(shape.nodes));
    !barred.iter().any(|resource| resource.keeps(shape, &on.name))
        && required.all(|required| on.meets(&required))
}

/// At most `most` of some sizes, at even distances with the first and the last among them; of one, or none, the first.
pub(in crate::planner) fn evenly_spread_sizes(shapes: &[Shape], most: usize) -> Vec<Shape> {
    let most = most.max(1);
    if shapes.len() <= most {
        return shapes.to_vec();
    }
    let (last, steps) = (shapes.len() - 1, (most - 1).max(1));
    (0..most).map(|step| shapes[last * step / steps]).collect()
}
