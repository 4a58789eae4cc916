//! `bespeak move ID`.

use clap::Args;
use serde_json::json;
use wsag::time::DateTime;

use crate::cli::Failure;
use crate::cli::client::{AgreementOptions, DryRun, Server, print_agreement};
use crate::cli::times::{FORMS, parse_time};

const EXAMPLES: &str = "\
Examples:
  bespeak move 01a1fc5d835f --to fast --dry-run                where it would go
  bespeak move 01a1fc5d835f --to fast --reason 'a quiet day for the old ones'
  bespeak move nightly --start 'tomorrow 4:00'                 on its own resource
  bespeak move nightly --to fast --start 2026-12-01T04:00:00Z

A waiting agreement goes there if its window, its sizes and what was asked of nodes allow it and the nodes are free; nothing else moves
for it, and its price stays. At a start that is named it moves no more. Its party is told.";

/// Options of `move`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{FORMS}"))]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    one: AgreementOptions,
    /// The resource that it goes to. [default: its own]
    #[arg(long, value_name = "RESOURCE", required_unless_present = "start")]
    to: Option<String>,
    /// When it is to start. [default: as early as possible]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<DateTime>,
    /// The reason, which its party is told.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    change: DryRun,
}

pub(in crate::cli) async fn move_agreement(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.one.id).await?;
    let path = format!("/agreements/{id}/move{}", options.change.query());
    let start = options.start.map(|start| start.to_string());
    let body = json!({ "resource": options.to, "start": start, "reason": options.reason });
    let answer = server.post_json(&path, &body).await?;
    server.print_answer(answer, print_agreement)
}
