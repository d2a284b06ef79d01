//! Small things that every page uses.

use descartes_text::display;
use iced::widget::text::{IntoFragment, Wrapping};
use iced::widget::{Button, Text, button, canvas, container, mouse_area, row, sensor, text};
use iced::{Element, Fill, Length, Point, Rectangle, Renderer, Size, Theme, mouse};

use super::reach;
use crate::font;
use crate::message::{self, Message};
use crate::model::{Area, Notice};
use crate::style::{self, Tone};
use crate::theme::Colours;

/// Small text in a tone, on one line.
pub fn small<'a>(words: impl text::IntoFragment<'a>, tone: Tone) -> Text<'a> {
    text(words)
        .size(12)
        .wrapping(Wrapping::None)
        .style(style::ink(tone))
}

/// Words of anybody, as they may be shown.
pub fn cleaned(words: &str) -> String {
    display::text(words, display::Colours::Drop)
}

/// What is wrong, on as many lines as it takes.
pub fn trouble(words: &str) -> Element<'_, Message> {
    text(cleaned(words))
        .size(12)
        .style(style::ink(Tone::Bad))
        .into()
}

pub fn heading<'a>(words: impl text::IntoFragment<'a>) -> Text<'a> {
    text(words)
        .size(14)
        .font(font::STRONG)
        .wrapping(Wrapping::None)
}

/// A button of usual size.
pub fn action<'a>(label: impl IntoFragment<'a>) -> Button<'a, Message> {
    button(text(label).size(13).wrapping(Wrapping::None))
        .padding([6, 12])
        .style(style::plain_button)
}

pub fn small_action<'a>(label: impl IntoFragment<'a>) -> Button<'a, Message> {
    button(text(label).size(12))
        .padding([2, 8])
        .style(style::plain_button)
}

/// A button that does this, by mouse and by keyboard.
pub fn does<'a>(
    button: Button<'a, Message>,
    message: impl Into<Option<Message>>,
) -> Element<'a, Message> {
    let message = message.into();
    reach::press(button.on_press_maybe(message.clone()), message)
}

/// The message of a button, where it can be pressed.
pub fn when(can: impl Into<bool>, button: message::Button) -> Option<Message> {
    can.into().then_some(Message::Press(button))
}

/// A label on a ground of its tone.
pub fn pill<'a>(label: impl IntoFragment<'a>, tone: Tone) -> Element<'a, Message> {
    container(
        text(label)
            .size(12)
            .font(font::STRONG)
            .wrapping(Wrapping::None),
    )
    .padding([2, 10])
    .style(style::pill(tone))
    .into()
}

/// A dot in a tone.
pub fn dot<'a>(tone: Tone) -> Element<'a, Message> {
    let dot = container(text("")).width(8).height(8);
    dot.style(style::dot(tone)).into()
}

/// A thin line between what is beside each other.
pub fn upright<'a>() -> Element<'a, Message> {
    let line = container(text("")).width(1).height(Fill);
    line.style(style::hairline).into()
}

/// A thin line between what is above each other.
pub fn level<'a>() -> Element<'a, Message> {
    let line = container(text("")).width(Fill).height(1);
    line.style(style::hairline).into()
}

/// A line across the page.
pub fn banner<'a>(tone: Tone, words: String) -> Element<'a, Message> {
    container(text(cleaned(&words)).size(13).style(style::ink(tone)))
        .padding([8, 12])
        .width(Fill)
        .style(style::banner(tone))
        .into()
}

/// A place for something that comes and goes. What is missing would else have no place at all:
/// the next thing would take it, and a field would lose the cursor that stands in it.
pub fn slot<'a>(content: Option<impl Into<Element<'a, Message>>>) -> Element<'a, Message> {
    container(content.map(Into::into)).width(Fill).into()
}

/// The line that can be taken away.
pub fn notice(notice: &Notice) -> Element<'_, Message> {
    let (tone, words) = match notice {
        Notice::Error(words) => (Tone::Bad, words),
        Notice::Done(words) => (Tone::Good, words),
    };
    let close = small_action("Dismiss").style(style::row_button(style::Choice::Other));
    let close = does(close, Message::Press(message::Button::Dismiss));
    let words = text(cleaned(words))
        .size(13)
        .style(style::ink(tone))
        .width(Fill);
    container(row![words, close].spacing(12).align_y(iced::Center))
        .padding([6, 12])
        .width(Fill)
        .style(style::banner(tone))
        .into()
}

