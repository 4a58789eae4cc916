//! A file system of a few megabytes, to be really filled.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts the file system, and removes it at the end of standard input: also where the test process was killed.
///
/// The first argument is the folder, the second the size.
const GUARD: &str = r#"
mount -t tmpfs -o "size=$2" tmpfs "$1" || { rmdir "$1"; exit 1; }
echo mounted
read -r _
umount -l "$1"; rmdir "$1"
"#;

/// A small file system in memory. It is removed with this value.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    folder: PathBuf,
    guard: Child,
}

impl SmallDisk {
    /// Mounts one of this many MiB. `None` where this process may mount nothing. That is said on the terminal, past the test
    /// runner, since a test that was left out looks like one that has passed.
    pub(crate) fn mount(mebibytes: u32) -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("bespeak-small-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "disk-guard"])
            .arg(&folder)
            .arg(format!("{mebibytes}m"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell can be run");
        let mut said = String::new();
        let output = guard.stdout.take().expect("it was given a pipe");
        BufReader::new(output)
            .read_line(&mut said)
            .expect("the shell's output can be read");
        if said.starts_with("mounted") {
            return Some(Self { folder, guard });
        }
        let failed = guard.wait_with_output().expect("the shell has ended");
        let why = String::from_utf8_lossy(&failed.stderr);
        let line = format!(
            "\nNOT TESTED: nothing here has shown what a full disk does, as no file system can be mounted ({}). \
             Run the tests as root.\n",
            why.trim()
        );
        // Not by the macro: its output is shown of failed tests only.
        let _ = std::io::stderr().write_all(line.as_bytes());
        None
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Takes all the room that is left, to the last page.
    pub(crate) fn fill(&self) {
        let mut filler = File::options()
            .create(true)
            .append(true)
            .open(self.filler())
            .expect("a file can be made");
        for size in [1 << 16, 1 << 12, 1] {
            let block = vec![b'x'; size];
            loop {
                match filler.write(&block) {
                    Ok(_) => {}
                    Err(why) if why.kind() == ErrorKind::StorageFull => break,
                    Err(why) => panic!("the disk is not full but {why}"),
                }
            }
        }
    }

    /// Gives the room back that [`SmallDisk::fill`] took.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).expect("the filler can be removed");
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The end of its standard input ends it.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}
