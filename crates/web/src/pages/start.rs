//! The form that starts a loop, with the last settings of its project.

use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use descartes_client::{LoopHandle, Loops, Scope};
use descartes_kernel::config::IterativeLoopConfig;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{page, page_or_failure};
use crate::access::Access;
use crate::reply::{RequestFailure, blocking};
use crate::start_masks::masked;
use crate::state::WebState;
use crate::{start, start_rules};

#[derive(Clone, Debug, Default, Deserialize)]
pub struct StartQuery {
    /// A loop to start again.
    like: Option<String>,
    /// A folder whose last settings are wanted.
    project: Option<String>,
}

pub async fn start_form(
    State(app): State<Arc<WebState>>,
    Extension(access): Extension<Access>,
    Query(query): Query<StartQuery>,
) -> Response {
    let made = async {
        start::rules(&app)?;
        if access != Access::Steer {
            let message = "this only reads: nothing can be started";
            return Err(RequestFailure::new(
                StatusCode::FORBIDDEN,
                message,
                "use the full token",
            ));
        }
        let loops = app.loops.clone();
        blocking(move || {
            let projects = start_rules::known(&loops)?;
            let projects: Vec<String> = projects
                .iter()
                .map(|one| one.display().to_string())
                .collect();
            let like = example(&loops, &query)?;
            Ok(page(
                "start a loop",
                access,
                form(&projects, &query, like.as_ref())?,
            ))
        })
        .await
    };
    page_or_failure(made.await, access)
}

/// The loop whose settings are filled in: the one that is named, else the last of its project.
fn example(loops: &Loops, query: &StartQuery) -> Result<Option<LoopHandle>, RequestFailure> {
    if let Some(id) = &query.like {
        let found = loops.find(&descartes_client::Query::Named(id.clone()))?;
        return Ok(Some(found));
    }
    let mut all = loops.list(&Scope::All)?;
    all.retain(|found| found.parent().is_none());
    let wanted = query.project.as_deref();
    let fits = |found: &LoopHandle| {
        wanted.is_none_or(|folder| found.meta().working_dir.display().to_string() == folder)
    };
    Ok(all.into_iter().find(fits))
}

fn form(
    projects: &[String],
    query: &StartQuery,
    like: Option<&LoopHandle>,
) -> Result<Markup, RequestFailure> {
    let config = match like {
        Some(found) => found.state()?.config,
        None => IterativeLoopConfig::default(),
    };
    let folder = like.map(|found| found.meta().working_dir.display().to_string());
    let folder = folder.or(query.project.clone()).unwrap_or_default();
    // The prompt of another loop is only wanted where that loop is started again.
    let prompt = query.like.as_ref().map_or("", |_| &config.prompt);
    let agent = match config.command.is_empty() {
        true => String::new(),
        false => masked(&config.command_line()),
    };
    let (prompt, gates) = (masked(prompt), masked(&config.verify.join("\n")));
    let like = like.map_or("", LoopHandle::id);
    let number = |limit: Option<String>| limit.unwrap_or_default();
    let limits = [
        (
            "max_iterations",
            "iterations",
            number(config.max_iterations.map(|most| most.to_string())),
        ),
        (
            "max_cost",
            "cost in $",
            number(config.max_cost_usd.map(|usd| usd.to_string())),
        ),
        (
            "max_tokens",
            "tokens",
            number(config.max_tokens.map(|most| most.to_string())),
        ),
        ("max_duration", "time in all", String::new()),
    ];
    Ok(html! {
        main #main {
            h1 { "Start a loop" }
            form.start method="post" action="/api/v1/start" data-then="loop" {
                input type="hidden" name="like" value=(like);
                label for="project" { "folder" }
                input #project name="project" list="projects" value=(folder) required autocomplete="off";
                datalist #projects { @for one in projects { option value=(one) {} } }
                label for="prompt" { "prompt" }
                textarea #prompt name="prompt" rows="6" required { (prompt) }
                label for="agent" { "agent: a name (claude, codex, …) or a command" }
                input #agent name="agent" value=(agent) autocomplete="off";
                label for="permissions" { "what it may do without asking" }
                select #permissions name="permissions" {
                    option value="" { "as configured" }
                    option value="edit" { "edit" }
                    option value="all" { "all" }
                }
                label for="gates" { "gates, one a line" }
                textarea #gates name="gates" rows="3" { (gates) }
                div.limits {
                    @for (name, label, now) in limits {
                        div { label for=(name) { (label) } input id=(name) name=(name) value=(now) autocomplete="off"; }
                    }
                }
                div { button type="submit" { "start" } }
            }
            ul #answers role="log" aria-label="answers" {}
        }
    })
}
