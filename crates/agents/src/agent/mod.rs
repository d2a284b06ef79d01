//! Agents: profiles, argument lists and stream parsers.
//!
//! A [`Profile`] says how an agent is started and which [`StreamParser`] reads it; every
//! parser speaks the same [`AgentEvent`]s; a [`RunSummary`] folds those into what the loop
//! has to know of a run.

mod claude;
mod codex;
mod delivery;
mod dialect;
mod event;
mod failure;
#[cfg(test)]
mod gemini_tests;
mod invocation;
mod json;
pub mod jsonl;
mod lines;
mod message;
mod meter;
mod opencode;
mod own_sandbox;
mod preflight;
mod profile;
mod profiles;
mod recent;
mod search;
mod stderr;
mod stream;
mod summary;
#[cfg(test)]
mod testing;
mod text;
mod tool;
mod trouble;
mod usage;
mod version;
mod words;

pub use delivery::{Delivery, PromptError};
pub use dialect::StreamParser;
pub use event::{
    AgentEvent, Denial, Failure, FailureKind, Piece, RunResult, ToolOutcome, UsageScope,
};
pub use invocation::{AgentNotice, Choices, ConfinedBy, Invocation, build};
pub use meter::Meter;
pub use preflight::{Denied, Host, PreflightError, preflight};
pub use profile::{
    Format, FormatValue, Grant, PermissionRules, Permissions, Profile, PromptLimit, PromptMode,
    Reports, RootRule, SandboxNeeds, SettingsFile, StreamKind,
};
pub use profiles::{GENERIC, ProfileError, Profiles};
pub use search::MessageSearch;
pub use stderr::StderrReader;
pub use stream::parser;
pub use summary::{ResultState, RunSummary};
pub use trouble::Trouble;
pub use usage::{MicroUsd, Usage};
pub use version::VersionSeen;
