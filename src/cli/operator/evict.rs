//! `bespeak evict ID`.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Failure;
use crate::cli::client::{AgreementOptions, DryRun, Server, print_agreement};
use crate::cli::money::{parse_money_as_json, sums_of_money_in_words};
use service::EvictedView;

const EXAMPLES: &str = "\
Examples:
  bespeak evict 01a1fc5d835f --reason 'the room is too hot' --dry-run     what it would cost
  bespeak evict 01a1fc5d835f --reason 'the room is too hot'
  bespeak evict nightly --reason 'an emergency' --compensation '20 EUR'

The agreement ends at once, and its job is stopped. Its party is told the reason, and gets the penalties of its guarantees as for work
that was lost, and the compensation. It pays no price, but for the part of its work that it has saved. No other place is held for
it.";

/// Options of `evict`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    one: AgreementOptions,
    /// The reason, which its party is told.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// What its party gets beside the penalties of its guarantees.
    #[arg(long, value_name = "AMOUNT CURRENCY", value_parser = parse_money_as_json)]
    compensation: Option<Value>,
    #[command(flatten)]
    change: DryRun,
}

pub(in crate::cli) async fn evict_agreement(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.one.id).await?;
    let path = format!("/agreements/{id}/evict{}", options.change.query());
    let body = json!({ "reason": options.reason, "compensation": options.compensation });
    let answer = server.post_json(&path, &body).await?;
    server.print_answer(answer, |told: &EvictedView| {
        print_agreement(&told.agreement);
        let would = if options.change.query().is_empty() {
            ""
        } else {
            "would be "
        };
        if !told.penalties.is_empty() {
            say!(
                "{} {would}paid as penalties",
                sums_of_money_in_words(&told.penalties)
            );
        }
        if let Some(paid) = &told.compensation {
            say!("{paid} {would}paid as compensation");
        }
    })
}
