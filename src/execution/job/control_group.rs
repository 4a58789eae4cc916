//! Control groups (version 2) of jobs: where the service's own group has been delegated to it, the system bounds the memory and the
//! processes of each job as a whole, and ends all of them at once. Elsewhere the looks of the supervisor do
//! ([`super::limits`]).
//!
//! A group with groups below it has no processes of its own. So the service goes into a group `bespeak-service` below the one that
//! it was started in, with its supervisors, and beside it each job has a group while it runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::agreement::{Limit, Run};
use crate::catalogue::JobLimits;
use crate::execution::job::excess::Excess;

/// Where the system has the groups.
const ROOT: &str = "/sys/fs/cgroup";
/// The name of the group of the service and its supervisors.
const SERVICE: &str = "bespeak-service";
/// How the names of the groups of jobs begin.
const JOB: &str = "job-";
/// What is bounded.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Divides the group of this process, which is the service, so that jobs can have groups beside it.
///
/// # Errors
/// Why jobs have no groups of their own; everything is as it was then.
pub(crate) fn divide_own_group() -> Result<(), String> {
    let own = own_group().ok_or("the system has no control groups of version 2 alone")?;
    if own.ends_with(SERVICE) {
        remove_left_groups(&own);
        return Ok(());
    }
    let there = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    let there: Vec<&str> = there.split_whitespace().collect();
    if let Some(missing) = CONTROLLERS.iter().find(|of| !there.contains(of)) {
        return Err(format!("{} has no controller {missing}", own.display()));
    }
    let service = own.join(SERVICE);
    let divided = fs::create_dir(&service)
        .or_else(|error| if service.is_dir() { Ok(()) } else { Err(error) })
        .and_then(|()| enter(&service))
        .and_then(|()| {
            let wanted = CONTROLLERS.map(|of| format!("+{of}")).join(" ");
            fs::write(own.join("cgroup.subtree_control"), wanted)
        });
    match divided {
        Ok(()) => {
            remove_left_groups(&service);
            Ok(())
        }
        Err(error) => {
            // Its own group may have other processes, or belong to another.
            let _ = enter(&own).and_then(|()| fs::remove_dir(&service));
            Err(format!("{} cannot be divided: {error}", own.display()))
        }
    }
}

/// Removes the groups of jobs that are over and whose supervisors were killed.
fn remove_left_groups(service: &Path) {
    let groups = service.parent().and_then(|parent| fs::read_dir(parent).ok());
    for group in groups.into_iter().flatten().flatten() {
        if group.file_name().to_string_lossy().starts_with(JOB) {
            // One with processes stays.
            let _ = fs::remove_dir(group.path());
        }
    }
}

/// The control group of a job.
#[derive(Debug, Clone)]
pub(crate) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// That of a run; none where the service's group is not divided.
    pub(crate) fn of(run: Run) -> Option<Self> {
        let own = own_group().filter(|own| own.ends_with(SERVICE))?;
        let path = own.parent()?.join(format!("{JOB}{run}"));
        Some(Self { path })
    }

    /// Makes this process, which becomes the job, its first member, with limits. `isolating` processes do not count.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn enter(&self, limits: &JobLimits, isolating: u64) -> io::Result<()> {
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let set = |file: &str, value: String| fs::write(self.path.join(file), value);
        if let Some(most) = limits.memory {
            set("memory.max", most.to_string())?;
            // Out of memory, all of it ends, not the part that the system would choose.
            set("memory.oom.group", "1".to_owned())?;
            // Swapped memory would be as much again.
            let _ = set("memory.swap.max", "0".to_owned());
        }
        if let Some(most) = limits.processes {
            // The supervisor sees that the limit is passed, and ends the job: so there is room for one more.
            set("pids.max", (most + isolating + 1).to_string())?;
        }
        enter(&self.path)
    }

    /// Kills all of its processes at once.
    pub(crate) fn kill(&self) {
        // Before Linux 5.14 there is no such file. Its processes are looked for besides, so nothing is lost.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// The limit that a job which did not end well has passed: the system ended its processes for want of memory, or made no more of
    /// them.
    pub(crate) fn excess(&self, limits: &JobLimits) -> Option<Excess> {
        let events = |file: &str| fs::read_to_string(self.path.join(file)).unwrap_or_default();
        if let Some(most) = limits
            .memory
            .filter(|_| passed_its_memory(&events("memory.events")))
        {
            let peak = events("memory.peak").trim().parse().unwrap_or(most);
            let (limit, found) = (Limit::Memory, most.max(peak));
            return Some(Excess { limit, found, most });
        }
        let most = limits
            .processes
            .filter(|_| count_of_event(&events("pids.events"), "max") > 0)?;
        let (limit, found) = (Limit::Processes, most + 1);
        Some(Excess { limit, found, most })
    }

    /// Removes it, once it has no processes; a start of the service removes it else.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Whether processes were ended because their group had reached its own limit, by its file of events. Where the machine as a whole is
/// out of memory they are ended, too, which is no fault of the job.
fn passed_its_memory(events: &str) -> bool {
    count_of_event(events, "oom") > 0 && count_of_event(events, "oom_kill") > 0
}

/// How often an event has happened, by a file of events of a group.
fn count_of_event(events: &str, name: &str) -> u64 {
    let mut counts = events.lines().filter_map(|line| line.split_once(' '));
    let count = counts.find(|(of, _)| *of == name).map(|(_, count)| count.trim());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Puts this process into a group.
fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// The folder of the group of this process; none where the system has groups of version 1, or none.
fn own_group() -> Option<PathBuf> {
    let root = Path::new(ROOT);
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = path_of_group(&groups)?;
    root.join("cgroup.controllers")
        .is_file()
        .then(|| root.join(path.trim_start_matches('/')))
}

/// The path of the only group of version 2 in a list of groups.
fn path_of_group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_version_2_is_found_in_the_list() {
        let service = "0::/system.slice/bespeak.service\n";
        assert_eq!(path_of_group(service), Some("/system.slice/bespeak.service"));
        assert_eq!(path_of_group("4:memory:/a\n1:cpu:/\n0::/b\n"), Some("/b"));
        assert_eq!(path_of_group("4:memory:/a\n"), None);
    }

    #[test]
    fn memory_that_the_machine_lacks_is_no_excess_of_the_job() {
        let own = "low 0\nhigh 0\nmax 812\noom 3\noom_kill 2\noom_group_kill 1\n";
        let machine = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 1\n";
        assert!(passed_its_memory(own) && !passed_its_memory(machine));
        assert!(!passed_its_memory("low 0\nmax 812\noom 1\noom_kill 0\n"));
    }
}
