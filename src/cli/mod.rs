//! The command line: one file a subcommand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Negotiated, guaranteed reservations of computing capacity in advance.
#[derive(Debug, Parser)]
#[command(name = "bespeak", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch over one job: started by the service, not by people.
    #[command(hide = true)]
    Supervise {
        /// The job's folder.
        job: PathBuf,
    },
    /// Become a job: started by its supervisor, not by people.
    #[command(hide = true)]
    Launch {
        /// The job's folder.
        job: PathBuf,
    },
}

/// Reads the command line and carries it out.
pub fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Supervise { job } => crate::execution::supervisor::run(&job),
        Command::Launch { job } => crate::execution::launch::run(&job),
    }
}
