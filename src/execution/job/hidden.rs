//! The space that a job takes under no name: deleted files that its processes have open, and files in memory (memfd). No walk through its folder
//! and no count of mapped pages sees them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use rustix::process::Pid;

use crate::execution::files::tree::KnownFile;
use crate::execution::job::process::if_process_is_there;

/// How the names begin by which the system shows the open files of a process that are in memory.
const MEMFD: &[u8] = b"/memfd:";
/// How those end of open files that have no name any more.
const DELETED: &[u8] = b" (deleted)";

/// What the processes of a job hold open without a name.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// Bytes of files in memory.
    pub(super) memory: u64,
    /// The deleted files on the job's own file system.
    pub(super) deleted: Vec<KnownFile>,
}

/// What these processes hold open without a name; `device` has the job's folder. A process that does not show its open files holds nothing,
/// as far as one can see. Costs a look at each open file.
///
/// # Errors
/// Where the system lacks something that it may have again later.
pub(super) fn hidden_by(processes: impl Iterator<Item = Pid>, device: u64) -> io::Result<Hidden> {
    let mut hidden = Hidden::default();
    let mut seen = HashSet::new();
    for pid in processes {
        let open = if_process_is_there(fs::read_dir(format!("/proc/{pid}/fd")))?;
        for entry in open.into_iter().flatten().flatten() {
            let path = entry.path();
            let name = if_process_is_there(fs::read_link(&path))?.unwrap_or_default();
            // Only of such a file more is asked: to look at one on a disk that hangs could take for ever.
            if !name.as_os_str().as_bytes().ends_with(DELETED) {
                continue;
            }
            let Some(meta) = if_process_is_there(fs::metadata(&path))? else {
                continue;
            };
            let is_hidden = meta.is_file() && meta.nlink() == 0;
            if !is_hidden || !seen.insert((meta.dev(), meta.ino())) {
                continue;
            }
            let file = KnownFile::of(&meta);
            if meta.dev() == device {
                hidden.deleted.push(file);
            } else if name.as_os_str().as_bytes().starts_with(MEMFD) {
                hidden.memory = hidden.memory.saturating_add(file.bytes());
            }
        }
    }
    Ok(hidden)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn files_without_a_name_count_once_by_what_they_take() {
        let folder = tempfile::tempdir().unwrap();
        let device = fs::metadata(folder.path()).unwrap().dev();
        let own = || std::iter::repeat_n(rustix::process::getpid(), 2);
        let mut memory = File::from(memfd_create("hidden", MemfdFlags::CLOEXEC).unwrap());
        memory.write_all(&vec![1; 3 * MIB]).unwrap();
        let again = memory.try_clone().unwrap();
        let path = folder.path().join("gone");
        let mut gone = File::create(&path).unwrap();
        gone.write_all(&vec![1; 2 * MIB]).unwrap();
        gone.sync_all().unwrap();
        let meta = gone.metadata().unwrap();
        let holds = |of: &Hidden| of.deleted.iter().any(|file| file.is(&meta));
        assert!(!holds(&hidden_by(own(), device).unwrap()), "it has its name");
        fs::remove_file(&path).unwrap();
        let found = hidden_by(own(), device).unwrap();
        let file = found.deleted.iter().find(|file| file.is(&meta)).unwrap();
        assert!(file.bytes() >= 2 << 20);
        // Other tests of this process may have some open besides.
        assert!(found.memory >= 3 << 20, "{found:?}");
        drop((memory, again, gone));
        assert!(!holds(&hidden_by(own(), device).unwrap()));
    }
}
