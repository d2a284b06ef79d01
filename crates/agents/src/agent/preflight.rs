//! What would fail anyway is refused before the first iteration, with the way out.

use serde_json::Value;

use super::invocation::Invocation;
use super::profile::{Permissions, Profile, RootRule, SettingsFile};

/// What the edge knows of the machine and the agent's own settings.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// Whether the agent will run as root.
    pub root: bool,
    /// Whether a variable will be set to something for the agent.
    pub has_env: &'a dyn Fn(&str) -> bool,
    /// Whether one of the agent's settings files grants it something
    /// (see [`SettingsFile::grants`]).
    pub settings_grant: bool,
}

/// A run that would fail, and what to type instead.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct PreflightError {
    /// What would go wrong.
    pub message: String,
    /// What to type instead.
    pub hint: String,
    /// Where it would be denied its tools: which permissions would let it work, and a flag of its
    /// own that does the same in its command.
    pub denied: Option<Denied>,
}

/// An agent that cannot ask, and would be denied its tools.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Denied {
    /// Which agent.
    pub agent: String,
    /// What `--permissions` can be for it, the least first.
    pub ways: Vec<Permissions>,
    /// A flag of the agent's own.
    pub own_flag: Option<String>,
}

impl Denied {
    /// What to type where the loop is there already, and its command stays as it is.
    pub fn hint_for_resume(&self) -> String {
        format!("add {}", self.flags().join(" or "))
    }

    fn flags(&self) -> Vec<&'static str> {
        let flag = |way: &Permissions| match way {
            Permissions::Agent => None,
            Permissions::Edit => Some(
                "--permissions edit (it may change files, and not run commands such as your tests)",
            ),
            Permissions::All => {
                Some("--permissions all (it may do anything, in the sandbox where one works here)")
            }
        };
        self.ways.iter().filter_map(flag).collect()
    }
}

/// Refuses a command line that cannot work here.
pub fn preflight(
    profile: &Profile,
    invocation: &Invocation,
    host: Host<'_>,
) -> Result<(), PreflightError> {
    let rules = &profile.permissions;
    if let Some(why) = &rules.needed
        && !invocation.granted
        && !host.settings_grant
    {
        return Err(needs_permission(profile, why));
    }
    match &rules.root {
        Some(rule) if host.root => check_root(profile, rule, invocation, host),
        _ => Ok(()),
    }
}

fn needs_permission(profile: &Profile, why: &str) -> PreflightError {
    let rules = &profile.permissions;
    let edit = rules.edit.as_ref().map(|_| Permissions::Edit);
    let all = rules.all.as_ref().map(|_| Permissions::All);
    let denied = Denied {
        agent: profile.name.clone(),
        ways: edit.into_iter().chain(all).collect(),
        own_flag: rules.given.first().cloned(),
    };
    let own = denied.own_flag.as_ref();
    let own = own.map_or(String::new(), |flag| {
        format!(
            ", or pass one of {}'s own flags in --command, such as {flag}",
            profile.name
        )
    });
    PreflightError {
        message: format!("{} cannot run headless like this: {why}", profile.name),
        hint: format!("{}{own}", denied.hint_for_resume()),
        denied: Some(denied),
    }
}

fn check_root(
    profile: &Profile,
    rule: &RootRule,
    invocation: &Invocation,
    host: Host<'_>,
) -> Result<(), PreflightError> {
    let used = rule
        .flags
        .iter()
        .find(|flag| invocation.argv.contains(flag));
    let contained = (host.has_env)(&rule.env) || invocation.env.contains_key(&rule.env);
    match used {
        Some(flag) if !contained => Err(PreflightError {
            message: format!("{} refuses {flag} as root", profile.name),
            hint: format!(
                "run as another user; or, in a container or sandbox, add --env {}=1; or use --permissions edit",
                rule.env
            ),
            denied: None,
        }),
        _ => Ok(()),
    }
}

impl SettingsFile {
    /// Whether a settings file with this text grants the agent something. A file that
    /// cannot be read grants nothing.
    pub fn grants(&self, text: &str) -> bool {
        self.any_value(text, |value| self.says_yes(value))
    }

    /// Whether a settings file with this text takes all checks away.
    pub fn skips_checks(&self, text: &str) -> bool {
        let skips = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|text| self.skips.iter().any(|skip| skip == text))
        };
        self.any_value(text, skips)
    }

    fn any_value(&self, text: &str, says: impl Fn(&Value) -> bool) -> bool {
        let value: Option<Value> = if self.file.ends_with(".toml") {
            toml::from_str(text).ok()
        } else {
            serde_json::from_str(text).ok()
        };
        let Some(value) = value else { return false };
        self.keys.iter().any(|key| {
            let at = key
                .split('.')
                .try_fold(&value, |value, name| value.get(name));
            at.is_some_and(&says)
        })
    }

    fn says_yes(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty() && !self.not.contains(text),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => map.values().any(|value| self.says_yes(value)),
            Value::Bool(true) | Value::Number(_) => true,
        }
    }
}

#[cfg(test)]
mod tests;
