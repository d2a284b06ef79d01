//! What became of each iteration: one line, and on a click its gates, cost and words.

use descartes_core::worktree::Lines;
use descartes_kernel::event::Progress;
use descartes_views::picture::Clock;
use descartes_views::view::{Column, GateRow, HistoryRow, NoteRow, UNKNOWN};
use maud::{Markup, Render, html};

use super::gather::Gathered;
use super::html::{block, code, facts, pill, section, text};
use crate::view::words;

/// More would make a page that no browser likes.
pub const SHOWN: usize = 500;

pub fn iterations(gathered: &Gathered, clock: &Clock) -> Markup {
    let rows = gathered.story.rows();
    let current = gathered.story.current();
    if rows.is_empty() && current.is_none() {
        return section("Iterations", &html! { p.muted { "none yet" } "\n" });
    }
    let state = gathered.state.as_ref();
    let total = state.map_or(0, |state| state.iterations as usize);
    let lines = gathered
        .lines
        .iter()
        .copied()
        .chain(std::iter::repeat(None));
    let first = rows.len().saturating_sub(SHOWN);
    let body = html! {
        @if rows.len() > SHOWN || total > rows.len() {
            p.muted {
                "The last " (rows.len().min(SHOWN)) " of " (total.max(rows.len())) "; all of them: "
                code { "descartes loop history " (text(&gathered.meta.id)) }
            }
            "\n"
        }
        (titles())
        @for (row, lines) in rows.iter().zip(lines).skip(first) { (iteration(row, lines, gathered, clock)) }
        @if let Some(row) = current { (iteration(row, None, gathered, clock)) }
    };
    section("Iterations", &body)
}

/// The columns before and behind the lines that it changed; its words come last.
const COLUMNS: [&[Column]; 2] = [
    &[
        Column::Iteration,
        Column::Result,
        Column::Gates,
        Column::Duration,
    ],
    &[Column::Tokens, Column::Cost],
];

fn titles() -> Markup {
    let [before, behind] = COLUMNS.map(|columns| columns.iter().map(|column| column.title()));
    let all = before
        .chain(["lines"])
        .chain(behind)
        .chain([Column::Preview.title()]);
    html! { div.heads { @for title in all { span { (title) } } } "\n" }
}

fn iteration(row: &HistoryRow, lines: Option<Lines>, gathered: &Gathered, clock: &Clock) -> Markup {
    let [before, behind] = COLUMNS.map(|columns| {
        html! {
            @for column in columns {
                @let cell = row.cell(*column, gathered.life, clock.now);
                span {
                    @match column {
                        Column::Result | Column::Gates if cell.text != "-" => (pill(&cell)),
                        _ => (text(&cell.text)),
                    }
                }
            }
        }
    });
    let said = row.summary().text;
    let said = match &row.task {
        Some((task, _)) => format!("task {task}: {said}"),
        None => said,
    };
    html! {
        details.iteration {
            summary {
                (before) span { (size(lines)) } (behind)
                span.what { (text(&said.chars().take(160).collect::<String>())) }
            }
            "\n"
            div.body { "\n" (body(row, lines, gathered, clock)) }
        }
        "\n"
    }
}

fn body(row: &HistoryRow, lines: Option<Lines>, gathered: &Gathered, clock: &Clock) -> Markup {
    let given = |note: &&NoteRow| row.task.is_none() && note.given_to == Some(row.iteration);
    html! {
        (facts(&known(row, lines, gathered, clock)))
        @if let Some(error) = &row.error {
            h3 { "What went wrong" } "\n"
            (block(error, "error"))
        }
        @for gate in &row.gates { (gate_run(gate)) }
        @for note in gathered.story.notes().iter().filter(given) {
            h3 { "Your note" } "\n"
            (block(&note.text, "note"))
        }
        @if !row.preview.trim().is_empty() {
            h3 { "First lines of its answer" } "\n"
            (block(&row.preview, "answer"))
        }
    }
}

fn known(
    row: &HistoryRow,
    lines: Option<Lines>,
    gathered: &Gathered,
    clock: &Clock,
) -> Vec<(&'static str, Markup)> {
    let started = words::clock(row.started_at, clock.now, &clock.zone);
    let mut rows = vec![("started", text(&started).render())];
    if let Some(code) = row.exit {
        rows.push(("exit code", code.render()));
    }
    let claim = match (row.claimed, &row.near_miss) {
        (true, _) => "claimed".to_owned(),
        (false, Some(near)) => text(&near.describe()),
        (false, None) => "not claimed".to_owned(),
    };
    rows.push(("promise", claim.render()));
    let files = row.cell(Column::Files, gathered.life, clock.now).text;
    rows.push(("files changed", files.render()));
    rows.push(("lines changed", size(lines).render()));
    rows.push(("evidence", evidence(row).render()));
    if let Some(commit) = &row.commit {
        rows.push(("commit", code(commit)));
    }
    let id = row.task.as_ref().map_or(&gathered.meta.id, |(_, id)| id);
    let log = format!("descartes loop logs {} {id}", row.iteration);
    rows.push(("output", code(&log)));
    rows
}

/// The size of a diff, as people know it.
fn size(lines: Option<Lines>) -> String {
    match lines {
        None => "–".to_owned(),
        Some(Lines { added, removed }) => format!("+{added} −{removed}"),
    }
}

fn evidence(row: &HistoryRow) -> String {
    match &row.progress {
        None => UNKNOWN.to_owned(),
        Some(Progress::None) => "nothing moved".to_owned(),
        Some(Progress::Moved(what)) => text(&what.join(", ")),
        Some(Progress::Unknown(why)) => text(&format!("unknown: {why}")),
    }
}

/// A gate as it was run: command, how it ended, the last of its output.
pub fn gate_run(gate: &GateRow) -> Markup {
    html! {
        p {
            (pill(&gate.verdict())) " " (code(&gate.command)) " "
            span.muted { (words::millis(gate.duration_ms)) }
        }
        "\n"
        @if !gate.tail.trim().is_empty() { (block(&gate.tail, "end of its output")) }
    }
}
