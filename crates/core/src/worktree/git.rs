//! Calling `git` as the user would, with an end in sight.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::deadline::Deadline;
use super::error::WorktreeError;

/// Which git to call, and in what environment.
#[derive(Clone, Debug, Default)]
pub struct Git {
    program: Option<PathBuf>,
    env: Vec<(OsString, Option<OsString>)>,
}

impl Git {
    /// Another program than the `git` on PATH.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Git {
        self.program = Some(path.into());
        self
    }

    /// A variable that git and its hooks get besides this process's own.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Git {
        self.env.push((key.into(), Some(value.into())));
        self
    }

    /// A variable of this process that git and its hooks do not get.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Git {
        self.env.push((key.into(), None));
        self
    }

    /// The value that git would see.
    pub(crate) fn var(&self, key: &str) -> Option<OsString> {
        match self.env.iter().rev().find(|(k, _)| k == key) {
            Some((_, value)) => value.clone(),
            None => std::env::var_os(key),
        }
    }

    /// A call that only reads: no hook, no prompt, no lock on the user's index, plain English.
    pub(crate) fn read(&self, dir: &Path) -> Call {
        let mut call = self.call(dir);
        for setting in READ_CONFIG {
            call = call.arg("-c").arg(setting);
        }
        call.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C")
    }

    /// A call that changes the repository as the user's own would: hooks run.
    pub(crate) fn act(&self, dir: &Path) -> Call {
        self.call(dir).env("GIT_EDITOR", ":")
    }

    fn call(&self, dir: &Path) -> Call {
        let program = self.program.clone().unwrap_or_else(|| "git".into());
        let mut command = Command::new(program);
        command.current_dir(dir).env("GIT_TERMINAL_PROMPT", "0");
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        Call {
            command,
            stdin: None,
        }
    }
}

/// Measuring must not start what the user's configuration starts on such occasions.
const READ_CONFIG: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "advice.addEmbeddedRepo=false",
    "advice.addIgnoredFile=false",
];

/// One call that is being put together.
pub(crate) struct Call {
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Call {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Call {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Call {
        self.command.env(key, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Call {
        self.stdin = Some(bytes);
        self
    }

    /// Runs it; any exit code is an answer.
    pub(crate) fn run(mut self, deadline: Deadline) -> Result<Answer, WorktreeError> {
        let verb = self.verb();
        let failed = |error: io::Error| WorktreeError::Git {
            verb: verb.clone(),
            code: None,
            words: error.to_string(),
        };
        // Files instead of pipes: a hook that leaves a daemon behind cannot keep us waiting for
        // the end of its output.
        let mut out = scratch().map_err(failed)?;
        let mut err = scratch().map_err(failed)?;
        let stdin = match self.stdin.take() {
            Some(bytes) => Stdio::from(filled(&bytes).map_err(failed)?),
            None => Stdio::null(),
        };
        self.command
            .stdin(stdin)
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(err.try_clone().map_err(failed)?)
            // A group of its own, so that git is ended together with the hooks it started.
            .process_group(0);
        let child = self.command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => WorktreeError::GitMissing,
            _ => failed(error),
        })?;
        let status = wait(child, deadline).map_err(failed)?;
        let Some(status) = status else {
            return Err(WorktreeError::Late {
                verb,
                limit: deadline.limit,
            });
        };
        Ok(Answer {
            code: status.code(),
            stdout: read_all(&mut out).map_err(failed)?,
            stderr: String::from_utf8_lossy(&read_all(&mut err).map_err(failed)?).into_owned(),
            verb,
        })
    }

    /// Runs it; any exit code but 0 is an error. Gives standard output.
    pub(crate) fn output(self, deadline: Deadline) -> Result<Vec<u8>, WorktreeError> {
        let answer = self.run(deadline)?;
        if answer.code == Some(0) {
            Ok(answer.stdout)
        } else {
            Err(answer.error())
        }
    }

    /// The subcommand: the first word that is no option and no value of `-c`.
    fn verb(&self) -> String {
        let mut args = self.command.get_args();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else if !arg.as_encoded_bytes().starts_with(b"-") {
                return arg.to_string_lossy().into_owned();
            }
        }
        String::new()
    }
}

/// How a call went.
pub(crate) struct Answer {
    verb: String,
    /// `None` when it was killed by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn error(self) -> WorktreeError {
        let words = self.words();
        WorktreeError::Git {
            verb: self.verb,
            code: self.code,
            words,
        }
    }

    /// What git said, for people: standard error, or else standard output, or else the code.
    pub(crate) fn words(&self) -> String {
        let out = String::from_utf8_lossy(&self.stdout);
        match (self.stderr.trim(), out.trim(), self.code) {
            ("", "", Some(code)) => format!("exit code {code}"),
            ("", "", None) => "killed by a signal".to_owned(),
            ("", out, _) => out.to_owned(),
            (err, _, _) => err.to_owned(),
        }
    }
}

/// Waits for the end, or ends the whole group at the deadline (`None`).
fn wait(mut child: Child, deadline: Deadline) -> io::Result<Option<ExitStatus>> {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (over, ended) = mpsc::channel::<()>();
    let late = std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let late = ended.recv_timeout(deadline.left()) == Err(RecvTimeoutError::Timeout);
            if late {
                // The child is not reaped before this thread is done, so its group is still its own.
                let _ = killpg(pid, Signal::SIGKILL);
            }
            late
        });
        while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
            == Err(nix::errno::Errno::EINTR)
        {}
        drop(over);
        watch.join().unwrap_or(false)
    });
    let status = child.wait()?;
    Ok((!late).then_some(status))
}

/// A file without a name, for the output of one call.
fn scratch() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::memfd::{MFdFlags, memfd_create};
        if let Ok(fd) = memfd_create("git", MFdFlags::MFD_CLOEXEC) {
            return Ok(File::from(fd));
        }
    }
    tempfile::tempfile()
}

fn filled(bytes: &[u8]) -> io::Result<File> {
    let mut file = scratch()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn read_all(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
