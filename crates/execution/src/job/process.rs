//! Processes of this machine as they are named in durable records, and how to tell them apart from later ones that
//! happen to get the same number.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::job::control_group::ControlGroup;
use crate::job::isolation_record::{RecordedNamespace, SharedMemory};
use crate::job::process_stat::{
    ProcessStat, all_process_ids, if_process_stat_is_there, read_while_process_runs,
};
use crate::job::shortage::is_shortage;
use crate::job::spec::MARK;

/// Rounds of looking for the rest of a job: each process that is killed could have started one more before.
const SWEEPS_MAX: usize = 100;
/// How long killed processes have to be gone before it is looked for them again.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// A process, for ever: its number is used again, but not with the same start in the same boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pid: i32,
    /// Clock ticks from the machine's start to the process's.
    start_ticks: u64,
    /// Which start of the machine.
    boot: String,
}

impl ProcessIdentity {
    /// This process.
    pub(crate) fn current() -> io::Result<Self> {
        Self::of(rustix::process::getpid())
    }

    /// The process that has a number now.
    pub(crate) fn of(pid: Pid) -> io::Result<Self> {
        let stat = ProcessStat::of(pid)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid: pid.as_raw_pid(),
            start_ticks: stat.start_ticks,
            boot: boot_id_of_processes()?,
        })
    }

    /// Its number, which is also that of the group it leads.
    pub(crate) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.open().is_ok_and(|process| process.is_some())
    }

    /// A descriptor of it by which it can be waited for; `None` when it is gone, or ended and only not yet reaped.
    pub(crate) fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = self.pid() else { return Ok(None) };
        if boot_id_of_processes()? != self.boot {
            return Ok(None);
        }
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            // The number is free, or belongs to a thread by now.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
            process => process?,
        };
        // Only data read after opening are certain to be of the opened process.
        let same =
            ProcessStat::of(pid)?.is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.ended);
        Ok(same.then_some(process))
    }
}

/// Waits until a process has ended, or for so long; answers whether it has.
pub(crate) fn process_ended_within(process: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Signals every process of a group; none being left is as good.
pub(crate) fn signal_process_group(leader: Pid, signal: Signal) -> io::Result<()> {
    match kill_process_group(leader, signal) {
        Err(Errno::SRCH) => Ok(()),
        done => Ok(done?),
    }
}

/// Signals the program of an isolated job, whose leader is the tool that isolates it, with the processes of the program's group and of
/// the leader's group. Neither the leader nor the first process of the job's namespace, a child of the leader, gets the signal.
/// Returns how many there were.
///
/// # Errors
/// When the system does not tell which these are.
pub(crate) fn signal_isolated_program(leader: Pid, signal: Signal) -> io::Result<usize> {
    let mut below = Vec::new();
    for pid in all_process_ids()? {
        if let Some(stat) = ProcessStat::of(pid)?.filter(|stat| pid != leader && stat.parent != Some(leader))
        {
            below.push((pid, stat));
        }
    }
    let is_program = |process: &&(Pid, ProcessStat)| {
        // Its grandparent is the leader, and in its namespace it has the number after the first.
        let first = process
            .1
            .parent
            .and_then(|first| ProcessStat::of(first).ok().flatten());
        first.is_some_and(|first| first.parent == Some(leader))
            && innermost_number_of_process(process.0) == Some(2)
    };
    let own = below.iter().find(is_program).and_then(|below| below.1.group);
    let mut found = 0;
    for (pid, seen) in &below {
        if seen.group == Some(leader) || (own.is_some() && seen.group == own) {
            found += usize::from(signal_process(*pid, seen, signal)?);
        }
    }
    Ok(found)
}

/// The number that a process has in the innermost of its namespaces.
fn innermost_number_of_process(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Signals a process that was seen before, unless it is gone. Returns whether it was there.
fn signal_process(pid: Pid, seen: &ProcessStat, signal: Signal) -> io::Result<bool> {
    // Opened and looked at again: the number might have gone to another process meanwhile.
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from) {
        Err(error) if is_shortage(&error) => return Err(error),
        Err(_) => return Ok(false),
        Ok(descriptor) => descriptor,
    };
    let now = ProcessStat::of(pid)?;
    let is_there = now.is_some_and(|stat| stat.start_ticks == seen.start_ticks && !stat.ended);
    if is_there {
        let _ = pidfd_send_signal(descriptor.as_fd(), signal);
    }
    Ok(is_there)
}

/// The use of the processes of a job.
#[derive(Debug, Default)]
pub(crate) struct ProcessUsage {
    /// Their threads, of each at least one.
    pub(crate) threads: u64,
    /// Bytes of memory; shared memory counts for each process.
    pub(crate) resident: u64,
    processes: Vec<(Pid, ProcessStat)>,
}

impl ProcessUsage {
    fn add(&mut self, pid: Pid, stat: ProcessStat) {
        self.threads += stat.threads.max(1);
        self.resident += stat.resident_pages * rustix::param::page_size() as u64;
        self.processes.push((pid, stat));
    }

    /// Bytes of memory that they use, with shared memory counted in parts, where the system gives this, and the processes that have mapped
    /// files in memory or other shared memory. More memory takes longer.
    pub(crate) fn proportional(&self) -> (u64, Vec<Pid>) {
        let (mut bytes, mut sharing) = (0, Vec::new());
        for pid in self.processes() {
            let read = |folder: &str| Ok(fs::read_to_string(format!("{folder}/smaps_rollup")).ok());
            let Ok(Some(Some(text))) = read_while_process_runs(pid, read) else {
                continue;
            };
            let own = ["Pss:", "SwapPss:"].map(|name| job_process_memory_bytes(&text, name).unwrap_or(0));
            bytes += own.iter().sum::<u64>();
            // A system that does not tell may have some.
            if job_process_memory_bytes(&text, "Pss_Shmem:") != Some(0) {
                sharing.push(pid);
            }
        }
        (bytes, sharing)
    }

    /// Their numbers.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Pid> {
        self.processes.iter().map(|(pid, _)| *pid)
    }
}

