//! What became of each iteration: a table of which only the visible rows exist.

use std::time::Duration;

use descartes_views::view::{HistoryRow, show_cost, show_tokens};
use iced::widget::{Column, button, column, container};
use iced::{Element, Fill, Length};

use super::{parts, words};
use crate::message::Message;
use crate::model::Stands;
use crate::model::{Area, Chosen, Model};
use crate::style::{self, Choice, Tone};

/// Height of a row.
pub const ROW: f32 = 26.0;

const COLUMNS: [(&str, Length); 7] = [
    ("#", Length::Fixed(64.0)),
    ("Duration", Length::Fixed(84.0)),
    ("Exit", Length::Fixed(44.0)),
    ("Preview", Length::FillPortion(3)),
    ("Gates", Length::FillPortion(1)),
    ("Tokens", Length::Fixed(64.0)),
    ("Cost", Length::Fixed(64.0)),
];

pub fn view<'a>(model: &'a Model, chosen: &'a Chosen, stands: &'a Stands) -> Element<'a, Message> {
    let total = chosen.total();
    let heads = COLUMNS
        .iter()
        .map(|(name, width)| parts::cell(parts::small(*name, Tone::Muted), *width));
    let heads = iced::widget::Row::with_children(heads).spacing(10);
    let visible = chosen.table.list.visible(total);
    let lines = visible.map(|place| line(model, chosen, stands, total - place));
    let body = parts::long(
        Area::History,
        Column::with_children(lines),
        chosen.table.list.thumb(total),
        ROW,
    );
    let body: Element<'_, Message> = match (&chosen.table.trouble, total) {
        (Some(trouble), _) => container(parts::trouble(trouble)).padding(10).into(),
        (None, 0) => container(parts::small("No iteration yet", Tone::Muted))
            .padding(10)
            .into(),
        _ => body,
    };
    let table = column![
        container(heads).padding(iced::padding::all(12).vertical(7).right(22)),
        parts::level(),
        body
    ];
    container(table)
        .height(Fill)
        .width(Fill)
        .style(style::card)
        .into()
}

/// The row at a place from the oldest, from 1.
fn line<'a>(
    model: &Model,
    chosen: &'a Chosen,
    stands: &'a Stands,
    place: usize,
) -> Element<'a, Message> {
    let number = place as u64;
    let current = stands.story.current().filter(|row| row.run == number);
    let row = match &stands.state.tasks {
        Some(_) => stands.story.rows().get(place - 1),
        None => chosen.table.row(number).or(current),
    };
    let Some(row) = row else {
        return container(parts::small("…", Tone::Muted))
            .height(ROW)
            .padding([5, 12])
            .into();
    };
    let cells = cells(model, row, current.is_some());
    let cells = cells
        .into_iter()
        .zip(COLUMNS)
        .map(|((words, tone), (_, width))| parts::cell(parts::small(words, tone), width));
    let is_chosen = chosen.table.chosen == Some(row.iteration);
    button(iced::widget::Row::with_children(cells).spacing(10))
        .padding([5, 12])
        .height(ROW)
        .width(Fill)
        .style(style::row_button(Choice::when(is_chosen)))
        .on_press(match &row.task {
            // The output of a task lies with its own loop.
            Some((_, id)) => Message::Choose(id.clone()),
            None => Message::Row(row.iteration),
        })
        .into()
}

fn cells(model: &Model, row: &HistoryRow, is_current: bool) -> [(String, Tone); 7] {
    let duration = match is_current && row.ended_by.is_none() {
        true => Duration::try_from(model.now.duration_since(row.started_at)).unwrap_or_default(),
        false => Duration::from_millis(row.duration_ms),
    };
    let number = match &row.task {
        Some((task, _)) => format!("{task} · {}", row.iteration),
        None => row.iteration.to_string(),
    };
    let preview = match &row.error {
        Some(error) => (words::one_line(error, 200), Tone::Bad),
        None if is_current && row.preview.is_empty() => ("under way".to_owned(), Tone::Accent),
        None => match &row.near_miss {
            Some(near) => (words::one_line(&near.words(), 200), Tone::Plain),
            None => (words::one_line(&row.preview, 200), Tone::Plain),
        },
    };
    [
        (number, Tone::Plain),
        (words::lasted(duration), Tone::Plain),
        words::exit(row),
        preview,
        words::gates(row),
        (show_tokens(row.tokens), Tone::Plain),
        (show_cost(row.cost), Tone::Plain),
    ]
}
