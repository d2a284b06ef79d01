//! Calls that can start nothing else: one process, waited for in this thread.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use descartes_proc::{Waiting, find_program, wait_for_exit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::guards::{Guards, HURRY, TAIL};
use super::{Call, GitOutput, filled, last_words, scratch};
use crate::worktree::deadline::Deadline;
use crate::worktree::error::WorktreeError;

/// What a call that is under way may take once somebody wished for the end of all calls: far more
/// than one needs that does not hang. One that begins later takes work into safety, and has longer.
const LEFT_WHEN_ENDED: Duration = Duration::from_secs(3);

impl Call {
    pub(super) fn run_plain(self, deadline: Deadline) -> Result<GitOutput, WorktreeError> {
        let verb = self.verb();
        let guards = self.guards.as_deref();
        if guards.is_some_and(Guards::refuses) {
            return Err(WorktreeError::Stopped { verb });
        }
        let failed = |error: io::Error| WorktreeError::Git {
            verb: verb.clone(),
            code: None,
            message: error.to_string(),
        };
        // Files instead of pipes, so that nothing has to be read while it runs.
        let mut out = scratch().map_err(failed)?;
        let mut err = scratch().map_err(failed)?;
        let stdin = match &self.stdin {
            Some(bytes) => Stdio::from(filled(bytes).map_err(failed)?),
            None => Stdio::null(),
        };
        let environment = self.environment();
        let mut command = Command::new(self.found(&environment));
        command
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(environment)
            .stdin(stdin)
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(err.try_clone().map_err(failed)?)
            // A group of its own: Ctrl-C on a terminal is for us.
            .process_group(0);
        let left_at_end = match guards.is_some_and(Guards::is_end_wished) {
            true => HURRY,
            false => LEFT_WHEN_ENDED,
        };
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !self.dir.is_dir() => {
                WorktreeError::NoFolder(self.dir.clone())
            }
            io::ErrorKind::NotFound => WorktreeError::GitMissing,
            _ => failed(error),
        })?;
        let status = wait(child, &deadline, guards, left_at_end).map_err(failed)?;
        let asked_to_stop = deadline.is_stopped();
        let status = match status {
            Ok(status) => status,
            Err(waited) if waited == Waiting::Woken || asked_to_stop => {
                return Err(WorktreeError::Stopped { verb });
            }
            Err(_) => {
                return Err(WorktreeError::Late {
                    verb,
                    limit: deadline.limit,
                });
            }
        };
        Ok(GitOutput {
            code: status.code(),
            stdout: read_all(&mut out).map_err(failed)?,
            stderr: last_words(&read_tail(&mut err).map_err(failed)?),
            verb,
        })
    }
}

impl Call {
    /// The program with its folder. Where the system has to look for it in a PATH that was set for the call, the
    /// standard library copies this whole process to start it.
    fn found(&self, environment: &[(OsString, OsString)]) -> PathBuf {
        let path = environment.iter().rev().find(|(key, _)| key == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        match find_program(self.program.as_os_str(), path, &self.dir) {
            Ok(found) if found.is_absolute() => found,
            _ => self.program.clone(),
        }
    }
}

/// Waits for the end. At the deadline, and a while after somebody wished for the end of all calls,
/// the whole group is killed.
fn wait(
    mut child: Child,
    deadline: &Deadline,
    guards: Option<&Guards>,
    left_at_end: Duration,
) -> io::Result<Result<ExitStatus, Waiting>> {
    let wake = guards.and_then(Guards::end_wished);
    let mut waited = loop {
        let waited = wait_for_exit(child.id(), deadline.next_look(), wake);
        if waited != Waiting::Late || deadline.check().is_err() {
            break waited;
        }
    };
    if waited == Waiting::Woken {
        let limit = deadline.left().min(left_at_end);
        waited = match wait_for_exit(child.id(), limit, None) {
            Waiting::Ended => Waiting::Ended,
            _ => Waiting::Woken,
        };
    }
    if waited != Waiting::Ended {
        // It is not reaped yet, so its group is still its own.
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    }
    let status = child.wait()?;
    Ok(match waited {
        Waiting::Ended => Ok(status),
        other => Err(other),
    })
}

fn read_all(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_tail(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL as u64)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use descartes_proc::Ending;

    use super::*;
    use crate::worktree::git::Git;

    #[test]
    fn a_call_that_hangs_is_ended_with_all_others_and_later_ones_have_time() {
        let dir = tempfile::tempdir().unwrap();
        let guards = Guards::new(None, "plain");
        let shell = Git::default().program("/bin/sh").guarded_by(guards.clone());
        let call = |script: &str| shell.read(dir.path()).args(["-c", script]);
        let limit = || Deadline::after(Duration::from_secs(120));
        let began = Instant::now();
        let error = std::thread::scope(|scope| {
            let hangs = call(": > runs; exec sleep 120");
            let run = scope.spawn(|| hangs.run(limit()).err());
            while !dir.path().join("runs").exists() {
                std::thread::yield_now();
            }
            guards.end(Ending::Kill);
            run.join().unwrap()
        });
        assert!(
            matches!(error, Some(WorktreeError::Stopped { .. })),
            "{error:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(60));
        // Longer than one that was under way is left.
        let later = call("exec sleep 4").run(limit());
        assert_eq!(later.ok().and_then(|answer| answer.code), Some(0));
    }

    #[test]
    fn a_folder_that_is_gone_is_named_and_not_taken_for_a_missing_git() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let call = Git::default().read(&gone).arg("version");
        let error = call.run(Deadline::after(Duration::from_secs(60))).err();
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(&gone.display().to_string()), "{message}");
        let git = Git::default().program("/nowhere/git");
        let call = git.read(dir.path()).arg("version");
        let error = call.run(Deadline::after(Duration::from_secs(60))).err();
        assert!(matches!(error, Some(WorktreeError::GitMissing)));
    }
}
