//! Reads the command line, nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    bespeak::cli::run()
}
