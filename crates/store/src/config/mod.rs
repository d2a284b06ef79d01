//! Settings in layers: defaults, the user's file, the project's file, the environment, flags.
//! Every value knows where it comes from.

mod file;
mod keys;
mod powers;
mod settings;
mod table;

pub use keys::{Kind, SettingKey, Trust};
pub use settings::{
    Entries, FlagType, HookTarget, IterationLimit, KEYS, NotifyWay, Setting, SettingType, Settings,
    SizeLimit,
};

use crate::ops::IoError;
use crate::safe_open::{self, Options};
use descartes_kernel::trust::Powers;
use descartes_text::units::show_size;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Value;

/// The defaults, as a config file with an explanation of every key.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// Variables that begin like settings and are none.
pub const RESERVED_ENV: &[&str] = &[
    "DESCARTES_ENGINE",
    "DESCARTES_FAULT",
    "DESCARTES_FLEET",
    "DESCARTES_ITERATION",
    "DESCARTES_LOG",
    "DESCARTES_LOOP_ID",
    "DESCARTES_NATS_SERVER",
    "DESCARTES_STATE_DIR",
    "DESCARTES_TASK_ID",
];

const ENV_PREFIX: &str = "DESCARTES_";

/// Where a value comes from; a later one wins over an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Built in.
    Default,
    /// The user's config file.
    UserFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The project's config file.
    ProjectFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of this name.
    Environment(String),
    /// A flag of this name, with its dashes.
    Flag(String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::UserFile { path, line } => write!(f, "user file {}:{line}", path.display()),
            Self::ProjectFile { path, line } => write!(f, "project file {}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

/// A key that is not known: probably misspelt, and of no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The file and line, or the variable.
    pub place: String,
    /// The key as it stands.
    pub key: String,
    /// The known key that was probably meant.
    pub nearest: Option<&'static str>,
}

impl std::fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: unknown key `{}`", self.place, self.key)?;
        match self.nearest {
            Some(nearest) => write!(f, " (did you mean `{nearest}`?)"),
            None => Ok(()),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A file is not TOML, or a value in it is not what its key needs.
    #[error("{}:{line}:{column}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// A file is larger than any config file is.
    #[error("{}: {} is too large for a config file (at most {})", path.display(), show_size(*size), show_size(file::LARGEST))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        size: u64,
    },
    /// A variable or flag is not what its key needs.
    #[error("{place}: {why}")]
    Value {
        /// The variable or flag.
        place: String,
        /// What is wrong.
        why: String,
    },
}

/// Where settings are looked for.
#[derive(Debug, Clone, Default)]
pub struct ConfigPlaces {
    /// The user's file; it need not be there.
    pub user_file: Option<PathBuf>,
    /// The project's file; it need not be there.
    pub project_file: Option<PathBuf>,
    /// Variables of the environment; those that begin with `DESCARTES_` are looked at.
    pub environment: BTreeMap<String, String>,
}

/// One line of `descartes config show`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The key; entries of tables have a dot in theirs.
    pub key: String,
    /// The value, where one is set by another layer than the flags.
    pub value: Option<Value>,
    /// Where it comes from.
    pub source: Source,
}

/// Keys that are not known are told by name up to this number, the others by their count.
const NAMED: usize = 5;

/// What to do with what needs trust in a project's own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Take it.
    All,
    /// Leave it away.
    OnlyHarmless,
}

/// All settings, merged.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Each with its type; flags are put over them.
    pub settings: Settings,
    written: Entries,
    unknown: Vec<UnknownKey>,
    unknown_more: usize,
    powers: Powers,
}

impl Layers {
    /// Reads and merges all layers but the flags, whoever wrote them.
    pub fn load(places: &ConfigPlaces) -> Result<Self, ConfigError> {
        Self::load_judged(places, |_| Use::All)
    }

