//! Colours by what they mean; what they look like depends on the theme.

use crate::tone::Tone;

/// A colour by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ink {
    /// Behind everything.
    Paper,
    /// What is to be read.
    Text,
    /// What stands back: axes, notes, edges.
    Muted,
    /// What is hardly there: grids, empty lanes.
    Faint,
    /// Proven done.
    Good,
    /// A red gate or a failure.
    Bad,
    /// A wait, or something to look at.
    Warn,
    /// Work, and what is chosen.
    Accent,
    Money,
    /// `Good` under text.
    GoodSoft,
    /// `Bad` under text.
    BadSoft,
    /// `Warn` under text.
    WarnSoft,
    /// `Accent` under text.
    AccentSoft,
    /// Neutral under text.
    NeutralSoft,
}

/// Which of the two palettes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    #[default]
    Light,
    Dark,
}

/// Every ink in the order of the enum: its name in style sheets, and how it looks in the light and
/// in the dark theme.
const INKS: [(Ink, &str, u32, u32); 14] = [
    (Ink::Paper, "paper", 0x00ff_ffff, 0x0014_171c),
    (Ink::Text, "text", 0x001f_2329, 0x00e4_e6ea),
    (Ink::Muted, "muted", 0x0066_6d78, 0x0097_9fab),
    (Ink::Faint, "faint", 0x00e6_e8ec, 0x002a_2f37),
    (Ink::Good, "good", 0x002e_8b57, 0x005c_c08b),
    (Ink::Bad, "bad", 0x00cf_3f3f, 0x00f0_7670),
    (Ink::Warn, "warn", 0x00c0_841a, 0x00e3_b341),
    (Ink::Accent, "accent", 0x003b_6fc4, 0x007f_abee),
    (Ink::Money, "money", 0x007a_4fb5, 0x00b9_95e6),
    (Ink::GoodSoft, "good-soft", 0x00d8_f0e1, 0x001d_3d2c),
    (Ink::BadSoft, "bad-soft", 0x00fb_e0de, 0x004a_2424),
    (Ink::WarnSoft, "warn-soft", 0x00fb_eed0, 0x0043_3616),
    (Ink::AccentSoft, "accent-soft", 0x00dc_e8fa, 0x0020_334f),
    (Ink::NeutralSoft, "neutral-soft", 0x00f1_f2f4, 0x0022_272e),
];

impl Ink {
    pub fn all() -> impl Iterator<Item = Self> {
        INKS.into_iter().map(|(ink, ..)| ink)
    }

    /// Its name in style sheets.
    pub fn name(self) -> &'static str {
        INKS[self as usize].1
    }

    /// Red, green and blue in a theme.
    pub fn rgb(self, theme: Theme) -> [u8; 3] {
        let (_, _, light, dark) = INKS[self as usize];
        let rgb = match theme {
            Theme::Light => light,
            Theme::Dark => dark,
        };
        [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8]
    }

    /// The colour as style sheets write it.
    pub fn hex(self, theme: Theme) -> String {
        let [red, green, blue] = self.rgb(theme);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Tone {
    /// The ink that says so, and the same under text.
    pub fn inks(self) -> (Ink, Ink) {
        match self {
            Self::Good => (Ink::Good, Ink::GoodSoft),
            Self::Bad => (Ink::Bad, Ink::BadSoft),
            Self::Warn => (Ink::Warn, Ink::WarnSoft),
            Self::Strong => (Ink::Accent, Ink::AccentSoft),
            Self::Normal | Self::Dim => (Ink::Muted, Ink::NeutralSoft),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as the web's accessibility guidelines define it.
    fn luminance([red, green, blue]: [u8; 3]) -> f64 {
        let part = |byte: u8| {
            let c = f64::from(byte) / 255.0;
            if c <= 0.040_45 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
    }

    fn contrast(a: Ink, b: Ink, theme: Theme) -> f64 {
        let (a, b) = (luminance(a.rgb(theme)), luminance(b.rgb(theme)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_readable_on_every_ground_and_marks_are_seen() {
        use Ink::{AccentSoft, BadSoft, GoodSoft, NeutralSoft, Paper, WarnSoft};
        for theme in [Theme::Light, Theme::Dark] {
            for ground in [Paper, GoodSoft, BadSoft, WarnSoft, AccentSoft, NeutralSoft] {
                let ratio = contrast(Ink::Text, ground, theme);
                assert!(ratio > 7.0, "text on {ground:?} in {theme:?}: {ratio:.1}");
            }
            assert!(contrast(Ink::Muted, Paper, theme) > 4.5, "{theme:?}");
            for mark in [Ink::Good, Ink::Bad, Ink::Warn, Ink::Accent, Ink::Money] {
                let ratio = contrast(mark, Paper, theme);
                assert!(ratio > 3.0, "{mark:?} in {theme:?}: {ratio:.1}");
            }
        }
    }
}
