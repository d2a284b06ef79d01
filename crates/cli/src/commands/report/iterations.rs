//! What became of each iteration: one line, and on a click its gates, cost and words.

use descartes_core::worktree::Lines;
use descartes_kernel::event::Progress;
use descartes_views::picture::Clock;
use descartes_views::view::{Column, GateRow, HistoryRow, NoteRow};

use super::gather::Gathered;
use super::html::{block, code, facts, pill, section, text};
use crate::view::words;

/// More would make a page that no browser likes.
pub const SHOWN: usize = 500;

pub fn iterations(gathered: &Gathered, clock: &Clock) -> String {
    let rows = gathered.story.rows();
    let current = gathered.story.current();
    if rows.is_empty() && current.is_none() {
        return section("Iterations", "<p class=\"muted\">none yet</p>\n");
    }
    let mut out = String::new();
    let total = gathered
        .state
        .as_ref()
        .map_or(0, |state| state.iterations as usize);
    if rows.len() > SHOWN || total > rows.len() {
        out.push_str(&format!(
            "<p class=\"muted\">The last {} of {}; all of them: <code>descartes loop history {}</code></p>\n",
            rows.len().min(SHOWN),
            total.max(rows.len()),
            text(&gathered.meta.id)
        ));
    }
    out.push_str(&titles());
    let lines = gathered
        .lines
        .iter()
        .copied()
        .chain(std::iter::repeat(None));
    let first = rows.len().saturating_sub(SHOWN);
    for (row, lines) in rows.iter().zip(lines).skip(first) {
        out.push_str(&iteration(row, lines, gathered, clock));
    }
    if let Some(row) = current {
        out.push_str(&iteration(row, None, gathered, clock));
    }
    section("Iterations", &out)
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

fn titles() -> String {
    let [before, behind] = COLUMNS.map(|columns| columns.iter().map(|column| column.title()));
    let all = before
        .chain(["lines"])
        .chain(behind)
        .chain([Column::Preview.title()]);
    let all: String = all.map(|title| format!("<span>{title}</span>")).collect();
    format!("<div class=\"heads\">{all}</div>\n")
}

fn iteration(row: &HistoryRow, lines: Option<Lines>, gathered: &Gathered, clock: &Clock) -> String {
    let [before, behind] = COLUMNS.map(|columns| {
        let cell = |column: &Column| {
            let cell = row.cell(*column, gathered.life, clock.now);
            let shown = match (column, cell.text.as_str()) {
                (Column::Result | Column::Gates, text) if text != "-" => pill(&cell),
                (_, text) => text.to_owned(),
            };
            format!("<span>{shown}</span>")
        };
        columns.iter().map(cell).collect::<String>()
    });
    let said = row.summary().text;
    let said = match &row.task {
        Some((task, _)) => format!("task {task}: {said}"),
        None => said,
    };
    format!(
        "<details class=\"iteration\"><summary>{before}<span>{}</span>{behind}\
         <span class=\"what\">{}</span></summary>\n\
         <div class=\"body\">\n{}</div></details>\n",
        size(lines),
        text(&said.chars().take(160).collect::<String>()),
        body(row, lines, gathered, clock),
    )
}

fn body(row: &HistoryRow, lines: Option<Lines>, gathered: &Gathered, clock: &Clock) -> String {
    let started = words::clock(row.started_at, clock.now, &clock.zone);
    let mut rows = vec![("started", text(&started))];
    if let Some(code) = row.exit {
        rows.push(("exit code", code.to_string()));
    }
    let claim = match (row.claimed, &row.near_miss) {
        (true, _) => "claimed".to_owned(),
        (false, Some(near)) => text(&near.describe()),
        (false, None) => "not claimed".to_owned(),
    };
    rows.push(("promise", claim));
    let files = row.cell(Column::Files, gathered.life, clock.now).text;
    rows.push(("files changed", files));
    rows.push(("lines changed", size(lines)));
    rows.push(("evidence", evidence(row)));
    if let Some(commit) = &row.commit {
        rows.push(("commit", code(commit)));
    }
    let id = row.task.as_ref().map_or(&gathered.meta.id, |(_, id)| id);
    let log = format!("descartes loop logs {} {id}", row.iteration);
    rows.push(("output", code(&log)));
    let mut out = facts(&rows);
    if let Some(error) = &row.error {
        out.push_str("<h3>What went wrong</h3>\n");
        out.push_str(&block(error, "error"));
    }
    for gate in &row.gates {
        out.push_str(&gate_run(gate));
    }
    let given = |note: &&NoteRow| row.task.is_none() && note.given_to == Some(row.iteration);
    for note in gathered.story.notes().iter().filter(given) {
        out.push_str("<h3>Your note</h3>\n");
        out.push_str(&block(&note.text, "note"));
    }
    if !row.preview.trim().is_empty() {
        out.push_str("<h3>First lines of its answer</h3>\n");
        out.push_str(&block(&row.preview, "answer"));
    }
    out
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
        None => "?".to_owned(),
        Some(Progress::None) => "nothing moved".to_owned(),
        Some(Progress::Moved(what)) => text(&what.join(", ")),
        Some(Progress::Unknown(why)) => text(&format!("unknown: {why}")),
    }
}

/// A gate as it was run: command, how it ended, the last of its output.
pub fn gate_run(gate: &GateRow) -> String {
    let head = format!(
        "<p>{} {} <span class=\"muted\">{}</span></p>\n",
        pill(&gate.verdict()),
        code(&gate.command),
        words::millis(gate.duration_ms)
    );
    match gate.tail.trim().is_empty() {
        true => head,
        false => head + &block(&gate.tail, "end of its output"),
    }
}
