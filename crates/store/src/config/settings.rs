//! Every setting with its type, its value and where that comes from; made of the table.

use super::keys::{Kind, SettingKey, Trust, duration_of};
use super::{Source, Sourced};
use descartes_agents::promise::PromiseMatch;
use descartes_kernel::config::{IterativeLoopConfig, Permissions, PromptMode};
use descartes_kernel::sandbox::SandboxLevel;
use descartes_kernel::tasks::TasksConfig;
use descartes_text::finding;
use descartes_text::units::{Secs, parse_size};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Value;

/// A limit on iterations; none is `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationLimit(pub Option<u32>);

/// A limit on bytes; none is `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit(pub Option<u64>);

impl From<IterationLimit> for Option<u32> {
    fn from(limit: IterationLimit) -> Self {
        limit.0
    }
}

impl From<SizeLimit> for Option<u64> {
    fn from(limit: SizeLimit) -> Self {
        limit.0
    }
}

/// How a person is told that something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyWay {
    /// By the desktop.
    Desktop,
    /// By the terminal's bell.
    Bell,
}

/// A command that is run when something happened, or an address that gets it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct HookTarget(pub String);

/// What a setting can be.
pub trait SettingType: Clone {
    /// What files may hold for it.
    const KIND: Kind;

    /// The value that a checked one stands for; `None` where it is out of range.
    fn read(value: &Value) -> Option<Self>;
}

macro_rules! read_as_they_stand {
    ($($type:ty: $kind:expr),+ $(,)?) => {
        $(impl SettingType for $type {
            const KIND: Kind = $kind;

            fn read(value: &Value) -> Option<Self> {
                value.clone().try_into().ok()
            }
        })+
    };
}

read_as_they_stand!(
    bool: Kind::Switch,
    u32: Kind::Count,
    u64: Kind::Count,
    f64: Kind::Dollars,
    String: Kind::Text,
    PathBuf: Kind::Text,
    Vec<String>: Kind::Texts,
    Vec<PathBuf>: Kind::Texts,
    Vec<HookTarget>: Kind::Hooks,
    Vec<NotifyWay>: Kind::Choices(&["desktop", "bell"]),
    Permissions: Kind::Choice(Permissions::NAMES),
    PromptMode: Kind::Choice(PromptMode::NAMES),
    SandboxLevel: Kind::Choice(SandboxLevel::NAMES),
    PromiseMatch: Kind::Choice(PromiseMatch::NAMES),
);

impl SettingType for Secs {
    const KIND: Kind = Kind::Duration;

    fn read(value: &Value) -> Option<Self> {
        duration_of(value).map(Self)
    }
}

impl SettingType for IterationLimit {
    const KIND: Kind = Kind::Limit;

    fn read(value: &Value) -> Option<Self> {
        let SizeLimit(limit) = SizeLimit::read(value)?;
        limit.map(u32::try_from).transpose().ok().map(Self)
    }
}

impl SettingType for SizeLimit {
    const KIND: Kind = Kind::Size;

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if text == "unlimited" => Some(Self(None)),
            Value::String(text) => parse_size(text).ok().map(Some).map(Self),
            Value::Integer(number) => u64::try_from(*number).ok().map(Some).map(Self),
            _ => None,
        }
    }
}

/// A setting as it stands in the table: the type that clap reads its flag into.
pub trait FlagType {
    /// The type of its value.
    type Value;

    /// The value that was given.
    fn given(&self) -> Option<Self::Value>;
}

impl<T: Clone> FlagType for Option<T> {
    type Value = T;

    fn given(&self) -> Option<T> {
        self.clone()
    }
}

impl<T: Clone> FlagType for Vec<T> {
    type Value = Self;

    fn given(&self) -> Option<Self> {
        Some(self.clone()).filter(|list| !list.is_empty())
    }
}

impl FlagType for bool {
    type Value = Self;

    fn given(&self) -> Option<Self> {
        self.then_some(true)
    }
}

/// A setting: its value, and the layer that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// Its value, where some layer sets it.
    pub value: Option<T>,
    /// Where that comes from.
    pub source: Source,
}

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self {
            value: None,
            source: Source::Default,
        }
    }
}

impl<T: SettingType> Setting<T> {
    fn of(values: &Entries, key: &str) -> Self {
        let found = values.get(key);
        Self {
            value: found.and_then(|found| T::read(&found.value)),
            source: found.map_or(Source::Default, |found| found.source.clone()),
        }
    }

