//! What became of each iteration: a table of which only the visible rows exist.

use descartes_views::tone::Cell;
use descartes_views::view::{Column, HistoryRow, Life};
use iced::widget::{button, column, container};
use iced::{Element, Fill, Length};
use jiff::Timestamp;

use super::{parts, words};
use crate::message::Message;
use crate::model::KnownLoop;
use crate::model::{Area, Chosen, Model};
use crate::style::{self, Choice, Tone};

/// Height of a row.
pub const ROW: f32 = 26.0;

const COLUMNS: [(Column, Length); 7] = [
    (Column::Number, Length::Fixed(64.0)),
    (Column::Duration, Length::Fixed(84.0)),
    (Column::Exit, Length::Fixed(44.0)),
    (Column::Preview, Length::FillPortion(3)),
    (Column::Gates, Length::FillPortion(1)),
    (Column::Tokens, Length::Fixed(64.0)),
    (Column::Cost, Length::Fixed(64.0)),
];

pub fn view<'a>(
    model: &'a Model,
    chosen: &'a Chosen,
    stands: &'a KnownLoop,
) -> Element<'a, Message> {
    let total = chosen.total();
    let heads = COLUMNS.iter().map(|(column, width)| {
        parts::cell(
            parts::small(words::capitalised(column.title()), Tone::Dim),
            *width,
        )
    });
    let heads = iced::widget::Row::with_children(heads).spacing(10);
    let visible = chosen.table.list.visible(total);
    let lines = visible.map(|place| line(model, chosen, stands, total - place));
    let body = parts::long(
        Area::History,
        iced::widget::Column::with_children(lines),
        chosen.table.list.thumb(total),
        ROW,
    );
    let body: Element<'_, Message> = match (&chosen.table.trouble, total) {
        (Some(trouble), _) => container(parts::trouble(trouble)).padding(10).into(),
        (None, 0) => container(parts::small("No iteration yet", Tone::Dim))
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
    stands: &'a KnownLoop,
    place: usize,
) -> Element<'a, Message> {
    let number = place as u64;
    let current = stands.story.current().filter(|row| row.run == number);
    let row = match &stands.state.tasks {
        Some(_) => stands.story.rows().get(place - 1),
        None => chosen.table.row(number).or(current),
    };
    let Some(row) = row else {
        return container(parts::small("…", Tone::Dim))
            .height(ROW)
            .padding([5, 12])
            .into();
    };
    let cells = COLUMNS.map(|(column, width)| {
        let Cell { tone, text } = cell(row, column, stands.life, model.now);
        parts::cell(parts::small(text, tone), width)
    });
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

fn cell(row: &HistoryRow, column: Column, life: Life, now: Timestamp) -> Cell {
    let cell = match column {
        Column::Preview => row.summary_or_result(life),
        column => row.cell(column, life, now),
    };
    let text = match (column, row.failed_gate()) {
        // There is room to say which.
        (Column::Gates, Some(gate)) => format!("{}: {}", cell.text, gate.command),
        _ => words::one_line(&cell.text, 200),
    };
    Cell { text, ..cell }
}
