//! `bespeak-lab`: reads the command line, nothing else.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run_lab()
}
