//! The history: a row an iteration, and the whole of the one that is chosen.

use descartes_kernel::event::EndedBy;
use descartes_views::view::{Column, HistoryRow, Life, UNKNOWN};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{Context, flat, pad, pad_left, put, toned, wrapped};
use crate::style::{Cell, Tone};
use crate::view::width::{cut_end, width};
use crate::view::words;
use crate::watch::app::{App, Focus};
use crate::watch::theme::{Chosen, Theme};

/// Columns, what stands over them in little room, and their widths; the preview takes the rest.
const COLUMNS: [(Column, &str, usize); 8] = [
    (Column::Number, "#", 5),
    (Column::Duration, "time", 6),
    (Column::Exit, "exit", 4),
    (Column::Promise, "said", 4),
    (Column::Gates, "gates", 5),
    (Column::Files, "files", 5),
    (Column::Tokens, "tokens", 6),
    (Column::Cost, "cost", 8),
];

/// The columns, the first as wide as the largest number needs.
fn columns_of(app: &App) -> [(Column, &'static str, usize); 8] {
    let mut columns = COLUMNS;
    columns[0].2 = columns[0].2.max(app.total_rows().to_string().len());
    columns
}

/// Rows for the whole of the chosen one.
const WHOLE: u16 = 3;

/// Draws it; tells where the rows are, and which is the first.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) -> (Rect, u64) {
    let below = below(app, area.height);
    let [head, rows, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(below),
    ])
    .areas(area);
    let titles = columns_of(app).map(|(_, title, to)| pad_left(title, to));
    let titles = format!("{}  preview", titles.join(" "));
    let titles = cut_end(&titles, usize::from(area.width));
    put(frame, head, vec![context.line(Tone::Dim, titles)]);
    let top = match app.selected_row() {
        Some(selected) => table(frame, app, context, rows, selected),
        None => {
            let none = context.line(Tone::Dim, "no iteration has finished yet");
            put(frame, rows, vec![none]);
            0
        }
    };
    if !below.is_empty() {
        put(frame, below, lines_below(app, context, below));
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
            None => context.line(Tone::Dim, "…"),
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
        let rest = columns.saturating_sub(width(text));
        context.line(
            Tone::Dim,
            format!("{text}{}", theme.marks.floor.repeat(rest)),
        )
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

fn line(row: &HistoryRow, app: &App, context: &Context, columns: u16) -> Line<'static> {
    let theme = &context.theme;
    let mut spans = Vec::new();
    let mut used = 0;
    for (column, _, to) in columns_of(app) {
        let cell = match column {
            Column::Promise if row.claimed => theme.marks.done.to_owned().into(),
            Column::Promise => theme.marks.unknown.to_owned().into(),
            Column::Gates => gates(row, theme),
            column => row.cell(column, life(app), context.now),
        };
        let text = match cell.text.as_str() {
            UNKNOWN => theme.marks.unknown,
            text => text,
        };
        spans.push(toned(theme, cell.tone, pad_left(text, to)));
        spans.push(Span::from(" "));
        used += to + 1;
    }
    let room = usize::from(columns).saturating_sub(used + 1);
    let Cell { tone, text } = row.summary_or_result(life(app));
    let text = pad(&format!(" {}", flat(&text, room)), room + 1);
    spans.push(toned(theme, tone, text));
    Line::from(spans)
}

fn life(app: &App) -> Life {
    app.view().map_or(Life::Gone, |view| view.life)
}

/// A mark for each gate, or how many passed where there are many.
fn gates(row: &HistoryRow, theme: &Theme) -> Cell {
    let green = row.gates.iter().filter(|gate| gate.passed()).count();
    let (all, red) = (row.gates.len(), row.gates.len() - green);
    let (good, bad) = (theme.marks.done, theme.marks.failed);
    if red > 0 && row.failed_gate().is_none() {
        let marks = good.repeat(green) + theme.marks.pending;
        return Cell::new(Tone::Warn, marks);
    }
    match (all, red) {
        (0, _) => Cell::new(Tone::Normal, theme.marks.unknown),
        (6.., _) => Cell::new(
            if red > 0 { Tone::Bad } else { Tone::Good },
            format!("{green}/{all}"),
        ),
        (_, 0) => Cell::new(Tone::Good, good.repeat(green)),
        _ => Cell::new(Tone::Bad, good.repeat(green) + &bad.repeat(red)),
    }
}

/// Everything about the chosen one that has no column.
fn all_of(row: &HistoryRow, app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let task = row.task.as_ref().map(|(task, _)| format!("task {task}"));
    let mut parts: Vec<String> = task.into_iter().collect();
    parts.push(words::clock(row.started_at, context.now, &context.zone));
    parts.push(row.result(life(app)).text);
    parts.extend(row.ended_by.and_then(ended));
    if let Some(gate) = row.failed_gate() {
        let end = words::gate_end(gate.end);
        parts.push(format!("red: {} ({end})", gate.command));
    } else if let Some(gate) = row.gates.iter().find(|gate| !gate.passed()) {
        parts.push(format!("cancelled: {}", gate.command));
    }
    if let Some(commit) = &row.commit {
        parts.push(format!("commit {}", commit.get(..9).unwrap_or(commit)));
    }
    let Cell { tone, text } = row.summary_or_result(life(app));
    let columns = usize::from(columns);
    let first = Line::from(flat(&parts.join(" · "), columns));
    let said = wrapped(&flat(&text, columns), columns, context.theme.tone(tone));
    std::iter::once(first).chain(said).collect()
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
