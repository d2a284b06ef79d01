//! The page as a whole.

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::state::{LoopState, Phase};
use descartes_kernel::tasks::Landing;
use descartes_text::units::{plural, show_usd};
use descartes_views::picture::{Clock, style_sheet};
use descartes_views::view::{
    GateRow, Head, HistoryRow, Status, WaitRow, show_cost, show_tokens, untouched,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, PreEscaped, Render, html};

use super::gather::Gathered;
use super::html::{self as pieces, Td, block, code, facts, pill, section, table, text};
use super::{iterations, pictures, tasks};
use crate::style::{Cell, Tone};
use crate::view::summary::{Named, after};
use crate::view::words;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// All of it, ready to be written.
pub fn page(gathered: &Gathered, now: Timestamp, zone: &TimeZone) -> String {
    let clock = Clock {
        now,
        zone: zone.clone(),
    };
    let style = format!("\n{}\n{}", style_sheet(), pieces::STYLE);
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" { "\n"
            head { "\n"
                meta charset="utf-8"; "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                meta http-equiv="Content-Security-Policy" content=(POLICY); "\n"
                meta name="referrer" content="no-referrer"; "\n"
                title { (text(&gathered.meta.name)) " – descartes" } "\n"
                style { (PreEscaped(style)) } "\n"
            } "\n"
            body { "\n"
                (body(gathered, &clock))
                footer {
                    "Written by descartes " (env!("CARGO_PKG_VERSION")) " at " (at(now, &clock)) ". Loop "
                    (text(&gathered.meta.id)) "."
                } "\n"
            } "\n"
        } "\n"
    };
    pieces::mask(&page.into_string())
}

fn body(gathered: &Gathered, clock: &Clock) -> Markup {
    let state = gathered.state.as_ref();
    html! {
        (header(gathered, clock))
        (troubles(gathered))
        @if let Some(state) = state {
            (section("What to do next", &next(gathered, state)))
            (section("Status and evidence", &evidence(gathered, state)))
            (section("What was asked", &asked(gathered, state)))
        }
        (pictures::pictures(gathered, clock))
        @if let Some(tasks) = state.and_then(|state| state.tasks.as_deref()) { (tasks::tasks(tasks)) }
        (iterations::iterations(gathered, clock))
        (section("Waits", &waits(gathered, clock)))
        (section("Notes and remarks", &remarks(gathered, clock)))
    }
}

/// A moment, with its day.
fn at(moment: Timestamp, clock: &Clock) -> String {
    let local = moment.to_zoned(clock.zone.clone());
    text(&local.strftime("%Y-%m-%d %H:%M:%S %Z").to_string())
}

fn header(gathered: &Gathered, clock: &Clock) -> Markup {
    let title = text(&gathered.meta.name);
    let folder = code(&gathered.meta.working_dir.display().to_string());
    let Some(state) = &gathered.state else {
        return html! {
            header { "\n"
                h1 { (title) } "\n"
                p { (pill(&Cell::new(Tone::Bad, "unreadable"))) " in " (folder) } "\n"
            } "\n"
        };
    };
    let head = Head::of(state, gathered.life);
    let spent = &head.spent;
    let mut rows = vec![
        ("progress", text(&head.progress()).render()),
        ("started", at(head.started_at, clock).render()),
    ];
    match head.ended_at {
        Some(end) => rows.push(("ended", at(end, clock).render())),
        None => rows.push(("age", words::seconds(head.elapsed(clock.now)).render())),
    }
    let used = words::millis(spent.ms);
    rows.push(("time used by agents and gates", used.render()));
    rows.push(("tokens", show_tokens(spent.tokens).render()));
    rows.push(("cost", show_cost(spent.cost()).render()));
    let status = Cell::new(head.status.tone(), head.status.label());
    html! {
        header { "\n"
            h1 { (title) } "\n"
            p.lead { (pill(&status)) " " (sentence(&head.status, clock)) } "\n"
            p.muted { (folder) } "\n"
            (facts(&rows))
        } "\n"
    }
}

fn sentence(status: &Status, clock: &Clock) -> String {
    match status {
        Status::Waiting { until, why } => format!("until {}: {}", at(*until, clock), text(why)),
        Status::Interrupted => "no process is running it; nothing is lost".to_owned(),
        _ => text(&status.end_sentence().unwrap_or_default()),
    }
}

