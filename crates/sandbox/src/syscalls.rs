//! seccomp: system calls that no agent and no gate needs, and that lead out of a sandbox.

use std::io;

use descartes_kernel::sandbox::Confinement;
use nix::libc::{self, c_int, c_long};
use seccompiler::{BpfProgram, apply_filter};

use crate::filter::{Argument, CallFilter};

/// Newer than the list of our libraries; the same number on all processors.
const OPEN_TREE_ATTR: c_long = 467;

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
    // Another view of the files. In a namespace of its own a program could cover what is there, and only
    // there; that nothing is uncovered would hang on the kernel's locks on mounts alone.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
];

/// Refused as if the kernel did not know them: programs then fall back to older calls.
const UNKNOWN: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Flags that make a namespace.
const NAMESPACES: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Input into a terminal that others read.
const TERMINAL_INPUT: [&[Argument]; 2] = [&[Argument::Is(1, 0x5412)], &[Argument::Is(1, 0x541c)]];

const FAMILY: u32 = 0;
const TYPE: u32 = 1;
const PROTOCOL: u32 = 2;

/// The host of a virtual machine, and what whoever owns a network of its own may ask of the kernel: its packet
/// filters, and packets that are made by hand.
const SOCKETS: [&[Argument]; 6] = [
    &[family(libc::AF_VSOCK)],
    &[family(libc::AF_PACKET)],
    &[family(libc::AF_NETLINK), netlink(libc::NETLINK_NETFILTER)],
    &[family(libc::AF_NETLINK), netlink(libc::NETLINK_XFRM)],
    &[family(libc::AF_INET), RAW],
    &[family(libc::AF_INET6), RAW],
];

/// The type stands in the lowest bits.
const RAW: Argument = Argument::Masked(TYPE, 0xf, libc::SOCK_RAW.cast_unsigned());

const fn family(family: c_int) -> Argument {
    Argument::Is(FAMILY, family.cast_unsigned())
}

const fn netlink(protocol: c_int) -> Argument {
    Argument::Is(PROTOCOL, protocol.cast_unsigned())
}

/// Takes the calls away from this process and all that it starts; those that make namespaces only where the
/// confinement says so.
pub(crate) fn restrict(confinement: &Confinement) -> io::Result<()> {
    apply_filter(&program(confinement.namespaces)?).map_err(io::Error::other)
}

fn program(namespaces: bool) -> io::Result<BpfProgram> {
    let mut filter = CallFilter::new()?;
    for call in REFUSED {
        filter.refuse(*call, libc::EPERM);
    }
    for call in UNKNOWN {
        filter.refuse(*call, libc::ENOSYS);
    }
    if !namespaces {
        filter.refuse(libc::SYS_chroot, libc::EPERM);
        // Its flags cannot be looked at; those of the older call, which programs take then, can.
        filter.refuse(libc::SYS_clone3, libc::ENOSYS);
        let flags = [Argument::Has(0, NAMESPACES.cast_unsigned())];
        filter.refuse_when(libc::SYS_clone, &[&flags], libc::EPERM)?;
        filter.refuse_when(libc::SYS_unshare, &[&flags], libc::EPERM)?;
    }
    filter.refuse_when(libc::SYS_ioctl, &TERMINAL_INPUT, libc::EPERM)?;
    filter.refuse_when(libc::SYS_socket, &SOCKETS, libc::EPERM)?;
    filter.program()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::tests::{answer, answer_after, own_interface};

    #[test]
    fn namespaces_can_be_made_where_they_gain_nothing_and_mounts_nowhere() {
        let (user, thread) = (libc::CLONE_NEWUSER, libc::CLONE_VM | libc::CLONE_THREAD);
        let (inet, netlink) = (libc::AF_INET, libc::AF_NETLINK);
        let raw = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let (stream, route) = (libc::SOCK_STREAM, libc::NETLINK_ROUTE);
        // The call, its arguments, and whether it is allowed without and with namespaces.
        let rows = [
            (libc::SYS_clone, [thread, 0, 0], true, true),
            (libc::SYS_clone, [user | thread, 0, 0], false, true),
            (libc::SYS_unshare, [libc::CLONE_FILES, 0, 0], true, true),
            (libc::SYS_unshare, [libc::CLONE_NEWNET, 0, 0], false, true),
            (libc::SYS_clone3, [0, 0, 0], false, true),
            (libc::SYS_chroot, [0, 0, 0], false, true),
            (libc::SYS_mount, [0, 0, 0], false, false),
            (libc::SYS_umount2, [0, 0, 0], false, false),
            (libc::SYS_pivot_root, [0, 0, 0], false, false),
            (libc::SYS_open_tree, [0, 0, 0], false, false),
            (OPEN_TREE_ATTR, [0, 0, 0], false, false),
            (libc::SYS_move_mount, [0, 0, 0], false, false),
            (libc::SYS_fsopen, [0, 0, 0], false, false),
            (libc::SYS_setns, [0, 0, 0], false, false),
            (libc::SYS_ptrace, [0, 0, 0], false, false),
            (libc::SYS_io_uring_setup, [0, 0, 0], false, false),
            (libc::SYS_ioctl, [0, 0x5412, 0], false, false),
            (libc::SYS_ioctl, [0, 0x5413, 0], true, true),
            (libc::SYS_socket, [inet, stream, 0], true, true),
            (libc::SYS_socket, [inet, raw, 1], false, false),
            (libc::SYS_socket, [netlink, raw, route], true, true),
            (libc::SYS_socket, [netlink, raw, 12], false, false),
            (libc::SYS_socket, [libc::AF_PACKET, raw, 0], false, false),
            (libc::SYS_socket, [libc::AF_UNIX, stream, 0], true, true),
        ];
        for (call, args, without, with) in rows {
            for (namespaces, wanted) in [(false, without), (true, with)] {
                let program = program(namespaces).unwrap();
                let args = args.map(i32::cast_unsigned);
                let call = u32::try_from(call).unwrap();
                let found = answer(&program, own_interface(), call, &args);
                let allowed = found == libc::SECCOMP_RET_ALLOW;
                assert_eq!(allowed, wanted, "{call} {args:?} {namespaces}");
            }
        }
    }

    /// The kernel goes through the program once for each call there is, at the start of every run.
    #[test]
    fn a_call_that_is_allowed_is_found_out_in_a_few_steps() {
        for namespaces in [false, true] {
            let program = program(namespaces).unwrap();
            for call in 0..512 {
                let (_, steps) = answer_after(&program, own_interface(), call, &[u32::MAX; 6]);
                assert!(steps <= 24, "{call}: {steps}");
            }
        }
    }

    #[test]
    fn each_call_of_the_lists_is_refused_and_its_neighbours_are_as_they_were() {
        let program = program(true).unwrap();
        for call in 0..512_i32 {
            let listed = |list: &[c_long]| list.contains(&c_long::from(call));
            let wanted = match call {
                _ if listed(REFUSED) => libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned(),
                _ if listed(UNKNOWN) => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
                _ => libc::SECCOMP_RET_ALLOW,
            };
            let found = answer(&program, own_interface(), call.cast_unsigned(), &[0; 6]);
            assert_eq!(found, wanted, "{call}");
        }
    }
}
