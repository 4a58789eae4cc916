//! The decisions on plans in memory, without a store.

mod energy;
mod energy_decisions;
mod forecasts;
pub(super) mod harness;
mod holds;
mod pictures;
pub(super) mod price_plan;
mod quotas;
mod resource_choice;
pub(crate) mod stories;
mod three_speeds;
mod waiting_costs;
