//! The set of profiles: built-in ones, changed and added to by the user's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use toml::{Table, Value};

use super::profile::{Profile, StreamKind};
use super::words::{self, Program};

const BUILTIN: &str = include_str!("builtin.toml");

/// The profile of commands that nothing is known about.
pub const GENERIC: &str = "generic";

/// All profiles by name.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// The user's: new ones, and built-in ones that they changed.
    given: BTreeMap<String, ReadProfile>,
}

/// A profile, and the table that it was read from.
#[derive(Clone, Debug)]
struct ReadProfile {
    table: Table,
    profile: Profile,
}

/// A built-in profile. Most commands need one or none of them: each is read when it is asked for.
#[derive(Debug)]
struct BuiltIn {
    text: &'static str,
    entry: OnceLock<Option<ReadProfile>>,
}

static BUILT_IN: LazyLock<BTreeMap<&str, BuiltIn>> = LazyLock::new(|| {
    let texts = sections(BUILTIN).into_iter().map(|(name, text)| {
        let entry = OnceLock::new();
        (name, BuiltIn { text, entry })
    });
    texts.collect()
});

impl BuiltIn {
    /// None if the text is no profile: a test reads them all.
    fn entry(&self, name: &str) -> Option<&ReadProfile> {
        let read = || {
            let mut tables = parse(self.text).ok()?;
            let table = match tables.remove(name)? {
                Value::Table(table) => table,
                _ => return None,
            };
            let profile = read(name, &table).ok()?;
            Some(ReadProfile { table, profile })
        };
        self.entry.get_or_init(read).as_ref()
    }

    /// Whether its command or packages may be called `program`; if not, they are not.
    fn may_be(&self, program: &str) -> bool {
        self.text.contains(program)
    }
}

/// The names of the profiles in the built-in text, each with the lines from its `[name]` to the next one's.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let header = |line: &str| -> bool { line.starts_with('[') && !line.contains('.') };
    let mut starts = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if header(line) {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(at);
    let section = |range: &[usize]| {
        let text = &text[range[0]..range[1]];
        let name = text.lines().next().unwrap_or_default();
        (name.trim_matches(['[', ']']), text)
    };
    starts.windows(2).map(section).collect()
}

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text is no TOML.
    #[error("the agent profiles are not valid TOML: {0}")]
    Toml(String),
    /// A profile is not a table.
    #[error("agent `{name}` must be a table: write [agents.{name}]")]
    NotATable {
        /// The profile's name.
        name: String,
    },
    /// A name that cannot be typed as `--backend NAME`.
    #[error("`{name}` is not a valid agent name: use letters, digits, `-` and `_`")]
    Name { name: String },
    /// `like` names no profile.
    #[error("agent `{name}` is based on `{like}`, which is not a known agent (known: {known})")]
    Like {
        /// The profile's name.
        name: String,
        /// What it names.
        like: String,
        /// The names that are known.
        known: String,
    },
    /// Profiles that begin from one another.
    #[error("agents {names} are based on each other: one of them needs a profile of its own")]
    Circle { names: String },
    /// A key is unknown, missing or of the wrong type, or its field path cannot be read.
    #[error("agent `{name}`: {message}")]
    Key {
        /// The profile's name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// `stream = "jsonl"` without any path.
    #[error(
        "agent `{name}` has stream \"jsonl\" but no `jsonl` table: add jsonl.text = \"path.to.text\""
    )]
    NoPaths {
        /// The profile's name.
        name: String,
    },
}

impl ProfileError {
    /// The profile that is wrong, where it is one.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Self::Toml(_) | Self::Circle { .. } => None,
            Self::NotATable { name }
            | Self::Name { name }
            | Self::Like { name, .. }
            | Self::Key { name, .. }
            | Self::NoPaths { name } => Some(name),
        }
    }
}

impl Profiles {
    /// The built-in profiles.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds profiles from TOML text whose tables are the profiles' names.
    pub fn add_toml(&mut self, text: &str) -> Result<(), ProfileError> {
        self.add(&parse(text)?)
    }

    /// Adds the profiles of an `[agents]` table. The first that is wrong ends it.
    pub fn add(&mut self, agents: &Table) -> Result<(), ProfileError> {
        let mut left: Vec<&String> = agents.keys().collect();
        while !left.is_empty() {
            // One that begins from another comes after it, whatever their names are.
            let ready = left.iter().position(|name| {
                let like = base_of(&agents[name.as_str()]);
                like.is_none_or(|like| like == *name || !left.iter().any(|other| *other == like))
            });
            let Some(ready) = ready else {
                let names: Vec<&str> = left.iter().map(|name| name.as_str()).collect();
                let names = names.join(", ");
                return Err(ProfileError::Circle { names });
            };
            let name = left.remove(ready);
            self.add_one(name, &agents[name.as_str()])?;
        }
        Ok(())
    }

    fn add_one(&mut self, name: &str, value: &Value) -> Result<(), ProfileError> {
        let table = self.merged(name, value)?;
        let profile = read(name, &table)?;
        self.given
            .insert(name.to_owned(), ReadProfile { table, profile });
        Ok(())
    }

    fn merged(&self, name: &str, value: &Value) -> Result<Table, ProfileError> {
        check_name(name)?;
        let Value::Table(given) = value else {
            return Err(ProfileError::NotATable { name: name.into() });
        };
        let mut given = given.clone();
        let mut table = match given.remove("like") {
            Some(like) => self.like(name, &like)?,
            None => self.table(name).cloned().unwrap_or_default(),
        };
        merge(&mut table, given);
        Ok(table)
    }

