//! What lies in a tree and is no work: what `worktree_copy` and `worktree_setup` brought, and what gates left.
//!
//! Before an agent begins, a note beside its slot says what no commit holds. When it has ended, before its gates
//! run, another one says what of the tree is its work. Only that is ever committed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;

use descartes_kernel::tasks::{BeforeAgent, WorkShare};

use super::files::{read_note, remove_all, write_note};
use super::{Done, Trees};
use crate::tasks::content_mark::ContentMark;
use crate::tasks::git::zero_ended;
use crate::tasks::git::{ChangedPaths, Repo, path_from, zero_ended_paths};

/// What lay in a tree before its agent, or its gates, began.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// What was checked out.
    base: Option<String>,
    /// Files and folders that `worktree_copy` brought, git ignoring them or not.
    copied: Vec<PathBuf>,
    /// What is in no commit and not ignored.
    untracked: BTreeMap<PathBuf, ContentMark>,
    /// Tracked files that are not as the commit has them.
    changed: BTreeMap<PathBuf, ContentMark>,
}

impl Brought {
    fn write(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut row = |head: String, path: &Path| {
            text.extend_from_slice(&zero_ended(&head, [path].into_iter()));
        };
        if let Some(base) = &self.base {
            row("base\t".to_owned(), Path::new(base));
        }
        for path in &self.copied {
            row("copied\t".to_owned(), path);
        }
        for (path, mark) in &self.untracked {
            row(format!("untracked {}\t", mark.text()), path);
        }
        for (path, mark) in &self.changed {
            row(format!("changed {}\t", mark.text()), path);
        }
        text
    }

    fn parse(text: &[u8]) -> Self {
        let mut brought = Self::default();
        for row in text.split(|byte| *byte == 0) {
            let Some(tab) = row.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let head = String::from_utf8_lossy(&row[..tab]).into_owned();
            let path = path_from(&row[tab + 1..]);
            match head.split_once(' ') {
                Some(("untracked", mark)) => {
                    brought.untracked.insert(path, ContentMark::noted(mark));
                }
                Some(("changed", mark)) => {
                    brought.changed.insert(path, ContentMark::noted(mark));
                }
                _ if head == "base" => brought.base = Some(path.to_string_lossy().into_owned()),
                _ if head == "copied" => brought.copied.push(path),
                _ => {}
            }
        }
        brought
    }
}

/// What of it is still there as it was.
#[derive(Debug)]
pub(super) struct Spared {
    pub(super) files: BTreeSet<PathBuf>,
    /// What `worktree_copy` brought stays in any state, as long as a person has it, too.
    copied: Vec<PathBuf>,
    user: PathBuf,
    /// Whether all of it is.
    pub(super) is_whole: bool,
}

impl Spared {
    pub(super) fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.copied.is_empty()
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.files.contains(path) || is_below(path, &self.copied, &self.user)
    }
}

/// Whether a file is one of those that were copied from there.
fn is_below(path: &Path, copied: &[PathBuf], from: &Path) -> bool {
    let mut copied = copied.iter();
    copied.any(|copied| path.starts_with(copied)) && from.join(path).symlink_metadata().is_ok()
}

