//! Waves and tasks of a task loop.

use std::time::Duration;

use descartes_kernel::tasks::{Landing, TaskEntry, TasksState};
use descartes_plans::graph::TaskStatus;
use descartes_text::units::plural;
use descartes_views::view::{WaveRow, WaveStands, waves};
use iced::widget::{Column, button, column, container, progress_bar, row, scrollable, text};
use iced::{Center, Element, Fill};

use super::{parts, words};
use crate::font;
use crate::message::Message;
use crate::model::Stands;
use crate::model::{Model, Page};
use crate::style::{self, Tone};

pub fn view<'a>(model: &'a Model, stands: &'a Stands) -> Element<'a, Message> {
    let Some(tasks) = &stands.state.tasks else {
        return text("").into();
    };
    let page = column![summary(tasks), all_waves(tasks), running(model, tasks)]
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
            .style(style::ink(Tone::Muted)),
    ]
    .spacing(14)
    .align_y(Center)
    .into()
}

fn all_waves<'a>(tasks: &TasksState) -> Element<'a, Message> {
    let rows = waves(tasks).into_iter().map(|wave| {
        let tone = wave_tone(&wave);
        let bar = progress_bar(0.0..=1.0, wave.fraction() as f32)
            .girth(8)
            .style(style::bar(tone));
        row![
            container(parts::small(format!("Wave {}", wave.wave), Tone::Plain)).width(64),
            bar,
            container(parts::small(wave.label(), tone)).width(190),
        ]
        .spacing(12)
        .align_y(Center)
        .into()
    });
    card(Column::with_children(rows).spacing(8))
}

fn wave_tone(wave: &WaveRow) -> Tone {
    match wave.stands {
        WaveStands::Complete => Tone::Good,
        WaveStands::InProgress => Tone::Accent,
        WaveStands::Pending => Tone::Muted,
        WaveStands::Stuck => Tone::Bad,
    }
}

fn running<'a>(model: &Model, tasks: &'a TasksState) -> Element<'a, Message> {
    let mut lines: Vec<Element<'a, Message>> = Vec::new();
    for running in &tasks.running {
        let since = model.now.duration_since(running.since);
        let since = words::lasted(Duration::try_from(since).unwrap_or_default());
        let facts = format!("attempt {}, for {since}", running.attempt);
        if let Some(task) = tasks.tasks.get(&running.task) {
            let line = task_line(&running.task, task, facts);
            let look = own_loop(model, &running.task).map(|id| {
                let button = button(text("Look").size(12))
                    .padding([2, 8])
                    .style(style::plain_button);
                parts::does(button, Message::Choose(id))
            });
            lines.push(row![line].push(look).spacing(10).align_y(Center).into());
        }
    }
    if let Some(id) = &tasks.merging
        && let Some(task) = tasks.tasks.get(id)
    {
        lines.push(task_line(id, task, "being merged and checked".to_owned()));
    }
    if lines.is_empty() {
        lines.push(parts::small("No task is being worked on", Tone::Muted).into());
    }
    let title = match lines.len() {
        1 => "Current task",
        _ => "Current tasks",
    };
    card(
        column![
            parts::heading(title),
            Column::with_children(lines).spacing(6)
        ]
        .spacing(8),
    )
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

fn task_line<'a>(id: &'a str, task: &'a TaskEntry, facts: String) -> Element<'a, Message> {
    let tone = match task.status {
        TaskStatus::Done => Tone::Good,
        TaskStatus::Blocked | TaskStatus::Failed => Tone::Bad,
        TaskStatus::InProgress => Tone::Accent,
        _ => Tone::Muted,
    };
    let complexity = match task.complexity {
        0 => "complexity unknown".to_owned(),
        n => format!("complexity {n}"),
    };
    row![
        parts::pill(task.status.to_string(), tone),
        text(parts::cleaned(&format!("{id}  {}", task.title))).size(13),
        parts::small(complexity, Tone::Muted),
        parts::small(facts, Tone::Muted),
    ]
    .spacing(10)
    .align_y(Center)
    .into()
}

fn blocked<'a>(tasks: &'a TasksState) -> Option<Element<'a, Message>> {
    if tasks.blocked.is_empty() {
        return None;
    }
    let lines = tasks.blocked.iter().map(|task| {
        let attempts = format!("after {}", plural(u64::from(task.attempts), "attempt"));
        column![
            row![
                text(parts::cleaned(&format!("{}  {}", task.task_id, task.title))).size(13),
                parts::small(attempts, Tone::Muted)
            ]
            .spacing(10)
            .align_y(Center),
            text(&task.reason).size(12).style(style::ink(Tone::Bad)),
        ]
        .spacing(2)
        .into()
    });
    let lines = Column::with_children(lines).spacing(8);
    Some(card(
        column![parts::heading("Blocked tasks"), lines].spacing(8),
    ))
}

fn landing<'a>(tasks: &'a TasksState) -> Option<Element<'a, Message>> {
    match &tasks.landing {
        Some(Landing::Ready { branch, why, .. }) => {
            let words = format!("Ready to land on branch {branch}: {why}");
            Some(parts::banner(Tone::Warn, words))
        }
        _ => None,
    }
}
