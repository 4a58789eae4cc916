//! A wish: work or nodes to be placed on one of the resources.

use scheduler::Interval;
use scheduler::domain::Task;

use super::super::Scaling;
use super::id;
use crate::agreement::{Agreement, Barred, Filter, Shape};
use crate::planner::placement::admit::shape_of;

/// Work or nodes to be placed on one of the resources.
pub(in crate::planner) struct Need<'a> {
    pub(in crate::planner) shape: Shape,
    pub(in crate::planner) scaling: Scaling,
    pub(in crate::planner) window: Interval,
    pub(in crate::planner) filters: &'a [Filter],
    /// The resources where the cluster would refuse it.
    pub(in crate::planner) barred: &'a [Barred],
    /// The resource that may not be taken.
    pub(in crate::planner) except: Option<usize>,
    /// Whether it would be a new promise, which closed resources do not make.
    pub(in crate::planner) is_new: bool,
}

impl<'a> Need<'a> {
    /// That of an agreement for as much as it has, in a window.
    pub(in crate::planner) fn of(agreement: &'a Agreement, window: Interval) -> Self {
        let (shape, scaling) = shape_of(agreement);
        Self {
            shape,
            scaling,
            window,
            filters: &agreement.leeway.filters,
            barred: &agreement.leeway.barred,
            except: None,
            is_new: false,
        }
    }
}

impl Need<'_> {
    pub(super) fn task(&self) -> Task {
        Task {
            nodes: self.shape.nodes,
            work: self.shape.duration,
            window: self.window,
            requires: self
                .filters
                .iter()
                .map(|filter| filter.requirement(self.shape.nodes))
                .collect(),
            except: self.except.into_iter().map(id).collect(),
        }
    }

    /// The names of the resources where the cluster would refuse it in this size.
    pub(super) fn refusing(&self) -> impl Iterator<Item = &str> {
        let refusing = self.barred.iter().filter(|of| of.keeps(self.shape, &of.resource));
        refusing.map(|of| of.resource.as_str())
    }
}