/// A part of a long list with its scroll bar. It tells its size and the turns of the wheel.
pub fn long<'a>(
    area: Area,
    content: impl Into<Element<'a, Message>>,
    thumb: (f32, f32),
    line: f32,
) -> Element<'a, Message> {
    let content = container(content).width(Fill).height(Fill).clip(true);
    let turned = mouse_area(content).on_scroll(move |delta| {
        let lines = match delta {
            mouse::ScrollDelta::Lines { y, .. } => -y * 3.0,
            mouse::ScrollDelta::Pixels { y, .. } => -y / line,
        };
        Message::Wheel(area, lines)
    });
    let sized = sensor(turned)
        .on_show(move |size| Message::Sized(area, size))
        .on_resize(move |size| Message::Sized(area, size));
    let bar = canvas(ScrollBar { area, thumb }).width(10).height(Fill);
    row![sized, bar].width(Fill).height(Fill).into()
}

/// A scroll bar that can be dragged.
struct ScrollBar {
    area: Area,
    /// The part of the whole that is above, and the part that is visible.
    thumb: (f32, f32),
}

/// Shorter handles cannot be grabbed.
const LEAST: f32 = 28.0;

impl ScrollBar {
    fn handle(&self, size: Size) -> Option<(f32, f32)> {
        let (above, visible) = self.thumb;
        if visible >= 1.0 || !visible.is_finite() {
            return None;
        }
        let height = (visible * size.height).max(LEAST).min(size.height);
        let room = size.height - height;
        let top = (above / (1.0 - visible).max(f32::EPSILON)).clamp(0.0, 1.0) * room;
        Some((top, height))
    }

    /// The part that is above when the middle of the handle stands there.
    fn part(&self, y: f32, size: Size) -> f32 {
        let height = (self.thumb.1 * size.height).max(LEAST).min(size.height);
        let room = (size.height - height).max(1.0);
        ((y - height / 2.0) / room).clamp(0.0, 1.0) * (1.0 - self.thumb.1).max(0.0)
    }
}

impl canvas::Program<Message> for ScrollBar {
    /// Whether the handle is held.
    type State = bool;

    fn update(
        &self,
        held: &mut bool,
        event: &canvas::Event,
        bounds: Rectangle,
        cursor: mouse::Cursor,
    ) -> Option<canvas::Action<Message>> {
        let drag = |y: f32| {
            let part = self.part(y, bounds.size());
            canvas::Action::publish(Message::Drag(self.area, part)).and_capture()
        };
        match event {
            canvas::Event::Mouse(mouse::Event::ButtonPressed(mouse::Button::Left)) => {
                let at = cursor.position_in(bounds)?;
                self.handle(bounds.size())?;
                *held = true;
                Some(drag(at.y))
            }
            canvas::Event::Mouse(mouse::Event::ButtonReleased(mouse::Button::Left)) => {
                *held = false;
                None
            }
            canvas::Event::Mouse(mouse::Event::CursorMoved { position }) if *held => {
                Some(drag(position.y - bounds.y))
            }
            _ => None,
        }
    }

    fn draw(
        &self,
        _held: &bool,
        renderer: &Renderer,
        theme: &Theme,
        bounds: Rectangle,
        _cursor: mouse::Cursor,
    ) -> Vec<canvas::Geometry> {
        let mut frame = canvas::Frame::new(renderer, bounds.size());
        if let Some((top, height)) = self.handle(bounds.size()) {
            let path = canvas::Path::rounded_rectangle(
                Point::new(2.0, top),
                Size::new(6.0, height),
                3.0.into(),
            );
            frame.fill(&path, Colours::of(theme).muted.scale_alpha(0.4));
        }
        vec![frame.into_geometry()]
    }
}

/// A cell of a table.
pub fn cell<'a>(content: Text<'a>, width: impl Into<Length>) -> Element<'a, Message> {
    container(content).width(width).clip(true).into()
}
