//! Text that people read: units, paths, findings in files, and output of others made safe to show.

pub mod display;
pub mod finding;
pub mod path_text;
pub mod units;
