//! The window without a mouse: Tab goes through every field and button, a ring shows where it
//! is, Enter and Space press.
use crate::common::{SIZE, Tale, Window, at_work};
use descartes_gui::font;
use descartes_gui::message::{Effect, Followed, Message};
use descartes_gui::model::form::Permissions;
use descartes_gui::model::{Area, Dialog, Page};
use descartes_gui::theme::Mode;
use descartes_gui::view::view;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::event::{Event, LimitKind, ReportedLimit, Verdict, WaitReason};
use iced::keyboard::key::Named;
use iced::keyboard::{Key, Modifiers};
use iced::{Color, Rectangle, Size};
use iced_core::clipboard;
use iced_core::renderer::{Headless, Style};
use iced_core::widget::Id;
use iced_core::widget::operation::{self, Focusable, Operation, Outcome, focusable};
use iced_runtime::UserInterface;
use iced_runtime::user_interface::Cache;
use iced_test::renderer::Renderer;
use iced_test::simulator::press_key;

/// A window whose widgets remember where the keyboard is, as they do on a display.
struct Hands {
    window: Window,
    renderer: Renderer,
    cache: Cache,
}

/// Where the keyboard is: the id of a field, or the label of a button.
#[derive(Default)]
struct Where {
    bounds: Option<Rectangle>,
    name: Option<String>,
}

impl Operation for Where {
    fn traverse(&mut self, operate: &mut dyn FnMut(&mut dyn Operation)) {
        operate(self);
    }

    fn focusable(&mut self, id: Option<&Id>, bounds: Rectangle, state: &mut dyn Focusable) {
        if state.is_focused() {
            assert!(self.bounds.is_none(), "two have the ring");
            self.bounds = Some(bounds);
            self.name = id.map(|id| format!("{id:?}"));
        }
    }

    fn text(&mut self, _id: Option<&Id>, bounds: Rectangle, text: &str) {
        if self.name.is_none() && self.bounds.is_some_and(|at| at.contains(bounds.center())) {
            self.name = Some(text.to_owned());
        }
    }
}

impl Hands {
    fn at(window: Window) -> Self {
        for font in font::ALL {
            let system = iced_test::renderer::graphics::text::font_system();
            system.write().unwrap().load_font(font.into());
        }
        let size = iced::Pixels(16.0);
        let made = <Renderer as Headless>::new(font::SANS, size, Some("tiny-skia"));
        let renderer = iced_test::futures::futures::executor::block_on(made).unwrap();
        Self {
            window,
            renderer,
            cache: Cache::new(),
        }
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut UserInterface<'_, Message, iced::Theme, Renderer>, &mut Renderer) -> T,
    ) -> T {
        let cache = std::mem::take(&mut self.cache);
        let page = view(&self.window.model);
        let mut screen = UserInterface::build(page, SIZE, cache, &mut self.renderer);
        let done = act(&mut screen, &mut self.renderer);
        self.cache = screen.into_cache();
        done
    }

    fn operate(&mut self, operation: impl Operation + 'static) {
        let mut next: Option<Box<dyn Operation>> = Some(Box::new(operation));
        while let Some(mut now) = next.take() {
            self.with(|screen, renderer| screen.operate(renderer, now.as_mut()));
            if let Outcome::Chain(more) = now.finish() {
                next = Some(more);
            }
        }
    }

    /// A key goes to the widgets first, and to the window where none of them wants it.
    fn press(&mut self, key: Key, modifiers: Modifiers) {
        let text = match &key {
            Key::Character(letter) => Some(letter.clone()),
            _ => None,
        };
        let mut event = press_key(key.clone(), text);
        if let iced::Event::Keyboard(iced::keyboard::Event::KeyPressed {
            modifiers: held, ..
        }) = &mut event
        {
            *held = modifiers;
        }
        let mut messages = Vec::new();
        let nowhere = iced::mouse::Cursor::Unavailable;
        let statuses = self.with(|screen, renderer| {
            let none = &mut clipboard::Null;
            screen
                .update(&[event], nowhere, renderer, none, &mut messages)
                .1
        });
        if statuses == [iced::event::Status::Ignored] {
            messages.push(Message::Key(key, modifiers));
        }
        let known = self.window.effects.len();
        messages
            .into_iter()
            .for_each(|message| self.window.tell(message));
        let new: Vec<Effect> = self.window.effects.range(known..).cloned().collect();
        for effect in new {
            match effect {
                Effect::FocusNext => self.operate(focusable::focus_next()),
                Effect::FocusPrevious => self.operate(focusable::focus_previous()),
                Effect::Focus(id) => self.operate(focusable::focus::<()>(Id::new(id))),
                Effect::Blur => self.operate(focusable::unfocus::<()>()),
                _ => {}
            }
        }
    }

