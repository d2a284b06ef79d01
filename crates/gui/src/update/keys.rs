//! Keys. Each has a button, and `?` lists them.

use descartes_agents::reader::Source;
use iced::keyboard::key::Named;
use iced::keyboard::{Key, Modifiers};

use super::{choose, page, press};
use crate::message::{Button, Effect, Message};
use crate::model::{Area, Dialog, Model, Page, Tab};

/// Points by which a page is scrolled at once: less than the smallest window shows.
const SCREEN: f32 = 300.0;

/// Every key and what it does, as the help shows it.
pub const KEYS: [(&str, &str); 21] = [
    ("j, k or Down, Up", "next or previous loop"),
    ("n", "start a new loop"),
    ("p", "pause or unpause"),
    ("g", "resume a loop that is not running"),
    ("c", "cancel (asks first)"),
    ("s", "send a note to the next iteration"),
    ("r", "retry now instead of waiting"),
    ("l", "view logs"),
    ("1, 2, 3, 4", "overview, output, waves, pictures"),
    ("PgUp, PgDn, Home, End", "scroll the output, or the page"),
    ("with Shift", "scroll the history"),
    ("[ and ]", "output of the previous or next iteration"),
    ("e", "switch between stdout and stderr"),
    ("o", "open the log directory"),
    ("t", "switch between light and dark"),
    ("Tab, Shift+Tab", "next or previous field or button"),
    ("Enter, Space", "press the focused button"),
    ("y, n", "answer a question"),
    ("Ctrl+Enter", "start the new loop"),
    ("Esc", "close, go back, dismiss a message"),
    ("? and Ctrl+Q", "show these keys; close the window"),
];

/// A key that no field wanted.
pub fn pressed(model: &mut Model, key: &Key, modifiers: Modifiers) -> Vec<Effect> {
    if modifiers.control() {
        return match key.as_ref() {
            Key::Character("q" | "w") => vec![Effect::Exit],
            Key::Named(Named::Enter) => press(model, Button::Start),
            _ => Vec::new(),
        };
    }
    if modifiers.alt() || modifiers.logo() {
        return Vec::new();
    }
    match key.as_ref() {
        Key::Named(Named::Escape) => return escape(model),
        Key::Named(Named::Tab) if modifiers.shift() => return vec![Effect::FocusPrevious],
        Key::Named(Named::Tab) => return vec![Effect::FocusNext],
        Key::Character("?") => return press(model, Button::Help),
        _ => {}
    }
    match model.dialog {
        Some(Dialog::Cancel) => match key.as_ref() {
            Key::Character("y") => press(model, Button::ReallyCancel),
            Key::Character("n") => press(model, Button::KeepRunning),
            _ => Vec::new(),
        },
        Some(Dialog::Help) => Vec::new(),
        None if modifiers.shift() && model.page == Page::Loop => {
            on_history(model, key).unwrap_or_else(|| on_page(model, key))
        }
        None if model.page == Page::Loop => on_page(model, key),
        None => scroll(model.page, key),
    }
}

fn escape(model: &mut Model) -> Vec<Effect> {
    if model.dialog.take().is_some() {
        return Vec::new();
    }
    if model.page == Page::NewLoop {
        return press(model, Button::Back);
    }
    if model.notice.take().is_some() {
        return Vec::new();
    }
    vec![Effect::Blur]
}

fn on_page(model: &mut Model, key: &Key) -> Vec<Effect> {
    match key.as_ref() {
        Key::Character("j") | Key::Named(Named::ArrowDown) => step(model, 1),
        Key::Character("k") | Key::Named(Named::ArrowUp) => step(model, -1),
        Key::Character("n") => press(model, Button::NewLoop),
        Key::Character("p") => {
            let paused = model
                .chosen
                .as_ref()
                .is_some_and(|chosen| chosen.is_paused());
            press(
                model,
                if paused {
                    Button::Unpause
                } else {
                    Button::Pause
                },
            )
        }
        Key::Character("g") => press(model, Button::Resume),
        Key::Character("c") => press(model, Button::Cancel),
        Key::Character("s") => vec![Effect::Focus("note")],
        Key::Character("r") => press(model, Button::RetryNow),
        Key::Character("l") => press(model, Button::ViewLogs),
        Key::Character("o") => press(model, Button::OpenFolder),
        Key::Character("t") => press(model, Button::Theme),
        Key::Character("1") => page::update(model, Message::Tab(Tab::Overview)),
        Key::Character("2") => page::update(model, Message::Tab(Tab::Output)),
        Key::Character("3") => waves(model),
        Key::Character("4") => page::update(model, Message::Tab(Tab::Pictures)),
        _ => on_output(model, key),
    }
}

