//! The CLIs, a file each.

pub(super) mod aider;
pub(super) mod claude;
pub(super) mod cline;
pub(super) mod cn;
pub(super) mod codex;
pub(super) mod copilot;
pub(super) mod droid;
pub(super) mod gemini;
pub(super) mod goose;
pub(super) mod gptme;
pub(super) mod kilo;
pub(super) mod opencode;
pub(super) mod pi;
pub(super) mod qwen;
