//! What makes a folder a worktree of the repository: its `.git` file, and git's own folder of it.
//!
//! Agents can change both, and projects are moved and copied. So we write down which folder of
//! git's is whose, hand both to git explicitly, and mend the `.git` file for others.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::files::{is_gone, read_note, remove_all, write_note};
use super::{Done, GitError, Trees, short_hash};
use crate::tasks::git::Repo;
use crate::tasks::place::Work;

/// Files of git's folder of a worktree that decide which files are checked out there.
const SETTINGS: [(&str, &str); 2] = [
    ("config.worktree", "config"),
    ("info/sparse-checkout", "sparse"),
];

fn real(path: &Path) -> PathBuf {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A path that stands alone in a file, after these prefix.
fn path_in(file: &Path, prefix: &str) -> Option<PathBuf> {
    let is_file = fs_err::symlink_metadata(file).is_ok_and(|meta| meta.is_file());
    let text = is_file.then(|| fs_err::read(file).ok()).flatten()?;
    let text = text.strip_prefix(prefix.as_bytes())?;
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(text)))
}

fn write_path(file: &Path, prefix: &str, path: &Path) -> Done<()> {
    let mut text = prefix.as_bytes().to_vec();
    text.extend_from_slice(path.as_os_str().as_bytes());
    text.push(b'\n');
    write_note(file, text).map_err(GitError::from)
}

