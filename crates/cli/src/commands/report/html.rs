//! Small pieces of a page. Every text of the loop comes in through [`text`].

use descartes_text::display::Mask;
use descartes_views::picture::escape;
use descartes_views::tone::{Cell, Tone};

/// A text of the loop made safe: no colours, no secrets, no markup.
pub fn text(raw: &str) -> String {
    // A text ends where it ends: the line end of its last line is none of it.
    escape(raw.trim_end_matches(['\n', '\r']))
}

/// Masks what looks like a secret in a whole page, pictures and tips included.
pub fn mask(page: &str) -> String {
    let (mut mask, mut out) = (Mask::default(), Vec::with_capacity(page.len()));
    mask.push(page.as_bytes(), &mut out);
    mask.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A section, left out where it says nothing.
pub fn section(title: &str, body: &str) -> String {
    match body.trim().is_empty() {
        true => String::new(),
        false => format!("<section>\n<h2>{}</h2>\n{body}</section>\n", escape(title)),
    }
}

/// Names and values, one a row; values are markup already.
pub fn facts(rows: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        format!("<div><dt>{}</dt><dd>{value}</dd></div>\n", escape(name))
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<dl class=\"facts\">\n{rows}</dl>\n")
}

/// A block of text as it was printed; long ones are folded up.
pub fn block(raw: &str, head: &str) -> String {
    const LONG: usize = 24;
    let lines = raw.trim_end().lines().count();
    let pre = format!("<pre>{}</pre>", text(raw.trim_end()));
    match lines > LONG {
        true => format!(
            "<details><summary>{} ({lines} lines)</summary>{pre}</details>\n",
            text(head)
        ),
        false => format!("{pre}\n"),
    }
}

/// A word in a colour.
pub fn pill(Cell { tone, text: words }: &Cell) -> String {
    let class = match tone {
        Tone::Normal => "",
        Tone::Strong => "work",
        Tone::Dim => "muted",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
    };
    format!("<span class=\"pill {class}\">{}</span>", text(words))
}

/// A table, left out where it has no rows; cells are markup already. Titles stand as what is below.
pub fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<Td>>) -> String {
    let mut rows = rows.into_iter().peekable();
    let Some(first) = rows.peek() else {
        return String::new();
    };
    let titles = titles.iter().zip(first);
    let titles = titles.map(|(title, Td(class, _))| format!("<th{class}>{title}</th>"));
    let titles: String = titles.collect();
    let rows = rows.map(|row| {
        let cells = row
            .iter()
            .map(|Td(class, cell)| format!("<td{class}>{cell}</td>"));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    let rows: String = rows.collect();
    format!("<div class=\"scroll\"><table><tr>{titles}</tr>\n{rows}</table></div>\n")
}

/// A cell of a table, with the class that it has.
pub struct Td(&'static str, String);

impl Td {
    pub fn markup(markup: String) -> Self {
        Self("", markup)
    }

    /// A text of the loop, which may be long.
    pub fn text(raw: &str) -> Self {
        Self(" class=\"t\"", text(raw))
    }

    pub fn number(number: impl ToString) -> Self {
        Self(" class=\"n\"", number.to_string())
    }

    pub fn time(time: String) -> Self {
        Self(" class=\"when\"", time)
    }
}

/// Code in a line.
pub fn code(raw: &str) -> String {
    format!("<code>{}</code>", text(raw))
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
        let got = text(&raw);
        assert_eq!(
            got,
            "&lt;/pre&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; sk-ant-***"
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
