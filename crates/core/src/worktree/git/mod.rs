//! Calling `git`: one way for the whole program.
//!
//! A call that can start nothing else is a plain process. One that may run a program that
//! somebody configured (a hook, a filter, a merge driver, gpg) goes through [`guards`]. Each gets
//! settings of its own ([`settings`]), so that what it does depends on nobody's configuration.

pub(crate) mod confined;
pub(crate) mod guards;
mod plain;
pub(crate) mod settings;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use descartes_proc::{Ending, StartError};
use descartes_store::debug_log::variant;
use tracing::{debug, info, warn};

use super::deadline::Deadline;
use super::error::WorktreeError;
use confined::ConfinedGit;
use guards::{CallOrder, End, Guards, Manner, TAIL};
use settings::{CallSettings, Purpose};

/// A call that takes longer is worth a line in every log.
const SLOW_MS: u64 = 5000;

/// Which git to call, and in what environment.
#[derive(Clone, Debug, Default)]
pub struct Git {
    program: Option<PathBuf>,
    env: Vec<(OsString, Option<OsString>)>,
    guards: Option<Arc<Guards>>,
    programs: Option<Arc<dyn ConfinesPrograms>>,
}

/// Says with which settings a git in a folder starts filters and drivers in a sandbox.
pub(crate) trait ConfinesPrograms: std::fmt::Debug + Send + Sync {
    fn settings(&self, dir: &Path) -> Result<Vec<(OsString, OsString)>, String>;
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

    /// The guards of calls that may start other programs.
    #[must_use]
    pub(crate) fn guarded_by(mut self, guards: Arc<Guards>) -> Git {
        self.guards = Some(guards);
        self
    }

    /// Programs that its calls start are confined.
    #[must_use]
    pub(crate) fn confining_programs(mut self, programs: Arc<dyn ConfinesPrograms>) -> Git {
        self.programs = Some(programs);
        self
    }

    /// Ends guarded calls that are under way; those that come later have little time.
    pub(crate) fn end_calls(&self, how: Ending) {
        if let Some(guards) = &self.guards {
            guards.end(how);
        }
    }

    /// The value that this program was given.
    pub(crate) fn var(&self, key: &str) -> Option<OsString> {
        match self.env.iter().rev().find(|(k, _)| k == key) {
            Some((_, value)) => value.clone(),
            None => std::env::var_os(key),
        }
    }

    /// A call that only reads and can start nothing: no hook, no prompt, no lock on the user's
    /// index, plain English.
    pub(crate) fn read(&self, dir: &Path) -> Call {
        self.call(dir, Purpose::Ours).env("GIT_OPTIONAL_LOCKS", "0")
    }

    /// The same with an index and objects of our own.
    pub(crate) fn measure(&self, dir: &Path) -> Call {
        let mut call = self.call(dir, Purpose::Ours);
        call.settings.is_apart = true;
        call.env("GIT_OPTIONAL_LOCKS", "0")
    }

    /// A call that changes the repository as the user's own would: hooks run.
    pub(crate) fn act(&self, dir: &Path) -> Call {
        self.call(dir, Purpose::Users).guarded(Manner::Hooks)
    }

    /// A call that changes trees of our own, without hooks; filters run.
    pub(crate) fn own(&self, dir: &Path) -> Call {
        self.call(dir, Purpose::Ours).guarded(Manner::End)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        for (key, value) in &self.env {
            all.retain(|(k, _)| k != key);
            if let Some(value) = value {
                all.push((key.clone(), value.clone()));
            }
        }
        all
    }

    /// What is called.
    pub(super) fn program_name(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| "git".into())
    }

    fn call(&self, dir: &Path, purpose: Purpose) -> Call {
        Call {
            program: self.program_name(),
            args: Vec::new(),
            given: self.environment(),
            settings: CallSettings::new(purpose),
            variables: Vec::new(),
            dir: dir.to_owned(),
            stdin: None,
            silence: None,
            manner: None,
            guards: self.guards.clone(),
            programs: self.programs.clone(),
            confined: None,
        }
    }
}

/// One call that is being put together.
pub(crate) struct Call {
    program: PathBuf,
    args: Vec<OsString>,
    /// The environment of this program, as far as git's settings leave it.
    given: Vec<(OsString, OsString)>,
    settings: CallSettings,
    /// For this call alone.
    variables: Vec<(OsString, OsString)>,
    dir: PathBuf,
    stdin: Option<Vec<u8>>,
    /// It is ended where it says nothing for so long: only where it is guarded.
    silence: Option<Duration>,
    /// How it is guarded; `None`: it can start nothing.
    manner: Option<Manner>,
    guards: Option<Arc<Guards>>,
    programs: Option<Arc<dyn ConfinesPrograms>>,
    /// It runs in this sandbox.
    confined: Option<Arc<ConfinedGit>>,
}

impl Call {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Call {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Call {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Call {
        self.variables.push((key.into(), value.as_ref().to_owned()));
        self
    }

