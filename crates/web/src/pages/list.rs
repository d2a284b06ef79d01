//! All loops: searched and filtered here, so that a browser never gets more than it shows.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use descartes_client::{Brief, LoopBrief};
use descartes_text::units::plural;
use descartes_views::tone::{Cell, Tone};
use descartes_views::view::{Status, short_progress, show_cost, show_tokens};
use descartes_views::words;
use jiff::Timestamp;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::layout::{page, reply};
use super::text::{bar, line, pill, since};
use crate::access::Access;
use crate::live::{FleetView, first};
use crate::sse::{self, KEEP_ALIVE, LiveQuery};
use crate::state::WebState;

/// Rows on a page.
const ROWS: usize = 100;

/// What is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ListQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    page: usize,
}

/// The states that can be chosen, as they stand in addresses.
const STATES: [(&str, &str); 6] = [
    ("", "all"),
    ("running", "running"),
    ("waiting", "waiting or paused"),
    ("interrupted", "interrupted"),
    ("done", "done"),
    ("failed", "ended without proof"),
];

impl ListQuery {
    fn address(&self, page: usize) -> String {
        let text = utf8_percent_encode(&self.q, NON_ALPHANUMERIC);
        let state = utf8_percent_encode(&self.state, NON_ALPHANUMERIC);
        format!("q={text}&state={state}&page={page}")
    }

    fn fits(&self, brief: &Brief) -> bool {
        let words = self.q.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&words);
        let named = words.is_empty()
            || has(&brief.name)
            || has(&brief.id)
            || has(&brief.folder.display().to_string());
        named && (self.state.is_empty() || state_of(brief) == self.state)
    }
}

fn state_of(brief: &Brief) -> &'static str {
    match brief.standing.as_ref().map(|standing| &standing.status) {
        Ok(Status::Ready | Status::Running | Status::Judging) => "running",
        Ok(Status::Waiting { .. } | Status::Paused) => "waiting",
        Ok(Status::Interrupted) => "interrupted",
        Ok(Status::Ended { reason }) if reason.is_success() => "done",
        Ok(Status::Ended { .. }) | Err(_) => "failed",
    }
}

/// The loops of a page, each with the loops of its tasks.
struct Listed<'a> {
    rows: Vec<(&'a Brief, Vec<&'a Brief>)>,
    /// All that fit, and all there are.
    fitting: usize,
    total: usize,
    page: usize,
    pages: usize,
}

fn listed<'a>(fleet: &'a FleetView, query: &ListQuery) -> Listed<'a> {
    let mut children: HashMap<&str, Vec<&Brief>> = HashMap::new();
    for brief in fleet.briefs.iter().rev() {
        if let Some(parent) = &brief.parent {
            children.entry(parent).or_default().push(brief);
        }
    }
    let heads = fleet.briefs.iter().filter(|brief| brief.parent.is_none());
    let total = heads.clone().count();
    let fitting: Vec<&Brief> = heads.filter(|brief| query.fits(brief)).collect();
    let pages = fitting.len().div_ceil(ROWS).max(1);
    let page = query.page.min(pages - 1);
    let shown = fitting.iter().skip(page * ROWS).take(ROWS);
    let with = |brief: &&'a Brief| {
        (
            *brief,
            children.remove(brief.id.as_str()).unwrap_or_default(),
        )
    };
    Listed {
        rows: shown.map(with).collect(),
        fitting: fitting.len(),
        total,
        page,
        pages,
    }
}

fn row((brief, children): &(&Brief, Vec<&Brief>), now: Timestamp) -> Markup {
    let (status, progress, fraction, spent) = match &brief.standing {
        Ok(standing) => {
            let (progress, unit) =
                short_progress(standing.iterations, standing.limit, standing.tasks);
            let status = Cell::new(standing.status.tone(), standing.status.label());
            (
                status,
                progress + unit,
                fraction(standing),
                Some(standing.spent),
            )
        }
        Err(error) => (Cell::new(Tone::Bad, "unreadable"), line(error), None, None),
    };
    html! {
        tr id={ "row-" (brief.id) } {
            td.name {
                a href={ "/loops/" (brief.id) } { (line(&brief.name)) }
                // For screens that are too narrow for columns.
                div.less.dim {
                    @for part in spent.iter().flat_map(words::spent) { (part) " · " }
                    (since(brief.started_at, now)) " · " (folder(brief))
                }
                @if !children.is_empty() {
                    details id={ "tasks-of-" (brief.id) } {
                        summary { (plural(children.len() as u64, "task")) }
                        ul { @for child in children { (task(child)) } }
                    }
                }
            }
            td { (pill(&status)) }
            td.bar { (bar(fraction, &progress)) span { (progress) } }
            td.n.more { (spent.map_or_else(String::new, |spent| show_tokens(spent.tokens))) }
            td.n.more { (spent.map_or_else(String::new, |spent| show_cost(spent.cost()))) }
            td.n.more { (since(brief.started_at, now)) }
            td.folder.more { (folder(brief)) }
        }
    }
}

/// A folder by its end, which tells most.
fn folder(brief: &Brief) -> String {
    let whole = line(&brief.folder.display().to_string());
    let parts: Vec<&str> = whole.rsplitn(3, '/').take(2).collect();
    match parts.as_slice() {
        [name, above] if !above.is_empty() => format!("{above}/{name}"),
        _ => whole.clone(),
    }
}

fn task(child: &Brief) -> Markup {
    let name = child.task.as_deref().unwrap_or(&child.name);
    html! {
        li {
            a href={ "/loops/" (child.id) } { (line(name)) } " "
            @if let Some(worker) = &child.worker { "on " (line(worker)) " " }
            @match &child.standing {
                Ok(standing) => (pill(&Cell::new(standing.status.tone(), standing.status.label()))),
                Err(_) => (pill(&Cell::new(Tone::Bad, "unreadable"))),
            }
        }
    }
}

