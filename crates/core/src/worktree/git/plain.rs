//! Calls that can start nothing else: one process, waited for in this thread.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use descartes_proc::{Waiting, wait_for_exit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::guards::TAIL;
use super::{Answer, Call, filled, last_words, scratch};
use crate::worktree::deadline::Deadline;
use crate::worktree::error::WorktreeError;

impl Call {
    pub(super) fn run_plain(self, deadline: Deadline) -> Result<Answer, WorktreeError> {
        let verb = self.verb();
        let failed = |error: io::Error| WorktreeError::Git {
            verb: verb.clone(),
            code: None,
            words: error.to_string(),
        };
        // Files instead of pipes, so that nothing has to be read while it runs.
        let mut out = scratch().map_err(failed)?;
        let mut err = scratch().map_err(failed)?;
        let stdin = match &self.stdin {
            Some(bytes) => Stdio::from(filled(bytes).map_err(failed)?),
            None => Stdio::null(),
        };
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .stdin(stdin)
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(err.try_clone().map_err(failed)?)
            // A group of its own: Ctrl-C on a terminal is for us.
            .process_group(0);
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !self.dir.is_dir() => {
                WorktreeError::NoFolder(self.dir.clone())
            }
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
            stderr: last_words(&read_tail(&mut err).map_err(failed)?),
            verb,
        })
    }
}

/// Waits for the end, or ends the whole group at the deadline (`None`).
fn wait(mut child: Child, deadline: Deadline) -> io::Result<Option<ExitStatus>> {
    let waited = wait_for_exit(child.id(), deadline.left());
    if waited == Waiting::Late {
        // It is not reaped yet, so its group is still its own.
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    }
    let status = child.wait()?;
    Ok((waited == Waiting::Ended).then_some(status))
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
    use std::time::Duration;

    use super::*;
    use crate::worktree::git::Git;

    #[test]
    fn a_folder_that_is_gone_is_named_and_not_taken_for_a_missing_git() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let call = Git::default().read(&gone).arg("version");
        let error = call.run(Deadline::after(Duration::from_secs(60))).err();
        let words = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(words.contains(&gone.display().to_string()), "{words}");
        let git = Git::default().program("/nowhere/git");
        let call = git.read(dir.path()).arg("version");
        let error = call.run(Deadline::after(Duration::from_secs(60))).err();
        assert!(matches!(error, Some(WorktreeError::GitMissing)));
    }
}