    /// Settings for this call alone.
    pub(crate) fn configured(mut self, settings: &[(OsString, OsString)]) -> Call {
        self.settings.more.extend(settings.iter().cloned());
        self
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Call {
        self.stdin = Some(bytes);
        self
    }

    /// It tells of its progress, and hangs where it says nothing for so long.
    pub(crate) fn ended_when_silent(mut self, limit: Duration) -> Call {
        self.silence = Some(limit);
        self
    }

    /// It may start other programs.
    pub(crate) fn guarded(mut self, manner: Manner) -> Call {
        self.manner = Some(manner);
        self
    }

    /// It runs in a sandbox, and so does all that it starts.
    pub(crate) fn confined(mut self, by: Option<&Arc<ConfinedGit>>) -> Call {
        self.confined = by.cloned();
        self
    }

    /// Runs it; any exit code is an answer.
    pub(crate) fn run(self, deadline: Deadline) -> Result<GitOutput, WorktreeError> {
        let (verb, began) = (self.verb(), Instant::now());
        let answer = match self.manner {
            None => self.run_plain(deadline),
            Some(manner) => self.run_guarded(manner, deadline),
        };
        let ms = began.elapsed().as_millis() as u64;
        match &answer {
            Ok(answer) if ms < SLOW_MS => debug!(verb, code = answer.code, ms, "git"),
            Ok(answer) => info!(verb, code = answer.code, ms, "git was slow"),
            Err(error) => warn!(verb, error = %variant(error), ms, "git failed"),
        }
        answer
    }

    fn run_guarded(
        mut self,
        manner: Manner,
        deadline: Deadline,
    ) -> Result<GitOutput, WorktreeError> {
        let verb = self.verb();
        if let (Some(programs), None) = (&self.programs, &self.confined) {
            let settings = programs.settings(&self.dir);
            let settings = settings.map_err(|message| WorktreeError::Git {
                verb: verb.clone(),
                code: None,
                message,
            })?;
            self.settings.more.extend(settings);
        }
        let guards = match &self.guards {
            Some(guards) => guards.clone(),
            None => Guards::new(None, &format!("git-{}", uuid::Uuid::now_v7())),
        };
        let dir = self.dir.clone();
        let mut env = self.environment();
        let mut argv = vec![self.program.into_os_string()];
        if let Some(confined) = &self.confined {
            argv = confined.words(argv, &dir);
            env = confined.environment(env);
        }
        argv.extend(self.args);
        let order = CallOrder {
            argv,
            env,
            cwd: self.dir,
            stdin: self.stdin,
            limit: deadline.left(),
            silence: self.silence,
            manner,
        };
        let ran = guards.run(order).map_err(|error| match error {
            StartError::NotFound(_) if !dir.is_dir() => WorktreeError::NoFolder(dir.clone()),
            StartError::NotFound(_) => WorktreeError::GitMissing,
            other => WorktreeError::Git {
                verb: verb.clone(),
                code: None,
                message: other.to_string(),
            },
        })?;
        match ran.end {
            End::Exit(code) => Ok(GitOutput {
                verb,
                code,
                stdout: ran.stdout,
                stderr: last_words(&ran.stderr),
            }),
            End::Late => Err(WorktreeError::Late {
                verb,
                limit: deadline.limit,
            }),
            End::Silent => Err(WorktreeError::Silent {
                verb,
                limit: self.silence.unwrap_or_default(),
            }),
            End::Stopped => Err(WorktreeError::Stopped { verb }),
        }
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

    /// All that the process gets.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let settings = self.settings.clone();
        let mut all = settings.environment(self.given.clone(), &self.verb());
        for (key, value) in &self.variables {
            all.retain(|(k, _)| k != key);
            all.push((key.clone(), value.clone()));
        }
        all
    }

    /// The subcommand: the first word that is no option and no value of `-c`.
    fn verb(&self) -> String {
        let mut args = self.args.iter();
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
pub(crate) struct GitOutput {
    verb: String,
    /// `None` when it was killed by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// Its end.
    pub(crate) stderr: String,
}

impl GitOutput {
    pub(crate) fn error(self) -> WorktreeError {
        let message = self.describe();
        WorktreeError::Git {
            verb: self.verb,
            code: self.code,
            message,
        }
    }

    /// What git said, for people: standard error, or else standard output, or else the code.
    pub(crate) fn describe(&self) -> String {
        let out = self.said();
        match (self.stderr.trim(), out.trim(), self.code) {
            ("", "", Some(code)) => format!("exit code {code}"),
            ("", "", None) => "killed by a signal".to_owned(),
            ("", out, _) => out.to_owned(),
            (err, _, _) => err.to_owned(),
        }
    }

    /// The end of standard output, for people.
    pub(crate) fn said(&self) -> String {
        last_words(&self.stdout)
    }
}

/// The end of what was said, from the beginning of a line where it is cut.
fn last_words(bytes: &[u8]) -> String {
    if bytes.len() < TAIL {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let tail = bytes
        .get(bytes.len().saturating_sub(TAIL)..)
        .unwrap_or_default();
    let line = tail.iter().position(|byte| *byte == b'\n');
    let whole = match line {
        Some(at) if at + 1 < tail.len() => tail.get(at + 1..).unwrap_or_default(),
        _ => tail,
    };
    format!("…\n{}", String::from_utf8_lossy(whole))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_much_that_is_said_whole_lines_of_the_end_are_kept() {
        let said: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let message = last_words(said.as_bytes());
        assert!(message.len() <= TAIL + 8, "{}", message.len());
        assert!(message.starts_with("…\nline "));
        assert!(message.ends_with("line 9999\n"));
        assert_eq!(last_words(b"short"), "short");
    }
}
