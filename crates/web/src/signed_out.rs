//! Answers that go on end with the session of the browser that asked for them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as _, Frame};

type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body that ends when its session does.
struct UntilSignedOut {
    body: Body,
    /// `None`: it is.
    over: Option<Over>,
}

impl hyper::body::Body for UntilSignedOut {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let lasts = |over: &mut Over| over.as_mut().poll(cx).is_pending();
        if !self.over.as_mut().is_some_and(lasts) {
            self.over = None;
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

/// Ends an answer that goes on once this has happened; others are whole already.
pub fn until(response: Response, over: impl Future<Output = ()> + Send + 'static) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let over: Option<Over> = Some(Box::pin(over));
        Body::new(UntilSignedOut { body, over })
    })
}
