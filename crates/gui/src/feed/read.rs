//! Pieces of histories and logs. Nothing is read that is not to be seen.

use std::ops::ControlFlow;

use descartes_client::logs::LogWindow;
use descartes_client::{ClientError, From, LoopHandle};

use super::{Desk, words};
use crate::message::{HistoryPart, LogRequest};

/// Bytes of a log that are read at once.
const PIECE: usize = 128 << 10;

/// So many rows of a history, from a run on.
pub fn history(desk: &Desk, id: &str, from: u64, count: u64) -> Result<HistoryPart, String> {
    let mut rows = Vec::new();
    let handle = desk.handle(id).map_err(|error| words(&error))?;
    let read = handle.history(From::Run(from), |row| {
        if row.run >= from + count {
            return ControlFlow::Break(());
        }
        rows.push(row);
        ControlFlow::Continue(())
    });
    read.map_err(|error| words(&error))?;
    Ok(HistoryPart { rows })
}

/// A piece of a log.
pub fn log(desk: &Desk, request: &LogRequest) -> Result<LogWindow, String> {
    let read = || {
        let handle = desk.handle(&request.id)?;
        let log = match request.iteration {
            None => speaker(&handle)?.log(None)?,
            iteration => handle.log(iteration)?,
        };
        log.window(request.source, request.place, PIECE)
    };
    read().map_err(|error| words(&error))
}

/// The loop whose agent prints: a task loop has none of its own, but the loops of its tasks have.
pub fn speaker(handle: &LoopHandle) -> Result<LoopHandle, ClientError> {
    if handle.state()?.config.tasks.is_none() {
        return Ok(handle.clone());
    }
    Ok(handle.newest_child()?.unwrap_or_else(|| handle.clone()))
}
