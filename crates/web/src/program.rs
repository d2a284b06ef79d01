//! Calling the command line for what only it can do. It runs as a person would have run it: a fault
//! in it is none of the server's.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tracing::debug;

use crate::reply::RequestFailure;
use crate::state::WebState;

/// It ends by then, or is ended.
const LIMIT: Duration = Duration::from_secs(75);
/// Bytes of what it says on standard error.
const TALK: usize = 16 << 10;

/// What it printed, up to the limit.
pub struct ProgramOutput {
    pub output: Vec<u8>,
    /// What it said on standard error.
    pub talk: String,
}

/// Runs the command line; gives the first `most` bytes of its standard output.
pub async fn run(
    app: &Arc<WebState>,
    words: &[&str],
    folder: Option<&Path>,
    most: usize,
) -> Result<ProgramOutput, RequestFailure> {
    let busy = |_| RequestFailure::internal("the server ends".to_owned());
    let _place = app.programs.acquire().await.map_err(busy)?;
    debug!(verb = ?words.get(..4), "calling the command line");
    let mut command = Command::new(&app.program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        // A signal to the server's group is none to what it started.
        .process_group(0);
    if let Some(folder) = folder.filter(|folder| folder.is_dir()) {
        command.current_dir(folder);
    }
    let failed = |error: std::io::Error| {
        RequestFailure::internal(format!("cannot start {}: {error}", app.program.display()))
    };
    let mut child = command.spawn().map_err(failed)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = tokio::time::timeout(LIMIT, async {
        let (output, talk) = tokio::join!(read(out, most), read(err, TALK));
        (child.wait().await, output, talk)
    });
    let (status, output, talk) = ended.await.map_err(|_| {
        RequestFailure::new(
            StatusCode::GATEWAY_TIMEOUT,
            "it took too long",
            "try it in a terminal",
        )
    })?;
    let cut = output.len() >= most;
    let talk = String::from_utf8_lossy(&talk).into_owned();
    match status {
        Ok(status) if status.success() || cut => Ok(ProgramOutput { output, talk }),
        Ok(_) => Err(told(&talk)),
        Err(error) => Err(RequestFailure::internal(error.to_string())),
    }
}

/// Reads up to a limit; what is more is left in the pipe, which is closed.
async fn read(from: Option<impl AsyncRead + Unpin>, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let mut from = from.take(most as u64);
        // What could be read is shown.
        let _ = from.read_to_end(&mut bytes).await;
    }
    bytes
}

/// The error and the hint that it said.
fn told(talk: &str) -> RequestFailure {
    let after = |lead: &str| {
        let mut lines = talk.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(lead).map(|rest| rest.trim().to_owned()))
    };
    RequestFailure {
        status: StatusCode::CONFLICT,
        message: after("error:").or_else(|| after("")).unwrap_or_default(),
        hint: after("hint:"),
    }
}
