//! Settings, resolved once: flags over environment over files over defaults.

pub mod agent;
mod flags;
pub mod prompt;
pub mod start;
pub mod surroundings;
pub mod tasks;
mod warnings;
