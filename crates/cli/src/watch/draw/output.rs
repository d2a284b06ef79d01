//! What the agent prints: the end of it as it grows, or any place in it.

use descartes_agents::reader::Source;
use descartes_client::logs::LogLine;
use descartes_text::units::show_size;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::{Context, flat, pieces, put};
use crate::style::Tone;
use crate::watch::app::App;
use crate::watch::detail::{LogPlace, LogView};

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) {
    let columns = usize::from(area.width);
    let [first, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let log = app.detail.as_ref().and_then(|detail| detail.log.as_ref());
    let (tone, head) = match log {
        Some(Ok(log)) => (Tone::Dim, place(app, log)),
        Some(Err(error)) => (Tone::Warn, format!("! {error}")),
        None => (Tone::Dim, "no output yet".to_owned()),
    };
    put(frame, first, vec![context.line(tone, flat(&head, columns))]);
    let fit = usize::from(rest.height);
    put(frame, rest, rows(app, context, columns, fit));
}

/// The rows that fit, from the place that is looked at, or up to the end.
pub fn rows(app: &App, context: &Context, columns: usize, fit: usize) -> Vec<Line<'static>> {
    let (lines, top) = app.log_lines();
    let pieces = |line: &LogLine| pieces(&line.text, columns);
    let rows: Vec<String> = match top {
        Some(top) => lines.iter().skip(top).flat_map(pieces).take(fit).collect(),
        None => {
            let last = lines
                .iter()
                .rev()
                .flat_map(|line| pieces(line).into_iter().rev());
            let mut rows: Vec<String> = last.take(fit).collect();
            rows.reverse();
            rows
        }
    };
    let tone = match app.source {
        Source::Stdout => Tone::Normal,
        Source::Stderr => Tone::Dim,
    };
    rows.into_iter()
        .map(|row| context.line(tone, row))
        .collect()
}

/// What output it is and where in it one looks.
pub fn place(app: &App, log: &LogView) -> String {
    let stream = match app.source {
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    };
    let size = log.window.size;
    let percent = |at: u64| at as f64 / size.max(1) as f64 * 100.0;
    let place = match app.place {
        LogPlace::Follow => "following".to_owned(),
        LogPlace::At(at) => format!("at {:.0}% (G: follow)", percent(at)),
        LogPlace::Share(share) => format!("going to {}%", share / 10),
    };
    let size = show_size(size);
    format!("iteration {} · {stream} · {size} · {place}", log.iteration)
}
