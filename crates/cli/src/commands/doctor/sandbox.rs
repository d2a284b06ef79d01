//! Which sandbox works on this machine: found out by running it.

use std::path::Path;

use descartes_agents::agent::{GENERIC, Profiles};
use descartes_core::host::TrialSandbox;
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

fn look_in(folder: &Path, profiles: &Profiles, ctx: &CommandContext) -> Finding {
    let found = std::fs::create_dir_all(folder).map_err(|error| error.to_string());
    let found = found.and_then(|()| try_in(folder, SandboxLevel::Strict, profiles, ctx));
    match found {
        Ok(found) if found.mechanism == Some(Mechanism::Bwrap) => {
            let mut told = format!("workspace and strict work here: {}", found.version);
            if !found.limits.is_empty() {
                told.push_str(&format!("; strict: at most {}", found.limits.join(", ")));
            }
            for missing in &found.unlimited {
                told.push_str(&format!("; no limit on {missing}"));
            }
            ok(CHECK, told)
        }
        Ok(_) | Err(_) => {
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
                    "install bubblewrap, and allow it user namespaces",
                ),
                Ok(SandboxSummary { version, .. }) => note(
                    CHECK,
                    format!("workspace works here, strict does not: {version}"),
                    "",
                ),
                // Nobody has to use one.
                Err(why) => note(
                    CHECK,
                    format!("no sandbox works here: {why}"),
                    "install bubblewrap (apt install bubblewrap), and allow it user namespaces",
                ),
            }
        }
    }
}

fn try_in(
    folder: &Path,
    level: SandboxLevel,
    profiles: &Profiles,
    ctx: &CommandContext,
) -> Result<SandboxSummary, String> {
    let config = IterativeLoopConfig {
        sandbox: SandboxConfig {
            level: Some(level),
            ..SandboxConfig::default()
        },
        ..IterativeLoopConfig::default()
    };
    let settings = host_settings(&Default::default(), folder, profiles, ctx);
    let generic = profiles.get(GENERIC).ok_or("no generic profile")?;
    let trial = TrialSandbox::prepare(&settings, &config, folder, RunPurpose::Agent, generic, None);
    let trial = trial.map_err(|error| error.to_string())?;
    Ok(trial.summary(&config))
}
