//! From a profile and the user's words to a command line.

use std::collections::BTreeMap;

use super::dialect::StreamParser;
use super::jsonl::{JsonlMap, PathError};
use super::own_sandbox::{OwnSandbox, off_words, own_sandbox};
use super::profile::{FormatValue, Permissions, Profile, PromptMode, Reports, StreamKind};
use super::stream::parser;
use super::words::{self, Flags};

/// What the user chose besides the command.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// `--model`.
    pub model: Option<String>,
    /// `--permissions`.
    pub permissions: Permissions,
    /// `--prompt-mode`.
    pub prompt_mode: Option<PromptMode>,
    /// The output format to ask for, where the agent knows it and the command names none.
    pub output_format: Option<String>,
    /// Who confines it.
    pub confined_by: ConfinedBy,
}

/// Who confines the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfinedBy {
    /// The agent itself, as far as it does.
    #[default]
    Itself,
    /// A sandbox of ours, inside which one of its own would fail.
    Us,
}

/// How an agent is started, all but the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The profile's name.
    pub profile: String,
    /// The command line without the prompt.
    pub argv: Vec<String>,
    /// How the prompt is passed to the agent.
    pub prompt_mode: PromptMode,
    /// The output format, as the state file names it: `stream-json`, `text`.
    pub output_format: String,
    /// Which parser reads the output.
    pub stream: StreamKind,
    /// Field paths for that parser.
    pub jsonl: Option<JsonlMap>,
    /// Variables to set where the user has not set them.
    pub env: BTreeMap<String, String>,
    /// Variables to set whatever the environment says: they turn off a sandbox of its own.
    pub off_env: BTreeMap<String, String>,
    /// What turns off a sandbox of its own, for people, where ours is around it.
    pub own_sandbox_off: Option<String>,
    /// What the agent tells of its tokens and cost, read this way.
    pub reports: Reports,
    /// Whether the command grants the agent permissions, by us or by the user.
    pub granted: bool,
    /// Whether the agent acts without any checks of its own, by what stands in its command and its profile.
    pub skips_checks: bool,
    /// What the user should know.
    pub notices: Vec<AgentNotice>,
}

/// Something about a command line that the user should know.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AgentNotice {
    /// The command chooses a model itself.
    #[error("--model {model} is not passed on: the command already has {flag}")]
    ModelGiven {
        /// The model that was asked for.
        model: String,
        /// The flag that is there.
        flag: String,
    },
    /// The agent has no way to choose a model.
    #[error("--model {model} is not passed on: agent `{profile}` has no flag for it")]
    NoModelFlag {
        /// The model that was asked for.
        model: String,
        /// The profile's name.
        profile: String,
    },
    /// The command grants permissions itself.
    #[error("--permissions is not passed on: the command already has {flag}")]
    PermissionsGiven {
        /// The flag that is there.
        flag: String,
    },
    /// The agent has no way to grant this.
    #[error("--permissions is not passed on: agent `{profile}` has no flag for it")]
    NoPermissionFlag {
        /// The profile's name.
        profile: String,
    },
    /// The command asks for a sandbox of the agent's own.
    #[error("{flag} is left in the command, but a sandbox of the agent's own may fail inside ours")]
    OwnSandbox {
        /// The flag that is there.
        flag: String,
    },
    /// The command chooses an output format that is not known.
    #[error(
        "unknown output format `{value}` for agent `{profile}`: its output is read as plain text"
    )]
    UnknownFormat {
        value: String,
        /// The profile's name.
        profile: String,
    },
}

