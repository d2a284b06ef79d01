//! What the user's settings say about how files become objects, and where those settings are.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::deadline::Deadline;
use super::error::WorktreeError;
use super::git::Git;
use super::objects::Blobs;
use super::repo::Repo;
use super::stamp::Stamp;
use super::text;

/// Settings that matter for snapshots.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) blobs: Blobs,
    pub(super) files: Files,
    /// Ignore rules that lie outside the work tree; later ones win.
    pub(super) rules: Vec<u8>,
    /// Filters that are configured.
    pub(super) filters: Vec<String>,
    /// Files outside the work tree that rules come from, as they were.
    sources: Vec<(PathBuf, Option<Stamp>)>,
    /// Whether settings depend on the branch, which no file tells.
    by_branch: bool,
}

/// Whether files are on disk what they are to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    Faithful,
    /// Modes, links or the case of names are not kept by this file system, or only a part of the
    /// files is checked out.
    Translated,
}

impl Facts {
    pub(super) fn read(repo: &Repo, deadline: Deadline) -> Result<Facts, WorktreeError> {
        let call = repo
            .read()
            .args(["config", "-z", "--list", "--show-origin"]);
        let config = Config::parse(&call.output(deadline.clone())?, &repo.root);
        let attributes = attribute_files(repo, &config, deadline)?;
        let mut sources = config.origins.clone();
        sources.extend(config_files(repo, &config));
        let [own, global] = exclude_files(repo, &config);
        let rules = [read_rules(&global), read_rules(&own)].concat();
        sources.extend([own, global]);
        sources.push(repo.refs.own.join("info/sparse-checkout"));
        sources.push(repo.refs.own.join("config.worktree"));
        let filtered = attributes.iter().any(|path| path.exists())
            || !matches!(
                config.get("core.autocrlf"),
                None | Some("false" | "no" | "off" | "0")
            )
            || config.get("attr.tree").is_some()
            || repo.git.var("GIT_ATTR_SOURCE").is_some();
        sources.extend(attributes);
        let translated = config.is("core.filemode", "false")
            || config.is("core.symlinks", "false")
            || config.is("core.ignorecase", "true")
            || config.is("core.precomposeunicode", "true")
            || config.is("core.sparsecheckout", "true");
        let stamped = |path: PathBuf| {
            let stamp = stamp(&path);
            (path, stamp)
        };
        Ok(Facts {
            blobs: if filtered {
                Blobs::Filtered
            } else {
                Blobs::Raw
            },
            files: if translated {
                Files::Translated
            } else {
                Files::Faithful
            },
            rules,
            filters: config.filters(),
            by_branch: config
                .keys()
                .any(|key| key.starts_with("includeif.onbranch:")),
            sources: sources.into_iter().map(stamped).collect(),
        })
    }

    /// Whether the files that this was read from are still the same.
    pub(super) fn hold(&self) -> bool {
        let same = |(path, known): &(PathBuf, Option<Stamp>)| stamp(path) == *known;
        !self.by_branch && self.sources.iter().all(same)
    }
}

/// Files that settings may come from, also where there are none yet.
fn config_files(repo: &Repo, config: &Config) -> Vec<PathBuf> {
    let mut files = vec![
        repo.refs.common.join("config"),
        home(&repo.git).join(".gitconfig"),
        user_file(&repo.git, "config"),
        PathBuf::from("/etc/gitconfig"),
    ];
    for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        files.extend(repo.git.var(variable).map(PathBuf::from));
    }
    files.extend(config.included(&repo.git));
    files
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|meta| Stamp::of(&meta))
}

/// More than this in an ignore file is no ignore file.
const MAX_RULES: u64 = 1 << 20;

fn read_rules(path: &Path) -> Vec<u8> {
    let mut rules = Vec::new();
    if let Ok(file) = super::file::open(path) {
        // What cannot be read holds no rule for git either.
        drop(file.take(MAX_RULES).read_to_end(&mut rules));
        rules.push(b'\n');
    }
    rules
}

fn exclude_files(repo: &Repo, config: &Config) -> [PathBuf; 2] {
    let global = match config.get("core.excludesfile") {
        Some(path) => expand(&repo.git, path),
        None => user_file(&repo.git, "ignore"),
    };
    [repo.refs.common.join("info/exclude"), global]
}

