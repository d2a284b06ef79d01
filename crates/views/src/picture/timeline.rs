//! Iterations on the real clock: width is duration, height is tokens, red is a red gate or a
//! failure, gaps are waits, the line is cumulative cost, with the budget.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::axis::Axis;
use super::{Anchor, Clock, Ink, Picture, Point, Shape, Span, Stroke};
use crate::tone::Tone;
use crate::view::{HistoryRow, show_cost, show_tokens};
use descartes_kernel::event::{Cost, EndedBy, GateEnd, Verdict};
use descartes_text::units::show_duration;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// Iterations that are over, oldest first.
    pub rows: &'a [HistoryRow],
    /// The one that is under way.
    pub current: Option<&'a HistoryRow>,
    /// Waits and pauses.
    pub waits: &'a [Span],
    /// The cost budget, in millionths of a dollar.
    pub budget_micros: Option<u64>,
}

const TOP: f32 = 22.0;
const BOTTOM: f32 = 24.0;
const LEFT: f32 = 12.0;
const RIGHT: f32 = 74.0;
/// Narrower bars are drawn as one.
const LEAST: f32 = 2.0;

impl HistoryRow {
    /// What the iteration came to, as pictures mark it.
    pub fn mark(&self) -> Tone {
        let red = self.failed_gate().is_some();
        match &self.verdict {
            Some(Verdict::Promise | Verdict::Gates | Verdict::Success) => Tone::Good,
            Some(Verdict::Refused | Verdict::Failed(_) | Verdict::Blocked(_)) => Tone::Bad,
            _ if red => Tone::Bad,
            Some(Verdict::Stopped) => Tone::Dim,
            None if self.ended_by.is_some() => Tone::Warn,
            Some(Verdict::Worked) | None => Tone::Strong,
        }
    }

    /// When agent and gates were through, by the clock that counts.
    pub fn ended_at(&self) -> Timestamp {
        let lasted = SignedDuration::from_millis(self.duration_ms.cast_signed());
        self.started_at
            .saturating_add(lasted)
            .unwrap_or(self.started_at)
    }

    /// One line for whoever points at it.
    pub fn tip(&self) -> String {
        let mut words = vec![
            format!("iteration {}", self.iteration),
            show_duration(Duration::from_millis(self.duration_ms)),
            format!("{} tokens", show_tokens(self.tokens)),
            show_cost(self.cost),
        ];
        words.extend(self.gates.iter().map(|gate| {
            let how = match gate.end {
                _ if gate.passed() => "green",
                GateEnd::Cancelled => "cancelled",
                _ => "red",
            };
            format!("{how}: {}", gate.command)
        }));
        if self.ended_by == Some(EndedBy::HostLost) {
            words.push("interrupted".to_owned());
        }
        words.join(" · ")
    }
}

/// One bar: an iteration, or several that are too short to be told apart.
struct Bar {
    from: f32,
    to: f32,
    tokens: Option<u64>,
    mark: Tone,
    count: u32,
    first: String,
    last: String,
}

pub fn timeline(of: &Timeline<'_>, clock: &Clock, width: f32, height: f32) -> Picture {
    let mut out = Picture::new("Iterations over time", width, height);
    let floor = height - BOTTOM;
    let Some((start, end)) = reach(of, clock) else {
        let place = Point::new(LEFT, floor);
        out.text(place, "no iteration yet", Ink::Muted, Anchor::Start);
        return out;
    };
    let axis = Axis::new(start, end, LEFT, width - LEFT - RIGHT);
    axis.draw(clock, TOP, floor, &mut out);
    for wait in of.waits {
        out.shapes.push(band(wait, &axis, floor, clock));
    }
    let bars = bars(of, &axis, clock);
    let most = bars.iter().filter_map(|bar| bar.tokens).max().unwrap_or(0);
    for bar in &bars {
        out.shapes.push(draw(bar, most, floor));
    }
    let ground = vec![Point::new(LEFT, floor), Point::new(width - RIGHT, floor)];
    out.line(ground, Stroke::solid(Ink::Muted, 1.0));
    if most > 0 {
        let words = format!("tallest: {} tokens", show_tokens(Some(most)));
        out.text(Point::new(LEFT, 13.0), words, Ink::Muted, Anchor::Start);
    }
    cost(of, &axis, floor, &mut out);
    out
}

fn reach(of: &Timeline<'_>, clock: &Clock) -> Option<(Timestamp, Timestamp)> {
    let starts = of.rows.iter().chain(of.current).map(|row| row.started_at);
    let start = starts.chain(of.waits.iter().map(|wait| wait.start)).min()?;
    let ends = of.rows.iter().map(HistoryRow::ended_at);
    let waits = of.waits.iter().map(|wait| wait.end.unwrap_or(clock.now));
    let end = ends.chain(waits).chain(of.current.map(|_| clock.now)).max();
    Some((start, end.unwrap_or(clock.now)))
}

