//! Records of a journal as server-sent events, and the changes of all loops.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use descartes_client::{Brief, LoopHandle, json};
use descartes_kernel::event::Event;
use descartes_store::journal::JournalReader;
use descartes_text::display::escape_json;
use serde::Deserialize;
use tokio::sync::watch;

use crate::reply::{RequestFailure, blocking};
use crate::sse::{self, KEEP_ALIVE};
use crate::state::WebState;

/// Bytes that are put together in one piece.
const PIECE: usize = 64 << 10;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The number of the first record that is wanted.
    #[serde(default)]
    from: u64,
    /// Whether to wait for more; `false` ends where the journal does.
    follow: Option<bool>,
}

/// The records of one loop from any number on. A client that comes back names the last one it had.
pub async fn events(
    State(app): State<Arc<WebState>>,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Response {
    let last = sse::last_event_id(&headers).and_then(|id| id.parse::<u64>().ok());
    let from = last.map_or(query.from, |last| last.saturating_add(1));
    let loops = app.loops.clone();
    let opened = blocking(move || {
        let found = loops.find(&descartes_client::Query::Listed(id))?;
        let reader = found.records_from(from)?;
        Ok((found, reader))
    });
    let (found, reader) = match opened.await {
        Ok(opened) => opened,
        Err(failure) => return failure.into_response(),
    };
    let follows = query.follow.unwrap_or(true);
    let mut feed = follows.then(|| app.hub.follow(found.id()));
    sse::events(&app, move |outlet| async move {
        let mut records = Records {
            reader,
            next: from,
            found,
        };
        loop {
            if let Some(feed) = &mut feed {
                feed.mark_unchanged();
            }
            loop {
                let (read, text, more) = match records.piece().await {
                    Ok(piece) => piece,
                    Err(failure) => {
                        let data = escape_json(
                            &serde_json::json!({ "error": failure.message }).to_string(),
                        );
                        outlet
                            .send(format!("event: trouble\ndata: {data}\n\n"))
                            .await?;
                        return Ok(());
                    }
                };
                records = read;
                if !text.is_empty() {
                    outlet.send(text).await?;
                }
                if !more {
                    break;
                }
            }
            let Some(feed) = &mut feed else {
                return Ok(());
            };
            while !changed(feed).await? {
                outlet.send(": here\n\n".to_owned()).await?;
            }
        }
    })
}

/// Whether there may be more; false after a silence.
async fn changed<T>(feed: &mut watch::Receiver<T>) -> Result<bool, sse::StreamClosed> {
    match tokio::time::timeout(KEEP_ALIVE, feed.changed()).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(_)) => Err(sse::StreamClosed),
        Err(_) => Ok(false),
    }
}

/// A place in a journal.
struct Records {
    reader: JournalReader,
    next: u64,
    found: LoopHandle,
}

impl Records {
    /// The next records as events, as many as go into a piece; and whether there are more.
    async fn piece(mut self) -> Result<(Self, String, bool), RequestFailure> {
        blocking(move || {
            let (mut text, mut more) = (String::new(), false);
            let next = &mut self.next;
            let read = self.reader.read_while(|record| {
                if record.seq < *next {
                    return ControlFlow::Continue(());
                }
                *next = record.seq + 1;
                // It repeats what was told already, at length.
                if !matches!(record.event, Event::Checkpoint { .. })
                    && let Ok(line) = serde_json::to_string(&record)
                {
                    let id = record.seq.to_string();
                    text.push_str(&sse::event("record", &id, &escape_json(&line)));
                }
                more = text.len() >= PIECE;
                match more {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            if let Err(error) = read {
                // Said with what the loop's files are like now: it may be gone.
                self.found.state()?;
                return Err(RequestFailure::internal(error.to_string()));
            }
            if !more && !self.found.dir().journal().is_file() {
                // What was removed stays open, and never grows.
                self.found.beside(self.found.id())?;
            }
            Ok((self, text, more))
        })
        .await
    }
}

/// How all loops stand, and each of them again when that changes: entries of the list.
pub async fn all_events(State(app): State<Arc<WebState>>) -> Response {
    let mut feed = app.hub.fleet();
    let loops = app.loops.clone();
    sse::events(&app, move |outlet| async move {
        let mut known: HashMap<String, Brief> = HashMap::new();
        loop {
            let fleet = feed.borrow_and_update().clone();
            let is_new = |brief: &&Brief| known.get(&brief.id) != Some(*brief);
            let new: Vec<Brief> = fleet.briefs.iter().filter(is_new).cloned().collect();
            let there: HashMap<String, Brief> = fleet
                .briefs
                .iter()
                .map(|brief| (brief.id.clone(), brief.clone()))
                .collect();
            let gone: Vec<String> = known
                .keys()
                .filter(|id| !there.contains_key(*id))
                .cloned()
                .collect();
            known = there;
            let loops = loops.clone();
            let version = fleet.version;
            let told = blocking(move || {
                let mut text = String::new();
                for brief in new {
                    let query = descartes_client::Query::Listed(brief.id);
                    if let Ok(found) = loops.find(&query) {
                        let line = escape_json(&json::list_entry(&found).to_string());
                        text.push_str(&sse::event("loop", &version.to_string(), &line));
                    }
                }
                for id in gone {
                    let line = serde_json::json!({ "loop_id": id, "status": "removed" });
                    let line = line.to_string();
                    text.push_str(&sse::event("loop", &version.to_string(), &line));
                }
                Ok(text)
            });
            let text = told.await.unwrap_or_default();
            if !text.is_empty() {
                outlet.send(text).await?;
            }
            while !changed(&mut feed).await? {
                outlet.send(": here\n\n".to_owned()).await?;
            }
        }
    })
}
