//! What to start, and why it could not be started.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

/// The kernel's bounds: one string has at most 32 pages, all of them together at most 6 MiB.
const LONGEST_STRING: usize = 128 * 1024;
const LONGEST_SUM: usize = 6 * 1024 * 1024;

/// Where programs are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the agent reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: end-of-file at once.
    Null,
    /// This file. A file and not a pipe, so that an agent that never reads cannot block the host.
    File(PathBuf),
}

/// One start of an agent, complete: nothing is taken from the host's surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments; a program without a slash is looked for in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; a program with a slash is relative to it.
    pub cwd: PathBuf,
    /// Standard input.
    pub stdin: Stdin,
    /// Time to finish once the host is gone, before it is asked to end: a git that is signalled between
    /// making a lock file and noting it leaves the lock for ever.
    pub finish: Duration,
}

/// Why an agent could not be started. Nothing runs when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("agent not found: {}{}", .0.display(), where_searched(.0))]
    NotFound(PathBuf),
    /// The program is there and cannot be executed, for the reason given.
    #[error("cannot execute {}: {}", .0.display(), .1)]
    NotExecutable(PathBuf, String),
    /// The program is a script whose first line names an interpreter that is not there.
    #[error(
        "cannot execute {}: its first line asks for {interpreter}, which is not there",
        program.display()
    )]
    NoInterpreter {
        /// The script.
        program: PathBuf,
        /// As the script names it.
        interpreter: String,
    },
    /// Arguments and environment are longer than the kernel takes.
    #[error("the agent's arguments and environment are too long for the system")]
    TooLong,
    /// The working directory cannot be entered, for the reason given.
    #[error("cannot work in {}: {}", .0.display(), .1)]
    BadCwd(PathBuf, String),
    /// The launch itself makes no sense: no program, or a NUL byte within a string.
    #[error("cannot start the agent: {0}")]
    BadArgument(String),
    /// The run before this one is not over.
    #[error("cannot start the agent: another one is still running")]
    Busy,
    /// The guard ended while the agent was being started.
    #[error("the guard process was lost while it started the agent")]
    GuardLost,
    /// Anything else.
    #[error("cannot start the agent: {0}")]
    Io(#[from] io::Error),
}

impl StartError {
    /// Whether it may be otherwise in a moment, though nobody does anything about it: programs are replaced by
    /// their updaters, and processes and memory may be short for a while.
    pub fn may_pass(&self) -> bool {
        match self {
            StartError::NotFound(_)
            | StartError::NotExecutable(..)
            | StartError::NoInterpreter { .. }
            | StartError::GuardLost
            | StartError::Io(_) => true,
            StartError::TooLong
            | StartError::BadCwd(..)
            | StartError::BadArgument(_)
            | StartError::Busy => false,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StartError::NotFound(_) => Some(
                "install it, or give its full path; to see what is installed: descartes agents",
            ),
            StartError::NotExecutable(..) => {
                Some("make it executable (chmod +x), or put its interpreter before it: `sh FILE`")
            }
            StartError::NoInterpreter { interpreter, .. } if interpreter.ends_with('\r') => {
                Some("its lines end in CR LF: save it with plain line ends")
            }
            StartError::NoInterpreter { .. } => {
                Some("install that, or change the `#!` line to one that is there")
            }
            StartError::TooLong => Some("pass the prompt on standard input or as a file"),
            StartError::BadCwd(..) => Some("choose an existing directory that can be entered"),
            StartError::GuardLost => Some("something killed it; try again"),
            StartError::BadArgument(_) | StartError::Busy | StartError::Io(_) => None,
        }
    }
}

fn where_searched(program: &Path) -> &'static str {
    if has_slash(program.as_os_str()) {
        ""
    } else {
        " (searched in PATH)"
    }
}

/// A launch as the kernel takes it.
pub(crate) struct Order {
    pub(crate) program: CString,
    pub(crate) cwd: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) finish: Duration,
}

