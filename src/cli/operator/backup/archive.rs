//! Parts of a data folder into an archive and out of it. Jobs run meanwhile and may be hostile: files grow and vanish, folders become links.
//! So each step goes from an open folder to a name in it and follows no link, and an archive may be a forged one, too.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use store::backup::Progress;
use tar::{Archive, Builder, EntryType, Header};

/// Folders below folders: one more than this is left out, since each on the way is held open.
const DEPTH_MAX: usize = 64;

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
pub(super) fn pack_archive<W: Write>(
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
    to: W,
    progress: Progress<'_>,
) -> io::Result<(Count, W)> {
    let mut packer = BackupArchivePacker {
        to: Builder::new(to),
        count: Count::default(),
        progress,
    };
    match rustix::fs::openat(CWD, folder, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Err(Errno::NOENT) => {}
        top => {
            let top = top?;
            for name in names_to_archive(&top)?
                .into_iter()
                .filter(|name| name.to_str().is_ok_and(&wanted))
            {
                packer.entry(top.as_fd(), &name, name.to_bytes(), 0)?;
            }
        }
    }
    Ok((packer.count, packer.to.into_inner()?))
}

struct BackupArchivePacker<'p, W: Write> {
    to: Builder<W>,
    count: Count,
    progress: Progress<'p>,
}

