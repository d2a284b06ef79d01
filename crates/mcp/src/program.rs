//! Calling the command line for what only it can do. It runs as a person would have run it, below this
//! server: so a loop that the server runs in refuses it as it would refuse its agent.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tracing::debug;

use crate::answer::ToolFailure;

/// It ends by then, or is given up. Cancelling waits for processes that are slow to end.
const LIMIT: Duration = Duration::from_secs(120);
/// Bytes of what it says on standard error.
const TALK: usize = 16 << 10;
/// Bytes of what it prints where that is JSON.
const JSON_OUTPUT: usize = 8 << 20;
/// Set to `1` it would allow what only a flag of the server allows.
const NESTED: &str = "DESCARTES_NESTED";

/// What to do with it when the client gives up, or the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfGivenUp {
    /// It only looks.
    Kill,
    /// What it has begun it finishes.
    LetFinish,
}

/// The command line, in one folder.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub program: &'a Path,
    pub folder: &'a Path,
    /// What it is given on standard input.
    pub input: Option<&'a str>,
}

/// What it printed, and whether that is all.
pub struct Printed {
    pub bytes: Vec<u8>,
    pub cut: bool,
}

impl<'a> Program<'a> {
    /// The same with something on standard input.
    pub fn with_input(self, input: Option<&'a str>) -> Self {
        Self { input, ..self }
    }

    /// Runs it; gives the first `most` bytes of its standard output.
    pub async fn run(
        self,
        words: &[&str],
        most: usize,
        end: IfGivenUp,
    ) -> Result<Printed, ToolFailure> {
        let (code, printed, talk) = self.ran(words, most, end).await?;
        match code == Some(0) || printed.cut {
            true => Ok(printed),
            false => Err(told(&talk)),
        }
    }

    /// Runs it and reads what it printed as JSON; findings may make its exit code 1.
    pub async fn json(self, words: &[&str], end: IfGivenUp) -> Result<Value, ToolFailure> {
        let (code, printed, talk) = self.ran(words, JSON_OUTPUT, end).await?;
        match (code, serde_json::from_slice(&printed.bytes)) {
            (Some(0 | 1), Ok(value)) => Ok(value),
            _ => Err(told(&talk)),
        }
    }

    async fn ran(
        self,
        words: &[&str],
        most: usize,
        end: IfGivenUp,
    ) -> Result<(Option<i32>, Printed, Vec<u8>), ToolFailure> {
        debug!(verb = ?words.get(..2), "calling the command line");
        let mut command = Command::new(self.program);
        command
            .args(["--color", "never"])
            .args(words)
            .env_remove(NESTED)
            .current_dir(self.folder)
            .stdin(match self.input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(end == IfGivenUp::Kill)
            // A signal to the server's group is none to what it started.
            .process_group(0);
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::ArgumentListTooLong => ToolFailure::new(
                "an argument is longer than the system passes on to a program (128 KiB)",
                "write the text into a file of the project and name that file instead",
            ),
            _ => {
                let message = format!("cannot start {}: {error}", self.program.display());
                ToolFailure::new(message, "")
            }
        };
        let mut child = command.spawn().map_err(failed)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let given = give(child.stdin.take(), self.input.unwrap_or_default());
        let ended = tokio::time::timeout(LIMIT, async {
            let (printed, talk, ()) = tokio::join!(read(out, most), read(err, TALK), given);
            (child.wait().await, printed, talk)
        });
        let (status, printed, talk) = ended.await.map_err(|_| {
            let hint = "a person can try it in a terminal";
            ToolFailure::new("it took longer than two minutes", hint)
        })?;
        Ok((status.map_err(failed)?.code(), printed, talk.bytes))
    }
}

/// Writes all of it, and closes the pipe. A program that does not read to the end says why itself.
async fn give(to: Option<ChildStdin>, text: &str) {
    if let Some(mut to) = to {
        let _ = to.write_all(text.as_bytes()).await;
    }
}

/// Reads up to a limit; what is more is left in the pipe, which is closed.
async fn read(from: Option<impl AsyncRead + Unpin>, most: usize) -> Printed {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What could be read is shown.
        let _ = from.take(most as u64 + 1).read_to_end(&mut bytes).await;
    }
    let cut = bytes.len() > most;
    bytes.truncate(most);
    Printed { bytes, cut }
}

/// The error and the hints that it said.
fn told(talk: &[u8]) -> ToolFailure {
    let talk = String::from_utf8_lossy(talk);
    let after = |lead: &'static str| {
        let lines = talk.lines().map(str::trim);
        lines.filter_map(move |line| Some(line.strip_prefix(lead)?.trim().to_owned()))
    };
    let message = after("error:").next();
    ToolFailure::new(
        message.unwrap_or_else(|| "it was refused".to_owned()),
        after("hint:").collect::<Vec<_>>().join("; "),
    )
}
