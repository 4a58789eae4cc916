//! Parts of a data folder into an archive and out of it. Jobs run meanwhile and may be hostile: files grow and vanish, folders become links.
//! So each step goes from an open folder to a name in it and follows no link, and an archive may be a forged one, too.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use store::backup::Progress;

use super::tar::{Entry, Kind, Reader, write_end, write_entry, write_padding};

/// Folders below folders: one more than this is left out, since each on the way is held open.
const DEPTH_MAX: usize = 64;
/// Bytes of a file that are copied at a time.
const CHUNK: usize = 64 << 10;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A pipe of that name is not waited for.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How much went into an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) files: u64,
    /// Entries that could not be read, or are no file, folder or link; and files that became shorter while they were read.
    pub(super) left_out: u64,
}

/// Writes an archive of the entries of a folder that are wanted by their names, with all that is in them. A folder that is not there is
/// empty.
///
/// # Errors
/// The errors of writing. What cannot be read is counted.
pub(super) fn pack<W: Write>(
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
    to: W,
    progress: Progress<'_>,
) -> io::Result<(Count, W)> {
    let mut packer = Packer {
        to,
        count: Count::default(),
        progress,
    };
    match rustix::fs::openat(CWD, folder, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Err(Errno::NOENT) => {}
        top => {
            let top = top?;
            for name in names_in(&top)?
                .into_iter()
                .filter(|name| name.to_str().is_ok_and(&wanted))
            {
                packer.entry(top.as_fd(), &name, name.to_bytes(), 0)?;
            }
        }
    }
    write_end(&mut packer.to)?;
    Ok((packer.count, packer.to))
}

struct Packer<'p, W> {
    to: W,
    count: Count,
    progress: Progress<'p>,
}

impl<W: Write> Packer<'_, W> {
    fn entry(&mut self, folder: BorrowedFd<'_>, name: &CStr, path: &[u8], depth: usize) -> io::Result<()> {
        let added = match self.add(folder, name, path, depth) {
            // It is gone by now.
            Err(PackError::Unreadable(Errno::NOENT)) => return Ok(()),
            Err(PackError::Unreadable(_)) => false,
            Err(PackError::Unwritable(why)) => return Err(why),
            Ok(added) => added,
        };
        self.count.left_out += u64::from(!added);
        Ok(())
    }

    /// Adds a name; answers whether it is all there.
    fn add(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        path: &[u8],
        depth: usize,
    ) -> Result<bool, PackError> {
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth < DEPTH_MAX => {
                let inner = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
                let names = names_in(&inner)?;
                write_entry(&mut self.to, &entry_of(path, &stat, Kind::Folder))?;
                for name in names {
                    let path = [path, b"/", name.to_bytes()].concat();
                    self.entry(inner.as_fd(), &name, &path, depth + 1)?;
                }
                Ok(true)
            }
            FileType::RegularFile => {
                let file = rustix::fs::openat(folder, name, FILE, Mode::empty())?;
                // Another one may have this name since.
                let stat = rustix::fs::fstat(&file)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Ok(false);
                }
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                write_entry(&mut self.to, &entry_of(path, &stat, Kind::File(size)))?;
                self.count.files += 1;
                (self.progress)(self.count.files);
                Ok(self.copy(&mut File::from(file), size)?)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
                let link = Kind::Link(target.into_bytes());
                write_entry(&mut self.to, &entry_of(path, &stat, link))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Copies a file as long as it was when it was opened: one that grows is cut there, one that became shorter is filled up, and is not all
    /// there.
    fn copy(&mut self, file: &mut File, size: u64) -> io::Result<bool> {
        let (mut left, mut chunk) = (size, vec![0; CHUNK]);
        let mut is_whole = true;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let read = match file.read(&mut chunk[..most]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                // The end, or the disk refuses.
                Ok(0) | Err(_) => {
                    is_whole = false;
                    chunk.fill(0);
                    most
                }
                Ok(read) => read,
            };
            self.to.write_all(&chunk[..read])?;
            left -= read as u64;
        }
        write_padding(&mut self.to, size)?;
        Ok(is_whole)
    }
}

/// Why a name is not in an archive.
enum PackError {
    Unreadable(Errno),
    Unwritable(io::Error),
}

impl From<Errno> for PackError {
    fn from(why: Errno) -> Self {
        Self::Unreadable(why)
    }
}

impl From<io::Error> for PackError {
    fn from(why: io::Error) -> Self {
        Self::Unwritable(why)
    }
}

fn entry_of(path: &[u8], stat: &Stat, kind: Kind) -> Entry {
    Entry {
        path: path.to_owned(),
        kind,
        mode: stat.st_mode & 0o777,
        modified: stat.st_mtime,
    }
}

