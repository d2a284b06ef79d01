//! Which agents are installed, in which version.

use descartes_agents::agent::{Profile, Profiles, VersionSeen};
use descartes_store::config::Settings;

use super::finding::{Finding, note, ok};
use crate::commands::agents::installed::{
    Installed, MayBeStarted, look as look_for_all, program, show_version,
};
use crate::settings::command_context::CommandContext;

/// Looks for every agent that is known.
pub fn look(
    profiles: &Profiles,
    settings: &Settings,
    started: &MayBeStarted,
    ctx: &CommandContext,
) -> Vec<Finding> {
    let mut out: Vec<Finding> = look_for_all(profiles, started, ctx)
        .into_iter()
        .filter_map(|(profile, installed)| Some(tell(profile, &installed?)))
        .collect();
    if out.is_empty() {
        out.push(note(
            "agents",
            "no known agent is installed",
            "any command can be an agent: --command './my-agent'",
        ));
    }
    out.extend(default_missing(profiles, settings, ctx));
    out
}

fn default_missing(
    profiles: &Profiles,
    settings: &Settings,
    ctx: &CommandContext,
) -> Option<Finding> {
    let agent = settings.default_agent.get()?;
    let command = profiles
        .get(&agent)
        .map_or(agent.as_str(), |profile| profile.command.as_str());
    let words = shell_words::split(command).ok()?;
    if program(words.first()?, ctx).is_some() {
        return None;
    }
    let message = format!("the default agent `{agent}` is not installed");
    Some(note(
        "agents",
        message,
        "set default_agent in a config file, or use --command",
    ))
}

fn tell(profile: &Profile, installed: &Installed) -> Finding {
    let verified = if profile.verified {
        ""
    } else {
        " (unverified profile)"
    };
    let version = show_version(profile, installed.version.as_ref());
    let place = installed.program.display();
    let told = format!("{}{verified}: {version}, {place}", profile.name);
    let hint = format!("try it: descartes agents test {}", profile.name);
    match installed.version {
        Some(VersionSeen::Known(_) | VersionSeen::Untried(_)) => ok("agents", told),
        Some(
            VersionSeen::Older(_)
            | VersionSeen::Newer(_)
            | VersionSeen::Unreadable
            | VersionSeen::Late,
        ) => note("agents", told, &hint),
        None => note("agents", told, ""),
    }
}
