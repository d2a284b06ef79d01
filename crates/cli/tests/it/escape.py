# Tries to get out of the sandbox, and prints a line for each attempt: its name, `out` or `held`, and why. What
# only somebody outside can see is printed as `file` or `process`, with what to look for there.
# Everything that is attacked lies in the world of the test: its folder is the first argument; then come the
# process id of a program outside, the port of a service outside, the name of an abstract socket, and the port of
# a service that answers datagrams. With `--inside NAME` before them it makes one attempt in a namespace that it was
# started in, and ends with 1 where that is held.
import ctypes, errno, fcntl, os, shutil, signal, socket, struct, subprocess, sys

inside = sys.argv[2] if sys.argv[1] == "--inside" else None
if inside:
    del sys.argv[1:3]
world, pid, port, abstract = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
udp_port = int(sys.argv[5])
home, project, state = world + "/home", world + "/project", world + "/state"
libc = ctypes.CDLL(None, use_errno=True)


def write(path, how="a"):
    with open(path, how) as file:
        file.write("stolen\n")


def read(path):
    with open(path) as file:
        if not file.read():
            raise OSError(errno.ENOENT, "empty")


def call(*words):
    if libc.syscall(*words) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def pidfd():
    fd = libc.syscall(434, pid, 0)
    if fd == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd


def take_descriptor():
    fd = pidfd()
    try:
        call(438, fd, 0, 0)
    finally:
        os.close(fd)


def shell(text):
    ended = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    if ended.returncode != 0:
        raise OSError(errno.EPERM, ended.stderr.strip().split("\n")[-1])


def link_then_write(target):
    os.symlink(target, "trick")
    try:
        write("trick")
    finally:
        os.unlink("trick")


def hard_link(target):
    os.link(target, "hard")
    write("hard")


def rename_over(target):
    write("new", "w")
    os.rename("new", target)


def move_and_replace(folder):
    os.rename(folder, folder + ".moved")
    os.mkdir(folder)


def connect(address):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)


def tcp():
    socket.create_connection(("127.0.0.1", port), 2).close()


def listed(folder):
    names = os.listdir(folder)
    if not names:
        raise OSError(errno.ENOENT, "empty")


def in_other_terminal():
    terminals = [name for name in os.listdir("/dev/pts") if name.isdigit()]
    if not terminals:
        raise OSError(errno.ENOENT, "no terminal of others")


def terminal_input():
    main, other = os.openpty()
    fcntl.ioctl(other, 0x5412, b"x")


class SeenOutside(Exception):
    """It worked in here; `kind` and `what` say where to look outside."""

    def __init__(self, kind, what):
        super().__init__(kind, what)
        self.kind, self.what = kind, what


def leave_file(path):
    write(path, "w")
    raise SeenOutside("file", path)


def leave_daemon():
    mark = "3" + str(pid) + "77"
    shell(f"(setsid sleep {mark} </dev/null >/dev/null 2>&1 &)")
    raise SeenOutside("process", f"sleep {mark}")


def swap_for_link(target):
    os.unlink(target)
    os.symlink("/bin/true", target)


def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.connect(("127.0.0.1", udp_port))
        client.send(b"x")
        client.recv(1)


def socket_in(folder):
    import stat

    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if stat.S_ISSOCK(os.stat(path).st_mode):
            connect(path)
            return
    raise OSError(errno.ENOENT, "no socket")


def descriptors():
    known = {0, 1, 2}
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    others = {int(name) for name in os.listdir(folder)} - known - {folder}
    os.close(folder)
    # The one with which the folder is listed is gone again.
    if not [fd for fd in others if os.path.exists(f"/proc/self/fd/{fd}")]:
        raise OSError(errno.EBADF, "none")


def trace_child():
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        call(101, 16, child, 0, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def unnamed_file(folder):
    # Shows that a file could be made there, and leaves none.
    os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))


def link_then_open(target):
    os.symlink(target, "trick")
    try:
        os.close(os.open("trick", os.O_WRONLY | os.O_APPEND))
    finally:
        os.unlink("trick")


