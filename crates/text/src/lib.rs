//! Text that people read: units, paths, levels of the sandbox, findings in files, words for a shell, and output of others made safe to show.

pub mod display;
pub mod finding;
pub mod path_text;
pub mod sandbox_level;
pub mod shell;
pub mod units;
