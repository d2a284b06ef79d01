//! seccomp: system calls that no agent and no gate needs, and that lead out of a sandbox.

use std::collections::BTreeMap;
use std::io;

use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Refused as if the user had no right to them.
const REFUSED: &[c_long] = &[
    // Other processes and their memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Keys of the session.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Large parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    // Another view of the files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
];

/// Refused as if the kernel did not know them: programs then fall back to older calls, which are looked at.
const UNKNOWN: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Flags that make a namespace.
const NAMESPACES: [c_long; 7] = [
    libc::CLONE_NEWUSER as c_long,
    libc::CLONE_NEWNS as c_long,
    libc::CLONE_NEWPID as c_long,
    libc::CLONE_NEWNET as c_long,
    libc::CLONE_NEWIPC as c_long,
    libc::CLONE_NEWUTS as c_long,
    libc::CLONE_NEWCGROUP as c_long,
];

/// Input into a terminal that others read.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Takes the calls away from this process and all that it starts.
pub(crate) fn restrict() -> io::Result<()> {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    install(refused_rules()?, refused)?;
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new()));
    install(unknown.collect(), SeccompAction::Errno(libc::ENOSYS as u32))
}

type CallRules = BTreeMap<c_long, Vec<SeccompRule>>;

fn refused_rules() -> io::Result<CallRules> {
    let mut rules: CallRules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        namespaces.push(when(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64)?);
    }
    rules.insert(libc::SYS_clone, namespaces.clone());
    rules.insert(libc::SYS_unshare, namespaces);
    let mut input = Vec::new();
    for request in TERMINAL_INPUT {
        input.push(when(1, SeccompCmpOp::Eq, request)?);
    }
    rules.insert(libc::SYS_ioctl, input);
    let vsock = when(0, SeccompCmpOp::Eq, libc::AF_VSOCK as u64)?;
    rules.insert(libc::SYS_socket, vec![vsock]);
    Ok(rules)
}

fn when(argument: u8, op: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    let condition = condition.map_err(io::Error::other)?;
    SeccompRule::new(vec![condition]).map_err(io::Error::other)
}

fn install(mut rules: CallRules, action: SeccompAction) -> io::Result<()> {
    if cfg!(target_arch = "x86_64") {
        // The same calls under the numbers of the x32 interface.
        const X32: c_long = 0x4000_0000;
        let doubled: CallRules = rules
            .iter()
            .map(|(call, when)| (call | X32, when.clone()))
            .collect();
        rules.extend(doubled);
    }
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| io::Error::other("seccomp is not known for this processor"))?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}
