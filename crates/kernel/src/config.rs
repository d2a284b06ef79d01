//! What the user asked for. Frozen in the journal when a loop starts, so that an
//! agent that edits a config file changes no gate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::sandbox::{LevelReason, SandboxConfig, SandboxLevel};
use crate::tasks::TasksConfig;
pub use descartes_agents::agent::{Permissions, PromptMode};
use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_plans::graph::Proof;
use descartes_text::units::Secs;

/// Summaries that stay in the state file; all of them are in the journal.
pub const KEPT_SUMMARIES: usize = 50;

/// How the agent is started and understood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopBackendConfig {
    /// `claude`, `codex`, `gemini`, `opencode`, `generic`, or the name of a profile.
    pub backend_type: String,
    /// How the prompt is passed; `None` is the backend's own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_mode: Option<PromptMode>,
    /// Variables for the agent alone.
    pub environment: Environment,
    /// Hash of those that stand in the state file: their values are in no journal, and the file lies in
    /// the agent's reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_hash: Option<String>,
    /// Names of those variables, so that a resume can ask for them again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment_names: Vec<String>,
    /// `text`, `stream-json`, `json`: picks the parser.
    pub output_format: String,
}

impl LoopBackendConfig {
    /// The output format that the agent is asked for; `None`: its profile's.
    pub fn wanted_format(&self) -> Option<String> {
        Some(self.output_format.clone()).filter(|format| format != "text")
    }
}

/// Variables for the agent. Their values are not written, except back into the file of the person
/// who wrote them there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, String>")]
pub struct Environment {
    values: BTreeMap<String, String>,
    written: bool,
}

impl Environment {
    /// As they stand in a state file: they are written into it again.
    pub fn in_a_file(values: BTreeMap<String, String>) -> Self {
        Self {
            values,
            written: true,
        }
    }

    /// Names and values.
    pub fn into_values(self) -> BTreeMap<String, String> {
        self.values
    }
}

impl From<BTreeMap<String, String>> for Environment {
    fn from(values: BTreeMap<String, String>) -> Self {
        Self {
            values,
            written: false,
        }
    }
}

impl std::ops::Deref for Environment {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl std::ops::DerefMut for Environment {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.values
    }
}

impl Serialize for Environment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.written {
            true => self.values.serialize(serializer),
            false => BTreeMap::<(), ()>::new().serialize(serializer),
        }
    }
}

impl Default for LoopBackendConfig {
    fn default() -> Self {
        Self {
            backend_type: "generic".to_owned(),
            prompt_mode: None,
            environment: Environment::default(),
            environment_hash: None,
            environment_names: Vec::new(),
            output_format: "text".to_owned(),
        }
    }
}

/// What the loop does in git by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopGitConfig {
    /// Commit after each iteration.
    pub auto_commit: bool,
    /// Message of those commits.
    pub commit_template: String,
    /// Create a branch and switch to it first.
    pub create_branch: bool,
    /// Name of that branch.
    pub branch_template: String,
    /// Tag `descartes/{name}/{iteration}` when all gates are green.
    pub tag_green: bool,
}

impl Default for LoopGitConfig {
    fn default() -> Self {
        Self {
            auto_commit: false,
            commit_template: "loop: iteration {iteration}".to_owned(),
            create_branch: false,
            branch_template: "loop/{timestamp}".to_owned(),
            tag_green: false,
        }
    }
}

