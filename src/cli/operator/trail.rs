//! `bespeak trail`.

use clap::Args;
use serde_json::json;

use crate::cli::Failure;
use crate::cli::client::{Server, limit, print_json, read};
use crate::negotiation::TrailView;

/// Options of `trail`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// Begin after the line with this number.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    after: i64,
    /// How many lines to print; 0 prints all.
    #[arg(long, default_value_t = 100, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let Options {
        mut after,
        limit: mut left,
        server,
    } = options;
    loop {
        let path = format!("/events?after={after}&limit={}", left.min(1_000));
        let page: TrailView = read(server.get(&path).await?)?;
        left = left.saturating_sub(page.lines.len());
        for line in page.lines {
            if server.json {
                print_json(&json!(line));
            } else {
                say!(
                    "{:>8}  {:<26} {:<12} {} {} {}",
                    line.number,
                    line.at,
                    line.kind,
                    line.subject,
                    line.party.unwrap_or_default(),
                    line.detail
                );
            }
        }
        match page.next {
            Some(next) if left > 0 => after = next,
            _ => return Ok(()),
        }
    }
}