fn band(wait: &Span, axis: &Axis, floor: f32, clock: &Clock) -> Shape {
    let (from, to) = (axis.x(wait.start), axis.x(wait.end.unwrap_or(clock.now)));
    Shape::Rect {
        at: Point::new(from, TOP),
        width: (to - from).max(1.0),
        height: floor - TOP,
        radius: 0.0,
        fill: Some(wait.mark.inks().1),
        stroke: None,
        tip: Some(wait.tip.clone()),
    }
}

fn bars(of: &Timeline<'_>, axis: &Axis, clock: &Clock) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let over = of.rows.iter().map(|row| (row, row.ended_at()));
    for (row, end) in over.chain(of.current.map(|row| (row, clock.now))) {
        let (from, to) = (axis.x(row.started_at), axis.x(end));
        match bars.last_mut() {
            Some(last) if to - last.from < LEAST => last.join(row, to),
            _ => bars.push(Bar {
                from,
                to: to.max(from + LEAST),
                tokens: row.tokens,
                mark: row.mark(),
                count: 1,
                first: row.tip(),
                last: String::new(),
            }),
        }
    }
    bars
}

impl Bar {
    fn join(&mut self, row: &HistoryRow, to: f32) {
        self.to = self.to.max(to);
        self.tokens = self.tokens.max(row.tokens);
        if row.mark() == Tone::Bad || self.mark == Tone::Strong {
            self.mark = row.mark();
        }
        self.count += 1;
        self.last = row.tip();
    }

    fn tip(&self) -> String {
        match self.count {
            1 => self.first.clone(),
            count => format!(
                "{count} iterations, too short to show separately:\n{}\n…\n{}",
                self.first, self.last
            ),
        }
    }
}

fn draw(bar: &Bar, most: u64, floor: f32) -> Shape {
    let room = floor - TOP;
    let height = match bar.tokens {
        // Nobody told: half the room, and an empty bar with a broken edge, so that it says nothing.
        None => room * 0.5,
        Some(tokens) => {
            let part = tokens as f64 / most.max(1) as f64;
            (room * part as f32).max(4.0)
        }
    };
    let (ink, soft) = bar.mark.inks();
    let wide = bar.to - bar.from > 4.0;
    // A hair between neighbours, so that each is seen. The line of cost is seen through soft
    // inks; a bar too narrow for an edge is all edge.
    let gap = if wide { 1.0 } else { 0.0 };
    let edge = match bar.tokens {
        Some(_) => Stroke::solid(ink, 1.0),
        None => Stroke::dashed(ink, 1.0),
    };
    Shape::Rect {
        at: Point::new(bar.from, floor - height),
        width: bar.to - bar.from - gap,
        height,
        radius: if bar.to - bar.from > 6.0 { 2.0 } else { 0.0 },
        fill: match (wide, bar.tokens) {
            (false, _) => Some(ink),
            (true, Some(_)) => Some(soft),
            (true, None) => None,
        },
        stroke: wide.then_some(edge),
        tip: Some(bar.tip()),
    }
}

