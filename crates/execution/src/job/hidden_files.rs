//! The space that a job takes under no name: deleted files that its processes have open, and files in memory (memfd). No walk through its folder
//! and no count of mapped pages sees them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use rustix::fs::makedev;
use rustix::process::Pid;

use crate::files::known_file::KnownFile;
use crate::job::isolation_record::SharedMemory;
use crate::job::process::job_process_memory_bytes;
use crate::job::process_stat::{
    if_process_stat_is_there, process_stat_shows_this_user, read_while_process_runs,
};

/// How the names begin by which the system shows the open files of a process that are in memory.
const MEMFD: &[u8] = b"/memfd:";
/// How those end of open files that have no name any more.
const DELETED: &[u8] = b" (deleted)";

/// A file, by its device and its inode.
type FileId = (u64, u64);

/// What the processes of a job hold open without a name.
#[derive(Debug, Default)]
pub(super) struct HiddenFiles {
    /// The bytes of each file in memory.
    memory: HashMap<FileId, u64>,
    /// The deleted files on the job's own file system.
    pub(super) deleted: Vec<KnownFile>,
    /// Whether a process of this user does not show its open files: its program may not be read, or its threads end too soon.
    pub(super) is_refused: bool,
}

impl HiddenFiles {
    /// Bytes of the files in memory, and of those in the job's own `/dev/shm`, without their pages that are mapped.
    pub(super) fn not_mapped(&self, shared: Option<SharedMemory>, mapped: &MappedFiles) -> u64 {
        let mapped_of = |file: &FileId| mapped.0.get(file).copied().unwrap_or(0);
        let files = self.memory.iter();
        let own: u64 = files
            .map(|(file, bytes)| bytes.saturating_sub(mapped_of(file)))
            .sum();
        let shared = shared.map_or(0, |shared| {
            shared.bytes.saturating_sub(mapped.on_device(shared.device))
        });
        own.saturating_add(shared)
    }

    /// Adds what a process holds that the system shows in this folder, but for the files that were seen. Returns whether it shows its open
    /// files, if it is there.
    fn add(&mut self, folder: &str, device: u64, seen: &mut HashSet<FileId>) -> io::Result<bool> {
        let listed = fs::read_dir(format!("{folder}/fd"));
        let is_shown = !are_hidden_files_denied(&listed);
        let open = if_process_stat_is_there(listed)?;
        for entry in open.into_iter().flatten().flatten() {
            let path = entry.path();
            let name = if_process_stat_is_there(fs::read_link(&path))?.unwrap_or_default();
            // Only of such a file more is asked: to look at one on a disk that hangs could take for ever.
            if !name.as_os_str().as_bytes().ends_with(DELETED) {
                continue;
            }
            let Some(meta) = if_process_stat_is_there(fs::metadata(&path))? else {
                continue;
            };
            let is_hidden = meta.is_file() && meta.nlink() == 0;
            if !is_hidden || !seen.insert((meta.dev(), meta.ino())) {
                continue;
            }
            let file = KnownFile::of(&meta);
            if meta.dev() == device {
                self.deleted.push(file);
            } else if name.as_os_str().as_bytes().starts_with(MEMFD) {
                self.memory.insert((meta.dev(), meta.ino()), file.bytes());
            }
        }
        Ok(is_shown)
    }
}

/// What these processes hold open without a name; `device` has the job's folder. A process that does not show its open files holds nothing,
/// as far as one can see. Costs a look at each open file.
///
/// # Errors
/// Where the system lacks something that it may have again later.
pub(super) fn files_hidden_by(processes: impl Iterator<Item = Pid>, device: u64) -> io::Result<HiddenFiles> {
    let mut hidden = HiddenFiles::default();
    let mut seen = HashSet::new();
    for pid in processes {
        let shown = read_while_process_runs(pid, |folder| hidden.add(folder, device, &mut seen))?;
        if shown != Some(true) && process_stat_shows_this_user(pid)? {
            hidden.is_refused = true;
        }
    }
    Ok(hidden)
}

