//! Control groups of jobs. Of version 2, where the service's own group has been delegated to it or it runs as root, the system bounds the
//! memory and the processes of each job as a whole, and ends all of them at once. Of version 1, where it may make some, the system bounds the
//! processes. Elsewhere the looks of the supervisor do, and the limit of processes in the job's own user namespace ([`super::limits`]).
//!
//! A group of version 2 with groups below it has no processes of its own. So the service is started in a group `bespeak-service` (systemd:
//! `DelegateSubgroup`), with its supervisors in it, and beside it each job has a group while it runs. The service does not go there by
//! itself: after a restart the service manager could not start it in a group that has been divided. A service that runs as root without
//! such a group makes one for its jobs at the top.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use domain::agreement::{Limit, Run};
use domain::catalogue::JobLimits;
use rustix::fs::{Access, access};

use crate::job::excess::Excess;

/// Where the system has the groups.
const ROOT: &str = "/sys/fs/cgroup";
/// Where it has those of version 1 that bound processes.
const ROOT_OF_PROCESSES: &str = "/sys/fs/cgroup/pids";
/// The name of the group of the service and its supervisors.
const SERVICE: &str = "bespeak-service";
/// The name of the group that a service makes for its jobs where it runs as root.
const JOBS: &str = "bespeak-jobs";
/// How the names of the groups of jobs begin.
const JOB: &str = "job-";
/// The controllers that bound jobs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The highest number of processes that the system takes as a limit: it never has more.
const PROCESSES_MAX: u64 = 4 << 20;

/// The limits of jobs that control groups hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldLimits {
    /// The limits of memory and of processes.
    MemoryAndProcesses,
    /// The limit of processes.
    Processes,
}

/// Has jobs of the service, which this process is, get control groups of their own.
///
/// # Errors
/// Why they get none.
pub fn use_control_groups() -> Result<HeldLimits, String> {
    let why = match divide_control_groups(Path::new(ROOT)) {
        Ok(()) => return Ok(HeldLimits::MemoryAndProcesses),
        Err(why) => why,
    };
    place_of_version_1_groups()
        .map(|_| HeldLimits::Processes)
        .ok_or(why)
}

/// Makes the group of version 2 in which groups of jobs are.
fn divide_control_groups(root: &Path) -> Result<(), String> {
    let own = own_control_group().ok_or("the system has no control groups of version 2 alone")?;
    let is_delegated = own.ends_with(SERVICE);
    let all = match own.parent().filter(|_| is_delegated) {
        Some(all) => all.to_owned(),
        None if rustix::process::geteuid().is_root() => root.join(JOBS),
        None => return Err(format!("the service was not started in a group {SERVICE}")),
    };
    let wanted = CONTROLLERS.map(|controller| format!("+{controller}")).join(" ");
    let make = || -> io::Result<()> {
        if !is_delegated {
            make_control_group(&all)?;
            // Service managers have done this.
            let _ = fs::write(root.join("cgroup.subtree_control"), &wanted);
        }
        fs::write(all.join("cgroup.subtree_control"), &wanted)
    };
    make().map_err(|error| format!("{} cannot be divided: {error}", all.display()))
}

/// The group in which the groups of jobs are, and whether these bound memory; none where jobs have none.
fn place_of_control_groups() -> Option<(PathBuf, bool)> {
    let divided = |all: PathBuf| {
        let given = fs::read_to_string(all.join("cgroup.subtree_control")).ok()?;
        let given: Vec<&str> = given.split_whitespace().collect();
        let is_divided = CONTROLLERS.iter().all(|controller| given.contains(controller));
        is_divided.then_some((all, true))
    };
    let delegated = || {
        divided(
            own_control_group()
                .filter(|own| own.ends_with(SERVICE))?
                .parent()?
                .to_owned(),
        )
    };
    let own = || divided(own_control_group().map(|_| Path::new(ROOT).join(JOBS))?);
    let version_1 = || Some((place_of_version_1_groups()?, false));
    delegated().or_else(own).or_else(version_1)
}

/// The group of version 1 of this process that bounds processes, where it may make others below.
fn place_of_version_1_groups() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = control_group_of_processes(&groups)?;
    let own = Path::new(ROOT_OF_PROCESSES).join(path.trim_start_matches('/'));
    let is_ours = own.join("cgroup.procs").is_file() && access(&own, Access::WRITE_OK).is_ok();
    is_ours.then_some(own)
}

/// The path of the group of version 1 that bounds processes in a list of groups.
fn control_group_of_processes(groups: &str) -> Option<&str> {
    let mut parts = groups.lines().map(|line| line.splitn(3, ':'));
    parts.find_map(|mut parts| {
        let controllers = parts.nth(1)?;
        controllers
            .split(',')
            .any(|controller| controller == "pids")
            .then(|| parts.next())?
    })
}

