//! What parties have, spend and ask.

use std::collections::HashMap;

use crate::admission::holdings::Holdings;
use crate::admission::per_minute::PerMinute;
use crate::admission::spending_sums::Spendings;

/// What parties have, spend and ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// The recent refusals of parties.
    pub(crate) refused: PerMinute,
    /// How often parties asked for quotes.
    pub(crate) probes: PerMinute,
    /// What keys with a cap have spent.
    pub(crate) spendings: Spendings,
    /// The node-seconds that each party has in agreements.
    pub(crate) node_seconds: HashMap<String, u128>,
    /// The slots that each party has.
    pub(crate) holdings: Holdings,
}