/// Everything that decides how a loop behaves.
///
/// Fields that are absent in a file take the documented defaults; unknown fields are
/// kept in `extra` and written back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterativeLoopConfig {
    /// The agent's program.
    pub command: String,
    /// Its arguments, before anything the backend adds.
    pub args: Vec<String>,
    pub prompt: String,
    /// The task from a file, read again at every iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub prompt_file: Option<PathBuf>,
    /// What the agent prints when it is done; `None`: no promise.
    pub completion_promise: Option<String>,
    /// How it must stand in the output; `None`: the backend's own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_match: Option<PromiseMatch>,
    /// Whether iteration 1 is told how to say it; `None`: the backend's own way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_hint: Option<bool>,
    /// How long an agent may be silent after its promise before it is ended.
    pub promise_grace_secs: Secs,
    /// What the agent prints when it cannot be done.
    pub abort_promise: Option<String>,
    /// The gates, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Time limit for each gate.
    pub verify_timeout_secs: Secs,
    /// Iteration limit; `None` (null in files) is unlimited.
    #[serde(default = "ten")]
    pub max_iterations: Option<u32>,
    /// Time budget for the whole loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_secs: Option<Secs>,
    /// Cost budget for the whole loop, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Token budget for the whole loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Where the loop works; `None`: the current directory.
    #[serde(with = "descartes_text::path_text::maybe")]
    pub working_directory: Option<PathBuf>,
    /// The state file; `None`: `.descartes/loop-state.json` in the working directory.
    #[serde(with = "descartes_text::path_text::maybe")]
    pub state_file: Option<PathBuf>,
    /// Whether later iterations get the context block.
    pub include_iteration_context: bool,
    /// Only gate failures and a person's notes are added to the prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fresh_context_mode: bool,
    /// Wall limit of one iteration.
    pub iteration_timeout_secs: Option<Secs>,
    /// Silence that ends an iteration as hung.
    pub idle_timeout_secs: Secs,
    /// Failures in a row that end the loop.
    pub max_failures: u32,
    /// First wait after a failed iteration; it doubles each time.
    pub failure_backoff_secs: Secs,
    /// Iterations without progress before a nudge (twice: stop); `None`: the backend's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after: Option<u32>,
    /// How the agent is started and understood.
    pub backend: LoopBackendConfig,
    /// The model, passed with the backend's own flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent may do without asking.
    #[serde(skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Where agents and gates may write, and what they may see.
    #[serde(skip_serializing_if = "is_default")]
    pub sandbox: SandboxConfig,
    /// Agents that take over when the ones before them are limited or failing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Files whose text is put before the prompt at every iteration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub spec_files: Vec<PathBuf>,
    /// A fixed text put before the prompt at every iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_prefix: Option<String>,
    /// Token budget for the spec block.
    pub max_spec_tokens: u32,
    pub git: LoopGitConfig,
    /// Between asking a process tree to end and killing it; `None`: as the agent's profile says,
    /// else [`KILL_GRACE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_grace_secs: Option<Secs>,
    /// Bytes of log for an iteration; `None` is unlimited.
    #[serde(default = "two_gb")]
    pub max_log_bytes: Option<u64>,
    /// Bytes of snapshots of the work tree; `None` is unlimited.
    #[serde(default = "two_gb", skip_serializing_if = "is_two_gb")]
    pub max_snapshot_bytes: Option<u64>,
    /// What proves an attempt at a task; `None` in loops of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The graph of tasks that this loop runs; `None` in loops over one prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<TasksConfig>>,
    /// Fields of a newer version, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Between asking a process tree to end and killing it, where nobody says otherwise.
pub const KILL_GRACE: Duration = Duration::from_secs(5);

fn ten() -> Option<u32> {
    Some(10)
}

fn two_gb() -> Option<u64> {
    Some(2_000_000_000)
}

fn is_two_gb(value: &Option<u64>) -> bool {
    *value == two_gb()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for IterativeLoopConfig {
    fn default() -> Self {
        Self {
            command: String::new(),
            args: Vec::new(),
            prompt: String::new(),
            prompt_file: None,
            completion_promise: None,
            promise_match: None,
            promise_hint: None,
            promise_grace_secs: Secs::new(10),
            abort_promise: Some("BLOCKED".to_owned()),
            verify: Vec::new(),
            verify_timeout_secs: Secs::new(30 * 60),
            max_iterations: ten(),
            max_duration_secs: None,
            max_cost_usd: None,
            max_tokens: None,
            working_directory: None,
            state_file: None,
            include_iteration_context: true,
            fresh_context_mode: false,
            iteration_timeout_secs: None,
            idle_timeout_secs: Secs::new(30 * 60),
            max_failures: 5,
            failure_backoff_secs: Secs::new(1),
            stall_after: None,
            backend: LoopBackendConfig::default(),
            model: None,
            permissions: Permissions::Agent,
            sandbox: SandboxConfig::default(),
            fallback: Vec::new(),
            spec_files: Vec::new(),
            spec_prefix: None,
            max_spec_tokens: 5000,
            git: LoopGitConfig::default(),
            kill_grace_secs: None,
            max_log_bytes: two_gb(),
            max_snapshot_bytes: two_gb(),
            proof: None,
            tasks: None,
            extra: Map::new(),
        }
    }
}

/// A config that cannot be run, with what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What is wrong.
    pub message: String,
    /// What to type next.
    pub hint: String,
}

fn refuse<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError {
        message: message.into(),
        hint: hint.into(),
    })
}