/// Bytes of memory behind a name in a text of the system, where it has the name.
pub(crate) fn job_process_memory_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The processes of a job, to be looked at again and again: its leader, the processes with its mark, in any group or session,
/// and the descendants of these. Whether a process belongs to it is found out once.
pub(crate) struct JobProcesses {
    mark: String,
    /// By number and start, whether it belongs to the job.
    known: HashMap<(Pid, u64), bool>,
    /// The record of the tool that isolates it, where it is isolated, and the process namespace once that is known from it: every
    /// process in that is the job's, whatever it has made of its marks.
    record: Option<PathBuf>,
    namespace: Option<RecordedNamespace>,
    /// Its control group, where it has one.
    group: Option<ControlGroup>,
}

impl JobProcesses {
    /// Of the job of an agreement with this leader, where it is known: a launcher has no mark until it becomes the program,
    /// and a program may hide it.
    pub(crate) fn of(agreement: Uuid, leader: Option<&ProcessIdentity>) -> Self {
        let leader = leader.and_then(|leader| Some(((leader.pid()?, leader.start_ticks), true)));
        Self {
            mark: format!("{MARK}={agreement}"),
            known: leader.into_iter().collect(),
            record: None,
            namespace: None,
            group: None,
        }
    }

    /// The processes of a job that is isolated, where the tool that isolates it keeps this record.
    pub(crate) fn isolated_by(self, record: Option<PathBuf>) -> Self {
        Self { record, ..self }
    }

    /// The processes of a job that may have a control group of its own.
    pub(crate) fn in_group(self, group: Option<ControlGroup>) -> Self {
        Self { group, ..self }
    }

    /// Kills all of them. Costs some looks at each process of the machine, so it is done once, at a job's end.
    ///
    /// # Errors
    /// When the system does not tell, or they come back faster than they are killed.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if let Some(group) = &self.group {
            group.kill();
        }
        // One that was looked at while it was becoming another program may have seemed not to belong here.
        self.known.retain(|_, belongs| *belongs);
        for _ in 0..SWEEPS_MAX {
            // Held first, so that none of them starts others while the rest is looked for.
            for _ in 0..SWEEPS_MAX {
                if self.signal(Signal::STOP)? == 0 {
                    break;
                }
            }
            if self.signal(Signal::KILL)? == 0 {
                return Ok(());
            }
            std::thread::sleep(SWEEP_PAUSE);
        }
        Err(io::Error::other(
            "processes of the job come back faster than they are killed",
        ))
    }

    /// The shared memory (`/dev/shm`) of a job that has its own.
    pub(crate) fn shared_memory(&self) -> Option<SharedMemory> {
        self.namespace.as_ref()?.shared_memory()
    }

    /// Whether they are known by the namespace of an isolated job. Before that, no program of the job runs.
    pub(crate) fn have_namespace(&self) -> bool {
        self.namespace.is_some()
    }

    /// Signals each of them, without the stopped ones where the signal is to stop. Returns their number.
    fn signal(&mut self, signal: Signal) -> io::Result<usize> {
        let mut found = 0;
        let used = self.used()?;
        for (pid, seen) in used.processes {
            if seen.stopped && signal == Signal::STOP {
                continue;
            }
            found += usize::from(signal_process(pid, &seen, signal)?);
        }
        Ok(found)
    }

    /// Their present use. Costs a look at each process of the machine.
    ///
    /// # Errors
    /// When the system does not tell.
    pub(crate) fn used(&mut self) -> io::Result<ProcessUsage> {
        if self.namespace.is_none()
            && let Some(record) = &self.record
        {
            self.namespace = RecordedNamespace::of(record)?;
            if self.namespace.is_some() {
                // A process that was looked at before may be in it.
                self.known.retain(|_, belongs| *belongs);
            }
        }
        let mut used = ProcessUsage::default();
        let mut others: Vec<(Pid, ProcessStat)> = Vec::new();
        let mut still = HashMap::with_capacity(self.known.len());
        for pid in all_process_ids()? {
            let Some(stat) = ProcessStat::of(pid)?.filter(|stat| !stat.ended) else {
                continue;
            };
            let process = (pid, stat.start_ticks);
            let known = self.known.get(&process).copied();
            let belongs = match known {
                Some(belongs) => belongs,
                None if used
                    .processes
                    .iter()
                    .any(|(process, _)| Some(*process) == stat.parent) =>
                {
                    true
                }
                None if self
                    .namespace
                    .as_ref()
                    .is_some_and(|namespace| namespace.has(pid)) =>
                {
                    true
                }
                None => process_carries_mark(&stat.folder(pid), &self.mark)?,
            };
            still.insert(process, belongs);
            if belongs {
                used.add(pid, stat);
            } else {
                others.push((pid, stat));
            }
        }
        // A child has a lower number than its parent where numbers have begun again. One that hides is known by its parent alone.
        let mut members: HashSet<Pid> = used.processes().collect();
        while let Some(at) = others
            .iter()
            .position(|(_, stat)| stat.parent.is_some_and(|parent| members.contains(&parent)))
        {
            let (pid, stat) = others.swap_remove(at);
            still.insert((pid, stat.start_ticks), true);
            members.insert(pid);
            used.add(pid, stat);
        }
        self.known = still;
        Ok(used)
    }
}