/// The names in a folder, in their order.
fn names_in(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Takes an archive out into a folder, or only reads all of it where there is none. No name may be there yet.
/// Returns the number of files.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where a name leads elsewhere or the archive is damaged; those of reading and writing.
pub(super) fn unpack(from: impl Read, folder: Option<&Path>, progress: Progress<'_>) -> io::Result<u64> {
    let mut archive = Reader::new(from);
    let mut files = 0;
    // Permissions of folders come last: some may not be written to.
    let mut folders = Vec::new();
    while let Some(entry) = archive.next()? {
        let names = names_of(&entry.path)?;
        if matches!(entry.kind, Kind::File(_)) {
            files += 1;
            progress(files);
        }
        let Some(top) = folder else { continue };
        let Some((name, above)) = names.split_last() else {
            continue;
        };
        let parent = open_below(top, above)?;
        match &entry.kind {
            Kind::Folder => {
                rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
                if entry.mode != 0o700 {
                    folders.push((names, entry.mode));
                }
            }
            Kind::Link(target) => rustix::fs::symlinkat(target.as_slice(), &parent, name)?,
            Kind::File(_) => {
                let file = rustix::fs::openat(&parent, name, NEW_FILE, Mode::RUSR | Mode::WUSR)?;
                let mut file = File::from(file);
                archive.copy_to(&mut file)?;
                rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
                rustix::fs::futimens(&file, &modified_at(entry.modified))?;
            }
        }
    }
    if let Some(top) = folder {
        for (names, mode) in folders.into_iter().rev() {
            rustix::fs::fchmod(open_below(top, &names)?, Mode::from_raw_mode(mode))?;
        }
    }
    Ok(files)
}

/// Opens a folder below another one, where no link is on the way.
fn open_below(top: &Path, names: &[CString]) -> io::Result<OwnedFd> {
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    let mut folder = rustix::fs::openat(CWD, top, flags, Mode::empty())?;
    for name in names {
        folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// The names on a path, which leads down only.
fn names_of(path: &[u8]) -> io::Result<Vec<CString>> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let leads_elsewhere = names.iter().any(|name| matches!(*name, b"" | b"." | b".."));
    if leads_elsewhere || names.len() > DEPTH_MAX + 2 {
        let path = String::from_utf8_lossy(path);
        let why = format!("the name {path:?} in the archive leads elsewhere");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let name = |name: &&[u8]| CString::new(*name).map_err(|_| io::ErrorKind::InvalidData.into());
    names.iter().map(name).collect()
}

fn modified_at(seconds: i64) -> Timestamps {
    let omitted = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    Timestamps {
        last_access: omitted,
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_comes_back_as_it_was_and_what_is_not_wanted_stays() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("jobs/one/work")).unwrap();
        fs::write(from.path().join("jobs/one/work/out"), "result").unwrap();
        fs::write(from.path().join("key"), "secret").unwrap();
        fs::write(from.path().join("other"), "unwanted").unwrap();
        symlink("/etc/passwd", from.path().join("jobs/one/link")).unwrap();
        rustix::fs::mkfifoat(CWD, from.path().join("jobs/pipe"), Mode::RUSR).unwrap();
        fs::set_permissions(from.path().join("key"), Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(from.path().join("jobs/one"), Permissions::from_mode(0o500)).unwrap();
        let (count, archive) = pack(from.path(), |name| name != "other", Vec::new(), &mut |_| {}).unwrap();
        assert_eq!(
            count,
            Count {
                files: 2,
                left_out: 1
            }
        );
        assert_eq!(unpack(archive.as_slice(), None, &mut |_| {}).unwrap(), 2);
        assert!(
            fs::read_dir(to.path()).unwrap().next().is_none(),
            "it was only read"
        );
        unpack(archive.as_slice(), Some(to.path()), &mut |_| {}).unwrap();
        assert_eq!(
            fs::read_to_string(to.path().join("jobs/one/work/out")).unwrap(),
            "result"
        );
        assert_eq!(
            fs::read_link(to.path().join("jobs/one/link")).unwrap(),
            Path::new("/etc/passwd")
        );
        let mode = |name: &str| fs::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("key"), mode("jobs/one")), (0o600, 0o500));
        assert!(!to.path().join("other").exists());
        // Nothing that is there is written over.
        assert!(unpack(archive.as_slice(), Some(to.path()), &mut |_| {}).is_err());
    }

    #[test]
    fn a_forged_archive_writes_nothing_elsewhere() {
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().to_str().unwrap().as_bytes().to_vec();
        let file = |path: &str| (path.as_bytes().to_vec(), Kind::File(0));
        let forged = [
            vec![file("../out")],
            vec![file("/tmp/out")],
            vec![file("a//b")],
            vec![file("./a")],
            vec![file("")],
            vec![file("jobs/../../out")],
            vec![(b"jobs".to_vec(), Kind::Link(target.clone())), file("jobs/out")],
            vec![file("out"), file("out")],
        ];
        for entries in forged {
            let to = tempfile::tempdir().unwrap();
            let mut archive = Vec::new();
            for (path, kind) in &entries {
                let (path, kind, mode, modified) = (path.clone(), kind.clone(), 0o600, 0);
                write_entry(
                    &mut archive,
                    &Entry {
                        path,
                        kind,
                        mode,
                        modified,
                    },
                )
                .unwrap();
            }
            write_end(&mut archive).unwrap();
            assert!(
                unpack(archive.as_slice(), Some(to.path()), &mut |_| {}).is_err(),
                "{entries:?}"
            );
            assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
        }
    }
}
