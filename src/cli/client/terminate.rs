//! `bespeak terminate ID`.

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{DryRun, One, Server, print_agreement, read_answer};
use crate::negotiation::{EndingView, terminate_input};

const EXAMPLES: &str = "\
Examples:
  bespeak terminate 01a1fc5d835f --dry-run     how it would end, and what that would cost now
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
    let is_dry = !options.dry_run.query().is_empty();
    server.print_answer(answer, print_agreement)?;
    if is_dry && !server.prints_json() {
        let ending = server.get(&format!("/agreements/{id}/ending")).await?;
        print_ending(&read_answer(ending)?);
    }
    Ok(())
}

fn print_ending(ending: &EndingView) {
    for payment in &ending.charges {
        say!("{:<10} {} ({})", "costs", payment.amount, payment.kind);
    }
    for payment in &ending.credits {
        say!("{:<10} {} ({})", "pays back", payment.amount, payment.kind);
    }
    if ending.charges.is_empty() && ending.credits.is_empty() {
        say!("{:<10} nothing", "costs");
    }
    if let Some(at_peer) = &ending.at_peer {
        let charge = at_peer.charge.as_ref();
        let charge = charge.map_or("it does not say what".to_owned(), ToString::to_string);
        say!("{:<10} {charge}, charged by {}", "of that", at_peer.peer);
    }
}
