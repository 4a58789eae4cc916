//! `bespeak templates`.

use clap::Args;

use super::Failure;
use super::client::{Server, print_json, read};
use crate::negotiation::TemplateView;

/// Options of `templates`.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    server: Server,
}

pub(super) async fn run(options: Options) -> Result<(), Failure> {
    let answer = options.server.get("/templates").await?;
    if options.server.json {
        print_json(&answer);
        return Ok(());
    }
    for template in read::<Vec<TemplateView>>(answer)? {
        say!("{:<24} {}", template.id, template.name);
    }
    Ok(())
}