impl IterativeLoopConfig {
    /// Works in another directory from now on: files that lay in the old one are those in the new one.
    pub fn move_to(&mut self, dir: &Path) {
        let Some(old) = self.working_directory.replace(dir.to_owned()) else {
            return;
        };
        let tasks = self.tasks.as_mut().map(|tasks| {
            let files = [&mut tasks.plan_path, &mut tasks.handoff_path];
            let source = tasks.source.path_mut();
            let specs = &mut tasks.spec.additional_specs;
            files
                .into_iter()
                .flatten()
                .chain(std::iter::once(source))
                .chain(specs)
        });
        let sandbox = &mut self.sandbox;
        let granted = sandbox.write.iter_mut().chain(&mut sandbox.read);
        let granted = granted.chain(&mut sandbox.hide);
        let own = self.prompt_file.iter_mut().chain(&mut self.spec_files);
        let own = own.chain(granted);
        for file in own.chain(tasks.into_iter().flatten()) {
            if let Ok(below) = file.strip_prefix(&old) {
                *file = dir.join(below);
            }
        }
    }

    /// Whether the prompt is passed at all.
    pub fn wants_prompt(&self) -> bool {
        self.backend.prompt_mode != Some(PromptMode::None) && self.tasks.is_none()
    }

    /// Its agent, as a change of another config.
    pub fn agent(&self) -> AgentChange {
        AgentChange {
            backend_type: self.backend.backend_type.clone(),
            command: self.command.clone(),
            args: self.args.clone(),
            output_format: self.backend.output_format.clone(),
        }
    }

    /// Checks everything that can be known without touching the machine.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.command.trim().is_empty() {
            return refuse(
                "no agent command",
                "set one with --command, or use --backend claude",
            );
        }
        if self.wants_prompt() && self.prompt_file.is_none() {
            if self.prompt.trim().is_empty() {
                return refuse(
                    "the prompt is empty",
                    "set one with --prompt or --prompt-file, or use --prompt-mode none",
                );
            }
            check_prompt(&self.prompt)?;
        }
        if self.max_iterations == Some(0) {
            return refuse(
                "--max-iterations 0 would do nothing",
                "use 1 or more, or `--max-iterations unlimited`",
            );
        }
        if self.max_failures == 0 {
            return refuse(
                "--max-failures 0 would stop the loop before it starts",
                "use 1 or more",
            );
        }
        for gate in &self.verify {
            if gate.trim().is_empty() {
                return refuse("an empty gate proves nothing", "pass a command to --verify");
            }
        }
        self.check_promise()
    }

    fn check_promise(&self) -> Result<(), ConfigError> {
        let spec = PromiseSpec {
            done: self.completion_promise.clone(),
            abort: self.abort_promise.clone(),
            mode: self.promise_match.unwrap_or(PromiseMatch::Tagged),
        };
        spec.check().map_err(|error| ConfigError {
            message: error.to_string(),
            hint: "for example --completion-promise COMPLETE --abort-promise BLOCKED".to_owned(),
        })
    }

    /// The limit on iterations as people see it.
    pub fn limit_label(&self) -> String {
        self.max_iterations
            .map_or_else(|| "unlimited".to_owned(), |n| n.to_string())
    }

    /// The agent as a person would type it.
    pub fn command_line(&self) -> String {
        let words = std::iter::once(&self.command)
            .chain(&self.args)
            .map(String::as_str);
        shell_line(words)
    }
}

impl IterativeLoopConfig {
    /// Who works, as a person would type it: the agents of the tasks, where those have their own.
    pub fn agent_line(&self) -> String {
        let agents = self.tasks.as_ref().map(|tasks| tasks.agents.join(", "));
        let agents = agents.filter(|agents| !agents.is_empty());
        agents.unwrap_or_else(|| self.command_line())
    }
}

/// Words as a person would type them.
pub fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    shell_words::join(words)
}

/// Checks a prompt's text, whether given or read from a file.
pub fn check_prompt(prompt: &str) -> Result<(), ConfigError> {
    match prompt.find('\0') {
        Some(at) => refuse(
            format!("the prompt contains a NUL byte at byte {at}"),
            "remove it: a NUL byte cannot be passed to a program",
        ),
        None => Ok(()),
    }
}

/// Another agent, or another way to understand the same one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentChange {
    /// The profile's name.
    pub backend_type: String,
    /// The agent's program.
    pub command: String,
    /// Its arguments, before anything the backend adds.
    pub args: Vec<String>,
    /// How its output is read.
    pub output_format: String,
}

