//! Drawing on a terminal without owning it: lines scroll above a region that is erased and
//! drawn anew. No mode of the terminal is changed, so that there is nothing to restore even
//! when the process is killed: at worst the region stays as text.

use descartes_text::display::{self, Colours};

use super::width::width;

/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// What stands at the bottom of the terminal now.
#[derive(Debug, Default)]
pub struct Screen {
    region: Vec<Row>,
}

impl Screen {
    /// The bytes that put `above` over the region and draw it anew, in one piece; nothing if
    /// nothing would change.
    pub fn frame(&mut self, above: &[String], region: Vec<Row>, columns: u16) -> String {
        if above.is_empty() && region == self.region {
            return String::new();
        }
        let mut out = self.erase(columns);
        for line in above {
            out.push_str(line);
            out.push('\n');
        }
        let rows: Vec<&str> = region.iter().map(|row| row.painted.as_str()).collect();
        out.push_str(&rows.join("\n"));
        self.region = region;
        out
    }

    /// The bytes that take the region away; the cursor is where it began.
    pub fn erase(&mut self, columns: u16) -> String {
        let rows = self.rows(columns);
        self.region.clear();
        match rows {
            0 => String::new(),
            1 => format!("\r{ERASE_BELOW}"),
            rows => format!("\r\x1b[{}A{ERASE_BELOW}", rows - 1),
        }
    }

    /// Rows that the region takes: a terminal that became narrower has wrapped its lines.
    fn rows(&self, columns: u16) -> usize {
        let rows = |row: &Row| row.width.div_ceil(usize::from(columns).max(1)).max(1);
        self.region.iter().map(rows).sum()
    }
}

/// A line of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// With its colours.
    pub painted: String,
    /// Columns that it takes.
    pub width: usize,
}

impl Row {
    /// Measures a painted line.
    pub fn new(painted: String) -> Self {
        let width = width(&display::text(&painted, Colours::Drop));
        let painted = display::text(&painted, Colours::Keep);
        Self { painted, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Row> {
        lines
            .iter()
            .map(|line| Row::new((*line).to_owned()))
            .collect()
    }

    /// What a person sees after these frames.
    fn shown(columns: u16, frames: &[String]) -> String {
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let mut terminal = vt100::Parser::new(size(10), size(columns), 0);
        for frame in frames {
            terminal.process(frame.replace('\n', "\r\n").as_bytes());
        }
        terminal.screen().contents()
    }

    #[test]
    fn output_scrolls_above_a_region_that_stays() {
        let mut screen = Screen::default();
        let mut frames = vec![screen.frame(&[], rows(&["one", "two"]), 40)];
        for number in 1..=20 {
            frames.push(screen.frame(&[format!("out {number}")], rows(&["one", "two"]), 40));
        }
        let seen = shown(40, &frames);
        assert!(seen.ends_with("out 19\nout 20\none\ntwo"), "{seen}");
        assert_eq!(seen.matches("two").count(), 1);
        frames.push(screen.erase(40));
        assert!(shown(40, &frames).ends_with("out 20"));
    }

    #[test]
    fn nothing_is_written_where_nothing_changed() {
        let mut screen = Screen::default();
        assert!(!screen.frame(&[], rows(&["a"]), 40).is_empty());
        assert!(screen.frame(&[], rows(&["a"]), 40).is_empty());
        assert!(!screen.frame(&[], rows(&["b"]), 40).is_empty());
    }

    #[test]
    fn long_lines_above_wrap_and_leave_the_region_whole() {
        let mut screen = Screen::default();
        let frames = [
            screen.frame(&[], rows(&["one", "two"]), 20),
            screen.frame(&["x".repeat(47)], rows(&["one", "two"]), 20),
        ];
        let seen = shown(20, &frames);
        assert_eq!(seen.matches('x').count(), 47);
        assert!(seen.ends_with("one\ntwo"), "{seen}");
        assert_eq!(seen.matches("one").count(), 1);
    }

    #[test]
    fn a_region_that_was_wrapped_by_a_narrower_terminal_is_erased_whole() {
        let mut screen = Screen::default();
        screen.frame(&[], rows(&["0123456789", "\x1b[31mabc\x1b[0m"]), 40);
        assert_eq!(screen.rows(40), 2);
        assert_eq!(screen.rows(4), 4);
    }
}
