//! From an offer in any form to a request that the planner can decide: its terms against the template, the catalogue and the present.

pub(super) mod cluster_policy;
pub(super) mod duration_bounds;
pub(super) mod guarantee_values;
pub(super) mod guarantees;
pub(super) mod offer;
pub(super) mod sizes;