fn attribute_files(
    repo: &Repo,
    config: &Config,
    deadline: Deadline,
) -> Result<Vec<PathBuf>, WorktreeError> {
    let global = match config.get("core.attributesfile") {
        Some(path) => expand(&repo.git, path),
        None => user_file(&repo.git, "attributes"),
    };
    let system = system_attributes(repo, deadline)?;
    Ok(vec![
        repo.refs.common.join("info/attributes"),
        global,
        system,
    ])
}

/// The attributes of the whole machine: where they are is built into git, and asked once.
fn system_attributes(repo: &Repo, deadline: Deadline) -> Result<PathBuf, WorktreeError> {
    static KNOWN: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());
    let held = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let git = repo.git.program_name();
    let known = held().iter().find(|(asked, _)| *asked == git).cloned();
    if let Some((_, known)) = known {
        return Ok(known);
    }
    let asked = repo.read().args(["var", "GIT_ATTR_SYSTEM"]).run(deadline)?;
    let system = match text::lines(&asked.stdout).next() {
        Some(line) if asked.code == Some(0) => text::path(line),
        // Older versions cannot say; this is where it nearly always is.
        _ => PathBuf::from("/etc/gitattributes"),
    };
    held().push((git, system.clone()));
    Ok(system)
}

/// A file of the user's git settings, in its usual place.
fn user_file(git: &Git, name: &str) -> PathBuf {
    let base = match git.var("XDG_CONFIG_HOME").filter(|base| !base.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => home(git).join(".config"),
    };
    base.join("git").join(name)
}

fn expand(git: &Git, path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home(git).join(rest),
        None => PathBuf::from(path),
    }
}

fn home(git: &Git) -> PathBuf {
    git.var("HOME").as_deref().unwrap_or(OsStr::new("/")).into()
}

/// The user's settings, later ones winning.
struct Config {
    values: Vec<(String, String)>,
    /// Files that settings are included from, and the file that says so.
    includes: Vec<(PathBuf, String)>,
    origins: Vec<PathBuf>,
}

impl Config {
    /// `origin NUL key LF value NUL …`; a key without a value is `true`.
    fn parse(out: &[u8], root: &Path) -> Config {
        let mut config = Config {
            values: Vec::new(),
            includes: Vec::new(),
            origins: Vec::new(),
        };
        let mut pieces = text::zero_ended(out);
        while let (Some(origin), Some(setting)) = (pieces.next(), pieces.next()) {
            if let Some(file) = origin.strip_prefix(b"file:") {
                let file = root.join(text::path(file));
                if config.origins.last() != Some(&file) {
                    config.origins.push(file);
                }
            }
            let setting = String::from_utf8_lossy(setting);
            let (key, value) = setting.split_once('\n').unwrap_or((&setting, "true"));
            let includes = key.starts_with("include.") || key.starts_with("includeif.");
            if let Some(file) = config.origins.last()
                && includes
            {
                config.includes.push((file.clone(), value.to_owned()));
            }
            config.values.push((key.to_owned(), value.to_owned()));
        }
        config
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(key, _)| key.as_str())
    }

    /// Names of the filters that a file may go through.
    fn filters(&self) -> Vec<String> {
        let name = |key: &str| {
            let (name, _) = key.strip_prefix("filter.")?.rsplit_once('.')?;
            Some(name.to_owned())
        };
        let mut names: Vec<String> = self.keys().filter_map(name).collect();
        names.sort();
        names.dedup();
        names
    }

    fn included(&self, git: &Git) -> Vec<PathBuf> {
        let path = |(file, path): &(PathBuf, String)| {
            let folder = file.parent().unwrap_or(Path::new("/"));
            folder.join(expand(git, path))
        };
        self.includes.iter().map(path).collect()
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.values
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    fn is(&self, key: &str, wanted: &str) -> bool {
        let same: &[&str] = match wanted {
            "true" => &["true", "yes", "on", "1"],
            _ => &["false", "no", "off", "0", ""],
        };
        self.get(key)
            .is_some_and(|value| same.contains(&value.to_ascii_lowercase().as_str()))
    }
}
