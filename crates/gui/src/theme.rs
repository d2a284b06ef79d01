//! Light and dark.

use iced::{Color, Theme, color, theme};

pub use descartes_views::picture::Theme as Mode;

pub fn other(mode: Mode) -> Mode {
    match mode {
        Mode::Light => Mode::Dark,
        Mode::Dark => Mode::Light,
    }
}

/// As iced wants it.
pub fn theme(mode: Mode) -> Theme {
    let name = match mode {
        Mode::Light => "descartes light",
        Mode::Dark => "descartes dark",
    };
    let c = Colours::in_mode(mode);
    let palette = theme::Palette {
        background: c.ground,
        text: c.text,
        primary: c.accent,
        success: c.good,
        warning: c.warn,
        danger: c.bad,
    };
    Theme::custom(name, palette)
}

/// Colours by what they mean.
#[derive(Clone, Copy, Debug)]
pub struct Colours {
    /// Behind everything.
    pub ground: Color,
    /// Cards, tables, inputs.
    pub surface: Color,
    /// What the pointer is over.
    pub hover: Color,
    /// What is chosen.
    pub chosen: Color,
    /// Thin lines.
    pub line: Color,
    /// To be read.
    pub text: Color,
    /// To be read when looked for.
    pub muted: Color,
    /// Links, bars, the one button that matters.
    pub accent: Color,
    /// On the accent.
    pub on_accent: Color,
    /// It works.
    pub good: Color,
    /// It waits.
    pub warn: Color,
    /// It failed.
    pub bad: Color,
}

const LIGHT: Colours = Colours {
    ground: color!(0xf6f6f4),
    surface: color!(0xffffff),
    hover: color!(0xeeeeeb),
    chosen: color!(0xe3ebf8),
    line: color!(0xe1e1dc),
    text: color!(0x1f2328),
    muted: color!(0x646b75),
    accent: color!(0x2c66cf),
    on_accent: color!(0xffffff),
    good: color!(0x26794a),
    warn: color!(0x95610a),
    bad: color!(0xb93226),
};

const DARK: Colours = Colours {
    ground: color!(0x15171b),
    surface: color!(0x1d2025),
    hover: color!(0x262a31),
    chosen: color!(0x24344f),
    line: color!(0x30353d),
    text: color!(0xe4e7eb),
    muted: color!(0x98a0ab),
    accent: color!(0x6ea2ff),
    on_accent: color!(0x0e1624),
    good: color!(0x62c98d),
    warn: color!(0xe3b457),
    bad: color!(0xf2807a),
};

impl Colours {
    pub fn in_mode(mode: Mode) -> &'static Self {
        match mode {
            Mode::Light => &LIGHT,
            Mode::Dark => &DARK,
        }
    }

    /// Those of a theme of ours.
    pub fn of(theme: &Theme) -> &'static Self {
        match theme.extended_palette().is_dark {
            true => &DARK,
            false => &LIGHT,
        }
    }
}
