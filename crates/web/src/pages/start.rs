//! The form that starts a loop, with the last settings of its project.

use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use descartes_client::{Loops, Scope};
use descartes_kernel::config::{IterativeLoopConfig, Permissions};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{page, page_or_failure};
use super::text::line;
use crate::access::Access;
use crate::reply::{RequestFailure, blocking};
use crate::start_form::{EACH_GATE, NO_PROMISE};
use crate::start_like::FormerLoop;
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
            let folder = match (query.project, projects.as_slice()) {
                (Some(folder), _) => folder,
                (None, [only]) => only.clone(),
                (None, _) => String::new(),
            };
            let former = match &query.like {
                Some(like) => Some(FormerLoop::find(&loops, like)?),
                None => last_of(&loops, &folder)?,
            };
            let shown = StartFields {
                projects: &projects,
                folder: former.as_ref().map_or(folder, |former| {
                    former.handle.meta().working_dir.display().to_string()
                }),
                again: query.like.is_some(),
                ended: former
                    .as_ref()
                    .is_some_and(|former| former.has_ended(&loops)),
            };
            Ok(page("start a loop", access, form(&shown, former.as_ref())))
        })
        .await
    };
    page_or_failure(made.await, access)
}

/// The last loop of a folder that was given a prompt.
fn last_of(loops: &Loops, folder: &str) -> Result<Option<FormerLoop>, RequestFailure> {
    let Ok(folder) = std::fs::canonicalize(folder) else {
        return Ok(None);
    };
    let all = loops.list(&Scope::Of(folder))?;
    let mut usable = all.iter().map(|found| FormerLoop::find(loops, found.id()));
    Ok(usable.find_map(Result::ok))
}

/// What the form shows besides the settings of a loop.
struct StartFields<'a> {
    /// Folders to choose from, and the chosen one.
    projects: &'a [String],
    folder: String,
    /// A loop is started again; else only the settings of the last one are taken.
    again: bool,
    /// The loop that would have to make room has ended.
    ended: bool,
}

/// Lines that a field shows at once.
fn rows(text: &str) -> usize {
    text.lines().count().clamp(1, 12)
}

fn form(shown: &StartFields<'_>, former: Option<&FormerLoop>) -> Markup {
    let none = IterativeLoopConfig::default();
    let config = former.map_or(&none, |former| &former.config);
    let handle = former.map(|former| &former.handle);
    let like = handle.map_or("", |handle| handle.id());
    // Name and prompt of another loop are only wanted where that loop is started again.
    let again = |text: &str| masked(if shown.again { text } else { "" });
    let agent = former.map_or_else(String::new, |_| masked(&config.command_line()));
    let gates = config.verify.iter().map(|gate| masked(gate));
    let gates: Vec<(usize, String)> = (1..).zip(gates).collect();
    let more = if gates.is_empty() {
        "gates, one a line"
    } else {
        "more gates, one a line"
    };
    let permissions = former.map_or("", |_| match config.permissions {
        Permissions::Agent => "agent",
        Permissions::Edit => "edit",
        Permissions::All => "all",
    });
    let promise = match (&config.completion_promise, former) {
        (Some(promise), _) => promise,
        (None, Some(_)) => NO_PROMISE,
        (None, None) => "",
    };
    let iterations = former.map(|_| config.limit_label());
    let cost = config.max_cost_usd.map(|usd| usd.to_string());
    let tokens = config.max_tokens.map(|most| most.to_string());
    let duration = config.max_duration_secs.map(|limit| limit.to_string());
    let lines = [
        (
            "promise",
            "promise (none: the gates alone decide)",
            masked(promise),
        ),
        (
            "name",
            "name",
            again(handle.map_or("", |handle| handle.name())),
        ),
        (
            "max_iterations",
            "iterations",
            iterations.unwrap_or_default(),
        ),
        ("max_cost", "cost in $", cost.unwrap_or_default()),
        ("max_tokens", "tokens", tokens.unwrap_or_default()),
        ("max_duration", "time in all", duration.unwrap_or_default()),
    ];
    html! {
        main #main {
            h1 { "Start a loop" }
            form.start method="post" action="/api/v1/start" data-then="loop" {
                input type="hidden" name="like" value=(like);
                label for="project" { "folder" }
                input #project name="project" list="projects" value=(shown.folder) required autocomplete="off";
                datalist #projects { @for one in shown.projects { option value=(one) {} } }
                label for="prompt" {
                    "prompt"
                    @if let Some(file) = &config.prompt_file { ", or nothing for that in " (line(&file.display().to_string())) }
                }
                textarea #prompt name="prompt" rows="6" required[config.wants_prompt() && config.prompt_file.is_none()] { (again(&config.prompt)) }
                label for="agent" { "agent: a name (claude, codex, …) or a command" }
                // A field of one line drops line ends: a script in an argument would become another one.
                @if agent.contains('\n') { textarea #agent name="agent" rows=(rows(&agent)) { (agent) } }
                @else { input #agent name="agent" value=(agent) autocomplete="off"; }
                label for="permissions" { "what it may do without asking" }
                select #permissions name="permissions" {
                    @for (value, label) in [("", "as configured"), ("agent", "what the agent allows"), ("edit", "edit"), ("all", "all")] {
                        option value=(value) selected[value == permissions] { (label) }
                    }
                }
                @for (number, gate) in &gates {
                    label for={ "gate-" (number) } { "gate " (number) @if *number == 1 { " (run as one script; empty: none)" } }
                    textarea id={ "gate-" (number) } name=(EACH_GATE) rows=(rows(gate)) { (gate) }
                }
                label for="gates" { (more) }
                textarea #gates name="gates" rows="3" {}
                div.limits {
                    @for (name, label, now) in lines {
                        div { label for=(name) { (label) } input id=(name) name=(name) value=(now) autocomplete="off"; }
                    }
                }
                @if shown.ended {
                    div { label { input type="checkbox" name="force" value="true" checked[shown.again]; " start over: the state file of the loop that has ended is put aside" } }
                }
                @if former.is_some() { p.dim { "Whatever has no field here (sandbox, model, git, time of an iteration) is as in " (line(handle.map_or("", |handle| handle.name()))) "." } }
                div { button type="submit" { "start" } }
            }
            ul #answers role="log" aria-label="answers" {}
        }
    }
}
