//! `bespeak show ID`.

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use crate::cli::client::{Server, print_agreement, print_json, read};
use crate::cli::{Failure, print_rows, row};
use crate::negotiation::TimelineView;

/// Options of `show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The agreement.
    id: Uuid,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let agreement = options.server.get(&format!("/agreements/{}", options.id)).await?;
    let timeline = options
        .server
        .get(&format!("/agreements/{}/events", options.id))
        .await?;
    if options.server.json {
        print_json(&json!({ "agreement": agreement, "timeline": timeline }));
        return Ok(());
    }
    print_agreement(&read(agreement)?);
    say!("");
    let events = read::<TimelineView>(timeline)?.events;
    let rows = events
        .iter()
        .map(|event| row([&event.at, &event.kind, &event.detail]));
    print_rows(rows.collect(), &[]);
    Ok(())
}