    fn tap(&mut self, key: Named) {
        self.press(Key::Named(key), Modifiers::empty());
    }

    fn letter(&mut self, key: &str) {
        self.press(Key::Character(key.into()), Modifiers::empty());
    }

    fn place(&mut self) -> Where {
        let mut place = Where::default();
        self.with(|screen, renderer| {
            screen.operate(renderer, &mut operation::black_box(&mut place));
        });
        place
    }

    fn is_at(&mut self) -> String {
        self.place().name.unwrap_or_default()
    }

    /// Goes on until the keyboard is there.
    #[track_caller]
    fn tab_to(&mut self, name: &str) {
        for _ in 0..60 {
            if self.is_at().contains(name) {
                return;
            }
            self.tap(Named::Tab);
        }
        panic!("Tab never came to {name}");
    }

    fn sent(&self) -> Vec<&Command> {
        let all = self.window.effects.iter();
        all.filter_map(|effect| match effect {
            Effect::Send { command, .. } => Some(command),
            _ => None,
        })
        .collect()
    }

    fn picture(&mut self) -> Vec<u8> {
        let theme = descartes_gui::theme::theme(self.window.model.mode);
        self.with(|screen, renderer| {
            let style = Style {
                text_color: Color::BLACK,
            };
            screen.draw(renderer, &theme, &style, iced::mouse::Cursor::Unavailable);
            let size = Size::new(SIZE.width as u32, SIZE.height as u32);
            renderer.screenshot(size, 1.0, Color::WHITE)
        })
    }
}

fn waiting() -> Tale {
    let mut tale = at_work();
    tale.agent_ended("limit").finish(Verdict::Worked);
    tale.add(Event::WaitStarted {
        until: crate::common::now(),
        reason: WaitReason::Limit(ReportedLimit {
            kind: LimitKind::Usage,
            until: None,
            words: "5-hour limit reached".into(),
        }),
    });
    tale
}

fn working() -> Hands {
    let mut window = Window::showing(&at_work(), Mode::Light);
    window.printed(&["reading src/lexer.rs"]);
    Hands::at(window)
}

#[test]
fn tab_goes_through_everything_that_can_be_pressed_and_back() {
    let mut hands = working();
    let mut stops = Vec::new();
    for _ in 0..13 {
        hands.tap(Named::Tab);
        stops.push(hands.is_at());
    }
    let last = stops.pop().unwrap();
    assert_eq!(
        stops,
        [
            "Theme",
            "Keys ?",
            "New loop",
            "Pause",
            "Cancel",
            "View Logs",
            "Overview",
            "Output",
            "Pictures",
            "stdout",
            "stderr",
            "Open folder"
        ]
    );
    assert!(last.contains("note"), "{last}");
    hands.press(Key::Named(Named::Tab), Modifiers::SHIFT);
    assert_eq!(hands.is_at(), "Open folder");
}

#[test]
fn enter_and_space_press_what_has_the_ring() {
    let mut hands = working();
    hands.tab_to("Pause");
    hands.tap(Named::Enter);
    assert_eq!(hands.sent(), [&Command::Pause]);
    // It waits for the answer, and the ring stays with it; pressed again it does nothing.
    assert_eq!(hands.is_at(), "Pause");
    hands.tap(Named::Enter);
    assert_eq!(hands.sent().len(), 1);
    let answer = Message::Sent("parser".into(), Ok("held".into()));
    hands.window.tell(answer);
    hands.tab_to("Dismiss");
    hands.tap(Named::Space);
    assert_eq!(hands.window.model.notice, None);
    hands.tab_to("Theme");
    hands.tap(Named::Space);
    assert_eq!(hands.window.model.mode, Mode::Dark);
}

