//! Scrolls so that the field or button that the keyboard is at can be seen.

use iced::{Rectangle, Task, Vector};
use iced_core::widget::Id;
use iced_core::widget::operation::scrollable::{AbsoluteOffset, Scrollable, scroll_to};
use iced_core::widget::operation::{Focusable, Operation, Outcome};

use crate::message::Message;

/// Room that is left above and below it.
const MARGIN: f32 = 24.0;

/// Finds it, and scrolls where that is needed.
pub fn focused() -> Task<Message> {
    iced_runtime::task::widget(Find::default())
}

/// A page that can be scrolled, as it stands.
struct Page {
    id: Id,
    /// Where it is seen.
    view: Rectangle,
    /// All of it, as if it were not scrolled.
    content: Rectangle,
    /// How far it is scrolled.
    by: f32,
}

#[derive(Default)]
struct Find {
    page: Option<Page>,
    wanted: Option<(Id, f32)>,
}

impl Page {
    /// Where it must be scrolled to, if it must.
    fn target(&self, field: Rectangle) -> Option<f32> {
        let top = field.y - self.content.y - MARGIN;
        let bottom = top + field.height + 2.0 * MARGIN;
        if !self.content.contains(field.center()) {
            None
        } else if top < self.by {
            Some(top.max(0.0))
        } else if bottom > self.by + self.view.height {
            Some(bottom - self.view.height)
        } else {
            None
        }
    }
}

impl Operation<Message> for Find {
    fn traverse(&mut self, operate: &mut dyn FnMut(&mut dyn Operation<Message>)) {
        operate(self);
    }

    fn scrollable(
        &mut self,
        id: Option<&Id>,
        view: Rectangle,
        content: Rectangle,
        translation: Vector,
        _state: &mut dyn Scrollable,
    ) {
        self.page = id.cloned().map(|id| Page {
            id,
            view,
            content,
            by: translation.y,
        });
    }

    fn focusable(&mut self, _id: Option<&Id>, bounds: Rectangle, state: &mut dyn Focusable) {
        if let Some(page) = self.page.as_ref().filter(|_| state.is_focused()) {
            self.wanted = page.target(bounds).map(|y| (page.id.clone(), y));
        }
    }

    fn finish(&self) -> Outcome<Message> {
        match self.wanted.clone() {
            None => Outcome::None,
            Some((id, y)) => {
                let to = AbsoluteOffset {
                    x: None,
                    y: Some(y),
                };
                Outcome::Chain(Box::new(scroll_to(id, to)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_scrolls_no_further_than_to_show_the_field() {
        let rectangle = |y: f32, height: f32| Rectangle {
            x: 0.0,
            y,
            width: 100.0,
            height,
        };
        let page = |by| Page {
            id: Id::new("form"),
            view: rectangle(10.0, 200.0),
            content: rectangle(10.0, 1000.0),
            by,
        };
        assert_eq!(page(0.0).target(rectangle(60.0, 30.0)), None);
        assert_eq!(page(0.0).target(rectangle(310.0, 30.0)), Some(154.0));
        assert_eq!(page(500.0).target(rectangle(110.0, 30.0)), Some(76.0));
        assert_eq!(page(500.0).target(rectangle(12.0, 30.0)), Some(0.0));
        assert_eq!(page(0.0).target(rectangle(2000.0, 30.0)), None);
    }
}
