//! The limits of a request: quotas, budgets and prices; and refusals with their reasons.

pub(super) mod budget;
pub(super) mod energy;
pub(super) mod holdings;
pub(super) mod limits;
pub(super) mod payer;
pub(super) mod per_minute;
pub(super) mod price_list;
pub(super) mod pricing;
pub(super) mod quotas;
pub(super) mod refusal_log;
pub(super) mod refuse;
pub(super) mod share;
pub(super) mod spending;
mod usage;
