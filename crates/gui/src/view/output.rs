//! What the agent printed: the visible lines of a window into the log.

use descartes_agents::reader::Source;
use descartes_text::units::show_size;
use iced::widget::text::{LineHeight, Wrapping};
use iced::widget::{Column, column, container, row, space, text};
use iced::{Center, Element, Fill, Pixels};

use super::parts;
use crate::font;
use crate::message::{Button, Message};
use crate::model::KnownLoop;
use crate::model::log::{Follow, LogView};
use crate::model::{Area, Chosen, Model};
use crate::style::{self, Choice, Tone};

/// Height of a line.
pub const LINE: f32 = 18.0;

pub fn view<'a>(
    _model: &'a Model,
    chosen: &'a Chosen,
    stands: &'a KnownLoop,
) -> Element<'a, Message> {
    let log = &chosen.log;
    let lines = log.visible().iter().map(|line| {
        let words = text(&line.text)
            .size(12)
            .font(font::MONO)
            .line_height(LineHeight::Absolute(Pixels(LINE)))
            .wrapping(Wrapping::None);
        container(words).height(LINE).into()
    });
    let body = parts::long(Area::Log, Column::with_children(lines), log.thumb(), LINE);
    let body: Element<'_, Message> = match &log.trouble {
        Some(trouble) => parts::trouble(trouble),
        None if log.window.lines.is_empty() => {
            let quiet = parts::small("No output", Tone::Dim);
            parts::long(Area::Log, quiet, (0.0, 1.0), LINE)
        }
        None => body,
    };
    let inside = container(body)
        .padding(iced::padding::all(10).right(4))
        .height(Fill);
    let page = column![
        container(head(log, stands)).padding([6, 12]),
        parts::level(),
        inside
    ];
    container(page)
        .height(Fill)
        .width(Fill)
        .style(style::card)
        .into()
}

fn head<'a>(log: &LogView, stands: &KnownLoop) -> Element<'a, Message> {
    let title = match log.iteration {
        Some(iteration) => format!("Output of iteration {iteration}"),
        None if stands.state.run().is_some() => "Live output".to_owned(),
        None => "Last output".to_owned(),
    };
    let stream = |label: &'a str, source: Source| {
        let style = style::tab(Choice::when(log.source == source));
        let button = parts::small_action(label).style(style);
        parts::does(button, Message::Stream(source))
    };
    let place = match log.follow {
        Follow::Tail => String::new(),
        Follow::Held => format!("at {:.0} %  of", log.thumb().0 * 100.0),
    };
    let back = (log.iteration.is_some() || log.follow == Follow::Held)
        .then(|| parts::does(parts::small_action("Follow"), Message::Newest));
    let folder = parts::small_action("Open folder").style(style::tab(Choice::Other));
    let size = format!("{place} {}", show_size(log.window.size));
    row![
        parts::heading(title),
        stream("stdout", Source::Stdout),
        stream("stderr", Source::Stderr),
        space::horizontal(),
        parts::small(size, Tone::Dim),
    ]
    .push(back)
    .push(parts::does(folder, Message::Press(Button::OpenFolder)))
    .spacing(8)
    .align_y(Center)
    .into()
}