    /// Another profile's table; that a test has run it says nothing of this one.
    fn like(&self, name: &str, like: &Value) -> Result<Table, ProfileError> {
        let base = like.as_str().and_then(|like| self.table(like));
        let mut table = base.cloned().ok_or_else(|| ProfileError::Like {
            name: name.into(),
            like: like
                .as_str()
                .map_or_else(|| like.to_string(), str::to_owned),
            known: self.names().collect::<Vec<_>>().join(", "),
        })?;
        for key in ["verified", "known_version", "packages"] {
            table.remove(key);
        }
        Ok(table)
    }

    fn entry(&self, name: &str) -> Option<&ReadProfile> {
        let built_in = || BUILT_IN.get(name)?.entry(name);
        self.given.get(name).or_else(built_in)
    }

    fn table(&self, name: &str) -> Option<&Table> {
        Some(&self.entry(name)?.table)
    }

    /// The profile of that name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        Some(&self.entry(name)?.profile)
    }

    /// The profile as it stands after all changes, as TOML that could be put in a config file.
    pub fn show(&self, name: &str) -> Option<String> {
        let one =
            |key: &str, table: Table| Table::from_iter([(key.to_owned(), Value::Table(table))]);
        let table = self.table(name)?.clone();
        toml::to_string(&one("agents", one(name, table))).ok()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let given = self.given.keys().map(String::as_str);
        let names: BTreeSet<&str> = BUILT_IN.keys().copied().chain(given).collect();
        names.into_iter()
    }

    /// All profiles, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.names().filter_map(|name| self.get(name))
    }

    /// All profiles that `program` may belong to.
    fn candidates<'a>(&'a self, program: &str) -> impl Iterator<Item = &'a Profile> {
        let may_be = |name: &&str| match (self.given.get(*name), BUILT_IN.get(name)) {
            (None, Some(built_in)) => built_in.may_be(program),
            _ => true,
        };
        self.names()
            .filter(may_be)
            .filter_map(|name| self.get(name))
    }

    /// The name of the profile that a command's words belong to, else `generic`: by the
    /// base name of the program, behind `env K=V` and behind `npx` and the like.
    pub fn guess(&self, command: &[String]) -> &str {
        let found = match words::program(command) {
            Some(Program::Command { name, .. }) => self
                .candidates(name)
                .find(|profile| own_program(profile) == Some(name)),
            Some(Program::Package { name, .. }) => self.candidates(name).find(|profile| {
                profile.packages.iter().any(|package| package == name)
                    || own_program(profile) == Some(name)
            }),
            None => None,
        };
        found.map_or(GENERIC, |profile| profile.name.as_str())
    }
}

/// The profile that this one begins from, by its own word.
fn base_of(profile: &Value) -> Option<&str> {
    profile.as_table()?.get("like")?.as_str()
}

/// The base name of the program that a profile runs by itself.
fn own_program(profile: &Profile) -> Option<&str> {
    let first = profile.command.split_whitespace().next()?;
    first.rsplit('/').next()
}

fn parse(text: &str) -> Result<Table, ProfileError> {
    text.parse::<Table>()
        .map_err(|error| ProfileError::Toml(error.to_string().trim_end().to_owned()))
}

fn check_name(name: &str) -> Result<(), ProfileError> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(letter) && !name.starts_with('-') {
        return Ok(());
    }
    Err(ProfileError::Name { name: name.into() })
}

/// Tables are merged key by key; anything else is replaced.
fn merge(base: &mut Table, given: Table) {
    for (key, value) in given {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(given)) => merge(base, given),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn read(name: &str, table: &Table) -> Result<Profile, ProfileError> {
    let key = |message: String| ProfileError::Key {
        name: name.into(),
        message,
    };
    let mut profile: Profile = Value::Table(table.clone())
        .try_into()
        .map_err(|error: toml::de::Error| key(error.to_string().trim_end().to_owned()))?;
    profile.name = name.to_owned();
    shell_words::split(&profile.command)
        .map_err(|error| key(format!("command `{}`: {error}", profile.command)))?;
    check_streams(&profile)?;
    Ok(profile)
}

fn check_streams(profile: &Profile) -> Result<(), ProfileError> {
    let name = || profile.name.clone();
    let wrong = |message: String| ProfileError::Key {
        name: name(),
        message,
    };
    let formats = profile
        .format
        .iter()
        .flat_map(|format| format.values.values());
    let streams = formats.map(|value| (value.stream, value.jsonl.as_ref()));
    for (stream, jsonl) in streams.chain([(profile.stream, None)]) {
        match jsonl.or(profile.jsonl.as_ref()) {
            Some(map) => map.check().map_err(|error| wrong(error.to_string()))?,
            None if stream == StreamKind::Jsonl => {
                return Err(ProfileError::NoPaths { name: name() });
            }
            None => {}
        }
    }
    let mut formats = profile.format.iter();
    match formats.find(|format| !format.values.contains_key(&format.default)) {
        None => Ok(()),
        Some(format) => Err(wrong(format!(
            "format.default `{}` is not one of format.values",
            format.default
        ))),
    }
}

#[cfg(test)]
mod tests;
