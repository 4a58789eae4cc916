//! How an application is told to save its work, and how it goes on later. With this its work can be done in pieces.

use scheduler::worded;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ARGUMENTS_MAX, TEXT_LENGTH_MAX};

/// The longest time to save work in: more would be a piece by itself.
const GRACE_SECONDS_MAX: u32 = 3_600;

/// How an application saves its work and goes on later. `[application.checkpoint]` of the configuration.
///
/// At the end of a piece its processes get the signal; the program saves its state into its working folder and exits with
/// status 0. For the next piece it is started again in the same folder, with `resume` after its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The signal that tells it to save its work.
    pub signal: CheckpointSignal,
    /// It gets the signal this many seconds before the end of a piece, and is then killed.
    #[serde(rename = "grace_seconds", deserialize_with = "deserialize_checkpoint_grace")]
    pub grace: u32,
    /// The arguments that follow its own when it is to go on.
    #[serde(default, deserialize_with = "deserialize_checkpoint_resume")]
    pub resume: Vec<String>,
}

worded! {
    /// A signal that a program can take as the word to save its work, with its name in the configuration and in shells.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum CheckpointSignal {
        /// SIGTERM.
        Term = "TERM",
        /// SIGINT.
        Int = "INT",
        /// SIGHUP.
        Hup = "HUP",
        /// SIGUSR1.
        Usr1 = "USR1",
        /// SIGUSR2.
        Usr2 = "USR2",
    }
}

fn deserialize_checkpoint_grace<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let grace = u32::deserialize(from)?;
    if (1..=GRACE_SECONDS_MAX).contains(&grace) {
        return Ok(grace);
    }
    let expected = format!("checkpoint.grace_seconds: expected 1 to {GRACE_SECONDS_MAX}");
    Err(D::Error::custom(expected))
}

fn deserialize_checkpoint_resume<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let resume = Vec::<String>::deserialize(from)?;
    let is_argument = |text: &String| text.len() <= TEXT_LENGTH_MAX && !text.contains('\0');
    if resume.len() <= ARGUMENTS_MAX && resume.iter().all(is_argument) {
        return Ok(resume);
    }
    let bounds = format!("at most {ARGUMENTS_MAX} arguments of at most {TEXT_LENGTH_MAX} bytes");
    Err(D::Error::custom(format!("checkpoint.resume: expected {bounds}")))
}
