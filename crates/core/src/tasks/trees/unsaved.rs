//! What a worktree holds that git would not carry anywhere else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Done, Trees};
use crate::tasks::git::Repo;

/// Paths that are handed to one call of git.
const BATCH: usize = 200;
/// Files that are named one by one.
const NAMED: usize = 10;

/// A repository inside a tree, as its index has it.
struct Link {
    commit: String,
    path: PathBuf,
}

impl Trees {
    /// Repositories inside the tree that are no submodules.
    pub(super) fn nested(&self, repo: &Repo) -> Done<BTreeSet<PathBuf>> {
        let modules = submodules(repo);
        let is_module = |path: &Path| modules.iter().any(|(_, module)| module == path);
        let [one, two, three] = self.exclude_args();
        let others = repo.paths(&["ls-files", "-z", "--others", &one, &two, &three])?;
        let mut nested: BTreeSet<PathBuf> = others
            .iter()
            .filter(|path| path.to_string_lossy().ends_with('/'))
            .map(|path| path.components().collect())
            .collect();
        let (links, folders) = tracked(repo)?;
        let inside = links.into_iter().map(|link| link.path).chain(folders);
        nested.extend(inside.filter(|path| is_repository(&repo.dir.join(path))));
        nested.retain(|path| !is_module(path));
        Ok(nested)
    }

    /// What an agent has to see to before its work can be taken anywhere, in its own words.
    pub(super) fn uncarried(&self, repo: &Repo, base: &str) -> Done<Vec<String>> {
        let mut found: Vec<String> = self
            .nested(repo)?
            .iter()
            .map(|path| {
                let path = path.display();
                format!(
                    "{path} is a git repository of its own inside the tree, whose content no commit of this \
                     repository can hold. If its files belong here, remove {path}/.git; if not, remove {path} \
                     or have it ignored"
                )
            })
            .collect();
        let modules = submodules(repo);
        for link in tracked(repo)?.0 {
            let path = link.path.display().to_string();
            let Some((name, _)) = modules.iter().find(|(_, module)| *module == link.path) else {
                continue;
            };
            let spec = format!("{base}:{path}");
            let is_new = repo.ask(&["rev-parse", "--verify", "--quiet", &spec]).ok()
                != Some(link.commit.clone());
            let sub = repo.beside(&repo.dir.join(&link.path));
            let populated = is_repository(&sub.dir);
            if is_new && !self.is_reachable(&sub, name, &link.commit)? {
                found.push(format!(
                    "the submodule {path} is at commit {}, which is in no repository that others reach: push it to \
                     the submodule's remote, or put the submodule back to the commit it was at",
                    short(&link.commit)
                ));
            } else if populated && self.has_own_commits(&sub, name)? {
                found.push(format!(
                    "the submodule {path} holds commits or stashes that are in no other repository: push them to \
                     its remote, or drop them"
                ));
            }
            if populated && sub.is_dirty()? {
                found.push(format!(
                    "the submodule {path} holds changes that are in no commit: commit and push them there, or \
                     undo them"
                ));
            }
        }
        Ok(found)
    }

    /// Whether a person who has this commit as a submodule can get it.
    fn is_reachable(&self, sub: &Repo, name: &str, commit: &str) -> Done<bool> {
        let contains = format!("--contains={commit}");
        let remote = [
            "for-each-ref",
            "--count=1",
            "--format=x",
            &contains,
            "refs/remotes",
        ];
        if is_repository(&sub.dir) && sub.ask(&remote).is_ok_and(|found| !found.is_empty()) {
            return Ok(true);
        }
        self.is_in_module(name, commit)
    }

    /// Whether the user's own copy of a submodule has a commit.
    fn is_in_module(&self, name: &str, commit: &str) -> Done<bool> {
        let folder = self.common_dir()?.join("modules").join(name);
        if !folder.join("HEAD").exists() {
            return Ok(false);
        }
        let theirs = self.user.beside(&folder).with_env("GIT_DIR", &folder);
        let object = format!("{commit}^{{commit}}");
        Ok(theirs.ask(&["cat-file", "-e", &object]).is_ok())
    }