/// The line of cumulative cost, in steps at the ends of iterations, and the budget.
fn cost(of: &Timeline<'_>, axis: &Axis, floor: f32, out: &mut Picture) {
    let known: Vec<(Timestamp, Cost)> = of
        .rows
        .iter()
        .filter_map(|row| Some((row.ended_at(), row.cost?)))
        .collect();
    let total: u64 = known.iter().map(|(_, cost)| cost.micros).sum();
    let Some(first) = of.rows.first().filter(|_| total > 0) else {
        return;
    };
    let top = total.max(of.budget_micros.unwrap_or(0));
    let y = |micros: u64| floor - (floor - TOP - 6.0) * (micros as f64 / top as f64) as f32;
    let mut points = vec![Point::new(axis.x(first.started_at), floor)];
    let mut sum = 0;
    for (at, cost) in &known {
        let x = axis.x(*at);
        let near = points.len() > 2 && points.last().is_some_and(|last| x - last.x < 1.0);
        if !near {
            points.push(Point::new(x, y(sum)));
            points.push(Point::new(x, y(sum)));
        }
        sum += cost.micros;
        if let Some(last) = points.last_mut() {
            last.y = y(sum);
        }
    }
    let right = out.width - RIGHT;
    points.push(Point::new(right, y(total)));
    let estimated = known.iter().any(|(_, cost)| cost.estimated);
    let shown = show_cost(Some(Cost {
        micros: total,
        estimated,
    }));
    out.shapes.push(Shape::Line {
        points,
        stroke: Stroke::solid(Ink::Money, 1.5),
        tip: Some(format!("cost so far: {shown}")),
    });
    let place = Point::new(right + 6.0, y(total) + 4.0);
    out.text(place, shown, Ink::Money, Anchor::Start);
    if let Some(budget) = of.budget_micros {
        let y = y(budget);
        let line = vec![Point::new(LEFT, y), Point::new(right, y)];
        out.line(line, Stroke::dashed(Ink::Money, 1.0));
        let limit = Cost {
            micros: budget,
            estimated: false,
        };
        let words = format!("budget {}", show_cost(Some(limit)));
        out.text(Point::new(right, y - 4.0), words, Ink::Money, Anchor::End);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::GateRow;
    use descartes_kernel::event::{ExitStatus, GateEnd};
    use jiff::tz::TimeZone;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_767_000_000 + secs).unwrap()
    }

    fn clock(secs: i64) -> Clock {
        Clock {
            now: at(secs),
            zone: TimeZone::UTC,
        }
    }

    fn row(iteration: u32, start: i64, secs: u64, tokens: Option<u64>) -> HistoryRow {
        HistoryRow {
            iteration,
            run: u64::from(iteration),
            started_at: at(start),
            duration_ms: secs * 1000,
            exit: Some(0),
            ended_by: Some(EndedBy::Exit),
            claimed: true,
            verdict: Some(Verdict::Worked),
            tokens,
            cost: tokens.map(|tokens| Cost {
                micros: tokens * 10,
                estimated: false,
            }),
            ..HistoryRow::default()
        }
    }

    fn red(mut row: HistoryRow) -> HistoryRow {
        row.verdict = Some(Verdict::Refused);
        row.gates.push(GateRow {
            command: "make test".to_owned(),
            end: GateEnd::Exit(ExitStatus::Code(1)),
            duration_ms: 0,
            tail: String::new(),
        });
        row
    }

    /// Place, size, the ink of the edge or else of the ground, and tip.
    fn rects(picture: &Picture) -> Vec<(f32, f32, f32, Ink, String)> {
        let rect = |shape: &Shape| match shape {
            Shape::Rect {
                at,
                width,
                height,
                fill,
                stroke,
                tip: Some(tip),
                ..
            } => {
                let ink = stroke.map(|stroke| stroke.ink).or(*fill)?;
                Some((at.x, *width, *height, ink, tip.clone()))
            }
            _ => None,
        };
        picture.shapes.iter().filter_map(rect).collect()
    }

    #[test]
    fn width_is_duration_height_is_tokens_red_is_red_and_gaps_are_waits() {
        let rows = [red(row(1, 0, 100, Some(500))), row(2, 200, 200, Some(1000))];
        let waits = [Span {
            start: at(100),
            end: Some(at(200)),
            mark: Tone::Warn,
            tip: "usage limit".to_owned(),
        }];
        let of = Timeline {
            rows: &rows,
            current: None,
            waits: &waits,
            budget_micros: Some(30_000),
        };
        // 400 units of plot for 400 seconds, 100 units of height.
        let picture = timeline(&of, &clock(400), 486.0, 146.0);
        let rects = rects(&picture);
        assert_eq!(
            (rects[0].0, rects[0].1, rects[0].3),
            (112.0, 100.0, Ink::WarnSoft)
        );
        assert_eq!(
            (rects[1].0, rects[1].1, rects[1].2, rects[1].3),
            (12.0, 99.0, 50.0, Ink::Bad)
        );
        assert!(rects[1].4.contains("red: make test"));
        assert_eq!(
            (rects[2].0, rects[2].2, rects[2].3),
            (212.0, 100.0, Ink::Accent)
        );
        let cost = picture.shapes.iter().find_map(|shape| match shape {
            Shape::Line {
                points,
                tip: Some(_),
                ..
            } => Some(points),
            _ => None,
        });
        // Half of the budget is half of the height.
        let cost = cost.unwrap();
        assert_eq!(cost.last().unwrap().y, 122.0 - 94.0 / 2.0);
        let words: Vec<&str> = picture
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert!(words.contains(&"budget $0.03"), "{words:?}");
    }

    #[test]
    fn tokens_that_nobody_told_make_an_empty_bar_and_no_cost() {
        let rows = [row(1, 0, 10, None)];
        let of = Timeline {
            rows: &rows,
            current: None,
            waits: &[],
            budget_micros: None,
        };
        let picture = timeline(&of, &clock(10), 300.0, 146.0);
        assert!(picture.shapes.iter().any(|shape| matches!(
            shape,
            Shape::Rect { fill: None, stroke: Some(edge), .. } if *edge == Stroke::dashed(Ink::Accent, 1.0)
        )));
        assert!(!picture.shapes.iter().any(|shape| matches!(
            shape,
            Shape::Line { stroke, .. } if stroke.ink == Ink::Money
        )));
    }

    #[test]
    fn a_hundred_thousand_iterations_are_no_more_shapes_than_places() {
        let mut rows: Vec<HistoryRow> = (0..100_000)
            .map(|n| row(n + 1, i64::from(n) * 2, 1, Some(10)))
            .collect();
        rows[50_000] = red(rows[50_000].clone());
        let of = Timeline {
            rows: &rows,
            current: None,
            waits: &[],
            budget_micros: None,
        };
        let picture = timeline(&of, &clock(200_000), 886.0, 146.0);
        let rects = rects(&picture);
        assert!(rects.len() <= 410, "{}", rects.len());
        assert_eq!(rects.iter().filter(|rect| rect.3 == Ink::Bad).count(), 1);
        let points: usize = picture
            .shapes
            .iter()
            .map(|shape| match shape {
                Shape::Line { points, .. } => points.len(),
                _ => 0,
            })
            .sum();
        assert!(points < 3_000, "{points}");
    }
}
