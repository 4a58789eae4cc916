//! The processes that a test leaves: a job outlives its service, as it should, and must not outlive its test.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use tempfile::TempDir;

use super::poll_until;

/// How long killed processes may take to end, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_mins(1);

/// A temporary folder for jobs. The processes of all that is left of them end with it.
#[derive(Debug)]
pub(crate) struct JobsFolder(TempDir);

impl JobsFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for JobsFolder {
    fn drop(&mut self) {
        end_all_in(self.path());
    }
}

/// Kills the processes that were started for something in a folder: that name it in their command, in their environment or as the
/// folder that they are in.
pub(crate) fn end_all_in(folder: &Path) {
    // One that is killed may have started one more meanwhile.
    poll_until(DEADLINE, || kill_all_in(folder) == 0);
}

/// Returns how many there were.
fn kill_all_in(folder: &Path) -> usize {
    let name = folder.to_string_lossy();
    // There are hundreds of processes: the search of texts passes over what cannot be in the name.
    let names = |text: &[u8]| String::from_utf8_lossy(text).contains(&*name);
    let processes = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    let started_for_it = processes.filter(|process| {
        let at = |file: &str| process.path().join(file);
        ["cmdline", "environ"]
            .iter()
            .any(|file| names(&fs::read(at(file)).unwrap_or_default()))
            || fs::read_link(at("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    let numbers =
        started_for_it.filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?));
    let numbers: Vec<Pid> = numbers.filter(|process| *process != getpid()).collect();
    for process in &numbers {
        let _ = kill_process(*process, Signal::KILL);
    }
    numbers.len()
}
