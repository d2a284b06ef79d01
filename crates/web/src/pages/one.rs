//! One loop: its page, and the stream that keeps it current.

use std::sync::Arc;

use axum::extract::{Extension, Path, Query as UrlQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use descartes_client::{LoopHandle, Query};
use maud::{Markup, PreEscaped, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::controls::{limits_form, say_form};
use super::layout::{failed, page, page_or_failure};
use super::text::line;
use crate::access::Access;
use crate::live::{LoopView, OutputTail, first};
use crate::reply::{RequestFailure, blocking};
use crate::sse::{self, KEEP_ALIVE, LiveQuery};
use crate::state::WebState;

/// The parts of the page, in its order, and whether they stand beside the output.
const ABOVE: [&str; 1] = ["gates"];
const BELOW: [&str; 5] = ["notes", "waits", "pictures", "tasks", "history"];

/// Which loop is meant; a name or the beginning of an id will do.
async fn found(app: &Arc<WebState>, asked: String) -> Result<LoopHandle, RequestFailure> {
    let loops = app.loops.clone();
    blocking(move || Ok(loops.find(&Query::Listed(asked))?)).await
}

pub async fn one(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path(asked): Path<String>,
) -> Response {
    let found = match found(&app, asked).await {
        Ok(found) => found,
        Err(failure) => return failed(&failure, access),
    };
    let mut feed = app.hub.follow(found.id());
    let view = first(&mut feed, |view| view.version > 0).await;
    let may_start = app.start.is_some() && access == Access::Steer;
    let folder = found.meta().working_dir.display().to_string();
    let looks = Looks {
        access,
        start: may_start.then_some(&folder),
    };
    page_or_failure(whole(found.id(), &view, looks), access)
}

/// What whoever looks may do.
#[derive(Clone, Copy)]
struct Looks<'a> {
    access: Access,
    /// The folder in which loops may be started.
    start: Option<&'a String>,
}

fn whole(
    id: &str,
    view: &LoopView,
    Looks { access, start }: Looks<'_>,
) -> Result<Markup, RequestFailure> {
    if let (Some((message, hint)), true) = (&view.trouble, view.parts.is_empty()) {
        let mut failure = RequestFailure::internal(message.clone());
        failure.hint.clone_from(hint);
        return Err(failure);
    }
    let part = |name: &str| {
        let found = view.parts.iter().find(|part| part.name == name);
        // Made and escaped by our own pages.
        let html = found.map_or("", |part| &part.html);
        html! { div id=(name) { (PreEscaped(html)) } }
    };
    let (from, lines) = view.output.from(0);
    let main = html! {
        main #main data-live={ "/loops/" (id) "/live" } data-at=(place(view)) {
            div #trouble { (trouble(view)) }
            (part("head"))
            @if access == Access::Steer {
                section #steer aria-label="steer" {
                    (part("controls"))
                    @if !view.is_done {
                        (say_form(id))
                        (limits_form(id, &view.limits))
                    }
                    ul #answers role="log" aria-label="answers" {}
                }
            }
            div.columns {
                section #output-box {
                    h2 { "Output" }
                    @if view.has_tasks {
                        p { "Each task prints on the page of its own loop: follow its name under “At work” or “Tasks”. All at once, in a terminal: " code { "descartes loop logs --follow " (id) } }
                    } @else { div.output #output role="log" aria-live="off" aria-label="output" tabindex="0" data-from=(from) {
                        @for (kind, text) in lines { div class=(kind.class()) { (text) } }
                    } }
                }
                div.beside { @for name in ABOVE { (part(name)) } }
            }
            @for name in BELOW { (part(name)) }
            p.links {
                @if let Some(folder) = start {
                    a href={ "/start?like=" (id) } { "start again" } " · "
                    a href={ "/start?project=" (utf8_percent_encode(folder, NON_ALPHANUMERIC)) } { "another loop in this folder" } " · "
                }
                a href={ "/loops/" (id) "/report" } { "report" } " · "
                a href={ "/loops/" (id) "/history" } { "all iterations" } " · "
                a href={ "/api/v1/loops/" (id) } { "JSON" } " · " span.dim { (id) }
            }
        }
    };
    Ok(page(&view.title, access, main))
}

fn trouble(view: &LoopView) -> Markup {
    html! {
        @if let Some((message, hint)) = &view.trouble {
            p.notice role="alert" {
                (line(message))
                @if let Some(hint) = hint { " — " (line(hint)) }
            }
        }
    }
}

/// Where a page stands: which follower, which version, which line.
fn place(view: &LoopView) -> String {
    format!("{}.{}.{}", view.epoch, view.version, view.output.settled())
}

/// What a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Had {
    epoch: u64,
    version: u64,
    line: u64,
}

impl Had {
    fn read(place: &str) -> Option<Self> {
        let mut numbers = place.split('.').map(|number| number.parse().ok());
        Some(Self {
            epoch: numbers.next()??,
            version: numbers.next()??,
            line: numbers.next()??,
        })
    }

    fn lacks(self, view: &LoopView) -> bool {
        (view.epoch, view.version) != (self.epoch, self.version)
    }
}

/// The same page, kept current from where the client stands.
pub async fn one_live(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path(asked): Path<String>,
    UrlQuery(live): UrlQuery<LiveQuery>,
    headers: HeaderMap,
) -> Response {
    let id = match found(&app, asked).await {
        Ok(found) => found.id().to_owned(),
        Err(failure) => return failed(&failure, access),
    };
    let at = live.place(&headers);
    let mut had = at.and_then(Had::read).unwrap_or_default();
    let mut feed = app.hub.follow(&id);
    if live.once {
        let view = first(&mut feed, |view| view.version > 0).await;
        let told = had.lacks(&view).then(|| news(&view, had, access));
        return sse::once(&place(&view), told);
    }
    sse::events(&app, move |outlet| async move {
        loop {
            let view = feed.borrow_and_update().clone();
            if view.version > 0 && had.lacks(&view) {
                let told = news(&view, had, access);
                outlet
                    .send(sse::event("view", &place(&view), &told.to_string()))
                    .await?;
                had = Had {
                    epoch: view.epoch,
                    version: view.version,
                    line: view.output.settled(),
                };
            }
            loop {
                match tokio::time::timeout(KEEP_ALIVE, feed.changed()).await {
                    Ok(Ok(())) => break,
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => outlet.send(": here\n\n".to_owned()).await?,
                }
            }
        }
    })
}

/// What the client does not have. Versions of another follower say nothing: it gets everything.
fn news(view: &LoopView, had: Had, access: Access) -> Value {
    let same = view.epoch == had.epoch;
    let new = view
        .parts
        .iter()
        .filter(|part| !same || part.version > had.version);
    let new = new.filter(|part| access == Access::Steer || part.name != "controls");
    let mut parts: Map<String, Value> = new
        .map(|part| (part.name.to_owned(), json!(&*part.html)))
        .collect();
    parts.insert("trouble".to_owned(), json!(trouble(view).into_string()));
    json!({
        "title": view.title,
        "parts": parts,
        "effects": view.effects,
        "output": output(&view.output, if same { Some(had.line) } else { None }),
    })
}

fn output(tail: &OutputTail, had: Option<u64>) -> Value {
    let (from, lines) = tail.from(had.unwrap_or(0));
    let lines: Vec<Value> = lines
        .map(|(kind, text)| json!([kind.class(), text]))
        .collect();
    json!({ "from": from, "anew": had.is_none(), "lines": lines })
}
