//! `bespeak offer FILE`.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{Server, list, print_agreement, text};

const EXAMPLES: &str = "\
Examples:
  bespeak offer examples/sleep.xml
  sed \"s/<jsdl:Exact>1</<jsdl:Exact>2</\" examples/sleep.xml | bespeak offer -";

/// Options of `offer`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The AgreementOffer document; `-` reads standard input.
    file: PathBuf,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let mut document = Vec::new();
    let reading = if options.file.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut document).map(drop)
    } else {
        std::fs::read(&options.file).map(|read| document = read)
    };
    reading.map_err(|why| Failure::Usage(format!("cannot read {}: {why}", options.file.display())))?;
    let answer = options.server.post("/agreements", document).await?;
    if !options.server.json {
        for other in list(&answer["moved"]) {
            let (id, start) = (text(&other["id"]), text(&other["plannedStart"]));
            say!("{:<10} {id} now starts {start}", "moved");
        }
    }
    options.server.show(answer, print_agreement)
}
