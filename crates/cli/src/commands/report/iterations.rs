//! What became of each iteration: one line, and on a click its gates, cost and words.

use descartes_core::worktree::Lines;
use descartes_kernel::event::{EndedBy, GateEnd, Progress, Verdict};
use descartes_views::view::{GateRow, HistoryRow, Life, NoteRow, show_cost, show_tokens};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::gather::Gathered;
use super::html::{block, code, facts, pill, section, text};
use crate::view::words;

/// More would make a page that no browser likes.
pub const SHOWN: usize = 500;

pub fn iterations(gathered: &Gathered, zone: &TimeZone, now: Timestamp) -> String {
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
    out.push_str(HEADS);
    let lines = gathered
        .lines
        .iter()
        .copied()
        .chain(std::iter::repeat(None));
    let first = rows.len().saturating_sub(SHOWN);
    for (row, lines) in rows.iter().zip(lines).skip(first) {
        out.push_str(&iteration(row, None, lines, gathered, zone, now));
    }
    if let Some(row) = current {
        let alive = Some(gathered.life);
        out.push_str(&iteration(row, alive, None, gathered, zone, now));
    }
    section("Iterations", &out)
}

const HEADS: &str = "<div class=\"heads\"><span>#</span><span>result</span><span>gates</span>\
                     <span>time</span><span>lines</span><span>tokens</span><span>cost</span><span>words</span></div>\n";

/// `under_way` is given for the row that is not over.
fn iteration(
    row: &HistoryRow,
    under_way: Option<Life>,
    lines: Option<Lines>,
    gathered: &Gathered,
    zone: &TimeZone,
    now: Timestamp,
) -> String {
    let (class, result) = result(row, under_way);
    let said = row.error.as_deref().unwrap_or(&row.preview);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = match &row.task {
        Some((task, _)) => format!("task {task}: {said}"),
        None => said,
    };
    let duration = match (under_way, row.duration_ms) {
        (Some(Life::Alive), 0) => words::seconds(words::between(row.started_at, now)),
        (Some(Life::Gone), 0) => "?".to_owned(),
        (_, ms) => words::millis(ms),
    };
    format!(
        "<details class=\"iteration\"><summary><span>{}</span><span>{}</span><span>{}</span>\
         <span>{}</span><span>{}</span><span>{}</span><span>{}</span>\
         <span class=\"what\">{}</span></summary>\n\
         <div class=\"body\">\n{}</div></details>\n",
        row.iteration,
        pill(class, result),
        gates(row),
        duration,
        size(lines),
        show_tokens(row.tokens),
        show_cost(row.cost),
        text(&said.chars().take(160).collect::<String>()),
        body(row, lines, gathered, zone, now),
    )
}

/// What an iteration came to, in a word and its colour.
fn result(row: &HistoryRow, under_way: Option<Life>) -> (&'static str, &'static str) {
    match (&row.verdict, under_way) {
        (_, Some(Life::Alive)) => ("work", "running"),
        (_, Some(Life::Gone)) => ("warn", "lost"),
        (Some(Verdict::Promise | Verdict::Gates | Verdict::Success), _) => ("good", "done"),
        (Some(Verdict::Refused), _) => ("bad", "refused"),
        (Some(Verdict::Blocked(_)), _) => ("bad", "blocked"),
        (Some(Verdict::Failed(_)), _) => ("bad", "failed"),
        (Some(Verdict::Worked), _) => ("", "worked"),
        (Some(Verdict::Stopped), _) if row.ended_by == Some(EndedBy::HostLost) => ("warn", "lost"),
        (Some(Verdict::Stopped), _) => ("warn", "stopped"),
        (None, None) => ("warn", "limit"),
    }
}

fn gates(row: &HistoryRow) -> String {
    let green = row.gates.iter().filter(|gate| gate.passed()).count();
    match (row.gates.len(), green) {
        (0, _) => "–".to_owned(),
        (all, green) if all == green => pill("good", "green"),
        (all, green) => pill("bad", &format!("{green} of {all}")),
    }
}

fn body(
    row: &HistoryRow,
    lines: Option<Lines>,
    gathered: &Gathered,
    zone: &TimeZone,
    now: Timestamp,
) -> String {
    let mut rows = vec![("started", text(&words::clock(row.started_at, now, zone)))];
    if let Some(code) = row.exit {
        rows.push(("exit code", code.to_string()));
    }
    let claim = match (row.claimed, &row.near_miss) {
        (true, _) => "claimed".to_owned(),
        (false, Some(near)) => text(&near.words()),
        (false, None) => "not claimed".to_owned(),
    };
    rows.push(("promise", claim));
    rows.push(("files changed", files(row)));
    rows.push(("lines changed", size(lines)));
    rows.push(("evidence", evidence(row)));
    if let Some(commit) = &row.commit {
        rows.push(("commit", code(commit)));
    }
    if let Some((_, id)) = &row.task {
        let log = format!("descartes loop logs {} {id}", row.iteration);
        rows.push(("output", code(&log)));
    } else {
        let log = format!("descartes loop logs {} {}", row.iteration, gathered.meta.id);
        rows.push(("output", code(&log)));
    }
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
        out.push_str("<h3>Beginning of its answer</h3>\n");
        out.push_str(&block(&row.preview, "words"));
    }
    out
}

fn files(row: &HistoryRow) -> String {
    match row.files {
        None => "?".to_owned(),
        Some(count) => count.to_string(),
    }
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
    let class = if gate.passed() { "good" } else { "bad" };
    let how = match gate.end {
        GateEnd::Exit(_) => words::gate_end(gate.end),
        other => words::gate_end(other),
    };
    let head = format!(
        "<p>{} {} <span class=\"muted\">{}</span></p>\n",
        pill(class, &how),
        code(&gate.command),
        words::millis(gate.duration_ms)
    );
    match gate.tail.trim().is_empty() {
        true => head,
        false => head + &block(&gate.tail, "the last of its output"),
    }
}
