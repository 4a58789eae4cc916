//! `bespeak restore`: a service's data from a backup, to where nothing is.

use std::fs::{DirBuilder, File};
use std::io::{self, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use domain::clock::Clock;
use scheduler::counted;
use store::backup::{CopyError, Progress, check_empty_before_load, load_database};
use store::signed_heads::{HeadKey, SignedRestore};
use store::trail_lines;

use super::archive::unpack_backup_archive;
use super::manifest::{CONFIGURATION, DATABASE, FILES, Manifest, SERVICE};
use super::part::{open_part, sync_folder};
use super::progress::BackupProgress;
use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::config::trail::Trail;
use crate::cli::operator::trail::signed_lines_of_trail;
use crate::cli::operator::verify::tell_verify_findings;
use crate::cli::{Failure, RESTORING, StoreOptions};

const EXAMPLES: &str = "\
Examples:
  bespeak restore /mnt/backups/2026-11-21 --data-dir /var/lib/bespeak
  bespeak restore /mnt/backups/2026-11-21 --database-url postgres://bespeak@localhost/bespeak
  bespeak restore /mnt/backups/2026-11-21 --rehearse          shows that it can be restored, and leaves nothing behind
  bespeak restore --recovered                                 the database was restored by other means

The data folder and the database must be empty. A backup of either engine is restored to either engine, and a backup of an
earlier version is brought up to date. Everything is checked first against the sums in the backup, and then as `bespeak verify`
does; where something is wrong the database stays empty, and the service does not start on the data folder.

The audit trail says with its next line that it was restored, signed with the key of the trail: --config names the configuration
where \"[trail]\" keeps that key elsewhere. Without this line no service starts on a database that has gone back. --recovered
writes it where the database was restored by other means: by PostgreSQL to an instant, or from a snapshot of a disk.

Run it as the user of the service. What the service has acknowledged after the backup is not there: keys that were revoked since
are valid again, and jobs that ran or started since may run again. docs/reference/operating.md says what to do about that.";

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The folder of the backup.
    #[arg(value_name = "DIR", required_unless_present = "recovered")]
    folder: Option<PathBuf>,
    /// Restore to a temporary folder (in TMPDIR), check it, and remove it: a rehearsal that needs no database and changes nothing.
    #[arg(long)]
    rehearse: bool,
    /// The database was restored by other means, and no service runs: restore nothing, and write into the audit trail that it was.
    #[arg(long, conflicts_with_all = ["folder", "rehearse"])]
    recovered: bool,
    #[command(flatten)]
    store: StoreOptions,
}

pub(in crate::cli) async fn restore_backup(options: Options, as_json: bool) -> Result<(), Failure> {
    let Some(backup) = options.folder.as_ref().filter(|_| !options.recovered) else {
        return note_restore_by_other_means(&options.store, as_json).await;
    };
    let manifest = Manifest::read(backup)?;
    manifest.check_parts(backup)?;
    let rehearsal = options.rehearse.then(RestoreRehearsal::new).transpose()?;
    let (data_dir, url) = match &rehearsal {
        Some(RestoreRehearsal(folder)) => (folder, format!("sqlite:{}", folder.join("bespeak.db").display())),
        None => (&options.store.data_dir, options.store.database_url()),
    };
    let config = Config::load(options.store.config.as_deref())?;
    let restored = RestoreTask {
        backup,
        manifest: &manifest,
        data_dir,
        url: &url,
        config: &config.trail,
        as_json,
    };
    let (rows, files) = restored.restore(rehearsal.is_none()).await?;
    if as_json {
        print_json(&serde_json::json!({
            "rehearsal": options.rehearse, "taken": manifest.taken, "rows": rows, "files": files,
            "running": manifest.running,
        }));
        return Ok(());
    }
    let what = if options.rehearse {
        "can restore"
    } else {
        "restored"
    };
    say!(
        "{what} the state of {}: {}, {}; verify finds nothing",
        manifest.taken,
        counted(rows, "row"),
        counted(files, "file")
    );
    if manifest.running > 0 {
        say!(
            "{} ran then (docs/reference/operating.md)",
            counted(manifest.running.unsigned_abs(), "job")
        );
    }
    if manifest.has(CONFIGURATION) && !options.rehearse {
        let configuration = backup.join(CONFIGURATION);
        say!(
            "the configuration is still in the backup: {}",
            configuration.display()
        );
    }
    Ok(())
}

/// Writes into the audit trail of a database that it was restored by other means.
async fn note_restore_by_other_means(at: &StoreOptions, as_json: bool) -> Result<(), Failure> {
    let config = Config::load(at.config.as_deref())?;
    let key = open_key_for_restore(&config.trail, &at.data_dir)?;
    let store = at.open().await?;
    // No service may decide meanwhile, or go on with what it knows.
    let lease = store.acquire_lease().await?;
    let restore = SignedRestore {
        at: Clock::system().micros(),
        words: "by other means, as an operator says".to_owned(),
        key: key.as_ref(),
    };
    trail_lines::append_trail_line_of_restore(&store, &restore).await?;
    lease.release().await;
    store.make_whole().await?;
    if as_json {
        print_json(&serde_json::json!({ "signed": key.is_some() }));
    } else {
        say!(
            "the audit trail says that the database was restored; `bespeak verify`, and then start the service"
        );
    }
    Ok(())
}

