//! Where HEAD stands, read from the files of the repository: no process in the common case.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use descartes_sandbox::{file_text, small_text};

/// Of a million refs and more.
const LARGEST_REFS: u64 = 1 << 28;

/// What HEAD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadRef {
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
    pub(crate) fn commit(&self) -> Option<&str> {
        match self {
            HeadRef::Branch { commit, .. } => commit.as_deref(),
            HeadRef::Detached { commit } => Some(commit),
            HeadRef::Opaque => None,
        }
    }
}

/// The two folders that refs live in: that of this work tree, and the one shared by all of them.
#[derive(Clone, Debug)]
pub(crate) struct RefFolders {
    pub(crate) own: PathBuf,
    pub(crate) common: PathBuf,
}

impl RefFolders {
    /// The folders of the repository whose top folder is `root`, from its `.git`.
    pub(super) fn of(root: &Path) -> Option<RefFolders> {
        let dot_git = root.join(".git");
        let own = match small_text(&dot_git) {
            Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) if dot_git.is_dir() => dot_git,
            Err(_) => return None,
        };
        Some(RefFolders::of_git_dir(own))
    }

    /// The folders of a work tree, from git's folder of it.
    pub(crate) fn of_git_dir(own: PathBuf) -> RefFolders {
        let common = match small_text(own.join("commondir")) {
            Ok(text) => own.join(text.trim()),
            Err(_) => own.clone(),
        };
        RefFolders { own, common }
    }

    /// Where git keeps a file of this name: refs are shared by all work trees but for a few.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let own = ["refs/bisect", "refs/worktree", "refs/rewritten"];
        let is_own = own.iter().any(|own| name.starts_with(own));
        let is_shared = name.starts_with("refs/") || name.starts_with("packed-refs");
        match is_shared && !is_own {
            true => self.common.join(name),
            false => self.own.join(name),
        }
    }

    /// The commit of HEAD, of a ref with its whole name, or of a file beside HEAD such as
    /// `MERGE_HEAD`; `Some(None)` when there is none, `None` when only git itself can tell. Whether
    /// the commit is there is another question.
    pub(crate) fn commit(&self, name: &str) -> Option<Option<String>> {
        if self.common.join("reftable").exists() {
            return None;
        }
        if name == "HEAD" {
            return match self.head() {
                HeadRef::Opaque => None,
                head => Some(head.commit().map(str::to_owned)),
            };
        }
        if name.starts_with("refs/") {
            return self.resolve(name);
        }
        match small_text(self.own.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
            Ok(text) => match parse(&text)? {
                Target::Commit(commit) => Some(Some(commit)),
                Target::Ref(_) => None,
            },
            Err(_) => None,
        }
    }

    pub(crate) fn head(&self) -> HeadRef {
        let head = self.own.join("HEAD");
        // Very old repositories have a link there.
        let is_file = fs::symlink_metadata(&head).is_ok_and(|meta| meta.is_file());
        let text = is_file.then(|| small_text(head).ok()).flatten();
        let Some(text) = text else {
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
                .find_map(|folder| small_text(folder.join(&name)).ok());
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
        let text = match file_text(self.common.join("packed-refs"), LARGEST_REFS) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(None),
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

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_testkit::World;

    /// Whatever a ref looks like on the disk, it is read as git reads it, or not at all.
    #[test]
    fn refs_are_read_as_git_reads_them() {
        let world = World::new();
        world.git_init();
        world.write("a", "a");
        world.git(["add", "."]);
        world.git(["commit", "-qm", "one"]);
        world.git(["branch", "loose"]);
        world.git(["branch", "packed"]);
        world.git(["pack-refs", "--all"]);
        world.git(["commit", "-q", "--allow-empty", "-m", "two"]);
        world.git(["branch", "-f", "loose"]);
        world.git(["symbolic-ref", "refs/heads/link", "refs/heads/loose"]);
        world.git(["branch", "folder/inside"]);
        world.git(["worktree", "add", "-q", "--detach", "../other", "packed"]);
        let other = world.project().join("../other");
        for tree in [world.project(), other] {
            let refs = RefFolders::of(&tree).unwrap();
            for name in [
                "HEAD",
                "refs/heads/loose",
                "refs/heads/packed",
                "refs/heads/link",
            ] {
                let asked = world.git(["-C", tree.to_str().unwrap(), "rev-parse", name]);
                let read = refs.commit(name).unwrap();
                assert_eq!(read.as_deref(), Some(asked.trim()), "{name} of {tree:?}");
            }
            for name in ["refs/heads/none", "refs/heads/folder", "MERGE_HEAD"] {
                assert_eq!(refs.commit(name), Some(None), "{name} of {tree:?}");
            }
            for name in [
                "HEAD",
                "index.lock",
                "refs/heads/x.lock",
                "packed-refs.lock",
                "refs/bisect",
            ] {
                let asked = world.git([
                    "-C",
                    tree.to_str().unwrap(),
                    "rev-parse",
                    "--git-path",
                    name,
                ]);
                let real = |path: PathBuf| {
                    let (above, name) = (path.parent().unwrap(), path.file_name().unwrap());
                    above.canonicalize().unwrap_or(above.to_owned()).join(name)
                };
                assert_eq!(
                    real(refs.path(name)),
                    real(tree.join(asked.trim())),
                    "{name}"
                );
            }
        }
    }

    /// A database of refs, and what no git wrote, are git's own to read.
    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let world = World::new();
        world.git_init();
        let git = world.project().join(".git");
        let refs = RefFolders::of(&world.project()).unwrap();
        fs::write(git.join("refs/heads/odd"), "half a na").unwrap();
        assert_eq!(refs.commit("refs/heads/odd"), None);
        fs::create_dir(git.join("reftable")).unwrap();
        assert_eq!(refs.commit("refs/heads/main"), None);
        assert_eq!(refs.commit("HEAD"), None);
    }
}
