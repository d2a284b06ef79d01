//! What stands above everything: a question, or the keys.

use iced::widget::{Column, center, column, container, opaque, row, space, text};
use iced::{Element, Fill};

use super::parts;
use crate::font;
use crate::message::{Button, Message};
use crate::model::{Dialog, Model};
use crate::style::{self, Tone};
use crate::update::KEYS;

/// The dialog over a veil.
pub fn view(model: &Model, open: Dialog) -> Element<'_, Message> {
    let content = match open {
        Dialog::Cancel => cancel(model),
        Dialog::Help => help(),
    };
    let card = container(content).padding(20).style(style::dialog);
    opaque(center(card).style(style::veil))
}

fn cancel(model: &Model) -> Element<'_, Message> {
    let name = model
        .stands()
        .map_or("this loop", |stands| &stands.state.name);
    let yes = parts::action("Cancel the loop").style(style::danger_button);
    let yes = parts::does(yes, Message::Press(Button::ReallyCancel));
    let no = parts::action("Keep running");
    let no = parts::does(no, Message::Press(Button::KeepRunning));
    column![
        text(format!("Cancel {name}?")).size(17).font(font::STRONG),
        text("The agent and every process it started are stopped. Changes to files are kept.")
            .size(13)
            .style(style::ink(Tone::Dim)),
        row![space::horizontal(), no, yes].spacing(8),
    ]
    .spacing(14)
    .width(420)
    .into()
}

fn help<'a>() -> Element<'a, Message> {
    let lines = KEYS.into_iter().map(|(keys, what)| {
        row![
            container(text(keys).size(12).font(font::MONO)).width(170),
            text(what).size(13).style(style::ink(Tone::Dim)),
        ]
        .into()
    });
    let close = parts::does(parts::action("Close"), Message::Press(Button::Help));
    column![
        text("Keys").size(17).font(font::STRONG),
        Column::with_children(lines).spacing(5),
        row![container("").width(Fill), close],
    ]
    .spacing(14)
    .width(480)
    .into()
}