fn troubles(gathered: &Gathered) -> Markup {
    html! {
        @if !gathered.troubles.is_empty() {
            div.notice { "\n" @for trouble in &gathered.troubles { p { (text(trouble)) } "\n" } } "\n"
        }
    }
}

fn asked(gathered: &Gathered, state: &LoopState) -> Markup {
    let config = &state.config;
    let mut rows = settings(config);
    rows.extend(gates(gathered, state));
    rows.push(("sandbox", text(&state.sandbox_label()).render()));
    let denied = state.denied.iter();
    rows.extend(denied.map(|denied| ("denied", text(&denied.describe()).render())));
    let planted = state.planted.iter();
    rows.extend(planted.map(|planted| ("left for git", text(&planted.describe()).render())));
    html! {
        @if !config.prompt.trim().is_empty() { (block(&config.prompt, "the prompt")) }
        div.wide { (facts(&rows)) } "\n"
    }
}

/// Gates of tasks that are named; of others it is told how many there are.
const TASK_GATES: usize = 12;

/// The gates of the loop, and those that its tasks brought.
fn gates(gathered: &Gathered, state: &LoopState) -> Vec<(&'static str, Markup)> {
    let verify = &state.config.verify;
    let mut rows: Vec<_> = verify.iter().map(|gate| ("gate", code(gate))).collect();
    let of_tasks = gathered.story.task_gates(verify);
    let named = of_tasks.iter().take(TASK_GATES);
    rows.extend(named.map(|gate| ("gate of a task", code(gate))));
    if of_tasks.len() > TASK_GATES {
        let more = format!("and {} more", of_tasks.len() - TASK_GATES);
        rows.push(("", more.render()));
    }
    if rows.is_empty() {
        rows.push(("gates", "none: only the agent's word".render()));
    }
    rows
}

fn settings(config: &IterativeLoopConfig) -> Vec<(&'static str, Markup)> {
    let mut rows = Vec::new();
    if let Some(file) = &config.prompt_file {
        rows.push(("prompt file", code(&file.display().to_string())));
    }
    if let Some(tasks) = &config.tasks {
        let from = tasks.source.path().display().to_string();
        let tag = text(&tasks.source.tag());
        rows.push(("tasks", html! { (tag) " of " (code(&from)) }));
    }
    rows.push(("agent", code(&config.agent_line())));
    rows.extend(config.model.as_ref().map(|model| ("model", code(model))));
    let fallback = config.fallback.iter();
    rows.extend(fallback.map(|agent| ("fallback", code(agent))));
    let promise = config.completion_promise.as_deref();
    rows.push(("promise", promise.map_or("none".render(), code)));
    let limit = match config.max_iterations {
        Some(limit) => plural(u64::from(limit), "iteration"),
        None => "unlimited iterations".to_owned(),
    };
    rows.push(("limit", limit.render()));
    let budgets = [
        (
            "time budget",
            config.max_duration_secs.map(|limit| limit.to_string()),
        ),
        ("cost budget", config.max_cost_usd.map(show_usd)),
        (
            "token budget",
            config.max_tokens.map(|limit| limit.to_string()),
        ),
    ];
    rows.extend(
        budgets
            .into_iter()
            .filter_map(|(name, limit)| Some((name, limit?.render()))),
    );
    rows
}

/// The gates as they were last run, and the claim that they met.
fn evidence(gathered: &Gathered, state: &LoopState) -> Markup {
    let mut rows = gathered.story.rows().iter().chain(gathered.story.current());
    let judged = rows.rfind(|row| !row.gates.is_empty());
    let is_over = matches!(state.phase, Phase::Finished { .. });
    html! {
        @if let Some((_, claim)) = &state.completion { p { "The agent claimed: " (code(claim)) } "\n" }
        @match judged {
            Some(row) => {
                p { (judgement(row)) } "\n"
                @for gate in &row.gates { (iterations::gate_run(gate)) }
            }
            None if state.config.verify.is_empty() && (state.tasks.is_none() || is_over) => {
                p.muted {
                    "No gate was set, so nothing was proven: the claim is the agent's own. "
                    code { "--verify CMD" } " would prove it."
                } "\n"
            }
            None => { p.muted { "No gate has run yet." } "\n" }
        }
        @if let Some(words) = untouched(state) { p { "Note: " (words) "." } "\n" }
        @for change in state.told_changes() {
            p { "Changed while it ran: " (text(&format!("{}: {}", whole_seconds(change.at), change.describe()))) } "\n"
        }
        @if let Some(failure) = &state.agents.last_failure { p { "Last failure: " (text(failure)) } "\n" }
    }
}