impl<W: Write> BackupArchivePacker<'_, W> {
    fn entry(&mut self, folder: BorrowedFd<'_>, name: &CStr, path: &[u8], depth: usize) -> io::Result<()> {
        let added = match self.add(folder, name, path, depth) {
            // It is gone by now.
            Err(ArchiveError::Unreadable(Errno::NOENT)) => return Ok(()),
            Err(ArchiveError::Unreadable(_)) => false,
            Err(ArchiveError::Unwritable(why)) => return Err(why),
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
    ) -> Result<bool, ArchiveError> {
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let named = Path::new(OsStr::from_bytes(path));
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth < DEPTH_MAX => {
                let inner = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
                let names = names_to_archive(&inner)?;
                let mut header = header_in_backup_archive(&stat, EntryType::Directory, 0);
                self.to.append_data(&mut header, named, io::empty())?;
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
                self.count.files += 1;
                (self.progress)(self.count.files);
                let mut content = ArchivedContent {
                    file: File::from(file),
                    left: size,
                    is_whole: true,
                };
                let mut header = header_in_backup_archive(&stat, EntryType::Regular, size);
                self.to.append_data(&mut header, named, &mut content)?;
                Ok(content.is_whole)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
                let mut header = header_in_backup_archive(&stat, EntryType::Symlink, 0);
                if header.set_link_name_literal(target.to_bytes()).is_ok() {
                    self.to.append_data(&mut header, named, io::empty())?;
                } else {
                    let target = OsStr::from_bytes(target.to_bytes());
                    self.to.append_link(&mut header, named, target)?;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// The content of a file as long as it was when it was opened: one that grows is cut there, one that became shorter is filled up, and is not
/// all there.
struct ArchivedContent {
    file: File,
    left: u64,
    is_whole: bool,
}

impl Read for ArchivedContent {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.len());
        let chunk = &mut chunk[..most];
        let read = match self.file.read(chunk) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => return Err(why),
            Ok(read) if read > 0 || most == 0 => read,
            // The end, or the disk refuses.
            Ok(_) | Err(_) => {
                self.is_whole = false;
                chunk.fill(0);
                most
            }
        };
        self.left -= read as u64;
        Ok(read)
    }
}

/// Why a name is not in an archive.
enum ArchiveError {
    Unreadable(Errno),
    Unwritable(io::Error),
}

impl From<Errno> for ArchiveError {
    fn from(why: Errno) -> Self {
        Self::Unreadable(why)
    }
}

impl From<io::Error> for ArchiveError {
    fn from(why: io::Error) -> Self {
        Self::Unwritable(why)
    }
}

/// The header of an entry, without its name: the same file has the same one, whoever owns it.
fn header_in_backup_archive(stat: &Stat, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(stat.st_mode & 0o777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
    header
}

/// The names in a folder, in their order.
fn names_to_archive(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
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
/// Where a name leads elsewhere or the archive is damaged; those of reading and writing.
pub(super) fn unpack_backup_archive(
    from: impl Read,
    folder: Option<&Path>,
    progress: Progress<'_>,
) -> io::Result<u64> {
    let mut archive = Archive::new(from);
    let mut files = 0;
    // Permissions of folders come last: some may not be written to.
    let mut folders = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let names = names_on_archived_path(&entry.path_bytes())?;
        let (kind, mode) = (entry.header().entry_type(), entry.header().mode()? & 0o777);
        match kind {
            EntryType::Regular => {
                files += 1;
                progress(files);
            }
            EntryType::Directory | EntryType::Symlink => {}
            _ => return Err(damaged_archive("an entry is of a kind that no backup has")),
        }
        let Some(top) = folder else { continue };
        let Some((name, above)) = names.split_last() else {
            continue;
        };
        let parent = open_folder_of_backup_archive(top, above)?;
        match kind {
            EntryType::Directory => {
                rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
                if mode != 0o700 {
                    folders.push((names, mode));
                }
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes();
                let target = target.ok_or_else(|| damaged_archive("a link has no target"))?;
                rustix::fs::symlinkat(&*target, &parent, name)?;
            }
            _ => {
                let file = rustix::fs::openat(&parent, name, NEW_FILE, Mode::RUSR | Mode::WUSR)?;
                let mut file = File::from(file);
                let modified = i64::try_from(entry.header().mtime()?).unwrap_or(0);
                io::copy(&mut entry, &mut file)?;
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
                rustix::fs::futimens(&file, &times_in_archive(modified))?;
            }
        }
    }
    if let Some(top) = folder {
        for (names, mode) in folders.into_iter().rev() {
            rustix::fs::fchmod(
                open_folder_of_backup_archive(top, &names)?,
                Mode::from_raw_mode(mode),
            )?;
        }
    }
    Ok(files)
}

/// Opens a folder below another one, where no link is on the way.
fn open_folder_of_backup_archive(top: &Path, names: &[CString]) -> io::Result<OwnedFd> {
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    let mut folder = rustix::fs::openat(CWD, top, flags, Mode::empty())?;
    for name in names {
        folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// The names on a path, which leads down only.
fn names_on_archived_path(path: &[u8]) -> io::Result<Vec<CString>> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let leads_elsewhere = names.iter().any(|name| matches!(*name, b"" | b"." | b".."));
    if leads_elsewhere || names.len() > DEPTH_MAX + 2 {
        let path = String::from_utf8_lossy(path);
        return Err(damaged_archive(format!(
            "the name {path:?} in the archive leads elsewhere"
        )));
    }
    let name = |name: &&[u8]| CString::new(*name).map_err(|_| io::ErrorKind::InvalidData.into());
    names.iter().map(name).collect()
}

fn damaged_archive(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn times_in_archive(seconds: i64) -> Timestamps {
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
        let long = "deep/".repeat(60);
        fs::create_dir_all(from.path().join("jobs").join(&long)).unwrap();
        fs::write(from.path().join("jobs").join(&long).join("file"), "deep").unwrap();
        symlink(&long, from.path().join("jobs/long")).unwrap();
        symlink("one//../one/", from.path().join("jobs/odd")).unwrap();
        rustix::fs::mkfifoat(CWD, from.path().join("jobs/pipe"), Mode::RUSR).unwrap();
        fs::set_permissions(from.path().join("key"), Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(from.path().join("jobs/one"), Permissions::from_mode(0o500)).unwrap();
        let (count, archive) =
            pack_archive(from.path(), |name| name != "other", Vec::new(), &mut |_| {}).unwrap();
        assert_eq!(
            count,
            Count {
                files: 3,
                left_out: 1
            }
        );
        assert_eq!(
            unpack_backup_archive(archive.as_slice(), None, &mut |_| {}).unwrap(),
            3
        );
        assert!(
            fs::read_dir(to.path()).unwrap().next().is_none(),
            "it was only read"
        );
        unpack_backup_archive(archive.as_slice(), Some(to.path()), &mut |_| {}).unwrap();
        assert_eq!(
            fs::read_to_string(to.path().join("jobs/one/work/out")).unwrap(),
            "result"
        );
        assert_eq!(
            fs::read_link(to.path().join("jobs/one/link")).unwrap(),
            Path::new("/etc/passwd")
        );
        assert_eq!(
            fs::read_to_string(to.path().join("jobs/long/file")).unwrap(),
            "deep"
        );
        assert_eq!(
            fs::read_link(to.path().join("jobs/odd")).unwrap().as_os_str(),
            "one//../one/"
        );
        // Cut off in a header, in a file or in what fills its last block, it is known as such.
        for end in [100, 700, archive.len() - 1_100] {
            assert!(
                unpack_backup_archive(&archive[..end], None, &mut |_| {}).is_err(),
                "{end}"
            );
        }
        let mode = |name: &str| fs::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("key"), mode("jobs/one")), (0o600, 0o500));
        assert!(!to.path().join("other").exists());
        // Nothing that is there is written over.
        assert!(unpack_backup_archive(archive.as_slice(), Some(to.path()), &mut |_| {}).is_err());
    }

    #[test]
    fn a_forged_archive_writes_nothing_elsewhere() {
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().to_str().unwrap();
        let file = |path: &'static str| (path, EntryType::Regular);
        let forged = [
            vec![file("../out")],
            vec![file("/tmp/out")],
            vec![file("a//b")],
            vec![file("./a")],
            vec![file("")],
            vec![file("jobs/../../out")],
            vec![("jobs", EntryType::Symlink), file("jobs/out")],
            vec![file("out"), file("out")],
            vec![("jobs", EntryType::Link)],
            vec![("jobs", EntryType::Fifo)],
        ];
        for entries in forged {
            let to = tempfile::tempdir().unwrap();
            let mut archive = Builder::new(Vec::new());
            for (path, kind) in &entries {
                let mut header = Header::new_gnu();
                header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
                header.set_entry_type(*kind);
                header.set_link_name_literal(target).unwrap();
                header.set_mode(0o600);
                header.set_size(0);
                header.set_cksum();
                archive.append(&header, io::empty()).unwrap();
            }
            let archive = archive.into_inner().unwrap();
            assert!(
                unpack_backup_archive(archive.as_slice(), Some(to.path()), &mut |_| {}).is_err(),
                "{entries:?}"
            );
            assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
        }
    }
}
