//! What happens in the form.

use crate::message::{Button, Effect, Message};
use crate::model::form::{Field, Form};
use crate::model::{Agents, Model, Notice, Page};

/// Takes what happened.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Agents(Ok(agents)) => {
            let form = &mut model.form;
            if let Some(first) = agents
                .first()
                .filter(|_| form.text(Field::Agent).is_empty())
            {
                form.set(Field::Agent, first.command.clone());
            }
            model.agents = Agents::Known(agents);
        }
        Message::Agents(Err(error)) => {
            model.agents = Agents::Known(Vec::new());
            model.tell(Notice::Error(error), None);
        }
        Message::Field(field, text) => model.form.set(field, text),
        Message::Prompt(action) => {
            model.form.errors.remove(&Field::Prompt);
            model.form.prompt.perform(action);
        }
        Message::Gates(action) => {
            model.form.errors.remove(&Field::Gates);
            model.form.gates.perform(action);
        }
        Message::Permissions(permissions) => {
            model.form.errors.remove(&Field::Permissions);
            model.form.permissions = permissions;
        }
        Message::Started(Ok(id)) => {
            model.form = Form::new(&model.here);
            model.notice = None;
            return super::choose(model, id);
        }
        Message::Started(Err(refused)) => {
            model.form.starting = false;
            match refused.field {
                Some(field) => {
                    model.form.errors.insert(field, refused.message);
                }
                None => model.form.trouble = Some(refused.message),
            }
        }
        _ => {}
    }
    Vec::new()
}

/// A button of the form.
pub fn press(model: &mut Model, button: Button) -> Vec<Effect> {
    match button {
        Button::NewLoop => {
            model.page = Page::NewLoop;
            model.dialog = None;
            let mut effects = vec![Effect::Focus(Field::Agent.id())];
            if model.agents == Agents::Unknown {
                model.agents = Agents::Looking;
                effects.push(Effect::FindAgents);
            }
            effects
        }
        Button::Back => {
            model.page = Page::Loop;
            vec![Effect::Blur]
        }
        Button::Start if model.page == Page::NewLoop && !model.form.starting => {
            match model.form.check() {
                Some((words, folder)) => {
                    model.form.starting = true;
                    vec![Effect::Start { words, folder }]
                }
                None => {
                    let first = model.form.errors.keys().next().copied();
                    first
                        .map(|field| Effect::Focus(field.id()))
                        .into_iter()
                        .collect()
                }
            }
        }
        _ => Vec::new(),
    }
}
