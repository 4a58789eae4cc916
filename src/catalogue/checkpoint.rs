//! How an application is told to save its work, and how it goes on later. With this its work can be done in pieces.

use serde::{Deserialize, Serialize};

use super::{ARGUMENTS_MAX, CatalogueError, TEXT_LENGTH_MAX};

/// The longest time to save work in: more would be a piece by itself.
const GRACE_SECONDS_MAX: u32 = 3_600;

/// How an application saves its work and goes on later. `[application.checkpoint]` of the configuration.
///
/// At the end of a piece its processes get the signal; the program saves its state into its working folder and exits with
/// status 0. For the next piece it is started again in the same folder, with `resume` after its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CheckpointKeys")]
pub struct Checkpoint {
    /// The signal that tells it to save its work.
    pub signal: CheckpointSignal,
    /// It gets the signal this many seconds before the end of a piece, and is then killed.
    pub grace: u32,
    /// The arguments that follow its own when it is to go on.
    pub resume: Vec<String>,
}

/// A signal that a program can take as the word to save its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckpointSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGHUP.
    Hup,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

impl CheckpointSignal {
    /// Its name, as the configuration and shells have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
        }
    }
}

/// `[application.checkpoint]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointKeys {
    signal: CheckpointSignal,
    grace_seconds: u32,
    #[serde(default)]
    resume: Vec<String>,
}

impl TryFrom<CheckpointKeys> for Checkpoint {
    type Error = CatalogueError;

    fn try_from(keys: CheckpointKeys) -> Result<Self, CatalogueError> {
        let CheckpointKeys {
            signal,
            grace_seconds: grace,
            resume,
        } = keys;
        let wrong = |key: &str, expected: String| {
            Err(CatalogueError(format!("checkpoint.{key}: expected {expected}")))
        };
        if !(1..=GRACE_SECONDS_MAX).contains(&grace) {
            return wrong("grace_seconds", format!("1 to {GRACE_SECONDS_MAX}"));
        }
        let is_argument = |text: &String| text.len() <= TEXT_LENGTH_MAX && !text.contains('\0');
        if resume.len() > ARGUMENTS_MAX || !resume.iter().all(is_argument) {
            return wrong(
                "resume",
                format!("at most {ARGUMENTS_MAX} arguments of at most {TEXT_LENGTH_MAX} bytes"),
            );
        }
        Ok(Self {
            signal,
            grace,
            resume,
        })
    }
}
