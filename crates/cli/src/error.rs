//! Everything that can go wrong on the command line: what happened, why, what to type next,
//! and the exit code that says so.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use descartes_agents::agent::ProfileError;
use descartes_client::ClientError;
use descartes_core::host::HostError;
use descartes_core::worktree::WorktreeError;
use descartes_kernel::config::ConfigError;
use descartes_kernel::outcome::exit;
use descartes_store::IoError;
use descartes_store::catalog::FindError;
use descartes_store::config::ConfigError as SettingsError;
use descartes_store::journal::JournalError;
use descartes_store::safe_open::Refusal;
use descartes_store::trust::TrustError;

use serde::{Deserialize, Serialize};

use crate::args::{Cli, TRUST_CONFIG, free_text};

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings make no loop.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        source: io::Error,
    },
    /// The system refused something that has no path.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: &'static str,
        source: io::Error,
    },
    /// A loop cannot begin or go on.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// It is not clear which loop is meant.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A loop cannot be seen.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Disk(#[from] IoError),
    /// The work tree.
    #[error(transparent)]
    Work(#[from] WorktreeError),
    /// What was trusted cannot be kept or forgotten.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What we say ourselves, or a process in the background told.
    #[error("{}", _0.message)]
    Said(ErrorMessage),
}

/// An error in words.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ErrorMessage {
    pub message: String,
    pub causes: Vec<String>,
    /// What to type next.
    pub hints: Vec<String>,
    /// The exit code.
    pub code: i32,
}

impl From<&CliError> for ErrorMessage {
    fn from(error: &CliError) -> Self {
        Self {
            message: error.to_string(),
            causes: error.causes(),
            hints: error.hints(),
            code: error.exit_code(),
        }
    }
}

impl CliError {
    fn said(code: i32, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Said(ErrorMessage {
            message: message.into(),
            hints: vec![hint.into()],
            code,
            ..ErrorMessage::default()
        })
    }

