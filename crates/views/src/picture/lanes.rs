//! Lanes on the real clock: a Gantt of parallel tasks.

use jiff::Timestamp;

use super::axis::Axis;
use super::{Anchor, Clock, Ink, Picture, Point, Shape, Stroke, fit};
use crate::tone::Tone;

/// A span of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub start: Timestamp,
    /// Its end; `None` while it lasts.
    pub end: Option<Timestamp>,
    /// What it came to.
    pub mark: Tone,
    /// What a person reads who points at it.
    pub tip: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// What stands at its left.
    pub label: String,
    /// What happened, in any order.
    pub spans: Vec<Span>,
}

const AXIS: f32 = 24.0;
const TOP: f32 = 6.0;
const ROW: f32 = 26.0;
const BAR: f32 = 16.0;
const LABEL: f32 = 190.0;

/// Tasks side by side: one row a task, one bar an attempt or merge.
pub fn gantt(lanes: &[Lane], clock: &Clock, width: f32) -> Picture {
    let bottom = TOP + lanes.len() as f32 * ROW;
    let mut out = Picture::new("Tasks over time", width, bottom + AXIS);
    let label = LABEL.min(width * 0.35);
    let Some((start, end)) = reach(lanes, clock) else {
        let place = Point::new(8.0, bottom + 15.0);
        out.text(place, "nothing has run yet", Ink::Muted, Anchor::Start);
        return out;
    };
    let axis = Axis::new(start, end, label, width - label - 12.0);
    axis.draw(clock, TOP, bottom, &mut out);
    for (row, lane) in lanes.iter().enumerate() {
        let top = TOP + row as f32 * ROW;
        let place = Point::new(8.0, top + ROW / 2.0 + 4.0);
        let words = fit(&lane.label, label - 16.0);
        out.text(place, words, Ink::Text, Anchor::Start);
        let line = Stroke::solid(Ink::Faint, 1.0);
        let middle = top + ROW / 2.0;
        out.line(
            vec![Point::new(label, middle), Point::new(width - 12.0, middle)],
            line,
        );
        for span in &lane.spans {
            out.shapes.push(bar(span, &axis, top, clock));
        }
    }
    out
}

fn bar(span: &Span, axis: &Axis, top: f32, clock: &Clock) -> Shape {
    let from = axis.x(span.start);
    let to = axis.x(span.end.unwrap_or(clock.now));
    // A wait is thin, so that work stands out.
    let height = match span.mark {
        Tone::Warn | Tone::Dim => BAR / 3.0,
        _ => BAR,
    };
    let open = span.end.is_none();
    Shape::Rect {
        at: Point::new(from, top + (ROW - height) / 2.0),
        width: (to - from).max(2.0),
        height,
        radius: 2.0,
        fill: Some(span.mark.inks().0),
        stroke: open.then_some(Stroke::dashed(Ink::Text, 1.0)),
        tip: (!span.tip.is_empty()).then(|| span.tip.clone()),
    }
}

/// The first and the last moment of all lanes.
fn reach(lanes: &[Lane], clock: &Clock) -> Option<(Timestamp, Timestamp)> {
    let spans = || lanes.iter().flat_map(|lane| &lane.spans);
    let start = spans().map(|span| span.start).min()?;
    let end = spans().map(|span| span.end.unwrap_or(clock.now)).max()?;
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    fn at(time: &str) -> Timestamp {
        format!("2026-01-02T{time}Z").parse().unwrap()
    }

    fn clock() -> Clock {
        Clock {
            now: at("04:00:00"),
            zone: TimeZone::UTC,
        }
    }

    fn span(start: &str, end: Option<&str>, mark: Tone) -> Span {
        Span {
            start: at(start),
            end: end.map(at),
            mark,
            tip: format!("{mark:?}"),
        }
    }

    fn bars(picture: &Picture) -> Vec<(f32, f32, Ink)> {
        let bar = |shape: &Shape| match shape {
            Shape::Rect {
                at,
                width,
                fill: Some(ink),
                ..
            } => Some((at.x, *width, *ink)),
            _ => None,
        };
        picture.shapes.iter().filter_map(bar).collect()
    }

    #[test]
    fn width_is_time_and_what_lasts_reaches_now() {
        let lanes = [
            Lane {
                label: "1 parser".to_owned(),
                spans: vec![
                    span("03:00:00", Some("03:30:00"), Tone::Bad),
                    span("03:30:00", None, Tone::Strong),
                ],
            },
            Lane {
                label: "2".to_owned(),
                spans: vec![span("03:15:00", Some("03:45:00"), Tone::Good)],
            },
        ];
        let bars = bars(&gantt(&lanes, &clock(), 602.0));
        assert_eq!(
            bars,
            [
                (190.0, 200.0, Ink::Bad),
                (390.0, 200.0, Ink::Accent),
                (290.0, 200.0, Ink::Good),
            ]
        );
    }

    #[test]
    fn nothing_yet_is_said() {
        let picture = gantt(&[], &clock(), 400.0);
        assert!(matches!(
            &picture.shapes[..],
            [Shape::Text { text, .. }] if text == "nothing has run yet"
        ));
    }
}
