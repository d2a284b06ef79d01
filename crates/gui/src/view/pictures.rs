//! Pictures of a loop, the same shapes as in its report.

use descartes_views::picture::{
    self, Anchor, Clock, Dash, GraphTask, Ink, Picture, Shape, Span, Timeline, Weight,
};
use descartes_views::view::{HistoryRow, WaitRow};
use iced::widget::{Column, canvas, column, container, scrollable, sensor};
use iced::{Color, Element, Fill, Point, Rectangle, Renderer, Size, Theme, alignment, mouse};

use super::parts;
use crate::font;
use crate::message::Message;
use crate::model::KnownLoop;
use crate::model::{Area, Chosen, Model, Page};
use crate::style;
use crate::theme::{Colours, Mode};

/// Space that a card takes beside its picture.
const FRAME: f32 = 42.0;

pub fn view<'a>(
    model: &'a Model,
    chosen: &'a Chosen,
    stands: &'a KnownLoop,
) -> Element<'a, Message> {
    let width = (chosen.width - FRAME).max(300.0);
    let cards = all(model, stands, width).into_iter().map(|picture| {
        let title = parts::heading(picture.title.clone());
        let (width, height) = (picture.width, picture.height);
        let drawing = Drawing {
            picture,
            mode: model.mode,
        };
        let drawing = canvas(drawing).width(width).height(height);
        let wide = scrollable(drawing)
            .direction(scrollable::Direction::Horizontal(
                scrollable::Scrollbar::new(),
            ))
            .style(style::scroll)
            .width(Fill);
        container(column![title, wide].spacing(8))
            .padding(14)
            .width(Fill)
            .style(style::card)
            .into()
    });
    let cards = Column::with_children(cards)
        .spacing(12)
        .padding(iced::padding::right(12));
    let page = scrollable(cards)
        .id(Page::Loop.id())
        .style(style::scroll)
        .width(Fill)
        .height(Fill);
    sensor(page)
        .on_show(|size| Message::Sized(Area::Pictures, size))
        .on_resize(|size| Message::Sized(Area::Pictures, size))
        .into()
}

/// What there is to draw of a loop.
pub fn all(model: &Model, stands: &KnownLoop, width: f32) -> Vec<Picture> {
    let clock = Clock {
        now: model.now,
        zone: model.zone.clone(),
    };
    let story = &stands.story;
    let rows: Vec<HistoryRow> = story.rows().iter().cloned().collect();
    let waits: Vec<Span> = story.waits().iter().map(WaitRow::span).collect();
    let budget = stands.state.config.max_cost_usd;
    let timeline = picture::timeline(
        &Timeline {
            rows: &rows,
            current: story.current(),
            waits: &waits,
            budget_micros: budget.map(|usd| (usd * 1e6) as u64),
        },
        &clock,
        width,
        200.0,
    );
    let mut pictures = vec![timeline];
    if let Some(tasks) = &stands.state.tasks {
        let lanes = stands.lanes.lanes();
        pictures.push(picture::gantt(&lanes, &clock, width));
        pictures.push(picture::graph(&GraphTask::of_loop(tasks), &tasks.blocks));
    }
    pictures
}

/// A picture on a canvas; what is pointed at tells about itself.
struct Drawing {
    picture: Picture,
    mode: Mode,
}

impl Drawing {
    fn colour(&self, ink: Ink) -> Color {
        let [red, green, blue] = ink.rgb(self.mode);
        // The paper is the card.
        match ink {
            Ink::Paper => Colours::in_mode(self.mode).surface,
            _ => Color::from_rgb8(red, green, blue),
        }
    }

