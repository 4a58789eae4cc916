//! `bespeak offer FILE`.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{DryRun, Server, escape_path_part, list_or_empty, print_agreement, text_or_empty};

const EXAMPLES: &str = "\
Examples:
  bespeak offer examples/sleep.xml
  bespeak offer examples/sleep.xml --dry-run   what the answer would be
  bespeak offer examples/sleep.xml --for-party physics   an operator books for a party
  sed \"s/<jsdl:Exact>1</<jsdl:Exact>2</\" examples/sleep.xml | bespeak offer -";

/// Options of `offer`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The AgreementOffer document; `-` reads standard input.
    file: PathBuf,
    /// The party whose agreement it is to be: an operator books for it.
    #[arg(long, value_name = "PARTY")]
    for_party: Option<String>,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(in crate::cli) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
    let mut document = Vec::new();
    let reading = if options.file.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut document).map(drop)
    } else {
        std::fs::read(&options.file).map(|read| document = read)
    };
    reading.map_err(|why| Failure::Usage(format!("cannot read {}: {why}", options.file.display())))?;
    let mut path = format!("/agreements{}", options.dry_run.query());
    if let Some(party) = options.for_party {
        path += if path.contains('?') { "&" } else { "?" };
        path += &format!("party={}", escape_path_part(&party));
    }
    let answer = server.post(&path, document).await?;
    if !server.json {
        for other in list_or_empty(&answer["moved"]) {
            let (id, start) = (text_or_empty(&other["id"]), text_or_empty(&other["plannedStart"]));
            say!("{:<10} {id} now starts {start}", "moved");
        }
    }
    server.print_answer(answer, print_agreement)
}
