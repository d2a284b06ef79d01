//! Which sandbox works on this machine: found out by running it.

use std::path::Path;

use descartes_agents::agent::{GENERIC, Profiles};
use descartes_core::host::{HostError, TrialSandbox};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{
    Mechanism, RunPurpose, SandboxConfig, SandboxLevel, SandboxSummary,
};

use super::finding::{Finding, note, ok};
use crate::session::order::host_settings;
use crate::settings::command_context::CommandContext;

const CHECK: &str = "sandbox";

/// Tries a sandbox around an empty folder of ours, which is gone again afterwards.
pub fn look(profiles: &Profiles, ctx: &CommandContext) -> Finding {
    let parent = ctx.root(&ctx.here).path().join("sandbox");
    let folder = parent.join("doctor");
    let was_there = parent.exists();
    let finding = look_in(&folder, profiles, ctx);
    drop(std::fs::remove_dir_all(&folder));
    if !was_there {
        // No loop has used one here.
        drop(std::fs::remove_file(parent.join("empty")));
        drop(std::fs::remove_dir(&parent));
    }
    finding
}

/// What has no limit, each reason once: `memory: no groups` and `processes: no groups`.
fn by_reason(missing: &[String]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for (what, why) in missing.iter().filter_map(|one| one.split_once(": ")) {
        match reasons.iter_mut().find(|(_, known)| *known == why) {
            Some((whats, _)) => whats.push(what),
            None => reasons.push((vec![what], why)),
        }
    }
    reasons
}

fn look_in(folder: &Path, profiles: &Profiles, ctx: &CommandContext) -> Finding {
    if let Err(error) = std::fs::create_dir_all(folder) {
        let why = format!("not tried: {}: {error}", folder.display());
        return note(CHECK, why, "make the state folder one that you may write");
    }
    match try_in(folder, SandboxLevel::Strict, profiles, ctx) {
        Ok(found) if found.mechanism == Some(Mechanism::Bwrap) => {
            let mut told = format!("workspace and strict work here: {}", found.version);
            if !found.limits.is_empty() {
                told.push_str(&format!("; strict: at most {}", found.limits.join(", ")));
            }
            for (what, why) in by_reason(&found.unlimited) {
                told.push_str(&format!("; no limit on {}: {why}", what.join(" and ")));
            }
            ok(CHECK, told)
        }
        strict => {
            // What keeps the stronger one from working, and what to do about it.
            let strict = strict.err().and_then(|error| error.hint());
            let strict = strict.unwrap_or_default();
            match try_in(folder, SandboxLevel::Workspace, profiles, ctx) {
                Ok(SandboxSummary {
                    version,
                    weaker: Some(weaker),
                    ..
                }) => note(
                    CHECK,
                    format!(
                        "workspace works here, weaker, and strict does not: {version}; {weaker}"
                    ),
                    &strict,
                ),
                Ok(SandboxSummary { version, .. }) => note(
                    CHECK,
                    format!("workspace works here, strict does not: {version}"),
                    &strict,
                ),
                // Nobody has to use one.
                Err(why) => note(CHECK, why.to_string(), &why.hint().unwrap_or_default()),
            }
        }
    }
}

fn try_in(
    folder: &Path,
    level: SandboxLevel,
    profiles: &Profiles,
    ctx: &CommandContext,
) -> Result<SandboxSummary, HostError> {
    let config = IterativeLoopConfig {
        sandbox: SandboxConfig {
            level: Some(level),
            ..SandboxConfig::default()
        },
        ..IterativeLoopConfig::default()
    };
    let settings = host_settings(&Default::default(), folder, profiles, ctx);
    let generic = profiles.get(GENERIC);
    let generic = generic.ok_or_else(|| HostError::Internal("no generic profile".to_owned()))?;
    let trial =
        TrialSandbox::prepare(&settings, &config, folder, RunPurpose::Agent, generic, None)?;
    Ok(trial.summary(&config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once() {
        let missing = ["processes: no groups", "memory: no groups"].map(str::to_owned);
        let told = by_reason(&missing);
        assert_eq!(told, [(vec!["processes", "memory"], "no groups")]);
    }
}
