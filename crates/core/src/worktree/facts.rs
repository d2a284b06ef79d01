//! What the user's settings say about how files become objects, and where those settings are.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Files outside the work tree that rules come from, as they were.
    sources: Vec<(PathBuf, Option<Stamp>)>,
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
            .git
            .read(&repo.root)
            .args(["config", "-z", "--list", "--show-origin"]);
        let config = Config::parse(&call.output(deadline)?, &repo.root);
        let attributes = attribute_files(repo, &config, deadline)?;
        let mut sources = config.origins.clone();
        sources.extend(exclude_files(repo, &config));
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
            sources: sources.into_iter().map(stamped).collect(),
        })
    }

    /// Whether the files that this was read from are still the same.
    pub(super) fn hold(&self) -> bool {
        self.sources
            .iter()
            .all(|(path, known)| stamp(path) == *known)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|meta| Stamp::of(&meta))
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
    let asked = repo
        .git
        .read(&repo.root)
        .args(["var", "GIT_ATTR_SYSTEM"])
        .run(deadline)?;
    let system = match text::lines(&asked.stdout).next() {
        Some(line) if asked.code == Some(0) => text::path(line),
        // Older versions cannot say; this is where it nearly always is.
        _ => PathBuf::from("/etc/gitattributes"),
    };
    Ok(vec![
        repo.refs.common.join("info/attributes"),
        global,
        system,
    ])
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
    origins: Vec<PathBuf>,
}

impl Config {
    /// `origin NUL key LF value NUL …`; a key without a value is `true`.
    fn parse(out: &[u8], root: &Path) -> Config {
        let mut config = Config {
            values: Vec::new(),
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
            config.values.push((key.to_owned(), value.to_owned()));
        }
        config
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
