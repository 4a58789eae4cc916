//! `bespeak terminate ID`.

use clap::Args;
use uuid::Uuid;

use crate::cli::Failure;
use crate::cli::client::{Server, print_agreement};

/// Options of `terminate`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The agreement.
    id: Uuid,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let path = format!("/agreements/{}/terminate", options.id);
    let answer = options
        .server
        .post(&path, crate::negotiation::terminate_input().into_bytes())
        .await?;
    options.server.show(answer, print_agreement)
}