    /// The same; `judge` is shown what needs trust in the project's own file. What it decides
    /// holds for the very text that was read.
    pub fn load_judged(
        places: &ConfigPlaces,
        judge: impl FnOnce(&Powers) -> Use,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        layers.add_file(file::defaults()?, Path::new("default.toml"), |_| {
            Source::Default
        });
        if let Some(path) = &places.user_file
            // People keep their own in a repository of dotfiles, behind a link.
            && let Some(text) = file::read_if_there(path, |path| {
                safe_open::open_user_file(path, Options::new().read())
            })?
        {
            let source = |line| Source::UserFile {
                path: path.clone(),
                line,
            };
            layers.add_file(file::parse(&text, path)?, path, source);
        }
        if let Some(path) = &places.project_file
            && let Some(text) = file::read_if_there(path, |path| {
                safe_open::open(Options::new().read().any_owner(), path)
            })?
        {
            let mut parsed = file::parse(&text, path)?;
            layers.powers = powers_in(&parsed, path);
            if !layers.powers.is_empty() && judge(&layers.powers) == Use::OnlyHarmless {
                let project = powers::project_of(path);
                parsed
                    .settings
                    .retain(|one| powers::of(&one.key, &one.value, &project).is_empty());
            }
            let source = |line| Source::ProjectFile {
                path: path.clone(),
                line,
            };
            layers.add_file(parsed, path, source);
        }
        for (name, text) in &places.environment {
            layers.add_variable(name, text)?;
        }
        layers.settings = Settings::of(&layers.written);
        Ok(layers)
    }

    /// What needs trust in the project's own file, taken or not.
    pub fn powers(&self) -> &Powers {
        &self.powers
    }

    fn add_file(&mut self, parsed: file::Parsed, path: &Path, source: impl Fn(usize) -> Source) {
        for setting in parsed.settings {
            let source = source(setting.line);
            let value = Sourced {
                value: setting.value,
                source,
            };
            self.written.insert(setting.key, value);
        }
        for (key, line) in parsed.unknown {
            self.warn(|| format!("{}:{line}", path.display()), &key);
        }
    }

    fn add_variable(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        let Some(key) = name.strip_prefix(ENV_PREFIX) else {
            return Ok(());
        };
        if RESERVED_ENV.contains(&name) || text.is_empty() {
            return Ok(());
        }
        let key = key.to_ascii_lowercase();
        match settings::key_named(&key) {
            Some(known) => {
                let wrong = |why| ConfigError::Value {
                    place: name.to_owned(),
                    why,
                };
                let value = known.read_text(text).map_err(wrong)?;
                let source = Source::Environment(name.to_owned());
                self.written.insert(key, Sourced { value, source });
            }
            // Others may use the prefix too; only what looks like a slip is told.
            None if settings::nearest_key(&key).is_some() => {
                self.warn(|| name.to_owned(), &key);
            }
            None => {}
        }
        Ok(())
    }

    fn warn(&mut self, place: impl FnOnce() -> String, key: &str) {
        if self.unknown.len() >= NAMED {
            self.unknown_more += 1;
            return;
        }
        self.unknown.push(UnknownKey {
            place: place(),
            key: key.escape_debug().take(80).collect(),
            nearest: settings::nearest_key(key),
        });
    }

    /// Keys that have no effect, to be told: a few by name, the others by their count.
    pub fn unknown(&self) -> Vec<String> {
        let mut out: Vec<String> = self.unknown.iter().map(ToString::to_string).collect();
        match self.unknown_more {
            0 => {}
            1 => out.push("and 1 more unknown key".to_owned()),
            more => out.push(format!("and {more} more unknown keys")),
        }
        out
    }

    /// Every key, set or not, and every entry of a table.
    pub fn rows(&self) -> Vec<Row> {
        let key = |(key, source): (&str, &Source)| Row {
            key: key.to_owned(),
            value: match source {
                Source::Flag(_) => None,
                _ => self.written.get(key).map(|found| found.value.clone()),
            },
            source: source.clone(),
        };
        let mut rows: Vec<Row> = self.settings.sources().into_iter().map(key).collect();
        for table in KEYS.iter().filter(|key| key.kind == Kind::Tables) {
            let inside = format!("{}.", table.name);
            let entries = self
                .written
                .iter()
                .filter(|(key, _)| key.starts_with(&inside));
            let before = rows.len();
            rows.extend(entries.map(|(key, found)| Row {
                key: key.clone(),
                value: Some(found.value.clone()),
                source: found.source.clone(),
            }));
            if rows.len() == before {
                rows.push(key((table.name, &Source::Default)));
            }
        }
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}

/// What needs trust in a config file of this text that lies, or is about to lie, at `path`.
pub fn powers_of_text(text: &str, path: &Path) -> Result<Powers, ConfigError> {
    Ok(powers_in(&file::parse(text, path)?, path))
}

fn powers_in(parsed: &file::Parsed, path: &Path) -> Powers {
    let project = powers::project_of(path);
    parsed
        .settings
        .iter()
        .flat_map(|one| powers::of(&one.key, &one.value, &project))
        .collect()
}