    /// The command line does not say what can be done.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::said(exit::USAGE, message, hint)
    }

    /// It makes sense, but not here and now.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::said(exit::REFUSED, message, hint)
    }

    /// It was tried, and did not come off.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::said(exit::ERROR, message, hint)
    }

    /// What a server of ours said.
    pub fn of_server(message: String, hint: Option<String>, code: i32) -> Self {
        Self::Said(ErrorMessage {
            message,
            hints: hint.into_iter().collect(),
            code,
            ..ErrorMessage::default()
        })
    }

    /// The same with one more hint.
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        if let Self::Said(said) = &mut self {
            said.hints.push(hint.into());
        }
        self
    }

    /// The same, named after the command where that is what git is missing for.
    pub fn needs_git(self, command: &'static str) -> Self {
        match self {
            Self::Work(WorktreeError::NotGit { why, .. }) => {
                Self::Work(WorktreeError::NotGit { what: command, why })
            }
            other => other,
        }
    }

    /// The system refused something that has no path.
    pub fn system(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }

    /// What stands in the place of a file of ours, where that is why.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Io { source, .. } => Refusal::of(source),
            Self::Disk(error)
            | Self::Settings(SettingsError::Io(error))
            | Self::Find(FindError::Io(error))
            | Self::Journal(JournalError::Io(error)) => error.refusal(),
            _ => None,
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            _ if self.refusal().is_some() => exit::REFUSED,
            Self::Config(_) | Self::Settings(_) | Self::Profile(_) => exit::USAGE,
            Self::Find(FindError::None(_) | FindError::Ambiguous { .. }) => exit::REFUSED,
            Self::Journal(JournalError::Damaged { .. } | JournalError::Newer { .. }) => {
                exit::REFUSED
            }
            Self::Host(error) => error.exit_code(),
            Self::Client(error) => error.exit_code(),
            Self::Work(
                WorktreeError::NotGit { .. }
                | WorktreeError::NoTree { .. }
                | WorktreeError::Dropped,
            )
            | Self::Trust(TrustError::Inside(_)) => exit::REFUSED,
            Self::Said(said) => said.code,
            Self::Io { .. }
            | Self::System { .. }
            | Self::Find(_)
            | Self::Journal(_)
            | Self::Work(_)
            | Self::Trust(TrustError::Io(_))
            | Self::Disk(_) => exit::ERROR,
        }
    }

    /// The causes, outermost first, that the message itself does not tell.
    pub fn causes(&self) -> Vec<String> {
        let mut told = self.to_string();
        let mut causes = match self {
            Self::Said(said) => said.causes.clone(),
            _ => Vec::new(),
        };
        let mut next = self.source();
        while let Some(cause) = next {
            let words = cause.to_string();
            // A transparent wrapper or a message that quotes its cause says it already.
            if !told.contains(&words) {
                causes.push(words.clone());
            }
            told = words;
            next = cause.source();
        }
        causes
    }

    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        if let Some(refusal) = self.refusal() {
            return vec![refusal.hint()];
        }
        match self {
            Self::Said(said) => said.hints.clone(),
            Self::Client(error) => error.hint().into_iter().collect(),
            Self::Work(error) => error.hint().into_iter().collect(),
            Self::Config(error) => vec![error.hint.clone()],
            Self::Host(error) => error.hint().into_iter().collect(),
            Self::Journal(error) => error.hint().map(str::to_owned).into_iter().collect(),
            Self::Settings(SettingsError::TooLarge { .. }) => {
                vec!["remove what is not a setting, or move the file away".to_owned()]
            }
            Self::Settings(SettingsError::Io(_)) => {
                vec!["make it a file that you can read, or move it away".to_owned()]
            }
            // Whatever reads the settings would end here again.
            Self::Settings(_) | Self::Profile(_) => {
                vec![
                    "fix it; every key with its default and meaning: descartes config defaults"
                        .to_owned(),
                ]
            }
            Self::Find(_) => vec!["descartes loop list --all".to_owned()],
            Self::Trust(TrustError::Inside(_)) => vec![format!(
                "set XDG_STATE_HOME or DESCARTES_STATE_DIR to a folder elsewhere, or add {} to a run",
                TRUST_CONFIG
            )],
            Self::Trust(TrustError::Io(_))
            | Self::Io { .. }
            | Self::System { .. }
            | Self::Disk(_) => Vec::new(),
        }
    }
}

/// Names what was tried on which path when the system refuses.
pub fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Io { what, path, source }
}

/// A parser's error in our own form: one message, hints, exit code 64.
pub fn from_clap(error: &clap::Error, words: &[OsString]) -> CliError {
    let rendered = error.render().to_string();
    let mut paragraphs = rendered.trim().split("\n\n");
    let message = paragraphs.next().unwrap_or_default();
    let message = message.trim_start_matches("error:").trim().to_owned();
    let mut hints = Vec::new();
    let command = command_of(words);
    if let Some(meant) = meant_elsewhere(error, &command) {
        // The parser's own guesses would only lead astray.
        return CliError::Said(ErrorMessage {
            message,
            hints: vec![meant],
            code: exit::USAGE,
            ..ErrorMessage::default()
        });
    }
    for line in rendered.lines().map(str::trim) {
        if let Some(tip) = line.strip_prefix("tip:") {
            hints.push(tip.trim().to_owned());
        }
    }
    if error.kind() == ErrorKind::InvalidValue
        && let Some((flag, next)) = free_text::forgotten(words, &mut Cli::command())
    {
        hints.push(format!("if `{next}` is the text itself: --{flag}={next}"));
    }
    hints.extend(meant(error, &command));
    hints.push(format!("see: {command} --help"));
    CliError::Said(ErrorMessage {
        message,
        hints,
        code: exit::USAGE,
        ..ErrorMessage::default()
    })
}

