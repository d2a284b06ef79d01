//! What is known of one CLI, as data and a few functions.

use std::path::PathBuf;

use super::launch::{Options, Permission};

/// How a CLI is got, started and made to act.
pub(super) struct CliFacts {
    /// Its name: that of its profile.
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// The program, below the CLI's own folder.
    pub program: &'static str,
    /// How its prompt reaches it.
    pub prompt: PromptBy,
    /// How it prints.
    pub prints: Prints,
    /// What it tells of tokens and cost.
    pub tells: Tells,
    /// How a script makes it change files.
    pub acts: Acts,
    /// Words of a user's command beside the program, without which it does not find the scripted model.
    pub words: &'static [&'static str],
    /// The flags for headless work, the words above not among them.
    pub arguments: fn(Permission) -> &'static [&'static str],
    /// Its variables.
    pub environment: fn(&Setup<'_>) -> Vec<(&'static str, String)>,
    /// Its settings files, below the home folder.
    pub settings: fn(&Setup<'_>) -> Vec<(&'static str, String)>,
}

/// What a CLI is set up for.
pub(super) struct Setup<'a> {
    /// The address of its lane.
    pub url: &'a str,
    pub home: PathBuf,
    pub options: &'a Options,
}

impl Setup<'_> {
    /// A folder below the home folder, as text.
    pub fn below_home(&self, folder: &str) -> String {
        self.home.join(folder).to_string_lossy().into_owned()
    }

    /// The address of OpenAI's API in the lane.
    pub fn openai(&self) -> String {
        format!("{}/v1", self.url)
    }
}

/// A key as it could be: one CLI masks it wherever it stands, so a short one would tear its stream.
pub(super) const KEY: &str = "dummy-key-of-a-test";

/// A proxy that nobody is behind: what a CLI asks of the network fails at once.
pub(super) const NOWHERE: &str = "http://127.0.0.1:9";

/// A package, and how it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// From npm.
    Npm {
        package: &'static str,
        /// A version that installs, for when the newest does not.
        fallback: Option<&'static str>,
        /// The script of the package that npm does not run unasked: it puts the platform's binary in
        /// its place and downloads nothing.
        post_install: Option<&'static str>,
    },
    /// From PyPI, into an environment of its own.
    PyPi { package: &'static str },
}

impl Source {
    /// The newest version of a package of npm.
    pub(super) const fn npm(package: &'static str) -> Self {
        Self::Npm {
            package,
            fallback: None,
            post_install: None,
        }
    }

    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Npm { package, .. } | Self::PyPi { package } => package,
        }
    }
}

/// How a prompt reaches a CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    Stdin,
    /// As the last argument.
    Argument,
    /// In a file that the last argument names, behind these words.
    File(&'static [&'static str]),
}

/// How a CLI prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// JSON lines.
    Json,
    Text,
}

/// What a CLI tells of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Tokens and dollars.
    Cost,
    Tokens,
    Nothing,
}

/// How a script makes a CLI change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acts {
    /// By calls of its shell tool; an answer without one ends the run.
    Shell,
    /// The same, but only a call ends the run: this one, as JSON.
    ShellUntil(&'static str),
    /// It has no tools: it writes the files that stand in an answer.
    Answers,
}

/// No settings files.
pub(super) fn no_settings(_: &Setup<'_>) -> Vec<(&'static str, String)> {
    Vec::new()
}

/// Variables that are all set to 1.
pub(super) fn set<const N: usize>(names: [&'static str; N]) -> Vec<(&'static str, String)> {
    names.map(|name| (name, "1".to_owned())).to_vec()
}
