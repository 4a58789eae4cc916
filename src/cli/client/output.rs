//! `bespeak output ID`.

use clap::Args;

use super::files;
use crate::cli::Failure;
use crate::cli::client::{IdStart, Server};

/// Options of `output`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The agreement: its id, or as many first digits as no other has.
    id: IdStart,
    /// Standard error instead of standard output.
    #[arg(long)]
    stderr: bool,
    /// A file of its working folder instead.
    #[arg(long, value_name = "NAME", conflicts_with = "stderr")]
    file: Option<String>,
    /// List all output of the job instead.
    #[arg(long, conflicts_with_all = ["stderr", "file"])]
    list: bool,
    /// Remove all output of the job, once the agreement is over.
    #[arg(long, conflicts_with_all = ["stderr", "file", "list"])]
    remove: bool,
    #[command(flatten)]
    server: Server,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let id = options.server.id_of(&options.id).await?;
    let all = format!("/agreements/{id}/files");
    if options.remove {
        return options.server.delete(&all).await;
    }
    if options.list {
        let answer = options.server.get(&all).await?;
        return options.server.show(answer, files::print);
    }
    let name = match (&options.file, options.stderr) {
        (Some(name), _) => name,
        (None, true) => "stderr",
        (None, false) => "stdout",
    };
    options.server.print_bytes(&format!("{all}/{name}")).await
}
