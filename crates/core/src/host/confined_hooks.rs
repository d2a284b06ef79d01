//! Hooks of the user's that a commit of ours starts. They run code of the work tree (a linter's settings, a
//! script of `package.json`), and so they run where gates do. Git itself stays outside: it signs, and it
//! writes what is locked inside.

use std::ffi::OsStr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use descartes_agents::agent::{GENERIC, Profile};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{RunPurpose, SandboxLevel};
use descartes_sandbox::SandboxProject;

use super::error::HostError;
use super::sandbox::{ConfinedRun, LoopSandbox, environment_rules, scrub};
use super::settings::{CONFINED_VARIABLE, HostSettings};
use crate::worktree::git::confined::OTHER_INSIDE;

/// Writes hooks into `folder` that start those of `hooks` in the sandbox of a work tree. `None` where
/// nothing is confined, or no hook is there.
pub(crate) fn confined_hooks(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    top: &Path,
    hooks: &Path,
    folder: &Path,
) -> Result<Option<PathBuf>, HostError> {
    if config.sandbox.effective_for_gates() == SandboxLevel::Off {
        return Ok(None);
    }
    let hooks_there = executables(hooks);
    if hooks_there.is_empty() {
        return Ok(None);
    }
    let ours = hooks.starts_with(settings.root.path());
    let handed: Vec<PathBuf> = ours.then(|| hooks.to_owned()).into_iter().collect();
    // Not as a slot with objects of its own: what a hook stages has to be there when git goes on.
    let start = start_of(config, settings, SandboxProject::find(top), &handed)?;
    let failed = |error: std::io::Error| {
        HostError::Internal(format!("hooks for the sandbox cannot be written: {error}"))
    };
    drop(fs_err::remove_dir_all(folder));
    fs_err::create_dir_all(folder).map_err(failed)?;
    for (hook, runs_itself) in hooks_there {
        let shell = match runs_itself {
            true => "",
            false => "sh ",
        };
        let quoted = shell_words::quote(&hook.to_string_lossy()).into_owned();
        let text = format!("{start} {shell}{quoted} \"$@\"\n");
        let to = folder.join(hook.file_name().unwrap_or_default());
        write_script(&to, &text).map_err(failed)?;
    }
    Ok(Some(folder.to_owned()))
}

/// Writes a new program.
pub(super) fn write_script(to: &Path, text: &str) -> std::io::Result<()> {
    let new = to.with_extension(format!("{}.tmp", uuid::Uuid::now_v7()));
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o755).open(&new);
    file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))?;
    std::fs::rename(new, to)
}

/// The words of a script before the program that it starts in the sandbox of a work tree. `handed` are files
/// of ours that are shown to it.
pub(super) fn start_of(
    config: &IterativeLoopConfig,
    settings: &HostSettings,
    project: SandboxProject,
    handed: &[PathBuf],
) -> Result<String, HostError> {
    let profiles = &settings.profiles;
    let profile = profiles.get(&config.backend.backend_type);
    let profile: Option<&Profile> = profile.or(profiles.get(GENERIC));
    let profiles: Vec<&Profile> = profile.into_iter().collect();
    let sandbox = LoopSandbox::prepare(config, settings, project, &profiles)?;
    let sandbox =
        sandbox.ok_or_else(|| HostError::Internal("no sandbox is asked for".to_owned()))?;
    let run = ConfinedRun {
        purpose: RunPurpose::Gate,
        profile,
        program: None,
        handed,
    };
    let plan = sandbox.plan(config, settings, run)?;
    let words = sandbox.prefix(&plan)?;
    let words = words.iter().map(|word| word.to_string_lossy());
    let words = shell_words::join(words);
    let rules = environment_rules(settings, profile, RunPurpose::Gate);
    let dropped = scrub(&mut settings.environment.clone(), &rules);
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let dropped = dropped.iter().map(String::as_str).filter(plain);
    let dropped: Vec<&str> = dropped.chain(OTHER_INSIDE).collect();
    let level = plan.level.as_str();
    Ok(format!(
        "#!/bin/sh\nunset {}\n{CONFINED_VARIABLE}={level}\nexport {CONFINED_VARIABLE}\nexec {words}",
        dropped.join(" ")
    ))
}

/// Hooks that git would start, and whether the kernel can start each: git gives the others to a shell.
fn executables(hooks: &Path) -> Vec<(PathBuf, bool)> {
    let entries = std::fs::read_dir(hooks);
    let entries = entries.into_iter().flatten().flatten();
    let is_hook = |path: &PathBuf| {
        let executable =
            |found: std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
        path.extension() != Some(OsStr::new("sample")) && path.metadata().is_ok_and(executable)
    };
    let begins = |path: &Path| {
        let mut start = [0; 4];
        let file = std::fs::File::open(path);
        let read = file.and_then(|mut file| std::io::Read::read(&mut file, &mut start));
        read.is_ok() && (start.starts_with(b"#!") || start == *b"\x7fELF")
    };
    let hooks = entries.map(|entry| entry.path()).filter(is_hook);
    hooks
        .map(|path| {
            let runs_itself = begins(&path);
            (path, runs_itself)
        })
        .collect()
}
