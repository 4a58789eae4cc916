//! Processes of this machine as they are named in durable records, and how to tell them apart from later ones that
//! happen to get the same number.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The variable in a job's environment that marks its processes, whichever groups and sessions they made for themselves.
pub(super) const MARK: &str = "BESPEAK_AGREEMENT";

/// Rounds of looking for what is left of a job: each process that is killed could have started one more before.
const SWEEPS_MAX: usize = 10;

/// A process, for ever: its number is used again, but not with the same start in the same boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pid: i32,
    /// Clock ticks from the machine's start to the process's.
    start_ticks: u64,
    /// Which start of the machine.
    boot: String,
}

impl ProcessIdentity {
    /// This process.
    pub(super) fn current() -> io::Result<Self> {
        Self::of(rustix::process::getpid())
    }

    /// The process that has a number now.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        let stat = Stat::of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid: pid.as_raw_pid(),
            start_ticks: stat.start_ticks,
            boot: boot()?,
        })
    }

    /// Its number, which is also that of the group it leads.
    pub(super) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        self.open().is_ok_and(|process| process.is_some())
    }

    /// A descriptor of it by which it can be waited for; `None` when it is gone, or ended and only not yet reaped.
    pub(super) fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = self.pid().filter(|_| boot().is_ok_and(|boot| boot == self.boot)) else {
            return Ok(None);
        };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            // The number is free, or belongs to a thread by now.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
            process => process?,
        };
        // Only what is read after opening is certain to be of the process that was opened.
        let same = Stat::of(pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.ended);
        Ok(same.then_some(process))
    }
}

/// Waits until a process has ended, or for so long; answers whether it has.
pub(super) fn ended_within(process: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Signals every process of a group; none being left is as good.
pub(super) fn signal_group(leader: Pid, signal: Signal) -> io::Result<()> {
    match kill_process_group(leader, signal) {
        Err(Errno::SRCH) => Ok(()),
        done => Ok(done?),
    }
}

/// Kills every process that carries the mark of a job, in whatever group or session it is. Costs a look at each process
/// of the machine, so it is done once, at a job's end.
pub(super) fn kill_marked(agreement: Uuid) -> io::Result<()> {
    let mark = format!("{MARK}={agreement}");
    for _ in 0..SWEEPS_MAX {
        let mut found = false;
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
                .and_then(Pid::from_raw)
            else {
                continue;
            };
            if !carries(pid, &mark) {
                continue;
            }
            // Opened and looked at again: the number might have gone to another process meanwhile.
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
                && carries(pid, &mark)
            {
                found = true;
                let _ = pidfd_send_signal(process.as_fd(), Signal::KILL);
                ended_within(&process, Duration::from_secs(1))?;
            }
        }
        if !found {
            return Ok(());
        }
    }
    Err(io::Error::other(
        "processes of the job come back faster than they are killed",
    ))
}

/// Whether a process was started with this entry in its environment; `false` for those of other users.
fn carries(pid: Pid, mark: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark.as_bytes())
    })
}

/// The parts of `/proc/PID/stat` that matter here.
struct Stat {
    start_ticks: u64,
    ended: bool,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads fields 3 and 22; the name in field 2 may hold spaces and brackets, so they are counted from its end.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let start_ticks = fields.nth(18)?.parse().ok()?;
        Some(Self {
            start_ticks,
            ended: matches!(state, "Z" | "X" | "x"),
        })
    }
}

/// The identity of this start of the machine.
fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn fields_are_counted_after_a_name_with_spaces_and_brackets() {
        let line = "7 (a) b (c) Z 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let stat = Stat::read(line).unwrap();
        assert!(stat.ended);
        assert_eq!(stat.start_ticks, 4711);
        assert!(Stat::read("7 (short) R 1").is_none());
    }

    #[test]
    fn a_process_is_itself_until_it_ends_and_never_another_one() {
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::of(Pid::from_child(&child)).unwrap();
        assert!(identity.is_alive());
        assert!(
            !ProcessIdentity {
                start_ticks: identity.start_ticks + 1,
                ..identity.clone()
            }
            .is_alive()
        );
        assert!(
            !ProcessIdentity {
                boot: "another".into(),
                ..identity.clone()
            }
            .is_alive()
        );
        let process = identity.open().unwrap().unwrap();
        assert!(!ended_within(&process, Duration::ZERO).unwrap());
        child.kill().unwrap();
        assert!(ended_within(&process, Duration::from_mins(1)).unwrap());
        assert!(!identity.is_alive(), "ended and not yet reaped");
        child.wait().unwrap();
        assert!(!identity.is_alive(), "reaped");
    }
}