/// Changes of limits, gates, prompt, agent or model, by `loop resume` flags or `loop set`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigChange {
    /// New iteration limit; the inner `None` is unlimited.
    #[serde(skip_serializing_if = "Option::is_none", with = "double_option")]
    pub max_iterations: Option<Option<u32>>,
    /// New time budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_secs: Option<Secs>,
    /// New cost budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// New token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// New wall limit of one iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration_timeout_secs: Option<Secs>,
    /// New idle limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_secs: Option<Secs>,
    /// New limit of failures in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// New stall threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after: Option<u32>,
    /// New gates, replacing all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// New time limit of each gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_timeout_secs: Option<Secs>,
    /// New prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// New prompt file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub prompt_file: Option<PathBuf>,
    /// New model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent may do without asking; by `loop resume` alone, as are the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// How the prompt is passed to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_mode: Option<PromptMode>,
    /// Another agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentChange>>,
    /// Whether tasks count that others marked while the loop ran; by `loop resume` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_marks: Option<bool>,
    /// What prepares worktrees, where the config says otherwise by now; by `loop resume` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_setup: Option<String>,
    /// Another engine, at which workers on other machines are met; by `loop resume` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<String>,
    /// How far agents and gates are confined; by `loop resume` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
    /// Why, where nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_why: Option<LevelReason>,
    /// Paths that may be written as well from here on; by `loop resume` alone, as is the next one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub sandbox_write: Vec<PathBuf>,
    /// Paths that may be read as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub sandbox_read: Vec<PathBuf>,
}

mod double_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &Option<Option<u32>>, s: S) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<u32>>, D::Error> {
        Option::<u32>::deserialize(d).map(Some)
    }
}

fn add_new(known: &mut Vec<PathBuf>, more: &[PathBuf]) {
    for path in more {
        if !known.contains(path) {
            known.push(path.clone());
        }
    }
}

macro_rules! take {
    ($target:ident, $change:ident: $($field:ident),+) => {
        $(if let Some(value) = &$change.$field { $target.$field = value.clone().into(); })+
    };
}

