//! The list at the left.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Context, flat, pad, put, toned};
use crate::style::Tone;
use crate::view::width::width;
use crate::watch::app::{App, Focus};
use crate::watch::list::{Depth, Entry, Kind, progress};
use crate::watch::theme::{Chosen, Theme};

/// The mark of a kind.
pub fn mark(kind: Kind, theme: &Theme) -> &'static str {
    let marks = &theme.marks;
    match kind {
        Kind::Running => marks.running,
        Kind::Judging => marks.judging,
        Kind::Waiting => marks.waiting,
        Kind::Paused => marks.paused,
        Kind::Ready => marks.ready,
        Kind::Interrupted | Kind::Broken => marks.broken,
        Kind::Done => marks.done,
        Kind::Failed => marks.failed,
    }
}

/// Draws it; tells the row of the first loop that is shown, and which one it is.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect) -> (u16, usize) {
    let fit = usize::from(area.height);
    let chosen = app.place_in_list();
    // The chosen one stays in the middle third, as far as there are others around it.
    let top = chosen
        .unwrap_or(0)
        .saturating_sub(fit / 2)
        .min(app.entries.len().saturating_sub(fit));
    let shown = app.entries.iter().enumerate().skip(top).take(fit);
    let lines: Vec<Line<'static>> = shown
        .map(|(place, entry)| {
            let line = line(entry, context, usize::from(area.width));
            match (Some(place) == chosen, app.focus) {
                (true, Focus::List) => line.style(context.theme.chosen(Chosen::Active)),
                (true, Focus::Pane) => line.style(context.theme.chosen(Chosen::Passive)),
                (false, _) => line,
            }
        })
        .collect();
    if lines.is_empty() {
        let text = if app.listed {
            "no loops"
        } else {
            "looking …"
        };
        put(
            frame,
            area,
            vec![Line::from(toned(&context.theme, Tone::Dim, text))],
        );
    } else {
        put(frame, area, lines);
    }
    (area.y, top)
}

fn line(entry: &Entry, context: &Context, columns: usize) -> Line<'static> {
    let theme = &context.theme;
    let kind = Kind::of(&entry.brief);
    let (lead, name) = match entry.depth {
        Depth::Top => ("", entry.brief.name.as_str()),
        // Children are called after their parents.
        Depth::Child => {
            let name = &entry.brief.name;
            (theme.marks.branch, name.rsplit('/').next().unwrap_or(name))
        }
    };
    let mut right = progress(&entry.brief);
    if entry.hidden > 0 {
        right = format!("+{} {right}", entry.hidden);
    }
    let fixed = width(lead) + 2 + 1 + width(&right) + 1;
    let room = columns.saturating_sub(fixed);
    Line::from(vec![
        toned(theme, Tone::Dim, lead),
        toned(theme, kind.tone(), format!("{} ", mark(kind, theme))),
        Span::from(pad(&flat(name, room), room)),
        Span::from(" "),
        toned(theme, Tone::Dim, format!("{right} ")),
    ])
}
