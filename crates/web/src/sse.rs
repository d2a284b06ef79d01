//! Answers that go on: server-sent events, and lines of JSON. A client that takes nothing holds up
//! nobody: what it misses is put together, never queued.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::reply::{RequestFailure, json_reply, typed};
use crate::state::WebState;

/// Pieces that wait for a slow client; more are put together before they are made.
const QUEUE: usize = 2;
/// So often a silent stream says that it is there.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Browsers try again after this.
const RETRY_MS: u32 = 1000;

/// A body that is made while it is sent.
struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Nobody listens any more.
#[derive(Debug)]
pub struct StreamClosed;

/// The way of pieces to a client.
#[derive(Clone)]
pub struct Outlet(mpsc::Sender<Bytes>);

impl Outlet {
    pub async fn send(&self, text: String) -> Result<(), StreamClosed> {
        self.0.send(text.into()).await.map_err(|_| StreamClosed)
    }

    /// The same from a thread.
    pub fn send_blocking(&self, text: String) -> Result<(), StreamClosed> {
        self.0.blocking_send(text.into()).map_err(|_| StreamClosed)
    }

    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// A body, and the way to fill it.
pub fn pieces(kind: &'static str) -> (Outlet, Response) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Outlet(sender), typed(kind, Body::new(Pieces(receiver))))
}

/// Answers with a stream of events, made by `tell` until nobody listens, or the tokens are others.
pub fn events<T, F>(app: &Arc<WebState>, tell: T) -> Response
where
    T: FnOnce(Outlet) -> F + Send + 'static,
    F: Future<Output = Result<(), StreamClosed>> + Send + 'static,
{
    let Ok(place) = Arc::clone(&app.streams).try_acquire_owned() else {
        return RequestFailure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many event streams are open",
            "close some of them",
        )
        .into_response();
    };
    let (outlet, response) = pieces("text/event-stream");
    let mut generation = app.generation.subscribe();
    tokio::spawn(async move {
        let gone = outlet.clone();
        let work = async {
            outlet.send(format!("retry: {RETRY_MS}\n\n")).await?;
            tell(outlet).await
        };
        tokio::select! {
            _ = work => {}
            () = gone.closed() => {}
            _ = generation.changed() => {}
        }
        drop(place);
    });
    response
}

/// One event; `data` has no line end.
pub fn event(name: &str, id: &str, data: &str) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}

/// How a page is kept current.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LiveQuery {
    /// The id of the last event that is in the page.
    pub at: Option<String>,
    /// What is new by now, and no stream: for windows beyond the connections of a browser.
    #[serde(default)]
    pub once: bool,
}

impl LiveQuery {
    /// Where the client stands; a browser that connects again names its last event itself.
    pub fn place<'a>(&'a self, headers: &'a HeaderMap) -> Option<&'a str> {
        last_event_id(headers).or(self.at.as_deref())
    }
}

/// What is new, for a client that asks once.
pub fn once(id: &str, news: Option<Value>) -> Response {
    json_reply(&json!({ "id": id, "news": news }))
}

/// The id of the last event that the client had.
pub fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id")?.to_str().ok()
}