fn make_control_group(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The control group of a job.
#[derive(Debug, Clone)]
pub(crate) struct ControlGroup {
    path: PathBuf,
    holds_memory: bool,
}

impl ControlGroup {
    /// The control group of a run; none where jobs have none.
    pub(crate) fn of(run: Run) -> Option<Self> {
        let (all, holds_memory) = place_of_control_groups()?;
        let path = all.join(format!("{JOB}{run}"));
        Some(Self { path, holds_memory })
    }

    /// The group of this folder, whatever is there.
    #[cfg(test)]
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            holds_memory: true,
        }
    }

    /// Its folder.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it bounds the memory of its job.
    pub(crate) fn holds_memory(&self) -> bool {
        self.holds_memory
    }

    /// Makes this process, which becomes the job, its first member, with limits. `isolating` processes do not count.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn enter(&self, limits: &JobLimits, isolating: u64) -> io::Result<()> {
        make_control_group(&self.path)?;
        let set = |file: &str, value: String| fs::write(self.path.join(file), value);
        if let Some(most) = limits.memory.filter(|_| self.holds_memory) {
            set("memory.max", most.to_string())?;
            // Out of memory, all of it ends, not the part that the system would choose.
            set("memory.oom.group", "1".to_owned())?;
            // Swapped memory would be as much again.
            let _ = set("memory.swap.max", "0".to_owned());
        }
        if let Some(most) = limits.processes {
            // The supervisor sees that the limit is passed, and ends the job: so there is room for one more.
            let most = most.saturating_add(isolating + 1).min(PROCESSES_MAX);
            set("pids.max", most.to_string())?;
        }
        enter_control_group(&self.path)
    }

    /// Kills all of its processes at once.
    pub(crate) fn kill(&self) {
        // Before Linux 5.14, and in version 1, there is no such file. Its processes are looked for besides, so nothing is lost.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// The limit that a job has passed: the system ended its processes for want of memory, or made no more of them and it `failed`.
    pub(crate) fn excess(&self, limits: &JobLimits, failed: bool) -> Option<Excess> {
        let events = |file: &str| fs::read_to_string(self.path.join(file)).unwrap_or_default();
        if let Some(most) = limits
            .memory
            .filter(|_| control_group_passed_its_memory(&events("memory.events")))
        {
            let peak = events("memory.peak").trim().parse().unwrap_or(most);
            let (limit, found) = (Limit::Memory, most.max(peak));
            return Some(Excess { limit, found, most });
        }
        let refused = failed && count_of_control_group_event(&events("pids.events"), "max") > 0;
        let most = limits.processes.filter(|_| refused)?;
        let (limit, found) = (Limit::Processes, most + 1);
        Some(Excess { limit, found, most })
    }

    /// Removes it, once it has no processes.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Whether processes were ended because their group had reached its own limit, by its file of events. Where the machine as a whole is
/// out of memory they are ended, too, which is no fault of the job.
fn control_group_passed_its_memory(events: &str) -> bool {
    count_of_control_group_event(events, "oom") > 0 && count_of_control_group_event(events, "oom_kill") > 0
}

/// How often an event has happened, by a file of events of a group.
fn count_of_control_group_event(events: &str, name: &str) -> u64 {
    let mut counts = events.lines().filter_map(|line| line.split_once(' '));
    let count = counts
        .find(|(count, _)| *count == name)
        .map(|(_, count)| count.trim());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Puts this process into a group.
fn enter_control_group(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// The folder of the group of this process; none where the system has groups of version 1, or none.
fn own_control_group() -> Option<PathBuf> {
    let root = Path::new(ROOT);
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = path_of_control_group(&groups)?;
    root.join("cgroup.controllers")
        .is_file()
        .then(|| root.join(path.trim_start_matches('/')))
}

/// The path of the only group of version 2 in a list of groups.
fn path_of_control_group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_version_2_is_found_in_the_list() {
        let service = "0::/system.slice/bespeak.service\n";
        assert_eq!(
            path_of_control_group(service),
            Some("/system.slice/bespeak.service")
        );
        assert_eq!(path_of_control_group("4:memory:/a\n1:cpu:/\n0::/b\n"), Some("/b"));
        assert_eq!(path_of_control_group("4:memory:/a\n"), None);
    }

    #[test]
    fn the_group_of_version_1_that_bounds_processes_is_found_among_others() {
        let groups = "9:name=systemd:/s\n8:cpu,pids:/a:b\n7:cpuset:/c\n0::/\n";
        assert_eq!(control_group_of_processes(groups), Some("/a:b"));
        assert_eq!(control_group_of_processes("8:cpu:/pids\n0::/pids\n"), None);
    }

    #[test]
    fn memory_that_the_machine_lacks_is_no_excess_of_the_job() {
        let own = "low 0\nhigh 0\nmax 812\noom 3\noom_kill 2\noom_group_kill 1\n";
        let machine = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 1\n";
        assert!(control_group_passed_its_memory(own) && !control_group_passed_its_memory(machine));
        assert!(!control_group_passed_its_memory(
            "low 0\nmax 812\noom 1\noom_kill 0\n"
        ));
    }

    #[test]
    fn no_limit_of_processes_is_higher_than_the_system_takes() {
        for (most, expected) in [(40, "43"), (1 << 40, "4194304"), (u64::MAX, "4194304")] {
            let place = tempfile::tempdir().unwrap();
            let limits = JobLimits {
                processes: Some(most),
                ..JobLimits::default()
            };
            ControlGroup::at(place.path().to_owned())
                .enter(&limits, 2)
                .unwrap();
            let set = fs::read_to_string(place.path().join("pids.max")).unwrap();
            assert_eq!(set, expected, "{most}");
        }
    }
}
