//! The system calls that have no safe wrapper. All unsafe code of the workspace is in this file.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::{CStr, c_char, c_int};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use crate::events::Exit;

/// Most descriptors that one message may carry.
pub(crate) const MOST_FDS: usize = 16;

/// A program as the kernel takes it.
pub(crate) struct Image<'a> {
    pub(crate) program: &'a CStr,
    pub(crate) cwd: &'a CStr,
    pub(crate) argv: &'a [&'a CStr],
    pub(crate) env: &'a [&'a CStr],
}

/// Starts a process in a process group of its own, with an empty signal mask, default signal
/// dispositions, and `fds` as its descriptors 0 to 2. Every other descriptor of ours must be
/// close-on-exec, or among the `leaked` ones.
pub(crate) fn spawn(
    image: &Image<'_>,
    fds: [BorrowedFd<'_>; 3],
    leaked: &[RawFd],
) -> Result<i32, Errno> {
    let mut actions = Actions::new()?;
    for (fd, target) in fds.iter().zip(0..) {
        actions.dup2(fd.as_raw_fd(), target)?;
    }
    for fd in leaked {
        actions.close(*fd)?;
    }
    actions.chdir(image.cwd)?;
    let attributes = SpawnAttributes::fresh_group()?;
    let argv = pointers(image.argv);
    let env = pointers(image.env);
    let mut pid = 0;
    // SAFETY: both arrays end with a null pointer and point to strings that outlive the call; actions
    // and attributes are initialised. glibc and musl report a failed exec as the return value.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            image.program.as_ptr(),
            &actions.0,
            &attributes.0,
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Ok(pid)
}

fn pointers(strings: &[&CStr]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([ptr::null_mut()]).collect()
}

fn check(code: c_int) -> Result<(), Errno> {
    if code == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw(code))
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> Result<Self, Errno> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: initialises what it is given; read only after it said so.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(Self(actions.assume_init()))
        }
    }

    fn dup2(&mut self, fd: RawFd, target: RawFd) -> Result<(), Errno> {
        // SAFETY: `self` is initialised.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, fd, target) })
    }

    fn close(&mut self, fd: RawFd) -> Result<(), Errno> {
        // SAFETY: `self` is initialised. That the descriptor may be closed by then is no error.
        check(unsafe { libc::posix_spawn_file_actions_addclose(&mut self.0, fd) })
    }

    fn chdir(&mut self, to: &CStr) -> Result<(), Errno> {
        // SAFETY: `self` is initialised; the string is copied.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&mut self.0, to.as_ptr()) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: `self` is initialised and not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct SpawnAttributes(libc::posix_spawnattr_t);

impl SpawnAttributes {
    fn fresh_group() -> Result<Self, Errno> {
        let flags = libc::POSIX_SPAWN_SETPGROUP
            | libc::POSIX_SPAWN_SETSIGMASK
            | libc::POSIX_SPAWN_SETSIGDEF;
        let mut attributes = MaybeUninit::uninit();
        let mut signals = MaybeUninit::uninit();
        // SAFETY: each value is initialised by the call before the one that reads it.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut this = Self(attributes.assume_init());
            // The constants are ints and the parameter is a short, in every libc.
            check(libc::posix_spawnattr_setflags(
                &mut this.0,
                flags as libc::c_short,
            ))?;
            check(libc::posix_spawnattr_setpgroup(&mut this.0, 0))?;
            libc::sigemptyset(signals.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(
                &mut this.0,
                signals.as_ptr(),
            ))?;
            libc::sigfillset(signals.as_mut_ptr());
            check(libc::posix_spawnattr_setsigdefault(
                &mut this.0,
                signals.as_ptr(),
            ))?;
            Ok(this)
        }
    }
}

