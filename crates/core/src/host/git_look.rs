//! A look at what an agent left where it would change what the user's next git command does: repositories inside
//! the work tree that bring settings and hooks, and files that settings of git name and that were not there.
//! What could be locked was; this is the rest. Which settings count is the kernel's table to say.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::sandbox::{GitPlaces, PlantedInGit, files_named, setting_that_starts};
use descartes_sandbox::{SandboxProject, small_text};
use serde::{Deserialize, Serialize};

use super::opening::git_of;
use super::settings::HostSettings;
use crate::worktree::deadline::Deadline;
use crate::worktree::stamp::Stamp;

/// Git is asked for its settings for so long.
pub(super) const GIT_TIME: Duration = Duration::from_secs(10);

/// Entries of folders that are looked at; of a tree that has more, this is told.
const MOST: usize = 2_000_000;
/// Findings of one repository; one is enough to look at it.
const OF_ONE: usize = 4;

/// What was there before the first agent, and what was read since.
#[derive(Debug)]
pub(crate) struct GitLook {
    top: PathBuf,
    git: Option<GitPlaces>,
    /// Then only files count that come to the user with the work.
    is_slot: bool,
    /// What settings of git name in the work tree and was not there.
    missing: Vec<MissingFile>,
    base: Vec<PlantedInGit>,
    /// Settings files that were read, with what was found in them.
    read: BTreeMap<PathBuf, (Stamp, Vec<(String, String)>)>,
}

/// The same for later hosts of the loop.
#[derive(Serialize, Deserialize)]
struct Noted {
    base: Vec<PlantedInGit>,
    missing: Vec<MissingFile>,
}

/// A file that a setting names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissingFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: MissingKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MissingKind {
    Include,
    Hooks,
    Program,
}

impl GitLook {
    /// Looks before the first agent.
    pub(crate) fn begin(
        settings: &HostSettings,
        project: &SandboxProject,
        mut missing: Vec<MissingFile>,
        note: &Path,
    ) -> Self {
        missing.sort_by(|a, b| a.path.cmp(&b.path));
        missing.dedup_by(|a, b| a.path == b.path);
        let git = project.git().cloned();
        let top = git.as_ref().map_or(project.work_dir(), |git| &git.top);
        let mut look = Self {
            top: top.to_owned(),
            git,
            is_slot: project.is_slot(),
            missing,
            base: Vec::new(),
            read: BTreeMap::new(),
        };
        // A host before this one may have died before it looked.
        let noted = fs::read(note).ok();
        let noted = noted.and_then(|text| serde_json::from_slice::<Noted>(&text).ok());
        if let Some(noted) = noted {
            (look.base, look.missing) = (noted.base, noted.missing);
            return look;
        }
        look.base = look.all(settings);
        let noted = Noted {
            base: look.base.clone(),
            missing: look.missing.clone(),
        };
        // Without the note a later host compares with what it finds itself.
        drop(fs::write(
            note,
            serde_json::to_vec(&noted).unwrap_or_default(),
        ));
        look
    }

    /// What is there now and was not then.
    pub(crate) fn news(&mut self, settings: &HostSettings) -> Vec<PlantedInGit> {
        let mut all = self.all(settings);
        all.retain(|planted| !self.base.contains(planted));
        all
    }

