//! The energy of placements.

use serde::{Deserialize, Serialize};

use super::Money;

/// The energy that the nodes of a placement take, its cost for the provider, and what it emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyUse {
    /// Watt-hours.
    pub watt_hours: i64,
    /// Its cost.
    pub cost: Money,
    /// Grams of carbon dioxide.
    pub carbon_grams: i64,
}
