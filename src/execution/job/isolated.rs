//! The record that the tool that isolates a job keeps in the job's folder: the namespace of its processes, and how its program ended. The job
//! cannot write it.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::execution::files::if_there;

/// What the tool has recorded of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Isolated {
    /// The process namespace of the job, once it has one.
    pub(crate) namespace: Option<u64>,
    /// The exit status of its program; 128 + signal where a signal ended it. None where the tool has not run it to its end: it could
    /// not isolate it, or was killed.
    pub(crate) exit: Option<i32>,
}

/// Reads the record of the tool; an empty one where there is none.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn read_isolated(status: &Path) -> io::Result<Isolated> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Line {
        pid_namespace: Option<u64>,
        exit_code: Option<i32>,
    }
    let text = if_there(fs::read_to_string(status))?.unwrap_or_default();
    // A line for the start of the program, and one for its end.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(lines.fold(Isolated::default(), |read, line| Isolated {
        namespace: read.namespace.or(line.pid_namespace),
        exit: read.exit.or(line.exit_code),
    }))
}
