//! Small pieces of pages. Text of others comes in through [`text`]: cleaned and masked; markup it
//! never becomes, since the page is made by a macro that escapes.

use descartes_text::display::{self, Colours};
use descartes_views::tone::{Cell, Tone};
use descartes_views::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

/// Text of others, on as many lines as it has.
pub fn text(raw: &str) -> String {
    display::text(raw.trim_end_matches(['\n', '\r']), Colours::Drop)
}

/// The same on one line.
pub fn line(raw: &str) -> String {
    display::one_line(raw)
}

pub fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Normal => "normal",
        Tone::Strong => "work",
        Tone::Dim => "dim",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
    }
}

/// A word in a colour.
pub fn pill(cell: &Cell) -> Markup {
    html! { span class={ "pill " (class(cell.tone)) } { (line(&cell.text)) } }
}

/// A text in a colour.
pub fn toned(cell: &Cell) -> Markup {
    html! { span class={ "t-" (class(cell.tone)) } { (line(&cell.text)) } }
}

pub fn code(raw: &str) -> Markup {
    html! { code { (line(raw)) } }
}

/// A block of output.
pub fn block(raw: &str) -> Markup {
    html! { pre tabindex="0" { (text(raw.trim_end())) } }
}

/// Time that passes; the script keeps it current.
pub fn since(at: Timestamp, now: Timestamp) -> Markup {
    let shown = words::seconds(words::between(at, now));
    html! { time datetime=(at) data-since=(at.as_millisecond()) { (shown) } }
}

/// Time that is left.
pub fn until(at: Timestamp, now: Timestamp) -> Markup {
    let shown = words::left(now, at);
    html! { time datetime=(at) data-until=(at.as_millisecond()) { (shown) } }
}

/// A moment, with its day where that is another.
pub fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let shown = words::clock(at, now, &TimeZone::system());
    html! { time datetime=(at) { (shown) } }
}

/// A bar; without a limit there is nothing to fill.
pub fn bar(fraction: Option<f64>, label: &str) -> Markup {
    html! {
        @if let Some(fraction) = fraction {
            progress max="1000" value=((fraction * 1000.0).round() as u32) aria-label=(label) {}
        }
    }
}

/// Names and values.
pub fn facts(rows: Vec<(&'static str, Markup)>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in rows {
                // Paths and command lines are long.
                div.wide[matches!(name, "agent" | "project")] { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A section with a heading, left out where there is nothing to say.
pub fn section(title: &str, body: Option<Markup>) -> Markup {
    html! {
        @if let Some(body) = body {
            section { h2 { (title) } (body) }
        }
    }
}
