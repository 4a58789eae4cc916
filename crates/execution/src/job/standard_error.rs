//! The standard error output of the processes of a job.

use std::fmt::Display;
use std::io::{self, Write};

/// Says something on the standard error output. Unlike `eprintln!` it does not panic where that cannot be written: the
/// log may be on the disk that is full.
pub(crate) fn say_on_standard_error(what: &dyn Display) {
    let _ = writeln!(io::stderr(), "bespeak: {what}");
}
