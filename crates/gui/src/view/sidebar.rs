//! All loops, at the left.

use descartes_client::{Brief, LoopBrief};
use descartes_views::view::short_progress;
use iced::widget::text::Wrapping;
use iced::widget::{Column, button, column, container, row, space, text};
use iced::{Center, Element, Fill};

use super::{parts, words};
use crate::font;
use crate::message::{Button, Message};
use crate::model::{Area, Model, Page};
use crate::style::{self, Choice, Tone};
use descartes_text::units::plural;

/// Height of a loop in the list.
pub const ROW: f32 = 52.0;

pub fn view(model: &Model) -> Element<'_, Message> {
    let new = button(text("New loop").size(13).width(Fill).align_x(Center))
        .padding([7, 12])
        .width(Fill)
        .style(style::main_button);
    let new = parts::does(new, Message::Press(Button::NewLoop));
    let head = row![
        text("descartes").size(17).font(font::STRONG),
        space::horizontal(),
        small_button("Theme", Button::Theme),
        small_button("Keys ?", Button::Help),
    ]
    .align_y(Center);
    let total = model.fleet.len();
    let visible = model.list.visible(total);
    let rows = visible
        .filter_map(|place| model.fleet.get(place))
        .map(|brief| item(model, brief));
    let list = parts::long(
        Area::List,
        Column::with_children(rows),
        model.list.thumb(total),
        ROW,
    );
    let count = plural(total as u64, "loop");
    let content = column![
        container(head).padding(iced::padding::left(4)),
        new,
        container(parts::small(count, Tone::Dim)).padding(iced::padding::left(4)),
        list,
    ];
    container(content.spacing(10))
        .padding([14, 10])
        .width(280)
        .height(Fill)
        .style(style::sidebar)
        .into()
}

fn small_button(label: &str, press: Button) -> Element<'_, Message> {
    let button = button(text(label).size(12))
        .padding([3, 7])
        .style(style::tab(Choice::Other));
    parts::does(button, Message::Press(press))
}

fn item<'a>(model: &'a Model, brief: &'a Brief) -> Element<'a, Message> {
    let chosen = model.page == Page::Loop
        && model
            .chosen
            .as_ref()
            .is_some_and(|chosen| chosen.id == brief.id);
    let (tone, label, progress) = match &brief.standing {
        Ok(LoopBrief {
            status,
            iterations,
            limit,
            tasks,
            ..
        }) => {
            let (progress, unit) = short_progress(*iterations, *limit, *tasks);
            (status.tone(), status.label(), progress + unit)
        }
        Err(_) => (Tone::Bad, "Unreadable", String::new()),
    };
    let name = match &brief.parent {
        // A task's loop is called after the loop it works for.
        Some(_) => brief.name.rsplit('/').next().unwrap_or(&brief.name),
        None => &brief.name,
    };
    let indent = if brief.parent.is_some() { 22 } else { 8 };
    let title = text(parts::cleaned(name))
        .size(13)
        .font(font::STRONG)
        .wrapping(Wrapping::None);
    let when = parts::small(words::ago(brief.started_at, model.now), Tone::Dim);
    let first = row![container(title).width(Fill).clip(true), when].spacing(6);
    let second = row![
        parts::small(label, tone),
        space::horizontal(),
        parts::small(progress, Tone::Dim)
    ];
    let body = row![
        container(parts::dot(tone)).padding(iced::padding::top(5)),
        column![first, second].spacing(3).width(Fill)
    ]
    .spacing(9);
    button(body)
        .padding(iced::padding::all(7).left(indent))
        .width(Fill)
        .height(ROW)
        .style(style::row_button(Choice::when(chosen)))
        .on_press(Message::Choose(brief.id.clone()))
        .into()
}
