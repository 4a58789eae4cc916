//! Sizes of requests by classes of nodes, and the least that one of some requests needs.

use crate::request::Request;
use crate::time::{Seconds, Time};

/// The part of a request on which it depends where it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) ready: Time,
    pub(super) duration: Seconds,
    pub(super) nodes: u32,
}

impl Shape {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            ready: request.ready,
            duration: request.duration,
            nodes: request.nodes,
        }
    }
}

/// The least number of nodes of each class: two for each power of two, and one for all from 256 on.
pub(super) const CLASSES: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Something for each class of nodes.
pub(super) type ByClass<T> = [T; CLASSES.len()];

/// The class of a number of nodes, at least 1.
fn class_of_nodes(nodes: u32) -> usize {
    CLASSES.partition_point(|least| *least <= nodes).saturating_sub(1)
}

/// The least that one of some requests needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizeSummary {
    /// The shortest duration in each class of nodes; [`Seconds::MAX`] where there is none.
    pub(super) shortest: ByClass<Seconds>,
    /// The earliest ready time.
    pub(super) ready: Time,
}

impl SizeSummary {
    pub(super) const NONE: Self = Self {
        shortest: [Seconds::MAX; CLASSES.len()],
        ready: Time::MAX,
    };

    pub(super) fn of(shapes: impl Iterator<Item = Shape>) -> Self {
        shapes.fold(Self::NONE, Self::with)
    }

    pub(super) fn with(mut self, shape: Shape) -> Self {
        let shortest = &mut self.shortest[class_of_nodes(shape.nodes)];
        *shortest = (*shortest).min(shape.duration);
        self.ready = self.ready.min(shape.ready);
        self
    }

    pub(super) fn join(mut self, other: &Self) -> Self {
        for (shortest, others) in self.shortest.iter_mut().zip(&other.shortest) {
            *shortest = (*shortest).min(*others);
        }
        self.ready = self.ready.min(other.ready);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_begins_with_its_least_number_of_nodes() {
        for (class, least) in CLASSES.into_iter().enumerate() {
            assert_eq!(class_of_nodes(least), class);
            assert_eq!(class_of_nodes(least - 1), class.saturating_sub(1));
        }
        assert_eq!(class_of_nodes(u32::MAX), 15);
    }
}
