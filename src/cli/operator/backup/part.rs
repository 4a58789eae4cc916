//! The files of a backup, each written with its sum.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::hex;

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// A file of a backup while it is written.
pub(super) type PartWriter = SummedPart<BufWriter<File>>;

/// Begins a file of a backup.
///
/// # Errors
/// Where it is there already, or cannot be made.
pub(super) fn begin_part(folder: &Path, name: &str) -> io::Result<PartWriter> {
    Ok(SummedPart::new(BufWriter::with_capacity(
        1 << 20,
        create_part_file(&folder.join(name))?,
    )))
}

impl PartWriter {
    /// Ends it, lasting.
    ///
    /// # Errors
    /// The errors of writing.
    pub(super) fn finish(mut self, name: &str) -> io::Result<Part> {
        self.flush()?;
        self.to.get_ref().sync_all()?;
        let (name, bytes) = (name.to_owned(), self.bytes);
        let sha256 = self.sum();
        Ok(Part { name, bytes, sha256 })
    }
}

/// Opens a file of a backup for reading.
///
/// # Errors
/// Where it is a link or no file.
pub(super) fn open_part(path: &Path) -> io::Result<File> {
    // The bits of a system's flags.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no file"))
    }
}

/// A file that only its owner can read.
pub(super) fn create_part_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Makes the names in a folder lasting.
///
/// # Errors
/// The errors of the system.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A writer that sums the bytes that it writes.
pub(super) struct SummedPart<W> {
    to: W,
    digest: Sha256,
    bytes: u64,
}

impl<W> SummedPart<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            digest: Sha256::new(),
            bytes: 0,
        }
    }

    pub(super) fn sum(self) -> String {
        hex(&self.digest.finalize())
    }
}

impl<W: Write> Write for SummedPart<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
