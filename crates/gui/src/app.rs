//! The model, the world outside, and iced, joined.

use std::time::Duration;

use iced::keyboard;
use iced::theme::{Base, Style};
use iced::widget::operation;
use iced::{Element, Event, Subscription, Task, Theme, event, time, window};
use jiff::Timestamp;

use crate::feed::{self, Desk};
use crate::message::{Effect, Message};
use crate::model::{Chosen, Model, Page, Tab};
use crate::update::update;
use crate::view::shown;

/// A window is drawn by then.
const DRAWN: Duration = Duration::from_millis(16);
/// Or by then, on a machine with too much to do.
const DRAWN_LATE: Duration = Duration::from_millis(90);

/// The window with its desk.
#[derive(Debug)]
pub struct App {
    /// What it knows.
    pub model: Model,
    desk: Desk,
    /// Which of two shades that look the same is behind everything.
    shade: Shade,
}

/// Only what differs from the frame before is drawn, and changed text is not always seen to
/// differ. A window whose ground has another colour is drawn as a whole; so it gets another,
/// by less than an eye or a screen can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shade {
    #[default]
    Even,
    Odd,
}

impl Shade {
    fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

impl App {
    /// A window over these loops.
    pub fn new(model: Model, desk: Desk) -> Self {
        Self {
            model,
            desk,
            shade: Shade::default(),
        }
    }

    /// Takes what happened, and sets going what is to be done.
    pub fn update(&mut self, message: Message) -> Task<Message> {
        // A clock that ticks is a few figures, drawn as such; pictures move with it.
        let pictures = |chosen: &Chosen| chosen.tab == Tab::Pictures;
        let still = matches!(message, Message::Tick(_))
            && !self.model.chosen.as_ref().is_some_and(pictures);
        if !still {
            self.shade = self.shade.other();
        }
        let effects = update(&mut self.model, message);
        let tasks = effects.into_iter().map(|effect| self.perform(effect));
        Task::batch(tasks.chain([flushed()]))
    }

    fn perform(&self, effect: Effect) -> Task<Message> {
        let desk = self.desk.clone();
        match effect {
            Effect::ReadHistory { id, from, count } => aside(move || {
                let read = feed::history(&desk, &id, from, count);
                Message::History(id, from, read)
            }),
            Effect::ReadLog(request) => aside(move || {
                let read = feed::log(&desk, &request);
                Message::Log(request, read)
            }),
            Effect::Send { id, command } => aside(move || {
                let answer = feed::send(&desk, &id, &command);
                Message::Sent(id, answer)
            }),
            Effect::FindAgents => aside(|| Message::Agents(feed::agents())),
            Effect::Start { words, folder } => {
                aside(move || Message::Started(feed::start(&words, &folder)))
            }
            Effect::OpenFolder(id) => aside(move || {
                let opened = feed::open_folder(&desk, &id);
                Message::Sent(id, opened)
            }),
            Effect::Focus(id) => operation::focus(id).chain(shown::focused()),
            Effect::FocusNext => operation::focus_next().chain(shown::focused()),
            Effect::FocusPrevious => operation::focus_previous().chain(shown::focused()),
            Effect::Scroll(page, y) => {
                operation::scroll_by(page.id(), operation::AbsoluteOffset { x: 0.0, y })
            }
            // No field has this name: the one that has the cursor gives it up.
            Effect::Blur => operation::focus("nothing"),
            Effect::Exit => iced::exit(),
        }
    }

    /// What is seen.
    pub fn view(&self) -> Element<'_, Message> {
        crate::view::view(&self.model)
    }

    /// What is listened to.
    pub fn subscription(&self) -> Subscription<Message> {
        let chosen = self
            .model
            .chosen
            .as_ref()
            .filter(|_| self.model.page == Page::Loop);
        let follow = chosen.map(|chosen| feed::follow(&self.desk, &chosen.id));
        let ticks = time::every(tick(&self.model)).map(|_| Message::Tick(Timestamp::now()));
        let keys = event::listen_with(heard);
        let all = [feed::fleet(&self.desk), ticks, keys];
        Subscription::batch(all.into_iter().chain(follow))
    }

    /// The title bar.
    pub fn title(&self) -> String {
        match self.model.stands() {
            Some(stands) => format!("{} – descartes", stands.state.name),
            None => "descartes".to_owned(),
        }
    }

    /// What is behind everything.
    pub fn style(&self, theme: &Theme) -> Style {
        let mut style = theme.base();
        style.background_color.b += match self.shade {
            Shade::Even => 0.0,
            Shade::Odd => 1e-4,
        };
        style
    }

    /// Light or dark.
    pub fn theme(&self) -> Theme {
        self.model.mode.theme()
    }
}

/// A clock that nobody reads need not tick: seconds matter only while something is under way.
fn tick(model: &Model) -> Duration {
    let busy = model
        .chosen
        .as_ref()
        .is_some_and(|chosen| !chosen.is_over());
    match busy && model.page == Page::Loop {
        true => Duration::from_secs(1),
        false => Duration::from_secs(20),
    }
}

/// Keys that no field took, and the wish to close.
fn heard(event: Event, status: event::Status, _window: window::Id) -> Option<Message> {
    match (event, status) {
        (
            Event::Keyboard(keyboard::Event::KeyPressed {
                modified_key,
                modifiers,
                ..
            }),
            event::Status::Ignored,
        ) => Some(Message::Key(modified_key, modifiers)),
        // A field keeps Escape, Tab and Ctrl+Enter to itself; here they mean something.
        (
            Event::Keyboard(keyboard::Event::KeyPressed {
                key: key @ keyboard::Key::Named(keyboard::key::Named::Enter),
                modifiers,
                ..
            }),
            event::Status::Captured,
        ) if modifiers.control() => Some(Message::Key(key, modifiers)),
        (Event::Window(window::Event::CloseRequested), _) => Some(Message::Close),
        _ => None,
    }
}

/// Where there is no graphics card, a drawn window stays in the buffer of the connection to the
/// display until something else is asked of it: the last change would be seen with the next
/// one. So the window's place is asked for, which sends everything on its way, once it is drawn.
fn flushed() -> Task<Message> {
    let place = || window::oldest().and_then(window::position).discard();
    let after = |wait| Task::future(tokio::time::sleep(wait)).then(move |()| place());
    Task::batch([after(DRAWN), after(DRAWN_LATE)])
}

/// Work on a thread of its own.
fn aside(work: impl FnOnce() -> Message + Send + 'static) -> Task<Message> {
    let (tx, rx) = iced::futures::channel::oneshot::channel();
    std::thread::spawn(move || {
        // The window may be gone by then.
        let _ = tx.send(work());
    });
    Task::future(rx).then(|done| match done {
        Ok(message) => Task::done(message),
        Err(_) => Task::none(),
    })
}
