//! The list at the left.

use descartes_views::view::{Status, short_progress};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Context, flat, pad, put, toned};
use crate::style::Tone;
use crate::view::width::width;
use crate::watch::app::{App, Focus};
use crate::watch::list::{Depth, Entry, status};
use crate::watch::theme::{Chosen, Theme};

/// The mark of a loop that stands so; one that cannot be read is broken.
pub fn mark(status: Option<&Status>, theme: &Theme) -> Span<'static> {
    let marks = &theme.marks;
    let mark = match status {
        Some(Status::Running) => marks.running,
        Some(Status::Judging) => marks.judging,
        Some(Status::Waiting { .. }) => marks.waiting,
        Some(Status::Paused) => marks.paused,
        Some(Status::Ready) => marks.ready,
        Some(Status::Ended { reason }) if reason.is_success() => marks.done,
        Some(Status::Ended { .. }) => marks.failed,
        Some(Status::Interrupted) | None => marks.broken,
    };
    let tone = status.map_or(Tone::Bad, Status::tone);
    toned(theme, tone, format!("{mark} "))
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
    match (lines.is_empty(), app.listed) {
        (true, true) => put(frame, area, vec![context.line(Tone::Dim, "no loops")]),
        (true, false) => put(frame, area, vec![context.line(Tone::Dim, "looking …")]),
        (false, _) => put(frame, area, lines),
    }
    (area.y, top)
}

fn line(entry: &Entry, context: &Context, columns: usize) -> Line<'static> {
    let theme = &context.theme;
    let (lead, name) = match entry.depth {
        Depth::Top => ("", entry.brief.name.as_str()),
        // Children are called after their parents.
        Depth::Child => {
            let name = &entry.brief.name;
            (theme.marks.branch, name.rsplit('/').next().unwrap_or(name))
        }
    };
    let mut right = match &entry.brief.standing {
        Ok(brief) => short_progress(brief.iterations, brief.limit, brief.tasks).0,
        Err(_) => theme.marks.unknown.to_owned(),
    };
    if entry.hidden > 0 {
        right = format!("+{} {right}", entry.hidden);
    }
    let fixed = width(lead) + 2 + 1 + width(&right) + 1;
    let room = columns.saturating_sub(fixed);
    Line::from(vec![
        toned(theme, Tone::Dim, lead),
        mark(status(&entry.brief), theme),
        Span::from(pad(&flat(name, room), room)),
        Span::from(" "),
        toned(theme, Tone::Dim, format!("{right} ")),
    ])
}