/// The keys of the output, with Shift: the same for the history.
fn on_history(model: &mut Model, key: &Key) -> Option<Vec<Effect>> {
    let page = model.chosen.as_ref()?.table.list.fits.floor().max(2.0) - 1.0;
    let message = match key.as_ref() {
        Key::Named(Named::PageUp) => Message::Wheel(Area::History, -page),
        Key::Named(Named::PageDown) => Message::Wheel(Area::History, page),
        Key::Named(Named::Home) => Message::Drag(Area::History, 0.0),
        Key::Named(Named::End) => Message::Drag(Area::History, 1.0),
        _ => return None,
    };
    Some(page::update(model, message))
}

/// A page that is scrolled as a whole.
fn scroll(page: Page, key: &Key) -> Vec<Effect> {
    let by = match key.as_ref() {
        Key::Named(Named::PageUp) => -SCREEN,
        Key::Named(Named::PageDown) => SCREEN,
        Key::Named(Named::Home) => -f32::from(u16::MAX),
        Key::Named(Named::End) => f32::from(u16::MAX),
        _ => return Vec::new(),
    };
    vec![Effect::Scroll(page, by)]
}

fn on_output(model: &mut Model, key: &Key) -> Vec<Effect> {
    let Some(chosen) = &mut model.chosen else {
        return Vec::new();
    };
    if matches!(chosen.tab, Tab::Waves | Tab::Pictures) {
        return scroll(model.page, key);
    }
    let page = chosen.log.fits.floor().max(2.0) - 1.0;
    match key.as_ref() {
        Key::Named(Named::PageUp) => page::update(model, Message::Wheel(Area::Log, -page)),
        Key::Named(Named::PageDown) => page::update(model, Message::Wheel(Area::Log, page)),
        Key::Named(Named::Home) => {
            let read = chosen.log.rewind();
            read.into_iter().map(Effect::ReadLog).collect()
        }
        Key::Named(Named::End) => vec![Effect::ReadLog(chosen.log.end())],
        Key::Character("[") => iteration(model, -1),
        Key::Character("]") => iteration(model, 1),
        Key::Character("e") => {
            let source = match chosen.log.source {
                Source::Stdout => Source::Stderr,
                Source::Stderr => Source::Stdout,
            };
            page::update(model, Message::Stream(source))
        }
        _ => Vec::new(),
    }
}

/// The output of another iteration; past the last one, the newest as it comes.
fn iteration(model: &mut Model, by: i64) -> Vec<Effect> {
    let Some(chosen) = &model.chosen else {
        return Vec::new();
    };
    let Some(last) = chosen.head().map(|head| i64::from(head.iteration)) else {
        return Vec::new();
    };
    let now = chosen.log.iteration.map_or(last, i64::from);
    match u32::try_from(now + by) {
        Ok(wanted) if wanted >= 1 && i64::from(wanted) <= last => {
            page::update(model, Message::Row(wanted))
        }
        Ok(wanted) if wanted >= 1 => page::update(model, Message::Newest),
        _ => Vec::new(),
    }
}

fn waves(model: &mut Model) -> Vec<Effect> {
    let tasks = model
        .stands()
        .is_some_and(|stands| stands.state.tasks.is_some());
    match tasks {
        true => page::update(model, Message::Tab(Tab::Waves)),
        false => Vec::new(),
    }
}

/// The loop below or above the chosen one.
fn step(model: &mut Model, by: isize) -> Vec<Effect> {
    let id = model.chosen.as_ref().map(|chosen| &chosen.id);
    let place = model.fleet.iter().position(|brief| Some(&brief.id) == id);
    let next = match place {
        Some(place) => place.saturating_add_signed(by),
        None => 0,
    };
    match model.fleet.get(next).map(|brief| brief.id.clone()) {
        Some(id) => choose(model, id),
        None => Vec::new(),
    }
}
