//! What the values of a config file must be, and when they need trust.

use descartes_text::units::{parse_count, parse_duration, parse_size, parse_usd};
use std::time::Duration;
use toml::Value;

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no; `"on"` and `"off"` are understood.
    Switch,
    /// A whole number; `"200k"` is understood.
    Count,
    /// A whole number or `"unlimited"`.
    Limit,
    /// US dollars.
    Dollars,
    /// `"30m"`, or a number of seconds.
    Duration,
    /// `"2GB"`, a number of bytes, or `"unlimited"`.
    Size,
    /// A text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; a single text is a list of one.
    Texts,
    /// A list of these words; a single word is a list of one.
    Choices(&'static [&'static str]),
    /// A list of commands and of addresses that begin with `http://` or `https://`.
    Hooks,
    /// A table of tables, each entry a setting of its own.
    Tables,
}

/// When a key of a project's own file holds only once the user has trusted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It starts nothing and widens nothing.
    Never,
    /// It can start a program, or widen what one may do.
    Always,
    /// It names files: those outside of the project are none of the project's business.
    OutsideProject,
    /// A word for the agent's command line: one that begins with `-` could be a flag.
    AsFlag,
}

/// A key at the top of a config file.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Whether it needs trust where a project's own file sets it.
    pub trust: Trust,
    /// Whether nothing could be done within a limit of 0.
    pub(super) never_zero: bool,
    /// Whether its type can hold a value of its kind.
    pub(super) in_range: fn(&Value) -> bool,
}

impl SettingKey {
    /// The value in its one form, or why it cannot be one.
    pub(super) fn checked(&self, value: Value) -> Result<Value, String> {
        let value = self.kind.normalise(value)?;
        if self.never_zero {
            self.kind.refuse_zero(&value)?;
        }
        match (self.in_range)(&value) {
            true => Ok(value),
            false => Err(format!("{value} is out of range")),
        }
    }

    /// Reads a value as it stands in the environment.
    pub(super) fn read_text(&self, text: &str) -> Result<Value, String> {
        self.checked(self.kind.of_text(text)?)
    }
}

/// The duration that a value stands for; `None` where it stands for none.
pub(super) fn duration_of(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => parse_duration(text).ok(),
        Value::Integer(seconds) => Some(Duration::from_secs((*seconds).try_into().ok()?)),
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        _ => None,
    }
}

impl Kind {
    /// Refuses a limit of 0 as its flag does.
    fn refuse_zero(self, value: &Value) -> Result<(), String> {
        match self {
            Self::Duration if duration_of(value).is_some_and(|limit| limit.is_zero()) => {
                Err("must be greater than zero (e.g. \"30m\"), or omit it".to_owned())
            }
            Self::Limit if value.as_integer() == Some(0) => {
                Err("must be 1 or more, or \"unlimited\"".to_owned())
            }
            Self::Count if value.as_integer() == Some(0) => Err("must be 1 or more".to_owned()),
            _ => Ok(()),
        }
    }

