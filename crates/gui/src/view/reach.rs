//! What the keyboard reaches. Buttons of iced know the mouse alone; here they get a place among
//! the fields that Tab goes through, a ring that shows it, and Enter and Space to press them.

use iced::keyboard::key::Named;
use iced::keyboard::{self, Key};
use iced::{Color, Element, Event, Length, Rectangle, Renderer, Size, Theme, Vector, mouse};
use iced_core::renderer::{self, Quad};
use iced_core::widget::operation::{Focusable, Operation};
use iced_core::widget::{Tree, tree};
use iced_core::{Clipboard, Layout, Shell, Widget, border, layout, overlay};

use super::drawn::Drawn;
use crate::message::Message;
use crate::model::Dialog;
use crate::theme::Colours;

/// A button that Tab reaches too; without a message it is passed over.
pub fn press<'a>(
    content: impl Into<Element<'a, Message>>,
    message: Option<Message>,
) -> Element<'a, Message> {
    let part = message.map_or(FocusRole::Still, FocusRole::Press);
    let content = content.into();
    Element::new(Reach { content, part })
}

/// What stands in front, or behind a dialog, where no key reaches it.
pub fn ground<'a>(
    content: impl Into<Element<'a, Message>>,
    dialog: Option<Dialog>,
) -> Element<'a, Message> {
    let part = dialog.map_or(FocusRole::Still, |_| FocusRole::Behind);
    let content = content.into();
    Element::new(Reach { content, part })
}

/// All of it: tells whenever it is drawn.
pub fn watched<'a>(
    content: impl Into<Element<'a, Message>>,
    drawn: &Drawn,
) -> Element<'a, Message> {
    let part = FocusRole::Watched(drawn.clone());
    let content = content.into();
    Element::new(Reach { content, part })
}

struct Reach<'a> {
    content: Element<'a, Message>,
    part: FocusRole,
}

/// What a thing is to the keyboard.
enum FocusRole {
    /// It can be pressed.
    Press(Message),
    /// It cannot be pressed, now or ever; what is in it is reached.
    Still,
    /// It stands behind a dialog.
    Behind,
    /// It is nothing to the keyboard, and tells when it is drawn.
    Watched(Drawn),
}

/// Whether the keyboard is at it.
#[derive(Default)]
struct FocusState {
    focused: bool,
}

impl Focusable for FocusState {
    fn is_focused(&self) -> bool {
        self.focused
    }

    fn focus(&mut self) {
        self.focused = true;
    }

    fn unfocus(&mut self) {
        self.focused = false;
    }
}

/// Enter or Space, alone.
fn presses(event: &Event) -> bool {
    matches!(
        event,
        Event::Keyboard(keyboard::Event::KeyPressed {
            key: Key::Named(Named::Enter | Named::Space),
            modifiers,
            ..
        }) if modifiers.is_empty()
    )
}

impl Widget<Message, Theme, Renderer> for Reach<'_> {
    fn tag(&self) -> tree::Tag {
        tree::Tag::of::<FocusState>()
    }

    fn state(&self) -> tree::State {
        tree::State::new(FocusState::default())
    }

    fn children(&self) -> Vec<Tree> {
        vec![Tree::new(&self.content)]
    }

    fn diff(&self, tree: &mut Tree) {
        tree.diff_children(std::slice::from_ref(&self.content));
    }

    fn size(&self) -> Size<Length> {
        self.content.as_widget().size()
    }

    fn size_hint(&self) -> Size<Length> {
        self.content.as_widget().size_hint()
    }

    fn layout(
        &mut self,
        tree: &mut Tree,
        renderer: &Renderer,
        limits: &layout::Limits,
    ) -> layout::Node {
        let content = self.content.as_widget_mut();
        content.layout(&mut tree.children[0], renderer, limits)
    }

    fn operate(
        &mut self,
        tree: &mut Tree,
        layout: Layout<'_>,
        renderer: &Renderer,
        operation: &mut dyn Operation,
    ) {
        // A button that was pressed and waits for an answer keeps its place.
        let state = tree.state.downcast_mut::<FocusState>();
        if matches!(self.part, FocusRole::Press(_)) || state.focused {
            operation.focusable(None, layout.bounds(), state);
        }
        // Nothing behind a dialog is gone through: it has neither a place nor the cursor.
        if !matches!(self.part, FocusRole::Behind) {
            let content = self.content.as_widget_mut();
            content.operate(&mut tree.children[0], layout, renderer, operation);
        }
    }

    fn update(
        &mut self,
        tree: &mut Tree,
        event: &Event,
        layout: Layout<'_>,
        cursor: mouse::Cursor,
        renderer: &Renderer,
        clipboard: &mut dyn Clipboard,
        shell: &mut Shell<'_, Message>,
        viewport: &Rectangle,
    ) {
        let state = tree.state.downcast_mut::<FocusState>();
        match &self.part {
            FocusRole::Press(message) if state.focused && presses(event) => {
                shell.publish(message.clone());
                shell.capture_event();
                return;
            }
            // Keys that a field behind the dialog would take are not for it.
            FocusRole::Behind if matches!(event, Event::Keyboard(_)) => return,
            _ => {}
        }
        if matches!(event, Event::Mouse(mouse::Event::ButtonPressed(_))) && state.focused {
            state.focused = false;
            shell.request_redraw();
        }
        let content = self.content.as_widget_mut();
        let tree = &mut tree.children[0];
        content.update(
            tree, event, layout, cursor, renderer, clipboard, shell, viewport,
        );
    }

    fn draw(
        &self,
        tree: &Tree,
        renderer: &mut Renderer,
        theme: &Theme,
        style: &renderer::Style,
        layout: Layout<'_>,
        cursor: mouse::Cursor,
        viewport: &Rectangle,
    ) {
        let content = self.content.as_widget();
        let state = tree.state.downcast_ref::<FocusState>();
        let tree = &tree.children[0];
        content.draw(tree, renderer, theme, style, layout, cursor, viewport);
        if state.focused {
            ring(renderer, theme, layout.bounds());
        }
        if let FocusRole::Watched(drawn) = &self.part {
            drawn.tell();
        }
    }

    fn mouse_interaction(
        &self,
        tree: &Tree,
        layout: Layout<'_>,
        cursor: mouse::Cursor,
        viewport: &Rectangle,
        renderer: &Renderer,
    ) -> mouse::Interaction {
        let content = self.content.as_widget();
        content.mouse_interaction(&tree.children[0], layout, cursor, viewport, renderer)
    }

    fn overlay<'b>(
        &'b mut self,
        tree: &'b mut Tree,
        layout: Layout<'b>,
        renderer: &Renderer,
        viewport: &Rectangle,
        translation: Vector,
    ) -> Option<overlay::Element<'b, Message, Theme, Renderer>> {
        let content = self.content.as_widget_mut();
        let tree = &mut tree.children[0];
        content.overlay(tree, layout, renderer, viewport, translation)
    }
}

/// Two lines, so that it is seen on a button of any colour.
fn ring(renderer: &mut Renderer, theme: &Theme, bounds: Rectangle) {
    use iced_core::Renderer as _;
    let colours = Colours::of(theme);
    let mut line = |bounds: Rectangle, colour: Color, radius: u32| {
        let quad = Quad {
            bounds,
            border: border::rounded(radius).width(2).color(colour),
            ..Quad::default()
        };
        renderer.fill_quad(quad, Color::TRANSPARENT);
    };
    line(bounds.expand(1), colours.accent, 7);
    line(bounds.shrink(1), colours.surface, 5);
}
