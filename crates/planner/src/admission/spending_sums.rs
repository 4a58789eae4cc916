//! What keys with a cap have spent.

use std::collections::HashMap;

use uuid::Uuid;

/// What has been spent, in millionths of the currency of each cap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spendings {
    /// By key.
    pub(crate) spent: HashMap<Uuid, i64>,
    /// The keys and prices of the agreements that commands wait for, by the ids of these; some commands may be gone.
    pub(crate) waiting: HashMap<Uuid, (Uuid, i64)>,
}