def nested(name, flags):
    # In namespaces of its own, with all rights there.
    here = [sys.executable, os.path.abspath(sys.argv[0]), "--inside", name] + sys.argv[1:]
    ended = subprocess.run(["unshare", flags, "--propagation", "unchanged", *here], capture_output=True, text=True)
    if ended.returncode != 0:
        said = ended.stderr.strip().split("\n")[-1]
        raise OSError(getattr(errno, said, errno.EPERM), said)


def mount(source, target, kind, flags=0, options=None):
    call(165, source, target.encode(), kind, flags, options)


def overlay():
    for name in ["upper", "work"]:
        os.makedirs("/tmp/" + name)
    hooks = project + "/.git/hooks"
    mount(b"o", hooks, b"overlay", 0, f"lowerdir={hooks},upperdir=/tmp/upper,workdir=/tmp/work".encode())


def out_of_a_root():
    os.makedirs("/tmp/root")
    above = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/root")
    os.fchdir(above)
    os.chroot(".")
    read(home + "/.ssh/id_rsa")


def name_another_user():
    # Not mapped yet: whoever may name another user becomes that user.
    with open("/proc/self/uid_map", "w") as table:
        table.write("0 65533 1\n")


def own_packets():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


# What somebody with all rights in a user namespace of its own tries.
INSIDE = {
    "cover a lock": lambda: mount(b"t", project + "/.git/hooks", b"tmpfs"),
    "make a lock writable": lambda: mount(None, project + "/.git/config", None, 32 | 4096),
    "make the root writable": lambda: mount(None, "/", None, 32 | 4096),
    "uncover ~/.ssh": lambda: call(166, (home + "/.ssh").encode(), 2),
    "bind the home directory": lambda: mount(home.encode(), "/tmp", None, 4096),
    "mount /proc": lambda: mount(b"p", "/tmp", b"proc"),
    "an overlay over git hooks": overlay,
    "pivot_root": lambda: call(155, b"/tmp", b"/tmp"),
    "open_tree": lambda: call(428, -100, b"/", 1),
    "open_tree_attr": lambda: call(467, -100, b"/", 1, ctypes.create_string_buffer(32), 32),
    "move_mount": lambda: call(429, -100, (home + "/.ssh").encode(), -100, b"/tmp", 0),
    "fsopen": lambda: call(430, b"tmpfs", 0),
    "mount_setattr": lambda: call(442, -100, b"/", 0, ctypes.create_string_buffer(struct.pack("QQQQ", 0, 1, 0, 0)), 32),
    "join the first namespace": lambda: call(308, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0),
    "out of a chroot": out_of_a_root,
    "name another user": name_another_user,
    "a file of another user": lambda: read(project + "/foreign"),
    "mknod of a disk": lambda: os.mknod("disk", 0o660 | 0o060000, os.makedev(8, 0)),
    "terminal input": terminal_input,
    "signal a process outside": lambda: os.kill(pid, signal.SIGCONT),
    "abstract socket": lambda: connect("\0" + abstract),
    "packet filters": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close(),
    "packets made by hand": own_packets,
}
# Other namespaces than those of users and mounts.
FLAGS = {
    "mount /proc": "-Urmpf",
    "name another user": "-U",
    "signal a process outside": "-Urmpf",
    "abstract socket": "-Ur",
    "packet filters": "-Urn",
    "packets made by hand": "-Urn",
}

if inside:
    try:
        INSIDE[inside]()
    except OSError as error:
        sys.exit(f"{errno.errorcode.get(error.errno)}")
    sys.exit(0)

PROTECTED = ["ci/check.sh", ".descartes/config.toml", ".git/config", ".git/HEAD"]
saved = {name: open(os.path.join(project, name), "rb").read() for name in PROTECTED}


