//! What the command line makes: the diff of an iteration, and the report.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, REFRESH};
use axum::response::Response;
use descartes_client::{LoopHandle, Query};
use descartes_views::view::Life;
use maud::{Markup, html};

use super::layout::{failed, page, page_or_failure};
use super::text::{line, text};
use crate::access::Access;
use crate::program;
use crate::reply::{RequestFailure, blocking, typed};
use crate::state::WebState;

/// Bytes of a diff on a page.
const DIFF: usize = 512 << 10;
/// Bytes of a report.
const REPORT: usize = 32 << 20;
/// The report has its style in itself, and neither scripts nor anything from outside.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-same-origin; \
                             frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

async fn find(app: &Arc<WebState>, id: String) -> Result<(LoopHandle, Life), RequestFailure> {
    let loops = app.loops.clone();
    blocking(move || {
        let found = loops.find(&Query::Listed(id))?;
        let life = found.life()?;
        Ok((found, life))
    })
    .await
}

/// What an iteration changed.
pub async fn diff(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path((id, number)): Path<(String, u32)>,
) -> Response {
    let made = async {
        let (found, _) = find(&app, id).await?;
        let iteration = number.to_string();
        let words = ["--color", "never", "loop", "diff", &iteration, found.id()];
        let told = program::run(&app, &words, None, DIFF).await?;
        let title = format!("{}, diff of iteration {number}", found.name());
        let whole = told.output.len() < DIFF;
        let patch = String::from_utf8_lossy(&told.output).into_owned();
        Ok(page(
            &title,
            access,
            diff_page(&found, number, &patch, whole),
        ))
    };
    page_or_failure(made.await, access)
}

fn diff_page(found: &LoopHandle, number: u32, patch: &str, whole: bool) -> Markup {
    let trees = found.trees(Some(number)).ok();
    let changed = trees.is_some_and(|trees| trees.after.is_some() && trees.before != trees.after);
    html! {
        main #main {
            p.links { a href={ "/loops/" (found.id()) "/iterations/" (number) } { "← " (line(found.name())) ", iteration " (number) } }
            h1 { "Diff of iteration " (number) }
            @if patch.trim().is_empty() {
                p.dim {
                    @match changed {
                        true => "files changed only in repositories inside the work tree, of which snapshots hold the commit alone",
                        false => "it changed nothing",
                    }
                }
            }
            div.diff tabindex="0" {
                @for one in text(patch).lines() { div class=(class(one)) { (one) } }
            }
            @if !whole {
                p.notice { "cut here; all of it: " code { "descartes loop diff " (number) " " (found.id()) } }
            }
        }
    }
}

fn class(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "file",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        [b'@', b'@', ..] => "hunk",
        _ if line.starts_with("diff ") => "file",
        _ => "",
    }
}

/// The page of `descartes report`, made anew whenever it is loaded; while the loop runs it loads itself.
pub async fn report(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Response {
    let made = async {
        let (found, life) = find(&app, id).await?;
        let words = ["--color", "never", "report", found.id(), "--output", "-"];
        let told = program::run(&app, &words, None, REPORT).await?;
        let page = String::from_utf8_lossy(&told.output);
        let back = html! { p { a href={ "/loops/" (found.id()) } { "← " (line(found.name())) } " · " a href="/" { "all loops" } } };
        let page = page.replacen("<body>", &format!("<body>{}", back.into_string()), 1);
        Ok((page, life))
    };
    match made.await {
        Err(failure) => failed(&failure, access),
        Ok((page, life)) => {
            let mut response = typed("text/html; charset=utf-8", page);
            let headers = response.headers_mut();
            let policy = HeaderValue::from_static(REPORT_POLICY);
            headers.insert(CONTENT_SECURITY_POLICY, policy);
            if life == Life::Alive {
                headers.insert(REFRESH, HeaderValue::from_static("10"));
            }
            response
        }
    }
}