    fn all(&mut self, settings: &HostSettings) -> Vec<PlantedInGit> {
        let mut found = Vec::new();
        if !self.is_slot {
            let (repositories, is_all) = self.repositories();
            for folder in repositories {
                found.extend(self.of_repository(settings, &folder));
            }
            found.extend((!is_all).then(|| PlantedInGit {
                file: ".".to_owned(),
                what: format!("more than {MOST} files and folders: not all were looked at"),
                undo: "git status --ignored".to_owned(),
            }));
            found.extend(self.steps());
        }
        let missing = self.missing.clone();
        found.extend(missing.iter().filter_map(|missing| self.made(missing)));
        found.sort();
        found.dedup();
        found
    }

    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.top).unwrap_or(path);
        below.display().to_string()
    }

    /// A file that a setting names, where it is there by now.
    fn made(&self, missing: &MissingFile) -> Option<PlantedInGit> {
        let there = missing.path.symlink_metadata().ok()?;
        let what = match missing.kind {
            MissingKind::Include => "settings of git include it",
            MissingKind::Program => "settings of git name it as a program",
            MissingKind::Hooks if hooks_in(&missing.path).is_empty() && there.is_dir() => {
                return None;
            }
            MissingKind::Hooks => "git starts the hooks in it (core.hooksPath)",
        };
        let file = self.name(&missing.path);
        let undo = format!("rm -r -- {}", shell_words::quote(&file));
        let what = format!("{what}, and it was not there before");
        Some(PlantedInGit { file, what, undo })
    }

    /// Programs that a rebase would go on with.
    fn steps(&self) -> Option<PlantedInGit> {
        let git = self.git.as_ref()?;
        let folder = git.git_dir.join("rebase-merge");
        let todo = small_text(folder.join("git-rebase-todo")).ok()?;
        let is_exec = |line: &&str| line.starts_with("exec ") || line.starts_with("x ");
        let line = todo.lines().find(is_exec)?;
        let file = self.name(&folder.join("git-rebase-todo"));
        let folder = self.name(&folder);
        let undo = format!("rm -r -- {}", shell_words::quote(&folder));
        let what = format!("`git rebase --continue` starts `{line}`");
        Some(PlantedInGit { file, what, undo })
    }

    /// Folders of git inside the work tree, other than its own; whether all was looked at.
    fn repositories(&self) -> (Vec<PathBuf>, bool) {
        let own = self.git.as_ref().map(|git| git.top.join(".git"));
        let mut folders = vec![self.top.clone()];
        let (mut found, mut seen) = (Vec::new(), 0);
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            let (mut has_head, mut has_objects, mut has_refs) = (false, false, false);
            let mut below = Vec::new();
            for entry in entries.flatten() {
                seen += 1;
                let name = entry.file_name();
                if name == ".git" {
                    let path = entry.path();
                    if Some(&path) != own.as_ref() {
                        found.extend(led_to(&folder, &path));
                    }
                    continue;
                }
                has_head |= name == "HEAD";
                has_objects |= name == "objects";
                has_refs |= name == "refs";
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    below.push(entry.path());
                }
            }
            match has_head && has_objects && has_refs {
                true => found.push(folder),
                false => folders.append(&mut below),
            }
            if seen > MOST {
                break;
            }
        }
        found.sort();
        found.dedup();
        // Where one leads that is of this very repository, all is locked.
        let own = self.git.as_ref().map(|git| &git.common_dir);
        found.retain(|folder| Some(folder) != own);
        (found, seen <= MOST)
    }

    /// What a repository brings by which git starts programs.
    fn of_repository(&mut self, settings: &HostSettings, folder: &Path) -> Vec<PlantedInGit> {
        let common = match small_text(folder.join("commondir")) {
            Ok(text) => folder.join(text.trim_end_matches(['\n', '\r'])),
            Err(_) => folder.to_owned(),
        };
        let common = fs::canonicalize(&common).unwrap_or(common);
        let mut out = Vec::new();
        let mut files = Vec::new();
        // What is of this very repository is locked.
        let is_own = self
            .git
            .as_ref()
            .is_some_and(|git| git.common_dir == common);
        if !is_own {
            files.extend([common.join("config"), common.join("config.worktree")]);
        }
        if common != folder {
            files.push(folder.join("config.worktree"));
        }
        for file in files {
            let listed = match self.settings_of(settings, &file) {
                Ok(listed) => listed,
                Err(why) => {
                    out.push(self.unread(&file, &why));
                    continue;
                }
            };
            for (key, value) in listed {
                let Some(row) = setting_that_starts(&key, &value) else {
                    continue;
                };
                let name = self.name(&file);
                let quoted = shell_words::quote(&name).into_owned();
                out.push(PlantedInGit {
                    what: format!("{key} is {} there ({})", short(&value), row.why),
                    undo: format!(
                        "git config --file {quoted} --unset-all {}",
                        shell_words::quote(&key)
                    ),
                    file: name,
                });
                if out.len() >= OF_ONE {
                    return out;
                }
            }
        }
        let hooks = match is_own {
            true => Vec::new(),
            false => hooks_in(&common.join("hooks")),
        };
        for hook in hooks {
            let file = self.name(&hook);
            let undo = format!("rm -- {}", shell_words::quote(&file));
            let what = "a hook, which git starts".to_owned();
            out.push(PlantedInGit { file, what, undo });
        }
        out.truncate(OF_ONE);
        out
    }

    /// Settings that an agent made unreadable may say anything to a git that waits longer.
    fn unread(&self, file: &Path, why: &str) -> PlantedInGit {
        let name = self.name(file);
        PlantedInGit {
            what: format!("settings of git that cannot be read: {why}"),
            undo: format!("rm -r -- {}", shell_words::quote(&name)),
            file: name,
        }
    }

    /// The settings in a file; read once as long as it stays as it is.
    fn settings_of(
        &mut self,
        settings: &HostSettings,
        file: &Path,
    ) -> Result<Vec<(String, String)>, String> {
        let meta = match fs::metadata(file) {
            Ok(meta) if meta.is_file() => meta,
            Ok(_) => return Err("it is no file".to_owned()),
            Err(_) => return Ok(Vec::new()),
        };
        let stamp = Stamp::of(&meta);
        if let Some((known, listed)) = self.read.get(file)
            && *known == stamp
        {
            return Ok(listed.clone());
        }
        let call = git_of(settings).read(Path::new("/"));
        let call = call.args(["config", "--no-includes", "--list", "--null", "--file"]);
        let listed = call.arg(file).output(Deadline::after(GIT_TIME));
        let listed = listed.map_err(|error| error.to_string())?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let pairs = listed.split_terminator('\0').map(|entry| {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            (key.to_owned(), value.to_owned())
        });
        let pairs: Vec<(String, String)> = pairs.collect();
        self.read.insert(file.to_owned(), (stamp, pairs.clone()));
        Ok(pairs)
    }
}