#[test]
fn a_question_keeps_the_keyboard_and_begins_with_the_harmless_answer() {
    let mut hands = working();
    hands.letter("c");
    assert_eq!(hands.window.model.dialog, Some(Dialog::Cancel));
    assert_eq!(hands.is_at(), "Keep running");
    hands.tap(Named::Enter);
    assert_eq!(hands.window.model.dialog, None);
    assert!(hands.sent().is_empty());
    hands.letter("c");
    hands.tap(Named::Tab);
    assert_eq!(hands.is_at(), "Cancel the loop");
    // After the last comes none, then the first again: nothing behind it is reached.
    hands.tap(Named::Tab);
    assert_eq!(hands.is_at(), "");
    hands.tap(Named::Tab);
    assert_eq!(hands.is_at(), "Keep running");
    hands.tap(Named::Tab);
    hands.tap(Named::Space);
    assert_eq!(hands.sent(), [&Command::Cancel { grace: Grace::Ask }]);
}

#[test]
fn the_cursor_stays_in_its_field_whatever_comes_and_goes_around_it() {
    let mut hands = working();
    hands.letter("s");
    assert!(hands.is_at().contains("note"), "{}", hands.is_at());
    let answer = Message::Sent("parser".into(), Ok("held".into()));
    hands.window.tell(answer);
    assert!(hands.is_at().contains("note"), "a line came above it");
    let trouble = Followed::Trouble("the journal is damaged".into());
    hands
        .window
        .tell(Message::Followed("parser".into(), trouble));
    assert!(hands.is_at().contains("note"), "trouble came above it");
    hands.window.model.notice = None;
    assert!(hands.is_at().contains("note"), "the line went");
    hands.window.stands(&waiting());
    assert!(hands.is_at().contains("note"), "the loop waits");
    hands.letter("p");
    assert!(hands.sent().is_empty(), "a letter is a letter");
}

#[test]
fn the_ring_is_seen() {
    let mut hands = working();
    let before = hands.picture();
    hands.tab_to("View Logs");
    let after = hands.picture();
    let around = hands.place().bounds.unwrap().expand(3.0);
    let changed: Vec<usize> = (0..before.len() / 4)
        .filter(|at| before[at * 4..at * 4 + 4] != after[at * 4..at * 4 + 4])
        .collect();
    assert!(changed.len() > 200, "{} pixels", changed.len());
    let width = SIZE.width as usize;
    let outside = changed.iter().find(|at| {
        let point = iced::Point::new((*at % width) as f32, (*at / width) as f32);
        !around.contains(point)
    });
    assert_eq!(outside, None);
}

#[test]
fn the_form_is_filled_without_a_mouse() {
    let mut hands = Hands::at(Window::new(Mode::Light));
    hands.window.tell(Message::Fleet(Ok(vec![])));
    hands.tab_to("New loop");
    hands.tap(Named::Enter);
    assert_eq!(hands.window.model.page, Page::NewLoop);
    assert!(hands.is_at().contains("agent"), "{}", hands.is_at());
    for field in ["folder", "prompt", "prompt-file", "gates", "promise"] {
        hands.tap(Named::Tab);
        assert!(hands.is_at().contains(field), "{field}: {}", hands.is_at());
    }
    hands.tab_to("edit files");
    hands.tap(Named::Space);
    assert_eq!(hands.window.model.form.permissions, Permissions::Edit);
    hands.tab_to("Start");
    hands.tap(Named::Enter);
    hands.window.assert_sees("enter the command of an agent");
    hands.tab_to("Back");
    hands.tap(Named::Enter);
    assert_eq!(hands.window.model.page, Page::Loop);
}

#[test]
fn history_and_pages_scroll_by_keys() {
    let mut hands = working();
    hands.window.model.chosen.as_mut().unwrap().table.list.fits = 2.0;
    hands.window.tell(Message::Wheel(Area::History, 0.0));
    let top = |hands: &Hands| hands.window.model.chosen.as_ref().unwrap().table.list.top;
    hands.press(Key::Named(Named::End), Modifiers::SHIFT);
    assert_eq!(top(&hands), 1.0);
    hands.press(Key::Named(Named::Home), Modifiers::SHIFT);
    assert_eq!(top(&hands), 0.0);
    // The output of the first iteration is chosen, and its row is shown.
    hands.letter("[");
    hands.letter("[");
    assert_eq!(top(&hands), 1.0);
    hands.letter("4");
    hands.tap(Named::PageDown);
    let scrolled = hands.window.effects.back();
    assert!(
        matches!(scrolled, Some(Effect::Scroll(Page::Loop, by)) if *by > 0.0),
        "{scrolled:?}"
    );
}
