//! Letting requests in: the headers are judged, a one-time code becomes a cookie, and whoever has
//! neither token nor cookie is asked for one.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Form, Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tracing::debug;

use crate::access::{Access, RefusedRequest, RequestFacts, SESSION, Session, Transport};
use crate::bodies::with_whole_body;
use crate::guests::Guest;
use crate::reply::{RequestFailure, blocking};
use crate::state::{ConnectionEnds, WebState};
use crate::{WebError, pages, signed_out};

/// Judges every request that needs a token.
pub async fn admit(State(app): State<Arc<WebState>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    if let Some(code) = one_time_code(&head) {
        return exchange(&app, &head, &code).await;
    }
    app.tokens.refresh();
    let session = session(&app, &head.headers);
    match judged(&app, &head, session.as_ref()) {
        Ok(access) => {
            if let Some(guest) = head.extensions.get::<Arc<Guest>>() {
                guest.is_known();
            }
            if let Err(failure) = check_requester(&app, &head).await {
                return failure.into_response();
            }
            head.extensions.insert(access);
            let response = with_whole_body(head, body, next).await;
            match session {
                Some(session) => signed_out::until(response, app.sessions.over(session)),
                None => response,
            }
        }
        Err(denial) => denied(&app, denial, &head).await,
    }
}

/// The session of the browser that asks, if it is signed in.
fn session(app: &WebState, headers: &HeaderMap) -> Option<Session> {
    let cookie = cookie(headers, &app.cookie)?;
    app.sessions.find(&app.tokens.current(), cookie)
}

fn judged(
    app: &WebState,
    head: &Parts,
    session: Option<&Session>,
) -> Result<Access, RefusedRequest> {
    let signed_in = session.map(|session| session.access);
    app.gate
        .check(&facts(app, head), &app.tokens.current(), signed_in)
}

/// A token says what may be done, not by whom: an agent that reads its user's files has it, too. So
/// whoever changes something is looked for, which takes some milliseconds and is done for nobody else.
async fn check_requester(app: &Arc<WebState>, head: &Parts) -> Result<(), RequestFailure> {
    let ends = head.extensions.get::<ConnectionEnds>().copied();
    let Some(ends) = ends.filter(|_| changes(head)) else {
        return Ok(());
    };
    let may_ask = Arc::clone(&app.may_ask);
    let checked = blocking(move || {
        may_ask(ends)
            .map_err(|(message, hint)| RequestFailure::new(StatusCode::FORBIDDEN, message, hint))
    });
    checked.await.inspect_err(|failure| {
        debug!(path = head.uri.path(), why = failure.message, "refused");
        app.count_refusal("from_within_a_loop");
    })
}

fn changes(head: &Parts) -> bool {
    !matches!(head.method, Method::GET | Method::HEAD)
}

/// Judges what needs no token: signing in and out, style and script.
pub async fn admit_anyone(
    State(app): State<Arc<WebState>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let facts = facts(&app, &head);
    let placed = app.gate.check_place(&facts);
    let judged = match (facts.changes, facts.origin) {
        (true, None) => placed.and(Err(RefusedRequest::WrongOrigin)),
        _ => placed,
    };
    match judged {
        Ok(()) => with_whole_body(head, body, next).await,
        Err(denial) => denied(&app, denial, &head).await,
    }
}

fn facts<'a>(app: &WebState, head: &'a Parts) -> RequestFacts<'a> {
    let headers = &head.headers;
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(AUTHORIZATION).and_then(|value: &str| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
    });
    // Two of them are a way to have one judged and the other obeyed.
    let once = |name| headers.get_all(name).iter().count() <= 1;
    RequestFacts {
        host: text(HOST).filter(|_| once(HOST)),
        origin: text(ORIGIN).or_else(|| headers.get(ORIGIN).map(|_| "unreadable")),
        bearer,
        cookie: cookie(headers, &app.cookie),
        changes: changes(head),
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn one_time_code(head: &Parts) -> Option<String> {
    let at_root = head.uri.path() == "/" && head.method == Method::GET;
    let query = head.uri.query().filter(|_| at_root)?;
    query.strip_prefix("code=").map(str::to_owned)
}

/// The code becomes a cookie, and the address a clean one.
async fn exchange(app: &Arc<WebState>, head: &Parts, code: &str) -> Response {
    if let Err(denial) = app.gate.check_place(&facts(app, head)) {
        return denied(app, denial, head).await;
    }
    if app.link.take(code) {
        debug!("the one-time link was used");
        return signed_in(app, app.gate.most(), session(app, &head.headers)).await;
    }
    app.count_refusal("wrong_code");
    app.slowdown.wrong_token().await;
    // Whoever is signed in already gets the page, whatever link they used.
    match judged(app, head, session(app, &head.headers).as_ref()) {
        Ok(_) => to_the_list(),
        Err(_) => pages::sign_in(StatusCode::UNAUTHORIZED, Some(pages::USED_LINK)),
    }
}

fn to_the_list() -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A session begins; one that the browser had is over.
async fn signed_in(app: &Arc<WebState>, access: Access, before: Option<Session>) -> Response {
    let shared = Arc::clone(app);
    let begun = blocking(move || {
        if let Some(before) = before {
            shared.sessions.end(&before).map_err(not_kept)?;
        }
        let tokens = shared.tokens.current();
        shared.sessions.begin(&tokens, access).map_err(not_kept)
    });
    let value = match begun.await {
        Ok(value) => value,
        Err(failure) => return failure.into_response(),
    };
    with_cookie(to_the_list(), app, &value, SESSION)
}

fn not_kept(error: WebError) -> RequestFailure {
    RequestFailure::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        error.to_string(),
        "see that there is room, and that it can be written; this signs everybody out: descartes serve --new-token",
    )
}

