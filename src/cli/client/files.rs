//! `bespeak files`: the party's own files, which its jobs may read.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use scheduler::counted;

use crate::cli::Failure;
use crate::cli::client::{Server, escape_path_part};
use crate::cli::table::{print_rows, row};
use service::FilesView;

const EXAMPLES: &str = "\
Examples:
  bespeak files put results.csv                upload it under its own name
  bespeak files put /data/run7.csv --as input.csv
  bespeak files list
  bespeak files get input.csv > copy.csv
  bespeak files remove input.csv

An offer names a file if its application takes one, such as `sha256sum input.csv`. A party's own file comes before
a provider's file of the same name. A job keeps the file that it was started with.";

/// Options of `files`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the files.
    List,
    /// Upload a file; it replaces a file of the same name.
    Put {
        /// The file.
        file: PathBuf,
        /// Its name there. [default: its own]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
    /// Print a file.
    Get {
        /// Its name.
        name: String,
    },
    /// Remove a file.
    Remove {
        /// Its name.
        name: String,
    },
}

pub(in crate::cli) async fn manage_files(options: Options, server: &Server) -> Result<(), Failure> {
    match options.action {
        Action::List => list_files(server).await,
        Action::Put { file, name } => {
            let own = file.file_name().and_then(|name| name.to_str());
            let name = name.as_deref().or(own).unwrap_or_default();
            let unreadable = |why: std::io::Error| Failure::Usage(format!("{}: {why}", file.display()));
            let bytes = std::fs::read(&file).map_err(unreadable)?;
            server.put(&file_path(name), bytes).await
        }
        Action::Get { name } => server.print_bytes(&file_path(&name)).await,
        Action::Remove { name } => server.delete(&file_path(&name)).await,
    }
}

async fn list_files(server: &Server) -> Result<(), Failure> {
    server.print_answer(server.get("/files").await?, |view: &FilesView| {
        print_files(view);
        let used: u64 = view.files.iter().map(|file| file.bytes).sum();
        if let Some(quota) = view.quota_bytes {
            say!("{used} of {}", counted(quota, "byte"));
        }
    })
}

/// A line a file.
pub(in crate::cli) fn print_files(view: &FilesView) {
    let files = view.files.iter();
    let rows = files.map(|file| row([&file.bytes, &file.modified, &file.name]));
    print_rows(rows.collect(), &[0]);
}

/// The address of a file. Characters that a name may not have are escaped, so that the service can report them.
fn file_path(name: &str) -> String {
    format!("/files/{}", escape_path_part(name))
}
