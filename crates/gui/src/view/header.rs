//! The top of a loop's page: what it is, how it stands, and the ways to steer it.

use descartes_kernel::state::LoopState;
use descartes_views::view::{Head, Status, show_cost, show_tokens};
use descartes_views::words::seconds;
use iced::widget::text::Wrapping;
use iced::widget::{Row, button, column, container, progress_bar, row, space, text, text_input};
use iced::{Center, Element, Fill};

use super::{parts, words};
use crate::font;
use crate::message::{Button, Message};
use crate::model::KnownLoop;
use crate::model::{Chosen, Model, Tab};
use crate::style::{self, Choice, Tone};
use crate::update::{can_cancel, can_pause};

pub fn view<'a>(model: &'a Model, chosen: &'a Chosen) -> Element<'a, Message> {
    let Some(stands) = &chosen.stands else {
        let brief = model.fleet.iter().find(|brief| brief.id == chosen.id);
        let name = brief.map_or(&*chosen.id, |brief| &brief.name);
        return text(parts::cleaned(name))
            .size(22)
            .font(font::STRONG)
            .into();
    };
    let head = Head::of(&stands.state, stands.life);
    let card = column![title(chosen, &head), facts(model, stands, &head)]
        .push(bar(&head))
        .push(task(&stands.state))
        .spacing(9);
    let card = container(card).padding(14).width(Fill).style(style::card);
    let card = column![card]
        .push(waiting(model, &head))
        .push(end(&head))
        .spacing(10);
    column![card, tabs(chosen, &stands.state)]
        .spacing(10)
        .into()
}

fn title<'a>(chosen: &'a Chosen, head: &Head) -> Element<'a, Message> {
    let name = text(parts::cleaned(&head.title))
        .size(22)
        .font(font::STRONG)
        .wrapping(Wrapping::None);
    let status = parts::pill(head.status.label(), head.status.tone());
    row![
        container(name).clip(true),
        status,
        space::horizontal(),
        buttons(chosen)
    ]
    .spacing(12)
    .align_y(Center)
    .into()
}

fn buttons(chosen: &Chosen) -> Element<'_, Message> {
    let doing = parts::small(chosen.sending.unwrap_or_default(), Tone::Strong);
    let ready = chosen.sending.is_none();
    let (label, pause) = match (chosen.resume_flags(), chosen.is_paused()) {
        // What is given with it stands on it: a new limit is the person's to give.
        (Some(flags), _) => {
            let label = format!("Resume {flags}").trim_end().to_owned();
            (label, parts::when(ready, Button::Resume))
        }
        (None, true) if !chosen.is_over() => {
            let unpause = parts::when(ready, Button::Unpause);
            ("Unpause".to_owned(), unpause)
        }
        _ => {
            let can = ready && can_pause(chosen);
            ("Pause".to_owned(), parts::when(can, Button::Pause))
        }
    };
    let can = ready && can_cancel(chosen);
    let cancel = match can {
        true => parts::action("Cancel").style(style::danger_button),
        false => parts::action("Cancel"),
    };
    let logs = parts::action("View Logs");
    row![
        doing,
        parts::does(parts::action(label), pause),
        parts::does(cancel, parts::when(can, Button::Cancel)),
        parts::does(logs, Message::Press(Button::ViewLogs)),
    ]
    .spacing(8)
    .align_y(Center)
    .into()
}

fn facts<'a>(model: &Model, stands: &'a KnownLoop, head: &Head) -> Element<'a, Message> {
    let spent = &head.spent;
    let mut facts = vec![
        format!("started {}", words::ago(head.started_at, model.now)),
        format!("{} elapsed", seconds(head.elapsed(model.now))),
    ];
    if spent.tokens.is_some() || spent.cost_micros.is_some() {
        facts.push(format!("{} tokens", show_tokens(spent.tokens)));
        facts.push(show_cost(spent.cost()));
    }
    if let Some(folder) = &stands.state.config.working_directory {
        facts.push(parts::cleaned(&folder.to_string_lossy()));
    }
    container(parts::small(facts.join("   ·   "), Tone::Dim))
        .clip(true)
        .into()
}