/// Has the browser keep its cookie for so long.
fn with_cookie(mut response: Response, app: &WebState, value: &str, age: Duration) -> Response {
    let secure = match app.gate.transport() {
        Transport::Tls | Transport::Proxy => "; Secure",
        Transport::Plain => "",
    };
    let cookie = format!(
        "{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
        app.cookie,
        age.as_secs()
    );
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Whether a person with a browser asks, and no program.
pub fn wants_page(headers: &HeaderMap, path: &str) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
        && !path.starts_with("/api/")
        && path != "/metrics"
}

async fn denied(app: &WebState, denial: RefusedRequest, head: &Parts) -> Response {
    let path = head.uri.path();
    debug!(?denial, path, "refused");
    app.count_refusal(denial.as_str());
    if denial == RefusedRequest::WrongToken {
        app.slowdown.wrong_token().await;
    }
    let (status, message, hint) = match denial {
        RefusedRequest::WrongHost => (
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header names another server",
            "use the printed address; behind a proxy, start `descartes serve` with the proxy's name behind --host",
        ),
        RefusedRequest::WrongOrigin => (
            StatusCode::FORBIDDEN,
            "the request comes from a page of another site",
            "use the pages of this server; scripts: Authorization: Bearer TOKEN",
        ),
        RefusedRequest::NoToken => (
            StatusCode::UNAUTHORIZED,
            "a token is needed",
            "open the printed address, or send: Authorization: Bearer TOKEN",
        ),
        RefusedRequest::WrongToken => (
            StatusCode::UNAUTHORIZED,
            "the token is wrong or was replaced, or this browser is signed out",
            "the tokens lie in web-tokens.json in the state folder of descartes",
        ),
        RefusedRequest::ReadOnly => (
            StatusCode::FORBIDDEN,
            "this only reads: nothing can be changed",
            "use the full token, or serve without --read-only",
        ),
    };
    if matches!(denial, RefusedRequest::NoToken | RefusedRequest::WrongToken)
        && wants_page(&head.headers, path)
    {
        return pages::sign_in(status, None);
    }
    let mut response = RequestFailure::new(status, message, hint).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    response
}

/// What the sign-in page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    token: String,
}

/// A token typed by a person becomes a cookie.
pub async fn sign_in(
    State(app): State<Arc<WebState>>,
    headers: HeaderMap,
    Form(given): Form<SignIn>,
) -> Response {
    app.tokens.refresh();
    match app.tokens.current().check(given.token.trim()) {
        Some(access) => {
            let access = access.min(app.gate.most());
            signed_in(&app, access, session(&app, &headers)).await
        }
        None => {
            app.count_refusal(RefusedRequest::WrongToken.as_str());
            app.slowdown.wrong_token().await;
            pages::sign_in(StatusCode::UNAUTHORIZED, Some("The token is wrong."))
        }
    }
}

/// The session is over, also for whoever has a copy of the cookie, and the browser forgets it.
pub async fn sign_out(State(app): State<Arc<WebState>>, headers: HeaderMap) -> Response {
    app.tokens.refresh();
    let session = session(&app, &headers);
    let shared = Arc::clone(&app);
    let ended = blocking(move || match session {
        Some(session) => shared.sessions.end(&session).map_err(not_kept),
        None => Ok(()),
    });
    let response = match ended.await {
        Ok(()) => pages::sign_in(StatusCode::OK, Some("Signed out.")),
        Err(failure) => failure.into_response(),
    };
    with_cookie(response, &app, "", Duration::ZERO)
}

pub async fn sign_in_page() -> Response {
    pages::sign_in(StatusCode::OK, None)
}