fn fraction(standing: &LoopBrief) -> Option<f64> {
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| (part / whole).clamp(0.0, 1.0));
    match (standing.tasks, standing.limit) {
        (Some((done, total)), _) => share(done as f64, total as f64),
        (None, Some(limit)) => share(f64::from(standing.iterations), f64::from(limit)),
        (None, None) => None,
    }
}

fn count(listed: &Listed<'_>, query: &ListQuery, trouble: Option<&str>) -> Markup {
    html! {
        @if let Some(trouble) = trouble { p.notice { (line(trouble)) } }
        p.dim {
            @if listed.total == 0 { "no loops yet; start one with " code { "descartes loop start" } " and its task behind " code { "--prompt" } }
            @else if listed.fitting == listed.total { (plural(listed.total as u64, "loop")) }
            @else { (listed.fitting) " of " (plural(listed.total as u64, "loop")) }
            @if listed.pages > 1 {
                ", page " (listed.page + 1) " of " (listed.pages) " "
                @if listed.page > 0 { a rel="prev" href={ "/?" (query.address(listed.page - 1)) } { "newer" } " " }
                @if listed.page + 1 < listed.pages { a rel="next" href={ "/?" (query.address(listed.page + 1)) } { "older" } }
            }
        }
    }
}

/// The page.
pub async fn list(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Query(query): Query<ListQuery>,
) -> Response {
    let mut feed = app.hub.fleet();
    let fleet = first(&mut feed, |view| view.version > 0).await;
    let (listed, now) = (listed(&fleet, &query), Timestamp::now());
    let main = html! {
        main #main data-live={ "/live?" (query.address(query.page)) } data-at=(fleet.version) {
            h1 { "Loops" }
            @if app.start.is_some() && access == Access::Steer { p.links { a href="/start" { "start a loop" } } }
            form.search method="get" action="/" role="search" data-plain="yes" {
                label.hidden for="q" { "search" }
                input #q name="q" type="search" value=(query.q) placeholder="name, folder or id" data-key="/" aria-keyshortcuts="/";
                label.hidden for="state" { "state" }
                select #state name="state" {
                    @for (value, label) in STATES {
                        option value=(value) selected[value == query.state] { (label) }
                    }
                }
                button type="submit" { "show" }
            }
            div #count { (count(&listed, &query, fleet.trouble.as_deref())) }
            div.scroll {
                table.loops {
                    thead { tr {
                        th scope="col" { "loop" } th scope="col" { "state" } th scope="col" { "progress" }
                        th.n.more scope="col" { "tokens" } th.n.more scope="col" { "cost" } th.n.more scope="col" { "age" }
                        th.more scope="col" { "folder" }
                    } }
                    tbody #rows { @for one in &listed.rows { (row(one, now)) } }
                }
            }
        }
    };
    reply(page("loops", access, main))
}

/// The same page, kept current: rows that changed; all of them where others came or went.
pub async fn list_live(
    State(app): State<Arc<WebState>>,
    Query(query): Query<ListQuery>,
    Query(live): Query<LiveQuery>,
    headers: HeaderMap,
) -> Response {
    let mut feed = app.hub.fleet();
    let at = live.place(&headers).and_then(|at| at.parse::<u64>().ok());
    if live.once {
        let fleet = first(&mut feed, |view| view.version > 0).await;
        let told = (at != Some(fleet.version)).then(|| whole(&fleet, &query));
        return sse::once(&fleet.version.to_string(), told.flatten());
    }
    sse::events(&app, move |outlet| async move {
        let mut sent: Vec<(String, String)> = Vec::new();
        let mut head = String::new();
        let begun = feed.borrow_and_update().clone();
        if at == Some(begun.version) {
            // All of it is in the page.
            let _ = news(&begun, &query, &mut sent, &mut head);
        }
        loop {
            let fleet = feed.borrow_and_update().clone();
            if let Some(told) = news(&fleet, &query, &mut sent, &mut head) {
                let id = fleet.version.to_string();
                outlet
                    .send(sse::event("view", &id, &told.to_string()))
                    .await?;
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

/// The whole list, for a client that has another.
fn whole(fleet: &FleetView, query: &ListQuery) -> Option<Value> {
    news(fleet, query, &mut Vec::new(), &mut String::new())
}

fn news(
    fleet: &FleetView,
    query: &ListQuery,
    sent: &mut Vec<(String, String)>,
    head: &mut String,
) -> Option<Value> {
    let (listed, now) = (listed(fleet, query), Timestamp::now());
    let rows: Vec<(String, String)> = listed
        .rows
        .iter()
        .map(|one| (format!("row-{}", one.0.id), row(one, now).into_string()))
        .collect();
    let same_loops = rows
        .iter()
        .map(|(id, _)| id)
        .eq(sent.iter().map(|(id, _)| id));
    let (mut parts, mut changed) = (Map::new(), Map::new());
    match same_loops && !sent.is_empty() {
        true => {
            let pairs = rows.iter().zip(sent.iter());
            let new = pairs.filter(|(now, before)| now.1 != before.1);
            changed.extend(new.map(|((id, row), _)| (id.clone(), json!(row))));
        }
        false => {
            let body: String = rows.iter().map(|(_, row)| row.as_str()).collect();
            parts.insert("rows".to_owned(), json!(body));
        }
    }
    let line = count(&listed, query, fleet.trouble.as_deref()).into_string();
    if *head != line {
        parts.insert("count".to_owned(), json!(line));
        *head = line;
    }
    *sent = rows;
    let silent = parts.is_empty() && changed.is_empty();
    (!silent).then(|| json!({ "parts": parts, "rows": changed }))
}
