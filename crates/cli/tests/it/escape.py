# Tries to get out of the sandbox, and prints a line for each attempt: its name, `out` or `held`, and why.
# Everything that is attacked lies in the world of the test: its folder is the first argument; then come the
# process id of a program outside, the port of a service outside, and the name of an abstract socket.
import ctypes, errno, fcntl, os, signal, socket, subprocess, sys

world, pid, port, abstract = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
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


ATTEMPTS = {
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
    "pidfd of a process outside": lambda: call(434, pid, 0),
    "mount": lambda: call(165, b"none", home.encode(), b"tmpfs", 0, 0),
    "umount a lock": lambda: call(166, (project + "/.git/config").encode(), 2),
    "new user namespace": lambda: call(272, 0x10000000),
    "user namespace by a tool": lambda: shell("unshare -Ur true"),
    "keyring": lambda: call(250, 0, -3, 0),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(72), 72),
    "another terminal": in_other_terminal,
    "terminal input": terminal_input,
    "core_pattern": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    "service on loopback": tcp,
    "a stale .git/config.lock": lambda: write(project + "/.git/config.lock"),
}

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        print(f"{name}\tout\t-")
    except (OSError, KeyError) as error:
        number = getattr(error, "errno", None)
        print(f"{name}\theld\t{errno.errorcode.get(number, type(error).__name__)}")
