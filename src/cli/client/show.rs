//! `bespeak show ID`.

use serde_json::json;

use crate::cli::client::{AgreementOptions, Server, print_agreement, print_json, read_answer};
use crate::cli::{Failure, print_rows, row};
use crate::service::TimelineView;

pub(in crate::cli) async fn run(
    AgreementOptions { id }: AgreementOptions,
    server: &Server,
) -> Result<(), Failure> {
    let id = server.id_of(&id).await?;
    let (agreement, timeline) = (server.agreement(id).await?, server.timeline(id).await?);
    if server.json {
        print_json(&json!({ "agreement": agreement, "timeline": timeline }));
        return Ok(());
    }
    print_agreement(&read_answer(agreement)?);
    say!("");
    let timeline: TimelineView = read_answer(timeline)?;
    let events = timeline.events.iter();
    let rows = events.map(|event| row([&event.at, &event.kind, &event.detail]));
    print_rows(rows.collect(), &[]);
    Ok(())
}