impl Trees {
    pub(super) fn brought_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.brought"))
    }

    /// What of a slot is its agent's work, as it was before the gates.
    pub(super) fn work_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.work"))
    }

    pub(super) fn brought(&self, name: &str) -> Done<Brought> {
        let note = read_note(&self.brought_mark(name))?;
        Ok(note.map(|text| Brought::parse(&text)).unwrap_or_default())
    }

    /// What `worktree_copy` brings to a tree of this commit: what is in the commit comes from there.
    pub(super) fn copied(&self, commit: &str) -> Done<Vec<PathBuf>> {
        let mut copied = Vec::new();
        for name in &self.copy {
            let parts = Path::new(name).components();
            let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
            let spec = format!(":(literal){}", path.display());
            let listed = ["ls-tree", "-r", commit, "--", &spec];
            if self.user.dir.join(&path).exists() && self.user.ask(&listed)?.is_empty() {
                copied.push(path);
            }
        }
        Ok(copied)
    }

    /// Writes down what lies in a slot before its agent begins. Where what was merged, and is about to come in,
    /// has something, that has the place.
    pub(super) fn note_brought(&self, repo: &Repo, merged: &str) -> Done<()> {
        let name = name_of(&repo.dir);
        drop(fs_err::remove_file(self.work_mark(&name)));
        let mut changed = repo.changed()?;
        self.make_way(&repo.dir, &changed.untracked, merged)?;
        let is_there = |path: &PathBuf| repo.dir.join(path).symlink_metadata().is_ok();
        changed.untracked.retain(is_there);
        let base = repo.commit_of("HEAD")?;
        let copied = match &base {
            Some(base) => self.copied(base)?,
            None => Vec::new(),
        };
        self.write_brought(&repo.dir, base, copied, &changed)
    }

    pub(super) fn write_brought(
        &self,
        dir: &Path,
        base: Option<String>,
        copied: Vec<PathBuf>,
        changed: &ChangedPaths,
    ) -> Done<()> {
        let marked = |paths: &BTreeSet<PathBuf>| {
            let files = paths.iter().filter(|path| is_file(path));
            let files = files.filter(|path| !self.is_put_back(path));
            let files = files.map(|path| Ok((path.clone(), ContentMark::of(&dir.join(path))?)));
            files.collect::<std::io::Result<BTreeMap<_, _>>>()
        };
        let brought = Brought {
            base,
            copied,
            untracked: marked(&changed.untracked)?,
            changed: marked(&changed.tracked)?,
        };
        write_note(&self.brought_mark(&name_of(dir)), brought.write())?;
        Ok(())
    }

    /// What of it stays when the tree is emptied.
    pub(super) fn spared(&self, dir: &Path) -> Done<Spared> {
        let brought = self.brought(&name_of(dir))?;
        let all = brought.untracked.len();
        let mut files = BTreeSet::new();
        for (path, mark) in brought.untracked {
            if mark.is_at(&dir.join(&path))? {
                files.insert(path);
            }
        }
        let is_whole = files.len() == all;
        Ok(Spared {
            files,
            copied: brought.copied,
            user: self.user.dir.clone(),
            is_whole,
        })
    }

    /// Removes what was brought where a commit that is about to be merged has something.
    pub(super) fn make_way(
        &self,
        dir: &Path,
        untracked: &BTreeSet<PathBuf>,
        commit: &str,
    ) -> Done<()> {
        if untracked.is_empty() {
            return Ok(());
        }
        let listed = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit];
        for path in self.user.paths(&listed)? {
            if untracked.contains(&path) {
                remove_all(&dir.join(path))?;
            }
        }
        Ok(())
    }

    /// The agent in a slot has ended, and nothing of ours ran there since.
    pub(super) fn note_work(&self, path: &Path) -> Done<()> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let repo = &self.settled(path)?;
        let name = name_of(&repo.dir);
        let work = self.find_work(&self.brought(&name)?, &repo.changed()?, &repo.dir)?;
        let work = zero_ended("", work.iter().map(PathBuf::as_path));
        write_note(&self.work_mark(&name), work)?;
        Ok(())
    }

    /// What of the changes in a slot is to be committed.
    pub(super) fn work_in(&self, repo: &Repo, changed: &ChangedPaths) -> Done<BTreeSet<PathBuf>> {
        let name = name_of(&repo.dir);
        let work = match read_note(&self.work_mark(&name))? {
            Some(text) => zero_ended_paths(&text).into_iter().collect(),
            None => self.find_work(&self.brought(&name)?, changed, &repo.dir)?,
        };
        let is_work = |path: &&PathBuf| work.contains(*path);
        Ok(changed.all().filter(is_work).cloned().collect())
    }

    fn find_work(
        &self,
        brought: &Brought,
        changed: &ChangedPaths,
        dir: &Path,
    ) -> Done<BTreeSet<PathBuf>> {
        let mut work = BTreeSet::new();
        for path in changed.all().filter(|path| !self.is_put_back(path)) {
            let (before, mark) = match () {
                () if brought.untracked.contains_key(path) => {
                    (BeforeAgent::Brought, brought.untracked.get(path))
                }
                () if self.is_copied(brought, path) => (BeforeAgent::Brought, None),
                () if brought.changed.contains_key(path) => {
                    (BeforeAgent::ChangedBySetup, brought.changed.get(path))
                }
                () => (BeforeAgent::AsCommitted, None),
            };
            let is_same = mark.map(|mark| mark.is_at(&dir.join(path))).transpose()?;
            let by_agent = match is_same {
                Some(is_same) => !is_same,
                None => before == BeforeAgent::AsCommitted,
            };
            match before.share(by_agent) {
                WorkShare::Work => {
                    work.insert(path.clone());
                }
                WorkShare::NoWork => {}
                WorkShare::NoWorkToldOf => self.tell_brought(path),
            }
        }
        Ok(work)
    }

    /// Whether `worktree_copy` brought it and the agent has git ignore it no more.
    fn is_copied(&self, brought: &Brought, path: &Path) -> bool {
        is_below(path, &brought.copied, &self.user.dir)
    }

    /// Takes out of the index what was brought and an agent put there itself.
    pub(super) fn unstage_brought(&self, repo: &Repo) -> Done<()> {
        let brought = self.brought(&name_of(&repo.dir))?;
        let Some(base) = &brought.base else {
            return Ok(());
        };
        if brought.untracked.is_empty() && brought.copied.is_empty() {
            return Ok(());
        }
        let list = [
            "diff-index",
            "--cached",
            "--name-only",
            "--no-renames",
            "-z",
        ];
        let added = repo.paths(&[&list[..], &["--diff-filter=A", base]].concat())?;
        let theirs = added
            .into_iter()
            .filter(|path| brought.untracked.contains_key(path) || self.is_copied(&brought, path));
        let theirs: BTreeSet<PathBuf> = theirs.collect();
        theirs.iter().for_each(|path| self.tell_brought(path));
        repo.unstage(&theirs)?;
        Ok(())
    }

    fn tell_brought(&self, path: &Path) {
        let mut said = self
            .said_brought
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if said.insert(path.to_owned()) {
            self.user.locks.tell(format!(
                "{} is no work of an agent, since worktree_copy or worktree_setup brought it: what an agent \
                 changed in it, or committed of it, does not land",
                path.display()
            ));
        }
    }
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Names of repositories end with a slash.
fn is_file(path: &Path) -> bool {
    !path.as_os_str().as_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let mark = ContentMark::noted;
        let odd = PathBuf::from("a b\tc\n");
        let brought = Brought {
            base: Some("1234".to_owned()),
            copied: vec![PathBuf::from("conf dir")],
            untracked: [(odd.clone(), mark("file 0 3 1.2 -"))].into(),
            changed: [(PathBuf::from("lock"), mark("gone"))].into(),
        };
        let read = Brought::parse(&brought.write());
        assert_eq!(read.base, brought.base);
        assert_eq!(read.copied, brought.copied);
        assert_eq!(read.untracked, brought.untracked);
        assert_eq!(read.changed, brought.changed);
    }
}
