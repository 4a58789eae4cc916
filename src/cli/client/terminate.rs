//! `bespeak terminate ID`.

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{DryRun, One, Server, print_agreement};
use crate::negotiation::terminate_input;

const EXAMPLES: &str = "\
Examples:
  bespeak terminate 01a1fc5d835f --dry-run     how it would end
  bespeak terminate nightly";

/// Options of `terminate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(in crate::cli) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.one.id).await?;
    let path = format!("/agreements/{id}/terminate{}", options.dry_run.query());
    let answer = server.post(&path, terminate_input().into_bytes()).await?;
    server.print_answer(answer, print_agreement)
}
