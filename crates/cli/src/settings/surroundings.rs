//! What the process found around itself: asked once, handed down as values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use descartes_store::config::{ConfigPlaces, Layers};
use descartes_store::layout::{EnvPaths, PROJECT_FOLDER, StateRoot};

use crate::env::Environment;
use crate::error::{CliError, at};

/// Name of a project's config file, in [`PROJECT_FOLDER`].
pub const CONFIG_FILE: &str = "config.toml";

/// Where and as whom a command runs.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Its environment.
    pub environment: Environment,
    /// Its working directory.
    pub here: PathBuf,
    /// The places that the environment names.
    pub paths: EnvPaths,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process(environment: Environment) -> Result<Self, CliError> {
        let here = std::env::current_dir().map_err(at("look at the directory", Path::new(".")))?;
        let paths = EnvPaths::from_lookup(|name| environment.raw(name).cloned());
        Ok(Self {
            environment,
            here,
            paths,
        })
    }

    /// A path that a person typed.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.here.join(path)
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

    /// All settings but the flags, for a loop that works in `dir`.
    pub fn layers(&self, dir: &Path) -> Result<Layers, CliError> {
        Ok(Layers::load(&self.places(dir))?)
    }
}

/// The config file of a project.
pub fn project_config(dir: &Path) -> PathBuf {
    dir.join(PROJECT_FOLDER).join(CONFIG_FILE)
}
