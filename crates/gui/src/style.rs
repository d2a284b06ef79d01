//! What widgets look like.

use iced::widget::{button, container, progress_bar, scrollable, text, text_editor, text_input};
use iced::{Background, Border, Color, Shadow, Theme, border};

use crate::theme::Colours;
pub use descartes_views::tone::Tone;

/// The colour of a tone.
fn colour(tone: Tone, theme: &Theme) -> Color {
    let colours = Colours::of(theme);
    match tone {
        Tone::Normal => colours.text,
        Tone::Dim => colours.muted,
        Tone::Strong => colours.accent,
        Tone::Good => colours.good,
        Tone::Warn => colours.warn,
        Tone::Bad => colours.bad,
    }
}

/// Text in a tone.
pub fn ink(tone: Tone) -> impl Fn(&Theme) -> text::Style + Copy {
    move |theme| text::Style {
        color: Some(colour(tone, theme)),
    }
}

fn line(colours: &Colours, radius: f32) -> Border {
    border::rounded(radius).width(1).color(colours.line)
}

fn filled(background: Color, border: Border) -> container::Style {
    container::Style {
        background: Some(background.into()),
        border,
        ..container::Style::default()
    }
}

pub fn card(theme: &Theme) -> container::Style {
    let colours = Colours::of(theme);
    filled(colours.surface, line(colours, 8.0))
}

/// The list at the left.
pub fn sidebar(theme: &Theme) -> container::Style {
    filled(Colours::of(theme).surface, Border::default())
}

/// A thin line.
pub fn hairline(theme: &Theme) -> container::Style {
    filled(Colours::of(theme).line, Border::default())
}

/// A card above everything else.
pub fn dialog(theme: &Theme) -> container::Style {
    container::Style {
        shadow: Shadow {
            color: Color::BLACK.scale_alpha(0.35),
            offset: iced::Vector::new(0.0, 4.0),
            blur_radius: 18.0,
        },
        ..card(theme)
    }
}

/// What lies behind a dialog.
pub fn veil(_theme: &Theme) -> container::Style {
    filled(Color::BLACK.scale_alpha(0.35), Border::default())
}

/// A small label on a ground of its tone.
pub fn pill(tone: Tone) -> impl Fn(&Theme) -> container::Style {
    move |theme| {
        let colour = colour(tone, theme);
        filled(colour.scale_alpha(0.14), border::rounded(10)).color(colour)
    }
}

/// A line across the page that says something.
pub fn banner(tone: Tone) -> impl Fn(&Theme) -> container::Style {
    move |theme| {
        let colour = colour(tone, theme);
        let edge = border::rounded(8).width(1).color(colour.scale_alpha(0.4));
        filled(colour.scale_alpha(0.12), edge)
    }
}

/// A dot in a tone.
pub fn dot(tone: Tone) -> impl Fn(&Theme) -> container::Style {
    move |theme| filled(colour(tone, theme), border::rounded(4))
}

fn button_style(background: Option<Color>, text_color: Color, border: Border) -> button::Style {
    button::Style {
        background: background.map(Background::Color),
        text_color,
        border,
        ..button::Style::default()
    }
}

/// A button among others.
pub fn plain_button(theme: &Theme, status: button::Status) -> button::Style {
    let c = Colours::of(theme);
    let (ground, text) = match status {
        button::Status::Active => (c.surface, c.text),
        button::Status::Hovered => (c.hover, c.text),
        button::Status::Pressed => (c.chosen, c.text),
        button::Status::Disabled => (c.ground, c.muted.scale_alpha(0.7)),
    };
    button_style(Some(ground), text, line(c, 6.0))
}

/// The button that matters.
pub fn main_button(theme: &Theme, status: button::Status) -> button::Style {
    let c = Colours::of(theme);
    let ground = match status {
        button::Status::Active => c.accent,
        button::Status::Hovered | button::Status::Pressed => c.accent.scale_alpha(0.88),
        button::Status::Disabled => c.accent.scale_alpha(0.4),
    };
    button_style(Some(ground), c.on_accent, border::rounded(6))
}

