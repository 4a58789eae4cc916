//! How the system shows a process in `/proc`. It shows one whose first thread has ended as ended, without memory and open files, although its
//! other threads run on: such a process is looked at by one of these.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, geteuid};

use crate::job::shortage::is_shortage;

/// How often a process is looked at anew because the thread by which it was seen has ended meanwhile.
const LOOKS_MAX: usize = 20;

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Debug)]
pub(super) struct ProcessStat {
    pub(super) start_ticks: u64,
    /// Whether all its threads have ended.
    pub(super) ended: bool,
    pub(super) stopped: bool,
    pub(super) parent: Option<Pid>,
    pub(super) group: Option<Pid>,
    /// With a first one that has ended.
    pub(super) threads: u64,
    pub(super) resident_pages: u64,
    /// The thread by which it is seen, where the first one has ended.
    thread: Option<Pid>,
}

impl ProcessStat {
    /// Of the process that has a number now, if one has.
    pub(super) fn of(pid: Pid) -> io::Result<Option<Self>> {
        let own = format!("/proc/{pid}");
        let mut unseen = None;
        for _ in 0..LOOKS_MAX {
            let Some(first) = Self::at(&own)? else {
                return Ok(None);
            };
            if !first.ended || first.threads < 2 {
                return Ok(Some(first));
            }
            let threads = if_process_stat_is_there(process_stat_numbers_in(&format!("{own}/task")))?;
            let mut ended = 0;
            for thread in threads.into_iter().flatten() {
                match Self::at(&format!("{own}/task/{thread}"))? {
                    Some(other) if !other.ended => return Ok(Some(first.seen_by(thread, &other))),
                    other => ended += u64::from(other.is_some()),
                }
            }
            // Ended threads stay only where a debugger has not taken note of them.
            if ended == first.threads {
                return Ok(Some(first));
            }
            unseen = Some(first);
        }
        // It runs: its threads end before they are looked at, and leave others.
        Ok(unseen.map(|first| Self {
            ended: false,
            ..first
        }))
    }

    /// By the folder where the system shows a process or a thread.
    fn at(folder: &str) -> io::Result<Option<Self>> {
        let line = if_process_stat_is_there(fs::read_to_string(format!("{folder}/stat")))?;
        Ok(line.as_deref().and_then(Self::read))
    }

    /// Reads fields 3, 4, 5, 20, 22 and 24; the name in field 2 may hold spaces and brackets, so they are counted from its end.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        // What is being removed is as good as gone.
        let state = fields.next().filter(|state| !matches!(*state, "X" | "x"))?;
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        // Below zero for a process that is about to be gone.
        let group = Pid::from_raw(fields.next()?.parse::<i32>().ok()?.max(0));
        let threads = fields.nth(14)?.parse().ok()?;
        let start_ticks = fields.nth(1)?.parse().ok()?;
        let resident_pages = fields.nth(1)?.parse().ok()?;
        Some(Self {
            start_ticks,
            ended: state == "Z",
            stopped: matches!(state, "T" | "t"),
            parent,
            group,
            threads,
            resident_pages,
            thread: None,
        })
    }

    /// With what only a thread shows that has not ended.
    fn seen_by(self, thread: Pid, other: &Self) -> Self {
        Self {
            ended: other.ended,
            stopped: other.stopped,
            resident_pages: other.resident_pages,
            thread: Some(thread),
            ..self
        }
    }

    /// The folder where the system shows the memory, the open files and the environment of this process, which has this number.
    pub(super) fn folder(&self, pid: Pid) -> String {
        match self.thread {
            None => format!("/proc/{pid}"),
            Some(thread) => format!("/proc/{pid}/task/{thread}"),
        }
    }
}

/// Reads something of a process in the folder where the system shows it, until that was there from the beginning to the end. None where the
/// process has ended, or its threads end before this is done.
///
/// # Errors
/// The errors of the reading, and where the system lacks something that it may have again later.
pub(super) fn read_while_process_runs<T>(
    pid: Pid,
    mut read: impl FnMut(&str) -> io::Result<T>,
) -> io::Result<Option<T>> {
    for _ in 0..LOOKS_MAX {
        let Some(stat) = ProcessStat::of(pid)?.filter(|stat| !stat.ended) else {
            return Ok(None);
        };
        let folder = stat.folder(pid);
        let found = read(&folder)?;
        if ProcessStat::at(&folder)?.is_some_and(|stat| !stat.ended) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a process is there, and has not ended.
pub(super) fn process_runs(pid: Pid) -> io::Result<bool> {
    Ok(ProcessStat::of(pid)?.is_some_and(|stat| !stat.ended))
}

/// The numbers of all processes, rising, so that processes started meanwhile are mostly among them.
pub(super) fn all_process_ids() -> io::Result<impl Iterator<Item = Pid>> {
    process_stat_numbers_in("/proc")
}

/// The numbers that are names in a folder.
fn process_stat_numbers_in(folder: &str) -> io::Result<impl Iterator<Item = Pid> + use<>> {
    let number = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    Ok(fs::read_dir(folder)?.flatten().filter_map(number))
}

/// The data read of a process; none where it is gone or not ours to read. A shortage of the machine says nothing about
/// the process, and is an error.
pub(super) fn if_process_stat_is_there<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if is_shortage(&error) => Err(error),
        read => Ok(read.ok()),
    }
}

/// Whether a process runs as the user of this one. A program that the system runs as another user, as it does with the isolating tool on some
/// machines, may well hide its files.
pub(super) fn process_stat_shows_this_user(pid: Pid) -> io::Result<bool> {
    // This folder belongs to the user as whom the process acts, whatever it hides.
    let meta = if_process_stat_is_there(fs::metadata(format!("/proc/{pid}")))?;
    let is_ours = meta.is_some_and(|meta| meta.uid() == geteuid().as_raw());
    Ok(is_ours && process_runs(pid)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_a_name_with_spaces_and_brackets() {
        let line = "7 (a) b (c) Z 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 3 0 4711 9 12";
        let stat = ProcessStat::read(line).unwrap();
        assert!(stat.ended && !stat.stopped);
        assert_eq!(stat.parent, Pid::from_raw(1));
        assert_eq!(
            (stat.threads, stat.start_ticks, stat.resident_pages),
            (3, 4711, 12)
        );
        assert!(ProcessStat::read("7 (short) R 1").is_none());
        assert!(
            ProcessStat::read(&line.replace(") Z", ") X")).is_none(),
            "it is gone"
        );
        let going = "7 (a) Z 0 -1 -1 0 -1 4 1 2 3 4 5 6 7 8 20 0 3 0 4711 9 12";
        assert_eq!(ProcessStat::read(going).unwrap().group, None);
    }
}
