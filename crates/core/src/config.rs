//! The library's configs: plain words and numbers, as people write them. They are read into the
//! engine's own types when a loop is made; a word that means nothing is an error that names its place.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use descartes_kernel::config as typed;
use descartes_kernel::config::LoopGitConfig;
use descartes_text::path_text;
use descartes_text::units::Secs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::host::HostError;

/// How the agent is started and understood.
///
/// ```
/// let backend = descartes_core::LoopBackendConfig::default();
/// assert_eq!(backend.backend_type, "generic");
/// assert_eq!(backend.prompt_mode, "arg");
/// assert_eq!(backend.output_format, "text");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopBackendConfig {
    /// `claude`, `codex`, `gemini`, `opencode`, `generic`, or the name of a profile.
    #[serde(default = "generic")]
    pub backend_type: String,
    /// `arg`, `stdin`, `env`, `file` or `none`; empty, or absent in a file: the backend's own way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt_mode: String,
    /// Variables for the agent alone. A loop writes their values nowhere.
    #[serde(default)]
    pub environment: HashMap<String, String>,
    /// `text`, `json` or `stream-json`: what the agent is asked to print, where it has a choice.
    /// `text` leaves it to the backend.
    #[serde(default = "text")]
    pub output_format: String,
    /// Names of the variables of an earlier start, whose values were not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_names: Vec<String>,
}

fn generic() -> String {
    "generic".to_owned()
}

fn text() -> String {
    "text".to_owned()
}

impl Default for LoopBackendConfig {
    fn default() -> Self {
        Self {
            backend_type: generic(),
            prompt_mode: "arg".to_owned(),
            environment: HashMap::new(),
            output_format: text(),
            environment_names: Vec::new(),
        }
    }
}

impl LoopBackendConfig {
    /// How the prompt is passed, where the word for it is known.
    pub(crate) fn known_prompt_mode(&self) -> Option<typed::PromptMode> {
        word("backend.prompt_mode", &self.prompt_mode).ok()
    }
}

/// Everything that decides how a loop behaves.
///
/// ```
/// use descartes_core::IterativeLoopConfig;
///
/// let config = IterativeLoopConfig {
///     command: "claude".to_string(),
///     args: vec!["-p".to_string()],
///     prompt: "Make the tests pass".to_string(),
///     completion_promise: Some("COMPLETE".to_string()),
///     iteration_timeout_secs: Some(300),
///     ..Default::default()
/// };
/// assert_eq!(config.max_iterations, Some(10));
/// ```
///
/// Times are whole seconds; a part of one that a file holds is rounded up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterativeLoopConfig {
    /// The agent's program.
    pub command: String,
    /// Its arguments, before anything the backend adds.
    pub args: Vec<String>,
    /// The task.
    pub prompt: String,
    /// The task from a file, read again at every iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(with = "path_text::maybe")]
    pub prompt_file: Option<PathBuf>,
    /// What the agent prints when it is done; `None`: no promise.
    pub completion_promise: Option<String>,
    /// `tagged`, `line`, `line_any_case` or `anywhere`; `None`: the backend's own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_match: Option<String>,
    /// Whether iteration 1 is told how to say it; `None`: the backend's own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_hint: Option<bool>,
    /// How long an agent may be silent after its promise before it is ended.
    #[serde(deserialize_with = "whole")]
    pub promise_grace_secs: u64,
    /// What the agent prints when it cannot be done.
    pub abort_promise: Option<String>,
    /// The gates, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Time limit for each gate.
    #[serde(deserialize_with = "whole")]
    pub verify_timeout_secs: u64,
    /// Iteration limit; `None` is unlimited.
    #[serde(default = "ten")]
    pub max_iterations: Option<u32>,
    /// Time budget for the whole loop.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "maybe_whole"
    )]
    pub max_duration_secs: Option<u64>,
    /// Cost budget for the whole loop, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Token budget for the whole loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Where the loop works; `None`: the current directory.
    #[serde(with = "path_text::maybe")]
    pub working_directory: Option<PathBuf>,
    /// The state file; `None`: `.descartes/loop-state.json` in the working directory.
    #[serde(with = "path_text::maybe")]
    pub state_file: Option<PathBuf>,
    /// Whether later iterations get the context block.
    pub include_iteration_context: bool,
    /// Only gate failures and a person's notes are added to the prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fresh_context_mode: bool,
    /// Wall limit of one iteration.
    #[serde(deserialize_with = "maybe_whole")]
    pub iteration_timeout_secs: Option<u64>,
    /// Silence that ends an iteration as hung.
    #[serde(deserialize_with = "whole")]
    pub idle_timeout_secs: u64,
    /// Failures in a row that end the loop.
    pub max_failures: u32,
    /// First wait after a failed iteration; it doubles each time.
    #[serde(deserialize_with = "whole")]
    pub failure_backoff_secs: u64,
    /// Iterations without progress before a nudge (twice: stop); `None`: the backend's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after: Option<u32>,
    /// How the agent is started and understood.
    pub backend: LoopBackendConfig,
    /// The model, passed with the backend's own flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent may do without asking: `agent` (as its own settings say), `edit` or `all`.
    pub permissions: String,
    /// Agents that take over when the ones before them are limited or failing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Files whose text is put before the prompt at every iteration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "path_text::many")]
    pub spec_files: Vec<PathBuf>,
    /// A fixed text put before the prompt at every iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_prefix: Option<String>,
    /// Token budget for the spec block.
    pub max_spec_tokens: u32,
    /// Git.
    pub git: LoopGitConfig,
    /// Between asking a process tree to end and killing it; `None`: as the agent's profile says,
    /// else 5 seconds.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "maybe_whole"
    )]
    pub kill_grace_secs: Option<u64>,
    /// Bytes of log for an iteration; `None` is unlimited.
    #[serde(default = "two_gb")]
    pub max_log_bytes: Option<u64>,
    /// Bytes of snapshots of the work tree; `None` is unlimited.
    #[serde(default = "two_gb")]
    pub max_snapshot_bytes: Option<u64>,
    /// Fields of a state file that are not listed here, kept: those of task loops, or of a newer version.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn ten() -> Option<u32> {
    Some(10)
}