/// Where a `.git` leads.
fn led_to(folder: &Path, entry: &Path) -> Option<PathBuf> {
    if entry.is_dir() {
        return Some(fs::canonicalize(entry).unwrap_or_else(|_| entry.to_owned()));
    }
    let text = small_text(entry).ok()?;
    let target = folder.join(text.strip_prefix("gitdir:")?.trim());
    Some(fs::canonicalize(&target).unwrap_or(target))
}

/// Programs that git would start as hooks.
fn hooks_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut hooks: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_none_or(|end| end != "sample"))
        .filter(|path| {
            let meta = path.metadata();
            meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
        .collect();
    hooks.sort();
    hooks
}

fn short(value: &str) -> String {
    let line = value.lines().next().unwrap_or_default();
    let begin: String = line.chars().take(60).collect();
    match begin.len() < value.len() {
        true => format!("`{begin}…`"),
        false => format!("`{begin}`"),
    }
}

/// What settings of git name in the work tree: files to lock, and those that are not there.
#[derive(Debug, Default)]
pub(crate) struct NamedInTree {
    pub(crate) there: Vec<(PathBuf, &'static str)>,
    pub(crate) missing: Vec<MissingFile>,
    top: PathBuf,
    /// The main work tree of the repository, where this is another: what is committed here comes there.
    main: Option<PathBuf>,
}

impl NamedInTree {
    pub(crate) fn of(git: &GitPlaces) -> Self {
        let main = git.common_dir.file_name().filter(|name| *name == ".git");
        let main = main.and(git.common_dir.parent());
        Self {
            main: main.filter(|main| *main != git.top).map(Path::to_owned),
            top: git.top.clone(),
            ..Self::default()
        }
    }

    /// Of one setting that stands in `file`.
    pub(crate) fn add(&mut self, key: &str, value: &str, file: Option<&Path>, home: Option<&Path>) {
        let home_path = |text: &str| {
            let below = text.strip_prefix("~/").zip(home);
            below.map_or_else(|| text.into(), |(below, home)| home.join(below))
        };
        let include = key == "include.path" || key.starts_with("includeif.");
        if include {
            let folder = file.and_then(Path::parent).unwrap_or(&self.top);
            let path = folder.join(home_path(value));
            self.put(path, MissingKind::Include, "settings of git");
        } else if key == "core.hookspath" {
            let path = self.top.join(home_path(value));
            self.put(path, MissingKind::Hooks, "hooks of git");
        } else if setting_that_starts(key, value).is_some() {
            for named in files_named(value, &self.top) {
                if named.is_path || named.path.is_file() {
                    self.put(
                        named.path,
                        MissingKind::Program,
                        "a program that git starts",
                    );
                }
            }
        }
    }

    /// A file of settings.
    pub(crate) fn add_file(&mut self, file: PathBuf) {
        self.put(file, MissingKind::Include, "settings of git");
    }

    fn put(&mut self, path: PathBuf, kind: MissingKind, why: &'static str) {
        let Some(path) = descartes_kernel::sandbox::plain(&path) else {
            return;
        };
        let in_main = self
            .main
            .as_ref()
            .and_then(|main| path.strip_prefix(main).ok());
        let here = in_main.filter(|below| !below.starts_with(".git"));
        let here = here.map(|below| self.top.join(below));
        for path in [Some(path.clone()), here].into_iter().flatten() {
            if path.exists() {
                self.there.push((path, why));
            } else if path.starts_with(&self.top) {
                self.missing.push(MissingFile { path, kind });
            }
        }
    }
}
