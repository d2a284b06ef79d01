//! Which address is answered by what.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::reply::{RequestFailure, with_headers};
use crate::state::WebState;
use crate::{api, door, pages, start, steer};

/// Bytes of a body: the longest note, and some more.
const BODY: usize = 64 << 10;
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
        .route("/sign-out", post(door::sign_out))
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
        .route("/assets/style.css", get(pages::style))
        .route("/assets/app.js", get(pages::script))
        .route("/assets/icon.svg", get(pages::icon))
        .layer(from_fn_with_state(Arc::clone(&app), door::admit_anyone));
    known
        .merge(open)
        .fallback(nothing_here)
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn(in_time))
        .layer(from_fn(with_headers))
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

async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(BEGIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => RequestFailure::new(StatusCode::GATEWAY_TIMEOUT, "it took too long", "try again")
            .into_response(),
    }
}