    fn stroke(&self, stroke: &picture::Stroke) -> canvas::Stroke<'static> {
        const DASHES: [f32; 2] = [4.0, 3.0];
        let line_dash = match stroke.dash {
            Dash::Solid => canvas::LineDash::default(),
            Dash::Dashed => canvas::LineDash {
                segments: &DASHES,
                offset: 0,
            },
        };
        canvas::Stroke {
            style: canvas::Style::Solid(self.colour(stroke.ink)),
            width: stroke.width,
            line_dash,
            ..canvas::Stroke::default()
        }
    }

    fn draw_shape(&self, shape: &Shape, frame: &mut canvas::Frame) {
        match shape {
            Shape::Rect {
                at,
                width,
                height,
                radius,
                fill,
                stroke,
                ..
            } => {
                let (at, size) = (Point::new(at.x, at.y), Size::new(*width, *height));
                let path = canvas::Path::rounded_rectangle(at, size, (*radius).into());
                if let Some(ink) = fill {
                    frame.fill(&path, self.colour(*ink));
                }
                if let Some(stroke) = stroke {
                    frame.stroke(&path, self.stroke(stroke));
                }
            }
            Shape::Line { points, stroke, .. } => {
                let path = canvas::Path::new(|path| {
                    let mut points = points.iter().map(|point| Point::new(point.x, point.y));
                    if let Some(first) = points.next() {
                        path.move_to(first);
                    }
                    points.for_each(|point| path.line_to(point));
                });
                frame.stroke(&path, self.stroke(stroke));
            }
            Shape::Text {
                at,
                text,
                size,
                ink,
                weight,
                anchor,
            } => frame.fill_text(canvas::Text {
                content: text.clone(),
                // A canvas places text by its box, a picture by its baseline.
                position: Point::new(at.x, at.y - size * 0.36),
                color: self.colour(*ink),
                size: (*size).into(),
                font: match weight {
                    Weight::Regular => font::SANS,
                    Weight::Bold => font::STRONG,
                },
                align_x: match anchor {
                    Anchor::Start => iced::widget::text::Alignment::Left,
                    Anchor::Middle => iced::widget::text::Alignment::Center,
                    Anchor::End => iced::widget::text::Alignment::Right,
                },
                align_y: alignment::Vertical::Center,
                ..canvas::Text::default()
            }),
        }
    }

    /// What the thing at a place tells, the uppermost first.
    fn tip(&self, at: Point) -> Option<&str> {
        self.picture
            .shapes
            .iter()
            .rev()
            .find_map(|shape| match shape {
                Shape::Rect {
                    at: corner,
                    width,
                    height,
                    tip: Some(tip),
                    ..
                } => {
                    let place = Rectangle::new(
                        Point::new(corner.x - 1.0, corner.y),
                        Size::new(width + 2.0, *height),
                    );
                    place.contains(at).then_some(tip.as_str())
                }
                _ => None,
            })
    }

    fn draw_tip(&self, tip: &str, at: Point, theme: &Theme, frame: &mut canvas::Frame) {
        let colours = Colours::of(theme);
        let width = tip.chars().count() as f32 * 6.4 + 16.0;
        let x = (at.x + 12.0).min(frame.width() - width - 4.0).max(2.0);
        let y = (at.y + 16.0).min(frame.height() - 28.0);
        let path =
            canvas::Path::rounded_rectangle(Point::new(x, y), Size::new(width, 24.0), 5.0.into());
        frame.fill(&path, colours.text);
        frame.fill_text(canvas::Text {
            content: tip.to_owned(),
            position: Point::new(x + 8.0, y + 12.0),
            color: colours.surface,
            size: 12.0.into(),
            font: font::SANS,
            align_y: alignment::Vertical::Center,
            ..canvas::Text::default()
        });
    }
}

impl canvas::Program<Message> for Drawing {
    /// Where the pointer is.
    type State = Option<Point>;

    fn update(
        &self,
        pointed: &mut Option<Point>,
        event: &canvas::Event,
        bounds: Rectangle,
        cursor: mouse::Cursor,
    ) -> Option<canvas::Action<Message>> {
        if !matches!(
            event,
            canvas::Event::Mouse(mouse::Event::CursorMoved { .. })
        ) {
            return None;
        }
        let now = cursor
            .position_in(bounds)
            .filter(|at| self.tip(*at).is_some());
        let changed = *pointed != now;
        *pointed = now;
        changed.then(canvas::Action::request_redraw)
    }

    fn draw(
        &self,
        pointed: &Option<Point>,
        renderer: &Renderer,
        theme: &Theme,
        bounds: Rectangle,
        _cursor: mouse::Cursor,
    ) -> Vec<canvas::Geometry> {
        let mut frame = canvas::Frame::new(renderer, bounds.size());
        self.picture
            .shapes
            .iter()
            .for_each(|shape| self.draw_shape(shape, &mut frame));
        if let Some((at, tip)) = pointed.and_then(|at| Some((at, self.tip(at)?))) {
            self.draw_tip(tip, at, theme, &mut frame);
        }
        vec![frame.into_geometry()]
    }
}
