//! Plots of the page: what went wrong as bars, and how times are spread, beside their floors.

use descartes_views::picture::{Anchor, Ink, Picture, Point, Shape, Stroke, Weight};

use crate::lab::stats::{median, quantile};

const WIDTH: f32 = 860.0;
const EDGE: f32 = 14.0;
/// Where names end and what is drawn begins.
const NAMES: f32 = 400.0;
const LINE: f32 = 22.0;
const TEXT: f32 = 12.0;

/// A name, how many went wrong, of how many.
pub type Count = (String, u64, u64);

/// Counts of several questions, one below the other.
pub fn counts(questions: &[(&str, Vec<Count>)]) -> Picture {
    let mut picture =
        sheet("Of the cases that each tool can be given at all, those that went wrong");
    let mut y = EDGE;
    let full = WIDTH - NAMES - 90.0;
    for (question, lines) in questions {
        y += LINE;
        text(
            &mut picture,
            Point::new(EDGE, y),
            question,
            Weight::Bold,
            Anchor::Start,
        );
        y += 6.0;
        for (name, wrong, of) in lines {
            let part = *wrong as f32 / (*of).max(1) as f32;
            name_of(&mut picture, y, name);
            block(
                &mut picture,
                (NAMES, y + 4.0),
                (full, LINE - 8.0),
                Ink::Faint,
            );
            let said = format!("{wrong} of {of}");
            if *wrong > 0 {
                let width = (full * part).max(2.0);
                block(
                    &mut picture,
                    (NAMES, y + 4.0),
                    (width, LINE - 8.0),
                    Ink::Bad,
                );
            }
            let at = Point::new(NAMES + full + 8.0, y + LINE - 7.0);
            text(&mut picture, at, &said, Weight::Regular, Anchor::Start);
            y += LINE;
        }
        y += 8.0;
    }
    picture.height = y + EDGE;
    picture
}

/// Times in milliseconds under one name.
pub struct Times {
    /// What was timed.
    pub name: String,
    /// As it was.
    pub ours: Vec<f64>,
    /// The same without us.
    pub floor: Vec<f64>,
    /// What it may take.
    pub bar: Option<f64>,
}

/// How times are spread, on one scale of tens.
pub fn times(title: &str, rows: &[Times]) -> Picture {
    let mut picture = sheet(title);
    let all = rows
        .iter()
        .flat_map(|row| row.ours.iter().chain(&row.floor).chain(&row.bar));
    let scale = Scale::over(all.copied());
    let top = EDGE + LINE + 8.0;
    let bottom = top + rows.len() as f32 * LINE;
    key(&mut picture);
    scale.draw(&mut picture, top, bottom);
    for (row, number) in rows.iter().zip(0_u16..) {
        let y = top + f32::from(number) * LINE;
        name_of(&mut picture, y, &row.name);
        spread(&mut picture, &scale, &row.floor, y + 14.0, Ink::Muted);
        spread(&mut picture, &scale, &row.ours, y + 7.0, Ink::Accent);
        if let Some(bar) = row.bar {
            let x = scale.x(bar);
            let points = vec![Point::new(x, y + 2.0), Point::new(x, y + LINE - 3.0)];
            line(&mut picture, points, Stroke::solid(Ink::Bad, 2.0));
        }
    }
    picture.height = bottom + LINE + EDGE;
    picture
}

/// From the least to the most a thin line, from the tenth to the ninetieth of a hundred a thick
/// one, and the middle.
fn spread(picture: &mut Picture, scale: &Scale, seen: &[f64], y: f32, ink: Ink) {
    if seen.is_empty() {
        return;
    }
    let at = |part: f64| scale.x(quantile(seen, part));
    let flat = |from: f32, to: f32| vec![Point::new(from, y), Point::new(to.max(from + 1.0), y)];
    line(picture, flat(at(0.0), at(1.0)), Stroke::solid(ink, 1.0));
    line(picture, flat(at(0.1), at(0.9)), Stroke::solid(ink, 5.0));
    let middle = scale.x(median(seen));
    let points = vec![Point::new(middle, y - 4.0), Point::new(middle, y + 4.0)];
    line(picture, points, Stroke::solid(Ink::Text, 1.5));
}

