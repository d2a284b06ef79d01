//! Filters and merge drivers that a git of ours starts in a work tree where agents work. Git itself stays
//! outside, since its index and objects are out of their reach; the programs may lie in the work tree, or read
//! what lies there, and so they run where gates do. Of git-lfs it is known that it does neither, and it needs
//! the network and logins.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::{ExtraLock, SandboxLevel};
use descartes_sandbox::SandboxProject;
use sha2::{Digest, Sha256};

use super::confined_hooks::{start_of, write_script};
use super::git_look::GIT_TIME;
use super::opening::git_of;
use super::settings::HostSettings;
use crate::worktree::Git;
use crate::worktree::deadline::Deadline;
use crate::worktree::git::ConfinesPrograms;
use crate::worktree::stamp::Stamp;

/// What git puts in the place of these, as words of a command.
const OF_FILTERS: &[&str] = &["%f"];
const OF_DRIVERS: &[&str] = &["%O", "%A", "%B", "%L", "%P", "%S", "%X", "%Y"];

/// See the module.
pub(crate) struct ConfinedPrograms {
    settings: HostSettings,
    /// How far; it only grows.
    config: Arc<Mutex<IterativeLoopConfig>>,
    /// Where scripts are kept.
    folder: PathBuf,
    known: Mutex<BTreeMap<PathBuf, KnownTree>>,
}

/// What was made for a work tree.
#[derive(Clone, Default)]
struct KnownTree {
    level: SandboxLevel,
    /// Files that the settings came from, as they were.
    files: Vec<(PathBuf, Option<Stamp>)>,
    /// Every program that was ever named: one that is gone may still stand in settings that were kept.
    commands: BTreeSet<(String, String)>,
    made: Vec<(OsString, OsString)>,
}

impl std::fmt::Debug for ConfinedPrograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfinedPrograms").finish_non_exhaustive()
    }
}

/// The same git, whose programs are confined as far as the loop is.
pub(crate) fn with_confined_programs(
    git: Git,
    settings: &HostSettings,
    config: Arc<Mutex<IterativeLoopConfig>>,
) -> Git {
    git.confining_programs(Arc::new(ConfinedPrograms {
        settings: settings.clone(),
        config,
        folder: settings.root.path().join("sandbox").join("programs"),
        known: Mutex::default(),
    }))
}

impl ConfinesPrograms for ConfinedPrograms {
    fn settings(&self, dir: &Path) -> Result<Vec<(OsString, OsString)>, String> {
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let config = config.clone();
        let level = config.sandbox.effective_for_gates();
        if level == SandboxLevel::Off {
            return Ok(Vec::new());
        }
        let project = SandboxProject::find(dir);
        let top = project.git().map_or(dir, |git| &git.top).to_owned();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.get(&top).cloned().unwrap_or_default();
        let holds = |(path, stamp): &(PathBuf, Option<Stamp>)| stamp_of(path) == *stamp;
        if before.level == level && !before.files.is_empty() && before.files.iter().all(holds) {
            return Ok(before.made);
        }
        let (files, mut commands) = self.programs(&top)?;
        commands.extend(before.commands.clone());
        let made = match commands == before.commands && before.level == level {
            true => before.made,
            false => self.scripts(&config, project, &top, &commands)?,
        };
        let now = KnownTree {
            level,
            files,
            commands,
            made: made.clone(),
        };
        known.insert(top, now);
        Ok(made)
    }
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|meta| Stamp::of(&meta))
}

/// Whether a program is one of git-lfs.
fn is_known(command: &str) -> bool {
    let mut words = command.split_whitespace();
    matches!(
        (words.next(), words.next()),
        (Some("git-lfs"), Some("clean" | "smudge" | "filter-process"))
    ) && !command.contains([';', '|', '&', '$', '`', '<', '>'])
}

type StampedFiles = Vec<(PathBuf, Option<Stamp>)>;

