//! What tells the reservations of an agreement from each other, and the jobs that run in them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::{JobId, JobSpec, PlannedSlot};

/// What stands between the agreement and the numbers.
const SEPARATOR: char = '.';

/// A slot of an agreement, with its reservation and its job: each piece of its work has its own, and so has each time that it
/// is run again. Written as `AGREEMENT`, `AGREEMENT.PIECE` or `AGREEMENT.PIECE.RESTARTS`, the shortest that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct SlotId {
    pub(super) agreement: Uuid,
    /// Which piece of the work, from 1.
    pub(super) piece: u32,
    /// How often work of the agreement was lost before.
    pub(super) restarts: u32,
}

impl SlotId {
    /// The job that runs in it.
    pub(super) fn job(self) -> JobId {
        JobId {
            agreement: self.agreement,
            piece: self.piece,
        }
    }
}

impl From<Uuid> for SlotId {
    fn from(agreement: Uuid) -> Self {
        Self {
            agreement,
            piece: 1,
            restarts: 0,
        }
    }
}

impl From<&PlannedSlot> for SlotId {
    fn from(slot: &PlannedSlot) -> Self {
        Self {
            agreement: slot.agreement,
            piece: slot.piece,
            restarts: slot.restarts,
        }
    }
}

impl SlotId {
    /// All that reservations of a slot may be named after. One that replaces another has up to three while it waits: it has no
    /// pieces, and each is named as a piece would be.
    pub(super) fn all_of(slot: &PlannedSlot) -> impl Iterator<Item = Self> + use<> {
        let (id, count) = (Self::from(slot), if slot.replaces.is_some() { 3 } else { 1 });
        debug_assert!(count == 1 || id.piece == 1, "{id} replaces another one in pieces");
        (0..count).map(move |more| Self {
            piece: id.piece + more,
            ..id
        })
    }
}

impl From<&JobSpec> for SlotId {
    fn from(job: &JobSpec) -> Self {
        let JobId { agreement, piece } = job.id();
        Self {
            agreement,
            piece,
            restarts: job.restarts,
        }
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.agreement)?;
        match (self.piece, self.restarts) {
            (1, 0) => Ok(()),
            (piece, 0) => write!(f, "{SEPARATOR}{piece}"),
            (piece, restarts) => write!(f, "{SEPARATOR}{piece}{SEPARATOR}{restarts}"),
        }
    }
}

/// It is not written as one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected the id of an agreement, with the numbers of a piece and of a time behind it")]
pub(super) struct NoSlotId;

impl FromStr for SlotId {
    type Err = NoSlotId;

    /// Only what [`Display`](fmt::Display) writes: two names never mean one slot.
    fn from_str(text: &str) -> Result<Self, NoSlotId> {
        let mut parts = text.split(SEPARATOR);
        let agreement = parts.next().and_then(|id| id.parse().ok()).ok_or(NoSlotId)?;
        let mut number = |default: u32| match parts.next() {
            None => Ok(default),
            Some(number) => number.parse().map_err(|_| NoSlotId),
        };
        let id = Self {
            agreement,
            piece: number(1)?,
            restarts: number(0)?,
        };
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(NoSlotId)
        }
    }
}

impl TryFrom<String> for SlotId {
    type Error = NoSlotId;

    fn try_from(text: String) -> Result<Self, NoSlotId> {
        text.parse()
    }
}

impl From<SlotId> for String {
    fn from(id: SlotId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_and_each_time_has_one_name() {
        let agreement = Uuid::from_u128(7);
        let of = |piece, restarts| SlotId {
            agreement,
            piece,
            restarts,
        };
        for (id, behind) in [
            (of(1, 0), ""),
            (of(3, 0), ".3"),
            (of(1, 2), ".1.2"),
            (of(3, 12), ".3.12"),
        ] {
            let text = format!("{agreement}{behind}");
            assert_eq!((id.to_string(), text.parse()), (text.clone(), Ok(id)));
        }
        for wrong in ["", ".2", "7"] {
            assert_eq!(wrong.parse::<SlotId>(), Err(NoSlotId), "{wrong}");
        }
        for behind in [".1", ".2.0", ".02", ".2.", ".2.1.1", ".+2", "."] {
            assert_eq!(
                format!("{agreement}{behind}").parse::<SlotId>(),
                Err(NoSlotId),
                "{behind}"
            );
        }
    }
}
