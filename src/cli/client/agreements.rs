//! `bespeak agreements`.

use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::client::{Server, print_json, read};
use crate::cli::{Failure, print_rows, row};
use crate::negotiation::AgreementPage;

/// Options of `agreements`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// How many to list; 0 lists all.
    #[arg(long, default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let limit = if options.limit == 0 {
        usize::MAX
    } else {
        options.limit
    };
    let mut agreements = Vec::new();
    let mut after: Option<Uuid> = None;
    loop {
        let path = after.map_or_else(
            || "/agreements".to_owned(),
            |after| format!("/agreements?after={after}"),
        );
        let page: AgreementPage = read(options.server.get(&path).await?)?;
        agreements.extend(page.agreements);
        after = page.next;
        if after.is_none() || agreements.len() >= limit {
            break;
        }
    }
    agreements.truncate(limit);
    if options.server.json {
        let all: Value = json!(agreements);
        print_json(&all);
        return Ok(());
    }
    let mut rows = vec![row([
        &"ID", &"STATE", &"SERVICE", &"NODES", &"START", &"END", &"NAME",
    ])];
    rows.extend(agreements.iter().map(|of| {
        row([
            &of.id,
            &of.state,
            &of.service_state,
            &of.nodes,
            &of.planned_start,
            &of.planned_end,
            &of.name.as_deref().unwrap_or_default(),
        ])
    }));
    print_rows(rows, &[3]);
    Ok(())
}
