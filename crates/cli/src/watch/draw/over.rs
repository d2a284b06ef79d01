//! What stands at the bottom and over everything else.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::{Context, pad, put, toned};
use crate::style::Tone;
use crate::view::width::{cut_end, cut_start, width};
use crate::watch::app::{App, Dialog, Focus, Tab};
use crate::watch::keys::HELP;

/// The last line: a question, what is typed, a message, or the keys that help here.
pub fn footer(app: &App, context: &Context, columns: u16) -> Line<'static> {
    let theme = &context.theme;
    let columns = usize::from(columns);
    let typing = |label: &str, text: &str, hint: &str| {
        let room = columns.saturating_sub(width(label) + width(hint) + 2);
        Line::from(vec![
            toned(theme, Tone::Strong, label.to_owned()),
            Span::from(cut_start(text, room)),
            Span::styled(" ", theme.chosen(crate::watch::theme::Chosen::Active)),
            toned(theme, Tone::Dim, format!(" {hint}")),
        ])
    };
    match &app.dialog {
        Dialog::Cancel { name, .. } => {
            let text = format!("cancel {name} and end everything it started? y/n");
            context.line(Tone::Warn, cut_end(&text, columns))
        }
        Dialog::Say { text, .. } => typing("say: ", text, "Enter: send, Esc: cancel"),
        Dialog::Filter => typing("filter: ", &app.filter, "Enter: apply, Esc: clear"),
        Dialog::None | Dialog::Help => match &app.message {
            Some(message) => {
                let text = cut_end(&crate::view::width::one_line(&message.text), columns);
                context.line(message.tone, text)
            }
            None => context.line(Tone::Dim, cut_end(&hints(app), columns)),
        },
    }
}

fn hints(app: &App) -> String {
    let here = match (app.focus, app.tab) {
        (Focus::List, _) => "↑↓ select  → view  / filter",
        (Focus::Pane, Tab::History) => "↑↓ select  Enter output  d diff",
        (Focus::Pane, Tab::Output) => "↑↓ scroll  G follow  e stderr  o pager",
        (Focus::Pane, _) => "↑↓ scroll  Tab next",
    };
    format!(" {here}  p pause  c cancel  s say  r retry  q quit")
}

pub fn help(frame: &mut Frame<'_>, context: &Context, body: Rect) {
    let theme = &context.theme;
    let wide = HELP.iter().map(|(_, does)| width(does)).max().unwrap_or(0) + 16;
    let area = Rect {
        x: body.x + (body.width.saturating_sub(wide as u16)) / 2,
        y: body.y + body.height.saturating_sub(HELP.len() as u16 + 2) / 2,
        width: (wide as u16).min(body.width),
        height: (HELP.len() as u16 + 2).min(body.height),
    };
    frame.render_widget(Clear, area);
    let columns = usize::from(area.width);
    let rule = theme.marks.floor.repeat(columns);
    let mut lines = vec![context.line(Tone::Dim, rule.clone())];
    lines.extend(HELP.iter().map(|(key, does)| {
        Line::from(vec![
            Span::from("  "),
            toned(theme, Tone::Strong, pad(key, 11)),
            Span::from(cut_end(does, columns.saturating_sub(14))),
        ])
    }));
    lines.push(context.line(Tone::Dim, rule));
    put(frame, area, lines);
}
