//! What the process found around itself: asked once, handed down as values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use descartes_kernel::trust::Powers;
use descartes_store::config::ConfigPlaces;
use descartes_store::layout::{EnvPaths, PROJECT_FOLDER, StateRoot};
use descartes_store::trust::{Digest, Subject, TrustBook};

use crate::env::Environment;
use crate::error::{CliError, at};
use crate::printer::Printer;

/// Name of a project's config file, in [`PROJECT_FOLDER`].
pub const CONFIG_FILE: &str = "config.toml";

/// Where and as whom a command runs.
#[derive(Clone, Debug)]
pub struct CommandContext {
    pub environment: Environment,
    /// Its working directory.
    pub here: PathBuf,
    /// The places that the environment names.
    pub paths: EnvPaths,
    /// What of a project's own config is used.
    pub project_config: ProjectConfig,
    /// What tells the person.
    pub printer: Printer,
}

/// What is used of a project's own config, where something in it needs the user's trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectConfig {
    /// All of it, once it is trusted or its hash is among these; else to load it is refused.
    Trusted(Vec<Digest>),
    /// What is trusted or needs no trust.
    Harmless,
    /// All of it: for commands that only look.
    AsWritten,
}

impl CommandContext {
    /// Those of this process.
    pub fn of_process(environment: Environment, printer: Printer) -> Result<Self, CliError> {
        let here = std::env::current_dir().map_err(at("inspect the directory", Path::new(".")))?;
        let paths = EnvPaths::from_lookup(|name| environment.raw(name).cloned());
        Ok(Self {
            environment,
            here,
            paths,
            project_config: ProjectConfig::Trusted(Vec::new()),
            printer,
        })
    }

    /// The same, with another use of a project's own config.
    pub fn with(&self, project_config: ProjectConfig) -> Self {
        Self {
            project_config,
            ..self.clone()
        }
    }

    /// What is trusted of the project in `dir`.
    pub fn trust_book(&self, dir: &Path) -> Result<TrustBook, CliError> {
        Ok(TrustBook::of(&self.root(dir), &self.paths, dir)?)
    }

    /// Whether what needs trust in a file of the project in `dir` may be used.
    pub fn trusts(&self, dir: &Path, subject: Subject, keys: &Powers) -> bool {
        let Ok(book) = self.trust_book(dir) else {
            return false;
        };
        let accepted = match &self.project_config {
            ProjectConfig::AsWritten => return true,
            ProjectConfig::Trusted(accepted) => accepted.contains(&book.digest(subject, keys)),
            ProjectConfig::Harmless => false,
        };
        accepted || book.standing(subject, keys).may_be_used()
    }

    /// A path that a person typed.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.here.join(path)
    }

    /// The directory that was given, or this one.
    pub fn dir(&self, given: Option<&Path>) -> PathBuf {
        given.map_or_else(|| self.here.clone(), |dir| self.absolute(dir))
    }

    /// Where loops are kept, for a loop that works in `dir`.
    pub fn root(&self, dir: &Path) -> StateRoot {
        StateRoot::resolve(&self.paths, dir)
    }

    /// Where settings are looked for, for a loop that works in `dir`.
    pub fn places(&self, dir: &Path) -> ConfigPlaces {
        let text = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let environment: BTreeMap<String, String> = self
            .environment
            .variables()
            .iter()
            .filter_map(text)
            .collect();
        ConfigPlaces {
            user_file: self.paths.user_config(),
            project_file: Some(project_config(dir)),
            environment,
        }
    }
}

/// The config file of a project.
pub fn project_config(dir: &Path) -> PathBuf {
    dir.join(PROJECT_FOLDER).join(CONFIG_FILE)
}