fn two_gb() -> Option<u64> {
    Some(2_000_000_000)
}

/// Seconds as files hold them, in whole ones.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Secs::deserialize(deserializer).map(rounded_up)
}

fn maybe_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::<Secs>::deserialize(deserializer).map(|secs| secs.map(rounded_up))
}

/// A limit of a part of a second is none that is over at once.
fn rounded_up(secs: Secs) -> u64 {
    let Secs(time) = secs;
    let whole = Duration::from_secs(time.as_secs());
    time.as_secs() + u64::from(time > whole)
}

impl Default for IterativeLoopConfig {
    fn default() -> Self {
        let mut config = Self::from(typed::IterativeLoopConfig::default());
        config.backend = LoopBackendConfig::default();
        config
    }
}

/// The fields of a config that stay as they are, both ways.
macro_rules! same_fields {
    ($from:ident, $to:ident { $($field:ident: $value:expr),+ $(, ..$rest:expr)? $(,)? }) => {
        $to {
            command: $from.command,
            args: $from.args,
            prompt: $from.prompt,
            prompt_file: $from.prompt_file,
            completion_promise: $from.completion_promise,
            promise_hint: $from.promise_hint,
            abort_promise: $from.abort_promise,
            verify: $from.verify,
            max_iterations: $from.max_iterations,
            max_cost_usd: $from.max_cost_usd,
            max_tokens: $from.max_tokens,
            working_directory: $from.working_directory,
            state_file: $from.state_file,
            include_iteration_context: $from.include_iteration_context,
            fresh_context_mode: $from.fresh_context_mode,
            max_failures: $from.max_failures,
            stall_after: $from.stall_after,
            model: $from.model,
            fallback: $from.fallback,
            spec_files: $from.spec_files,
            spec_prefix: $from.spec_prefix,
            max_spec_tokens: $from.max_spec_tokens,
            git: $from.git,
            max_log_bytes: $from.max_log_bytes,
            max_snapshot_bytes: $from.max_snapshot_bytes,
            $($field: $value),+
            $(, ..$rest)?
        }
    };
}

