//! The screen, drawn from what is known. Nothing here changes anything.

mod gates;
mod graph;
mod head;
mod history;
mod list;
mod notes;
mod output;
mod over;
mod plots;
mod tasks;

use std::path::PathBuf;

use descartes_text::display::is_visible;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::app::{App, Dialog, Focus, Places, Tab};
use super::theme::Theme;
use crate::style::Tone;
use crate::view::width::{self, cut_end, one_line};

/// The smallest terminal that shows enough.
const LEAST: (u16, u16) = (40, 10);
/// From here on list and pane stand side by side.
const BESIDE: u16 = 70;
/// From here on the list is wide.
const WIDE: u16 = 120;

/// Where and when it is drawn.
#[derive(Clone, Debug)]
pub struct Context {
    pub theme: Theme,
    pub now: Timestamp,
    pub zone: TimeZone,
    /// The person's own folder.
    pub home: Option<PathBuf>,
}

/// Takes out whatever a terminal would obey or reorder, wherever it came from: the last look before
/// a screen is shown.
pub fn scrub(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().chars().any(|c| !is_visible(c)) {
            let clean: String = cell.symbol().chars().filter(|c| is_visible(*c)).collect();
            cell.set_symbol(match clean.as_str() {
                "" => " ",
                clean => clean,
            });
        }
    }
}

/// Draws everything; tells where it is.
pub fn draw(frame: &mut Frame<'_>, app: &App, context: &Context) -> Places {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "terminal too small: {}x{} (at least {}x{})",
            area.width, area.height, LEAST.0, LEAST.1
        );
        put(frame, area, vec![Line::from(text), Line::from("q: quit")]);
        return Places::default();
    }
    let mut places = Places::default();
    let [top, body, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    put(frame, top, vec![head::title(app, context, area.width)]);
    put(frame, bottom, vec![over::footer(app, context, area.width)]);
    let columns = match area.width {
        WIDE.. => 38,
        BESIDE.. => 21,
        _ if app.focus == Focus::List => area.width,
        _ => 0,
    };
    let wall = u16::from(columns > 0 && columns < area.width);
    let [side, wall, _, pane] = Layout::horizontal([
        Constraint::Length(columns),
        Constraint::Length(wall),
        Constraint::Length(wall),
        Constraint::Fill(1),
    ])
    .areas(body);
    if !side.is_empty() {
        places.list = columns;
        places.first = list::draw(frame, app, context, side);
    }
    let bar = Line::styled(context.theme.marks.wall, context.theme.tone(Tone::Dim));
    put(frame, wall, vec![bar; usize::from(wall.height)]);
    if !pane.is_empty() {
        pane_of(frame, app, context, pane, &mut places);
    }
    if app.dialog == Dialog::Help {
        over::help(frame, context, body);
    }
    places
}

fn pane_of(frame: &mut Frame<'_>, app: &App, context: &Context, area: Rect, places: &mut Places) {
    let lines = head::lines(app, context, area.width);
    let height = (lines.len() as u16).min(area.height);
    let [top, tabs, rest] = Layout::vertical([
        Constraint::Length(height),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(area);
    put(frame, top, lines);
    if app.view().is_none() || height + 2 >= area.height {
        return;
    }
    let (line, spots) = head::tabs(app, context, area);
    put(frame, tabs, vec![line]);
    places.tabs = (tabs.y, spots);
    places.page = usize::from(rest.height);
    match app.tab {
        Tab::History => {
            let (rows, place) = history::draw(frame, app, context, rest);
            places.rows = Some((rows.y, place));
            places.page = usize::from(rows.height);
        }
        Tab::Output => output::draw(frame, app, context, rest),
        Tab::Plots => plots::draw(frame, app, context, rest),
        Tab::Gates | Tab::Notes | Tab::Tasks => {
            let lines = match app.tab {
                Tab::Gates => gates::lines(app, context, rest.width),
                Tab::Notes => notes::lines(app, context, rest.width),
                _ => tasks::lines(app, context, rest.width),
            };
            places.last_scroll = scrolled(frame, app, context, rest, lines);
        }
    }
}

/// Lines that may be more than fit; how far they can be scrolled.
fn scrolled(
    frame: &mut Frame<'_>,
    app: &App,
    context: &Context,
    area: Rect,
    lines: Vec<Line<'static>>,
) -> usize {
    let (all, fit) = (lines.len(), usize::from(area.height));
    let last = all.saturating_sub(fit);
    let top = app.scroll.min(last);
    let mut shown: Vec<Line<'static>> = lines.into_iter().skip(top).take(fit).collect();
    if top + fit < all
        && let Some(last) = shown.last_mut()
    {
        let more = format!("… {} more lines", all - top - fit + 1);
        *last = Line::styled(more, context.theme.tone(Tone::Dim));
    }
    put(frame, area, shown);
    last
}

/// Puts lines into an area; what does not fit is cut.
impl Context {
    /// A line in one tone.
    fn line(&self, tone: Tone, text: impl Into<String>) -> Line<'static> {
        Line::from(toned(&self.theme, tone, text))
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

/// Text from a loop, in one line of at most `max` columns.
fn flat(text: &str, max: usize) -> String {
    cut_end(&one_line(text), max)
}

/// A text in exactly so many columns.
fn pad(text: &str, to: usize) -> String {
    width::pad(&cut_end(text, to), to)
}

/// The same, at their right end.
fn pad_left(text: &str, to: usize) -> String {
    width::pad_left(&cut_end(text, to), to)
}

/// A bar of `columns`, this full.
fn bar(theme: &Theme, fraction: f64, columns: usize) -> Vec<Span<'static>> {
    let full = (fraction.clamp(0.0, 1.0) * columns as f64).round() as usize;
    let full = full.min(columns);
    vec![
        Span::styled(theme.marks.filled.repeat(full), theme.accent()),
        Span::styled(
            theme.marks.empty.repeat(columns - full),
            theme.tone(Tone::Dim),
        ),
    ]
}

/// A piece of text in its tone.
fn toned(theme: &Theme, tone: Tone, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), theme.tone(tone))
}

/// Text over several lines, each at most `columns` wide.
fn wrapped(text: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let safe: String = line
            .chars()
            .map(|c| if c == '\t' { ' ' } else { c })
            .filter(|c| !c.is_control())
            .collect();
        lines.extend(
            pieces(&safe, columns)
                .into_iter()
                .map(|piece| Line::styled(piece, style)),
        );
    }
    lines
}

/// The same, some columns further right.
fn indented(text: &str, by: usize, columns: usize, style: Style) -> Vec<Line<'static>> {
    let mut lines = wrapped(text, columns.saturating_sub(by), style);
    for line in &mut lines {
        line.spans.insert(0, Span::from(" ".repeat(by)));
    }
    lines
}

/// A line in pieces of at most `columns`; an empty one is one empty piece.
fn pieces(line: &str, columns: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let wide = width::width(c.encode_utf8(&mut [0; 4]));
        if used + wide > columns.max(1) {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += wide;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests;