/// Whether the `.git` of a worktree is a file that names this folder of git's.
fn leads_to(link: &Path, admin: &Path) -> bool {
    path_in(link, "gitdir: ").is_some_and(|path| real(&path) == real(admin))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Trees {
    /// Where we wrote down which of git's folders is that of a tree.
    fn admin_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.git-folder"))
    }

    /// Notes about a tree that go with it.
    pub(super) fn drop_marks(&self, name: &str) {
        let settings = SETTINGS.map(|(_, end)| self.settings_mark(name, end));
        let marks = [
            self.setup_mark(name),
            self.task_mark(name),
            self.at_work_mark(name),
            self.admin_mark(name),
            self.links_mark(name),
            self.brought_mark(name),
            self.work_mark(name),
        ];
        for mark in marks.into_iter().chain(settings) {
            drop(fs_err::remove_file(mark));
        }
    }

    fn settings_mark(&self, name: &str, end: &str) -> PathBuf {
        self.folder.join(format!("{name}.{end}"))
    }

    /// Git's folders of all worktrees, each with the place where git believes the tree to be.
    fn admins(&self) -> Done<Vec<(PathBuf, PathBuf)>> {
        let entries = fs_err::read_dir(self.common_dir()?.join("worktrees"));
        let admins = entries.into_iter().flatten().flatten();
        let admins = admins.map(|entry| entry.path()).filter_map(|admin| {
            let link = path_in(&admin.join("gitdir"), "")?;
            Some((admin, link.parent()?.to_owned()))
        });
        Ok(admins.collect())
    }

    /// Git's own folder of a worktree.
    fn admin_of(&self, path: &Path) -> Done<Option<PathBuf>> {
        let noted = path_in(&self.admin_mark(&name_of(path)), "");
        let noted = noted.filter(|_| path.parent() == Some(&*self.folder));
        if let Some(noted) = noted {
            let noted = self.common_dir()?.join("worktrees").join(noted);
            if noted.is_dir() {
                return Ok(Some(noted));
            }
        }
        let above = real(path.parent().unwrap_or(path));
        let tree = above.join(path.file_name().unwrap_or_default());
        let mut admins = self.admins()?.into_iter();
        Ok(admins
            .find(|(_, at)| *at == tree || *at == path)
            .map(|(admin, _)| admin))
    }

    /// A worktree of ours that is there.
    pub(super) fn tree_at(&self, path: &Path) -> Done<Repo> {
        let admin = self
            .admin_of(path)?
            .ok_or_else(|| format!("{} is no longer a worktree", path.display()))?;
        Ok(self.user.pinned(path, &admin))
    }

    /// Registers a worktree, with nothing checked out in it yet.
    pub(super) fn add_worktree(&self, path: &Path, commit: &str) -> Done<()> {
        let text = path.to_string_lossy();
        let add = [
            "worktree",
            "add",
            "--quiet",
            "--force",
            "--no-checkout",
            "--detach",
            &text,
            commit,
        ];
        self.user.quiet(&add)?;
        let link = path.join(".git");
        let admin = path_in(&link, "gitdir: ").ok_or("git did not create the worktree")?;
        self.note_admin(&name_of(path), &admin)
    }

    /// Writes down which of git's folders is that of a tree, and its settings.
    fn note_admin(&self, name: &str, admin: &Path) -> Done<()> {
        let folder = Path::new(admin.file_name().unwrap_or_default());
        write_path(&self.admin_mark(name), "", folder)?;
        for (file, end) in SETTINGS {
            let text = match fs_err::read(admin.join(file)) {
                Err(error) if is_gone(&error) => Vec::new(),
                text => text?,
            };
            write_note(&self.settings_mark(name, end), text)?;
        }
        Ok(())
    }

    /// Puts the settings of one worktree back to what they were when it was made.
    pub(super) fn restore_settings(&self, repo: &Repo) -> Done<()> {
        let Some(admin) = self.admin_of(&repo.dir)? else {
            return Ok(());
        };
        let name = name_of(&repo.dir);
        for (file, end) in SETTINGS {
            let note = self.settings_mark(&name, end);
            let Some(text) = read_note(&note)? else {
                continue;
            };
            let file = admin.join(file);
            if fs_err::read(&file).unwrap_or_default() == text {
                continue;
            }
            match text.is_empty() {
                true => remove_all(&file)?,
                false => write_note(&file, text)?,
            }
        }
        Ok(())
    }

    /// A folder that is no worktree any more is removed where nothing is in it, and kept else.
    pub(super) fn put_out_of_the_way(&self, path: &Path) -> Done<()> {
        let Ok(mut entries) = fs_err::read_dir(path) else {
            return Ok(());
        };
        let nothing = entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == ".git"));
        if nothing && !path.join(".git").is_dir() {
            return fs_err::remove_dir_all(path).map_err(GitError::from);
        }
        let apart = self.free_name(&format!("{}.was", name_of(path)));
        fs_err::rename(path, self.folder.join(&apart))?;
        self.mark_kept(
            &apart,
            &["a folder that is no longer a worktree".to_owned()],
        )
    }

    /// A name in our folder that nothing has.
    fn free_name(&self, start: &str) -> String {
        let mut names = (1..).map(|n| format!("{start}-{n}"));
        let free = names.find(|name| !self.folder.join(name).exists());
        free.unwrap_or_default()
    }

    /// An agent may have moved the worktree away, or removed or replaced the file that makes a
    /// folder a worktree.
    pub(super) fn mend_link(&self, path: &Path) -> Done<()> {
        self.bring_home(path)?;
        let link = path.join(".git");
        let entries = fs_err::read_dir(path);
        if !entries.is_ok_and(|mut entries| entries.next().is_some()) {
            // Made anew when it is wanted.
            return Ok(());
        }
        let name = name_of(path);
        if fs_err::symlink_metadata(&link).is_ok_and(|meta| meta.is_dir()) {
            let apart = self.free_name(&format!("{name}.repository"));
            fs_err::create_dir_all(self.folder.join(&apart))?;
            fs_err::rename(&link, self.folder.join(&apart).join(".git"))?;
            let holds = "a repository that an agent made in place of the worktree's own .git";
            self.mark_kept(&apart, &[holds.to_owned()])?;
            self.user.locks.tell(format!(
                "an agent replaced the .git of {} with a repository of its own: it is kept at {}",
                path.display(),
                self.folder.join(&apart).display()
            ));
        }
        if let Some(admin) = self.admin_of(path)? {
            let repo = self.user.pinned(path, &admin);
            if repo.is_repository() {
                let noted = path_in(&admin.join("gitdir"), "");
                if noted.is_none_or(|noted| real(&noted) != real(&link)) {
                    write_path(&admin.join("gitdir"), "", &link)?;
                }
                return match leads_to(&link, &admin) {
                    true => Ok(()),
                    false => write_path(&link, "gitdir: ", &admin),
                };
            }
        }
        self.register_anew(path, &name)
    }

    /// Git has forgotten a worktree: it gets another one's registration, and an index from its
    /// branch.
    fn register_anew(&self, path: &Path, name: &str) -> Done<()> {
        let Some(task) = self.last_task(name)? else {
            return Ok(());
        };
        if let Some(broken) = self.admin_of(path)? {
            fs_err::remove_dir_all(broken)?;
        }
        let apart = self.folder.join(format!("{name}.link"));
        drop(fs_err::remove_dir_all(&apart));
        let branch = self.branch_of(&Work::named(task, String::new()));
        let head = format!("refs/heads/{branch}");
        let commit = match self.user.commit_of(&head)? {
            Some(tip) => tip,
            None => {
                let merged = self.merged()?;
                self.put_branch(&branch, &merged)?;
                merged
            }
        };
        self.add_worktree(&apart, &commit)?;
        let admin =
            path_in(&apart.join(".git"), "gitdir: ").ok_or("git did not create the worktree")?;
        let link = path.join(".git");
        if link.symlink_metadata().is_ok() {
            fs_err::remove_file(&link)?;
        }
        fs_err::rename(apart.join(".git"), &link)?;
        write_path(&admin.join("gitdir"), "", &link)?;
        self.note_admin(name, &admin)?;
        drop(fs_err::remove_dir_all(&apart));
        self.drop_marks(&name_of(&apart));
        let repo = self.user.pinned(path, &admin);
        repo.quiet(&["symbolic-ref", "HEAD", &head])?;
        repo.quiet(&["reset", "--quiet"]).map(drop)
    }

    /// A worktree that an agent moved elsewhere comes back.
    fn bring_home(&self, path: &Path) -> Done<()> {
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let Some(admin) = self.admin_of(path)? else {
            return Ok(());
        };
        let link = path_in(&admin.join("gitdir"), "").unwrap_or_default();
        let Some(there) = link.parent().filter(|there| *there != path) else {
            return Ok(());
        };
        if !leads_to(&link, &admin) {
            return Ok(());
        }
        fs_err::rename(there, path)?;
        write_path(&admin.join("gitdir"), "", &path.join(".git"))?;
        self.user.locks.tell(format!(
            "the worktree {} had been moved to {}: it was moved back",
            path.display(),
            there.display()
        ));
        Ok(())
    }

    /// Has git forget a worktree of ours that is not there.
    pub(super) fn unregister(&self, path: &Path) {
        if path.exists() {
            return;
        }
        if let Ok(Some(admin)) = self.admin_of(path) {
            // One that was killed in the middle of being made is locked for ever.
            drop(fs_err::remove_file(admin.join("locked")));
            let text = path.to_string_lossy();
            self.user
                .tidy(&["worktree", "remove", "--force", "--force", &text]);
            if admin.exists() {
                drop(fs_err::remove_dir_all(admin));
            }
        }
        drop(fs_err::remove_file(self.admin_mark(&name_of(path))));
    }

    /// The project was moved or copied since an earlier host made worktrees for it. Those of a
    /// moved one come along; those of a copied one are the original's.
    pub(super) fn take_over_moved(&self) -> Done<()> {
        let above = real(&self.settings.root.worktrees());
        let ending = format!("-{}", self.ref_tag);
        let hashes = self.checkout_hashes()?;
        let mut moved = Vec::new();
        for (admin, tree) in self.admins()? {
            let Some(folder) = tree.parent() else {
                continue;
            };
            let name = name_of(folder);
            let hash = name.strip_suffix(&ending);
            let Some(hash) = hash.filter(|hash| hash.len() == 12 && !hash.contains('-')) else {
                continue;
            };
            let ours = folder.parent().is_some_and(|root| real(root) == above);
            if !ours || real(folder) == real(&self.folder) {
                continue;
            }
            let Some(leads) = path_in(&tree.join(".git"), "gitdir: ") else {
                continue;
            };
            let is_lost = leads.symlink_metadata().is_err();
            let is_theirs = !is_lost && real(&leads) != real(&admin);
            if is_theirs {
                // What is in it is the original's; what is in commits is here as well.
                fs_err::remove_dir_all(&admin)?;
            } else if is_lost || !hashes.iter().any(|there| there == hash) {
                // The repository was moved, or the checkout alone: none is where this one's was.
                moved.push((admin, tree));
            }
        }
        for (admin, tree) in moved {
            self.take_over(&admin, &tree)?;
        }
        Ok(())
    }

    /// What the folders are called of the checkouts that there are.
    fn checkout_hashes(&self) -> Done<Vec<String>> {
        let common = self.common_dir()?;
        let main = common.parent().unwrap_or(&common).to_owned();
        let linked = self.admins()?.into_iter().map(|(_, tree)| tree);
        let there = linked.chain([main]).filter(|tree| tree.exists());
        let hashes = there.flat_map(|tree| [short_hash(&real(&tree)), short_hash(&tree)]);
        Ok(hashes.collect())
    }

    fn take_over(&self, admin: &Path, tree: &Path) -> Done<()> {
        let (Some(folder), name) = (tree.parent(), name_of(tree)) else {
            return Ok(());
        };
        let mut home = self.folder.join(&name);
        if !self.folder.exists() {
            // Everything that belongs to it: notes, other trees, the settings of the beginning.
            fs_err::rename(folder, &self.folder)?;
        } else if home.symlink_metadata().is_err() && tree.exists() {
            fs_err::rename(tree, &home)?;
            for entry in fs_err::read_dir(folder)?.flatten() {
                let note = entry.file_name();
                if note.to_string_lossy().starts_with(&format!("{name}.")) {
                    fs_err::rename(entry.path(), self.folder.join(note))?;
                }
            }
        } else if tree.exists() {
            home = self.folder.join(self.free_name(&format!("{name}.moved")));
            fs_err::rename(tree, &home)?;
            self.mark_kept(
                &name_of(&home),
                &["work of before the project was moved".to_owned()],
            )?;
        }
        write_path(&admin.join("gitdir"), "", &home.join(".git"))?;
        write_path(&home.join(".git"), "gitdir: ", admin)?;
        if self.kept_mark(&name_of(&home)).exists() {
            self.detach(&self.user.pinned(&home, admin), &self.merged()?)?;
        }
        Ok(())
    }

    /// Worktrees that are none of ours and have a branch checked out, with git's folders of them.
    pub(super) fn others_with(&self, branch: &str) -> Done<Vec<(PathBuf, PathBuf)>> {
        let head = format!("ref: refs/heads/{branch}");
        let has_it = |admin: &Path| {
            let text = fs_err::read(admin.join("HEAD")).unwrap_or_default();
            text.trim_ascii_end() == head.as_bytes()
        };
        let (folder, common) = (real(&self.folder), self.common_dir()?);
        let own = self.user.git_dir()?;
        let mut others = self.admins()?;
        let main = common.parent().unwrap_or(&common).to_owned();
        others.push((common, main));
        others.retain(|(admin, tree)| {
            let there = tree.exists() && !real(tree).starts_with(&folder);
            there && has_it(admin) && real(admin) != real(&own)
        });
        Ok(others)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn paths_in_files_are_bytes_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/a\xff\nb".to_vec()));
        let file = dir.path().join("link");
        let victim = dir.path().join("victim");
        fs_err::write(&victim, "theirs").unwrap();
        fs_err::os::unix::fs::symlink(&victim, &file).unwrap();
        write_path(&file, "gitdir: ", &odd).unwrap();
        assert_eq!(path_in(&file, "gitdir: "), Some(odd));
        assert_eq!(fs_err::read_to_string(&victim).unwrap(), "theirs");
        fs_err::remove_file(&file).unwrap();
        fs_err::write(&victim, "gitdir: /x\n").unwrap();
        fs_err::os::unix::fs::symlink(&victim, &file).unwrap();
        assert_eq!(path_in(&file, "gitdir: "), None);
    }
}
