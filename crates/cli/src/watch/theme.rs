//! Colours and marks, as far as the terminal has them. Everything is understandable without:
//! marks differ in shape, and what is chosen is reversed.

use descartes_views::view::UNKNOWN;
use ratatui::style::{Color, Modifier, Style};

use crate::style::Tone;

/// How many colours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Plain,
    /// Those of every terminal.
    Sixteen,
    /// Those of most.
    Many,
}

impl Depth {
    /// What the terminal says of itself.
    pub fn of(term: Option<&str>, colorterm: Option<&str>) -> Self {
        let many = term.is_some_and(|term| term.contains("256color") || term.contains("direct"))
            || colorterm.is_some_and(|text| text == "truecolor" || text == "24bit");
        if many { Self::Many } else { Self::Sixteen }
    }
}

/// Shapes, in UTF-8 or ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub running: &'static str,
    pub judging: &'static str,
    pub waiting: &'static str,
    pub paused: &'static str,
    pub ready: &'static str,
    pub done: &'static str,
    pub failed: &'static str,
    pub broken: &'static str,
    pub pending: &'static str,
    pub filled: &'static str,
    pub empty: &'static str,
    pub wall: &'static str,
    pub floor: &'static str,
    pub branch: &'static str,
    /// What nobody told, or what there was not.
    pub unknown: &'static str,
    /// Columns of a plot, from low to high.
    pub heights: &'static [&'static str],
}

const UTF8: Marks = Marks {
    running: "●",
    judging: "◐",
    waiting: "◷",
    paused: "‖",
    ready: "○",
    done: "✓",
    failed: "✗",
    broken: "!",
    pending: "·",
    filled: "█",
    empty: "░",
    wall: "│",
    floor: "─",
    branch: "└ ",
    unknown: UNKNOWN,
    heights: &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
};

const ASCII: Marks = Marks {
    running: "*",
    judging: "g",
    waiting: "w",
    paused: "=",
    ready: "o",
    done: "+",
    failed: "x",
    broken: "!",
    pending: ".",
    filled: "#",
    empty: ".",
    wall: "|",
    floor: "-",
    branch: "` ",
    unknown: "-",
    heights: &["_", "#"],
};

/// How everything looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    depth: Depth,
    pub marks: Marks,
}

/// Which characters the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Utf8,
    Ascii,
}

impl Theme {
    pub fn new(depth: Depth, charset: Charset) -> Self {
        let marks = match charset {
            Charset::Utf8 => UTF8,
            Charset::Ascii => ASCII,
        };
        Self { depth, marks }
    }

    /// The look of a tone. No blue: it cannot be read on black.
    pub fn tone(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let colour = |many: u8, few: Color| match self.depth {
            Depth::Plain => plain,
            Depth::Sixteen => plain.fg(few),
            Depth::Many => plain.fg(Color::Indexed(many)),
        };
        match tone {
            Tone::Normal => plain,
            Tone::Strong => plain.add_modifier(Modifier::BOLD),
            Tone::Dim => match self.depth {
                Depth::Plain | Depth::Sixteen => plain.add_modifier(Modifier::DIM),
                Depth::Many => colour(246, Color::Gray),
            },
            Tone::Good => colour(78, Color::Green),
            Tone::Bad => colour(203, Color::Red).add_modifier(Modifier::BOLD),
            Tone::Warn => colour(220, Color::Yellow),
        }
    }

    /// What stands out without meaning good or bad.
    pub fn accent(&self) -> Style {
        match self.depth {
            Depth::Plain => Style::new().add_modifier(Modifier::BOLD),
            Depth::Sixteen => Style::new().fg(Color::Cyan),
            Depth::Many => Style::new().fg(Color::Indexed(80)),
        }
    }

    /// What is chosen: `Active` where keys go there, `Passive` where they do not.
    pub fn chosen(&self, focus: Chosen) -> Style {
        match focus {
            Chosen::Active => Style::new().add_modifier(Modifier::REVERSED),
            Chosen::Passive => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        }
    }
}

/// Whether keys go to what is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    Active,
    Passive,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_say_how_many_colours_they_have_and_none_is_blue() {
        assert_eq!(Depth::of(Some("xterm-256color"), None), Depth::Many);
        assert_eq!(Depth::of(Some("xterm"), Some("truecolor")), Depth::Many);
        assert_eq!(Depth::of(Some("linux"), None), Depth::Sixteen);
        let tones = [
            Tone::Normal,
            Tone::Strong,
            Tone::Dim,
            Tone::Good,
            Tone::Bad,
            Tone::Warn,
        ];
        for depth in [Depth::Sixteen, Depth::Many] {
            let theme = Theme::new(depth, Charset::Utf8);
            for style in tones
                .map(|tone| theme.tone(tone))
                .iter()
                .chain([&theme.accent()])
            {
                let blue = matches!(
                    style.fg,
                    Some(Color::Blue | Color::LightBlue | Color::Indexed(4 | 12 | 16..=27))
                );
                assert!(!blue, "{style:?}");
            }
        }
        let plain = Theme::new(Depth::Plain, Charset::Ascii);
        assert!(tones.iter().all(|tone| plain.tone(*tone).fg.is_none()));
    }
}
