//! Folders that a hostile user may have filled: of any depth, with links to anywhere, closed to their own user,
//! and changed while they are gone through. Each step goes from an open folder to a name in it, follows no link and needs no
//! path; however deep they are, few descriptors are open and nothing recurses.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::if_there;

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
/// How often it is tried to open a folder that its user keeps closing.
const TRIES: u32 = 3;
/// Rounds of removing the entries two levels deep: each makes a tree flatter by one level.
const ROUNDS_MAX: u32 = 1 << 20;

/// One file under any of its names, and its size on the disk when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    device: u64,
    inode: u64,
    bytes: u64,
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
            bytes: bytes_on_disk(&stat).max(length.next_multiple_of(4 << 10)),
        }))
    }
}

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
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// By device and inode.
    id: (u64, u64),
    /// None while it is not at hand, because that would be too many.
    folder: Option<Dir>,
    listed: bool,
    /// Folders in it that are yet to be gone into.
    inner: Vec<CString>,
}

impl Level {
    fn of(folder: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            id: id_of_file(&rustix::fs::fstat(&folder)?),
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
        let levels = match open_folder(CWD, folder) {
            Err(Errno::NOENT) => Vec::new(),
            top => vec![Level::of(top?)?],
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
        match open_folder(folder.fd()?, name.as_c_str()) {
            Ok(inner) => {
                if depth > HELD {
                    level.folder = None;
                }
                self.levels.push(Level::of(inner)?);
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
            if id_of_file(&rustix::fs::fstat(&back)?) == above.id {
                above.folder = Some(Dir::new(back)?);
            }
        }
        Ok(())
    }

    fn count(&mut self, name: CString) -> Result<(), Errno> {
        if is_dots(&name) {
            return Ok(());
        }
        let Some(Level {
            folder: Some(folder),
            inner,
            ..
        }) = self.levels.last_mut()
        else {
            return Ok(());
        };
        let stat = match look_at(folder, &name) {
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
        } else if stat.st_nlink > 1 && !self.counted.insert(id_of_file(&stat)) {
            return Ok(());
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            self.longest = self.longest.max(u64::try_from(stat.st_size).unwrap_or(0));
        }
        let before = self.before.get(&id_of_file(&stat)).copied().unwrap_or(0);
        self.bytes = self
            .bytes
            .saturating_add(bytes_on_disk(&stat).saturating_sub(before));
        Ok(())
    }
}

/// Removes a folder with all that is in it; one that is not there, or no folder, is as good.
///
/// # Errors
/// When the system refuses, or a process goes on filling it; another call goes on.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match if_there(open_parent(path))? {
        Some((parent, name)) => remove_from(&parent, name),
        None => Ok(()),
    }
}

/// Opens the folder that a path is in. Returns it with the name there.
///
/// # Errors
/// When the system refuses.
pub(crate) fn open_parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it has no name"));
    };
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    Ok((rustix::fs::openat(CWD, parent, flags, Mode::empty())?, name))
}

/// Removes a folder of this name in another one, wherever that is by now, as [`remove_tree`] does.
///
/// # Errors
/// As [`remove_tree`].
pub(crate) fn remove_from(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let top = match open_folder(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?);
        }
        top => open_up_folder(top?),
    };
    let mut moved = 0;
    for _ in 0..ROUNDS_MAX {
        let found = clear_folder_tree(&top, |folder| {
            let inner = open_up_folder(open_folder(&top, folder)?);
            // Deeper folders are moved up, so that all of them can be reached without a path or a stack.
            clear_folder_tree(&inner, |deeper| move_up(&inner, deeper, &top, &mut moved))?;
            match rustix::fs::unlinkat(&top, folder, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(()),
                removed => removed,
            }
        })?;
        if found == 0 {
            return Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?);
        }
    }
    Err(io::Error::other("a process goes on filling it"))
}

/// Removes the content of a folder except folders that are not empty, and does an action with those. Returns the number of
/// entries.
fn clear_folder_tree(
    folder: &OwnedFd,
    mut with: impl FnMut(&OsStr) -> Result<(), Errno>,
) -> Result<usize, Errno> {
    let mut found = 0;
    for name in names_in(folder)? {
        let name = &name?;
        found += 1;
        let removed = match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR),
            removed => removed,
        };
        let done = match removed {
            Err(Errno::NOTEMPTY | Errno::EXIST) => with(name),
            removed => removed,
        };
        match done {
            // Removed or replaced meanwhile: the next round sees the new state.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            done => done?,
        }
    }
    Ok(found)
}

/// Moves a folder to the top, under the next number that is free there.
fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    // To move a folder changes ".." in it, which takes the right to write there.
    open_up_folder(open_folder(from, name)?);
    loop {
        *moved += 1;
        match rustix::fs::renameat(from, name, top, moved.to_string()) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            done => return done,
        }
    }
}

/// How a folder is opened that may have been replaced by something else.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder, of which its user may have forbidden that to itself.
pub(crate) fn open_folder<P: rustix::path::Arg + Copy>(parent: impl AsFd, name: P) -> Result<OwnedFd, Errno> {
    let parent = parent.as_fd();
    let open = |how| rustix::fs::openat(parent, name, how, Mode::empty());
    let open_up = || {
        let closed = open(FOLDER.union(OFlags::PATH))?;
        // By its descriptor: its name may be a link to something else by now.
        rustix::fs::chmod(format!("/proc/self/fd/{}", closed.as_raw_fd()), Mode::RWXU)
    };
    with_folder_made_writable(|| open(FOLDER), open_up)
}

/// Looks at a name in a folder, of which its user may have forbidden that to itself.
fn look_at(folder: &Dir, name: &CStr) -> Result<Stat, Errno> {
    let look = || rustix::fs::statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW);
    with_folder_made_writable(look, || rustix::fs::fchmod(folder.fd()?, Mode::RWXU))
}

/// Does something that a folder may not allow, where it can be made to.
fn with_folder_made_writable<T>(
    what: impl Fn() -> Result<T, Errno>,
    allow: impl Fn() -> Result<(), Errno>,
) -> Result<T, Errno> {
    for _ in 0..TRIES {
        match what() {
            Err(Errno::ACCESS) => allow()?,
            done => return done,
        }
    }
    what()
}

/// A folder that is going to be removed, with everything allowed in it that its user may allow.
fn open_up_folder(folder: OwnedFd) -> OwnedFd {
    // Where this is not allowed it may not be needed; otherwise the next step fails.
    let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
    folder
}

/// The names in a folder that was opened for reading.
pub(crate) fn names_in(folder: impl AsFd) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let entries = Dir::read_from(folder)?;
    let entries = entries.filter(|entry| !entry.as_ref().is_ok_and(|entry| is_dots(entry.file_name())));
    Ok(entries.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned())))
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn id_of_file(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Bytes on the disk. Blocks are of 512 bytes here, on any file system.
fn bytes_on_disk(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

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
