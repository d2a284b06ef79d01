//! What changes when something happens. No file, no clock, no thread: what is to be done
//! outside is handed out as [`Effect`]s.

mod form;
mod keys;
mod page;

pub use keys::KEYS;
pub use page::{can_cancel, can_pause};

use crate::message::{Button, Effect, Message};
use crate::model::{Area, Chosen, Dialog, Model, Notice, Page, Tab};

/// Takes what happened; tells what is to be done.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Tick(now) => model.now = now,
        Message::Fleet(Ok(fleet)) => return listed(model, fleet),
        Message::Fleet(Err(error)) => {
            model.listed = true;
            model.tell(Notice::Error(error), None);
        }
        Message::Choose(id) => return choose(model, id),
        Message::Key(key, modifiers) => return keys::pressed(model, &key, modifiers),
        Message::Press(button) => return press(model, button),
        Message::Close => return vec![Effect::Exit],
        Message::Wheel(Area::List, rows) => {
            let total = model.fleet.len();
            model.list.by(rows, total);
        }
        Message::Drag(Area::List, part) => {
            let total = model.fleet.len();
            model.list.to_part(part, total);
        }
        Message::Sized(Area::List, size) => {
            model.list.fits = size.height / crate::view::sidebar::ROW;
            let total = model.fleet.len();
            model.list.by(0.0, total);
        }
        Message::Agents(_)
        | Message::Started(_)
        | Message::Field(..)
        | Message::Prompt(_)
        | Message::Gates(_)
        | Message::Permissions(_) => return form::update(model, message),
        Message::Sent(id, answer) => return page::sent(model, &id, answer),
        other => return page::update(model, other),
    }
    Vec::new()
}

/// The order of the list: the newest first, and the loops of tasks under the loop they work
/// for.
fn listed(model: &mut Model, fleet: Vec<descartes_client::Brief>) -> Vec<Effect> {
    let known: std::collections::BTreeSet<String> =
        fleet.iter().map(|brief| brief.id.clone()).collect();
    let (children, tops): (Vec<_>, Vec<_>) = fleet
        .into_iter()
        .partition(|brief| brief.parent.as_ref().is_some_and(|id| known.contains(id)));
    let mut ordered = Vec::with_capacity(children.len() + tops.len());
    for top in tops {
        let id = top.id.clone();
        ordered.push(top);
        let of_top = children
            .iter()
            .filter(|child| child.parent.as_ref() == Some(&id));
        ordered.extend(of_top.cloned());
    }
    model.listed = true;
    model.fleet = ordered;
    model.list.by(0.0, model.fleet.len());
    let newest = model.fleet.first().map(|brief| brief.id.clone());
    match newest {
        Some(id) if model.chosen.is_none() && model.page == Page::Loop => choose(model, id),
        _ => Vec::new(),
    }
}

/// Shows a loop.
pub fn choose(model: &mut Model, id: String) -> Vec<Effect> {
    model.page = Page::Loop;
    model.dialog = None;
    if let Some(place) = model.fleet.iter().position(|brief| brief.id == id) {
        model.list.show(place, model.fleet.len());
    }
    if model.chosen.as_ref().is_some_and(|chosen| chosen.id == id) {
        return Vec::new();
    }
    // What came of a command to one loop is no news on the page of another.
    if model.notice_of.as_ref().is_some_and(|of| *of != id) {
        model.notice = None;
        model.notice_of = None;
    }
    let old = model.chosen.take();
    let mut chosen = Chosen::new(id);
    // What does not depend on the loop stays: sizes do not change when another is shown.
    if let Some(old) = old {
        chosen.table.list.fits = old.table.list.fits;
        chosen.log.fits = old.log.fits;
        chosen.width = old.width;
        if matches!(old.tab, Tab::Output | Tab::Pictures) {
            chosen.tab = old.tab;
        }
    }
    model.chosen = Some(chosen);
    Vec::new()
}

/// A button, by mouse or by key.
pub fn press(model: &mut Model, button: Button) -> Vec<Effect> {
    match button {
        Button::NewLoop | Button::Start | Button::Back => return form::press(model, button),
        Button::Theme => model.mode = crate::theme::other(model.mode),
        Button::Help => {
            model.dialog = match model.dialog {
                Some(Dialog::Help) => None,
                _ => Some(Dialog::Help),
            };
        }
        Button::KeepRunning => model.dialog = None,
        Button::Dismiss => model.notice = None,
        other => return page::press(model, other),
    }
    Vec::new()
}
