//! Notes of the person, waits, and what else a person should know.

use jiff::Timestamp;
use ratatui::text::Line;

use super::{Context, wrapped};
use crate::style::{Cell, Tone};
use crate::view::width::one_line;
use crate::view::words;
use crate::watch::app::App;

/// The lines, newest last in each part.
pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let Some(view) = app.view() else {
        return Vec::new();
    };
    let theme = &context.theme;
    let columns = usize::from(columns);
    let clock = |at: Timestamp| words::clock(at, context.now, &context.zone);
    let mut lines = Vec::new();
    let mut part = |title: &str, none: &str, items: Vec<(String, Cell)>| {
        lines.push(context.line(Tone::Strong, title));
        if items.is_empty() {
            lines.push(context.line(Tone::Dim, format!("  {none}")));
        }
        for (at, Cell { tone, text }) in items {
            let text = one_line(&format!("{at} {text}"));
            lines.extend(wrapped(&format!("  {text}"), columns, theme.tone(tone)));
        }
    };
    let notes = view.notes.iter().map(|note| {
        let at = note.at.map_or_else(|| "earlier".to_owned(), clock);
        (at, note.cell())
    });
    let none = "none; press s to send the agent a note";
    part("Notes", none, notes.collect());
    let waits = view.waits.iter();
    let waits = waits.map(|wait| (clock(wait.since), wait.cell(context.now, &context.zone)));
    part("Waits", "none", waits.collect());
    let remarks = view.remarks.iter();
    let remarks = remarks.map(|remark| (clock(remark.at), remark.text.clone().into()));
    part("Remarks", "none", remarks.collect());
    lines
}
