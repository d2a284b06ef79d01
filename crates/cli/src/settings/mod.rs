//! Settings, resolved once: flags over environment over files over defaults.

pub mod agent;
pub mod command_context;
pub mod prompt;
pub mod sandbox;
pub mod start;
pub mod tasks;
mod warnings;
