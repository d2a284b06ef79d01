//! The real clock along the width of a picture.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Anchor, Ink, Picture, Point, Stroke};

/// The time it is, and how a person tells it.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Now: what is under way is drawn until here.
    pub now: Timestamp,
    /// The zone of the labels.
    pub zone: TimeZone,
}

/// Steps between labels, in seconds.
const STEPS: [i64; 20] = [
    1, 5, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000,
];

/// From time to place.
pub(super) struct Axis {
    start: f64,
    span: f64,
    left: f32,
    width: f32,
}

impl Axis {
    /// From the first to the last moment, between two places.
    pub(super) fn new(start: Timestamp, end: Timestamp, left: f32, width: f32) -> Self {
        let (start, end) = (seconds(start), seconds(end));
        Self {
            start,
            span: (end - start).max(1.0),
            left,
            width: width.max(1.0),
        }
    }

    /// The place of a moment; moments outside stand at the edge.
    pub(super) fn x(&self, at: Timestamp) -> f32 {
        let part = ((seconds(at) - self.start) / self.span).clamp(0.0, 1.0);
        self.left + part as f32 * self.width
    }

    /// Draws lines from `top` to `bottom` with the time below them.
    pub(super) fn draw(&self, clock: &Clock, top: f32, bottom: f32, out: &mut Picture) {
        let most = (self.width / 90.0).max(1.0);
        let wanted = self.span / f64::from(most);
        let longest = STEPS[STEPS.len() - 1];
        let step = STEPS
            .into_iter()
            .find(|step| *step as f64 >= wanted)
            .unwrap_or_else(|| (wanted as i64 / longest + 1) * longest);
        let end = (self.start + self.span) as i64;
        let mut at = self.first(step, clock);
        while at <= end {
            let Ok(moment) = Timestamp::from_second(at) else {
                break;
            };
            let x = self.x(moment);
            let faint = Stroke::solid(Ink::Faint, 1.0);
            out.line(vec![Point::new(x, top), Point::new(x, bottom)], faint);
            let label = label(moment, step, clock);
            let place = Point::new(x, bottom + 15.0);
            out.text(place, label, Ink::Muted, Anchor::Middle);
            at += step;
        }
    }

    /// The first label: a round time where the clock hangs, not in London.
    fn first(&self, step: i64, clock: &Clock) -> i64 {
        let start = self.start.ceil() as i64;
        let moment = Timestamp::from_second(start).unwrap_or(clock.now);
        let offset = i64::from(clock.zone.to_offset(moment).seconds());
        let local = start + offset;
        let gap = (step - local.rem_euclid(step)) % step;
        start + gap
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}

fn label(at: Timestamp, step: i64, clock: &Clock) -> String {
    let form = match step {
        ..60 => "%H:%M:%S",
        60..43_200 => "%H:%M",
        43_200..86_400 => "%b %-d %H:%M",
        _ => "%b %-d",
    };
    at.to_zoned(clock.zone.clone()).strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Shape;

    fn labels(start: &str, end: &str, zone: &str) -> Vec<String> {
        let (start, end): (Timestamp, Timestamp) = (start.parse().unwrap(), end.parse().unwrap());
        let clock = Clock {
            now: end,
            zone: TimeZone::get(zone).unwrap(),
        };
        let mut picture = Picture::new("", 500.0, 50.0);
        Axis::new(start, end, 0.0, 500.0).draw(&clock, 0.0, 30.0, &mut picture);
        let text = |shape: Shape| match shape {
            Shape::Text { text, .. } => Some(text),
            _ => None,
        };
        picture.shapes.into_iter().filter_map(text).collect()
    }

    #[test]
    fn labels_are_round_times_of_the_zone() {
        assert_eq!(
            labels("2026-01-02T03:10:00Z", "2026-01-02T07:10:00Z", "UTC"),
            ["04:00", "05:00", "06:00", "07:00"]
        );
        assert_eq!(
            labels(
                "2026-01-02T03:10:00Z",
                "2026-01-02T07:10:00Z",
                "Asia/Kolkata"
            ),
            ["09:00", "10:00", "11:00", "12:00"]
        );
        assert_eq!(
            labels("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "UTC"),
            ["03:04:05", "03:04:06"]
        );
        let years = labels("2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "UTC");
        assert!((2..=6).contains(&years.len()), "{years:?}");
    }
}
