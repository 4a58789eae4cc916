//! `bespeak agreements`.

use clap::Args;
use serde_json::json;

use crate::cli::client::{Server, limit, print_json, read};
use crate::cli::{Failure, headings, print_rows, row};
use crate::negotiation::AgreementPage;

/// Options of `agreements`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// How many to list; 0 lists all.
    #[arg(long, default_value_t = 50, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let AgreementPage {
        mut agreements,
        mut next,
    } = read(options.server.get("/agreements").await?)?;
    while let Some(after) = next.filter(|_| agreements.len() < options.limit) {
        let path = format!("/agreements?after={after}");
        let page: AgreementPage = read(options.server.get(&path).await?)?;
        agreements.extend(page.agreements);
        next = page.next;
    }
    agreements.truncate(options.limit);
    if options.server.json {
        print_json(&json!(agreements));
        return Ok(());
    }
    let mut rows = vec![headings("ID, STATE, SERVICE, NODES, START, END, NAME")];
    rows.extend(agreements.iter().map(|of| {
        row([
            &of.id,
            &of.state,
            &of.service_state,
            &of.nodes,
            &of.planned_start.as_deref().unwrap_or_default(),
            &of.planned_end.as_deref().unwrap_or_default(),
            &of.name.as_deref().unwrap_or_default(),
        ])
    }));
    print_rows(rows, &[3]);
    Ok(())
}
