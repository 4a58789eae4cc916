//! `bespeak templates`.

use clap::Args;

use crate::cli::client::Server;
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
    options.server.show(answer, |templates: &Vec<TemplateView>| {
        let rows = templates.iter().map(|of| row([&of.id, &of.name]));
        print_rows(rows.collect(), &[]);
    })
}
