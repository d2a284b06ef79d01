//! Colours by what they mean; what they look like depends on the theme.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Use the light theme.
    Light,
    /// Use the dark theme.
    Dark,
}

impl Ink {
    /// Every ink.
    pub const ALL: [Self; 14] = [
        Self::Paper,
        Self::Text,
        Self::Muted,
        Self::Faint,
        Self::Good,
        Self::Bad,
        Self::Warn,
        Self::Accent,
        Self::Money,
        Self::GoodSoft,
        Self::BadSoft,
        Self::WarnSoft,
        Self::AccentSoft,
        Self::NeutralSoft,
    ];

    /// Its name in style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Text => "text",
            Self::Muted => "muted",
            Self::Faint => "faint",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::Accent => "accent",
            Self::Money => "money",
            Self::GoodSoft => "good-soft",
            Self::BadSoft => "bad-soft",
            Self::WarnSoft => "warn-soft",
            Self::AccentSoft => "accent-soft",
            Self::NeutralSoft => "neutral-soft",
        }
    }

    /// Red, green and blue in a theme.
    pub fn rgb(self, theme: Theme) -> [u8; 3] {
        let (light, dark): (u32, u32) = match self {
            Self::Paper => (0x00ff_ffff, 0x0014_171c),
            Self::Text => (0x001f_2329, 0x00e4_e6ea),
            Self::Muted => (0x0066_6d78, 0x0097_9fab),
            Self::Faint => (0x00e6_e8ec, 0x002a_2f37),
            Self::Good => (0x002e_8b57, 0x005c_c08b),
            Self::Bad => (0x00cf_3f3f, 0x00f0_7670),
            Self::Warn => (0x00c0_841a, 0x00e3_b341),
            Self::Accent => (0x003b_6fc4, 0x007f_abee),
            Self::Money => (0x007a_4fb5, 0x00b9_95e6),
            Self::GoodSoft => (0x00d8_f0e1, 0x001d_3d2c),
            Self::BadSoft => (0x00fb_e0de, 0x004a_2424),
            Self::WarnSoft => (0x00fb_eed0, 0x0043_3616),
            Self::AccentSoft => (0x00dc_e8fa, 0x0020_334f),
            Self::NeutralSoft => (0x00f1_f2f4, 0x0022_272e),
        };
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
