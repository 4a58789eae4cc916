//! `bespeak backup`: a copy of everything that the service keeps, taken while it serves.

mod archive;
mod manifest;
mod part;
mod progress;
pub(in crate::cli) mod restore;

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use domain::clock::Clock;
use scheduler::counted;
use store::Engine;
use store::backup::{self, CopyError, schema_sum};

use self::manifest::{CONFIGURATION, DATABASE, FILES, Manifest, SERVICE};
use self::part::begin_part;
use self::progress::BackupProgress;
use super::trail::signed_lines_of_trail;
use super::verify::tell_verify_findings;
use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions, instant_in_utc};

const EXAMPLES: &str = "\
Examples:
  bespeak backup /mnt/backups/$(date +%F)
  bespeak backup /mnt/backups/$(date +%F) --files --config bespeak.toml
  bespeak backup /mnt/backups/$(date +%F) --database-url postgres://bespeak@localhost/bespeak

The service may run meanwhile, and goes on. All that it has acknowledged before the beginning is in the backup: the whole
database, of one state, checked as `bespeak verify` does; the small files of the data folder, with the operator's key, the
trail's key and signed heads, and the secret of a federation; the configuration file where one is named. With --files, also the
provider's files, the uploads of parties, and the folders of jobs with their output, each as it is when its turn comes.

The folder must be empty or new, and not be in the data folder. It holds secrets: it is readable for its owner only; keep it so
where you carry it. `bespeak restore DIR --rehearse` shows that it can be restored.";

/// The folders of a data folder that are large.
const LARGE: [&str; 3] = ["files", "party-files", "jobs"];

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The folder of the backup: empty, or made by this.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Take along the provider's files, the uploads of parties, and the folders of jobs with their output.
    #[arg(long)]
    files: bool,
    #[command(flatten)]
    store: StoreOptions,
}

pub(in crate::cli) async fn make_backup(options: Options, as_json: bool) -> Result<(), Failure> {
    let Options {
        folder,
        files,
        store: at,
    } = &options;
    let config = Config::load(at.config.as_deref())?;
    let store = backup::open_to_save(&at.database_url()).await?;
    make_backup_folder(folder, &at.data_dir)?;
    let failed = |why: std::io::Error| Failure::Unavailable(format!("{}: {why}", folder.display()));
    let engine = match store.kind() {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
    };
    // The heads that are signed by now are of lines that the database has by now.
    let (lines, wrong) = signed_lines_of_trail(&at.data_dir, &config.trail, None, None)?;
    if let Some(wrong) = wrong.into_iter().next() {
        return Err(Failure::Refused(format!("{wrong}; nothing was backed up")));
    }
    refuse_backup_of_nested_database(&at.database_url(), &at.data_dir)?;
    let database = database_file_for_backup(&at.database_url());
    let is_small = |name: &str| !LARGE.contains(&name) && !is_left_out_of_backup(name, &database);
    let mut manifest = Manifest::new(engine);
    manifest
        .add_archive(folder, SERVICE, &at.data_dir, is_small)
        .map_err(failed)?;
    if manifest.left_out > 0 {
        return Err(Failure::Refused(format!(
            "{} of {} cannot be read whole, and a service needs its keys; nothing was backed up",
            counted(manifest.left_out, "small file"),
            at.data_dir.display()
        )));
    }

    // Whatever the service acknowledges until here is in the state that is copied.
    manifest.taken = instant_in_utc(Clock::system().now());
    let mut rows = begin_part(folder, DATABASE).map_err(failed)?;
    let mut told = BackupProgress::new("rows copied");
    let saved = backup::save_database(&store, lines, &mut rows, &mut |count| told.tell(count)).await;
    let saved = saved.map_err(|why| match why {
        CopyError::Inconsistent(findings) => tell_verify_findings(&findings, as_json),
        other => other.into(),
    })?;
    manifest.parts.push(rows.finish(DATABASE).map_err(failed)?);
    store.close().await;
    (manifest.rows, manifest.running, manifest.trail) = (saved.rows, saved.running, saved.trail);
    (manifest.schema, manifest.schema_sum) = (saved.schema, schema_sum(saved.schema).unwrap_or_default());

    // After the database: a folder that knows more of its job than the database is as after a crash, one that knows less would have
    // the job run again.
    if *files {
        manifest
            .add_archive(folder, FILES, &at.data_dir, |name| LARGE.contains(&name))
            .map_err(failed)?;
    }
    if let Some(config) = &at.config {
        let mut copy = begin_part(folder, CONFIGURATION).map_err(failed)?;
        let text =
            std::fs::read(config).map_err(|why| Failure::Usage(format!("{}: {why}", config.display())))?;
        copy.write_all(&text).map_err(failed)?;
        manifest.parts.push(copy.finish(CONFIGURATION).map_err(failed)?);
    }
    manifest.check_parts(folder)?;
    manifest.write(folder).map_err(failed)?;
    print_backup(folder, &manifest, as_json);
    Ok(())
}