fn judgement(row: &HistoryRow) -> String {
    let words = match row.gates.iter().all(GateRow::passed) {
        true => "All gates passed",
        false => "A gate failed",
    };
    let who = match &row.task {
        Some((task, _)) => format!("task {task}, attempt {}", row.iteration),
        None => format!("iteration {}", row.iteration),
    };
    text(&format!("{words} when last run ({who}):"))
}

fn whole_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The exact commands; they work from any directory.
fn next(gathered: &Gathered, state: &LoopState) -> Markup {
    let id = &gathered.meta.id;
    let named = Named::As(id.clone());
    let status = Status::of(state, gathered.life);
    let mut lines = match &status {
        // The output of a task loop is that of its tasks' own loops, and work that waits is landed from its
        // folder: both are named below.
        Status::Ended { reason } if state.tasks.is_some() && !reason.is_success() => {
            let mut lines = after(reason, state.iterations, state, &named);
            lines.retain(|line| line.starts_with("descartes loop resume"));
            lines
        }
        Status::Ended { reason } => after(reason, state.iterations, state, &named),
        Status::Interrupted => vec![named.command("resume", "")],
        Status::Paused => vec![named.command("unpause", "")],
        Status::Waiting { .. } => vec![
            named.command("set", "--retry-now"),
            named.command("cancel", ""),
        ],
        _ => vec![
            named.command("status", "--watch"),
            named.command("cancel", ""),
        ],
    };
    if let Some(tasks) = &state.tasks {
        let folder = shell_words::quote(&gathered.meta.working_dir.to_string_lossy()).into_owned();
        if let Some(Landing::Ready { by_hand, .. }) = &tasks.landing {
            let tag = shell_words::quote(&tasks.tag).into_owned();
            let by_us = format!("descartes work land {tag}");
            let command = by_hand.as_ref().and(tasks.landing.as_ref());
            let command = command.and_then(Landing::command).unwrap_or(by_us);
            lines.insert(0, format!("cd {folder} && {command}"));
        }
        if !tasks.blocked.is_empty() {
            let red = |row: &&HistoryRow| row.failed_gate().is_some();
            let last = gathered.story.rows().iter().rev().find(red);
            if let Some((row, (_, id))) = last.and_then(|row| Some((row, row.task.as_ref()?))) {
                let log = Named::As(id.clone()).command("logs", &row.iteration.to_string());
                lines.push(log);
            }
            lines.push(format!("cd {folder} && descartes work"));
        }
    }
    html! { ol.next { "\n" @for line in &lines { li { (code(line)) } "\n" } } "\n" }
}

fn waits(gathered: &Gathered, clock: &Clock) -> Markup {
    let row = |wait: &WaitRow| {
        let Cell { text, .. } = wait.cell(clock.now, &clock.zone);
        vec![Td::time(&at(wait.since, clock)), Td::text(&text)]
    };
    table(&["since", "why"], gathered.story.waits().iter().map(row))
}

fn remarks(gathered: &Gathered, clock: &Clock) -> Markup {
    let notes = gathered.story.notes().iter();
    let notes = notes.map(|note| (note.at, format!("your note: {}", note.cell().text)));
    let remarks = gathered.story.remarks().iter();
    let remarks = remarks.map(|remark| (Some(remark.at), remark.text.clone()));
    let mut lines: Vec<(Option<Timestamp>, String)> = notes.chain(remarks).collect();
    lines.sort_by_key(|(at, _)| *at);
    let row = |(when, words): &(Option<Timestamp>, String)| {
        let when = when.map_or_else(String::new, |when| at(when, clock));
        vec![Td::time(&when), Td::text(words)]
    };
    table(&["at", "what"], lines.iter().map(row))
}
