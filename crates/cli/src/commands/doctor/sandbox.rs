//! Which sandbox works on this machine: found out by running it.

use std::path::Path;

use descartes_agents::agent::{GENERIC, Profiles};
use descartes_core::host::TrialSandbox;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{Mechanism, RunPurpose, SandboxConfig, SandboxLevel};

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
        Ok((Mechanism::Bwrap, version, _)) => {
            ok(CHECK, format!("workspace and strict work here: {version}"))
        }
        Ok((Mechanism::Landlock, ..)) | Err(_) => {
            match try_in(folder, SandboxLevel::Workspace, profiles, ctx) {
                Ok((_, version, Some(weaker))) => note(
                    CHECK,
                    format!(
                        "workspace works here, weaker, and strict does not: {version}; {weaker}"
                    ),
                    "install bubblewrap, and allow it user namespaces",
                ),
                Ok((_, version, None)) => note(
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

type Tried = (Mechanism, String, Option<String>);

fn try_in(
    folder: &Path,
    level: SandboxLevel,
    profiles: &Profiles,
    ctx: &CommandContext,
) -> Result<Tried, String> {
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
    let summary = trial.summary(&config);
    let mechanism = summary.mechanism.ok_or("it is off")?;
    Ok((mechanism, summary.version, summary.weaker))
}
