//! Paths that would open what must stay shut.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{FoundPath, SandboxFacts};

/// A sandbox that cannot be made, with what to type instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SandboxError {
    pub message: String,
    pub hint: String,
}

fn refuse<T>(message: String, hint: &str) -> Result<T, SandboxError> {
    Err(SandboxError {
        message,
        hint: hint.to_owned(),
    })
}

/// Folders of the system: whoever may write there owns the machine.
pub(in crate::sandbox) const SYSTEM: [&str; 11] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
];

/// The folder that is writable as a whole: the top of the repository, or where the agent works.
pub(super) fn work_tree(facts: &SandboxFacts<'_>) -> Result<PathBuf, SandboxError> {
    let top = facts.git.as_ref().map(|git| git.top.clone());
    let within = |top: &PathBuf| facts.work_dir.starts_with(top) && !holds_home(facts, top);
    let tree = top.filter(within).unwrap_or_else(|| facts.work_dir.clone());
    if holds_home(facts, &tree) || tree == Path::new("/") {
        return refuse(
            format!(
                "{} holds your home directory: a sandbox around it would protect nothing",
                tree.display()
            ),
            "work in a folder of the project's own, or use --sandbox off",
        );
    }
    if SYSTEM.iter().any(|place| tree.starts_with(place)) {
        return refuse(
            format!("{} is a folder of the system", tree.display()),
            "work in a folder of the project's own, or use --sandbox off",
        );
    }
    Ok(tree)
}

fn holds_home(facts: &SandboxFacts<'_>, folder: &Path) -> bool {
    let home = facts.home.as_ref();
    home.is_some_and(|home| home.home.starts_with(folder))
}

fn found(facts: &SandboxFacts<'_>, path: &Path, flag: &str) -> Result<FoundPath, SandboxError> {
    (facts.look)(path).ok_or_else(|| SandboxError {
        message: format!("{flag} {}: no such file or directory", path.display()),
        hint: format!("make it first, or omit {flag}"),
    })
}

pub(super) fn write(facts: &SandboxFacts<'_>, path: &Path) -> Result<FoundPath, SandboxError> {
    let found = found(facts, path, "--sandbox-write")?;
    let real = &found.real;
    let open = |what: &str| {
        refuse(
            format!("--sandbox-write {}: {what}", path.display()),
            "name a folder that holds nothing else, or use --sandbox off",
        )
    };
    if real == Path::new("/") || holds_home(facts, real) {
        return open("this would open your home directory");
    }
    if SYSTEM.iter().any(|place| real.starts_with(place)) {
        return open("this is a folder of the system");
    }
    if facts.state_root.starts_with(real) || real.starts_with(&facts.state_root) {
        return open("this would open the journals of descartes");
    }
    if let Some(runtime) = &facts.runtime_dir
        && (runtime.starts_with(real) || real.starts_with(runtime))
    {
        return open("this would open the sockets of your session");
    }
    if facts.programs.contains(real) && !real.starts_with(&facts.work_dir) {
        return open("programs are started from there");
    }
    if let Some(git) = &facts.git
        && ["config", "hooks", "info"]
            .iter()
            .any(|name| real.starts_with(git.common_dir.join(name)))
    {
        return open("it decides which programs git starts");
    }
    Ok(found)
}

pub(super) fn read(facts: &SandboxFacts<'_>, path: &Path) -> Result<FoundPath, SandboxError> {
    let found = found(facts, path, "--sandbox-read")?;
    match found.real.starts_with(&facts.state_root) {
        true => refuse(
            format!(
                "--sandbox-read {}: journals of descartes stay hidden",
                path.display()
            ),
            "copy what the agent needs into the work tree",
        ),
        false => Ok(found),
    }
}

pub(super) fn hide(facts: &SandboxFacts<'_>, path: &Path) -> Result<FoundPath, SandboxError> {
    let found = found(facts, path, "--sandbox-hide")?;
    let needed = [&facts.work_dir, &facts.program];
    match needed.iter().any(|needed| needed.starts_with(&found.real)) {
        true => refuse(
            format!(
                "--sandbox-hide {}: the agent works in there",
                path.display()
            ),
            "name something below it",
        ),
        false => Ok(found),
    }
}
