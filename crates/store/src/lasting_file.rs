//! Small files that last: whole or not there, whatever happens while one is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a small file whole or not at all, lasting.
///
/// # Errors
/// Where it cannot be written.
pub fn write_lasting_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(mode)
        .open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
