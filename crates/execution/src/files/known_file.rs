//! One file, known again under any of its names.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Stat};
use serde::{Deserialize, Serialize};

/// One file under any of its names, and its size on the disk when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) bytes: u64,
}

impl KnownFile {
    /// Whether it is the file with this metadata.
    pub(crate) fn is(&self, meta: &fs::Metadata) -> bool {
        (self.device, self.inode) == (meta.dev(), meta.ino())
    }

    /// The open file with this metadata.
    pub(crate) fn of(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.blocks().saturating_mul(512),
        }
    }

    /// Its size on the disk when it was looked at.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file at a path; none where that is a link or anything else.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            // A file system may give a file its blocks long after its bytes.
            bytes: bytes_of_file_as_known(&stat).max(length.next_multiple_of(4 << 10)),
        }))
    }
}

/// Bytes on the disk. Blocks are of 512 bytes here, on any file system.
pub(super) fn bytes_of_file_as_known(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}
