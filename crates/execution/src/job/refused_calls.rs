//! The system calls that isolated jobs cannot make: those that only serve to administer a machine, or that have let programs out of
//! their isolation before. The list follows what container engines refuse by default. Everything else is allowed, since jobs are
//! programs of every kind; without privileges most of the listed calls would fail in any case.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that fail with "operation not permitted".
const REFUSED: [i64; 47] = [
    // Keys of the kernel, which know no namespaces.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Programs inside the kernel, and its counters.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Namespaces.
    libc::SYS_setns,
    libc::SYS_unshare,
    // The machine itself.
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
];

/// The calls that are refused to some jobs only.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RefusedCalls {
    /// Whether it may not choose its processors: it has been given some.
    pub(super) processors: bool,
    /// Whether it may not make shared memory of System V, which stays when no process has it mapped: no control group bounds its memory.
    pub(super) shared_memory: bool,
}

/// `open_tree_attr`, which has this number everywhere.
const OPEN_TREE_ATTR: i64 = 467;

/// The family of sockets that reach the host of a virtual machine, past every network namespace (`AF_VSOCK`).
const HOST_SOCKETS: u64 = 40;

/// The request of `prctl` by which a process hides its open files from the supervisor, who counts deleted ones (`PR_SET_DUMPABLE`).
const SET_DUMPABLE: u64 = 4;

/// Requests of `ioctl` that put characters into the input of a terminal: TIOCSTI and TIOCLINUX.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// The bit that marks the system calls of another calling convention (x32) of the same processor.
#[cfg(target_arch = "x86_64")]
const ALSO_WITH: &[i64] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const ALSO_WITH: &[i64] = &[0];

/// The filter, as the kernel takes it: for each instruction a code of two bytes, two offsets of one byte, and a value of four.
///
/// # Errors
/// On a processor for which no filter can be made.
pub(super) fn filter_of_refused_calls(calls: RefusedCalls) -> io::Result<Vec<u8>> {
    let program = compile_refused_calls(calls).map_err(io::Error::other)?;
    let bytes = program.iter().flat_map(|program| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&program.code.to_ne_bytes());
        bytes[2..4].copy_from_slice(&[program.jt, program.jf]);
        bytes[4..].copy_from_slice(&program.k.to_ne_bytes());
        bytes
    });
    Ok(bytes.collect())
}

fn compile_refused_calls(calls: RefusedCalls) -> Result<BpfProgram, seccompiler::BackendError> {
    let argument_is = |argument, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
        SeccompRule::new(vec![condition?])
    };
    let terminal = TERMINAL_INPUT
        .into_iter()
        .map(|request| argument_is(1, request))
        .collect::<Result<Vec<_>, _>>()?;
    let besides = [
        (calls.processors, libc::SYS_sched_setaffinity),
        (calls.shared_memory, libc::SYS_shmget),
    ];
    let besides = besides
        .into_iter()
        .filter_map(|(is_refused, call)| is_refused.then_some(call));
    let refused: Vec<i64> = REFUSED.into_iter().chain(besides).collect();
    let mut rules = BTreeMap::new();
    for bit in ALSO_WITH {
        rules.extend(refused.iter().map(|call| (call | bit, Vec::new())));
        rules.insert(libc::SYS_ioctl | bit, terminal.clone());
        rules.insert(libc::SYS_prctl | bit, vec![argument_is(0, SET_DUMPABLE)?]);
        rules.insert(libc::SYS_socket | bit, vec![argument_is(0, HOST_SOCKETS)?]);
    }
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refuse,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}
