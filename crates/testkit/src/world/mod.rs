//! A hermetic world for one test: folders of its own, an environment of its own, and no process
//! left behind.

pub mod bins;
mod finished;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use tempfile::TempDir;

pub use finished::Finished;

use crate::process::{self, Process};

/// The environment variable that marks every process of a world. Agents get no variable whose
/// name begins as ours do.
pub const MARK: &str = "TEST_WORLD_OF_DESCARTES";

/// The folder of a file system in memory.
const MEMORY: &str = "/dev/shm";

/// What a world in memory must find free there; the default in a container is 64 MiB in all.
const MEMORY_NEEDED: u64 = 1 << 30;

const GIT_CONFIG: &str = "[user]
\tname = Test Person
\temail = person@example.com
[init]
\tdefaultBranch = main
[commit]
\tgpgsign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
";

/// Temporary folders `project/`, `home/`, `state/`, `runtime/`, `tmp/` and `bin/`, and commands that
/// see nothing else of the machine but its programs. Dropping it ends every process it marked.
///
/// ```no_run
/// use descartes_testkit::World;
///
/// let world = World::new();
/// let agent = world.agent("print working\npromise");
/// let run = world.run(world.descartes(["loop", "start", "--command", &agent, "--prompt", "go"]));
/// run.assert_code(0);
/// world.assert_no_survivors();
/// ```
#[derive(Debug)]
pub struct World {
    root: TempDir,
    mark: String,
    scripts: AtomicU32,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Where temporary files lie in memory, if this machine has room for them there.
pub fn memory_folder() -> PathBuf {
    let memory = Path::new(MEMORY);
    match has_room(memory) {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    }
}

impl World {
    /// Makes the folders.
    ///
    /// # Panics
    /// When the temporary folder cannot be made.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same on a file system in memory, where this machine has one with room. For tests that call git so often
    /// that the disk decides how long they take. Not for those of the sandbox, which takes it for a folder of the
    /// system.
    ///
    /// # Panics
    /// When the temporary folder cannot be made.
    pub fn in_memory() -> Self {
        Self::below(&memory_folder())
    }

    fn below(folder: &Path) -> Self {
        // A short name, since socket paths end at 108 bytes.
        let root = tempfile::Builder::new()
            .prefix("dw-")
            .tempdir_in(folder)
            .expect("make a temporary folder");
        let mark = format!("{}-{}", std::process::id(), root.path().display());
        let world = Self {
            root,
            mark,
            scripts: AtomicU32::new(1),
        };
        for folder in [
            "project", "home", "state", "runtime", "tmp", "bin", "agents",
        ] {
            fs::create_dir(world.root().join(folder)).expect("make a folder of the world");
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(world.runtime(), private).expect("make the runtime folder private");
        fs::write(world.home().join(".gitconfig"), GIT_CONFIG).expect("write the git config");
        world
    }

    /// The folder that holds all others.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Where commands start: the user's project, empty at first.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// `HOME`.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// `DESCARTES_STATE_DIR`.
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// `XDG_RUNTIME_DIR`, mode 0700.
    pub fn runtime(&self) -> PathBuf {
        self.root().join("runtime")
    }

    /// A folder that stands first on `PATH`, for programs of the test's own.
    pub fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    /// A path below the project.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.project().join(relative)
    }

    /// Writes a file below the project, with the folders on the way, and gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("make the folder of a file");
        }
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Reads a text file below the project.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        let path = self.path(relative);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// True when the path below the project exists.
    pub fn has(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// Puts an executable file on the world's `PATH`, and gives its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn program(&self, name: &str, content: &str) -> PathBuf {
        let path = self.bin().join(name);
        fs::write(&path, content).expect("write a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it executable");
        path
    }