impl From<typed::IterativeLoopConfig> for IterativeLoopConfig {
    fn from(config: typed::IterativeLoopConfig) -> Self {
        let mut rest = fields(&config);
        let mut plain = same_fields!(
            config,
            Self {
                promise_match: config.promise_match.map(|how| how.to_string()),
                promise_grace_secs: rounded_up(config.promise_grace_secs),
                verify_timeout_secs: rounded_up(config.verify_timeout_secs),
                max_duration_secs: config.max_duration_secs.map(rounded_up),
                iteration_timeout_secs: config.iteration_timeout_secs.map(rounded_up),
                idle_timeout_secs: rounded_up(config.idle_timeout_secs),
                failure_backoff_secs: rounded_up(config.failure_backoff_secs),
                kill_grace_secs: config.kill_grace_secs.map(rounded_up),
                permissions: word_of(&config.permissions),
                backend: config.backend.into(),
                extra: Map::new(),
            }
        );
        // What the engine has a field for and the library has not.
        let known = fields(&plain);
        rest.retain(|name, _| !known.contains_key(name));
        plain.extra = rest;
        plain
    }
}

fn fields(config: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

impl From<typed::LoopBackendConfig> for LoopBackendConfig {
    fn from(backend: typed::LoopBackendConfig) -> Self {
        Self {
            backend_type: backend.backend_type,
            prompt_mode: backend
                .prompt_mode
                .map(|mode| word_of(&mode))
                .unwrap_or_default(),
            environment: backend.environment.into_values().into_iter().collect(),
            output_format: backend.output_format,
            environment_names: backend.environment_names,
        }
    }
}

impl TryFrom<IterativeLoopConfig> for typed::IterativeLoopConfig {
    type Error = HostError;

    fn try_from(config: IterativeLoopConfig) -> Result<Self, HostError> {
        let rest = rest(config.extra)?;
        let promise_match = config
            .promise_match
            .as_deref()
            .filter(|how| !how.is_empty());
        Ok(same_fields!(
            config,
            Self {
                promise_match: promise_match
                    .map(|how| word("promise_match", how))
                    .transpose()?,
                promise_grace_secs: Secs::new(config.promise_grace_secs),
                verify_timeout_secs: Secs::new(config.verify_timeout_secs),
                max_duration_secs: config.max_duration_secs.map(Secs::new),
                iteration_timeout_secs: config.iteration_timeout_secs.map(Secs::new),
                idle_timeout_secs: Secs::new(config.idle_timeout_secs),
                failure_backoff_secs: Secs::new(config.failure_backoff_secs),
                kill_grace_secs: config.kill_grace_secs.map(Secs::new),
                permissions: match config.permissions.as_str() {
                    "" => typed::Permissions::default(),
                    rights => word("permissions", rights)?,
                },
                backend: config.backend.try_into()?,
                ..rest
            }
        ))
    }
}

impl TryFrom<LoopBackendConfig> for typed::LoopBackendConfig {
    type Error = HostError;

    fn try_from(backend: LoopBackendConfig) -> Result<Self, HostError> {
        let mode = Some(backend.prompt_mode.as_str()).filter(|mode| !mode.is_empty());
        let formats = ["", "text", "json", "stream-json"];
        if !formats.contains(&backend.output_format.as_str()) {
            return Err(unknown(
                "backend.output_format",
                &backend.output_format,
                "`text`, `json`, `stream-json`",
            ));
        }
        Ok(Self {
            prompt_mode: mode
                .map(|mode| word("backend.prompt_mode", mode))
                .transpose()?,
            backend_type: match backend.backend_type.is_empty() {
                true => generic(),
                false => backend.backend_type,
            },
            environment: BTreeMap::from_iter(backend.environment).into(),
            environment_hash: None,
            output_format: match backend.output_format.is_empty() {
                true => text(),
                false => backend.output_format,
            },
            environment_names: backend.environment_names,
        })
    }
}

/// One of an enum's words, by the names that files have for them.
fn word<T: DeserializeOwned>(place: &str, text: &str) -> Result<T, HostError> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| {
        let message = error.to_string();
        let known = message
            .split_once("expected ")
            .map_or("", |(_, known)| known);
        unknown(place, text, known.trim_start_matches("one of "))
    })
}

fn unknown(place: &str, text: &str, known: &str) -> HostError {
    HostError::usage(
        format!("{place}: `{text}` is not a known value"),
        format!("use one of {known}"),
    )
}

