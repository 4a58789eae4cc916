//! `bespeak trail`, and the lines of the audit trail that are known outside the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use store::known_trail::read_known_trail_end;
use store::signed_heads::{SignedLines, parse_public_key, public_key_beside_head_key, read_signed_heads};

use crate::cli::Failure;
use crate::cli::client::{Server, parse_limit_option, print_json, read_answer};
use crate::cli::config::trail::Trail;
use service::TrailView;

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
        let path = format!("/events?after={after}&limit={}", left.min(200));
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

/// The lines of the audit trail that are known to have been stored, and what is wrong with the file of those that were signed: the signed
/// lines, where there is such a file, and the last one that the service of the data folder was told of.
pub(super) fn signed_lines_of_trail(
    data_dir: &Path,
    config: &Trail,
    named: Option<PathBuf>,
    trail_key: Option<&str>,
) -> Result<(SignedLines, Vec<String>), Failure> {
    let is_named = named.is_some();
    let file = named.unwrap_or_else(|| config.heads_file(data_dir));
    let (mut lines, wrong) = if is_named || file.exists() {
        let key_file = config.key_file(data_dir);
        let key = match trail_key {
            Some(text) => parse_public_key(text)
                .ok_or_else(|| Failure::Usage("--trail-key: expected 64 hexadecimal digits".to_owned()))?,
            None => public_key_beside_head_key(&key_file).map_err(|why| {
                let why = format!(
                    "the public key of the trail, beside {}: {why}; give it by --trail-key",
                    key_file.display()
                );
                Failure::Unavailable(why)
            })?,
        };
        let read = read_signed_heads(&file, &key);
        read.map_err(|why| Failure::Unavailable(format!("{}: {why}", file.display())))?
    } else {
        Default::default()
    };
    let end = Trail::end_file(data_dir);
    let last = read_known_trail_end(&end)
        .map_err(|why| Failure::Unavailable(format!("{}: {why}", end.display())))?;
    if let Some(last) = last {
        lines.add_known(last);
    }
    Ok((lines, wrong))
}