fn key(picture: &mut Picture) {
    let mut x = NAMES;
    for (ink, words) in [
        (Ink::Accent, "seen (p10–p90, least–most, middle)"),
        (Ink::Muted, "floor"),
        (Ink::Bad, "bar"),
    ] {
        block(picture, (x, EDGE + 3.0), (12.0, 8.0), ink);
        let at = Point::new(x + 17.0, EDGE + 11.0);
        text(picture, at, words, Weight::Regular, Anchor::Start);
        x += 30.0 + words.chars().count() as f32 * 6.6;
    }
}

/// Milliseconds, each ten times the last.
struct Scale {
    least: f64,
    decades: f64,
}

impl Scale {
    fn over(all: impl Iterator<Item = f64>) -> Self {
        let logs = all.filter(|time| *time > 0.0).map(f64::log10);
        let (least, most) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), log| {
            (least.min(log), most.max(log))
        });
        match least.is_finite() {
            true => Self {
                least: least.floor(),
                decades: (most.ceil() - least.floor()).max(1.0),
            },
            false => Self {
                least: 0.0,
                decades: 1.0,
            },
        }
    }

    fn x(&self, time: f64) -> f32 {
        let part = (time.max(f64::MIN_POSITIVE).log10() - self.least) / self.decades;
        NAMES + (WIDTH - NAMES - EDGE * 2.0) * part.clamp(0.0, 1.0) as f32
    }

    fn draw(&self, picture: &mut Picture, top: f32, bottom: f32) {
        for decade in 0..=self.decades as i32 {
            let time = 10_f64.powf(self.least + f64::from(decade));
            let x = self.x(time);
            let points = vec![Point::new(x, top), Point::new(x, bottom)];
            line(picture, points, Stroke::solid(Ink::Faint, 1.0));
            let words = match time >= 1000.0 {
                true => format!("{} s", time / 1000.0),
                false => format!("{time} ms"),
            };
            let at = Point::new(x, bottom + 16.0);
            text(picture, at, &words, Weight::Regular, Anchor::Middle);
        }
    }
}

fn sheet(title: &str) -> Picture {
    Picture {
        title: title.to_owned(),
        width: WIDTH,
        ..Picture::default()
    }
}

fn name_of(picture: &mut Picture, y: f32, name: &str) {
    let most = ((NAMES - EDGE * 2.0) / (TEXT * 0.53)) as usize;
    let mut short: String = name.chars().take(most).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    let at = Point::new(NAMES - 10.0, y + LINE - 7.0);
    text(picture, at, &short, Weight::Regular, Anchor::End);
}

fn text(picture: &mut Picture, at: Point, words: &str, weight: Weight, anchor: Anchor) {
    picture.shapes.push(Shape::Text {
        at,
        text: words.to_owned(),
        size: TEXT,
        ink: Ink::Text,
        weight,
        anchor,
    });
}

fn line(picture: &mut Picture, points: Vec<Point>, stroke: Stroke) {
    picture.shapes.push(Shape::Line {
        points,
        stroke,
        tip: None,
    });
}

fn block(picture: &mut Picture, (x, y): (f32, f32), (width, height): (f32, f32), ink: Ink) {
    picture.shapes.push(Shape::Rect {
        at: Point::new(x, y),
        width,
        height,
        radius: 2.0,
        fill: Some(ink),
        stroke: None,
        tip: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_goes_by_tens_and_keeps_everything_inside() {
        let scale = Scale::over([0.4, 30.0, 700.0].into_iter());
        assert_eq!((scale.least, scale.decades), (-1.0, 4.0));
        assert!(scale.x(0.4) > scale.x(0.1) && scale.x(700.0) < scale.x(1000.0));
        assert_eq!(scale.x(0.0), NAMES);
        assert_eq!(Scale::over(std::iter::empty()).decades, 1.0);
    }

    #[test]
    fn every_row_and_every_tool_is_named() {
        let row = Times {
            name: "SIGTERM <b>".to_owned(),
            ours: vec![3.0, 4.0, 9.0],
            floor: vec![1.0],
            bar: Some(200.0),
        };
        let picture = times("Stopping", &[row]);
        let named = |picture: &Picture, words: &str| {
            let is = |shape: &Shape| matches!(shape, Shape::Text { text, .. } if text == words);
            picture.shapes.iter().any(is)
        };
        assert!(named(&picture, "SIGTERM <b>") && named(&picture, "1 ms"));
        let lines = vec![
            ("bash loop".to_owned(), 2, 7),
            ("descartes".to_owned(), 0, 7),
        ];
        let picture = counts(&[("Called done, and was not", lines)]);
        assert!(named(&picture, "2 of 7") && named(&picture, "0 of 7"));
    }
}
