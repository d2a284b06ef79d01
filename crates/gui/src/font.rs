//! The fonts of the window. They are part of the program: where none are installed, text
//! would be blank.

use iced::Font;
use iced::font::{Family, Weight};

/// The fonts, as they are loaded. `fonts/README.md` tells where they come from.
pub const ALL: [&[u8]; 3] = [
    include_bytes!("../fonts/sans-regular.otf"),
    include_bytes!("../fonts/sans-semibold.otf"),
    include_bytes!("../fonts/mono-regular.ttf"),
];

const SANS_FAMILY: Family = Family::Name("Descartes Sans");

/// For reading.
pub const SANS: Font = Font {
    family: SANS_FAMILY,
    ..Font::DEFAULT
};

/// For headings and names.
pub const STRONG: Font = Font {
    family: SANS_FAMILY,
    weight: Weight::Semibold,
    ..Font::DEFAULT
};

/// For commands and output.
pub const MONO: Font = Font {
    family: Family::Name("Descartes Mono"),
    ..Font::DEFAULT
};
