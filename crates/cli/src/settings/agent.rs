//! Which agent, from flags and settings: `--command`, else the backend's own, else
//! `default_agent`.

use descartes_agents::agent::{Choices, GENERIC, Invocation, Profile, Profiles, build};
use descartes_kernel::config::{AgentChange, ConfigChange, IterativeLoopConfig};
use descartes_store::config::Settings;
use descartes_text::finding::nearest;

use crate::error::CliError;

/// An agent with its command line.
#[derive(Debug)]
pub struct Agent {
    pub profile: Profile,
    /// Its command line, all but the prompt.
    pub invocation: Invocation,
}

/// The agent's words and how they are understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenAgent {
    /// The command, by shell quoting rules.
    pub words: Vec<String>,
    /// The profile's name.
    pub backend: String,
}

/// All profiles: built-in ones, and those of the config files.
pub fn profiles(settings: &Settings) -> Result<Profiles, CliError> {
    let mut profiles = Profiles::builtin();
    let given = &settings.agents;
    let tables = given
        .iter()
        .map(|(name, sourced)| (name.clone(), sourced.value.clone()));
    profiles.add(&tables.collect()).map_err(|error| {
        let source = error.profile().and_then(|name| given.get(name));
        CliError::usage(
            source.map_or_else(
                || error.to_string(),
                |sourced| format!("{}: {error}", sourced.source),
            ),
            "see: descartes config show",
        )
    })?;
    Ok(profiles)
}

/// Chooses the agent.
pub fn choose(
    command: Option<&str>,
    settings: &Settings,
    profiles: &Profiles,
) -> Result<ChosenAgent, CliError> {
    let backend = settings.backend.get();
    if let Some(command) = command {
        let words = split("--command", command)?;
        let guessed = profiles.guess(&words).to_owned();
        let flag = settings.backend.from_flag();
        let backend = match backend {
            Some(named) if flag.is_some() || guessed == GENERIC => {
                known(&named, profiles)?.name.clone()
            }
            _ => guessed,
        };
        return Ok(ChosenAgent { words, backend });
    }
    if let Some(named) = backend {
        return own_command(known(&named, profiles)?);
    }
    let agent = settings.default_agent.get();
    let agent = agent.unwrap_or_else(|| "claude".to_owned());
    match profiles.get(&agent) {
        Some(profile) => own_command(profile),
        None => {
            let words = split("default_agent", &agent)?;
            let backend = profiles.guess(&words).to_owned();
            Ok(ChosenAgent { words, backend })
        }
    }
}

/// The agent of a loop that goes on with another backend. A loop that ran the old backend's own
/// command runs the new one's; a command of the person's own stays, and is understood anew.
pub fn changed(
    config: &IterativeLoopConfig,
    backend: &str,
    change: &ConfigChange,
    profiles: &Profiles,
) -> Result<AgentChange, CliError> {
    let profile = known(backend, profiles)?;
    let mut words = vec![config.command.clone()];
    words.extend(config.args.iter().cloned());
    let before = profiles.get(&config.backend.backend_type);
    let owned = before.map(|old| shell_words::split(&old.command).unwrap_or_default());
    if owned.is_some_and(|owned| owned == words) && !profile.command.is_empty() {
        words = own_command(profile)?.words;
    }
    let choices = Choices {
        model: change.model.clone().or_else(|| config.model.clone()),
        permissions: change.permissions.unwrap_or(config.permissions),
        prompt_mode: change.prompt_mode.or(config.backend.prompt_mode),
        ..Choices::default()
    };
    let output_format = build(profile, &words, &choices).output_format;
    let mut words = words.into_iter();
    Ok(AgentChange {
        backend_type: profile.name.clone(),
        command: words.next().unwrap_or_default(),
        args: words.collect(),
        output_format,
    })
}

/// The profile of that name.
pub fn known<'a>(name: &str, profiles: &'a Profiles) -> Result<&'a Profile, CliError> {
    profiles.get(name).ok_or_else(|| {
        let names: Vec<&str> = profiles.names().collect();
        let meant = nearest(name, names.iter().copied());
        CliError::usage(
            format!("unknown backend `{name}`"),
            match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known: {}", names.join(", ")),
            },
        )
        .hinted(format!(
            "any other agent runs with --backend generic, or as [agents.{name}] in the config"
        ))
    })
}

fn own_command(profile: &Profile) -> Result<ChosenAgent, CliError> {
    let words = split("command", &profile.command)?;
    if words.is_empty() {
        return Err(CliError::usage(
            format!("backend `{}` has no command of its own", profile.name),
            "set one with --command",
        ));
    }
    Ok(ChosenAgent {
        words,
        backend: profile.name.clone(),
    })
}

fn split(place: &str, command: &str) -> Result<Vec<String>, CliError> {
    let words = shell_words::split(command).map_err(|error| {
        CliError::usage(
            format!("{place} is not a valid command: {error} in `{command}`"),
            "quote it as in a shell, for example --command 'my-agent --flag \"two words\"'",
        )
    })?;
    if words.first().is_none_or(String::is_empty) && place != "command" {
        return Err(CliError::usage(
            format!("{place} is empty"),
            "set a command, for example --command claude",
        ));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_store::config::{ConfigPlaces, Layers};
    use std::collections::BTreeMap;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let environment: BTreeMap<String, String> = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Layers::load(&ConfigPlaces {
            environment,
            ..Default::default()
        })
        .unwrap()
        .settings
    }

    fn chosen(command: Option<&str>, variables: &[(&str, &str)]) -> (String, String) {
        let profiles = Profiles::builtin();
        let chosen = choose(command, &settings(variables), &profiles).unwrap();
        (chosen.words.join(" "), chosen.backend)
    }

    #[test]
    fn the_command_wins_then_the_backend_then_the_default_agent() {
        let pair = |words: &str, backend: &str| (words.to_owned(), backend.to_owned());
        assert_eq!(chosen(Some("codex exec"), &[]), pair("codex exec", "codex"));
        assert_eq!(chosen(Some("my-agent"), &[]), pair("my-agent", "generic"));
        assert_eq!(chosen(None, &[]), pair("claude", "claude"));
        assert_eq!(chosen(None, &[("DESCARTES_BACKEND", "codex")]).1, "codex");
        assert_eq!(
            chosen(None, &[("DESCARTES_DEFAULT_AGENT", "./own.sh 'a b'")]),
            pair("./own.sh a b", "generic")
        );
        // A backend of a config file serves a command that nothing is known about.
        let claude = [("DESCARTES_BACKEND", "claude")];
        assert_eq!(
            chosen(Some("my-wrapper"), &claude),
            pair("my-wrapper", "claude")
        );
        assert_eq!(
            chosen(Some("codex exec"), &claude),
            pair("codex exec", "codex")
        );
    }

    #[test]
    fn what_cannot_be_read_or_is_unknown_is_a_usage_error() {
        let profiles = Profiles::builtin();
        for (command, backend) in [
            (Some("a 'b"), None),
            (Some(""), None),
            (None, Some("clod")),
            (None, Some("generic")),
        ] {
            let mut settings = settings(&[]);
            let backend = backend.map(str::to_owned);
            settings.backend.put("--backend", backend);
            let error = choose(command, &settings, &profiles).unwrap_err();
            assert_eq!(error.exit_code(), 64);
            assert!(!error.hints().is_empty());
        }
    }
}
