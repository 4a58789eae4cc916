//! `bespeak output ID`.

use clap::Args;

use super::files;
use crate::cli::Failure;
use crate::cli::client::{IdOrName, Server};

const EXAMPLES: &str = "\
Examples:
  bespeak output 01a1fc5d835f                  what the job wrote to standard output
  bespeak output nightly --file result.csv > result.csv
  bespeak output nightly --list";

/// Options of `output`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The agreement: its id, as many first digits as no other has, or its name.
    id: IdOrName,
    /// Standard error instead of standard output.
    #[arg(long)]
    stderr: bool,
    /// A file of its working folder instead.
    #[arg(long, value_name = "NAME", conflicts_with = "stderr")]
    file: Option<String>,
    /// List all output of the job instead.
    #[arg(long, conflicts_with_all = ["stderr", "file"])]
    list: bool,
    /// Remove all output of the job, once the agreement is over.
    #[arg(long, conflicts_with_all = ["stderr", "file", "list"])]
    remove: bool,
}

pub(in crate::cli) async fn print_job_output(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.id).await?;
    let all = format!("/agreements/{id}/files");
    if options.remove {
        return server.delete(&all).await;
    }
    if options.list {
        let answer = server.get(&all).await?;
        return server.print_answer(answer, files::print_files);
    }
    let name = match (&options.file, options.stderr) {
        (Some(name), _) => name,
        (None, true) => "stderr",
        (None, false) => "stdout",
    };
    server.print_bytes(&format!("{all}/{name}")).await
}
