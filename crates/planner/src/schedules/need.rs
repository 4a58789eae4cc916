//! A need: work or nodes to be placed on one of the resources, for a request that is new or for an agreement that has lost its
//! place; and the slots of an agreement as requests to the schedule of its resource.

use std::borrow::Cow;

use domain::agreement::{Agreement, BarredResource, Filter, Guarantee, Job, Money, Shape, Stretch};
use domain::clock::second_of;
use domain::resources::Scaling;
use scheduler::{Fraction, Interval, Time};

use crate::prices::payer::Payer;
use crate::request::Request;

/// Sizes of one need that are tried where others are to move.
const SHAPES_MAX: usize = 4;

/// The work that something is foreseen of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForeseeableNeed<'a> {
    pub(crate) party: &'a str,
    pub(crate) job: Option<&'a Job>,
    pub(crate) guarantees: &'a [Guarantee],
    pub(crate) scaling: Scaling,
    /// How many sizes it may have.
    pub(crate) sizes: usize,
}

impl<'a> ForeseeableNeed<'a> {
    /// What a proposal asks for.
    pub(crate) fn of(proposal: &'a Request) -> Self {
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
pub(crate) struct Need<'a> {
    pub(crate) number: u64,
    pub(crate) payer: Payer<'a>,
    pub(crate) submitted: Time,
    pub(crate) window: Interval,
    /// From most nodes to fewest.
    pub(crate) shapes: Cow<'a, [Shape]>,
    /// What something can be foreseen of.
    pub(crate) work: ForeseeableNeed<'a>,
    pub(crate) filters: &'a [Filter],
    /// The resources where the cluster would refuse it.
    pub(crate) barred: &'a [BarredResource],
    /// How far outside the window alternatives may lie, where the requester says.
    pub(crate) deviation_max: Option<Fraction>,
    /// When its agreement expires, where it does: no slot ends later, and no alternative.
    pub(crate) expires: Option<Time>,
    /// The resource that may not be taken.
    pub(crate) except: Option<usize>,
    /// Whether it would be a new promise, which closed resources do not make.
    pub(crate) is_new: bool,
    /// The agreement that it is another place for.
    pub(crate) of: Option<&'a Agreement>,
}

impl<'a> Need<'a> {
    /// The need of a proposal in a window, submitted now.
    pub(crate) fn of(proposal: &'a Request, number: u64, window: Interval, now: Time) -> Self {
        Self {
            number,
            payer: Payer::of(proposal),
            submitted: now,
            window,
            shapes: Cow::Borrowed(&proposal.shapes),
            work: ForeseeableNeed::of(proposal),
            filters: &proposal.filters,
            barred: &proposal.barred,
            deviation_max: proposal.deviation_max,
            expires: proposal.expires,
            except: None,
            is_new: true,
            of: None,
        }
    }

    /// The need of an agreement for as much as it has, in a window.
    pub(crate) fn of_agreement(agreement: &'a Agreement, window: Interval) -> Self {
        let (shape, scaling) = needed_shape_of_agreement(agreement);
        Self {
            number: u64::MAX,
            payer: Payer::of_agreement(agreement),
            submitted: second_of(agreement.created),
            window,
            shapes: Cow::Owned(vec![shape]),
            work: ForeseeableNeed {
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
    pub(crate) fn some_shapes(&self) -> Vec<Shape> {
        evenly_spread_needed_sizes(&self.shapes, SHAPES_MAX)
    }

    /// The latest end of its slots, also of those outside its window, within a horizon.
    pub(crate) fn latest_end(&self, horizon: Time) -> Time {
        self.expires.map_or(horizon, |at| at.min(horizon))
    }

    /// Whether its slots are as long as its work is predicted to take.
    pub(crate) fn is_sized(&self) -> bool {
        matches!(self.work.scaling, Scaling::Predicted(_))
    }

    /// The request of a size as it is on a resource.
    pub(crate) fn request(&self, shape: Shape) -> scheduler::Request {
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

/// The size that an agreement has, as other resources have to be asked for it.
pub(crate) fn needed_shape_of_agreement(agreement: &Agreement) -> (Shape, Scaling) {
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

/// At most `most` of some sizes, at even distances with the first and the last among them; of one, or none, the first.
pub(crate) fn evenly_spread_needed_sizes(shapes: &[Shape], most: usize) -> Vec<Shape> {
    let most = most.max(1);
    if shapes.len() <= most {
        return shapes.to_vec();
    }
    let (last, steps) = (shapes.len() - 1, (most - 1).max(1));
    (0..most).map(|step| shapes[last * step / steps]).collect()
}

/// An agreement as its resource's schedule has it: one request for each of its slots that is not over and not given up, each with
/// its own number and its own window.
pub(crate) fn requests_of_agreement(agreement: &Agreement, number: u64) -> Vec<scheduler::Request> {
    let slots = agreement.slots.iter().enumerate().zip(number..);
    let open = slots.filter(|((index, slot), _)| slot.ended.is_none() && !agreement.is_slot_given_up(*index));
    open.map(|((index, _), number)| request_of_slot(agreement, number, index))
        .collect()
}

/// The requests of an agreement, each with the start at which its slot lies.
pub(crate) fn placed_requests(
    agreement: &Agreement,
    number: u64,
) -> impl Iterator<Item = (scheduler::Request, Time)> {
    let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
    requests_of_agreement(agreement, number).into_iter().zip(starts)
}

/// A slot of an agreement where it lies, with its window, as its resource's schedule sees it.
pub(crate) fn request_of_slot(agreement: &Agreement, number: u64, index: usize) -> scheduler::Request {
    let slot = &agreement.slots[index];
    let request = request_of_stretch(agreement, number, slot.stretch());
    let in_one = !agreement.slots.is_split();
    if agreement.fixed || index < agreement.slots_begun() && !in_one {
        return request;
    }
    let mut window = agreement.slot_window(index);
    window.start = window.start.min(slot.placement.start);
    if in_one {
        window = agreement.room();
    }
    scheduler::Request {
        ready: window.start,
        deadline: window.end,
        ..request
    }
}

/// Nodes of an agreement for one slot alone, as its resource's schedule sees them.
pub(crate) fn request_of_stretch(
    agreement: &Agreement,
    number: u64,
    (slot, nodes): Stretch,
) -> scheduler::Request {
    scheduler::Request {
        nodes,
        ready: slot.start,
        deadline: slot.end,
        duration: slot.duration(),
        ..request_of_agreement(agreement, number)
    }
}

/// An agreement as its resource's schedule sees it.
pub(crate) fn request_of_agreement(agreement: &Agreement, number: u64) -> scheduler::Request {
    scheduler::Request {
        id: number,
        submitted: second_of(agreement.created),
        ready: agreement.ready,
        deadline: agreement.deadline,
        duration: agreement.duration,
        nodes: agreement.nodes(),
        revenue: revenue_of_price(agreement.price),
    }
}

/// The provider's revenue, for an order by revenue: by size alone where nothing is priced.
pub(crate) fn revenue_of_price(price: Option<Money>) -> u64 {
    price.map_or(0, |price| u64::try_from(price.micros).unwrap_or(0))
}
