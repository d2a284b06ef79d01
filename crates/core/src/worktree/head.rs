//! Where HEAD stands, read from the files of the repository: no process in the common case.

use std::fs;
use std::path::{Path, PathBuf};

/// What HEAD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadRef {
    /// On a branch; `None` before its first commit.
    Branch {
        name: String,
        commit: Option<String>,
    },
    /// On a commit.
    Detached { commit: String },
    /// Kept in a way that only git itself can read.
    Opaque,
}

impl HeadRef {
    pub(super) fn commit(&self) -> Option<&str> {
        match self {
            HeadRef::Branch { commit, .. } => commit.as_deref(),
            HeadRef::Detached { commit } => Some(commit),
            HeadRef::Opaque => None,
        }
    }
}

/// The two folders that refs live in: that of this work tree, and the one shared by all of them.
#[derive(Clone, Debug)]
pub(super) struct RefFolders {
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
}

impl RefFolders {
    /// The folders of the repository whose top folder is `root`, from its `.git`.
    pub(super) fn of(root: &Path) -> Option<RefFolders> {
        let dot_git = root.join(".git");
        let own = match fs::read_to_string(&dot_git) {
            Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) if dot_git.is_dir() => dot_git,
            Err(_) => return None,
        };
        let common = match fs::read_to_string(own.join("commondir")) {
            Ok(text) => own.join(text.trim()),
            Err(_) => own.clone(),
        };
        Some(RefFolders { own, common })
    }

    pub(super) fn head(&self) -> HeadRef {
        let Ok(text) = fs::read_to_string(self.own.join("HEAD")) else {
            return HeadRef::Opaque;
        };
        match parse(&text) {
            Some(Target::Commit(commit)) => HeadRef::Detached { commit },
            // What repositories with a ref database write there for older readers.
            Some(Target::Ref(name)) if name == "refs/heads/.invalid" => HeadRef::Opaque,
            Some(Target::Ref(name)) => match self.resolve(&name) {
                Some(commit) => HeadRef::Branch {
                    commit,
                    name: short(&name),
                },
                None => HeadRef::Opaque,
            },
            None => HeadRef::Opaque,
        }
    }

    /// The commit of a ref; `Some(None)` when there is no such ref yet.
    fn resolve(&self, name: &str) -> Option<Option<String>> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            let loose = [&self.common, &self.own]
                .into_iter()
                .find_map(|folder| fs::read_to_string(folder.join(&name)).ok());
            match loose.as_deref().map(parse) {
                Some(Some(Target::Commit(commit))) => return Some(Some(commit)),
                Some(Some(Target::Ref(next))) => name = next,
                Some(None) => return None,
                None => return self.packed(&name),
            }
        }
        None
    }

    fn packed(&self, name: &str) -> Option<Option<String>> {
        let text = match fs::read_to_string(self.common.join("packed-refs")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
            Err(_) => return None,
        };
        let found = text.lines().filter_map(|line| line.split_once(' '));
        Some(
            found
                .into_iter()
                .find(|(_, n)| *n == name)
                .map(|(commit, _)| commit.to_owned()),
        )
    }
}

enum Target {
    Ref(String),
    Commit(String),
}

fn parse(text: &str) -> Option<Target> {
    let text = text.trim_end();
    if let Some(name) = text.strip_prefix("ref:") {
        return Some(Target::Ref(name.trim().to_owned()));
    }
    let hex = text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| Target::Commit(text.to_owned()))
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