def put_back():
    # Where an attempt succeeds, the next one finds what the first one found.
    for folder in [project, project + "/ci", project + "/.descartes", project + "/.git"]:
        if os.path.isdir(folder + ".moved"):
            shutil.rmtree(folder)
            os.rename(folder + ".moved", folder)
    for name, bytes in saved.items():
        path = os.path.join(project, name)
        if os.path.lexists(path):
            whole = not os.path.islink(path) and os.access(path, os.R_OK)
            if whole and open(path, "rb").read() == bytes:
                continue
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(bytes)
    for name in ["trick", "hard", "new", ".git/config.lock", ".git/hooks/post-commit"]:
        if os.path.lexists(os.path.join(project, name)):
            os.unlink(os.path.join(project, name))


ATTEMPTS = {
    "write ~/.profile": lambda: write(home + "/.profile"),
    "write ~/.local/bin/cargo": lambda: write(home + "/.local/bin/cargo"),
    "write ~/.cargo/config.toml": lambda: write(home + "/.cargo/config.toml"),
    "write ~/.config/systemd/user": lambda: write(home + "/.config/systemd/user/x.service"),
    "write the agent's ~/.claude/settings.json": lambda: write(home + "/.claude/settings.json"),
    "write the agent's hooks ~/.claude/hooks": lambda: write(home + "/.claude/hooks/x"),
    "write a crontab": lambda: unnamed_file("/var/spool"),
    "leave a file in /tmp": lambda: leave_file(f"/tmp/descartes-escape-{pid}"),
    "leave a file in /var/tmp": lambda: leave_file(f"/var/tmp/descartes-escape-{pid}"),
    "leave a file in /dev/shm": lambda: leave_file(f"/dev/shm/descartes-escape-{pid}"),
    "read ~/.aws": lambda: read(home + "/.aws/credentials"),
    "read ~/.config/gh": lambda: read(home + "/.config/gh/hosts.yml"),
    "read ~/.npmrc": lambda: read(home + "/.npmrc"),
    "read ~/.bash_history": lambda: read(home + "/.bash_history"),
    "read ~/.gnupg": lambda: read(home + "/.gnupg/secring.gpg"),
    "read a journal": lambda: read(state + "/loops/keep"),
    "read through /proc/PID/cwd": lambda: listed(f"/proc/{pid}/cwd"),
    "gate script by symlink": lambda: swap_for_link(project + "/ci/check.sh"),
    "gate script by truncation": lambda: os.truncate(project + "/ci/check.sh", 0),
    "the work tree moved": lambda: move_and_replace(project),
    "git modules": lambda: write(project + "/.git/modules/x"),
    "docker socket": lambda: connect(world + "/runtime/docker.sock"),
    "session bus": lambda: connect(world + "/runtime/bus"),
    "ssh agent": lambda: connect(world + "/tmp/ssh-agent.sock"),
    "sockets in /run": lambda: socket_in("/run"),
    "systemd-run": lambda: shell("systemd-run --user --quiet true"),
    "kill a process outside": lambda: os.kill(pid, signal.SIGKILL),
    "memory of a process outside": lambda: read(f"/proc/{pid}/mem"),
    "process_vm_readv": lambda: call(310, pid, 0, 0, 0, 0, 0),
    "a descriptor of a process outside": take_descriptor,
    "descriptors of the host": descriptors,
    "a daemon that stays": leave_daemon,
    "ptrace a child": trace_child,
    "join a namespace": lambda: os.close(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)),
    "setns": lambda: call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "perf_event_open": lambda: call(298, ctypes.create_string_buffer(struct.pack("II", 1, 112), 112), 0, -1, -1, 0),
    "userfaultfd": lambda: call(323, 1),
    "open_by_handle_at": lambda: call(304, -100, ctypes.create_string_buffer(struct.pack("ii", 8, 1), 128), 0),
    "AF_VSOCK": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "chroot": lambda: os.chroot("/tmp"),
    "mknod of a disk": lambda: os.mknod("disk", 0o660 | 0o060000, os.makedev(8, 0)),
    "sysrq": lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)),
    "ld.so.preload": lambda: unnamed_file("/etc"),
    "/etc/passwd through a symlink": lambda: link_then_open("/etc/passwd"),
    "a file of another user": lambda: read(project + "/foreign"),
    "load a module": lambda: call(175, ctypes.create_string_buffer(8), 8, b""),
    "set the host's name": lambda: call(170, os.uname().nodename.encode(), len(os.uname().nodename)),
    "service on loopback by UDP": udp,
    "write ~/.bashrc": lambda: write(home + "/.bashrc"),
    "write autostart": lambda: write(home + "/.config/autostart/x.desktop"),
    "write authorized_keys": lambda: write(home + "/.ssh/authorized_keys"),
    "write ~/.gitconfig": lambda: write(home + "/.gitconfig"),
    "write another project": lambda: write(world + "/other/file"),
    "write a program on PATH": lambda: write(world + "/bin/tool"),
    "write through a symlink": lambda: link_then_write(home + "/.bashrc"),
    "hard link to a file outside": lambda: hard_link(home + "/.bashrc"),
    "read ~/.ssh": lambda: read(home + "/.ssh/id_rsa"),
    "read ~/.netrc": lambda: read(home + "/.netrc"),
    "read another agent's login": lambda: read(home + "/.codex/auth.json"),
    "read a token of the environment": lambda: os.environ["GITHUB_TOKEN"] or None,
    "read through /proc/PID/root": lambda: read(f"/proc/{pid}/root{home}/.ssh/id_rsa"),
    "read /proc/PID/environ": lambda: read(f"/proc/{pid}/environ"),
    "list the state folder": lambda: listed(state),
    "write the state folder": lambda: write(state + "/loops"),
    "gate script in place": lambda: write(project + "/ci/check.sh"),
    "gate script by unlink": lambda: os.unlink(project + "/ci/check.sh"),
    "gate script by rename": lambda: rename_over(project + "/ci/check.sh"),
    "gate script by its folder": lambda: move_and_replace(project + "/ci"),
    "gate script by hard link": lambda: hard_link(project + "/ci/check.sh"),
    "gate script by chmod": lambda: os.chmod(project + "/ci/check.sh", 0),
    ".descartes edited": lambda: write(project + "/.descartes/config.toml"),
    ".descartes moved": lambda: move_and_replace(project + "/.descartes"),
    "git hook": lambda: write(project + "/.git/hooks/post-commit"),
    "git config": lambda: write(project + "/.git/config"),
    "git config.worktree": lambda: write(project + "/.git/config.worktree"),
    "git attributes": lambda: write(project + "/.git/info/attributes"),
    ".git moved and made anew": lambda: move_and_replace(project + "/.git"),
    "control socket": lambda: connect(world + "/runtime/service.sock"),
    "abstract socket": lambda: connect("\0" + abstract),
    "signal a process outside": lambda: os.kill(pid, signal.SIGCONT),
    "ptrace a process outside": lambda: call(101, 16, pid, 0, 0),
    "pidfd of a process outside": lambda: os.close(pidfd()),
    "mount": lambda: call(165, b"none", home.encode(), b"tmpfs", 0, 0),
    "umount a lock": lambda: call(166, (project + "/.git/config").encode(), 2),
    "keyring": lambda: call(250, 0, -3, 0),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(72), 72),
    "another terminal": in_other_terminal,
    "terminal input": terminal_input,
    "core_pattern": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    "service on loopback": tcp,
    "a stale .git/config.lock": lambda: write(project + "/.git/config.lock"),
    "packet filters": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).close(),
    "packets made by hand": own_packets,
}
for name in INSIDE:
    ATTEMPTS["a user namespace, then " + name] = lambda name=name: nested(name, FLAGS.get(name, "-Urm"))

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        print(f"{name}\tout\t-")
    except SeenOutside as seen:
        print(f"{name}\t{seen.kind}\t{seen.what}")
    except (OSError, KeyError) as error:
        number = getattr(error, "errno", None)
        print(f"{name}\theld\t{errno.errorcode.get(number, type(error).__name__)}")
    try:
        put_back()
    except OSError:
        # Only what was changed can be put back.
        pass
