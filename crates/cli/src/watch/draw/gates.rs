//! The gates of the chosen iteration, each with the end of its output.

use ratatui::text::{Line, Span};

use super::{Context, flat, indented, toned};
use crate::style::{Cell, Tone};
use crate::view::words;
use crate::watch::app::App;
use descartes_kernel::event::GateEnd;
use descartes_text::units::plural;
use descartes_views::view::HistoryRow;

pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let columns = usize::from(columns);
    let dim = |text: String| context.line(Tone::Dim, text);
    let Some(view) = app.view() else {
        return Vec::new();
    };
    let gates = &view.state.config.verify;
    if gates.is_empty() {
        let text = "this loop has no gates: set one with --verify";
        return vec![dim(text.to_owned())];
    }
    let Some(row) = judged(app) else {
        let gates = gates
            .iter()
            .map(|gate| dim(format!("  {}", flat(gate, columns))));
        let none = dim("no gate has run yet".to_owned());
        return std::iter::once(none).chain(gates).collect();
    };
    let number = row.iteration;
    let mut lines = vec![dim(format!("iteration {number} ([ and ] go to others)"))];
    for gate in &row.gates {
        let Cell { tone, text } = gate.verdict();
        let mark = match gate.end {
            _ if gate.passed() => theme.marks.done,
            GateEnd::Cancelled => theme.marks.pending,
            _ => theme.marks.failed,
        };
        let command = flat(&gate.command, columns.saturating_sub(2));
        lines.push(Line::from(vec![
            toned(theme, tone, format!("{mark} ")),
            toned(theme, Tone::Strong, command),
            Span::from(format!("  {text} · {}", words::millis(gate.duration_ms))),
        ]));
        lines.extend(indented(&gate.tail, 2, columns, theme.tone(Tone::Dim)));
    }
    let missing = gates.len().saturating_sub(row.gates.len());
    if missing > 0 {
        lines.push(dim(format!("{} not run", plural(missing as u64, "gate"))));
    }
    lines
}

/// The chosen iteration; of the newest ones the last that came to its gates.
fn judged(app: &App) -> Option<&HistoryRow> {
    let place = app.selected_row()?;
    let first = match app.row {
        Some(_) => place,
        None => place.saturating_sub(200),
    };
    let rows = &app.detail.as_ref()?.rows;
    let mut rows = (first..=place).rev().filter_map(|place| rows.get(place));
    rows.find(|row| !row.gates.is_empty())
}