impl Drop for SpawnAttributes {
    fn drop(&mut self) {
        // SAFETY: `self` is initialised and not used again.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

/// What a look for dead children found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// This child has ended and is reaped: its id may be used again from now on.
    Dead(i32, Exit),
    /// There are children, and none has ended.
    Alive,
    /// There is no such child.
    Childless,
}

/// Reaps any child that has ended.
pub(crate) fn wait_any() -> Waited {
    wait(-1)
}

/// Reaps this child if it has ended.
pub(crate) fn wait_for(child: i32) -> Waited {
    wait(child)
}

// nix has waitpid, but fails on children that died of a real-time signal, after reaping them.
fn wait(which: i32) -> Waited {
    let mut status = 0;
    loop {
        // SAFETY: writes to `status` alone.
        match unsafe { libc::waitpid(which, &mut status, libc::WNOHANG) } {
            0 => return Waited::Alive,
            pid if pid > 0 && libc::WIFSIGNALED(status) => {
                return Waited::Dead(pid, Exit::Signal(libc::WTERMSIG(status)));
            }
            pid if pid > 0 => return Waited::Dead(pid, Exit::Code(libc::WEXITSTATUS(status))),
            _ if Errno::last() == Errno::EINTR => {}
            _ => return Waited::Childless,
        }
    }
}

/// How this child of ours ended, if it has; it stays unreaped, so that its id is not used again.
pub(crate) fn peek(child: i32) -> Option<Exit> {
    let id = libc::id_t::try_from(child).ok()?;
    let info = look(libc::P_PID, id)?;
    // SAFETY: `waitid` filled in the fields of a child's death.
    let status = unsafe { info.si_status() };
    Some(if info.si_code == libc::CLD_EXITED {
        Exit::Code(status)
    } else {
        Exit::Signal(status)
    })
}

/// True if some child of ours has ended and waits to be reaped.
pub(crate) fn has_zombie() -> bool {
    look(libc::P_ALL, 0).is_some()
}

fn look(kind: libc::idtype_t, id: libc::id_t) -> Option<libc::siginfo_t> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a zeroed siginfo_t is valid, and `waitid` writes to it alone. The kernel leaves
    // `si_pid` zero when nobody has ended.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let found = libc::waitid(kind, id, &mut info, flags) == 0 && info.si_pid() != 0;
        found.then_some(info)
    }
}

/// Sleeps until this child of ours is stopped, and true then; false once it has ended, or is nobody's. It
/// is neither reaped nor let go on.
pub(crate) fn wait_for_stop(child: BorrowedFd<'_>) -> bool {
    let Ok(id) = libc::id_t::try_from(child.as_raw_fd()) else {
        return false;
    };
    let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: a zeroed siginfo_t is valid, and `waitid` writes to it alone.
        let (code, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::waitid(libc::P_PIDFD, id, &mut info, flags), info)
        };
        match code {
            0 => return matches!(info.si_code, libc::CLD_STOPPED | libc::CLD_TRAPPED),
            _ if Errno::last() == Errno::EINTR => {}
            _ => return false,
        }
    }
}

/// A descriptor that stands for this very process, and becomes readable when it ends.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone; the descriptor it gives (close-on-exec) is nobody else's.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let fd = Errno::result(fd)?;
        Ok(OwnedFd::from_raw_fd(
            RawFd::try_from(fd).map_err(io::Error::other)?,
        ))
    }
}

/// Signals the process behind the descriptor, never another one with the same id.
pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let nothing: *const libc::siginfo_t = ptr::null();
    // SAFETY: a null siginfo is allowed and means "as kill(2)".
    let code = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as c_int,
            nothing,
            0,
        )
    };
    Ok(Errno::result(code).map(drop)?)
}

/// Makes every descriptor from 3 up close-on-exec, also those that were leaked to us.
pub fn close_all_on_exec() -> io::Result<()> {
    // SAFETY: sets a flag on descriptors; closes nothing.
    let code = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    Ok(Errno::result(code).map(drop)?)
}

/// A descriptor of the process that connected a socket; `None` where the kernel (before 6.5) does not
/// give one, or the process is gone.
pub(crate) fn peer_pidfd(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    const SO_PEERPIDFD: c_int = 77;
    let mut fd: c_int = -1;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `fd`, which lives through the call.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            ptr::from_mut(&mut fd).cast(),
            &mut length,
        )
    };
    if code != 0 || fd < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // Not closed on execution by itself on some versions.
    // SAFETY: sets a flag of a descriptor that is ours.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    Some(fd)
}

/// Descriptors of this process from 3 up that a program started now would inherit.
pub(crate) fn leaked_fds() -> Vec<RawFd> {
    let mut fds = crate::procfs::numbered("/proc/self/fd");
    // SAFETY: asks for a flag; a descriptor that is closed by now gives an error.
    fds.retain(|&fd| fd > 2 && unsafe { libc::fcntl(fd, libc::F_GETFD) } == 0);
    fds
}

