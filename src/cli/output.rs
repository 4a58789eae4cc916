//! `bespeak output ID`.

use std::io::Write;

use clap::Args;
use uuid::Uuid;

use super::Failure;
use super::client::Server;

/// Options of `output`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The agreement.
    id: Uuid,
    /// Standard error instead of standard output.
    #[arg(long)]
    stderr: bool,
    #[command(flatten)]
    server: Server,
}

pub(super) async fn run(options: Options) -> Result<(), Failure> {
    let name = if options.stderr { "stderr" } else { "stdout" };
    let bytes = options
        .server
        .get_bytes(&format!("/agreements/{}/files/{name}", options.id))
        .await?;
    std::io::stdout()
        .write_all(&bytes)
        .map_err(|why| Failure::Usage(why.to_string()))
}
