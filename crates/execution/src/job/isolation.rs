//! The isolation of jobs of this machine, by [bubblewrap](https://github.com/containers/bubblewrap): each job has users, mounts,
//! processes and, by configuration, a network of its own. It sees its files, the system's programs, and what its application shows
//! it. It has no privileges and gets none, and the system calls that no job needs fail.
//!
//! The process that claims the job becomes bubblewrap. Bubblewrap stays as the job's leader and starts the first process of the
//! job's process namespace, which starts the program. When that first process is killed, the system ends every process of the
//! namespace, whatever it has done to hide.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use domain::catalogue::Isolation;
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;

use super::refused_calls::{RefusedCalls, filter_of_refused_calls};
use crate::JobSpec;
use crate::programs::find_program;

/// The name of the tool, and of its package in most distributions.
const TOOL: &str = "bwrap";
/// The name of the tool that limits processes inside, which is in util-linux.
const LIMITER: &str = "prlimit";
/// Processes that a job may have in its namespace beside its own: the first one there, and one by which the supervisor sees that there are
/// too many, and ends the job.
const BESIDE_ITS_OWN: u64 = 2;
/// Where a job finds its working folder and its folder for temporary files.
const WORK: &str = "/work";
const TEMPORARY: &str = "/tmp";
/// The user and group that a job has in its own view. Outside it is the user of the service.
const USER: &str = "1000";
/// Folders of the system that every job sees, where they are: links to folders below /usr stay links.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What the dynamic linker and the system's links to programs need besides.
const LINKER: [&str; 4] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
];
/// What programs need to find others on the network, and to know them.
const NETWORK: [&str; 8] = [
    "/etc/ca-certificates",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
/// Bytes of files in memory that a job without a limit of memory may have in /dev/shm.
const SHARED_MEMORY: u64 = 1 << 30;

/// The tool that isolates jobs, where this machine has one.
pub(crate) fn isolating_tool() -> Option<PathBuf> {
    find_program(TOOL)
}

/// Tries the isolation of jobs on this machine. Returns why jobs cannot be isolated, if they cannot.
pub fn why_not_isolated() -> Option<String> {
    let Some(tool) = isolating_tool() else {
        return Some("bubblewrap (bwrap) is not installed".to_owned());
    };
    match try_isolation(&tool) {
        Ok(None) => None,
        Ok(Some(said)) => Some(format!("{} says: {said}", tool.display())),
        Err(error) => Some(format!("{} cannot be run: {error}", tool.display())),
    }
}

fn try_isolation(tool: &Path) -> io::Result<Option<String>> {
    let (done, said) = run_isolated(tool, &["/bin/true".to_owned()])?;
    Ok((!done).then_some(said))
}

/// Runs a command as jobs are isolated. Returns whether it ended well, and what it said of its failure.
fn run_isolated(tool: &Path, texts: &[String]) -> io::Result<(bool, String)> {
    let filter = file_for_isolation("system calls", &filter_of_refused_calls(RefusedCalls::default())?)?;
    let mut command = Command::new(tool);
    isolate_command(&mut command, &Isolation::default());
    command.arg("--seccomp").arg(descriptor_for_isolation(&filter));
    let output = command
        .arg("--")
        .args(texts)
        .env_clear()
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((output.status.success(), said))
}

/// Tries whether the system holds a limit of processes in the user namespace of an isolated job. Returns why it does not, if it does not:
/// this process is root outside, whom no limit holds, or the kernel counts all processes of a user together.
pub fn why_processes_are_not_limited() -> Option<String> {
    let (Some(tool), Some(limiter)) = (isolating_tool(), limiting_tool_of_isolation()) else {
        return Some(format!("{TOOL} or {LIMITER} (of util-linux) is not installed"));
    };
    // It starts one process, or ends with a status of its own.
    let start = |most: u64| {
        let command = ["timeout", "10", "true"].map(str::to_owned);
        let limited = limited_isolation_command(&limiter, most)
            .into_iter()
            .chain(command);
        run_isolated(&tool, &limited.collect::<Vec<_>>())
    };
    // Beside both of them there is the first process of the namespace.
    match (start(3), start(2)) {
        (Err(error), _) | (_, Err(error)) => Some(format!("{} cannot be run: {error}", tool.display())),
        (Ok((false, said)), _) => Some(format!("{} says: {said}", limiter.display())),
        (_, Ok((true, _))) if rustix::process::geteuid().is_root() => Some(
            "the service runs as root, for whom the system holds none; let it run as a user of its own"
                .to_owned(),
        ),
        (_, Ok((true, _))) => Some(
            "this kernel does not count the processes of a user namespace (Linux does since 5.14)".to_owned(),
        ),
        (_, Ok((false, _))) => None,
    }
}

/// The tool that limits the processes of an isolated job from inside, where this machine has one.
fn limiting_tool_of_isolation() -> Option<PathBuf> {
    find_program(LIMITER)
}

/// The words before a command that limit its processes.
fn limited_isolation_command(limiter: &Path, most: u64) -> [String; 3] {
    let limiter = limiter.display().to_string();
    [limiter, format!("--nproc={most}:{most}"), "--".to_owned()]
}

/// The view that every isolated job has.
fn isolate_command(command: &mut Command, isolation: &Isolation) {
    command.args(["--unshare-all", "--unshare-user", "--disable-userns"]);
    command.args(["--uid", USER, "--gid", USER, "--cap-drop", "ALL"]);
    if isolation.network {
        command.arg("--share-net");
    }
    for path in SYSTEM {
        // A link below /usr stays one, so that both names lead to the same files.
        match fs::read_link(path) {
            Ok(target) => command.arg("--symlink").arg(target).arg(path),
            Err(_) => command.args(["--ro-bind-try", path, path]),
        };
    }
    let network = if isolation.network { &NETWORK[..] } else { &[] };
    for path in LINKER.iter().chain(network) {
        command.args(["--ro-bind-try", path, path]);
    }
    // Files of /proc that belong to root could be written by a service's jobs that runs as root: no capability is needed.
    command.args(["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]);
}

/// Makes a command of the program of a job, isolated as its application says. `work` and `temporary` are the job's folders, `status`
/// the file for how the isolation went ([`super::isolation_record`]), `refused` the calls that this job may not make besides. The files
/// have to stay open until the command runs.
///
/// # Errors
/// When the system refuses a file in memory.
pub(super) fn isolated_command(
    tool: &Path,
    job: &JobSpec,
    isolation: &Isolation,
    [work, temporary]: [&Path; 2],
    (status, refused): (&File, RefusedCalls),
) -> io::Result<(Command, File)> {
    let filter = file_for_isolation("system calls", &filter_of_refused_calls(refused)?)?;
    rustix::io::fcntl_setfd(status, FdFlags::empty())?;
    let mut command = Command::new(tool);
    isolate_command(&mut command, isolation);
    let room = job.limits.memory.unwrap_or(SHARED_MEMORY).to_string();
    command.args(["--size", &room, "--tmpfs", "/dev/shm"]);
    let program = (!SYSTEM.iter().any(|folder| job.program.starts_with(folder))).then_some(&job.program);
    // The binds of its own folders come before those inside of them: files of the service may lie below /tmp.
    for (path, inside) in [(temporary, TEMPORARY), (work, WORK)] {
        command.arg("--bind").arg(path).arg(inside);
    }
    for path in isolation.visible.iter().chain(program) {
        command.arg("--ro-bind").arg(path).arg(path);
    }
    // A file that it was given may be a link to a file elsewhere, which has to be seen.
    let is_link = |name: &OsStr| work.join(name).is_symlink();
    for (_, path) in job.uploads().filter(|(name, _)| is_link(name)) {
        command.arg("--ro-bind-try").arg(path).arg(path);
    }
    // Or it has another name elsewhere: others have it too, and the job may not change it.
    for name in job.given_for_good() {
        let file = work.join(&name);
        if fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file() && meta.nlink() > 1) {
            command.arg("--ro-bind").arg(file).arg(Path::new(WORK).join(name));
        }
    }
    command
        .args(["--remount-ro", "/dev", "--remount-ro", "/"])
        .args(["--chdir", WORK])
        .arg("--seccomp")
        .arg(descriptor_for_isolation(&filter))
        .arg("--json-status-fd")
        .arg(descriptor_for_isolation(status))
        .arg("--");
    // The system counts the processes of the job's own user namespace, so the limit is set inside.
    if let Some((most, limiter)) = job.limits.processes.zip(limiting_tool_of_isolation()) {
        command.args(limited_isolation_command(
            &limiter,
            most.saturating_add(BESIDE_ITS_OWN),
        ));
    }
    command
        .arg(&job.program)
        .args(&job.arguments)
        .env_clear()
        .env("HOME", WORK)
        .env("TMPDIR", TEMPORARY);
    Ok((command, filter))
}

/// A file in memory with these bytes, which a program that this process becomes has open.
fn file_for_isolation(name: &str, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn descriptor_for_isolation(file: &File) -> OsString {
    OsStr::new(&file.as_raw_fd().to_string()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_processes_counts_only_where_the_system_refuses_one_more() {
        if let Some(why) = why_not_isolated() {
            eprintln!("not tried: {why}");
            return;
        }
        let why = why_processes_are_not_limited();
        assert_eq!(why.is_some(), rustix::process::geteuid().is_root(), "{why:?}");
        assert!(why.is_none_or(|why| why.contains("runs as root")));
    }
}
