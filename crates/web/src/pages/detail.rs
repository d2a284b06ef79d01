//! One iteration, its output, and long histories: read by pieces, wherever in a long loop they stand.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use descartes_agents::reader::Source;
use descartes_client::logs::LogPosition;
use descartes_client::{From, LoopHandle, Loops};
use descartes_kernel::event::Progress;
use descartes_text::units::{plural, show_size};
use descartes_views::view::{Column, HistoryRow, Life, UNKNOWN};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::gates::gate_run;
use super::layout::{page, page_or_failure};
use super::parts::history_table;
use super::text::{block, code, facts, line, moment, pill, section, text};
use crate::access::Access;
use crate::reply::{RequestFailure, blocking};
use crate::state::WebState;

/// Rows of a page of the history.
const ROWS: u64 = 200;
/// Bytes of a log on a page.
const WINDOW: usize = 128 << 10;

fn find(loops: &Loops, id: String) -> Result<LoopHandle, RequestFailure> {
    Ok(loops.find(&descartes_client::Query::Listed(id))?)
}

fn back(found: &LoopHandle) -> Markup {
    html! { p.links { a href={ "/loops/" (found.id()) } { "← " (line(found.name())) } } }
}

/// One iteration, with everything that is known of it.
pub async fn iteration(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path((id, number)): Path<(String, u32)>,
) -> Response {
    let loops = app.loops.clone();
    let made = blocking(move || {
        let found = find(&loops, id)?;
        let trees = found.trees(Some(number))?;
        let life = found.life()?;
        let state = found.state()?;
        let last = state.run().map_or(state.iterations, |run| run.iteration);
        let title = format!("{}, iteration {number}", found.name());
        Ok(page(
            &title,
            access,
            iteration_page(&found, &trees.row, life, last),
        ))
    });
    page_or_failure(made.await, access)
}

/// `last` is the newest iteration that there is.
fn iteration_page(found: &LoopHandle, row: &HistoryRow, life: Life, last: u32) -> Markup {
    let (now, here) = (Timestamp::now(), format!("/loops/{}", found.id()));
    let cell = |column| row.cell(column, life, now);
    let claim = match (row.claimed, &row.near_miss) {
        (true, _) => "claimed".to_owned(),
        (false, Some(near)) => text(&near.describe()),
        (false, None) => "not claimed".to_owned(),
    };
    let mut rows = vec![
        ("started", moment(row.started_at, now)),
        ("duration", html! { (cell(Column::Duration).text) }),
        ("exit code", html! { (cell(Column::Exit).text) }),
        ("promise", html! { (claim) }),
        ("evidence of progress", html! { (evidence(row)) }),
        ("files changed", html! { (cell(Column::Files).text) }),
        ("tokens", html! { (cell(Column::Tokens).text) }),
        ("cost", html! { (cell(Column::Cost).text) }),
    ];
    if let Some(commit) = &row.commit {
        rows.push(("commit", code(commit)));
    }
    let number = row.iteration;
    html! {
        main #main {
            (back(found))
            h1 { "Iteration " (number) " " (pill(&row.result(life))) }
            p.links {
                a href={ (here) "/output/" (number) } { "output" } " · "
                a href={ (here) "/diff/" (number) } { "diff" }
                @if number > 1 { " · " a rel="prev" href={ (here) "/iterations/" (number - 1) } { "iteration " (number - 1) } }
                @if number < last { " · " a rel="next" href={ (here) "/iterations/" (number + 1) } { "iteration " (number + 1) } }
            }
            (facts(rows))
            (section("What went wrong", row.error.as_deref().map(block)))
            (section("Gates", (!row.gates.is_empty()).then(|| html! { @for gate in &row.gates { (gate_run(gate)) } })))
            (section("First lines of its answer", (!row.preview.trim().is_empty()).then(|| block(&row.preview))))
        }
    }
}

fn evidence(row: &HistoryRow) -> String {
    match &row.progress {
        None => UNKNOWN.to_owned(),
        Some(Progress::None) => "nothing moved".to_owned(),
        Some(Progress::Moved(what)) => line(&what.join(", ")),
        Some(Progress::Unknown(why)) => line(&format!("unknown: {why}")),
    }
}

