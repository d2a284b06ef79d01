//! Small pieces of a page. Every text of the loop comes in through [`text`]: cleaned and masked; markup it
//! never becomes, since the page is made by a macro that escapes.

use descartes_text::display::{self, Colours, Mask};
use descartes_views::tone::{Cell, Tone};
use maud::{Markup, Render, html};

/// A text of the loop made safe: no colours, no secrets.
pub fn text(raw: &str) -> String {
    // A text ends where it ends: the line end of its last line is none of it.
    display::text(raw.trim_end_matches(['\n', '\r']), Colours::Drop)
}

/// Masks what looks like a secret in a whole page, pictures and tips included.
pub fn mask(page: &str) -> String {
    let (mut mask, mut out) = (Mask::default(), Vec::with_capacity(page.len()));
    mask.push(page.as_bytes(), &mut out);
    mask.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A section, left out where it says nothing.
pub fn section(title: &str, body: &Markup) -> Markup {
    html! {
        @if !body.0.trim().is_empty() {
            section { "\n" h2 { (title) } "\n" (body) } "\n"
        }
    }
}

/// Names and values, one a row.
pub fn facts(rows: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts { "\n" @for (name, value) in rows { div { dt { (name) } dd { (value) } } "\n" } } "\n"
    }
}

/// A block of text as it was printed; long ones are folded up.
pub fn block(raw: &str, head: &str) -> Markup {
    const LONG: usize = 24;
    let lines = raw.trim_end().lines().count();
    let pre = html! { pre { (text(raw.trim_end())) } };
    html! {
        @if lines > LONG {
            details { summary { (text(head)) " (" (lines) " lines)" } (pre) }
        } @else {
            (pre)
        }
        "\n"
    }
}

/// A word in a colour.
pub fn pill(Cell { tone, text: words }: &Cell) -> Markup {
    let class = match tone {
        Tone::Normal => "",
        Tone::Strong => "work",
        Tone::Dim => "muted",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
    };
    html! { span class={ "pill " (class) } { (text(words)) } }
}

/// A table, left out where it has no rows. Titles stand as what is below.
pub fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<Td>>) -> Markup {
    let rows: Vec<Vec<Td>> = rows.into_iter().collect();
    let Some(first) = rows.first() else {
        return html! {};
    };
    html! {
        div.scroll {
            table {
                tr { @for (title, Td(class, _)) in titles.iter().zip(first) { th class=[class] { (title) } } } "\n"
                @for row in &rows {
                    tr { @for Td(class, cell) in row { td class=[class] { (cell) } } } "\n"
                }
            }
        }
        "\n"
    }
}

/// A cell of a table, with the class that it has.
pub struct Td(Option<&'static str>, Markup);

impl Td {
    pub fn markup(markup: Markup) -> Self {
        Self(None, markup)
    }

    /// A text of the loop, which may be long.
    pub fn text(raw: &str) -> Self {
        Self(Some("t"), text(raw).render())
    }

    pub fn number(number: impl ToString) -> Self {
        Self(Some("n"), number.to_string().render())
    }

    pub fn time(time: &str) -> Self {
        Self(Some("when"), time.render())
    }
}

/// Code in a line.
pub fn code(raw: &str) -> Markup {
    html! { code { (text(raw)) } }
}

/// The whole page's own style; colours are the pictures' inks.
pub const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_never_markup_and_holds_no_colours_and_no_secrets() {
        let key = format!("sk-ant-{}", "a1B2".repeat(10));
        let raw = format!("\u{1b}[31m</pre><script>alert('x')</script> {key}\u{1b}]0;t\u{7}\n");
        assert_eq!(
            code(&raw).into_string(),
            "<code>&lt;/pre&gt;&lt;script&gt;alert('x')&lt;/script&gt; sk-ant-***</code>"
        );
        assert!(mask(&format!("<title>{key}</title>")).contains("<title>sk-ant-***</title>"));
    }

    #[test]
    fn masking_leaves_our_own_style_alone() {
        assert_eq!(mask(STYLE), STYLE);
        let sheet = descartes_views::picture::style_sheet();
        assert_eq!(mask(&sheet), sheet);
    }
}
