//! The folder of a job that is over for good. The still needed parts of its records are in the record of its end, under
//! [`PACKED`], and the other records are gone. The claim stays: without it a launcher that was held up could still make one.
//!
//! The record of the end is replaced first, and the intent is removed last. So one that is packed by half says the same as
//! before, and is known by its intent.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use domain::clock::Micros;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    COPIED, END, Folder, INCOMPLETE, INPUTS, ISOLATION, LOCK, LOG, PARTS, PUT_OFF, SAVE, SHARED, SPEC,
    STAGING, STOP, UNTIL,
};
use crate::files::{if_file_is_there, tree};
use crate::job::folder::outputs::Stream;
use crate::{ExecutionError, JobSpec};

/// Where the record of the end has the others, each under the name of its file.
const PACKED: &str = "packed";
/// The records that are read after the end.
const READ_AFTERWARDS: [&str; 6] = [SPEC, INPUTS, UNTIL, SAVE, SHARED, STAGING];
/// The removed parts, in this order.
const REMOVED: [&str; 12] = [
    ISOLATION, LOCK, STOP, COPIED, PUT_OFF, INCOMPLETE, INPUTS, UNTIL, SAVE, SHARED, STAGING, SPEC,
];

/// The record of an end, as far as other records are in it.
#[derive(Deserialize)]
struct EndRecord {
    #[serde(default)]
    packed: Map<String, Value>,
}

impl Folder {
    /// A record, from its own file or from the record of the end.
    pub(super) fn read_record<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ExecutionError> {
        if let Some(record) = self.read_file(name)? {
            return Ok(Some(record));
        }
        let packed = match self.read_file::<EndRecord>(END) {
            // A reader of the end itself is told so.
            Err(ExecutionError::Damaged { .. }) => None,
            end => end?.and_then(|mut end| end.packed.remove(name)),
        };
        let record = packed.map(serde_json::from_value).transpose();
        record.map_err(|error| ExecutionError::Damaged {
            path: self.path.join(END),
            reason: format!("{name}: {error}"),
        })
    }

    /// Whether there is anything to pack in the folder of an ended job.
    pub(crate) fn is_loose(&self) -> bool {
        self.path.join(SPEC).exists()
    }

    /// Packs the folder of a job that has ended, and of which nothing may run any more. One that a crash has cut off is done by
    /// another call.
    pub(crate) fn pack(&self) -> Result<(), ExecutionError> {
        let Some(mut end) = self.read_file::<Map<String, Value>>(END)? else {
            return Ok(());
        };
        if !end.contains_key(PACKED) {
            let mut records = Map::new();
            for name in READ_AFTERWARDS {
                let record: Option<Value> = self.read_file(name)?;
                records.extend(record.map(|record| (name.to_owned(), record)));
            }
            end.insert(PACKED.to_owned(), records.into());
            self.write_anew(END, &end)?;
        }
        self.remove_files_of_packing()
            .map_err(ExecutionError::system("pack", &self.path))
    }

    fn remove_files_of_packing(&self) -> io::Result<()> {
        if !self.is_later() {
            self.remove_unused()?;
        }
        remove_empty_file_in_packing(&self.path.join(LOG))?;
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            // Drafts that a crash has left, and the files put away, which the supervisor may still be removing.
            if name.as_bytes().starts_with(b".") {
                if_file_is_there(tree::remove_tree(&self.path.join(name)))?;
            }
        }
        for name in REMOVED {
            if_file_is_there(fs::remove_file(self.path.join(name)))?;
        }
        Ok(())
    }

    /// Removes files that have another name among the job's inputs, and its empty outputs and working folder.
    fn remove_unused(&self) -> io::Result<()> {
        tree::remove_tree(&self.temporary())?;
        tree::remove_tree(&self.path.join(PARTS))?;
        let work = self.work();
        let spec = self.read_record::<JobSpec>(SPEC).ok().flatten();
        let uploads = spec.iter().flat_map(JobSpec::uploads);
        for (name, input) in uploads {
            let link = work.join(name);
            // A job may have put its own in place of one, which may then have the same number.
            let is_elsewhere = fs::symlink_metadata(&link)
                .is_ok_and(|meta| meta.is_file() && meta.nlink() > 1)
                || fs::read_link(&link).is_ok_and(|to| to == *input);
            if is_elsewhere {
                fs::remove_file(link)?;
            }
        }
        for stream in Stream::ALL {
            remove_empty_file_in_packing(&self.path.join(stream.word()))?;
        }
        let stays = [ErrorKind::DirectoryNotEmpty, ErrorKind::NotADirectory];
        match if_file_is_there(fs::remove_dir(&work)) {
            Err(error) if stays.contains(&error.kind()) => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// When the job ended, where it has run.
    pub(crate) fn ran_until(&self) -> Option<Micros> {
        let end = self.end().ok().flatten()?;
        end.started.map(|_| end.ended)
    }
}

/// Removes a file where it has nothing in it.
fn remove_empty_file_in_packing(path: &Path) -> io::Result<()> {
    let is_empty = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0);
    if is_empty {
        if_file_is_there(fs::remove_file(path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
