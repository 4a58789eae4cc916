//! `bespeak templates`.

use clap::Args;

use crate::cli::client::{Server, print_json, read};
use crate::cli::{Failure, print_rows, row};
use crate::negotiation::TemplateView;

/// Options of `templates`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let answer = options.server.get("/templates").await?;
    if options.server.json {
        print_json(&answer);
        return Ok(());
    }
    let templates = read::<Vec<TemplateView>>(answer)?;
    let rows = templates
        .iter()
        .map(|template| row([&template.id, &template.name]));
    print_rows(rows.collect(), &[]);
    Ok(())
}