fn are_hidden_files_denied<T>(read: &io::Result<T>) -> bool {
    let error = read.as_ref().err();
    error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The pages that processes have mapped of files, in parts where several have them.
#[derive(Debug, Default)]
pub(super) struct MappedFiles(HashMap<FileId, u64>);

impl MappedFiles {
    /// Of these processes. Costs a look at each mapping and each page of them.
    ///
    /// # Errors
    /// Where the system lacks something that it may have again later.
    pub(super) fn by(processes: &[Pid]) -> io::Result<Self> {
        let mut mapped = Self::default();
        for pid in processes {
            let read = |folder: &str| if_process_stat_is_there(fs::read(format!("{folder}/smaps")));
            let text = read_while_process_runs(*pid, read)?.flatten();
            // A job may give its files any names.
            mapped.add(&String::from_utf8_lossy(&text.unwrap_or_default()));
        }
        Ok(mapped)
    }

    /// Adds the pages of one process, by the system's list of its mappings.
    fn add(&mut self, list: &str) {
        let (mut file, mut pages) = ((0, 0), 0_u64);
        for line in list.lines() {
            if let Some(bytes) = job_process_memory_bytes(line, "Pss:") {
                pages = bytes;
            } else if let Some(copies) = job_process_memory_bytes(line, "Anonymous:") {
                // Pages that the process has changed for itself alone are none of the file.
                *self.0.entry(file).or_default() += pages.saturating_sub(copies);
            } else if let Some(next) = file_of_mapping(line) {
                file = next;
            }
        }
    }

    /// Bytes of the files on a device.
    fn on_device(&self, device: u64) -> u64 {
        let files = self.0.iter().filter(|(file, _)| file.0 == device);
        files.map(|(_, bytes)| bytes).sum()
    }
}

/// The file in the first line of a mapping, whose fourth and fifth words are its device and its inode.
fn file_of_mapping(line: &str) -> Option<FileId> {
    let mut words = line.split_ascii_whitespace().skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some((
        makedev(number(major)?, number(minor)?),
        words.next()?.parse().ok()?,
    ))
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
        let holds = |hidden: &HiddenFiles| hidden.deleted.iter().any(|file| file.is(&meta));
        assert!(
            !holds(&files_hidden_by(own(), device).unwrap()),
            "it has its name"
        );
        fs::remove_file(&path).unwrap();
        let found = files_hidden_by(own(), device).unwrap();
        let file = found.deleted.iter().find(|file| file.is(&meta)).unwrap();
        assert!(file.bytes() >= 2 << 20);
        // Other tests of this process may have some open besides.
        assert!(
            found.not_mapped(None, &MappedFiles::default()) >= 3 << 20,
            "{found:?}"
        );
        assert!(!found.is_refused, "an own process shows its files");
        drop((memory, again, gone));
        assert!(!holds(&files_hidden_by(own(), device).unwrap()));
    }

    #[test]
    fn only_pages_of_the_same_files_are_taken_from_files_in_memory() {
        const HALF_MAPPED: &str = "7f00-7f01 rw-s 00000000 00:01 4   /memfd:a b (deleted)\n\
            Size:               4096 kB\nRss:                2048 kB\nPss:                2048 kB\nAnonymous:             0 kB\n\
            VmFlags: rd wr sh mr mw me ms sd\n";
        const SHARED_WITHOUT_A_FILE: &str = "7f01-7f02 rw-s 00000000 00:01 3   /dev/zero (deleted)\n\
            Rss:                9216 kB\nPss:                9216 kB\nAnonymous:             0 kB\n";
        const COPIED: &str = "7f02-7f03 rw-p 00000000 00:01 5   /memfd:c (deleted)\n\
            Rss:                1024 kB\nPss:                1024 kB\nAnonymous:          1024 kB\n";
        const OWN_FOLDER: &str = "7f03-7f04 rw-s 00000000 00:2f 2   /dev/shm/d\n\
            Rss:                1024 kB\nPss:                 512 kB\nAnonymous:             0 kB\n";
        let (device, kib) = (makedev(0, 1), |count: u64| count << 10);
        let hidden = HiddenFiles {
            memory: HashMap::from([((device, 4), kib(4_096)), ((device, 5), kib(1_024))]),
            ..HiddenFiles::default()
        };
        let shared = SharedMemory {
            device: makedev(0, 0x2f),
            bytes: kib(2_048),
        };
        let mut mapped = MappedFiles::default();
        assert_eq!(hidden.not_mapped(None, &mapped), kib(5_120));
        mapped.add(&[HALF_MAPPED, SHARED_WITHOUT_A_FILE, COPIED].concat());
        assert_eq!(hidden.not_mapped(None, &mapped), kib(3_072));
        mapped.add(OWN_FOLDER);
        assert_eq!(hidden.not_mapped(Some(shared), &mapped), kib(3_072 + 1_536));
        mapped.add(HALF_MAPPED);
        mapped.add(HALF_MAPPED);
        assert_eq!(
            hidden.not_mapped(None, &mapped),
            kib(1_024),
            "none is less than nothing"
        );
    }

    #[test]
    fn the_mappings_of_a_process_are_read() {
        let own = MappedFiles::by(&[rustix::process::getpid()]).unwrap();
        assert!(own.0.values().any(|bytes| *bytes > 0), "{own:?}");
    }
}