    fn has_own_commits(&self, sub: &Repo, name: &str) -> Done<bool> {
        let refs = [
            "for-each-ref",
            "--format=%(objectname)",
            "refs/heads",
            "refs/stash",
        ];
        let mut tips: BTreeSet<String> = sub.ask(&refs)?.lines().map(str::to_owned).collect();
        tips.extend(sub.commit_of("HEAD")?);
        for tip in tips {
            if !self.is_reachable(sub, name, &tip)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What would be lost with a worktree, once everything that can be committed is.
    pub(super) fn unsaved(&self, repo: &Repo) -> Done<Vec<String>> {
        let mut found: Vec<String> = self
            .nested(repo)?
            .iter()
            .map(|path| format!("the repository {}", path.display()))
            .collect();
        let modules = submodules(repo);
        for (name, path) in &modules {
            let sub = repo.beside(&repo.dir.join(path));
            if !is_repository(&sub.dir) {
                continue;
            }
            if sub.is_dirty()? || self.has_own_commits(&sub, name)? {
                found.push(format!("work inside the submodule {}", path.display()));
            }
        }
        Ok(found)
    }

    /// Files that are in no commit, and hidden by rules that were not there when the loop began.
    pub(super) fn hidden(&self, repo: &Repo) -> Done<Vec<PathBuf>> {
        let [one, two, three] = self.exclude_args();
        let files = repo.paths(&["ls-files", "-z", "--others", &one, &two, &three])?;
        let file = |path: &PathBuf| !path.to_string_lossy().ends_with('/');
        let own = self.prefix.join(".descartes");
        let theirs = |path: &PathBuf| !path.starts_with(&own);
        Ok(files.into_iter().filter(file).filter(theirs).collect())
    }

    /// Puts such files into a commit with a name of its own, and says which.
    pub(super) fn save_hidden(&self, repo: &Repo, files: &[PathBuf]) -> Done<()> {
        let index = self.folder.join("hidden-index");
        drop(fs_err::remove_file(&index));
        let apart = repo.with_env("GIT_INDEX_FILE", &index);
        apart.quiet(&["read-tree", "HEAD"])?;
        for batch in files.chunks(BATCH) {
            let specs: Vec<String> = batch
                .iter()
                .map(|path| format!(":(top,literal){}", path.display()))
                .collect();
            let mut args = vec!["add", "--force", "--"];
            args.extend(specs.iter().map(String::as_str));
            apart.quiet(&args)?;
        }
        let tree = apart.quiet(&["write-tree"])?;
        let message = "files that an agent had git ignore";
        let commit = repo.quiet(&["commit-tree", &tree, "-p", "HEAD", "-m", message])?;
        drop(fs_err::remove_file(&index));
        let kept = self.keep_commit(&commit)?;
        let names: Vec<String> = files
            .iter()
            .take(NAMED)
            .map(|path| path.display().to_string())
            .collect();
        let more = match files.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.user.locks.tell(format!(
            "what an agent had git ignore is in no commit that lands, and is kept on {kept}: {}{more}",
            names.join(", ")
        ));
        Ok(())
    }

    /// Takes away the marks by which git does not look at changed files.
    pub(super) fn clear_marks(&self, repo: &Repo) -> Done<()> {
        let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
        for entry in repo.paths(&["ls-files", "-v", "-z"])? {
            let entry = entry.to_string_lossy().into_owned();
            let Some((mark, path)) = entry.split_once(' ') else {
                continue;
            };
            if mark.eq_ignore_ascii_case("s") && repo.dir.join(path).symlink_metadata().is_ok() {
                skipped.push(path.to_owned());
            }
            if mark.chars().all(|mark| mark.is_ascii_lowercase()) {
                assumed.push(path.to_owned());
            }
        }
        for (flag, paths) in [
            ("--no-assume-unchanged", assumed),
            ("--no-skip-worktree", skipped),
        ] {
            for batch in paths.chunks(BATCH) {
                let mut args = vec!["update-index", flag, "--"];
                args.extend(batch.iter().map(String::as_str));
                repo.quiet(&args)?;
            }
        }
        Ok(())
    }
}

fn is_repository(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Names and paths of the submodules that the tree itself knows.
fn submodules(repo: &Repo) -> Vec<(String, PathBuf)> {
    let args = [
        "config",
        "--file",
        ".gitmodules",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ];
    if !repo.dir.join(".gitmodules").is_file() {
        return Vec::new();
    }
    let listed = repo.ask(&args).unwrap_or_default();
    let entry = |line: &str| {
        let (key, path) = line.split_once(' ')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), PathBuf::from(path)))
    };
    listed.lines().filter_map(entry).collect()
}

/// Links to other repositories in the index, and every folder with tracked files.
fn tracked(repo: &Repo) -> Done<(Vec<Link>, BTreeSet<PathBuf>)> {
    let (mut links, mut folders) = (Vec::new(), BTreeSet::new());
    for entry in repo.paths(&["ls-files", "--stage", "-z"])? {
        let bytes = entry.to_string_lossy();
        let Some((head, _)) = bytes.split_once('\t') else {
            continue;
        };
        let path = {
            use std::os::unix::ffi::OsStrExt;
            let raw = entry.as_os_str().as_bytes();
            PathBuf::from(std::ffi::OsStr::from_bytes(&raw[head.len() + 1..]))
        };
        if let Some(rest) = head.strip_prefix("160000 ") {
            let commit = rest.split(' ').next().unwrap_or("").to_owned();
            links.push(Link { commit, path });
            continue;
        }
        let mut folder = path.parent();
        while let Some(inside) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
            if !folders.insert(inside.to_owned()) {
                break;
            }
            folder = inside.parent();
        }
    }
    Ok((links, folders))
}