/// Hears of the ends of children again, where the program that started this one ignored them or had them
/// wait: an ignored SIGCHLD is inherited, and then nobody is ever told how a child ended. A handler of this
/// program's own stays.
pub fn hear_of_children() {
    // SAFETY: asks for the disposition, and sets none but the usual one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(libc::SIGCHLD, ptr::null(), &mut action) == 0;
        let is_deaf =
            action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0;
        if asked && is_deaf {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Has all threads share one place to allocate from where the address space is limited (`ulimit -v`): the
/// allocator reserves 64 MiB of it for each other one, and a program that gets no more memory can only abort. To
/// be called before the first thread is started.
pub fn fit_into_address_space() {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let limited = getrlimit(Resource::RLIMIT_AS).is_ok_and(|(soft, _)| soft != RLIM_INFINITY);
    #[cfg(target_env = "gnu")]
    if limited {
        // SAFETY: sets a number within the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = limited;
}

/// Ignores the signals that ask a process to end, and has programs that are started from now on ignore
/// them too.
pub fn ignore_ending_signals() {
    set_ending_signals(libc::SIG_IGN);
}

/// Ends at these signals again.
pub fn obey_ending_signals() {
    set_ending_signals(libc::SIG_DFL);
}

fn set_ending_signals(disposition: libc::sighandler_t) {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler of ours is involved: the signal is ignored, or does what it usually does.
        unsafe { libc::signal(signal, disposition) };
    }
}

/// The version of Landlock's interface that the kernel has; `None` without Landlock.
pub fn landlock_abi() -> Option<u32> {
    const VERSION: c_int = 1;
    let nothing: *const libc::c_void = ptr::null();
    // SAFETY: with this flag the kernel reads no attributes and makes no descriptor.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, VERSION) };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}

/// A socket that was handed to this process under a number. Nobody else in it may use that number.
pub fn inherited_socket(number: RawFd) -> io::Result<std::os::unix::net::UnixStream> {
    // SAFETY: asks for a flag; a number that is not open gives an error.
    Errno::result(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // SAFETY: the number is open, and by the contract of this function nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(socket.into())
}

/// Sends `bytes`, with descriptors attached to the first of them.
pub fn send_with_fds(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    let flags = MsgFlags::MSG_NOSIGNAL;
    Ok(sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control,
        flags,
        None,
    )?)
}

/// Receives bytes and the descriptors that came with them, close-on-exec.
pub fn receive_with_fds(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = nix::cmsg_space!([RawFd; MOST_FDS]);
    let mut into = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), flags)?;
    let mut fds = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = part {
            // SAFETY: the kernel has just made these descriptors for us.
            fds.extend(
                raw.into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    Ok((message.bytes, fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn start(script: &CStr) -> i32 {
        let null = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap();
        let argv = [c"sh", c"-c", script];
        let image = Image {
            program: c"/bin/sh",
            cwd: c"/",
            argv: &argv,
            env: &[],
        };
        spawn(&image, [null.as_fd(); 3], &[]).unwrap()
    }

    fn until_dead(pid: i32) -> Exit {
        let pidfd = pidfd_open(pid).unwrap();
        let mut fds = [nix::poll::PollFd::new(
            pidfd.as_fd(),
            nix::poll::PollFlags::POLLIN,
        )];
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::NONE).unwrap();
        let peeked = peek(pid).unwrap();
        assert_eq!(wait_for(pid), Waited::Dead(pid, peeked));
        assert_eq!(wait_for(pid), Waited::Childless);
        peeked
    }

    #[test]
    fn exit_codes_and_signals_are_told_apart_real_time_signals_included() {
        assert_eq!(until_dead(start(c"exit 0")), Exit::Code(0));
        assert_eq!(until_dead(start(c"exit 255")), Exit::Code(255));
        assert_eq!(until_dead(start(c"kill -KILL $$")), Exit::Signal(9));
        assert_eq!(until_dead(start(c"kill -40 $$")), Exit::Signal(40));
    }

    #[test]
    fn a_living_child_is_peeked_at_without_waiting() {
        let pid = start(c"exec sleep 60");
        assert_eq!(peek(pid), None);
        assert_eq!(wait_for(pid), Waited::Alive);
        pidfd_signal(pidfd_open(pid).unwrap().as_fd(), Signal::SIGKILL).unwrap();
        assert_eq!(until_dead(pid), Exit::Signal(9));
    }
}
