//! Answers: JSON as the command line prints it, errors with what to do next, and the headers that
//! every answer has.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use descartes_client::ClientError;
use descartes_store::catalog::FindError;
use descartes_text::display::{self, escape_json};
use serde::Serialize;
use serde_json::json;

/// No script, style, image or frame but our own; forms go nowhere else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Adds to every answer what keeps browsers from doing more than they should.
pub fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let set = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let unless_set = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        // Without any, browsers call the origin of our own forms `null`.
        (REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in unless_set {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A value as `--json` prints it.
pub fn json_reply(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => typed("application/json", escape_json(&text) + "\n"),
        Err(error) => RequestFailure::internal(error.to_string()).into_response(),
    }
}

pub fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Something that cannot be done: what happened, and what to type next.
#[derive(Clone, Debug)]
pub struct RequestFailure {
    pub status: StatusCode,
    pub message: String,
    pub hint: Option<String>,
}

impl RequestFailure {
    pub fn new(status: StatusCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    pub fn internal(message: String) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            message,
            hint: None,
        }
    }
}

impl From<ClientError> for RequestFailure {
    fn from(error: ClientError) -> Self {
        let status = match &error {
            ClientError::Find(FindError::None(_))
            | ClientError::NoIteration(_)
            | ClientError::NoLog { .. } => StatusCode::NOT_FOUND,
            ClientError::Silent { .. } | ClientError::Stopped(_) => StatusCode::GATEWAY_TIMEOUT,
            ClientError::Refused { .. } | ClientError::Lock(_) => StatusCode::CONFLICT,
            ClientError::Find(FindError::Ambiguous { .. }) => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            status,
            hint: error.hint(),
            message: error.to_string(),
        }
    }
}

impl IntoResponse for RequestFailure {
    fn into_response(self) -> Response {
        let clean = |text: &str| display::one_line(text);
        let body = json!({
            "error": clean(&self.message),
            "hint": self.hint.as_deref().map(clean),
        });
        let mut response = json_reply(&body);
        *response.status_mut() = self.status;
        // A browser is shown it as a page.
        response.extensions_mut().insert(self);
        response
    }
}

/// Does what waits for a disk or a loop on a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RequestFailure> + Send + 'static,
) -> Result<T, RequestFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(RequestFailure::internal(format!("it broke off: {error}"))),
    }
}