/// Builds the command line. `command` holds the user's words, or nothing for the profile's
/// own command; what stands in them is not given again.
pub fn build(profile: &Profile, command: &[String], choices: &Choices) -> Invocation {
    let own = || shell_words::split(&profile.command).unwrap_or_default();
    let given = if command.is_empty() {
        own()
    } else {
        command.to_vec()
    };
    let at = words::program(&given).map_or(given.len().saturating_sub(1), words::Program::at);
    let (program, rest) = given.split_at((at + 1).min(given.len()));
    let mut building = Building {
        profile,
        flags: Flags::new(rest, &profile.same),
        args: Vec::new(),
        notices: Vec::new(),
    };
    let mut argv = program.to_vec();
    if let Some(subcommand) = profile.subcommand.first()
        && !building.flags.has_word(&profile.subcommand)
    {
        argv.push(subcommand.clone());
    }
    building.add(&profile.args);
    let read = building.format(choices.output_format.as_deref());
    building.model(choices.model.as_deref());
    // The flag that allows everything turns off the agent's sandbox, too; all others would turn it on.
    let (granted, grant_env, own_sandbox_off);
    match choices.permissions {
        Permissions::All => {
            (granted, grant_env) = building.permissions(choices.permissions);
            own_sandbox_off = building.own_sandbox(choices.confined_by);
        }
        Permissions::Agent | Permissions::Edit => {
            own_sandbox_off = building.own_sandbox(choices.confined_by);
            (granted, grant_env) = building.permissions(choices.permissions);
        }
    }
    let Building { args, notices, .. } = building;
    insert(&mut argv, rest, args);
    let skips_checks = skips_checks(profile, &argv);
    let mut env = profile.env.clone();
    env.extend(grant_env);
    if let (ConfinedBy::Us, Some(rule)) = (choices.confined_by, &profile.permissions.root) {
        env.insert(rule.env.clone(), "1".to_owned());
    }
    Invocation {
        profile: profile.name.clone(),
        argv,
        prompt_mode: choices.prompt_mode.unwrap_or(profile.prompt_mode),
        output_format: read.name,
        off_env: match own_sandbox_off {
            Some(_) => profile.sandbox.off_env.clone(),
            None => BTreeMap::new(),
        },
        own_sandbox_off,
        stream: read.stream,
        jsonl: read.jsonl,
        env,
        reports: if read.stream.is_understood() {
            profile.reports
        } else {
            Reports::Nothing
        },
        granted,
        skips_checks,
        notices,
    }
}

/// Whether an agent that is started so asks nobody.
fn skips_checks(profile: &Profile, argv: &[String]) -> bool {
    let rules = &profile.permissions;
    let flags = Flags::new(argv, &profile.same);
    let given = |flag: &str, value: Option<&str>| match value {
        Some(value) => flags.value(flag) == Some(value) || flags.has(&format!("{flag} {value}")),
        None => flags.has(flag),
    };
    let all = rules.all.as_ref().map(|grant| words::groups(&grant.args));
    let granted = all.is_some_and(|groups| {
        let stands = |group: &&[String]| match group {
            [] => false,
            [flag, rest @ ..] => given(flag, rest.first().map(String::as_str)),
        };
        !groups.is_empty() && groups.iter().all(stands)
    });
    let named = |word: &String| match word.split_once(' ') {
        Some((flag, value)) => given(flag, Some(value)),
        None => given(word, None),
    };
    rules.unchecked || granted || rules.skips.iter().any(named)
}

impl Invocation {
    /// The parser of this agent's standard output.
    pub fn parser(&self) -> Result<Box<dyn StreamParser>, PathError> {
        parser(self.stream, self.jsonl.as_ref())
    }
}

/// Our arguments go behind the user's, but before a `--` of theirs.
fn insert(argv: &mut Vec<String>, rest: &[String], args: Vec<String>) {
    let end = rest
        .iter()
        .position(|word| word == "--")
        .unwrap_or(rest.len());
    argv.extend_from_slice(&rest[..end]);
    argv.extend(args);
    argv.extend_from_slice(&rest[end..]);
}

struct ReadProfile {
    name: String,
    stream: StreamKind,
    jsonl: Option<JsonlMap>,
}

struct Building<'a> {
    profile: &'a Profile,
    flags: Flags<'a>,
    args: Vec<String>,
    notices: Vec<AgentNotice>,
}

