//! The marks of the reservations that this service has made: a file for each, by its run. Others in the same cluster may use the
//! same names.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use domain::agreement::Run;

use crate::ExecutionError;
use crate::files::if_file_is_there;

/// Where the mark of a reservation is.
pub(crate) fn mark_path(marks: &Path, id: Run) -> PathBuf {
    marks.join(id.to_string())
}

/// Makes the mark of a reservation, unless it is there.
pub(crate) fn make_mark(marks: &Path, id: Run) -> Result<(), ExecutionError> {
    let mark = mark_path(marks, id);
    if mark.exists() {
        return Ok(());
    }
    fs::write(&mark, "").map_err(ExecutionError::system("write", mark))
}

/// Removes the mark of a reservation, where it is there.
pub(crate) fn remove_mark(marks: &Path, id: Run) -> Result<(), ExecutionError> {
    let mark = mark_path(marks, id);
    let removed = if_file_is_there(fs::remove_file(&mark)).map(drop);
    removed.map_err(ExecutionError::system("remove", mark))
}

/// The slots that this service has made reservations for.
pub(crate) fn marked_runs(marks: &Path) -> Result<HashSet<Run>, ExecutionError> {
    let failed = |error| ExecutionError::system("list", marks)(error);
    let mut marked = HashSet::new();
    for entry in fs::read_dir(marks).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        marked.extend(name.to_str().and_then(|name| name.parse::<Run>().ok()));
    }
    Ok(marked)
}
