//! Values as people type them. The same readers serve flags, the environment and config
//! files, so that `30m` means the same everywhere.

use std::collections::BTreeMap;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use descartes_store::config::{IterationLimit, Kind, SettingType, SizeLimit};
use descartes_text::units::{self, Secs};
pub use descartes_text::units::{parse_count as count, parse_usd as usd};
use toml::Value;

use crate::env::Environment;
use crate::error::CliError;

/// A variable for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; never written anywhere. `None`: as it stands in our own environment, where no
    /// list of processes shows it.
    pub value: Option<String>,
}

impl Variable {
    /// Its name and value.
    fn resolved(&self, environment: &Environment) -> Result<(String, String), CliError> {
        let name = &self.name;
        let inherited = || environment.raw(name).map(|value| value.to_str());
        let wrong = |message: String| {
            CliError::usage(
                message,
                format!("export {name} first, or give its value: --env {name}=VALUE"),
            )
        };
        let value = match (&self.value, inherited()) {
            (Some(value), _) => value.clone(),
            (None, Some(Some(value))) => value.to_owned(),
            (None, Some(None)) => {
                return Err(wrong(format!("--env {name}: its value is not UTF-8")));
            }
            (None, None) => {
                return Err(wrong(format!(
                    "--env {name}: there is no such variable in the environment"
                )));
            }
        };
        Ok((name.clone(), value))
    }
}

/// The variables of `--env`, each with its value.
pub fn resolved(
    variables: &[Variable],
    environment: &Environment,
) -> Result<BTreeMap<String, String>, CliError> {
    let variables = variables.iter();
    variables
        .map(|variable| variable.resolved(environment))
        .collect()
}

/// Reads `90s`, `30m`, or a number of seconds.
pub fn duration(text: &str) -> Result<Secs, String> {
    units::parse_duration(text)
        .map(Secs)
        .map_err(|error| error.to_string())
}

/// Reads a time limit: a duration of which something is left.
pub fn time_limit(text: &str) -> Result<Secs, String> {
    match duration(text)? {
        limit if limit.0.is_zero() => {
            Err("must be greater than zero (e.g. 30m), or omit the flag".to_owned())
        }
        limit => Ok(limit),
    }
}

/// Reads the name of a loop.
pub fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name is empty; omit the flag to get a generated name".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Reads a number of iterations or `unlimited`.
pub fn iterations(text: &str) -> Result<IterationLimit, String> {
    if text.trim().eq_ignore_ascii_case("unlimited") {
        return Ok(IterationLimit(None));
    }
    number(text).map(|n| IterationLimit(Some(n))).map_err(|_| {
        format!("`{text}` is not a number of iterations; use for example 20, or unlimited")
    })
}

/// Reads `2GB`, `64MiB`, or `unlimited`.
pub fn size(text: &str) -> Result<SizeLimit, String> {
    if text.trim().eq_ignore_ascii_case("unlimited") {
        return Ok(SizeLimit(None));
    }
    let bytes = units::parse_size(text).map_err(|error| error.to_string())?;
    Ok(SizeLimit(Some(bytes)))
}

/// Reads a whole number.
pub fn number(text: &str) -> Result<u32, String> {
    text.trim()
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a whole number; use for example 5"))
}

/// Attempts that a worker makes at once: each is a thread and an agent.
pub fn slots(text: &str) -> Result<u32, String> {
    match number(text)? {
        slots @ 1..=1_000 => Ok(slots),
        _ => Err("a worker makes 1 to 1000 attempts at once".to_owned()),
    }
}

/// Reads `NAME=VALUE` or `NAME`. The value is not repeated in the error: it may be a secret.
pub fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("a variable is written NAME (its value is inherited) or NAME=VALUE".to_owned());
    }
    if text.contains('\0') {
        return Err(format!("the value of {name} contains a NUL byte"));
    }
    Ok(Variable {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    })
}

/// The parser of a flag with named choices, which help and completions then know. The names are
/// those that config files have for them.
pub fn one_of<T: SettingType + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    let names = match T::KIND {
        Kind::Choice(names) => names,
        _ => &[],
    };
    PossibleValuesParser::new(names)
        .try_map(|name| T::read(&Value::String(name)).ok_or("it has no meaning"))
}

/// The parser of `on` and `off`.
pub fn switch() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|name| name == "on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_agents::promise::PromiseMatch;
    use descartes_kernel::config::{Permissions, PromptMode};

    #[test]
    fn limits_are_numbers_or_spelled_out() {
        assert_eq!(iterations("20"), Ok(IterationLimit(Some(20))));
        assert_eq!(iterations("Unlimited"), Ok(IterationLimit(None)));
        assert!(iterations("-1").unwrap_err().contains("unlimited"));
        assert_eq!(size("unlimited"), Ok(SizeLimit(None)));
        assert_eq!(size("1MB"), Ok(SizeLimit(Some(1_000_000))));
    }

    #[test]
    fn every_named_choice_can_be_read() {
        fn all<T: SettingType + Send + Sync + 'static>(names: &'static [&str]) {
            let command = clap::Command::new("x");
            for name in names {
                let read = one_of::<T>().parse_ref(&command, None, name.as_ref());
                assert!(read.is_ok(), "{name}");
            }
        }
        all::<PromptMode>(PromptMode::NAMES);
        all::<PromiseMatch>(PromiseMatch::NAMES);
        all::<Permissions>(Permissions::NAMES);
    }

    #[test]
    fn a_variable_has_a_name_and_its_value_is_never_repeated() {
        let read = variable("KEY=a=b").unwrap();
        assert_eq!(read.name, "KEY");
        assert_eq!(read.value.as_deref(), Some("a=b"));
        for bad in ["a s3cret", "=s3cret", ""] {
            assert!(!variable(bad).unwrap_err().contains("s3cret"));
        }
        let ctx = Environment::of(&[("KEY", "of ours")]);
        let inherited = variable("KEY").unwrap().resolved(&ctx).unwrap();
        assert_eq!(inherited, ("KEY".to_owned(), "of ours".to_owned()));
        let missing = variable("GONE").unwrap().resolved(&ctx).unwrap_err();
        assert!(missing.to_string().contains("GONE"), "{missing}");
        assert_eq!(missing.exit_code(), 64);
    }
}