/// A button that ends something.
pub fn danger_button(theme: &Theme, status: button::Status) -> button::Style {
    let c = Colours::of(theme);
    let ground = match status {
        button::Status::Active | button::Status::Disabled => c.surface,
        button::Status::Hovered | button::Status::Pressed => c.bad.scale_alpha(0.12),
    };
    let edge = border::rounded(6).width(1).color(c.bad.scale_alpha(0.5));
    button_style(Some(ground), c.bad, edge)
}

/// Whether a row or tab is the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Chosen,
    Other,
}

impl Choice {
    /// Chosen if it is so.
    pub fn when(chosen: impl Into<bool>) -> Self {
        match chosen.into() {
            true => Self::Chosen,
            false => Self::Other,
        }
    }
}

/// A row that can be clicked.
pub fn row_button(choice: Choice) -> impl Fn(&Theme, button::Status) -> button::Style {
    move |theme, status| {
        let c = Colours::of(theme);
        let ground = match (choice, status) {
            (Choice::Chosen, _) => Some(c.chosen),
            (_, button::Status::Hovered | button::Status::Pressed) => Some(c.hover),
            _ => None,
        };
        button_style(ground, c.text, border::rounded(6))
    }
}

pub fn tab(choice: Choice) -> impl Fn(&Theme, button::Status) -> button::Style {
    move |theme, status| {
        let c = Colours::of(theme);
        let (ground, text) = match (choice, status) {
            (Choice::Chosen, _) => (Some(c.chosen), c.text),
            (_, button::Status::Hovered) => (Some(c.hover), c.text),
            _ => (None, c.muted),
        };
        button_style(ground, text, border::rounded(6))
    }
}

/// One of a few that can be chosen.
pub fn chip(choice: Choice) -> impl Fn(&Theme, button::Status) -> button::Style {
    move |theme, status| {
        let style = tab(choice)(theme, status);
        button::Style {
            border: border::rounded(12).width(1).color(Colours::of(theme).line),
            ..style
        }
    }
}

/// The edge of a field, which shows where the cursor is.
fn field_edge(c: &Colours, focused: bool) -> Border {
    let colour = if focused { c.accent } else { c.line };
    border::rounded(6).width(1).color(colour)
}

pub fn input(theme: &Theme, status: text_input::Status) -> text_input::Style {
    let c = Colours::of(theme);
    text_input::Style {
        background: c.surface.into(),
        border: field_edge(c, matches!(status, text_input::Status::Focused { .. })),
        icon: c.muted,
        placeholder: c.muted.scale_alpha(0.8),
        value: c.text,
        selection: c.accent.scale_alpha(0.3),
    }
}

pub fn editor(theme: &Theme, status: text_editor::Status) -> text_editor::Style {
    let c = Colours::of(theme);
    text_editor::Style {
        background: c.surface.into(),
        border: field_edge(c, matches!(status, text_editor::Status::Focused { .. })),
        placeholder: c.muted.scale_alpha(0.8),
        value: c.text,
        selection: c.accent.scale_alpha(0.3),
    }
}

/// A bar in a tone.
pub fn bar(tone: Tone) -> impl Fn(&Theme) -> progress_bar::Style {
    move |theme| {
        let c = Colours::of(theme);
        progress_bar::Style {
            background: c.line.into(),
            bar: colour(tone, theme).into(),
            border: border::rounded(4),
        }
    }
}

/// A page that scrolls.
pub fn scroll(theme: &Theme, status: scrollable::Status) -> scrollable::Style {
    let c = Colours::of(theme);
    let mut style = scrollable::default(theme, status);
    style.vertical_rail.background = None;
    style.vertical_rail.scroller.background = c.muted.scale_alpha(0.4).into();
    style.vertical_rail.scroller.border = border::rounded(4);
    style.horizontal_rail = style.vertical_rail;
    style
}