/// A limit is no progress: the label says so. Without a limit there is no bar.
fn bar<'a>(head: &Head) -> Element<'a, Message> {
    let label = parts::small(head.progress(), Tone::Normal);
    match head.fraction() {
        None => label.into(),
        Some(part) => {
            let bar = progress_bar(0.0..=1.0, part as f32)
                .girth(8)
                .style(style::bar(head.status.tone()));
            row![label, bar].spacing(12).align_y(Center).into()
        }
    }
}

fn task(state: &LoopState) -> Element<'_, Message> {
    let config = &state.config;
    let command = text(config.command_line())
        .size(12)
        .font(font::MONO)
        .wrapping(Wrapping::None);
    let prompt = match &config.prompt_file {
        Some(file) => format!("prompt from {}", file.display()),
        None => words::one_line(&config.prompt, 300),
    };
    let prompt = match &state.tasks {
        Some(tasks) if prompt.is_empty() => format!("tasks of {}", tasks.tag),
        _ => prompt,
    };
    let line = row![container(command).max_width(360).clip(true)]
        .spacing(12)
        .align_y(Center);
    let line = line.push(
        container(parts::small(prompt, Tone::Dim))
            .width(Fill)
            .clip(true),
    );
    let gates: Vec<String> = config
        .verify
        .iter()
        .map(|gate| format!("gate  {gate}"))
        .collect();
    let gates = (!gates.is_empty()).then(|| {
        let words = text(words::one_line(&gates.join("     "), 600))
            .size(12)
            .font(font::MONO)
            .wrapping(Wrapping::None);
        container(words.style(style::ink(Tone::Dim)))
            .width(Fill)
            .clip(true)
    });
    column![line].push(gates).spacing(5).into()
}

fn waiting<'a>(model: &Model, head: &Head) -> Option<Element<'a, Message>> {
    let words = words::capitalised(&head.waits(model.now)?);
    let retry = parts::action("Retry now");
    let retry = parts::does(retry, Message::Press(Button::RetryNow));
    let line = row![
        text(words)
            .size(13)
            .style(style::ink(Tone::Warn))
            .width(Fill),
        retry
    ];
    let banner = container(line.spacing(12).align_y(Center))
        .padding([6, 12])
        .width(Fill);
    Some(banner.style(style::banner(Tone::Warn)).into())
}

/// Why it ended, where that takes more than a label.
fn end<'a>(head: &Head) -> Option<Element<'a, Message>> {
    let words = match &head.status {
        Status::Interrupted => "Not running: Resume continues where it stopped".to_owned(),
        status => status.end_sentence()?,
    };
    Some(parts::banner(head.status.tone(), words))
}

fn tabs<'a>(chosen: &Chosen, state: &LoopState) -> Element<'a, Message> {
    let all = [
        (Tab::Waves, "Waves"),
        (Tab::Overview, "Overview"),
        (Tab::Output, "Output"),
        (Tab::Pictures, "Pictures"),
    ];
    let shown = all
        .into_iter()
        .filter(|(tab, _)| *tab != Tab::Waves || state.tasks.is_some());
    let tab = |(tab, label): (Tab, &'a str)| {
        let button = button(text(label).size(13))
            .padding([5, 12])
            .style(style::tab(Choice::when(chosen.tab == tab)));
        parts::does(button, Message::Tab(tab))
    };
    Row::with_children(shown.map(tab)).spacing(4).into()
}

/// The line at the bottom: a note to the next iteration.
pub fn note(chosen: &Chosen) -> Option<Element<'_, Message>> {
    if chosen.stands.is_none() || chosen.is_over() {
        return None;
    }
    let field = text_input("Note for the next iteration …", &chosen.note)
        .id("note")
        .size(13)
        .padding([8, 10])
        .style(style::input)
        .on_input(Message::Note)
        .on_submit(Message::Press(Button::Say));
    let ready = !chosen.note.trim().is_empty() && chosen.sending.is_none();
    let say = parts::action("Send").padding([8, 16]);
    let say = parts::does(say, parts::when(ready, Button::Say));
    Some(row![field, say].spacing(8).into())
}
