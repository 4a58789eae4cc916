//! The price list: what a node and an hour cost, what energy costs, and who pays.

pub(super) mod energy;
pub(super) mod payer;
pub(super) mod pricing;
