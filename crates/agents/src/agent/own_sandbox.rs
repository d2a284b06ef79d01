//! A sandbox of the agent's own, which would fail inside ours, and mostly without a word: it is turned off.

use super::profile::SandboxNeeds;
use super::words::Flags;

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnSandbox {
    /// The agent has none.
    None,
    /// A word of the command turns it off.
    OffAlready(String),
    /// The profile's arguments and variables do.
    TurnOff,
    /// A word of the user's turns it on, and is left as it is.
    LeftOn(String),
}

/// Decides it for a command: `given` are the user's flags, `ours` those that were added so far.
pub(super) fn own_sandbox(needs: &SandboxNeeds, given: &Flags<'_>, ours: &Flags<'_>) -> OwnSandbox {
    if needs.off_args.is_empty() && needs.off_env.is_empty() {
        return OwnSandbox::None;
    }
    let both = [given, ours];
    let off = |word: &&String| both.iter().any(|flags| stands(flags, word));
    if let Some(word) = needs.off_by.iter().find(off) {
        return OwnSandbox::OffAlready(word.clone());
    }
    let on = |word: &&String| given.has(word);
    match needs.on_by.iter().find(on) {
        Some(word) => OwnSandbox::LeftOn(word.clone()),
        None => OwnSandbox::TurnOff,
    }
}

/// Whether `--flag` or `--flag value` stands in a command.
fn stands(flags: &Flags<'_>, word: &str) -> bool {
    match word.split_once(' ') {
        Some((flag, value)) => {
            flags.value(flag) == Some(value) || flags.has(&format!("{flag} {value}"))
        }
        None => flags.has(word),
    }
}

/// What turns it off, for people: arguments and variables.
pub(super) fn off_words(needs: &SandboxNeeds) -> String {
    let env = needs
        .off_env
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let args = (!needs.off_args.is_empty()).then(|| shell_words::join(&needs.off_args));
    env.chain(args).collect::<Vec<String>>().join(" ")
}
