//! The size of a folder that a hostile user may have filled, found a part at a time ([`Walk`]).

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{CWD, Dir, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::files::known_file::{KnownFile, bytes_of_file_as_known};
use crate::files::tree::{FOLDER, is_dots_in_tree, look_at_tree_entry, open_tree_folder};

/// The size that each name counts beside its blocks, beyond the first [`NAMES_FREE`]. So a job that makes only names
/// reaches its limit too, before a pass over them takes long.
pub(crate) const NAME_BYTES: u64 = 64 << 10;
/// Names that cost nothing: the names of records and of common results.
const NAMES_FREE: u64 = 256;
/// Levels below the top with folders that are held open. Further down the way back up is "..", as long as that leads
/// back.
const HELD: usize = 32;
/// Names between two looks at the clock.
const STRIDE: u32 = 64;

/// Adds up the size of a folder on the disk with all of its content, a part at a time. Files that were there before count
/// only with their growth, files of several names once. Files removed meanwhile do not count.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Their bytes, by device and inode.
    before: HashMap<(u64, u64), u64>,
    /// Files of several names that were counted, by device and inode.
    counted: HashSet<(u64, u64)>,
    bytes: u64,
    names: u64,
    /// Length of the longest file.
    longest: u64,
    /// Whether something is there that cannot be looked into.
    closed: bool,
    /// From the top to where it is now.
    levels: Vec<WalkLevel>,
}

#[derive(Debug)]
struct WalkLevel {
    /// By device and inode.
    id: (u64, u64),
    /// None while it is not at hand, because that would be too many.
    folder: Option<Dir>,
    listed: bool,
    /// Folders in it that are yet to be gone into.
    inner: Vec<CString>,
}

impl WalkLevel {
    fn of(folder: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            id: id_of_walked_file(&rustix::fs::fstat(&folder)?),
            folder: Some(Dir::new(folder)?),
            listed: false,
            inner: Vec::new(),
        })
    }
}

impl Walk {
    /// Through a folder in which these files were before.
    ///
    /// # Errors
    /// When the folder cannot be opened; one that is not there is empty.
    pub(crate) fn through(folder: &Path, before: Vec<KnownFile>) -> io::Result<Self> {
        let levels = match open_tree_folder(CWD, folder) {
            Err(Errno::NOENT) => Vec::new(),
            top => vec![WalkLevel::of(top?)?],
        };
        let before = before
            .into_iter()
            .map(|file| ((file.device, file.inode), file.bytes));
        Ok(Self {
            before: before.collect(),
            counted: HashSet::new(),
            bytes: 0,
            names: 0,
            longest: 0,
            closed: false,
            levels,
        })
    }

    /// The size found by now; [`u64::MAX`] where a folder cannot be read.
    pub(crate) fn bytes(&self) -> u64 {
        if self.closed {
            return u64::MAX;
        }
        let names = self.names.saturating_sub(NAMES_FREE);
        self.bytes.saturating_add(names.saturating_mul(NAME_BYTES))
    }

