//! The history: a row an iteration, and the whole of the one that is chosen.

use descartes_kernel::event::{EndedBy, NearMissFacts, Verdict};
use descartes_views::view::{HistoryRow, Life, show_cost, show_tokens};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Context, flat, pad, pad_left, put, toned, wrapped};
use crate::style::Tone;
use crate::view::words;
use crate::watch::app::{App, Focus};
use crate::watch::theme::{Chosen, Theme};

/// Columns and their widths; the preview takes the rest.
const COLUMNS: [(&str, usize); 8] = [
    ("#", 5),
    ("time", 6),
    ("exit", 4),
    ("said", 4),
    ("gates", 5),
    ("files", 5),
    ("tokens", 6),
    ("cost", 6),
];
/// The columns, the first as wide as the largest number needs.
fn columns_of(app: &App) -> [(&'static str, usize); 8] {
    let mut columns = COLUMNS;
    columns[0].1 = columns[0].1.max(app.total_rows().to_string().len());
    columns
}

/// Rows for the whole of the chosen one.
const WHOLE: u16 = 3;

/// Draws it; tells where the rows are, and which is the first.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) -> (Rect, u64) {
    let theme = &context.theme;
    let below = below(app, area.height);
    let rows = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + below),
        ..area
    };
    let heads: Vec<String> = columns_of(app)
        .iter()
        .map(|(head, to)| pad_left(head, *to))
        .collect();
    let head = format!("{}  preview", heads.join(" "));
    let head = Line::from(toned(theme, Tone::Dim, flat_head(&head, area.width)));
    put(frame, Rect { height: 1, ..area }, vec![head]);
    let top = match app.selected_row() {
        Some(selected) => table(frame, app, context, rows, selected),
        None => {
            let none = toned(theme, Tone::Dim, "no iteration has finished yet");
            put(frame, rows, vec![Line::from(none)]);
            0
        }
    };
    if below > 0 {
        let area = Rect {
            y: area.y + area.height - below,
            height: below,
            ..area
        };
        put(frame, area, lines_below(app, context, area));
    }
    (rows, top)
}

/// The rows; tells which is the first.
fn table(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect, selected: u64) -> u64 {
    let theme = &context.theme;
    let fit = u64::from(area.height);
    let total = app.total_rows();
    let last = total.saturating_sub(fit);
    let top = match app.row {
        None => last,
        Some(_) => selected.saturating_sub(fit / 2).min(last),
    };
    let row_at = |place: u64| app.detail.as_ref()?.rows.get(place);
    let lines = (top..total.min(top + fit)).map(|place| {
        let line = match row_at(place) {
            Some(row) => line(row, app, context, area.width),
            None => Line::from(toned(theme, Tone::Dim, "…")),
        };
        match (place == selected, app.focus) {
            (true, Focus::Pane) => line.style(theme.chosen(Chosen::Active)),
            (true, Focus::List) if app.row.is_some() => line.style(theme.chosen(Chosen::Passive)),
            _ => line,
        }
    });
    put(frame, area, lines.collect());
    top
}

/// Rows below the table: the newest output, or the whole of the chosen iteration.
fn below(app: &App, height: u16) -> u16 {
    match height {
        0..9 => 0,
        _ if !app.is_live_below() => WHOLE,
        9..12 => WHOLE,
        _ => {
            let rows = u16::try_from(app.total_rows()).unwrap_or(u16::MAX);
            (height - 1 - rows.clamp(1, height * 6 / 10)).max(WHOLE)
        }
    }
}

fn lines_below(app: &App, context: &Context, area: Rect) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let columns = usize::from(area.width);
    let rule = |text: &str| {
        let rest = columns.saturating_sub(crate::view::width::width(text));
        let rule = format!("{text}{}", theme.marks.floor.repeat(rest));
        Line::from(toned(theme, Tone::Dim, rule))
    };
    if app.is_live_below() && area.height > WHOLE {
        let head = match app.log() {
            Some(log) => format!("{} ", super::output::place(app, log)),
            None => String::new(),
        };
        let fit = usize::from(area.height) - 1;
        let output = super::output::rows(app, context, columns, fit);
        return std::iter::once(rule(&head)).chain(output).collect();
    }
    let row = app
        .selected_row()
        .and_then(|place| app.detail.as_ref()?.rows.get(place));
    let whole = row.map(|row| all_of(row, app, context, area.width));
    std::iter::once(rule(""))
        .chain(whole.unwrap_or_default())
        .collect()
}

/// Headings keep their blanks.
fn flat_head(head: &str, columns: u16) -> String {
    crate::view::width::cut_end(head, usize::from(columns))
}

