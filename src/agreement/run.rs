//! The jobs of an agreement, told apart.

use uuid::Uuid;

use super::Agreement;

/// One of the jobs that an agreement has in the course of time: one for each piece of its work, and one more each time that work
/// was lost and is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRun {
    /// The agreement.
    pub agreement: Uuid,
    /// Which piece of its work, from 1.
    pub piece: u32,
    /// How often its work had been lost before.
    pub restarts: u32,
}

impl JobRun {
    /// The first job of an agreement.
    pub const fn first(agreement: Uuid) -> Self {
        Self {
            agreement,
            piece: 1,
            restarts: 0,
        }
    }
}

impl From<&Agreement> for JobRun {
    /// The job that it has now, or has next; the last one when all are over.
    fn from(agreement: &Agreement) -> Self {
        Self {
            agreement: agreement.id,
            piece: agreement.slot_number(),
            restarts: agreement.restarts(),
        }
    }
}
