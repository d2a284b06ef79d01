//! Profiles: how an agent is started and read, as data.
//!
//! The built-in ones stand in `builtin.toml`; a user's stand in the same form in a config
//! file, under `[agents.NAME]`. A table with the name of a built-in profile changes only the
//! keys it has; `like = "claude"` begins from another profile.

use std::collections::BTreeMap;
use std::time::Duration;

use descartes_text::sandbox_level::SandboxLevel;
use descartes_text::units::parse_duration;
use serde::{Deserialize, Deserializer, Serialize};

use super::jsonl::JsonlMap;

/// How an agent is started and read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The profile's name: what `--backend` takes.
    #[serde(skip)]
    pub name: String,
    /// The command that is run where the user names none, by shell quoting rules.
    pub command: String,
    /// Package names by which `npx` and the like start the same agent.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The subcommand for headless runs, and other words that already are one.
    #[serde(default)]
    pub subcommand: Vec<String>,
    /// Arguments for headless runs; a flag that the user's command has is not given again.
    #[serde(default)]
    pub args: Vec<String>,
    /// Groups of flags that mean the same.
    #[serde(default)]
    pub same: Vec<Vec<String>>,
    /// The flag that chooses the output format, and what reads each.
    #[serde(default)]
    pub format: Option<Format>,
    /// How the output is read where no format decides.
    #[serde(default)]
    pub stream: StreamKind,
    /// Where things stand in the stream, for `stream = "jsonl"`.
    #[serde(default)]
    pub jsonl: Option<JsonlMap>,
    /// In plain text: a last paragraph that begins so tells an error, whatever the exit code.
    #[serde(default)]
    pub error_starts: Vec<String>,
    /// How the prompt is passed to the agent.
    #[serde(default)]
    pub prompt_mode: PromptMode,
    /// Arguments that carry the prompt in mode `arg`.
    #[serde(default = "prompt_word")]
    pub prompt_arg: Vec<String>,
    /// Arguments that tell the agent to read its standard input.
    #[serde(default)]
    pub prompt_stdin: Vec<String>,
    /// Arguments that name the prompt's file in mode `file`.
    #[serde(default = "file_word")]
    pub prompt_file: Vec<String>,
    /// The longest prompt that the agent takes from its standard input.
    #[serde(default)]
    pub prompt_limit: Option<PromptLimit>,
    /// Arguments that choose the model.
    #[serde(default)]
    pub model: Vec<String>,
    /// What the agent is allowed to do, and how it is told.
    #[serde(default)]
    pub permissions: PermissionRules,
    /// Variables set for the agent where the user has not set them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What it needs inside a sandbox of ours.
    #[serde(default)]
    pub sandbox: SandboxNeeds,
    /// Time between asking it to end and killing it, where the user gives none.
    #[serde(default, deserialize_with = "duration")]
    pub kill_grace: Option<Duration>,
    /// Percent of a core that it uses while it merely waits: with less than this, silence is a hang.
    #[serde(default)]
    pub idle_cpu: Option<f64>,
    /// What the agent tells of its tokens and cost.
    #[serde(default)]
    pub reports: Reports,
    /// Arguments that print the version.
    #[serde(default = "version_flag")]
    pub version_args: Vec<String>,
    /// The newest version that was run with this profile.
    #[serde(default)]
    pub known_version: Option<String>,
    /// What to do about a wrong login.
    #[serde(default)]
    pub login: Option<String>,
    /// Whether a test of ours has run this agent.
    #[serde(default)]
    pub verified: bool,
}

/// The flag that chooses an output format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    pub flag: String,
    /// The value that is given where the user's command has none.
    pub default: String,
    /// What each value means.
    pub values: BTreeMap<String, FormatValue>,
}

/// What one output format means.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatValue {
    /// How it is read.
    pub stream: StreamKind,
    /// Arguments without which it does not work.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where things stand in it, where that differs from the profile's own.
    #[serde(default)]
    pub jsonl: Option<JsonlMap>,
}

/// Which parser reads an agent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Claude's events, and those of agents that took them over.
    Claude,
    /// Codex's events.
    Codex,
    /// Gemini's events.
    Gemini,
    /// Opencode's events.
    OpenCode,
    /// JSON of any shape, read by field paths.
    Jsonl,
    /// Plain text.
    #[default]
    Text,
}

impl StreamKind {
    /// Whether the agent's own words can be told from everything else in the stream.
    pub fn is_understood(self) -> bool {
        self != Self::Text
    }
}

/// How the prompt is passed to the agent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptMode {
    /// As an argument.
    #[default]
    Arg,
    /// On standard input, which is then closed.
    Stdin,
    /// In the variable `PROMPT`.
    Env,
    /// As the path of a file that holds it.
    File,
    /// Not at all.
    None,
}

