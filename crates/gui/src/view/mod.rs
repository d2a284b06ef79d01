//! What is seen. Nothing is decided here.

mod dialog;
pub mod drawn;
mod form;
mod header;
pub mod history;
pub mod output;
mod parts;
pub mod pictures;
pub mod reach;
pub mod shown;
pub mod sidebar;
mod waves;
pub mod words;

use iced::widget::{column, container, row, stack, text};
use iced::{Element, Fill};

use crate::message::Message;
use crate::model::{Chosen, Model, Page, Tab};
use crate::style::{self, Tone};

/// The whole window.
pub fn view(model: &Model) -> Element<'_, Message> {
    let right = match (&model.chosen, model.page) {
        (_, Page::NewLoop) => under_notice(model, form::view(model)),
        (Some(chosen), Page::Loop) => page(model, chosen),
        (None, Page::Loop) => under_notice(model, welcome(model)),
    };
    let right = container(right).width(Fill);
    let window = row![sidebar::view(model), parts::upright(), right];
    let window = container(window).width(Fill).height(Fill);
    let dialog = model.dialog.map(|open| dialog::view(model, open));
    stack![reach::ground(window, model.dialog)]
        .push(dialog)
        .into()
}

fn under_notice<'a>(model: &'a Model, page: Element<'a, Message>) -> Element<'a, Message> {
    let notice = model.notice.as_ref().map(parts::notice);
    let notice = notice.map(|notice| container(notice).padding([12, 16]));
    column![parts::slot(notice), page].into()
}

fn welcome(model: &Model) -> Element<'_, Message> {
    let (title, advice) = match model.listed {
        false => ("", ""),
        true => (
            "No loops yet",
            "Start one with New loop, or in a terminal: descartes demo",
        ),
    };
    let words = column![
        text(title).size(20).font(crate::font::STRONG),
        text(advice).size(13).style(style::ink(Tone::Dim)),
    ];
    container(words.spacing(8))
        .padding(32)
        .width(Fill)
        .height(Fill)
        .into()
}

fn page<'a>(model: &'a Model, chosen: &'a Chosen) -> Element<'a, Message> {
    let body: Element<'a, Message> = match (&chosen.stands, chosen.tab) {
        (None, _) => container(text("")).height(Fill).into(),
        (Some(stands), Tab::Overview) => column![
            history::view(model, chosen, stands),
            output::view(model, chosen, stands)
        ]
        .spacing(12)
        .height(Fill)
        .into(),
        (Some(stands), Tab::Output) => output::view(model, chosen, stands),
        (Some(stands), Tab::Waves) => waves::view(model, stands),
        (Some(stands), Tab::Pictures) => pictures::view(model, chosen, stands),
    };
    let trouble = chosen
        .trouble
        .as_ref()
        .map(|trouble| parts::banner(Tone::Bad, trouble.clone()));
    let notice = model.notice.as_ref().map(parts::notice);
    // Below the buttons, which stay where they are when a line comes.
    let line = |line| container(line).padding(iced::padding::top(12));
    column![column![
        header::view(model, chosen),
        parts::slot(notice.map(line)),
        parts::slot(trouble.map(line)),
    ]]
    .push(body)
    .push(header::note(chosen))
    .spacing(12)
    .padding(16)
    .height(Fill)
    .into()
}
