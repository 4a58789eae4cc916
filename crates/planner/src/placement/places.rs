//! The slots by their numbers, and which have moved of late.

use crate::placement::recent_moves::MovedUp;
use crate::slot_numbers::Numbers;

/// The slots by their numbers, and which have moved of late.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The numbers by which the schedules know the slots.
    pub(crate) numbers: Numbers,
    /// The agreements that moved up in the last hour.
    pub(crate) moved_up: MovedUp,
}