impl PromptMode {
    /// What a flag or a config file may say.
    pub const NAMES: &'static [&'static str] = &["arg", "stdin", "env", "file", "none"];
}

/// The longest prompt that an agent takes, and what it does with a longer one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptLimit {
    /// In bytes.
    Bytes(u64),
    /// In characters.
    Chars(u64),
}

/// What a user lets the agent do.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// What the agent's own settings and the user's command allow.
    #[default]
    Agent,
    /// Change files.
    Edit,
    All,
}

impl Permissions {
    /// What a flag or a config file may say.
    pub const NAMES: &'static [&'static str] = &["agent", "edit", "all"];
}

/// How an agent is told what it may do, and what happens when it is not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionRules {
    /// For `--permissions edit`.
    pub edit: Option<Grant>,
    /// For `--permissions all`.
    pub all: Option<Grant>,
    /// Flags by which a user's command already grants something.
    pub given: Vec<String>,
    /// Without a grant the agent cannot work headless; why, for people.
    pub needed: Option<String>,
    /// Files of the agent's own in which a grant may stand.
    pub settings: Vec<SettingsFile>,
    /// Further flags, or `flag value`, by which a user's command takes all checks away, besides those of
    /// `all`.
    pub skips: Vec<String>,
    /// Whether it asks nobody, whatever its command says.
    pub unchecked: bool,
    /// What the agent refuses as root.
    pub root: Option<RootRule>,
}

/// Arguments and variables that grant a permission.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// A settings file of an agent in which permissions may be granted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsFile {
    /// The folder: `~/…` in the home directory, else in the working directory.
    pub dir: String,
    /// The variable that names another folder.
    #[serde(default)]
    pub dir_env: Option<String>,
    /// The file's name; `.toml` files are read as TOML, all others as JSON.
    pub file: String,
    /// Keys that grant something when they hold anything but the values in `not`.
    pub keys: Vec<String>,
    /// Values that grant nothing.
    #[serde(default)]
    pub not: Vec<String>,
    /// Values that take all checks away.
    #[serde(default)]
    pub skips: Vec<String>,
}

/// Flags that an agent refuses as root unless a variable says that it is contained.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootRule {
    pub flags: Vec<String>,
    /// The variable, to be set to `1`.
    pub env: String,
}

/// What an agent needs inside a sandbox of ours. Paths begin with `~/`; a folder ends with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxNeeds {
    /// How far loops with this agent are confined at least.
    pub level: Option<SandboxLevel>,
    /// Folders of its own that it must write: logins, sessions, databases. Made where they are missing, as
    /// the agent itself would make them; hidden from gates and from other agents.
    pub write: Vec<String>,
    /// A variable that names another place for the first of them.
    pub dir_env: Option<String>,
    /// Below `write`: what starts programs in the user's next session (settings, hooks, plugins). Read-only,
    /// and made empty where it is missing, since what is not there cannot be protected.
    pub lock: Vec<String>,
    /// Files that it insists on writing outside of `write` when they are missing, and their text.
    pub seed: BTreeMap<String, String>,
    /// Variables with its keys; `ANTHROPIC_*` stands for all that begin so.
    pub env: Vec<String>,
    /// Settings files that name further variables, as `env_key = "NAME"` or `{env:NAME}`, and further hosts, as
    /// `base_url = "https://…"` or `"baseURL": "https://…"`.
    pub env_files: Vec<String>,
    /// Hosts of its provider, for a sandbox without any other network.
    pub hosts: Vec<String>,
    /// Variables that hold the address of another provider.
    pub host_env: Vec<String>,
    /// Arguments that turn off a sandbox of its own, which would fail inside ours.
    pub off_args: Vec<String>,
    /// Variables that do, whatever the environment says.
    pub off_env: BTreeMap<String, String>,
    /// Further flags in a command that turn it off.
    pub off_by: Vec<String>,
    /// Flags in a command that turn it on; they are left, and the user is told.
    pub on_by: Vec<String>,
}

/// What an agent tells of its tokens and cost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reports {
    /// Tokens and dollars.
    Cost,
    /// Tokens alone.
    Tokens,
    #[default]
    Nothing,
}

/// A duration as people write it: `1s`.
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let duration = parse_duration(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(duration))
}

fn prompt_word() -> Vec<String> {
    vec!["{prompt}".into()]
}

fn file_word() -> Vec<String> {
    vec!["{file}".into()]
}

fn version_flag() -> Vec<String> {
    vec!["--version".into()]
}
