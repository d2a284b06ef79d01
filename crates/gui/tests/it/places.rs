//! Where things stand in a window that nobody resized. The tests here hold these to the layout;
//! `cargo xtask gui` clicks on them with a real pointer.

/// Light or dark.
pub const THEME: (u32, u32) = (192, 25);
/// The form.
pub const NEW_LOOP: (u32, u32) = (140, 62);
/// The first of the list.
pub const FIRST_LOOP: (u32, u32) = (120, 137);
/// The second of the list.
pub const SECOND_LOOP: (u32, u32) = (140, 189);
/// Pause, or going on.
pub const PAUSE: (u32, u32) = (944, 43);
/// Cancel, which asks.
pub const CANCEL: (u32, u32) = (1016, 43);
/// The output, large.
pub const VIEW_LOGS: (u32, u32) = (1106, 43);
/// The answer that ends the loop.
pub const REALLY_CANCEL: (u32, u32) = (745, 426);
/// The line for a note.
pub const NOTE: (u32, u32) = (600, 745);