/// Words of other loops and of older guides: command, what was typed, what to type here.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "descartes roadmap run",
        "--reset",
        "to begin anew: descartes roadmap reset FILE",
    ),
    (
        "descartes roadmap run",
        "--roadmap",
        "the file needs no flag: descartes roadmap run FILE",
    ),
    (
        "descartes roadmap run",
        "--status",
        "descartes roadmap status FILE",
    ),
    (
        "descartes roadmap run",
        "--check",
        "descartes roadmap check FILE",
    ),
    (
        "descartes roadmap",
        "--status",
        "descartes roadmap status FILE",
    ),
    (
        "descartes roadmap",
        "--reset",
        "to begin anew: descartes roadmap reset FILE",
    ),
    (
        "descartes roadmap",
        "--roadmap",
        "the file needs no flag: descartes roadmap run FILE",
    ),
    ("descartes loop", "stop", "descartes loop cancel"),
    ("descartes loop", "kill", "descartes loop cancel --now"),
    (
        "descartes loop",
        "run",
        "descartes loop start --prompt \"your task\"",
    ),
    ("descartes", "stop", "descartes loop cancel"),
    (
        "descartes",
        "ralph",
        "descartes loop start --prompt \"your task\", or --scud-tag TAG for tasks",
    ),
    (
        "descartes",
        "ralph-loop",
        "descartes loop start --prompt \"your task\", or --scud-tag TAG for tasks",
    ),
];

/// Takes more words everywhere.
const VERBOSE: &str = "everything that happens is told already; an agent's thoughts: --show-thinking; our own log: DESCARTES_LOG=debug";

/// What is typed here for what was typed.
fn meant_elsewhere(error: &clap::Error, command: &str) -> Option<String> {
    let typed = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let typed = typed.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.as_str()),
        _ => None,
    })?;
    if matches!(typed, "-v" | "--verbose") {
        return Some(VERBOSE.to_owned());
    }
    let mut known = ELSEWHERE.iter();
    let found = known.find(|(place, word, _)| *place == command && *word == typed);
    found.map(|(_, _, here)| (*here).to_owned())
}

/// What people mean who forget `loop`, or `--prompt` before the task.
fn meant(error: &clap::Error, command: &str) -> Option<String> {
    let context = |kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.as_str()),
        _ => None,
    };
    match (error.kind(), command) {
        (ErrorKind::InvalidSubcommand, "descartes") => {
            let verb = match context(ContextKind::InvalidSubcommand)? {
                "run" => "start",
                verb => verb,
            };
            let loops = Cli::command().find_subcommand("loop")?.clone();
            let verb = loops.find_subcommand(verb)?.get_name().to_owned();
            Some(format!("did you mean: descartes loop {verb}"))
        }
        (ErrorKind::UnknownArgument, "descartes loop start") => {
            context(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            Some("put the whole task in quotes, behind --prompt".to_owned())
        }
        _ => None,
    }
}

/// The command that the words name, as far as they name one. A usage line is not always there.
fn command_of(words: &[OsString]) -> String {
    let mut command = Cli::command();
    let mut names = vec![command.get_name().to_owned()];
    for word in words.iter().skip(1) {
        let Some(verb) = command.find_subcommand(word) else {
            continue;
        };
        names.push(verb.get_name().to_owned());
        command = verb.clone();
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = at("read", Path::new("/x"))(io::Error::other("no luck"));
        assert_eq!(error.to_string(), "cannot read /x");
        assert_eq!(error.causes(), ["no luck"]);
        assert_eq!(error.exit_code(), 1);
        let config = CliError::from(ConfigError {
            message: "m".into(),
            hint: "h".into(),
        });
        assert!(config.causes().is_empty());
        assert_eq!(
            (config.exit_code(), config.hints()),
            (64, vec!["h".to_owned()])
        );
    }

    #[test]
    fn the_command_is_read_off_what_was_typed() {
        for (typed, meant) in [
            ("descartes loop start -m abc -p x", "descartes loop start"),
            ("descartes --color never loop nope", "descartes loop"),
            ("descartes loop say list -s", "descartes loop say"),
            ("descartes roadmap run --growth x", "descartes roadmap run"),
            ("descartes nope", "descartes"),
        ] {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            assert_eq!(command_of(&words), meant);
        }
    }
}
