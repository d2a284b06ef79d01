//! Work that travels: bundles for other machines, and what comes back from them.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{Done, GitError, Trees};
use crate::host::git_of;
use crate::host::slot_objects::SlotObjects;
use crate::tasks::git::Repo;
use crate::tasks::place::{Published, Work, WorkDelivery};

impl Trees {
    /// Where the worktrees lie.
    pub(in crate::tasks) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A ref of ours for work on its way.
    fn wire_ref(&self, name: &str) -> String {
        format!("refs/descartes/{}/wire/{name}", self.ref_tag)
    }

    /// What was merged, and a task's branch.
    pub(super) fn tips_for(&self, work: &Work) -> Done<Published> {
        let base = self.merged()?;
        let branch = self.earlier_work(&self.branch_of(work))?;
        let config = |key: &str| self.user.ask(&["config", "--get", key]).ok();
        Ok(Published {
            folder: self.prefix.to_string_lossy().into_owned(),
            shielded: self.shielded.clone(),
            repository: config("remote.origin.url")
                .unwrap_or_else(|| self.user.dir.to_string_lossy().into_owned()),
            author: config("user.name").zip(config("user.email")),
            root: base.clone(),
            base,
            branch,
            root_bundle: None,
            bundle: None,
        })
    }

    /// The same with bundles of it.
    pub(super) fn bundles_for(
        &self,
        work: &Work,
        mut published: Published,
        known: Option<&str>,
        to: &Path,
    ) -> Done<Published> {
        fs_err::create_dir_all(to)?;
        let Published { base, branch, .. } = &published;
        let known = match known {
            Some(known) if self.user.is_ancestor(known, base)? => Some(known.to_owned()),
            _ => None,
        };
        let root = known.clone().unwrap_or_else(|| base.clone());
        let root_bundle = match known {
            Some(_) => None,
            None => self.bundle(to, "root", &[("root", &root)], None)?,
        };
        let mut tips = vec![("base", base.as_str())];
        tips.extend(branch.as_deref().map(|branch| ("branch", branch)));
        let name = self.name_of(&work.id);
        published.bundle = self.bundle(to, &name, &tips, Some(&root))?;
        (published.root, published.root_bundle) = (root, root_bundle);
        Ok(published)
    }

    /// A bare repository of our own beside this one, with which it shares its objects and nothing else.
    pub(super) fn carrier_at(&self, dir: &Path) -> Done<Repo> {
        let repo = self.user.beside(dir).with_env("GIT_DIR", dir);
        fs_err::create_dir_all(dir)?;
        if !dir.join("HEAD").is_file() {
            repo.quiet(&["init", "--quiet", "--bare", "--template="])?;
        }
        let objects = self.common_dir()?.join("objects");
        let mut line = objects.into_os_string().into_vec();
        line.push(b'\n');
        fs_err::write(dir.join("objects/info/alternates"), line)?;
        Ok(repo)
    }

    /// A bundle of these commits without the history of another; none where that is all.
    fn bundle(
        &self,
        to: &Path,
        name: &str,
        tips: &[(&str, &str)],
        without: Option<&str>,
    ) -> Done<Option<PathBuf>> {
        let mut new = Vec::new();
        for (of, commit) in tips {
            let is_in = match without {
                Some(without) => self.user.is_ancestor(commit, without)?,
                None => false,
            };
            if !is_in {
                new.push((self.wire_ref(&format!("{name}/{of}")), *commit));
            }
        }
        if new.is_empty() {
            return Ok(None);
        }
        let file = to.join(format!("{name}.bundle"));
        let script: String = new
            .iter()
            .map(|(name, commit)| format!("update {name} {commit}\n"))
            .collect();
        self.user.update_refs(&script)?;
        let path = file.to_string_lossy();
        let mut args = vec!["bundle", "create", "--quiet", &*path];
        args.extend(new.iter().map(|(name, _)| name.as_str()));
        let without = without.map(|commit| format!("^{commit}"));
        args.extend(without.as_deref());
        let made = self.user.quiet(&args);
        for (name, commit) in &new {
            self.user.tidy(&["update-ref", "-d", name, commit]);
        }
        made?;
        Ok(Some(file))
    }

    /// The commit of a task's branch as it is now.
    pub(in crate::tasks) fn tip(&self, work: &Work) -> Done<String> {
        let branch = format!("refs/heads/{}", self.branch_of(work));
        let tip = self.user.commit_of(&branch)?;
        tip.ok_or_else(|| GitError::Refused(format!("{branch} is gone")))
    }

    /// Whether a commit has anything that another has not.
    pub(in crate::tasks) fn has_more(&self, commit: &str, than: &str) -> Done<bool> {
        Ok(!self.user.is_ancestor(commit, than)?)
    }

    /// A bundle of such a commit, for whoever has given out what it is built on.
    pub(in crate::tasks) fn deliver(
        &self,
        work: &Work,
        tip: &str,
        built_on: &str,
        to: &Path,
    ) -> Done<Option<PathBuf>> {
        fs_err::create_dir_all(to)?;
        let name = self.name_of(&work.id);
        self.bundle(to, &name, &[("result", tip)], Some(built_on))
    }

