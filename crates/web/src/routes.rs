//! Which address is answered by what.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::access::Access;
use crate::reply::{RequestFailure, with_headers};
use crate::state::WebState;
use crate::{api, door, pages, start, steer};

/// Bytes of the words of a refusal.
const WORDS: usize = 64 << 10;
/// Within this an answer has to begin. A stream may go on for ever.
const BEGIN: Duration = Duration::from_secs(90);

pub fn router(app: Arc<WebState>) -> Router {
    let known = Router::new()
        .route("/", get(pages::list))
        .route("/live", get(pages::list_live))
        .route("/loops/{id}", get(pages::one))
        .route("/loops/{id}/live", get(pages::one_live))
        .route("/loops/{id}/iterations/{iteration}", get(pages::iteration))
        .route("/loops/{id}/output/{iteration}", get(pages::output))
        .route("/loops/{id}/diff/{iteration}", get(pages::diff))
        .route("/loops/{id}/history", get(pages::history))
        .route("/loops/{id}/report", get(pages::report))
        .route("/start", get(pages::start_form))
        .route("/api/v1/start", post(start::start))
        .route("/metrics", get(api::metrics))
        .route("/api/v1/loops", get(api::list))
        .route("/api/v1/events", get(api::all_events))
        .route("/api/v1/loops/{id}", get(api::status))
        .route("/api/v1/loops/{id}/history", get(api::history))
        .route("/api/v1/loops/{id}/events", get(api::events))
        .route("/api/v1/loops/{id}/{verb}", post(steer::steer))
        .layer(from_fn_with_state(Arc::clone(&app), door::admit));
    let open = Router::new()
        .route("/sign-in", get(door::sign_in_page).post(door::sign_in))
        .route("/sign-out", post(door::sign_out))
        .route("/assets/style.css", get(pages::style))
        .route("/assets/app.js", get(pages::script))
        .route("/assets/icon.svg", get(pages::icon))
        .layer(from_fn_with_state(Arc::clone(&app), door::admit_anyone));
    known
        .merge(open)
        .fallback(nothing_here)
        .layer(from_fn(in_time))
        .with_state(app)
}

async fn nothing_here() -> Response {
    RequestFailure::new(
        StatusCode::NOT_FOUND,
        "there is nothing at this address",
        "all loops: /",
    )
    .into_response()
}

/// Every refusal is told in one shape: as JSON, and to people as a page.
async fn told(response: Response, wants_page: bool) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let ours = response.extensions().get::<RequestFailure>().cloned();
    if status.as_u16() < 400 || is_page || (ours.is_some() && !wants_page) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let failure = match ours {
        Some(failure) => failure,
        None => {
            // One of the framework, with some words or without.
            let words = axum::body::to_bytes(body, WORDS).await.unwrap_or_default();
            let words = match words.is_empty() {
                true => status.to_string(),
                false => String::from_utf8_lossy(&words).into_owned(),
            };
            RequestFailure::new(status, words, "addresses and fields: docs/web.md")
        }
    };
    let mut response = match wants_page {
        true => pages::failed(&failure, Access::Steer),
        false => failure.into_response(),
    };
    head.headers.remove(CONTENT_TYPE);
    head.headers.remove(CONTENT_LENGTH);
    response.headers_mut().extend(head.headers);
    response
}

async fn in_time(request: Request, next: Next) -> Response {
    let wants_page = door::wants_page(request.headers(), request.uri().path());
    let response = match tokio::time::timeout(BEGIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => RequestFailure::new(StatusCode::GATEWAY_TIMEOUT, "it took too long", "try again")
            .into_response(),
    };
    with_headers(told(response, wants_page).await)
}