/// Whether the process that the system shows in a folder was started with this entry in its environment; `false` for processes of other
/// users.
fn process_carries_mark(folder: &str, mark: &str) -> io::Result<bool> {
    let environ = if_process_stat_is_there(fs::read(format!("{folder}/environ")))?.unwrap_or_default();
    let mut entries = environ.split(|byte| *byte == 0);
    Ok(entries.any(|entry| entry == mark.as_bytes()))
}

/// The identity of this start of the machine.
fn boot_id_of_processes() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a program whose first thread ends at once, the second one when it has read a byte, and the third one when there is nothing
    /// more to read. Returns it without its first thread.
    fn start_without_first_thread(agreement: Uuid) -> Child {
        let exit = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
        let program = format!(
            "threads->create(sub {{ sysread STDIN, my $byte, 1 }}); \
             threads->create(sub {{ threads->object(1)->join; 1 while sysread STDIN, my $byte, 1 }})->detach; \
             syscall({exit}, 0)"
        );
        let child = Command::new("perl")
            .args(["-Mthreads", "-e", &program])
            .env(MARK, agreement.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_counts_and_is_stopped_and_killed() {
        let agreement = Uuid::now_v7();
        let mut child = start_without_first_thread(agreement);
        let pid = Pid::from_child(&child);
        let identity = ProcessIdentity::of(pid).unwrap();
        assert!(identity.is_alive());
        let mut members = JobProcesses::of(agreement, None);
        let used = members.used().unwrap();
        assert_eq!(used.processes().collect::<Vec<_>>(), [pid]);
        assert_eq!(used.threads, 3);
        assert!(used.resident > 0 && used.proportional().0 > 0, "{used:?}");
        while members.signal(Signal::STOP).unwrap() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(members.used().unwrap().processes.len(), 1, "it stands");
        members.kill().unwrap();
        assert!(!identity.is_alive());
        child.wait().unwrap();
        assert_eq!(members.used().unwrap().processes.len(), 0);
    }

    #[test]
    fn what_is_read_by_a_thread_that_ends_meanwhile_is_read_again_by_another() {
        let mut child = start_without_first_thread(Uuid::now_v7());
        let mut input = child.stdin.take().unwrap();
        let mut folders = Vec::new();
        let read = read_while_process_runs(Pid::from_child(&child), |folder| {
            folders.push(folder.to_owned());
            if folders.len() == 1 {
                input.write_all(b"\n")?;
                while Path::new(folder).exists() {
                    std::thread::yield_now();
                }
            }
            Ok(folders.len())
        });
        assert_eq!(read.unwrap(), Some(2));
        assert_ne!(folders[0], folders[1]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_leader_belongs_to_its_job_before_it_has_the_mark_and_its_children_that_never_have_one_too() {
        // A launcher, or a program that hides its environment, which then becomes two.
        let mut child = Command::new("sh")
            .args(["-c", "read line; sleep 1000 & wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let leader = ProcessIdentity::of(Pid::from_child(&child)).unwrap();
        let mut members = JobProcesses::of(Uuid::now_v7(), Some(&leader));
        assert_eq!(members.used().unwrap().processes.len(), 1);
        drop(child.stdin.take());
        while members.used().unwrap().processes.len() < 2 {
            assert!(leader.is_alive());
            std::thread::yield_now();
        }
        members.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(members.used().unwrap().processes.len(), 0);
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
        assert!(!process_ended_within(&process, Duration::ZERO).unwrap());
        child.kill().unwrap();
        assert!(process_ended_within(&process, Duration::from_mins(1)).unwrap());
        assert!(!identity.is_alive(), "ended and not yet reaped");
        child.wait().unwrap();
        assert!(!identity.is_alive(), "reaped");
    }
}
