//! The form that starts a loop.

use iced::widget::text::Wrapping;
use iced::widget::{
    Row, button, column, container, row, scrollable, space, text, text_editor, text_input,
};
use iced::{Center, Element, Fill};

use super::parts;
use crate::font;
use crate::message::{Button, Message};
use crate::model::form::{Field, Permissions};
use crate::model::{Agents, Model, Page};
use crate::style::{self, Choice, Tone};

pub fn view(model: &Model) -> Element<'_, Message> {
    let form = &model.form;
    let prompt = editor(
        &form.prompt,
        Field::Prompt,
        "What should the agent do?",
        110.0,
        Message::Prompt,
    );
    let gates = editor(
        &form.gates,
        Field::Gates,
        "Commands that must succeed, one per line, e.g. cargo test",
        64.0,
        Message::Gates,
    );
    let field = |field, label, hint| labelled(model, field, label, line(model, field, hint));
    let agent = column![line(model, Field::Agent, "claude"), agents(model)].spacing(6);
    let file_hint = "PROMPT.md, read again at every iteration";
    let fields = column![
        text("New loop").size(22).font(font::STRONG),
        labelled(model, Field::Agent, "Agent", agent),
        field(Field::Folder, "Directory", "/home/…"),
        labelled(model, Field::Prompt, "Prompt", prompt),
        field(Field::PromptFile, "or prompt file", file_hint),
        labelled(model, Field::Gates, "Gates", gates),
        field(Field::Promise, "Promise", "none: the gates alone decide"),
        field(
            Field::MaxIterations,
            "Max iterations",
            "a number, or unlimited"
        ),
        field(Field::MaxDuration, "Max duration", "no limit; e.g. 8h"),
        field(Field::MaxCost, "Max cost", "no limit; e.g. $5"),
        field(Field::MaxTokens, "Max tokens", "no limit; e.g. 2M"),
        labelled(
            model,
            Field::Permissions,
            "Permissions",
            permissions(form.permissions)
        ),
        field(Field::Name, "Name", "generated"),
    ]
    .push(parts::slot(
        form.trouble
            .as_ref()
            .map(|trouble| parts::banner(Tone::Bad, trouble.clone())),
    ))
    .push(buttons(model))
    .spacing(10)
    .padding(iced::padding::all(20).right(28))
    .max_width(860);
    scrollable(fields)
        .id(Page::NewLoop.id())
        .style(style::scroll)
        .width(Fill)
        .height(Fill)
        .into()
}

fn labelled<'a>(
    model: &'a Model,
    field: Field,
    label: &'a str,
    widget: impl Into<Element<'a, Message>>,
) -> Element<'a, Message> {
    let error = model.form.errors.get(&field);
    let error = error.map(|error| text(error).size(12).style(style::ink(Tone::Bad)));
    row![
        container(text(label).size(13).style(style::ink(Tone::Dim)))
            .width(110)
            .padding(iced::padding::top(7)),
        column![widget.into()].push(error).spacing(3).width(Fill),
    ]
    .spacing(10)
    .into()
}

fn line<'a>(model: &'a Model, field: Field, hint: &'a str) -> Element<'a, Message> {
    text_input(hint, model.form.text(field))
        .id(field.id())
        .size(13)
        .padding([7, 10])
        .style(style::input)
        .on_input(move |text| Message::Field(field, text))
        .on_submit(Message::Press(Button::Start))
        .into()
}

fn editor<'a>(
    content: &'a text_editor::Content,
    field: Field,
    hint: &'a str,
    height: f32,
    message: fn(text_editor::Action) -> Message,
) -> Element<'a, Message> {
    text_editor(content)
        .id(field.id())
        .placeholder(hint)
        .size(13)
        .padding([7, 10])
        .height(height)
        .style(style::editor)
        .key_binding(|press| {
            use iced::keyboard::{Key, key::Named};
            // Fields without the cursor are asked, too.
            if !matches!(press.status, text_editor::Status::Focused { .. }) {
                return None;
            }
            match press.key.as_ref() {
                // Tab goes to the next field, as everywhere else.
                Key::Named(Named::Tab) => Some(text_editor::Binding::Custom(Message::Key(
                    press.key.clone(),
                    press.modifiers,
                ))),
                Key::Named(Named::Enter) if press.modifiers.control() => None,
                _ => text_editor::Binding::from_key_press(press),
            }
        })
        .on_action(message)
        .into()
}

fn agents(model: &Model) -> Element<'_, Message> {
    let known = match &model.agents {
        Agents::Unknown => return text("").into(),
        Agents::Looking => return parts::small("looking for agents …", Tone::Dim).into(),
        Agents::Known(known) if known.is_empty() => {
            let words = "no known agent is installed; any command works";
            return parts::small(words, Tone::Dim).into();
        }
        Agents::Known(known) => known,
    };
    let chips = known.iter().map(|agent| {
        let label = match &agent.version {
            Some(version) => format!("{} {version}", agent.name),
            None => agent.name.clone(),
        };
        let chosen = model.form.text(Field::Agent) == agent.command;
        chip(
            label,
            chosen,
            Message::Field(Field::Agent, agent.command.clone()),
        )
    });
    Row::with_children(chips).spacing(6).wrap().into()
}

fn permissions<'a>(chosen: Permissions) -> Element<'a, Message> {
    let chips = Permissions::ALL.into_iter().map(|permissions| {
        let label = permissions.label().to_owned();
        chip(
            label,
            permissions == chosen,
            Message::Permissions(permissions),
        )
    });
    Row::with_children(chips).spacing(6).into()
}

fn chip<'a>(label: String, chosen: impl Into<bool>, message: Message) -> Element<'a, Message> {
    let button = button(text(label).size(12).wrapping(Wrapping::None))
        .padding([4, 10])
        .style(style::chip(Choice::when(chosen)));
    parts::does(button, message)
}

fn buttons(model: &Model) -> Element<'_, Message> {
    let label = match model.form.starting {
        true => "Starting …",
        false => "Start",
    };
    let start = parts::action(label).style(style::main_button);
    row![
        space::horizontal(),
        parts::does(parts::action("Back"), Message::Press(Button::Back)),
        parts::does(start, parts::when(!model.form.starting, Button::Start)),
    ]
    .spacing(8)
    .align_y(Center)
    .into()
}
