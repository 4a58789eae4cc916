//! The list of a backup's files with their sums. It is written last, so a folder without it is no backup, or one that was interrupted.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use store::backup::{Progress, SCHEMA_VERSION, schema_sum};

use super::archive::pack_archive;
use super::part::{Part, SummedPart, begin_part, create_part_file, open_part, sync_folder};
use super::progress::BackupProgress;
use crate::cli::Failure;

/// The file of the list.
pub(super) const MANIFEST: &str = "manifest.json";
/// The rows of the database.
pub(super) const DATABASE: &str = "database.jsonl";
/// The small files of the data folder: keys, secrets, signed heads, reservations of clusters.
pub(super) const SERVICE: &str = "service.tar";
/// Inputs, uploads and the folders of jobs.
pub(super) const FILES: &str = "files.tar";
/// The configuration file, for people.
pub(super) const CONFIGURATION: &str = "bespeak.toml";

/// The names that a backup may have.
const PARTS: [&str; 4] = [DATABASE, SERVICE, FILES, CONFIGURATION];
/// The layout that this program writes.
const FORMAT: u64 = 1;
/// The longest list: a hostile one is not read whole.
const MANIFEST_MAX: u64 = 64 << 10;

/// The description of a backup, and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    format: u64,
    /// The program that has written it.
    pub(super) version: String,
    /// The engine that it comes from.
    pub(super) engine: String,
    /// The version of the schema.
    pub(super) schema: usize,
    /// Its sum: before the first release several layouts had the same version.
    pub(super) schema_sum: String,
    /// What was acknowledged before this instant is in it.
    pub(super) taken: String,
    /// Rows of the database.
    pub(super) rows: u64,
    /// Jobs that ran.
    pub(super) running: i64,
    /// The number of the last line of the audit trail.
    pub(super) trail: i64,
    /// Files that could not be read, or not whole.
    pub(super) left_out: u64,
    pub(super) parts: Vec<Part>,
}

impl Manifest {
    /// The list of a backup that has no files yet.
    pub(super) fn new(engine: &str) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: engine.to_owned(),
            schema: 0,
            schema_sum: String::new(),
            taken: String::new(),
            rows: 0,
            running: 0,
            trail: 0,
            left_out: 0,
            parts: Vec::new(),
        }
    }

    /// Writes the list into the folder, lasting: from here on this is a backup.
    ///
    /// # Errors
    /// The errors of writing.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let draft = folder.join("manifest.new");
        let mut file = create_part_file(&draft)?;
        file.write_all(format!("{:#}\n", serde_json::to_value(self)?).as_bytes())?;
        file.sync_all()?;
        std::fs::rename(draft, folder.join(MANIFEST))?;
        sync_folder(folder)?;
        // Its own name, too.
        folder.canonicalize()?.parent().map_or(Ok(()), sync_folder)
    }

    /// Reads the list of a backup, and makes sure that this program can restore it.
    ///
    /// # Errors
    /// Where there is none, it is damaged, or a newer program or one before the first release has written it.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(MANIFEST);
        let damaged = |why: String| Failure::Refused(format!("{}: {why}", path.display()));
        let file = open_part(&path).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => Failure::Refused(format!(
                "{} has no {MANIFEST}: it is no backup, or one that was interrupted",
                folder.display()
            )),
            _ => damaged(why.to_string()),
        })?;
        let mut text = String::new();
        let read = file.take(MANIFEST_MAX).read_to_string(&mut text);
        read.map_err(|why| damaged(why.to_string()))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|why| damaged(why.to_string()))?;
        let is_newer = |key: &str, known: u64| value[key].as_u64().is_some_and(|found| found > known);
        let is_unreleased = value.is_object() && value.get("schemaSum").is_none();
        if is_newer("format", FORMAT) || !is_unreleased && is_newer("schema", SCHEMA_VERSION as u64) {
            let version = value["version"].as_str().unwrap_or("unknown");
            return Err(Failure::Refused(format!(
                "the backup is of a newer version of bespeak ({version}) than this one ({}): restore it with that version",
                env!("CARGO_PKG_VERSION")
            )));
        }
        let manifest = (!is_unreleased).then(|| serde_json::from_value::<Self>(value));
        let manifest = manifest.transpose().map_err(|why| damaged(why.to_string()))?;
        let is_ours =
            |manifest: &Self| schema_sum(manifest.schema).is_some_and(|sum| sum == manifest.schema_sum);
        let Some(manifest) = manifest.filter(is_ours) else {
            return Err(Failure::Refused(
                "the backup was made by a version before the first release, which no other restores: start with an empty data \
                 folder and an empty database"
                    .into(),
            ));
        };
        let mut names: Vec<&str> = manifest.parts.iter().map(|part| part.name.as_str()).collect();
        if let Some(other) = names.iter().find(|name| !PARTS.contains(name)) {
            return Err(damaged(format!("no backup has a file {other:?}")));
        }
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1])
            || ![DATABASE, SERVICE].iter().all(|part| names.contains(part))
        {
            return Err(damaged("it does not list what a backup has".into()));
        }
        Ok(manifest)
    }

    /// Adds an archive of some entries of a folder.
    pub(super) fn add_archive(
        &mut self,
        backup: &Path,
        name: &str,
        one_path: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> io::Result<()> {
        let mut told = BackupProgress::new("files copied");
        let progress: Progress<'_> = &mut |count| told.tell(count);
        let (count, archive) = pack_archive(one_path, wanted, begin_part(backup, name)?, progress)?;
        self.left_out += count.left_out;
        self.parts.push(archive.finish(name)?);
        Ok(())
    }

    /// Whether it has a file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.name == name)
    }

    /// Bytes of all its files.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Reads all files of the backup and compares them with the list.
    ///
    /// # Errors
    /// Where a file is missing, or differs from the one that was written: the first such file.
    pub(super) fn check_parts(&self, folder: &Path) -> Result<(), Failure> {
        for part in &self.parts {
            let path = folder.join(&part.name);
            let refused =
                |why: String| Failure::Refused(format!("the backup is damaged: {}: {why}", path.display()));
            let file = open_part(&path).map_err(|why| refused(why.to_string()))?;
            let bytes = file.metadata().map_err(|why| refused(why.to_string()))?.len();
            if bytes != part.bytes {
                return Err(refused(format!(
                    "it has {bytes} bytes, and {} were written",
                    part.bytes
                )));
            }
            let mut digest = SummedPart::new(io::sink());
            io::copy(&mut BufReader::new(file), &mut digest).map_err(|why| refused(why.to_string()))?;
            if digest.sum() != part.sha256 {
                return Err(refused("its content is not what was written".into()));
            }
        }
        Ok(())
    }
}
