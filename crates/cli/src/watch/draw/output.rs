//! What the agent prints: the end of it as it grows, or any place in it.

use descartes_agents::reader::Source;
use descartes_text::units::show_size;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{Context, flat, pieces, put, toned};
use crate::style::Tone;
use crate::watch::app::App;
use crate::watch::detail::{LogPlace, LogView};

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) {
    let theme = &context.theme;
    let columns = usize::from(area.width);
    let rest = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    let log = app.detail.as_ref().and_then(|detail| detail.log.as_ref());
    let head = match log {
        Some(Ok(log)) => place(app, log),
        Some(Err(error)) => format!("! {error}"),
        None => "no output yet".to_owned(),
    };
    let tone = if matches!(log, Some(Err(_))) {
        Tone::Warn
    } else {
        Tone::Dim
    };
    let head = Line::from(toned(theme, tone, flat(&head, columns)));
    put(frame, Rect { height: 1, ..area }, vec![head]);
    put(
        frame,
        rest,
        rows(app, context, columns, usize::from(rest.height)),
    );
}

/// The rows that fit, from the place that is looked at, or up to the end.
pub fn rows(app: &App, context: &Context, columns: usize, fit: usize) -> Vec<Line<'static>> {
    let (lines, top) = app.log_lines();
    let mut rows: Vec<String> = Vec::new();
    match top {
        Some(top) => {
            for line in lines.iter().skip(top) {
                rows.extend(pieces(&line.text, columns));
                if rows.len() >= fit {
                    break;
                }
            }
            rows.truncate(fit);
        }
        None => {
            for line in lines.iter().rev() {
                rows.extend(pieces(&line.text, columns).into_iter().rev());
                if rows.len() >= fit {
                    break;
                }
            }
            rows.truncate(fit);
            rows.reverse();
        }
    }
    let tone = match app.source {
        Source::Stdout => Tone::Normal,
        Source::Stderr => Tone::Dim,
    };
    let rows = rows.into_iter();
    rows.map(|row| Line::from(toned(&context.theme, tone, row)))
        .collect()
}

/// What output it is and where in it one looks.
pub fn place(app: &App, log: &LogView) -> String {
    let stream = match app.source {
        Source::Stdout => "stdout",
        Source::Stderr => "stderr",
    };
    let size = log.window.size;
    let place = match app.place {
        LogPlace::Follow => "following".to_owned(),
        LogPlace::At(at) => format!("at {} (G: follow)", percent(at, size)),
        LogPlace::Share(share) => format!("going to {}%", share / 10),
    };
    let size = show_size(size);
    format!("iteration {} · {stream} · {size} · {place}", log.iteration)
}

fn percent(at: u64, size: u64) -> String {
    let share = if size == 0 {
        0.0
    } else {
        at as f64 / size as f64
    };
    format!("{:.0}%", share * 100.0)
}
