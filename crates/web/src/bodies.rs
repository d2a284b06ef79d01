//! Bodies of requests, which are small and come soon.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;

use crate::reply::RequestFailure;

/// Bytes of a body: the longest note, and some more.
const BODY: usize = 64 << 10;
/// So far one is read that is too long.
const LONGEST_BODY: usize = 1 << 20;
/// Within this the whole body has to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Takes the body as a whole before anything is done with it, within a time of its own.
pub async fn with_whole_body(head: Parts, mut body: Body, next: Next) -> Response {
    let (mut held, mut size) = (Vec::new(), 0);
    let read = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let piece = frame.ok()?.into_data().unwrap_or_default();
            size += piece.len();
            if size <= BODY {
                held.extend_from_slice(&piece);
            } else if size > LONGEST_BODY {
                break;
            } else {
                // Read to its end, if that is not far: who is still sending hears no answer.
                held.clear();
            }
        }
        Some(())
    };
    let (status, message) = match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Some(())) if size <= BODY => {
            return next.run(Request::from_parts(head, held.into())).await;
        }
        Ok(Some(())) => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
        Ok(None) => (StatusCode::BAD_REQUEST, "the body broke off"),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body took too long"),
    };
    RequestFailure::new(status, message, "64 KiB within 10 s are the most").into_response()
}