impl ConfigChange {
    /// Whether the sandbox is another from here on.
    pub fn changes_sandbox(&self) -> bool {
        self.sandbox.is_some() || !self.sandbox_write.is_empty() || !self.sandbox_read.is_empty()
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Puts the change into a config.
    pub fn apply_to(&self, config: &mut IterativeLoopConfig) {
        take!(config, self: max_iterations, max_duration_secs, max_cost_usd, max_tokens,
            iteration_timeout_secs, idle_timeout_secs, max_failures, stall_after, verify,
            verify_timeout_secs, model, permissions);
        if let Some(mode) = self.prompt_mode {
            config.backend.prompt_mode = Some(mode);
        }
        if let Some(agent) = &self.agent {
            config.command = agent.command.clone();
            config.args = agent.args.clone();
            config.backend.backend_type = agent.backend_type.clone();
            config.backend.output_format = agent.output_format.clone();
        }
        if let Some(prompt) = &self.prompt {
            config.prompt = prompt.clone();
            config.prompt_file = None;
        }
        if let Some(file) = &self.prompt_file {
            config.prompt_file = Some(file.clone());
        }
        if let Some(level) = self.sandbox {
            config.sandbox.level = Some(level);
            config.sandbox.why.clone_from(&self.sandbox_why);
        }
        add_new(&mut config.sandbox.write, &self.sandbox_write);
        add_new(&mut config.sandbox.read, &self.sandbox_read);
        if let (Some(trust), Some(tasks)) = (self.trust_marks, &mut config.tasks) {
            tasks.trust_marks = trust;
        }
        if let (Some(setup), Some(tasks)) = (&self.worktree_setup, &mut config.tasks) {
            tasks.worktree_setup = Some(setup.clone());
        }
        if let (Some(engine), Some(tasks)) = (&self.workers, &mut config.tasks) {
            tasks.workers = Some(engine.clone());
        }
    }

    /// Refuses what would change nothing in a loop with this config.
    pub fn check_for(&self, config: &IterativeLoopConfig) -> Result<(), ConfigError> {
        let prompt = self.prompt.is_some() || self.prompt_file.is_some();
        match prompt && config.tasks.is_some() {
            false => Ok(()),
            true => Err(ConfigError {
                message: "a task loop has no prompt of its own to change".to_owned(),
                hint: "send a note to all agents with `descartes loop say`, or edit the task file"
                    .to_owned(),
            }),
        }
    }

    /// Names of the changed settings, for a person.
    pub fn names(&self) -> Vec<String> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> IterativeLoopConfig {
        IterativeLoopConfig {
            command: "claude".into(),
            prompt: "do it".into(),
            completion_promise: Some("COMPLETE".into()),
            ..Default::default()
        }
    }

    #[test]
    fn a_config_that_moves_takes_the_files_of_its_directory_along() {
        let mut config = IterativeLoopConfig {
            working_directory: Some("/old/proj".into()),
            prompt_file: Some("/old/proj/P.md".into()),
            spec_files: vec!["specs/a.md".into(), "/old/projects/b.md".into()],
            ..good()
        };
        config.tasks = serde_json::from_value(serde_json::json!({
            "source": {"kind": "roadmap", "file": "/old/proj/ROADMAP.md"},
            "plan_path": "/elsewhere/plan.md", "handoff_path": "/old/proj/notes.md",
        }))
        .unwrap();
        config.move_to(Path::new("/new"));
        assert_eq!(config.working_directory.as_deref(), Some(Path::new("/new")));
        assert_eq!(config.prompt_file.as_deref(), Some(Path::new("/new/P.md")));
        let specs: Vec<PathBuf> = vec!["specs/a.md".into(), "/old/projects/b.md".into()];
        assert_eq!(config.spec_files, specs);
        let tasks = config.tasks.unwrap();
        assert_eq!(tasks.source.path(), Path::new("/new/ROADMAP.md"));
        assert_eq!(
            tasks.plan_path.as_deref(),
            Some(Path::new("/elsewhere/plan.md"))
        );
        assert_eq!(
            tasks.handoff_path.as_deref(),
            Some(Path::new("/new/notes.md"))
        );
    }

    #[test]
    fn a_file_written_by_hand_gets_the_documented_defaults() {
        let config: IterativeLoopConfig =
            serde_json::from_str(r#"{"command":"claude","prompt":"x"}"#).unwrap();
        assert_eq!(config.max_iterations, Some(10));
        assert!(config.include_iteration_context);
        assert_eq!(config.completion_promise, None);
        assert_eq!(config.backend.backend_type, "generic");
        assert_eq!(config.backend.output_format, "text");
        assert_eq!(config.git, LoopGitConfig::default());
        let unlimited: IterativeLoopConfig =
            serde_json::from_str(r#"{"command":"c","prompt":"x","max_iterations":null}"#).unwrap();
        assert_eq!(unlimited.max_iterations, None);
    }

    #[test]
    fn unknown_fields_come_back_and_environment_values_never_do() {
        let text = r#"{"command":"c","prompt":"x","colour":"blue","backend":{"environment":{"KEY":"s3cret"}}}"#;
        let config: IterativeLoopConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.backend.environment["KEY"], "s3cret");
        let written = serde_json::to_string(&config).unwrap();
        assert!(written.contains(r#""colour":"blue""#));
        assert!(!written.contains("s3cret"));
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_hint() {
        let cases: Vec<(&str, IterativeLoopConfig)> = vec![
            (
                "command",
                IterativeLoopConfig {
                    command: " ".into(),
                    ..good()
                },
            ),
            (
                "prompt is empty",
                IterativeLoopConfig {
                    prompt: "\n".into(),
                    ..good()
                },
            ),
            (
                "NUL",
                IterativeLoopConfig {
                    prompt: "a\0b".into(),
                    ..good()
                },
            ),
            (
                "max-iterations 0",
                IterativeLoopConfig {
                    max_iterations: Some(0),
                    ..good()
                },
            ),
            (
                "max-failures 0",
                IterativeLoopConfig {
                    max_failures: 0,
                    ..good()
                },
            ),
            (
                "empty gate",
                IterativeLoopConfig {
                    verify: vec![String::new()],
                    ..good()
                },
            ),
            (
                "`<`",
                IterativeLoopConfig {
                    completion_promise: Some("<promise>X".into()),
                    ..good()
                },
            ),
            (
                "are both",
                IterativeLoopConfig {
                    abort_promise: Some("complete".into()),
                    ..good()
                },
            ),
        ];
        assert_eq!(good().check(), Ok(()));
        for (words, config) in cases {
            let error = config.check().unwrap_err();
            assert!(error.message.contains(words), "{words}: {}", error.message);
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn a_change_replaces_what_it_names_and_nothing_else() {
        let change = ConfigChange {
            max_iterations: Some(None),
            verify: Some(vec!["true".into()]),
            ..Default::default()
        };
        let json = serde_json::to_string(&change).unwrap();
        let change: ConfigChange = serde_json::from_str(&json).unwrap();
        let mut config = good();
        change.apply_to(&mut config);
        let expected = IterativeLoopConfig {
            max_iterations: None,
            verify: vec!["true".into()],
            ..good()
        };
        assert_eq!(config, expected);
        assert_eq!(change.names(), ["max_iterations", "verify"]);
        assert!(ConfigChange::default().is_empty());
    }
}
