//! Lines for the reader of a command's output.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _, stdout};
use std::process::exit;

/// Writes a line to standard output. A reader that has seen enough, as in `bespeak agreements | head -1`, is no failure: the command
/// ends. Where the line cannot be written for another reason, the command `program` ends with `exit_status`.
pub fn say_output_line(program: &str, exit_status: i32, words: Arguments<'_>) {
    let Err(why) = writeln!(stdout(), "{words}") else {
        return;
    };
    if why.kind() == ErrorKind::BrokenPipe {
        exit(0);
    }
    eprintln!("{program}: cannot write to standard output: {why}");
    exit(exit_status);
}