    /// Its value.
    pub fn get(&self) -> Option<T> {
        self.value.clone()
    }

    /// Puts what a flag says, if it was given, over all layers.
    pub fn put(&mut self, flag: &str, given: Option<T>) {
        if given.is_some() {
            self.value = given;
            self.source = Source::Flag(flag.to_owned());
        }
    }

    /// Its value, where a flag gave it.
    pub fn from_flag(&self) -> Option<T> {
        let by_flag = matches!(self.source, Source::Flag(_));
        self.get().filter(|_| by_flag)
    }
}

/// Values with their sources, by name.
pub type Entries = BTreeMap<String, Sourced<Value>>;

fn entries(values: &Entries, key: &str) -> Entries {
    let inside = |path: &String| Some(path.strip_prefix(key)?.strip_prefix('.')?.to_owned());
    values
        .iter()
        .filter_map(|(path, found)| Some((inside(path)?, found.clone())))
        .collect()
}

macro_rules! settings {
    (
        flags { $($(#[$_group:meta])* $_args:ident { $(
            $(#[$_flag:meta])*
            $flag:ident: $flag_type:ty $(= $flag_trust:ident $(, not $flag_zero:literal)?
                $(=> $($flag_to:ident).+)? $(-> $flag_task:ident)?)?;
        )* })* }
        keys { $(
            $key:ident: $type:ty = $trust:ident $(, not $zero:literal)?
                $(=> $($to:ident).+)? $(-> $task:ident)?;
        )* }
        tables { $($table:ident = $table_trust:ident;)* }
    ) => {
        settings! {
            rows {
                $($($($flag, $flag_type, $flag_trust, [$($flag_zero)?], [$($($flag_to).+)?], [$($flag_task)?];)?)*)*
                $($key, $type, $trust, [$($zero)?], [$($($to).+)?], [$($task)?];)*
            }
            tables { $($table = $table_trust;)* }
        }
    };
    (
        rows { $(
            $key:ident, $type:ty, $trust:ident, [$($zero:literal)?], [$($($to:ident).+)?], [$($task:ident)?];
        )* }
        tables { $($table:ident = $table_trust:ident;)* }
    ) => {
        /// Every key at the top of a config file.
        pub const KEYS: &[SettingKey] = &[
            $(SettingKey {
                name: stringify!($key),
                kind: <<$type as FlagType>::Value as SettingType>::KIND,
                trust: Trust::$trust,
                never_zero: false $(|| $zero == 0)?,
                in_range: |value| <<$type as FlagType>::Value as SettingType>::read(value).is_some(),
            },)*
            $(SettingKey {
                name: stringify!($table),
                kind: Kind::Tables,
                trust: Trust::$table_trust,
                never_zero: false,
                in_range: |_| true,
            },)*
        ];

        /// All settings, one field a key.
        #[expect(missing_docs, reason = "default.toml explains every key")]
        #[derive(Clone, Debug, Default)]
        pub struct Settings {
            $(pub $key: Setting<<$type as FlagType>::Value>,)*
            $(pub $table: Entries,)*
        }

        impl Settings {
            pub(super) fn of(values: &Entries) -> Self {
                Self {
                    $($key: Setting::of(values, stringify!($key)),)*
                    $($table: entries(values, stringify!($table)),)*
                }
            }

            /// Where each comes from that is no table.
            pub(super) fn sources(&self) -> Vec<(&'static str, &Source)> {
                vec![$((stringify!($key), &self.$key.source),)*]
            }

            /// Puts what is set into the config of a loop.
            pub fn apply_to(&self, config: &mut IterativeLoopConfig) {
                $($(if let Some(value) = self.$key.get() {
                    config.$($to).+ = value.into();
                })?)*
            }

            /// Puts what is set into the config of a loop's tasks.
            pub fn apply_to_tasks(&self, tasks: &mut TasksConfig) {
                $($(if let Some(value) = self.$key.get() {
                    tasks.$task = value.into();
                })?)*
            }
        }
    };
}

crate::settings_table!(settings);

/// The key of that name; `None` where there is none.
pub(super) fn key_named(name: &str) -> Option<&'static SettingKey> {
    KEYS.iter().find(|key| key.name == name)
}

/// The known key that was probably meant.
pub(super) fn nearest_key(key: &str) -> Option<&'static str> {
    let key = key.replace('-', "_");
    finding::nearest(&key, KEYS.iter().map(|key| key.name))
}
