//! The title bar, the first lines of a loop, and the tabs.

use std::path::Path;

use descartes_views::view::Status;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::{Context, bar, flat, pad, toned};
use crate::style::Tone;
use crate::view::width::width;
use crate::view::words;
use crate::watch::app::{App, Focus, Tab};
use crate::watch::detail::LoopView;
use crate::watch::list::Show;
use crate::watch::theme::Chosen;

/// The line at the very top.
pub fn title(app: &App, context: &Context, columns: u16) -> Line<'static> {
    let (running, waiting, over) = app.counts();
    let mut left = format!(" descartes  {running} running, {waiting} waiting, {over} over");
    if app.show == Show::Open {
        left.push_str(" (hidden)");
    }
    if !app.filter.is_empty() {
        left.push_str(&format!("  filter: {}", app.filter));
    }
    let right = "?: help ";
    let room = usize::from(columns).saturating_sub(width(right));
    let style = context.theme.accent().add_modifier(Modifier::REVERSED);
    Line::styled(format!("{}{right}", pad(&left, room)), style)
}

/// Name, status, bar, what was used; and what is wrong.
pub fn lines(app: &App, context: &Context, columns: u16) -> Vec<Line<'static>> {
    let columns = usize::from(columns);
    let mut lines = Vec::new();
    match app.view() {
        Some(view) => {
            lines.push(name(view, context, columns));
            lines.push(progress(view, context, columns));
            lines.push(used(view, context, columns));
            lines.push(asked(app, view, context, columns));
        }
        None if app.chosen.is_none() && app.listed => {
            let hint = match app.filter.is_empty() {
                true => "no loop yet: descartes loop start, or descartes demo",
                false => "no loop matches: / and Esc clear the filter",
            };
            lines.push(context.line(Tone::Dim, hint));
        }
        None => {
            let name = app.brief().map_or("", |brief| brief.name.as_str());
            lines.push(context.line(Tone::Strong, flat(name, columns)));
        }
    }
    let detail = app.detail.as_ref();
    let trouble = detail.and_then(|detail| detail.trouble.as_ref());
    for trouble in app.trouble.iter().chain(trouble) {
        for piece in super::pieces(&format!("! {}", flat(trouble, 400)), columns) {
            lines.push(context.line(Tone::Bad, piece));
        }
    }
    lines
}

fn name(view: &LoopView, context: &Context, columns: usize) -> Line<'static> {
    let status = &view.head.status;
    let mark = super::list::mark(Some(status), &context.theme);
    let room = columns.saturating_sub(width(status.label()) + 3);
    Line::from(vec![
        toned(
            &context.theme,
            Tone::Strong,
            pad(&flat(&view.head.title, room), room),
        ),
        Span::from(" "),
        mark,
        toned(&context.theme, status.tone(), status.label()),
    ])
}

fn progress(view: &LoopView, context: &Context, columns: usize) -> Line<'static> {
    let text = view.head.progress();
    let mut spans = vec![Span::from(text.clone())];
    if let Some(fraction) = view.head.fraction() {
        let room = columns.saturating_sub(width(&text) + 2).min(60);
        if room >= 4 {
            spans.push(Span::from("  "));
            spans.extend(bar(&context.theme, fraction, room));
        }
    }
    Line::from(spans)
}

fn used(view: &LoopView, context: &Context, columns: usize) -> Line<'static> {
    let head = &view.head;
    let theme = &context.theme;
    let elapsed = words::seconds(head.elapsed(context.now));
    // What nobody told takes no room.
    let used: String = words::spent(&head.spent)
        .iter()
        .map(|part| format!(" · {part}"))
        .collect();
    let mut text = format!("{elapsed}{used}");
    if let Some(wait) = head.waits(context.now) {
        return Line::from(vec![
            toned(theme, Tone::Warn, flat(&wait, columns)),
            toned(theme, Tone::Dim, format!(" · {text}")),
        ]);
    }
    match &head.status {
        Status::Interrupted => text.push_str(" · continue: descartes loop resume"),
        Status::Ended { reason } => text.push_str(&format!(" · {}", reason.sentence())),
        _ => text = format!("started {elapsed} ago{used}"),
    }
    Line::from(flat(&text, columns))
}

/// What was asked of whom, and where.
fn asked(app: &App, view: &LoopView, context: &Context, columns: usize) -> Line<'static> {
    let config = &view.state.config;
    let folder = app.brief().map(|brief| short(&brief.folder, context));
    let what = match &view.state.tasks {
        Some(tasks) => format!("tag {}", tasks.tag),
        None => config.prompt.clone(),
    };
    let parts = [words::command(config), what, folder.unwrap_or_default()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    context.line(Tone::Dim, flat(&parts.join(" · "), columns))
}

/// A folder as a person would type it.
fn short(folder: &Path, context: &Context) -> String {
    let below = context
        .home
        .as_ref()
        .and_then(|home| folder.strip_prefix(home).ok());
    match below {
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => folder.display().to_string(),
    }
}

/// The tabs, and where each stands.
pub fn tabs(app: &App, context: &Context, area: Rect) -> (Line<'static>, Vec<(Tab, u16, u16)>) {
    let (mut spans, mut spots, mut at) = (Vec::new(), Vec::new(), area.x);
    let short = area.width < 66;
    for (number, (tab, title)) in app.tabs().iter().enumerate() {
        let text = match short {
            true => format!("{} {title}", number + 1),
            false => format!(" {} {title} ", number + 1),
        };
        let columns = width(&text) as u16;
        let style = match (*tab == app.tab, app.focus) {
            (true, Focus::Pane) => context.theme.chosen(Chosen::Active),
            (true, Focus::List) => context.theme.chosen(Chosen::Passive),
            (false, _) => context.theme.tone(Tone::Dim),
        };
        spots.push((*tab, at, at + columns));
        spans.push(Span::styled(text, style));
        spans.push(Span::from(" "));
        at += columns + 1;
    }
    (Line::from(spans), spots)
}