impl Building<'_> {
    /// Adds arguments flag by flag, leaving out what the user gave.
    fn add(&mut self, args: &[String]) {
        for group in words::groups(args) {
            let flag = group.first().map_or("", |flag| flag.as_str());
            let name = flag.split_once('=').map_or(flag, |(name, _)| name);
            let ours = Flags::new(&self.args, &self.profile.same).has(name);
            if !self.flags.has(name) && !ours {
                self.args.extend_from_slice(group);
            }
        }
    }

    /// The output format that the user chose, or the profile's.
    fn format(&mut self, wanted: Option<&str>) -> ReadProfile {
        let profile = self.profile;
        let plain = |name: &str, stream| ReadProfile {
            name: name.to_owned(),
            stream,
            jsonl: profile.jsonl.clone(),
        };
        let Some(format) = &profile.format else {
            let name = if profile.stream == StreamKind::Text {
                "text"
            } else {
                "json"
            };
            return plain(name, profile.stream);
        };
        let chosen = self.flags.value(&format.flag);
        let wanted = wanted.filter(|wanted| format.values.contains_key(*wanted));
        let name = chosen.or(wanted).unwrap_or(&format.default);
        if chosen.is_none() {
            self.args.extend([format.flag.clone(), name.to_owned()]);
        }
        match format.values.get(name) {
            Some(FormatValue {
                stream,
                args,
                jsonl,
            }) => {
                self.add(args);
                let jsonl = jsonl.clone().or_else(|| profile.jsonl.clone());
                ReadProfile {
                    name: name.to_owned(),
                    stream: *stream,
                    jsonl,
                }
            }
            None => {
                let (value, profile) = (name.to_owned(), profile.name.clone());
                self.notices
                    .push(AgentNotice::UnknownFormat { value, profile });
                plain(name, StreamKind::Text)
            }
        }
    }

    fn model(&mut self, model: Option<&str>) {
        let Some(model) = model else { return };
        let model = model.to_owned();
        let Some(flag) = self.profile.model.first() else {
            let profile = self.profile.name.clone();
            return self
                .notices
                .push(AgentNotice::NoModelFlag { model, profile });
        };
        let name = flag.split_once('=').map_or(flag.as_str(), |(name, _)| name);
        if self.flags.has(name) {
            let flag = name.to_owned();
            return self.notices.push(AgentNotice::ModelGiven { model, flag });
        }
        let args = self
            .profile
            .model
            .iter()
            .map(|arg| arg.replace("{model}", &model));
        self.args.extend(args);
    }

    /// Turns off a sandbox of the agent's own where ours is around it; gives what does.
    fn own_sandbox(&mut self, confined_by: ConfinedBy) -> Option<String> {
        if confined_by == ConfinedBy::Itself {
            return None;
        }
        let needs = &self.profile.sandbox;
        let ours = Flags::new(&self.args, &self.profile.same);
        match own_sandbox(needs, &self.flags, &ours) {
            OwnSandbox::None => None,
            OwnSandbox::OffAlready(word) => Some(word),
            OwnSandbox::LeftOn(flag) => {
                self.notices.push(AgentNotice::OwnSandbox { flag });
                None
            }
            OwnSandbox::TurnOff => {
                self.add(&needs.off_args);
                Some(off_words(needs))
            }
        }
    }

    /// Whether anything is granted, and with which variables.
    fn permissions(&mut self, wanted: Permissions) -> (bool, BTreeMap<String, String>) {
        let rules = &self.profile.permissions;
        let given = rules.given.iter().find(|flag| self.flags.has(flag));
        let grant = match wanted {
            Permissions::Agent => return (given.is_some(), BTreeMap::new()),
            Permissions::Edit => rules.edit.as_ref(),
            Permissions::All => rules.all.as_ref(),
        };
        match (given, grant) {
            (Some(flag), _) => {
                self.notices
                    .push(AgentNotice::PermissionsGiven { flag: flag.clone() });
                (true, BTreeMap::new())
            }
            (None, Some(grant)) => {
                self.add(&grant.args);
                (true, grant.env.clone())
            }
            (None, None) => {
                let profile = self.profile.name.clone();
                self.notices.push(AgentNotice::NoPermissionFlag { profile });
                (false, BTreeMap::new())
            }
        }
    }
}

#[cfg(test)]
mod tests;