    /// The value in its one form, or why it cannot be one.
    fn normalise(self, value: Value) -> Result<Value, String> {
        let wrong =
            |found: &Value| format!("expected {}, found {}", self.describe(), article(found));
        match (self, &value) {
            (Self::Switch, Value::Boolean(_))
            | (Self::Text, Value::String(_))
            | (Self::Dollars, Value::Float(_) | Value::Integer(_))
            | (Self::Duration, Value::Float(_)) => self.checked_number(value),
            (Self::Switch, Value::String(text)) => switch(text).ok_or_else(|| wrong(&value)),
            (Self::Count | Self::Limit | Self::Size | Self::Duration, Value::Integer(_)) => {
                self.checked_number(value)
            }
            (Self::Limit | Self::Size, Value::String(text)) if text == "unlimited" => Ok(value),
            (Self::Count | Self::Limit, Value::String(text)) => parse_count(text)
                .map(|count| Value::Integer(count.cast_signed()))
                .map_err(|error| error.to_string()),
            (Self::Size, Value::String(text)) => parse_size(text)
                .map(|_| value.clone())
                .map_err(|error| error.to_string()),
            (Self::Duration, Value::String(text)) => parse_duration(text)
                .map(|_| value.clone())
                .map_err(|error| error.to_string()),
            (Self::Dollars, Value::String(text)) => parse_usd(text)
                .map(Value::Float)
                .map_err(|error| error.to_string()),
            (Self::Choice(words), Value::String(text)) if words.contains(&text.as_str()) => {
                Ok(value)
            }
            (Self::Choice(_), Value::String(text)) => {
                Err(format!("expected {}, found {text:?}", self.describe()))
            }
            (Self::Texts, Value::String(_)) => Ok(Value::Array(vec![value])),
            (Self::Choices(_) | Self::Hooks, Value::String(_)) => {
                self.normalise(Value::Array(vec![value]))
            }
            (Self::Choices(words), Value::Array(list)) => {
                let known = |item: &Value| item.as_str().is_some_and(|word| words.contains(&word));
                match list.iter().find(|item| !known(item)) {
                    None => Ok(value),
                    Some(other) => Err(format!("expected {}, found {other}", self.describe())),
                }
            }
            (Self::Hooks, Value::Array(list)) if list.iter().all(Value::is_str) => {
                list.iter().filter_map(Value::as_str).try_for_each(hook)?;
                Ok(value)
            }
            (Self::Texts, Value::Array(list)) if list.iter().all(Value::is_str) => Ok(value),
            (Self::Texts | Self::Hooks, Value::Array(list)) => {
                let other = list.iter().find(|item| !item.is_str());
                Err(wrong(other.unwrap_or(&value)) + " in it")
            }
            (Self::Tables, Value::Table(_)) => Ok(value),
            _ => Err(wrong(&value)),
        }
    }

    fn checked_number(self, value: Value) -> Result<Value, String> {
        let negative = match &value {
            Value::Integer(number) => *number < 0,
            Value::Float(number) => !(0.0..=f64::MAX).contains(number),
            _ => false,
        };
        match negative {
            true => Err(format!("expected {}, found {value}", self.describe())),
            false => Ok(value),
        }
    }

    /// The value that a text in the environment stands for, not checked yet.
    fn of_text(self, text: &str) -> Result<Value, String> {
        let number = || text.parse().map(Value::Integer).ok();
        let value = match self {
            Self::Count | Self::Limit | Self::Size | Self::Duration => number(),
            Self::Switch => switch(text),
            Self::Texts | Self::Choices(_) | Self::Hooks if text.starts_with('[') => {
                let table = format!("list = {text}").parse::<toml::Table>();
                let list = table.map_err(|error| error.message().to_owned())?;
                list.get("list").cloned()
            }
            Self::Tables => return Err("tables can only be set in a config file".to_owned()),
            Self::Dollars
            | Self::Text
            | Self::Choice(_)
            | Self::Texts
            | Self::Choices(_)
            | Self::Hooks => None,
        };
        Ok(value.unwrap_or_else(|| Value::String(text.to_owned())))
    }

    fn describe(self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Limit => "a whole number or \"unlimited\"".to_owned(),
            Self::Dollars => "an amount of US dollars".to_owned(),
            Self::Duration => "a duration like \"30m\"".to_owned(),
            Self::Size => "a size like \"2GB\" or \"unlimited\"".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Texts => "a list of strings".to_owned(),
            Self::Choices(words) => format!("one or more of {}", words.join(", ")),
            Self::Hooks => "a command, an address, or a list of them".to_owned(),
            Self::Tables => "a table".to_owned(),
        }
    }
}

/// A command, or an address of a kind that is spoken. Words before `://` that no scheme could be
/// made of stand in a command.
fn hook(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok(());
    };
    if !scheme
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        return Ok(());
    }
    if !["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return Err(format!(
            "unsupported URL scheme `{scheme}`: use http://, https://, or a command"
        ));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        true => Err(format!("{text:?} has no host, or contains spaces")),
        false => Ok(()),
    }
}

fn switch(text: &str) -> Option<Value> {
    match text {
        "on" | "true" | "yes" | "1" => Some(Value::Boolean(true)),
        "off" | "false" | "no" | "0" => Some(Value::Boolean(false)),
        _ => None,
    }
}

fn article(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}
