//! `bespeak trail`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::Failure;
use crate::cli::client::{Server, parse_limit_option, print_json, read_answer};
use crate::service::TrailView;

/// How often the service is asked for new lines.
const INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  bespeak trail --after 1000 --limit 20
  bespeak trail --limit 0 > trail.txt
  bespeak trail --follow                       all lines, and each new one as it comes";

/// Options of `trail`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// Begin after the line with this number.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    after: i64,
    /// How many lines to print; 0 prints all.
    #[arg(long, default_value_t = 100, value_parser = parse_limit_option)]
    limit: usize,
    /// Print all lines, and go on with new ones until it is interrupted.
    #[arg(long, conflicts_with = "limit")]
    follow: bool,
}

pub(in crate::cli) async fn print_trail(options: Options, server: &Server) -> Result<(), Failure> {
    let Options {
        mut after,
        limit,
        follow,
    } = options;
    let mut left = if follow { usize::MAX } else { limit };
    loop {
        let path = format!("/events?after={after}&limit={}", left.min(1_000));
        let answer = server.get(&path).await?;
        if answer["lines"].is_null() && answer["events"].is_array() {
            let why = "the trail is shown to operators; the events of a party are shown by `bespeak call-backs events`";
            return Err(Failure::NotAllowed(why.to_owned()));
        }
        let page: TrailView = read_answer(answer)?;
        left = left.saturating_sub(page.lines.len());
        after = page.lines.last().map_or(after, |line| line.number);
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
            Some(_) if left > 0 => {}
            None if follow => tokio::time::sleep(INTERVAL).await,
            _ => return Ok(()),
        }
    }
}