    /// A commit of everything that lies in a slot while its agent is at work there, on top of the task's branch,
    /// and its tree; nothing that the agent sees is touched. `None` where the tree is the last one.
    pub(in crate::tasks) fn snapshot(
        &self,
        slot: u32,
        work: &Work,
        last_tree: Option<&str>,
    ) -> Done<Option<(String, String)>> {
        let name = self.slot_name(slot);
        let tree = self.tree_at(&self.folder.join(&name))?;
        let branch = format!("refs/heads/{}", self.branch_of(work));
        let Some(tip) = self.user.commit_of(&branch)? else {
            return Ok(None);
        };
        // An index of its own: git knows by it what has not changed since the last time.
        let index = self.folder.join(format!("{name}.snapshot-index"));
        let is_first = last_tree.is_none() || !index.exists();
        let tree = tree.with_env("GIT_INDEX_FILE", &index);
        if is_first {
            drop(fs_err::remove_file(&index));
            tree.quiet(&["read-tree", &tip])?;
        }
        self.stage_all(&tree)?;
        let written = tree.quiet(&["write-tree"])?;
        let before = self.user.ask(&["rev-parse", &format!("{tip}^{{tree}}")])?;
        if last_tree == Some(&*written) || (last_tree.is_none() && written == before) {
            return Ok(None);
        }
        let message = format!("{}: work in progress", work.title);
        let commit = tree.quiet(&["commit-tree", &written, "-p", &tip, "-m", &message])?;
        Ok(Some((commit, written)))
    }

    /// A bundle of such a commit, for whoever has given out what it is built on.
    pub(in crate::tasks) fn bundle_snapshot(
        &self,
        work: &Work,
        commit: &str,
        built_on: &str,
        to: &Path,
    ) -> Done<Option<PathBuf>> {
        fs_err::create_dir_all(to)?;
        let name = format!("{}-snapshot", self.name_of(&work.id));
        self.bundle(to, &name, &[("snapshot", commit)], Some(built_on))
    }

    /// Takes what a worker did. The branch moves only to a commit that is there, with everything that
    /// it needs. What it is built on is the agent's own affair, as it is here: it may have amended or squashed
    /// what it was given, and the merge tells what it changed.
    pub(super) fn take_delivery(&self, work: &Work, delivery: &WorkDelivery) -> Done<()> {
        let name = self.name_of(&work.id);
        let kept = self.wire_ref(&format!("{name}/{}", delivery.epoch));
        if let Some(bundle) = &delivery.bundle {
            let path = bundle.to_string_lossy();
            self.user.quiet(&["bundle", "verify", "--quiet", &path])?;
            let listed = self.user.ask(&["bundle", "list-heads", &path])?;
            let theirs = listed.lines().filter_map(|line| line.split_once(' '));
            let mut theirs = theirs.filter(|(commit, _)| *commit == delivery.commit);
            let Some((_, theirs)) = theirs.next() else {
                let message = format!("the bundle does not hold {}", delivery.commit);
                return Err(GitError::Refused(message));
            };
            let spec = format!("+{theirs}:{kept}");
            self.user.quiet(&[
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                &path,
                &spec,
            ])?;
        }
        let commit = self.user.commit_of(&delivery.commit)?;
        if commit.as_deref() != Some(delivery.commit.as_str()) {
            let message = format!("its commit {} did not arrive", delivery.commit);
            return Err(GitError::Refused(message));
        }
        let _one = self.turn();
        self.put_branch(&self.branch_of(work), &delivery.commit)?;
        self.user.tidy(&["update-ref", "-d", &kept]);
        Ok(())
    }

    /// Before the first piece of work in a worker's clone.
    pub(in crate::tasks) fn begin_clone(&self) -> Done<()> {
        self.user.locks.look_around();
        for objects in SlotObjects::of_repository(&self.settings.root, &self.common_dir()?) {
            objects
                .take_over(&git_of(&self.settings))
                .map_err(GitError::Refused)?;
        }
        if !self.has_control() {
            self.take_control()?;
        }
        if !self.has_noted_stashes() {
            self.note_stashes()?;
        }
        Ok(())
    }

    /// A worker's clone for a piece of work: what was merged before, and the work so far.
    pub(in crate::tasks) fn take_parcel(
        &self,
        work: &Work,
        base: &str,
        branch: Option<&str>,
    ) -> Done<()> {
        let _one = self.turn();
        let merged = self.merged()?;
        // An order that was overtaken by another one works on the newer base.
        if merged != base && !self.user.is_ancestor(base, &merged)? {
            self.set_merged(&merged, base)?;
        }
        let (name, tip) = (self.branch_of(work), branch.unwrap_or(base));
        // An attempt of this worker that others were quicker than.
        if let Some(old) = self.user.commit_of(&format!("refs/heads/{name}"))?
            && !self.user.is_ancestor(&old, tip)?
        {
            self.keep_commit(&old)?;
        }
        self.put_branch(&name, tip)
    }
}
