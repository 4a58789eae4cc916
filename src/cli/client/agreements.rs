//! `bespeak agreements`.

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use crate::cli::client::{Server, limit, print_json, read};
use crate::cli::{Failure, headings, print_rows, row};
use crate::negotiation::AgreementPage;

/// Options of `agreements`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// How many to list; 0 lists all.
    #[arg(long, default_value_t = 50, value_parser = limit)]
    limit: usize,
    /// Only those with this AgreementId: the one that their offers had, or the service's own.
    #[arg(long, value_name = "ID")]
    agreement_id: Option<String>,
    #[command(flatten)]
    server: Server,
}

/// The path of a page.
fn path(after: Option<Uuid>, options: &Options) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(id) = &options.agreement_id {
        query.append_pair("agreementId", id);
    }
    if let Some(after) = after {
        query.append_pair("after", &after.to_string());
    }
    format!("/agreements?{}", query.finish())
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let AgreementPage {
        mut agreements,
        mut next,
    } = read(options.server.get(&path(None, &options)).await?)?;
    while let Some(after) = next.filter(|_| agreements.len() < options.limit) {
        let page: AgreementPage = read(options.server.get(&path(Some(after), &options)).await?)?;
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