    /// Length of the longest file that was found by now.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Goes through all that is left.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn finish(mut self) -> io::Result<Self> {
        while !self.go_on(None)? {}
        Ok(self)
    }

    /// Goes on until then, or to the end; answers whether it is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn go_on(&mut self, until: Option<Instant>) -> io::Result<bool> {
        loop {
            for _ in 0..STRIDE {
                if !self.step()? {
                    return Ok(true);
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
        }
    }

    /// Looks at the next name, goes into the next folder, or back out; answers whether there was anything to do.
    fn step(&mut self) -> Result<bool, Errno> {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        let Some(folder) = level.folder.as_mut() else {
            // Nothing leads back to it any more.
            self.levels.pop();
            return Ok(true);
        };
        if !level.listed {
            match folder.read() {
                Some(entry) => {
                    let name = entry?.file_name().to_owned();
                    self.count(name)?;
                }
                None => level.listed = true,
            }
            return Ok(true);
        }
        let Some(name) = level.inner.pop() else {
            self.leave()?;
            return Ok(true);
        };
        match open_tree_folder(folder.fd()?, name.as_c_str()) {
            Ok(inner) => {
                if depth > HELD {
                    level.folder = None;
                }
                self.levels.push(WalkLevel::of(inner)?);
            }
            // Removed or replaced since it was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(Errno::ACCESS | Errno::PERM) => self.closed = true,
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Goes back to the folder above, if that is still where it was.
    fn leave(&mut self) -> Result<(), Errno> {
        let left = self.levels.pop().and_then(|level| level.folder);
        let (Some(left), Some(above)) = (left, self.levels.last_mut()) else {
            return Ok(());
        };
        if above.folder.is_none() {
            let back = rustix::fs::openat(left.fd()?, "..", FOLDER, Mode::empty())?;
            if id_of_walked_file(&rustix::fs::fstat(&back)?) == above.id {
                above.folder = Some(Dir::new(back)?);
            }
        }
        Ok(())
    }

    fn count(&mut self, name: CString) -> Result<(), Errno> {
        if is_dots_in_tree(&name) {
            return Ok(());
        }
        let Some(WalkLevel {
            folder: Some(folder),
            inner,
            ..
        }) = self.levels.last_mut()
        else {
            return Ok(());
        };
        let stat = match look_at_tree_entry(folder, &name) {
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => {
                self.closed = true;
                return Ok(());
            }
            stat => stat?,
        };
        self.names += 1;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            inner.push(name);
        } else if stat.st_nlink > 1 && !self.counted.insert(id_of_walked_file(&stat)) {
            return Ok(());
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            self.longest = self.longest.max(u64::try_from(stat.st_size).unwrap_or(0));
        }
        let before = self.before.get(&id_of_walked_file(&stat)).copied().unwrap_or(0);
        self.bytes = self
            .bytes
            .saturating_add(bytes_of_file_as_known(&stat).saturating_sub(before));
        Ok(())
    }
}

fn id_of_walked_file(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::OFlags;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;
    use crate::files::tree::remove_tree;

    const MIB: u64 = 1 << 20;

    /// Makes folders in one another and answers the innermost one.
    fn nest(top: &Path, levels: usize, name: &str) -> OwnedFd {
        let open = |parent: &OwnedFd, name: &str| rustix::fs::openat(parent, name, FOLDER, Mode::empty());
        let mut at = OwnedFd::from(fs::File::open(top).unwrap());
        for _ in 0..levels {
            rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
            at = open(&at, name).unwrap();
        }
        at
    }

    fn fill(folder: &OwnedFd, name: &str, bytes: u64) {
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = rustix::fs::openat(folder, name, flags, Mode::RWXU).unwrap();
        io::Write::write_all(
            &mut fs::File::from(file),
            &vec![1; usize::try_from(bytes).unwrap()],
        )
        .unwrap();
    }

    fn bytes(folder: &Path, before: Vec<KnownFile>) -> u64 {
        Walk::through(folder, before).unwrap().finish().unwrap().bytes()
    }

    /// In a thread that may do no more than the owner of a folder.
    fn as_its_owner<T: Send>(fact: impl FnOnce() -> T + Send) -> T {
        let limited = || {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            fact()
        };
        std::thread::scope(|scope| scope.spawn(limited).join().unwrap())
    }

    #[test]
    fn what_lies_deeper_than_any_path_reaches_counts_and_can_be_removed() {
        let place = tempfile::tempdir().unwrap();
        for (levels, name) in [(40, "a".repeat(255)), (3_000, "b".to_owned())] {
            let top = place.path().join("top");
            fs::create_dir(&top).unwrap();
            fill(&nest(&top, levels, &name), "file", MIB);
            // Beside it, further up.
            fill(&nest(&top, 2, "beside"), "file", MIB);
            let found = bytes(&top, Vec::new());
            let names = NAME_BYTES * (levels as u64 + 4).saturating_sub(NAMES_FREE);
            assert!(
                found >= 2 * MIB + names && found < 3 * MIB + names + levels as u64 * 4096,
                "{found}"
            );
            remove_tree(&top).unwrap();
            assert!(!top.exists());
        }
    }

    #[test]
    fn what_is_closed_to_its_own_user_counts_and_can_be_removed() {
        let place = tempfile::tempdir().unwrap();
        for mode in [0o000, 0o200, 0o300, 0o400, 0o500] {
            let top = place.path().join("top");
            fs::create_dir(&top).unwrap();
            fill(&nest(&top, 3, "a"), "file", MIB);
            let lock = |path: &str| {
                fs::set_permissions(top.join(path), fs::Permissions::from_mode(mode)).unwrap();
            };
            ["a/a/a", "a/a", "a"].into_iter().for_each(lock);
            let found = as_its_owner(|| bytes(&top, Vec::new()));
            assert!((MIB..2 * MIB).contains(&found), "{mode:o}: {found}");
            for path in ["a", "a/a", "a/a/a"] {
                fs::set_permissions(top.join(path), fs::Permissions::from_mode(0o700)).unwrap();
            }
            ["a/a/a", "a/a", "a"].into_iter().for_each(lock);
            as_its_owner(|| remove_tree(&top)).unwrap();
            assert!(!top.exists(), "{mode:o}");
        }
    }

    #[test]
    fn links_lead_nowhere_and_files_of_several_names_count_once() {
        let place = tempfile::tempdir().unwrap();
        let (top, other) = (place.path().join("top"), place.path().join("other"));
        fs::create_dir(&top).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), vec![1; 1 << 20]).unwrap();
        symlink(&other, top.join("link")).unwrap();
        assert!(bytes(&top, Vec::new()) < MIB);
        fs::hard_link(other.join("file"), top.join("one")).unwrap();
        fs::hard_link(other.join("file"), top.join("two")).unwrap();
        assert!((MIB..2 * MIB).contains(&bytes(&top, Vec::new())));
        remove_tree(&top).unwrap();
        assert!(!top.exists() && other.join("file").exists());
        symlink(&other, &top).unwrap();
        remove_tree(&top).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && other.join("file").exists());
        assert_eq!(bytes(&top, Vec::new()), 0);
    }

    #[test]
    fn a_file_that_was_there_before_counts_with_what_it_grows_whatever_has_its_name() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        let before = KnownFile::at(&file).unwrap().unwrap();
        assert_eq!(bytes(place.path(), vec![before]), 0);
        io::Write::write_all(
            &mut fs::File::options().append(true).open(&file).unwrap(),
            &vec![1; 1 << 20],
        )
        .unwrap();
        assert!((MIB..2 * MIB).contains(&bytes(place.path(), vec![before])));
        fs::rename(&file, place.path().join("moved")).unwrap();
        fs::create_dir(&file).unwrap();
        fs::write(file.join("inner"), vec![1; 1 << 20]).unwrap();
        assert!((2 * MIB..3 * MIB).contains(&bytes(place.path(), vec![before])));
    }
}
