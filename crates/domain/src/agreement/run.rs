//! The identity of one attempt to do the work of a slot, and how the work of an agreement ended.

use std::fmt;
use std::str::FromStr;

use scheduler::worded;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Agreement;

/// What stands between the agreement and the numbers.
const SEPARATOR: char = '.';

/// One attempt to do the work of a slot: *the* identity of its job, folder, claim, reservation, submission and report. Written as
/// `AGREEMENT`, `AGREEMENT.SLOT` or `AGREEMENT.SLOT.ATTEMPT`, the shortest of these that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Run {
    /// The agreement with which the work began ([`Agreement::execution_id`]).
    pub agreement: Uuid,
    /// The number of the slot in it, from 1.
    pub slot: u32,
    /// The number of the attempt, from 0: how often work of the agreement had been lost before.
    pub attempt: u32,
}

impl Run {
    /// The first attempt of the first slot.
    pub const fn first(agreement: Uuid) -> Self {
        Self {
            agreement,
            slot: 1,
            attempt: 0,
        }
    }
}

impl From<&Agreement> for Run {
    /// The run that it has now, or has next; the last one when all are over.
    fn from(agreement: &Agreement) -> Self {
        Self {
            agreement: agreement.execution_id(),
            slot: agreement.slot_number(),
            attempt: agreement.restarts(),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.agreement)?;
        match (self.slot, self.attempt) {
            (1, 0) => Ok(()),
            (slot, 0) => write!(f, "{SEPARATOR}{slot}"),
            (slot, attempt) => write!(f, "{SEPARATOR}{slot}{SEPARATOR}{attempt}"),
        }
    }
}

/// A text is not the name of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected the id of an agreement, then the numbers of a slot and of an attempt")]
pub struct NoRun;

impl FromStr for Run {
    type Err = NoRun;

    /// Only what [`Display`](fmt::Display) writes: no two names mean one run.
    fn from_str(text: &str) -> Result<Self, NoRun> {
        let mut parts = text.split(SEPARATOR);
        let agreement = parts.next().and_then(|id| id.parse().ok()).ok_or(NoRun)?;
        let mut number = |default: u32| match parts.next() {
            None => Ok(default),
            Some(number) => number.parse().map_err(|_| NoRun),
        };
        let run = Self {
            agreement,
            slot: number(1)?,
            attempt: number(0)?,
        };
        if run.to_string() == text {
            Ok(run)
        } else {
            Err(NoRun)
        }
    }
}

impl TryFrom<String> for Run {
    type Error = NoRun;

    fn try_from(text: String) -> Result<Self, NoRun> {
        text.parse()
    }
}

impl From<Run> for String {
    fn from(run: Run) -> Self {
        run.to_string()
    }
}

worded! {
    /// A resource of which a job may have only a limited amount.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Limit {
        /// Memory of all its processes together.
        Memory = "memory",
        /// Processes, and threads among them.
        Processes = "processes",
        /// Room on the disk for the files that it writes.
        Files = "room for files",
    }
}

/// How the work of an agreement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RunOutcome {
    /// The process ended by itself with status 0, or a reservation without a job reached its end.
    Completed,
    /// The process ended by itself with another status.
    Failed {
        /// Its exit status; 128 + signal when a signal ended it.
        exit: i32,
    },
    /// Stopped at the slot's end.
    Killed,
    /// Stopped at the end of a piece, after it had saved its work to go on in the next: never how an agreement ends.
    Checkpointed,
    /// Stopped because the agreement was terminated.
    Terminated,
    /// Stopped because it took more than its application may.
    Exceeded {
        /// The limit that it exceeded.
        limit: Limit,
    },
    /// Its files could not be brought or sent, for a reason of its party's.
    Unstaged,
    /// Never started, or gone without a trace of its end.
    Lost,
}

impl RunOutcome {
    /// One of each kind.
    pub fn each() -> impl Iterator<Item = Self> {
        let plain = [
            Self::Completed,
            Self::Failed { exit: 1 },
            Self::Killed,
            Self::Checkpointed,
            Self::Terminated,
            Self::Unstaged,
            Self::Lost,
        ];
        plain
            .into_iter()
            .chain(Limit::ALL.map(|limit| Self::Exceeded { limit }))
    }

    /// The word that is stored and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
            Self::Killed => "killed",
            Self::Checkpointed => "checkpointed",
            Self::Terminated => "terminated",
            Self::Exceeded { limit } => match limit {
                Limit::Memory => "exceeded-memory",
                Limit::Processes => "exceeded-processes",
                Limit::Files => "exceeded-files",
            },
            Self::Unstaged => "failed-staging",
            Self::Lost => "lost",
        }
    }

    /// The outcome that a word and, of a process that failed, its exit status name.
    pub fn from_words(word: &str, exit: Option<i32>) -> Option<Self> {
        match Self::each().find(|outcome| outcome.word() == word)? {
            Self::Failed { .. } => exit.map(|exit| Self::Failed { exit }),
            other => Some(other),
        }
    }

    /// The exit status, where a process ended by itself.
    pub fn exit(self) -> Option<i32> {
        match self {
            Self::Completed => Some(0),
            Self::Failed { exit } => Some(exit),
            Self::Killed
            | Self::Checkpointed
            | Self::Terminated
            | Self::Exceeded { .. }
            | Self::Unstaged
            | Self::Lost => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_and_each_attempt_has_one_name() {
        let agreement = Uuid::from_u128(7);
        let run_at = |slot, attempt| Run {
            agreement,
            slot,
            attempt,
        };
        for (run, behind) in [
            (run_at(1, 0), ""),
            (run_at(3, 0), ".3"),
            (run_at(1, 2), ".1.2"),
            (run_at(3, 12), ".3.12"),
        ] {
            let text = format!("{agreement}{behind}");
            assert_eq!((run.to_string(), text.parse()), (text.clone(), Ok(run)));
        }
        for wrong in ["", ".2", "7"] {
            assert_eq!(wrong.parse::<Run>(), Err(NoRun), "{wrong}");
        }
        for behind in [".1", ".2.0", ".02", ".2.", ".2.1.1", ".+2", "."] {
            assert_eq!(
                format!("{agreement}{behind}").parse::<Run>(),
                Err(NoRun),
                "{behind}"
            );
        }
    }
}