/// Makes the folder where it is missing, and refuses one that has content or lies in the data folder.
fn make_backup_folder(folder: &Path, data_dir: &Path) -> Result<(), Failure> {
    let failed = |why: std::io::Error| Failure::Usage(format!("{}: {why}", folder.display()));
    let absolute = std::path::absolute(folder).map_err(failed)?;
    let there = absolute.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or(&absolute).canonicalize().map_err(failed)?;
    if data_dir.canonicalize().is_ok_and(|data| there.starts_with(data)) {
        return Err(Failure::Refused(format!(
            "{} is in the data folder: a backup belongs elsewhere, best on another machine's disk",
            folder.display()
        )));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Failure::Refused(format!(
            "{} is not empty: a backup has a folder of its own",
            folder.display()
        )));
    }
    Ok(())
}

/// Refuses a SQLite database in a folder below the data folder: that folder would be copied with it.
fn refuse_backup_of_nested_database(url: &str, data_dir: &Path) -> Result<(), Failure> {
    let path = url.strip_prefix("sqlite:");
    let path = path.map(|path| Path::new(path.strip_prefix("//").unwrap_or(path)));
    let real = path.and_then(|path| Some((path.canonicalize().ok()?, data_dir.canonicalize().ok()?)));
    match real {
        Some((path, data_dir)) if path.starts_with(&data_dir) && path.parent() != Some(&data_dir) => {
            Err(Failure::Refused(format!(
                "{} lies in a folder below {}: put it there itself, or outside",
                path.display(),
                data_dir.display()
            )))
        }
        _ => Ok(()),
    }
}

/// The name of a SQLite database's file.
fn database_file_for_backup(url: &str) -> String {
    let name = url
        .strip_prefix("sqlite:")
        .and_then(|path| Path::new(path).file_name());
    let name = name.and_then(|name| name.to_str());
    name.unwrap_or("bespeak.db").to_owned()
}

/// Whether a name is that of a SQLite database's file, of one that SQLite has beside it, or of a copy that was rescued: those change while
/// they are read, and are copied otherwise.
fn is_left_out_of_backup(name: &str, database: &str) -> bool {
    name.strip_prefix(database).is_some_and(|end| {
        ["", "-wal", "-shm", "-journal", ".lock"].contains(&end) || end.starts_with(".rescu")
    })
}

fn print_backup(folder: &Path, manifest: &Manifest, as_json: bool) {
    if as_json {
        let value = serde_json::to_value(manifest);
        // A struct of strings and numbers is JSON.
        return print_json(&value.unwrap_or_default());
    }
    say!(
        "backed up the state of {} to {}: {}, {} bytes; verify finds nothing",
        manifest.taken,
        folder.display(),
        counted(manifest.rows, "row"),
        manifest.bytes()
    );
    if manifest.left_out > 0 {
        say!(
            "{} could not be read, or not whole",
            counted(manifest.left_out, "file")
        );
    }
}