/// Which piece of a log.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct OutputQuery {
    /// `stderr`; else standard output.
    #[serde(default)]
    stream: String,
    /// The byte at which the piece begins.
    from: Option<u64>,
    /// The byte before which it ends.
    before: Option<u64>,
}

/// A piece of the output of an iteration; the end of it at first.
pub async fn output(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path((id, number)): Path<(String, u32)>,
    Query(query): Query<OutputQuery>,
) -> Response {
    let loops = app.loops.clone();
    let made = blocking(move || {
        let found = find(&loops, id)?;
        let title = format!("{}, output of iteration {number}", found.name());
        Ok(page(&title, access, output_page(&found, number, &query)?))
    });
    page_or_failure(made.await, access)
}

fn output_page(
    found: &LoopHandle,
    number: u32,
    query: &OutputQuery,
) -> Result<Markup, RequestFailure> {
    let (source, stream) = match query.stream.as_str() {
        "stderr" => (Source::Stderr, "stderr"),
        _ => (Source::Stdout, "stdout"),
    };
    let place = match (query.from, query.before) {
        (Some(from), _) => LogPosition::From(from),
        (None, Some(before)) => LogPosition::Before(before),
        (None, None) => LogPosition::End,
    };
    let log = found.log(Some(number))?;
    let window = log.window(source, place, WINDOW)?;
    let here = format!("/loops/{}/output/{number}?stream={stream}", found.id());
    let other = match source {
        Source::Stdout => "stderr",
        Source::Stderr => "stdout",
    };
    Ok(html! {
        main #main {
            (back(found))
            h1 { "Output of iteration " (number) }
            p.links {
                span.dim { (stream) ", " (show_size(window.size)) }
                @if window.begin > 0 {
                    " · " a href={ (here) "&from=0" } { "beginning" } " · " a rel="prev" href={ (here) "&before=" (window.begin) } { "before" }
                }
                @if window.end < window.size {
                    " · " a rel="next" href={ (here) "&from=" (window.end) } { "after" } " · " a href=(here) { "end" }
                }
                " · " a href={ "/loops/" (found.id()) "/output/" (number) "?stream=" (other) } { (other) }
            }
            div.output.still tabindex="0" {
                @for line in &window.lines { div { (line.text) } }
                @if window.lines.is_empty() { div.mark { "nothing was printed" } }
            }
        }
    })
}

/// Which piece of the history.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct HistoryQuery {
    /// The first run of the piece.
    from: Option<u64>,
}

/// A piece of the history; the newest at first.
pub async fn history(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Response {
    let loops = app.loops.clone();
    let made = blocking(move || {
        let found = find(&loops, id)?;
        let title = format!("{}, history", found.name());
        Ok(page(&title, access, history_page(&found, query)?))
    });
    page_or_failure(made.await, access)
}

fn history_page(found: &LoopHandle, query: HistoryQuery) -> Result<Markup, RequestFailure> {
    let (life, runs) = (found.life()?, found.state()?.runs);
    let newest = (runs + 1).saturating_sub(ROWS).max(1);
    let first = query.from.unwrap_or(newest).max(1);
    let from = match query.from {
        Some(from) => From::Run(from.max(1)),
        None => From::Last(ROWS),
    };
    let mut rows = Vec::new();
    let current = found.history(from, |row| {
        rows.push(row);
        match rows.len() as u64 >= ROWS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if (rows.len() as u64) < ROWS {
        rows.extend(current);
    }
    let shown: Vec<&HistoryRow> = rows.iter().rev().collect();
    let here = format!("/loops/{}/history", found.id());
    Ok(html! {
        main #main {
            (back(found))
            h1 { "History" }
            p.links {
                span.dim { (plural(runs, "run")) }
                @if first + ROWS <= runs { " · " a rel="prev" href={ (here) "?from=" (first + ROWS) } { "newer" } }
                @if first > 1 { " · " a rel="next" href={ (here) "?from=" (first.saturating_sub(ROWS).max(1)) } { "older" } }
            }
            @if shown.is_empty() { p.dim { "no iteration yet" } }
            @else { (history_table(found.id(), &shown, life, Timestamp::now())) }
        }
    })
}
