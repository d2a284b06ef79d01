//! The model, the world outside, and iced, joined.

use std::time::Duration;

use iced::keyboard;
use iced::theme::{Base, Style};
use iced::widget::operation;
use iced::{Element, Event, Subscription, Task, Theme, event, time, window};
use jiff::Timestamp;

use crate::feed::{self, Desk};
use crate::message::{Effect, Followed, Message};
use crate::model::{Model, Page, Tab};
use crate::update::update;
use crate::view::drawn::Drawn;
use crate::view::{reach, shown};

/// The window with its desk.
#[derive(Debug)]
pub struct App {
    /// What it knows.
    pub model: Model,
    desk: Desk,
    /// Which of two shades that look the same is behind everything.
    /// Only what differs from the frame before is drawn, and changed text is not always seen to
    /// differ. A window whose ground has another colour is drawn as a whole; so it gets another,
    /// by less than an eye or a screen can tell.
    shade: bool,
    drawn: Drawn,
}

impl App {
    /// A window over these loops.
    pub fn new(model: Model, desk: Desk) -> Self {
        Self {
            model,
            desk,
            shade: false,
            drawn: Drawn::default(),
        }
    }

    /// Where there is no graphics card, a drawn window stays in the buffer of the connection to
    /// the display until something else is asked of it: the last change would be seen with the
    /// next one. So, whenever it is drawn, the window's place is asked for, which sends everything
    /// on its way. The question waits until the drawing is over: one thread does both.
    pub fn sent_off(&self) -> Task<Message> {
        let place = || window::oldest().and_then(window::position).discard();
        Task::stream(self.drawn.times()).then(move |()| place())
    }

    /// Takes what happened, and sets going what is to be done.
    pub fn update(&mut self, message: Message) -> Task<Message> {
        if !is_still(&self.model, &message) {
            self.shade = !self.shade;
        }
        let effects = update(&mut self.model, message);
        Task::batch(effects.into_iter().map(|effect| self.perform(effect)))
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
            Effect::Resume { id, words, folder } => aside(move || {
                let begun = feed::start(&words, &folder);
                let answer = begun.map(|_| "resumed".to_owned());
                Message::Sent(id, answer.map_err(|refused| refused.message))
            }),
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
        reach::watched(crate::view::view(&self.model), &self.drawn)
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
        if self.shade {
            style.background_color.b += 1e-4;
        }
        style
    }

    /// Light or dark.
    pub fn theme(&self) -> Theme {
        crate::theme::theme(self.model.mode)
    }
}

/// Whether the window looks the same after this, but for a few figures, which are drawn as such.
fn is_still(model: &Model, message: &Message) -> bool {
    let chosen = model.chosen.as_ref();
    match message {
        // Pictures move with the clock.
        Message::Tick(_) => !chosen.is_some_and(|chosen| chosen.tab == Tab::Pictures),
        // What was printed is read first, and comes with another message.
        Message::Followed(_, Followed::Output(_)) => true,
        Message::Log(request, Ok(read)) if request.anchor.is_none() => {
            chosen.is_some_and(|chosen| chosen.log.shows(read))
        }
        _ => false,
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

/// Work on a thread of its own.
fn aside(work: impl FnOnce() -> Message + Send + 'static) -> Task<Message> {
    let (tx, rx) = iced::futures::channel::oneshot::channel();
    // Where no thread can be had it is not done, and the window stays as it is.
    drop(std::thread::Builder::new().spawn(move || {
        // The window may be gone by then.
        let _ = tx.send(work());
    }));
    Task::future(rx).then(|done| match done {
        Ok(message) => Task::done(message),
        Err(_) => Task::none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::LogRequest;
    use crate::model::Chosen;
    use crate::theme::Mode;
    use descartes_agents::reader::Source;
    use descartes_client::logs::{LogLine, LogPosition, LogWindow};

    fn window(text: &str) -> LogWindow {
        LogWindow {
            lines: vec![LogLine {
                offset: 0,
                text: text.to_owned(),
            }],
            size: 8,
            end: 8,
            ..LogWindow::default()
        }
    }

    #[test]
    fn only_what_changes_the_window_has_it_drawn_as_a_whole() {
        let mut model = Model::new(Timestamp::UNIX_EPOCH, Mode::Light, "/".to_owned());
        model.chosen = Some(Chosen::new("a".to_owned()));
        let request = LogRequest {
            id: "a".to_owned(),
            iteration: None,
            source: Source::Stdout,
            place: LogPosition::End,
            anchor: None,
        };
        let read = |text: &str| Message::Log(request.clone(), Ok(window(text)));
        let printed = Message::Followed("a".to_owned(), Followed::Output(1));
        assert!(is_still(&model, &printed));
        assert!(!is_still(&model, &read("one")));
        update(&mut model, read("one"));
        assert!(is_still(&model, &read("one")), "it is there already");
        assert!(!is_still(&model, &read("two")));
        let scrolled = LogRequest {
            anchor: Some((0, 0)),
            ..request.clone()
        };
        assert!(!is_still(
            &model,
            &Message::Log(scrolled, Ok(window("one")))
        ));
        let tick = Message::Tick(Timestamp::UNIX_EPOCH);
        assert!(is_still(&model, &tick));
        update(&mut model, Message::Tab(Tab::Pictures));
        assert!(!is_still(&model, &tick), "pictures move with the clock");
    }
}