    /// A command with the world's environment and nothing else, started in the project.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .envs(self.environment());
        command
    }

    /// The whole environment of the world's commands.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home();
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let machine_path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        vec![
            ("HOME", text(home.clone())),
            ("USER", "person".into()),
            ("SHELL", "/bin/sh".into()),
            ("PATH", format!("{}:{machine_path}", self.bin().display())),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("TMPDIR", text(self.root().join("tmp"))),
            ("XDG_CONFIG_HOME", text(home.join(".config"))),
            ("XDG_CACHE_HOME", text(home.join(".cache"))),
            ("XDG_DATA_HOME", text(home.join(".local/share"))),
            ("XDG_STATE_HOME", text(home.join(".local/state"))),
            ("XDG_RUNTIME_DIR", text(self.runtime())),
            ("DESCARTES_STATE_DIR", text(self.state())),
            ("GIT_CONFIG_GLOBAL", text(home.join(".gitconfig"))),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            (MARK, self.mark.clone()),
        ]
    }

    /// A `descartes` command with these arguments.
    pub fn descartes<I, S>(&self, arguments: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command(bins::descartes());
        command.args(arguments);
        command
    }

    /// Writes the project's config and trusts it, as a person would.
    ///
    /// # Panics
    /// When it cannot be written or read.
    #[track_caller]
    pub fn configure(&self, config: impl AsRef<[u8]>) {
        self.write(".descartes/config.toml", config);
        self.run(self.descartes(["trust", "--yes"])).assert_code(0);
    }

    /// Stores a script of the scripted agent and gives its path, for `SCRIPTED_AGENT_FILE`.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn script(&self, script: &str) -> PathBuf {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let path = self.root().join(format!("agents/{number}.script"));
        fs::write(&path, script).expect("write a script");
        path
    }

    /// Stores a script and gives the command line, quoted for `--command`, that runs it.
    pub fn agent(&self, script: &str) -> String {
        let file = format!("SCRIPTED_AGENT_FILE={}", self.script(script).display());
        let agent = bins::scripted_agent().to_string_lossy().into_owned();
        shell_words::join(["env", &file, &agent])
    }

    /// The scripted agent as a command of its own, with this script inline.
    pub fn agent_command(&self, script: &str) -> Command {
        let mut command = self.command(bins::scripted_agent());
        command.env("SCRIPTED_AGENT", script);
        command
    }

    /// Runs a command to its end, at most two minutes, and gives what it printed.
    #[track_caller]
    pub fn run(&self, command: Command) -> Finished {
        self.run_within(command, Duration::from_secs(120))
    }

    /// Runs a command to its end and gives what it printed. Its output goes to files, so that a
    /// process it leaves behind cannot hold the caller.
    ///
    /// # Panics
    /// When it cannot be started, or still runs after `within`.
    #[track_caller]
    pub fn run_within(&self, command: Command, within: Duration) -> Finished {
        self.watch(command, within)
            .unwrap_or_else(|so_far| panic!("still running after {within:?}\n{so_far}"))
    }

    /// Runs a command and gives what it printed.
    ///
    /// # Errors
    /// When it still ran after `within`: what it had printed until it was killed.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn watch(&self, command: Command, within: Duration) -> Result<Finished, Finished> {
        finished::run(&self.root().join("tmp"), command, within)
    }

    /// Runs git in the project and gives its standard output, trimmed.
    ///
    /// # Panics
    /// When git fails.
    #[track_caller]
    pub fn git<I, S>(&self, arguments: I) -> String
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command("git");
        command.args(arguments);
        self.run(command).assert_code(0).stdout().trim().to_owned()
    }

    /// Makes the project a git repository with one commit.
    pub fn git_init(&self) {
        self.git(["init", "--quiet"]);
        self.write("README.md", "a project\n");
        self.git(["add", "."]);
        self.git(["commit", "--quiet", "--message", "begin"]);
    }

    /// The value of [`MARK`] in this world.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Every live process of this world.
    pub fn processes(&self) -> Vec<Process> {
        process::marked(MARK, &self.mark)
    }

    /// Fails unless every process of this world is gone soon. What is left for good stays far longer
    /// than this; a process that is told to end may wait long for a processor.
    ///
    /// # Panics
    /// When some are left.
    #[track_caller]
    pub fn assert_no_survivors(&self) {
        process::assert_no_survivors(MARK, &self.mark, Duration::from_secs(20));
    }

    /// Kills every process of this world.
    pub fn end_all(&self) -> Vec<Process> {
        process::end_marked(MARK, &self.mark, Duration::from_secs(5))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn has_room(folder: &Path) -> bool {
    let is_writable = access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    let room = statvfs(folder).map(|found| found.blocks_available() * found.fragment_size());
    is_writable && room.is_ok_and(|room| room >= MEMORY_NEEDED)
}
