//! The meaning of the durations of an offer on resources of different rates.

use scheduler::Rate;

use crate::agreement::Shape;

/// The meaning of the durations of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// As contracted: the nodes are held for that time, on any resource.
    Contract,
    /// At the reference rate: a resource divides them by its own.
    ReferenceRate,
    /// As predicted: on each resource and at each time as long as the work takes there with this probability, in millionths. Where
    /// nothing is foreseen of a resource, they are at the reference rate.
    Predicted(u32),
}

impl Scaling {
    /// A size with the duration that it has on a resource of that rate.
    pub fn shape(self, shape: Shape, rate: Rate) -> Shape {
        match self {
            Self::Contract => shape,
            Self::ReferenceRate | Self::Predicted(_) => shape.at(rate),
        }
    }
}
