//! Running a command to its end, with a limit, and what it printed.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::wait;

/// A command that ended: its status and both outputs.
#[derive(Debug, Clone)]
pub struct Finished {
    command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// The bytes of its standard output.
    pub stdout: Vec<u8>,
    /// The bytes of its standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Its standard output as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its standard error as text.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Its exit code; none when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails, showing everything it printed, unless it exited with `code`.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert!(
            self.code() == Some(code),
            "expected exit code {code}\n{self}"
        );
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.command, self.status)?;
        writeln!(f, "----- stdout\n{}", self.stdout())?;
        writeln!(f, "----- stderr\n{}", self.stderr())
    }
}

/// Runs a command; the error is what it had done when its time was over and it was killed.
pub(super) fn run(
    folder: &Path,
    mut command: Command,
    within: Duration,
) -> Result<Finished, Finished> {
    let capture = tempfile::tempdir_in(folder).expect("make a folder for the output");
    let [out, err] = ["stdout", "stderr"].map(|name| capture.path().join(name));
    command.stdout(File::create(&out).expect("capture stdout"));
    command.stderr(File::create(&err).expect("capture stderr"));
    let line = format!("{command:?}");
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    let in_time = wait::poll(within, &mut || child.try_wait().expect("wait for a child"));
    let status = in_time.unwrap_or_else(|| {
        let _ = child.kill();
        child.wait().expect("reap a child")
    });
    let [stdout, stderr] = [&out, &err].map(|path| fs::read(path).expect("read captured output"));
    let finished = Finished {
        command: line,
        status,
        stdout,
        stderr,
    };
    if in_time.is_some() {
        Ok(finished)
    } else {
        Err(finished)
    }
}
