//! `/api/v1`: the same shapes as `--json`, and events from any sequence number.

mod events;
mod metrics;

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use descartes_client::{Children, From, Scope, json};
use descartes_text::display::escape_json;
use serde::Deserialize;

pub use events::{all_events, events};
pub use metrics::metrics;

use crate::reply::{blocking, json_reply};
use crate::sse;
use crate::state::WebState;

/// Rows that are sent in one piece.
const PIECE: usize = 16 << 10;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    #[serde(default)]
    children: bool,
}

/// All loops, as `descartes loop list --all --json`.
pub async fn list(State(app): State<Arc<WebState>>, Query(query): Query<ListQuery>) -> Response {
    let loops = app.loops.clone();
    let children = match query.children {
        true => Children::Listed,
        false => Children::Folded,
    };
    let read = blocking(move || {
        let found = loops.heads(&Scope::All, children)?;
        let rows: Vec<_> = found.iter().map(json::list_entry).collect();
        Ok(json_reply(&rows))
    });
    read.await.unwrap_or_else(IntoResponse::into_response)
}

/// One loop, as `descartes loop status --json`.
pub async fn status(State(app): State<Arc<WebState>>, Path(id): Path<String>) -> Response {
    let loops = app.loops.clone();
    let read = blocking(move || {
        let found = loops.find(&descartes_client::Query::Listed(id))?;
        let look = found.look()?;
        Ok(json_reply(&json::status(&found, &look)))
    });
    read.await.unwrap_or_else(IntoResponse::into_response)
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    last: Option<u32>,
}

/// Iterations, a line each, as `descartes loop history --json`.
pub async fn history(
    State(app): State<Arc<WebState>>,
    Path(id): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Response {
    let loops = app.loops.clone();
    let found = blocking(move || Ok(loops.find(&descartes_client::Query::Listed(id))?));
    let found = match found.await {
        Ok(found) => found,
        Err(failure) => return failure.into_response(),
    };
    let from = query
        .last
        .map_or(From::First, |last| From::Last(last.into()));
    let (outlet, response) = sse::pieces("application/x-ndjson");
    drop(tokio::task::spawn_blocking(move || {
        // Told as it is read: a hundred thousand rows take no memory.
        let mut held = String::new();
        let line = |row| escape_json(&serde_json::to_string(&row).unwrap_or_default()) + "\n";
        let current = found.history(from, |row| {
            held.push_str(&line(row));
            if held.len() < PIECE {
                return ControlFlow::Continue(());
            }
            match outlet.send_blocking(std::mem::take(&mut held)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        let rest = current.into_iter().flatten();
        let rest = rest.chain(found.attempts_at_work().into_iter().flatten());
        rest.for_each(|row| held.push_str(&line(row)));
        drop(outlet.send_blocking(held));
    }));
    response
}
