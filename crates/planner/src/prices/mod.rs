//! The price list: what a node and an hour cost, what energy costs, the prices of placements, budgets, and the party that pays.

pub(super) mod budgets;
pub(super) mod energy;
pub(super) mod payer;
pub(super) mod placement_prices;
pub(super) mod pricing;