impl ConfinedPrograms {
    /// The programs that settings name, and the files that say so, those that are included and missing too.
    fn programs(&self, top: &Path) -> Result<(StampedFiles, BTreeSet<(String, String)>), String> {
        let call = git_of(&self.settings).read(top);
        let call = call.args(["config", "--list", "--show-origin", "--null"]);
        let listed = call.output(Deadline::after(GIT_TIME));
        let listed = listed.map_err(|error| format!("settings of git cannot be read: {error}"))?;
        let listed = String::from_utf8_lossy(&listed);
        let mut files = BTreeSet::new();
        let mut commands = BTreeSet::new();
        let mut fields = listed.split('\0');
        while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
            let file = origin.strip_prefix("file:").map(|file| top.join(file));
            let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
            if let Some(file) = &file {
                files.insert(file.clone());
                if key == "include.path" || key.starts_with("includeif.") {
                    files.insert(file.parent().unwrap_or(top).join(value));
                }
            }
            let is_program = matches!(
                (key.split_once('.'), key.rsplit_once('.')),
                (
                    Some(("filter", _)),
                    Some((_, "clean" | "smudge" | "process"))
                ) | (Some(("merge", _)), Some((_, "driver")))
            );
            if is_program && !value.is_empty() && !is_known(value) {
                commands.insert((key.to_owned(), value.to_owned()));
            }
        }
        let stamped = |path: PathBuf| {
            let stamp = stamp_of(&path);
            (path, stamp)
        };
        Ok((files.into_iter().map(stamped).collect(), commands))
    }

    /// Settings that name scripts of ours in their place, which start them in the sandbox.
    fn scripts(
        &self,
        config: &IterativeLoopConfig,
        project: SandboxProject,
        top: &Path,
        commands: &BTreeSet<(String, String)>,
    ) -> Result<Vec<(OsString, OsString)>, String> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let project = match project
            .git()
            .is_some_and(|git| git.git_dir.starts_with(top))
        {
            true => project,
            // Nothing of the repository is theirs to write.
            false => {
                let mut project = project.without_git();
                project.extra_locks.push(ExtraLock {
                    path: top.join(".git"),
                    why: "leads to the repository".to_owned(),
                });
                project
            }
        };
        let start = start_of(config, &self.settings, project, &[]);
        let start = start.map_err(|error| format!("filters cannot be confined: {error}"))?;
        let failed = |error: std::io::Error| format!("a filter cannot be confined: {error}");
        fs_err::create_dir_all(&self.folder).map_err(failed)?;
        let mut made = Vec::new();
        for (key, command) in commands {
            let places = match key.starts_with("merge.") {
                true => OF_DRIVERS,
                false => OF_FILTERS,
            };
            let inner = with_arguments(command, places);
            let quoted = shell_words::quote(&inner).into_owned();
            let text = format!("{start} sh -c {quoted} sh \"$@\"\n");
            // Named by what it says: another host may write the same one.
            let hash = Sha256::digest(text.as_bytes());
            let name: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            let script = self.folder.join(name);
            if !script.exists() {
                write_script(&script, &text).map_err(failed)?;
            }
            let mut words = shell_words::quote(&script.to_string_lossy()).into_owned();
            for place in places {
                words.push(' ');
                words.push_str(place);
            }
            made.push((key.into(), words.into()));
        }
        Ok(made)
    }
}

/// The command with what the shell was given in the places that git fills.
fn with_arguments(command: &str, places: &[&str]) -> String {
    let mut out = command.to_owned();
    for (n, place) in places.iter().enumerate() {
        out = out.replace(place, &format!("\"${}\"", n + 1));
    }
    out.replace("%%", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_fills_in_is_given_to_the_shell() {
        assert_eq!(with_arguments("./f.sh %f", OF_FILTERS), "./f.sh \"$1\"");
        let driver = with_arguments("./m %O %A %B %L %P", OF_DRIVERS);
        assert_eq!(driver, "./m \"$1\" \"$2\" \"$3\" \"$4\" \"$5\"");
    }

    #[test]
    fn only_git_lfs_itself_is_known() {
        for (command, known) in [
            ("git-lfs clean -- %f", true),
            ("git-lfs filter-process", true),
            ("git-lfs filter-process; ./x", false),
            ("./git-lfs clean", false),
            ("python -m nbstripout", false),
        ] {
            assert_eq!(is_known(command), known, "{command}");
        }
    }
}
