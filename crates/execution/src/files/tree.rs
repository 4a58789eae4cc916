//! Folders that a hostile user may have filled: of any depth, with links to anywhere, closed to their own user,
//! and changed while they are gone through. Each step goes from an open folder to a name in it, follows no link and needs no
//! path; however deep they are, few descriptors are open and nothing recurses.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::files::if_file_is_there;

/// How often it is tried to open a folder that its user keeps closing.
const TRIES: u32 = 3;
/// Rounds of removing the entries two levels deep: each makes a tree flatter by one level.
const ROUNDS_MAX: u32 = 1 << 20;

/// Removes a folder with all that is in it; one that is not there, or no folder, is as good.
///
/// # Errors
/// When the system refuses, or a process goes on filling it; another call goes on.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match if_file_is_there(open_parent_of_tree(path))? {
        Some((parent, name)) => remove_from_tree(&parent, name),
        None => Ok(()),
    }
}

/// Opens the folder that a path is in. Returns it with the name there.
///
/// # Errors
/// When the system refuses.
pub(crate) fn open_parent_of_tree(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
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
pub(crate) fn remove_from_tree(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let top = match open_tree_folder(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?);
        }
        top => open_up_tree_folder(top?),
    };
    let mut moved = 0;
    for _ in 0..ROUNDS_MAX {
        let found = clear_folder_tree(&top, |folder| {
            let inner = open_up_tree_folder(open_tree_folder(&top, folder)?);
            // Deeper folders are moved up, so that all of them can be reached without a path or a stack.
            clear_folder_tree(&inner, |deeper| move_up_tree(&inner, deeper, &top, &mut moved))?;
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
    for name in names_in_tree_folder(folder)? {
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
fn move_up_tree(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    // To move a folder changes ".." in it, which takes the right to write there.
    open_up_tree_folder(open_tree_folder(from, name)?);
    loop {
        *moved += 1;
        match rustix::fs::renameat(from, name, top, moved.to_string()) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            done => return done,
        }
    }
}

/// How a folder is opened that may have been replaced by something else.
pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder, of which its user may have forbidden that to itself.
pub(crate) fn open_tree_folder<P: rustix::path::Arg + Copy>(
    parent: impl AsFd,
    name: P,
) -> Result<OwnedFd, Errno> {
    let parent = parent.as_fd();
    let open = |how| rustix::fs::openat(parent, name, how, Mode::empty());
    let open_up = || {
        let closed = open(FOLDER.union(OFlags::PATH))?;
        // By its descriptor: its name may be a link to something else by now.
        rustix::fs::chmod(format!("/proc/self/fd/{}", closed.as_raw_fd()), Mode::RWXU)
    };
    with_tree_folder_made_writable(|| open(FOLDER), open_up)
}

/// Looks at a name in a folder, of which its user may have forbidden that to itself.
pub(super) fn look_at_tree_entry(folder: &Dir, name: &CStr) -> Result<Stat, Errno> {
    let look = || rustix::fs::statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW);
    with_tree_folder_made_writable(look, || rustix::fs::fchmod(folder.fd()?, Mode::RWXU))
}

/// Does something that a folder may not allow, where it can be made to.
fn with_tree_folder_made_writable<T>(
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
fn open_up_tree_folder(folder: OwnedFd) -> OwnedFd {
    // Where this is not allowed it may not be needed; otherwise the next step fails.
    let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
    folder
}

/// The names in a folder that was opened for reading.
pub(crate) fn names_in_tree_folder(
    folder: impl AsFd,
) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let entries = Dir::read_from(folder)?;
    let entries = entries.filter(|entry| {
        !entry
            .as_ref()
            .is_ok_and(|entry| is_dots_in_tree(entry.file_name()))
    });
    Ok(entries.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned())))
}

pub(super) fn is_dots_in_tree(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
