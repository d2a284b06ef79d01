//! Waves and tasks of a task loop.

use descartes_kernel::tasks::TasksState;
use descartes_text::units::plural;
use descartes_views::tone::Cell;
use descartes_views::view::{TaskRow, blocked_tasks, tasks_at_work, unlanded, waves};
use iced::widget::{Column, column, container, progress_bar, row, scrollable, text};
use iced::{Center, Element, Fill};

use super::parts;
use crate::font;
use crate::message::Message;
use crate::model::KnownLoop;
use crate::model::{Model, Page};
use crate::style::{self, Tone};

pub fn view<'a>(model: &'a Model, stands: &'a KnownLoop) -> Element<'a, Message> {
    let Some(tasks) = &stands.state.tasks else {
        return text("").into();
    };
    let active = tasks_at_work(&stands.state, stands.life, model.now);
    let page = column![summary(tasks), all_waves(tasks), running(model, active)]
        .push(blocked(tasks))
        .push(landing(tasks))
        .spacing(12)
        .padding(iced::padding::right(12));
    scrollable(page)
        .id(Page::Loop.id())
        .style(style::scroll)
        .height(Fill)
        .width(Fill)
        .into()
}

fn card<'a>(content: impl Into<Element<'a, Message>>) -> Element<'a, Message> {
    container(content)
        .padding(14)
        .width(Fill)
        .style(style::card)
        .into()
}

fn summary<'a>(tasks: &TasksState) -> Element<'a, Message> {
    let (done, total) = tasks.count();
    let wave = match tasks.current_wave() {
        Some(wave) => format!("Wave {wave} of {}", tasks.waves),
        None => plural(u64::from(tasks.waves), "wave"),
    };
    row![
        text(wave).size(16).font(font::STRONG),
        text(format!("{done} of {} done", plural(total as u64, "task")))
            .size(13)
            .style(style::ink(Tone::Dim)),
    ]
    .spacing(14)
    .align_y(Center)
    .into()
}

fn all_waves<'a>(tasks: &TasksState) -> Element<'a, Message> {
    let rows = waves(tasks).into_iter().map(|wave| {
        let Cell { tone, text } = wave.label();
        let bar = progress_bar(0.0..=1.0, wave.fraction() as f32)
            .girth(8)
            .style(style::bar(tone));
        row![
            container(parts::small(format!("Wave {}", wave.wave), Tone::Normal)).width(64),
            bar,
            container(parts::small(text, tone)).width(190),
        ]
        .spacing(12)
        .align_y(Center)
        .into()
    });
    card(Column::with_children(rows).spacing(8))
}

fn running<'a>(model: &Model, active: Vec<TaskRow>) -> Element<'a, Message> {
    let title = match active.len() {
        0 | 1 => "Current task",
        _ => "Current tasks",
    };
    let lines: Column<'a, Message> = match active.is_empty() {
        true => column![parts::small("No task is running", Tone::Dim)],
        false => Column::with_children(active.into_iter().map(|task| task_line(model, task))),
    };
    card(column![parts::heading(title), lines.spacing(6)].spacing(8))
}

fn task_line<'a>(model: &Model, task: TaskRow) -> Element<'a, Message> {
    let open = own_loop(model, &task.id)
        .map(|id| parts::does(parts::small_action("Open"), Message::Choose(id)));
    let name = text(parts::cleaned(&task.name())).size(13);
    row![
        parts::pill(task.status.text, task.status.tone),
        name,
        parts::small(task.note, Tone::Dim),
    ]
    .push(open)
    .spacing(10)
    .align_y(Center)
    .into()
}

/// The loop in which a task of the chosen loop is worked on.
fn own_loop(model: &Model, task: &str) -> Option<String> {
    let parent = model.chosen.as_ref().map(|chosen| &chosen.id);
    let of_task = |name: &str| name.rsplit('/').next() == Some(task);
    let found = model
        .fleet
        .iter()
        .find(|brief| brief.parent.as_ref() == parent && of_task(&brief.name));
    found.map(|brief| brief.id.clone())
}

fn blocked<'a>(tasks: &TasksState) -> Option<Element<'a, Message>> {
    let line = |task: TaskRow| {
        let attempts = format!("after {}", plural(u64::from(task.attempts), "attempt"));
        let name = text(parts::cleaned(&task.name())).size(13);
        let head = row![name, parts::small(attempts, Tone::Dim)];
        let reason = text(task.note).size(12).style(style::ink(Tone::Bad));
        column![head.spacing(10).align_y(Center), reason]
            .spacing(2)
            .into()
    };
    let lines = Column::with_children(blocked_tasks(tasks).into_iter().map(line)).spacing(8);
    let card = || card(column![parts::heading("Blocked tasks"), lines].spacing(8));
    (!tasks.blocked.is_empty()).then(card)
}

fn landing<'a>(tasks: &TasksState) -> Option<Element<'a, Message>> {
    let words = format!("Not landed, {}", unlanded(tasks)?);
    Some(parts::banner(Tone::Warn, words))
}
