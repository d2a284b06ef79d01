//! A program that is asked something: run to its end within a limit, with what it says.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use descartes_kernel::tasks::KeeperCall;
use descartes_proc::{Waiting, find_program, wait_for_exit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::question_line::QuestionLine;

/// The tasks of no tracker are longer.
const LARGEST: u64 = 64 << 20;
/// Of what it complains about, this much is told.
const COMPLAINT: usize = 400;

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// It answered.
    Answer(String),
    /// It ended with an error, and said this.
    Failed(String),
    /// It is not there.
    Missing,
    /// It took too long, and was killed.
    Late,
    /// Nobody waits for its answer any more.
    Stopped,
}

/// Runs a program with something on its standard input.
pub(super) fn ask(
    words: &[String],
    dir: &Path,
    variables: &[(&str, &str)],
    input: &str,
    call: KeeperCall,
    line: &QuestionLine,
) -> io::Result<ProgramEnd> {
    if call.limit(line.now()).is_none() {
        return Ok(ProgramEnd::Stopped);
    }
    let Some((program, args)) = words.split_first() else {
        return Ok(ProgramEnd::Missing);
    };
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input.as_bytes())?;
    stdin.rewind()?;
    let child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .envs(variables.iter().copied())
        .stdin(Stdio::from(stdin))
        .stdout(out.try_clone()?)
        .stderr(err.try_clone()?)
        // A group of its own: Ctrl-C on a terminal is for us.
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ProgramEnd::Missing),
        Err(error) => return Err(error),
    };
    let cut_off = wait(child.id(), call, line);
    if cut_off.is_some() {
        // It is not reaped yet, so its group is still its own.
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    }
    let status = child.wait()?;
    if let Some(cut_off) = cut_off {
        return Ok(cut_off);
    }
    if !status.success() {
        let complaint = text(&mut err, COMPLAINT as u64)?;
        let said = match complaint.trim().is_empty() {
            true => text(&mut out, COMPLAINT as u64)?,
            false => complaint,
        };
        return Ok(ProgramEnd::Failed(match said.trim() {
            "" => format!("it ended with {status}"),
            said => said.to_owned(),
        }));
    }
    if out.seek(SeekFrom::End(0))? > LARGEST {
        let message = format!("it printed more than {} MiB", LARGEST >> 20);
        return Ok(ProgramEnd::Failed(message));
    }
    text(&mut out, LARGEST).map(ProgramEnd::Answer)
}

/// Waits for a program; answers why it is not waited for any longer.
fn wait(child: u32, call: KeeperCall, line: &QuestionLine) -> Option<ProgramEnd> {
    let since = Instant::now();
    loop {
        let Some(limit) = call.limit(line.now()) else {
            return Some(ProgramEnd::Stopped);
        };
        let left = limit.saturating_sub(since.elapsed());
        match wait_for_exit(child, left, line.wake()) {
            Waiting::Ended => return None,
            Waiting::Late => return Some(ProgramEnd::Late),
            Waiting::Woken => line.heard(),
        }
    }
}

fn text(file: &mut File, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a program is on the PATH.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH");
    find_program(program.as_ref(), path.as_deref(), Path::new("/")).is_ok()
}