fn word_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// What the engine makes of the fields that the library has not.
fn rest(extra: Map<String, Value>) -> Result<typed::IterativeLoopConfig, HostError> {
    let read = |fields| serde_json::from_value(Value::Object(fields));
    read(extra.clone()).map_err(|error| {
        let alone = |(name, value): &(String, Value)| {
            read(Map::from_iter([(name.clone(), value.clone())])).is_err()
        };
        let place = extra
            .into_iter()
            .find(alone)
            .map_or_else(String::new, |(name, _)| name);
        HostError::usage(
            format!("{place}: {error}"),
            "leave it as the state file has it",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed_of(config: &IterativeLoopConfig) -> typed::IterativeLoopConfig {
        typed::IterativeLoopConfig::try_from(config.clone()).unwrap()
    }

    #[test]
    fn a_config_is_the_same_after_both_ways() {
        let mut full: typed::IterativeLoopConfig = serde_json::from_str(
            r#"{"command": "agent", "args": ["-x"], "prompt": "work", "prompt_file": "P.md",
            "completion_promise": "DONE", "promise_match": "line_any_case", "promise_hint": true,
            "promise_grace_secs": 3, "abort_promise": null, "verify": ["make test"],
            "verify_timeout_secs": 60, "max_iterations": null, "max_duration_secs": 90,
            "max_cost_usd": 1.5, "max_tokens": 7, "working_directory": "/w", "state_file": "/s.json",
            "include_iteration_context": false, "fresh_context_mode": true,
            "iteration_timeout_secs": 5, "idle_timeout_secs": 6, "max_failures": 2,
            "failure_backoff_secs": 0, "stall_after": 4, "model": "m", "permissions": "edit",
            "fallback": ["codex"], "spec_files": ["a.md"], "spec_prefix": "s", "max_spec_tokens": 9,
            "git": {"auto_commit": true, "tag_green": true}, "kill_grace_secs": 1,
            "max_log_bytes": 10, "max_snapshot_bytes": null, "proof": "work", "mystery": 7,
            "tasks": {"source": {"kind": "roadmap", "file": "/r.md"}},
            "backend": {"backend_type": "claude", "prompt_mode": "stdin",
                        "output_format": "stream-json", "environment_names": ["KEY"]}}"#,
        )
        .unwrap();
        full.backend.environment.insert("K".into(), "v".into());
        let plain = IterativeLoopConfig::from(full.clone());
        assert_eq!(typed_of(&plain), full);
        // And through a file, as the other type reads and writes it.
        let value = serde_json::to_value(&plain).unwrap();
        let read: typed::IterativeLoopConfig = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(read, full);
        let read: IterativeLoopConfig = serde_json::from_value(value).unwrap();
        assert_eq!(read, plain);
    }

    #[test]
    fn defaults_are_those_of_the_engine_and_of_an_empty_file() {
        let mut engine = typed::IterativeLoopConfig::default();
        engine.backend.prompt_mode = Some(typed::PromptMode::Arg);
        assert_eq!(typed_of(&IterativeLoopConfig::default()), engine);
        let read: IterativeLoopConfig = serde_json::from_str(r#"{"backend": {}}"#).unwrap();
        assert_eq!(typed_of(&read), typed::IterativeLoopConfig::default());
    }

    #[test]
    fn a_part_of_a_second_in_a_file_is_a_second() {
        let read: IterativeLoopConfig =
            serde_json::from_str(r#"{"iteration_timeout_secs": 0.4, "kill_grace_secs": 1.5}"#)
                .unwrap();
        assert_eq!(read.iteration_timeout_secs, Some(1));
        assert_eq!(read.kill_grace_secs, Some(2));
    }

    #[test]
    fn a_wrong_word_is_an_error_that_names_its_place_and_the_right_ones() {
        let with = |change: fn(&mut IterativeLoopConfig)| {
            let mut config = IterativeLoopConfig::default();
            change(&mut config);
            typed::IterativeLoopConfig::try_from(config).unwrap_err()
        };
        let cases = [
            (
                with(|c| c.backend.prompt_mode = "pipe".into()),
                "backend.prompt_mode: `pipe`",
                "`stdin`",
            ),
            (
                with(|c| c.backend.output_format = "xml".into()),
                "backend.output_format: `xml`",
                "`stream-json`",
            ),
            (
                with(|c| c.promise_match = Some("loosely".into())),
                "promise_match: `loosely`",
                "`tagged`",
            ),
            (
                with(|c| c.permissions = "root".into()),
                "permissions: `root`",
                "`edit`",
            ),
            (
                with(|c| drop(c.extra.insert("tasks".into(), json!({"source": 1})))),
                "tasks: ",
                "",
            ),
        ];
        for (error, words, known) in cases {
            assert!(error.to_string().starts_with(words), "{error}");
            assert!(error.hint().unwrap().contains(known), "{:?}", error.hint());
            assert_eq!(error.exit_code(), 64);
        }
    }
}