fn line(row: &HistoryRow, app: &App, context: &Context, columns: u16) -> Line<'static> {
    let theme = &context.theme;
    let under_way = row.verdict.is_none() && row.error.is_none();
    let number = match &row.task {
        Some((task, _)) => format!("{task}.{}", row.iteration),
        None => row.iteration.to_string(),
    };
    let time = match (row.duration_ms, under_way) {
        (0, true) if is_live(app) => words::seconds(words::between(row.started_at, context.now)),
        (0, true) => "-".to_owned(),
        (ms, _) => words::millis(ms),
    };
    let exit = row
        .exit
        .map_or_else(|| "-".to_owned(), |code| code.to_string());
    let said = if row.claimed { theme.marks.done } else { "-" };
    let files = row
        .files
        .map_or_else(|| "?".to_owned(), |files| files.to_string());
    let cells = [
        (Tone::Normal, number),
        (Tone::Normal, time),
        (exit_tone(row), exit),
        (Tone::Normal, said.to_owned()),
        gates(row, theme),
        (Tone::Normal, files),
        (Tone::Normal, show_tokens(row.tokens)),
        (Tone::Normal, show_cost(row.cost)),
    ];
    let mut spans = Vec::new();
    let mut used = 0;
    for ((_, to), (tone, text)) in columns_of(app).iter().zip(cells) {
        spans.push(toned(theme, tone, pad_left(&text, *to)));
        spans.push(Span::from(" "));
        used += to + 1;
    }
    let room = usize::from(columns).saturating_sub(used + 1);
    let (tone, text) = result(row, app);
    spans.push(toned(
        theme,
        tone,
        pad(&format!(" {}", flat(&text, room)), room + 1),
    ));
    Line::from(spans)
}

fn is_live(app: &App) -> bool {
    app.view().is_some_and(|view| view.life == Life::Alive)
}

fn exit_tone(row: &HistoryRow) -> Tone {
    match row.exit {
        None | Some(0) => Tone::Normal,
        Some(_) => Tone::Bad,
    }
}

/// A mark for each gate that ran.
fn gates(row: &HistoryRow, theme: &Theme) -> (Tone, String) {
    if row.gates.is_empty() {
        return (Tone::Normal, "-".to_owned());
    }
    let green = row.gates.iter().filter(|gate| gate.passed()).count();
    let red = row.gates.len() - green;
    let tone = if red > 0 { Tone::Bad } else { Tone::Good };
    let marks = match row.gates.len() {
        0..=5 => {
            let (good, bad) = (theme.marks.done, theme.marks.failed);
            format!("{}{}", good.repeat(green), bad.repeat(red))
        }
        all => format!("{green}/{all}"),
    };
    (tone, marks)
}

/// What came of it, or what the agent said.
fn result(row: &HistoryRow, app: &App) -> (Tone, String) {
    let near = row.near_miss.as_ref().map(NearMissFacts::words);
    let said = || near.clone().unwrap_or_else(|| row.preview.clone());
    match (&row.verdict, &row.error) {
        (Some(Verdict::Failed(why)), _) => (Tone::Bad, format!("failed: {why}")),
        (Some(Verdict::Blocked(why)), _) => (Tone::Bad, format!("blocked: {why}")),
        (_, Some(error)) => (Tone::Warn, error.clone()),
        (Some(Verdict::Promise | Verdict::Gates | Verdict::Success), _) => (Tone::Good, said()),
        (Some(Verdict::Refused), _) => (Tone::Warn, said()),
        (Some(Verdict::Stopped), _) if row.preview.is_empty() => (Tone::Dim, "stopped".to_owned()),
        (Some(_), _) => (Tone::Normal, said()),
        (None, _) if row.ended_by.is_some() && is_live(app) => (Tone::Strong, "gates …".to_owned()),
        (None, _) if is_live(app) => (Tone::Strong, "running …".to_owned()),
        (None, _) => (Tone::Dim, "interrupted".to_owned()),
    }
}

/// The chosen row in whole: two lines.
fn all_of(row: &HistoryRow, app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let mut parts = Vec::new();
    if let Some((task, _)) = &row.task {
        parts.push(format!("task {task}"));
    }
    parts.push(words::clock(row.started_at, context.now, &context.zone));
    parts.push(verdict(row).to_owned());
    parts.extend(row.ended_by.and_then(ended));
    if let Some(red) = row.gates.iter().find(|gate| !gate.passed()) {
        parts.push(format!(
            "red: {} ({})",
            red.command,
            words::gate_end(red.end)
        ));
    }
    if let Some(commit) = &row.commit {
        parts.push(format!("commit {}", commit.get(..9).unwrap_or(commit)));
    }
    let (tone, said) = result(row, app);
    let columns = usize::from(columns);
    let first = Line::from(flat(&parts.join(" · "), columns));
    let said = wrapped(&flat(&said, columns), columns, context.theme.tone(tone));
    std::iter::once(first).chain(said).collect()
}

fn verdict(row: &HistoryRow) -> &'static str {
    match &row.verdict {
        None if row.error.is_some() => "not counted",
        None => "in progress",
        Some(Verdict::Promise | Verdict::Gates | Verdict::Success) => "done",
        Some(Verdict::Refused) => "refused",
        Some(Verdict::Blocked(_)) => "blocked",
        Some(Verdict::Failed(_)) => "failed",
        Some(Verdict::Worked) => "worked",
        Some(Verdict::Stopped) => "stopped",
    }
}

fn ended(by: EndedBy) -> Option<String> {
    let words = match by {
        EndedBy::Timeout => "timed out",
        EndedBy::Idle => "hung",
        EndedBy::Budget(_) => "the budget was used up",
        EndedBy::Cancel => "cancelled",
        EndedBy::GuardLost | EndedBy::HostLost => "killed",
        EndedBy::Exit | EndedBy::Result | EndedBy::Promise | EndedBy::GaveUp => return None,
    };
    Some(words.to_owned())
}
