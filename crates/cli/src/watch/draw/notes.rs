//! Notes of the person, waits, and what else a person should know.

use descartes_kernel::event::WaitEnd;
use jiff::Timestamp;
use ratatui::text::Line;

use super::{Context, toned, wrapped};
use crate::style::Tone;
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
    let mut part = |title: &str, none: &str, items: Vec<(Tone, String)>| {
        lines.push(Line::from(toned(theme, Tone::Strong, title)));
        if items.is_empty() {
            lines.push(Line::from(toned(theme, Tone::Dim, format!("  {none}"))));
        }
        for (tone, text) in items {
            let text = crate::view::width::one_line(&text);
            lines.extend(wrapped(&format!("  {text}"), columns, theme.tone(tone)));
        }
    };
    let notes = view.notes.iter().map(|note| {
        let at = note.at.map_or_else(|| "earlier".to_owned(), clock);
        let (tone, given) = match note.given_to {
            None => (Tone::Warn, "waiting for the next prompt".to_owned()),
            Some(0) => (Tone::Normal, "delivered".to_owned()),
            Some(iteration) => (Tone::Normal, format!("given to iteration {iteration}")),
        };
        (tone, format!("{at}  {} ({given})", note.text))
    });
    part(
        "Notes",
        "none; press s to send the agent a note",
        notes.collect(),
    );
    let waits = view.waits.iter().map(|wait| {
        let (tone, end) = match &wait.ended {
            None => (Tone::Warn, format!("until {}", clock(wait.until))),
            Some((at, by)) => {
                let lasted = words::seconds(words::between(wait.since, *at));
                let how = match by {
                    WaitEnd::Elapsed => "",
                    WaitEnd::Retry => ", ended by you",
                    WaitEnd::Stop => ", ended by a stop",
                };
                (Tone::Normal, format!("for {lasted}{how}"))
            }
        };
        (tone, format!("{}  {} ({end})", clock(wait.since), wait.why))
    });
    part("Waits", "none", waits.collect());
    let remarks = view.remarks.iter();
    let remarks = remarks.map(|remark| {
        (
            Tone::Normal,
            format!("{}  {}", clock(remark.at), remark.text),
        )
    });
    part("Remarks", "none", remarks.collect());
    lines
}
