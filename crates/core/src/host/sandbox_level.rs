//! How far a new loop is confined: the kernel decides, and what it wants is tried.

use std::path::Path;

use descartes_agents::agent::{self, Permissions, Profile};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{
    LevelQuestion, LevelReason, NoSandbox, SandboxConfig, SandboxLevel, Unchecked, WantedLevel,
};

use super::agent::agents_of;
use super::error::HostError;
use super::sandbox::{LoopSandbox, project_of};
use super::settings::HostSettings;

/// Which level a loop wants.
fn wanted(config: &IterativeLoopConfig, settings: &HostSettings) -> WantedLevel {
    LevelQuestion {
        asked: config.sandbox.level,
        unchecked: unchecked(config, settings),
        within: settings.confined,
    }
    .wanted()
}

/// Lets the profiles of a loop's agents ask for a level, too: the strictest holds.
pub(crate) fn ask_profiles(config: &mut IterativeLoopConfig, settings: &HostSettings) {
    for (profile, _) in agents_of(config, settings) {
        if let Some(level) = profile.sandbox.level {
            let by = LevelReason::Profile(profile.name.clone());
            config.sandbox.ask(level, by);
        }
    }
}

/// Puts the level that a loop in `dir` gets into its config, and tells what a person should know. One that
/// somebody asked for is tried when its agents are known; here the default is, which may turn out not to
/// work.
pub(super) fn settle(
    config: &mut IterativeLoopConfig,
    settings: &HostSettings,
    dir: &Path,
) -> Result<Option<String>, HostError> {
    ask_profiles(config, settings);
    if config.sandbox.level.is_some() {
        return Ok(None);
    }
    let wanted = wanted(config, settings);
    let settled = match &wanted {
        WantedLevel::Settled(settled) => settled.clone(),
        WantedLevel::Demanded(_) => return Ok(None),
        WantedLevel::Preferred(level, _) => {
            let mut trial = config.clone();
            trial.working_directory = Some(dir.to_owned());
            trial.sandbox.level = Some(*level);
            let profiles: Vec<Profile> = agents_of(config, settings)
                .into_iter()
                .map(|(profile, _)| profile)
                .collect();
            let profiles: Vec<&Profile> = profiles.iter().collect();
            let tried =
                LoopSandbox::prepare(&trial, settings, project_of(settings, dir), &profiles);
            let came = match tried {
                Ok(_) => Ok(()),
                // Whoever names paths of a sandbox means one.
                Err(error @ HostError::Usage { .. }) if config.sandbox.names_paths() => {
                    return Err(error);
                }
                Err(error) => Err(NoSandbox {
                    message: error.to_string(),
                    hint: error.hint().unwrap_or_default(),
                }),
            };
            let settled = wanted.tried(came);
            settled.map_err(|why| HostError::refused(why.message, why.hint))?
        }
    };
    settled.put(&mut config.sandbox);
    Ok(settled.warning)
}

/// Tries whether this machine can confine so far, in an empty folder.
pub(crate) fn try_level(
    settings: &HostSettings,
    level: SandboxLevel,
    folder: &Path,
) -> Result<(), HostError> {
    let generic = settings.profiles.get(agent::GENERIC);
    let generic = generic.ok_or_else(|| HostError::Internal("no generic profile".to_owned()))?;
    let config = IterativeLoopConfig {
        working_directory: Some(folder.to_owned()),
        sandbox: SandboxConfig {
            level: Some(level),
            ..SandboxConfig::default()
        },
        ..IterativeLoopConfig::default()
    };
    let project = project_of(settings, folder);
    LoopSandbox::prepare(&config, settings, project, &[generic]).map(drop)
}

/// The same without a try: what a loop will be, if all works.
pub(super) fn hoped_for(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
) -> IterativeLoopConfig {
    let mut config = config.clone();
    ask_profiles(&mut config, settings);
    if config.sandbox.level.is_none()
        && let Ok(settled) = wanted(&config, settings).tried(Ok(()))
    {
        settled.put(&mut config.sandbox);
    }
    config
}

/// The level that a loop would get, as far as it is known without a try.
pub fn foreseen_level(config: &IterativeLoopConfig, settings: &HostSettings) -> String {
    hoped_for(config, settings).sandbox.short()
}

/// Why nobody checks what the agents of a loop do, where that is so of one of them.
fn unchecked(config: &IterativeLoopConfig, settings: &HostSettings) -> Option<Unchecked> {
    if config.permissions == Permissions::All {
        return Some(Unchecked::ByPermissions);
    }
    let skips = |(profile, words): (Profile, Vec<String>)| {
        let invocation = agent::build(&profile, &words, &super::agent::choices(config));
        let in_settings = || {
            super::agent::any_settings_file(&profile, config, settings, |file, text| {
                file.skips_checks(text)
            })
        };
        invocation.skips_checks || in_settings()
    };
    let any = agents_of(config, settings).into_iter().any(skips);
    any.then_some(Unchecked::ByItself)
}
