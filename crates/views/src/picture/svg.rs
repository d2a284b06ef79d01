//! A picture as SVG: escaped, with nothing from outside, light and dark by style variables.

use descartes_text::display::{self, Colours};
use std::fmt::Write;

use super::{Anchor, Dash, Ink, Picture, Shape, Stroke, Theme, Weight};

/// Where the image is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A file of its own, with its colours and ground.
    Document,
    /// In a page that holds [`style_sheet`].
    Inline,
}

/// The image. Renderers that know no style variables see the light colours.
pub fn svg(picture: &Picture, frame: Frame) -> String {
    let (width, height) = (number(picture.width), number(picture.height));
    let title = escape(&picture.title);
    let size = match frame {
        Frame::Document => format!("width=\"{width}\" height=\"{height}\" "),
        // No style of its own: a page may forbid those. Its style sheet says how wide it may get.
        Frame::Inline => format!("width=\"{width}\" "),
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"descartes\" {size}\
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\">\n"
    );
    if frame == Frame::Document {
        let paper = fill(Some(Ink::Paper));
        let _ = writeln!(out, "<style>{}</style>", style_sheet());
        let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" {paper}/>");
    }
    for shape in &picture.shapes {
        draw(shape, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// The colours of all inks as style variables, for both themes, and the classes that use them.
pub fn style_sheet() -> String {
    let variables = |theme| {
        let one = |ink: Ink| format!("--ink-{}:{};", ink.name(), ink.hex(theme));
        Ink::all().map(one).collect::<String>()
    };
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    let mut out = format!(
        ":root{{{light}color-scheme:light dark}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    );
    for ink in Ink::all() {
        let name = ink.name();
        let _ = write!(
            out,
            "svg.descartes .f-{name}{{fill:var(--ink-{name})}}\
             svg.descartes .s-{name}{{stroke:var(--ink-{name})}}"
        );
    }
    out
}

fn draw(shape: &Shape, out: &mut String) {
    match shape {
        Shape::Rect {
            at,
            width,
            height,
            radius,
            fill: inside,
            stroke: edge,
            tip,
        } => {
            let (fill, stroke) = both(*inside, *edge);
            let head = format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" {fill}{stroke}",
                number(at.x),
                number(at.y),
                number(width.max(0.0)),
                number(height.max(0.0)),
                number(*radius),
            );
            close("rect", &head, tip.as_deref(), out);
        }
        Shape::Line {
            points,
            stroke,
            tip,
        } => {
            let (fill, stroke) = both(None, Some(*stroke));
            let points: Vec<String> = points
                .iter()
                .map(|point| format!("{},{}", number(point.x), number(point.y)))
                .collect();
            let head = format!(
                "<polyline points=\"{}\" {fill}{stroke} stroke-linejoin=\"round\"",
                points.join(" ")
            );
            close("polyline", &head, tip.as_deref(), out);
        }
        Shape::Text {
            at,
            text,
            size,
            ink,
            weight,
            anchor,
        } => {
            let weight = match weight {
                Weight::Regular => "",
                Weight::Bold => " font-weight=\"600\"",
            };
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{}\" {}{weight}{anchor}>{}</text>",
                number(at.x),
                number(at.y),
                number(*size),
                fill(Some(*ink)),
                escape(text)
            );
        }
    }
}

fn close(name: &str, head: &str, tip: Option<&str>, out: &mut String) {
    let _ = match tip {
        None => writeln!(out, "{head}/>"),
        Some(tip) => writeln!(out, "{head}><title>{}</title></{name}>", escape(tip)),
    };
}

fn fill(ink: Option<Ink>) -> String {
    match ink {
        None => "fill=\"none\"".to_owned(),
        Some(ink) => format!(
            "class=\"f-{}\" fill=\"{}\"",
            ink.name(),
            ink.hex(Theme::Light)
        ),
    }
}

/// Fill and stroke share one class attribute.
fn both(inside: Option<Ink>, edge: Option<Stroke>) -> (String, String) {
    let Some(edge) = edge else {
        return (fill(inside), String::new());
    };
    let class = match inside {
        None => format!("s-{}", edge.ink.name()),
        Some(ink) => format!("f-{} s-{}", ink.name(), edge.ink.name()),
    };
    let colour = inside.map_or_else(|| "none".to_owned(), |ink| ink.hex(Theme::Light));
    let dash = match edge.dash {
        Dash::Solid => "",
        Dash::Dashed => " stroke-dasharray=\"4 3\"",
    };
    let stroke = format!(
        " stroke=\"{}\" stroke-width=\"{}\"{dash}",
        edge.ink.hex(Theme::Light),
        number(edge.width)
    );
    (format!("class=\"{class}\" fill=\"{colour}\""), stroke)
}

/// At most one decimal, and none where it says nothing.
fn number(value: f32) -> String {
    let finite = if value.is_finite() { value } else { 0.0 };
    let text = format!("{finite:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Text as XML and HTML allow it: cleaned and masked, marks as entities.
pub fn escape(text: &str) -> String {
    let text = display::text(text, Colours::Drop);
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Point;

    fn hostile() -> Picture {
        let mut picture = Picture::new("<script>\"'&", 100.0, 50.0);
        picture.shapes.push(Shape::Rect {
            at: Point::new(f32::NAN, 1.25),
            width: -4.0,
            height: 10.0,
            radius: 0.0,
            fill: Some(Ink::Bad),
            stroke: Some(Stroke::dashed(Ink::Muted, 1.0)),
            tip: Some("</title><script>alert(1)</script>".to_owned()),
        });
        picture.text(
            Point::new(0.0, 0.0),
            "]]><b onload=\"x\">\u{1b}[31m\u{202e}",
            Ink::Text,
            Anchor::End,
        );
        picture
    }

    #[test]
    fn nothing_that_a_text_holds_becomes_markup() {
        for frame in [Frame::Document, Frame::Inline] {
            let image = svg(&hostile(), frame);
            assert!(!image.contains("<script") && !image.contains("<b "));
            assert!(!image.contains('\u{1b}') && !image.contains('\u{202e}'));
            assert!(!image.contains("NaN"));
            assert!(image.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
            assert_eq!(image.matches('<').count(), image.matches('>').count());
        }
    }

    #[test]
    fn a_document_brings_its_colours_and_an_inline_one_takes_the_pages() {
        let document = svg(&hostile(), Frame::Document);
        assert!(document.contains("prefers-color-scheme:dark"));
        assert!(document.contains("class=\"f-bad s-muted\" fill=\"#cf3f3f\""));
        let inline = svg(&hostile(), Frame::Inline);
        assert!(!inline.contains("<style>"));
        for ink in Ink::all() {
            assert!(style_sheet().contains(&format!("--ink-{}:", ink.name())));
        }
    }
}
