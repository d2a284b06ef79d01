//! Pictures of loops as plain data: rectangles, lines and texts in theme inks. A page gets
//! them as SVG ([`svg`]), a window draws the same shapes on its canvas.
//!
//! ```
//! use descartes_plans::graph::TaskStatus;
//! use descartes_views::picture::{Frame, GraphTask, graph, svg};
//!
//! let task = |id: &str, wave, after: &[&str]| GraphTask {
//!     id: id.into(),
//!     title: format!("Task {id}"),
//!     wave,
//!     status: TaskStatus::Pending,
//!     after: after.iter().map(|id| (*id).into()).collect(),
//!     after_blocks: Vec::new(),
//! };
//! let picture = graph(&[task("1", 1, &[]), task("2", 2, &["1"])], &[]);
//! assert!(svg(&picture, Frame::Document).starts_with("<svg "));
//! ```

mod axis;
mod graph;
mod ink;
mod lanes;
mod svg;
mod timeline;

pub use axis::Clock;
pub use graph::{GraphTask, graph, plan_svg};
pub use ink::{Ink, Theme};
pub use lanes::{Lane, Span, gantt};
pub use svg::{Frame, escape, style_sheet, svg};
pub use timeline::{Timeline, timeline};

/// A picture: shapes in a box, later ones over earlier ones. One unit is one pixel at normal
/// size; `y` grows downwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// What it shows, for those who cannot see it.
    pub title: String,
    /// Width of the box.
    pub width: f32,
    /// Height of the box.
    pub height: f32,
    /// What is drawn, in order.
    pub shapes: Vec<Shape>,
}

/// A place in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: f32,
    /// From the top.
    pub y: f32,
}

impl Point {
    /// The place at these coordinates.
    pub const fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }
}

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Rect {
        /// Its upper left corner.
        at: Point,
        width: f32,
        height: f32,
        /// How round its corners are.
        radius: f32,
        /// What it is filled with.
        fill: Option<Ink>,
        stroke: Option<Stroke>,
        /// What a person reads who points at it.
        tip: Option<String>,
    },
    /// A line through these points.
    Line {
        /// Where it goes.
        points: Vec<Point>,
        /// The output format.
        stroke: Stroke,
        /// What a person reads who points at it.
        tip: Option<String>,
    },
    /// A line of text.
    Text {
        /// Its baseline, at the side that `anchor` names.
        at: Point,
        text: String,
        /// Height of the letters' box.
        size: f32,
        ink: Ink,
        /// How heavy.
        weight: Weight,
        /// Which part of it stands at `at`.
        anchor: Anchor,
    },
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub ink: Ink,
    pub width: f32,
    /// Whole or broken.
    pub dash: Dash,
}

impl Stroke {
    /// A whole line.
    pub const fn solid(ink: Ink, width: f32) -> Self {
        Self {
            ink,
            width,
            dash: Dash::Solid,
        }
    }

    /// A broken line.
    pub const fn dashed(ink: Ink, width: f32) -> Self {
        Self {
            ink,
            width,
            dash: Dash::Dashed,
        }
    }
}

/// Whole or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    /// Four on, three off.
    Dashed,
}

/// How heavy a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// As running text.
    Regular,
    /// As a heading.
    Bold,
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The size of ordinary text.
const TEXT: f32 = 12.0;

impl Picture {
    /// An empty picture.
    fn new(title: impl Into<String>, width: f32, height: f32) -> Self {
        Self {
            title: title.into(),
            width,
            height,
            shapes: Vec::new(),
        }
    }

    fn text(&mut self, at: Point, text: impl Into<String>, ink: Ink, anchor: Anchor) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size: TEXT,
            ink,
            weight: Weight::Regular,
            anchor,
        });
    }

    fn heading(&mut self, at: Point, text: impl Into<String>) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size: TEXT + 1.0,
            ink: Ink::Text,
            weight: Weight::Bold,
            anchor: Anchor::Start,
        });
    }

    fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        self.shapes.push(Shape::Line {
            points,
            stroke,
            tip: None,
        });
    }
}

/// The part of a text that fits so many units, with an ellipsis where it was cut.
fn fit(text: &str, width: f32) -> String {
    // Letters of a proportional font are a little over half as wide as high.
    let most = (width / (TEXT * 0.56)).max(1.0) as usize;
    descartes_text::units::shorten(text, most)
}
