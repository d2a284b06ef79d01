//! The gates of the chosen iteration, each with the end of its output.

use ratatui::text::{Line, Span};

use super::{Context, flat, toned, wrapped};
use crate::style::Tone;
use crate::view::words;
use crate::watch::app::App;
use descartes_text::units::plural;

pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let columns = usize::from(columns);
    let dim = |text: String| Line::from(toned(theme, Tone::Dim, text));
    let Some(view) = app.view() else {
        return Vec::new();
    };
    let gates = &view.state.config.verify;
    if gates.is_empty() {
        return vec![dim(
            "this loop has no gates: set one with --verify".to_owned()
        )];
    }
    let detail = app.detail.as_ref();
    let selected = app.selected_row();
    // The newest iteration may not have come to its gates yet.
    let places = selected.into_iter().flat_map(|place| match app.row {
        Some(_) => place..place + 1,
        None => place.saturating_sub(200)..place + 1,
    });
    let rows = places
        .rev()
        .filter_map(|place| detail?.rows.get(place))
        .find(|row| !row.gates.is_empty());
    let Some(row) = rows else {
        let mut lines = vec![dim("no gate has run yet".to_owned())];
        lines.extend(
            gates
                .iter()
                .map(|gate| dim(format!("  {}", flat(gate, columns)))),
        );
        return lines;
    };
    let mut lines = vec![dim(format!(
        "iteration {} ([ and ] go to others)",
        row.iteration
    ))];
    for gate in &row.gates {
        let (tone, mark) = match gate.passed() {
            true => (Tone::Good, theme.marks.done),
            false => (Tone::Bad, theme.marks.failed),
        };
        let facts = format!(
            "  {} · {}",
            words::gate_end(gate.end),
            words::millis(gate.duration_ms)
        );
        let room = columns.saturating_sub(2);
        lines.push(Line::from(vec![
            toned(theme, tone, format!("{mark} ")),
            toned(theme, Tone::Strong, flat(&gate.command, room)),
            Span::from(facts),
        ]));
        let tail = wrapped(&gate.tail, columns.saturating_sub(2), theme.tone(Tone::Dim));
        for line in tail {
            let mut line = line;
            line.spans.insert(0, Span::from("  "));
            lines.push(line);
        }
    }
    let missing = gates.len().saturating_sub(row.gates.len());
    if missing > 0 {
        lines.push(dim(format!("{} not run", plural(missing as u64, "gate"))));
    }
    lines
}