impl Launch {
    /// Checks everything that can be checked before a process exists, so that errors are exact.
    pub(crate) fn order(&self) -> Result<Order, StartError> {
        let name = self.argv.first().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| StartError::BadArgument("the command is empty".into()))?;
        let argv = self
            .argv
            .iter()
            .map(|arg| c_string(arg.clone(), "an argument"));
        let env = self.env.iter().map(|(key, value)| {
            let mut entry = key.clone();
            entry.push("=");
            entry.push(value);
            c_string(entry, "the environment")
        });
        let argv = argv.collect::<Result<Vec<_>, _>>()?;
        let env = env.collect::<Result<Vec<_>, _>>()?;
        check_length(&argv, &env)?;
        let cwd = self.checked_cwd()?;
        let path = self.env.iter().rev().find(|(key, _)| key == "PATH");
        let program = find_program(name, path.map(|(_, value)| value.as_os_str()), &cwd)?;
        Ok(Order {
            program: c_string(program.into_os_string(), "the command")?,
            cwd: c_string(cwd.into_os_string(), "the working directory")?,
            argv,
            env,
            finish: self.finish,
        })
    }

    fn checked_cwd(&self) -> Result<PathBuf, StartError> {
        let bad = |reason: String| StartError::BadCwd(self.cwd.clone(), reason);
        // The guard stands elsewhere, so the path must not depend on where the host is.
        let cwd = std::path::absolute(&self.cwd).map_err(|error| bad(error.to_string()))?;
        let found = std::fs::metadata(&cwd).map_err(|error| bad(plain(&error)))?;
        if !found.is_dir() {
            return Err(bad("not a directory".into()));
        }
        access(&cwd, AccessFlags::X_OK).map_err(|errno| bad(errno.desc().to_lowercase()))?;
        Ok(cwd)
    }

    /// Makes an error of what the kernel said after all our checks.
    pub(crate) fn refused(&self, errno: Errno) -> StartError {
        let program = || PathBuf::from(self.argv.first().cloned().unwrap_or_default());
        let not_executable = |why: &str| StartError::NotExecutable(program(), why.into());
        match errno {
            Errno::E2BIG => StartError::TooLong,
            // The file was there a moment ago, so what is missing is what it asks for.
            Errno::ENOENT => not_executable("the interpreter it names is missing"),
            Errno::ENOEXEC => not_executable("neither a binary nor a script with a `#!` line"),
            Errno::EACCES | Errno::EPERM => not_executable("permission denied"),
            other => StartError::Io(other.into()),
        }
    }
}

/// Finds what would be executed for `program`: a path with a slash as it is, relative to `cwd`;
/// else the first executable file of that name in `path`.
pub fn find_program(
    program: &OsStr,
    path: Option<&OsStr>,
    cwd: &Path,
) -> Result<PathBuf, StartError> {
    if has_slash(program) {
        return match executable(&cwd.join(program)) {
            Some(Ok(())) => interpreted(&cwd.join(program), PathBuf::from(program)),
            Some(Err(why)) => Err(StartError::NotExecutable(program.into(), why.into())),
            None => Err(StartError::NotFound(program.into())),
        };
    }
    let mut refused = None;
    for folder in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let candidate = cwd.join(folder).join(program);
        match executable(&candidate) {
            Some(Ok(())) => return interpreted(&candidate.clone(), candidate),
            Some(Err(why)) => {
                refused.get_or_insert(StartError::NotExecutable(candidate, why.into()));
            }
            None => {}
        }
    }
    Err(refused.unwrap_or_else(|| StartError::NotFound(program.into())))
}

/// `None` when nothing is there.
fn executable(path: &Path) -> Option<Result<(), &'static str>> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() {
        return Some(Err("not a file"));
    }
    Some(access(path, AccessFlags::X_OK).map_err(|_| "permission denied"))
}

/// Longest first line of a script that the kernel reads.
const FIRST_LINE: u64 = 256;

/// `program`, whose file is at `path`, if its interpreter is there.
fn interpreted(path: &Path, program: PathBuf) -> Result<PathBuf, StartError> {
    match interpreter_of(path) {
        Some(interpreter) if !Path::new(&interpreter).exists() => Err(StartError::NoInterpreter {
            program,
            interpreter,
        }),
        _ => Ok(program),
    }
}

/// The interpreter that a script names by its whole path.
fn interpreter_of(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = str::from_utf8(words.into_iter().find(|word| !word.is_empty())?).ok()?;
    interpreter.starts_with('/').then(|| interpreter.to_owned())
}

fn has_slash(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

fn c_string(text: OsString, what: &str) -> Result<CString, StartError> {
    CString::new(text.into_vec())
        .map_err(|_| StartError::BadArgument(format!("{what} contains a NUL byte")))
}

fn check_length(argv: &[CString], env: &[CString]) -> Result<(), StartError> {
    let mut sum = 0;
    for text in argv.iter().chain(env) {
        let length = text.as_bytes_with_nul().len();
        if length > LONGEST_STRING {
            return Err(StartError::TooLong);
        }
        sum += length;
    }
    if sum > LONGEST_SUM {
        Err(StartError::TooLong)
    } else {
        Ok(())
    }
}

/// The words of an I/O error without its number.
fn plain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => Errno::from_raw(number).desc().to_lowercase(),
        None => error.to_string(),
    }
}