/// The key of the audit trail; none, with a word about it, where there is none.
fn open_key_for_restore(config: &Trail, data_dir: &Path) -> Result<Option<HeadKey>, Failure> {
    let path = config.key_file(data_dir);
    let key = HeadKey::open(&path)
        .map_err(|why| Failure::Unavailable(format!("the key of the trail, {}: {why}", path.display())))?;
    if key.is_none() {
        eprintln!(
            "bespeak: there is no key of the trail, {}: the restore is not signed, and signed heads of later lines count as gone",
            path.display()
        );
    }
    Ok(key)
}

/// A backup on its way to where nothing is.
struct RestoreTask<'a> {
    backup: &'a Path,
    manifest: &'a Manifest,
    data_dir: &'a Path,
    url: &'a str,
    /// Where the key of the audit trail is.
    config: &'a Trail,
    as_json: bool,
}

impl RestoreTask<'_> {
    /// Restores everything; of the large files only the archive is read unless they are wanted. Returns the numbers of rows and files.
    async fn restore(&self, with_files: bool) -> Result<(u64, u64), Failure> {
        let data_dir = self.data_dir;
        let failed = |why: io::Error| Failure::Unavailable(format!("{}: {why}", data_dir.display()));
        make_folder_for_restore(data_dir)?;
        check_empty_before_load(self.url).await?;
        // Until this is removed, no service starts here.
        let mark = data_dir.join(RESTORING);
        File::create_new(&mark)
            .and_then(|file| file.sync_all())
            .map_err(failed)?;
        sync_folder(data_dir).map_err(failed)?;
        let restored = self.fill(with_files).await;
        let counts = restored.inspect_err(|_| {
            if with_files {
                let folder = data_dir.display();
                eprintln!("bespeak: {folder} is incomplete, and no service starts on it: empty it before another try");
            }
        })?;
        // The database has seen to its own part.
        let folder = File::open(data_dir).map_err(failed)?;
        rustix::fs::syncfs(&folder).map_err(|why| failed(why.into()))?;
        std::fs::remove_file(&mark).map_err(failed)?;
        sync_folder(data_dir).map_err(failed)?;
        Ok(counts)
    }

    async fn fill(&self, with_files: bool) -> Result<(u64, u64), Failure> {
        let data_dir = self.data_dir;
        let mut files = self.unpack(SERVICE, true)?;
        if self.manifest.has(FILES) {
            files += self.unpack(FILES, with_files)?;
        }
        // The heads that came along; others may be of lines that were written since.
        let (lines, wrong) = signed_lines_of_trail(data_dir, &Trail::default(), None, None)?;
        if let Some(wrong) = wrong.into_iter().next() {
            return Err(Failure::Refused(wrong));
        }
        let mut told = BackupProgress::new("rows restored");
        let mut rows = BufReader::new(self.open(DATABASE)?);
        let progress: Progress<'_> = &mut |count| told.tell(count);
        let key = open_key_for_restore(self.config, data_dir)?;
        let restore = SignedRestore {
            at: Clock::system().micros(),
            words: format!("from the backup of {}", self.manifest.taken),
            key: key.as_ref(),
        };
        let lines = (lines, &restore);
        let loaded = load_database(self.url, self.manifest.schema, &mut rows, lines, progress).await;
        let loaded = loaded.map_err(|why| match why {
            CopyError::Inconsistent(findings) => tell_verify_findings(&findings, self.as_json),
            other => other.into(),
        })?;
        Ok((loaded.rows, files))
    }

    fn unpack(&self, name: &str, wanted: bool) -> Result<u64, Failure> {
        let archive = BufReader::new(self.open(name)?);
        let mut told = BackupProgress::new("files restored");
        let progress: Progress<'_> = &mut |count| told.tell(count);
        let unpacked = unpack_backup_archive(archive, wanted.then_some(self.data_dir), progress);
        unpacked.map_err(|why| Failure::Refused(format!("{}: {why}", self.backup.join(name).display())))
    }

    fn open(&self, name: &str) -> Result<File, Failure> {
        let path = self.backup.join(name);
        open_part(&path).map_err(|why| Failure::Unavailable(format!("{}: {why}", path.display())))
    }
}

/// Makes the folder where it is missing, and refuses one that has content.
fn make_folder_for_restore(data_dir: &Path) -> Result<(), Failure> {
    let failed = |why: io::Error| Failure::Usage(format!("--data-dir: {}: {why}", data_dir.display()));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .map_err(failed)?;
    // A new file system has this one.
    let is_content =
        |entry: io::Result<std::fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() != "lost+found");
    if std::fs::read_dir(data_dir).map_err(failed)?.any(is_content) {
        return Err(Failure::Refused(format!(
            "the data folder {} is not empty: a backup is restored to an empty one only",
            data_dir.display()
        )));
    }
    Ok(())
}

/// A folder that is removed with this value.
struct RestoreRehearsal(PathBuf);

impl RestoreRehearsal {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("bespeak-rehearsal-{}", uuid::Uuid::now_v7()));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|why| Failure::Unavailable(format!("{}: {why}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for RestoreRehearsal {
    fn drop(&mut self) {
        if let Err(why) = std::fs::remove_dir_all(&self.0) {
            eprintln!("bespeak: {} stays behind: {why}", self.0.display());
        }
    }
}
