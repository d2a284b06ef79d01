//! What a worktree holds that git would not carry anywhere else.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use descartes_text::shell;

use super::files::{read_note, write_note};
use super::self_ignored::SelfIgnored;
use super::{Done, Trees};
use crate::tasks::git::Repo;
use crate::tasks::git::zero_ended;
use crate::tasks::git_cache::{IGNORE_FILE, IndexSummary, Link};
use crate::tasks::git_error::GitErrorKind;

/// Has git read pathspecs from its standard input.
pub(super) const FROM_STDIN: [&str; 2] = ["--pathspec-from-file=-", "--pathspec-file-nul"];
/// Files that are named one by one.
const NAMED: usize = 10;

/// A submodule, at any depth.
struct Module {
    /// From the top of the tree.
    path: PathBuf,
    /// The commit that it is to be at.
    commit: String,
    /// Whether that is another one than before.
    is_new: bool,
    sub: Repo,
    /// The user's own copy of it, where there is one.
    users: Repo,
}

impl Module {
    fn is_populated(&self) -> bool {
        is_repository(&self.sub.dir)
    }

    /// Whether a person who has this commit as a submodule can get it.
    fn is_reachable(&self, commit: &str) -> bool {
        let contains = format!("--contains={commit}");
        let remote = [
            "for-each-ref",
            "--count=1",
            "--format=x",
            &contains,
            "refs/remotes",
        ];
        if self.is_populated() && self.sub.ask(&remote).is_ok_and(|found| !found.is_empty()) {
            return true;
        }
        let object = format!("{commit}^{{commit}}");
        let there = self.users.dir.join("HEAD").exists();
        there && self.users.ask(&["cat-file", "-e", &object]).is_ok()
    }

    fn has_own_commits(&self) -> Done<bool> {
        if !self.is_populated() {
            return Ok(false);
        }
        let mut tips = own_tips(&self.sub)?;
        Ok(tips.any(|tip| !self.is_reachable(&tip)))
    }
}

/// A file that no commit holds.
struct FoundFile {
    path: PathBuf,
    size: u64,
    modified: (i64, i64),
}

impl FoundFile {
    /// A file of the tree in `dir`.
    fn of(dir: &Path, path: &Path, meta: &Metadata) -> Self {
        Self {
            path: path.strip_prefix(dir).unwrap_or(path).to_owned(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// What tells it from another one in its place.
    fn note(&self) -> Vec<u8> {
        let (seconds, nanos) = self.modified;
        let stamp = format!("{} {seconds} {nanos} ", self.size).into_bytes();
        [&stamp, self.path.as_os_str().as_bytes()].concat()
    }
}

/// Everything but folders below a link to a repository that is not there.
fn files_below(repo: &Repo, link: &Path) -> Vec<FoundFile> {
    let is_folder = |path: &Path| {
        let there = path.symlink_metadata();
        there.is_ok_and(|meta| meta.is_dir())
    };
    let top = repo.dir.join(link);
    if !is_folder(&top) || top.join(".git").symlink_metadata().is_ok() {
        return Vec::new();
    }
    let (mut found, mut paths) = (Vec::new(), vec![top]);
    while let Some(path) = paths.pop() {
        // What is gone by now is nobody's loss.
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        match meta.is_dir().then(|| fs_err::read_dir(&path)) {
            Some(Ok(entries)) => paths.extend(entries.flatten().map(|entry| entry.path())),
            // A folder that an agent shut may hold anything, and is no reason to end.
            Some(Err(_)) | None => found.push(FoundFile::of(&repo.dir, &path, &meta)),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Ignore files beside tracked files that are not tracked themselves.
fn ignore_files(repo: &Repo, index: &IndexSummary) -> Vec<FoundFile> {
    let folders = index.folders.iter().map(PathBuf::as_path);
    let files = [Path::new("")].into_iter().chain(folders);
    let files = files.map(|folder| folder.join(IGNORE_FILE));
    let files = files.filter(|file| !index.ignore_files.contains(file));
    let found = files.filter_map(|file| {
        let meta = repo.dir.join(&file).symlink_metadata().ok()?;
        Some(FoundFile::of(&repo.dir, &file, &meta))
    });
    found.collect()
}

/// The first of some files, and how many more there are.
fn named(files: &[PathBuf]) -> String {
    let names = files.iter().take(NAMED);
    let names: Vec<String> = names.map(|path| path.display().to_string()).collect();
    match files.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Commits that a repository names and no remote of its has: on branches, in stashes, under tags,
/// checked out.
fn own_tips(repo: &Repo) -> Done<impl Iterator<Item = String>> {
    let refs = repo.ask(&["for-each-ref", "--format=%(refname)"])?;
    let mut names: Vec<&str> = refs
        .lines()
        .filter(|name| !name.starts_with("refs/remotes/"))
        .collect();
    names.push("HEAD");
    let mut tips = BTreeSet::new();
    for name in names {
        tips.extend(repo.commit_of(name)?);
    }
    let mut own = Vec::new();
    for tip in tips {
        let contains = format!("--contains={tip}");
        let remote = ["for-each-ref", "--count=1", "--format=x", &contains];
        if repo
            .ask(&[&remote[..], &["refs/remotes"]].concat())?
            .is_empty()
        {
            own.push(tip);
        }
    }
    Ok(own.into_iter())
}

/// The commit that a commit links to at a path.
fn linked_in(repo: &Repo, commit: Option<&str>, path: &Path) -> Option<String> {
    let spec = format!("{}:{}", commit?, path.display());
    repo.ask(&["rev-parse", "--verify", "--quiet", &spec]).ok()
}

impl Trees {
    /// What is in the tree and in no commit, by the excludes of the loop's beginning.
    pub(super) fn untracked(&self, repo: &Repo) -> Done<Vec<PathBuf>> {
        let [one, two, three] = self.exclude_args();
        repo.paths(&["ls-files", "-z", "--others", &one, &two, &three])
    }

    /// Repositories inside the tree that are no submodules.
    pub(super) fn nested(&self, repo: &Repo, untracked: &[PathBuf]) -> Done<BTreeSet<PathBuf>> {
        let modules = submodules(repo)?;
        let is_module = |path: &Path| modules.iter().any(|(_, module)| module == path);
        let mut nested: BTreeSet<PathBuf> = untracked
            .iter()
            .filter(|path| path.to_string_lossy().ends_with('/'))
            .map(|path| path.components().collect())
            .collect();
        let index = repo.index()?;
        let links = index.links.iter().map(|link| &link.path);
        let inside = links.chain(&index.folders);
        let inside = inside.filter(|path| is_repository(&repo.dir.join(path)));
        nested.extend(inside.cloned());
        nested.retain(|path| !is_module(path));
        Ok(nested)
    }

    /// Takes links to repositories out of the index that are no submodules and were not there when
    /// the work began: their files are no part of a commit, and git adds none below a link.
    pub(super) fn drop_bare_links(&self, repo: &Repo) -> Done<()> {
        let modules = submodules(repo)?;
        let mut links = repo.index()?.links.clone();
        links.retain(|link| !modules.iter().any(|(_, module)| *module == link.path));
        if links.is_empty() {
            return Ok(());
        }
        let listed = ["ls-tree", "-r", "-z", "--full-tree", &self.merged()?];
        let before = links_among(&repo.paths(&listed)?);
        let is_old = |link: &Link| before.iter().any(|old| old.path == link.path);
        let (old, new): (Vec<Link>, Vec<Link>) = links.into_iter().partition(is_old);
        let gone = zero_ended("", new.iter().map(|link| &*link.path));
        repo.quiet_with(&["update-index", "--force-remove", "-z", "--stdin"], &gone)?;
        for link in before {
            // One that was there before stays as it was.
            if old.iter().any(|now| now.path == link.path) {
                let entry = format!("160000 {}\t", link.commit);
                let entry = zero_ended(&entry, [&*link.path].into_iter());
                repo.quiet_with(&["update-index", "-z", "--index-info"], &entry)?;
            }
        }
        Ok(())
    }

    /// What an agent has to see to before its work can be taken anywhere, in its own prefix.
    pub(super) fn uncarried(
        &self,
        repo: &Repo,
        base: &str,
        nested: &BTreeSet<PathBuf>,
    ) -> Done<Vec<String>> {
        let mut found: Vec<String> = nested
            .iter()
            .map(|path| {
                let path = path.display();
                format!(
                    "{path} is a separate git repository inside the work tree, whose content \
                     cannot be committed to this repository. If its files belong here, remove \
                     {path}/.git and nothing else; if not, remove {path}"
                )
            })
            .collect();
        for module in self.modules_in(repo, Some(base))? {
            let path = module.path.display();
            if module.is_new && !module.is_reachable(&module.commit) {
                found.push(format!(
                    "the submodule {path} is at commit {}, which is not in any repository that \
                     others can reach: push it to \
                     the submodule's remote, or reset the submodule to the commit it was at",
                    short(&module.commit)
                ));
            } else if module.has_own_commits()? {
                found.push(format!(
                    "the submodule {path} has commits or stashes that are in no other \
                     repository: push them to \
                     its remote, or drop them"
                ));
            }
            if module.is_populated() && module.sub.is_dirty()? {
                found.push(format!(
                    "the submodule {path} has uncommitted changes: commit and push them there, \
                     or undo them"
                ));
            }
        }
        for (link, files) in self.files_below_links(repo)? {
            found.push(format!(
                "{} is another repository that is not checked out here, so no commit can hold \
                 what you wrote there: {}. Write it elsewhere; to change that repository, check it \
                 out first (git submodule update --init -- {}), and commit and push there",
                link.display(),
                named(&files),
                shell::path(&link)
            ));
        }
        for SelfIgnored { file, hides } in self.self_ignored(repo)? {
            let (typed, file) = (shell::path(&file), file.display());
            found.push(format!(
                "{file} is ignored by git itself, so no commit holds it, nor what it hides: {}. \
                 Remove {file}, or reduce it to what is no part of the work and commit it (git add \
                 --force {typed})",
                named(&hides)
            ));
        }
        Ok(found)
    }

    /// Files where the tree has a link to another repository that is not there: git sees none of them. Those
    /// that the setup of the worktree left are no work.
    fn files_below_links(&self, repo: &Repo) -> Done<Vec<(PathBuf, Vec<PathBuf>)>> {
        let known = self.known_files(repo)?;
        let mut found = Vec::new();
        for link in &repo.index()?.links {
            let mut files = files_below(repo, &link.path);
            files.retain(|file| !known.contains(&file.note()));
            if !files.is_empty() {
                let paths = files.into_iter().map(|file| file.path);
                found.push((link.path.clone(), paths.collect()));
            }
        }
        Ok(found)
    }

    /// Takes down what the setup of a worktree left where no commit holds it: below links, and ignore files.
    pub(super) fn note_files_of_setup(&self, repo: &Repo) -> Done<()> {
        let index = repo.index()?;
        let mut files: Vec<FoundFile> = Vec::new();
        for link in &index.links {
            files.extend(files_below(repo, &link.path));
        }
        files.extend(ignore_files(repo, &index));
        let notes = files
            .iter()
            .flat_map(|file| [file.note(), vec![0]].concat());
        let notes: Vec<u8> = notes.collect();
        match notes.is_empty() {
            true => drop(fs_err::remove_file(self.links_mark_of(repo))),
            false => write_note(&self.links_mark_of(repo), notes)?,
        }
        Ok(())
    }

    fn known_files(&self, repo: &Repo) -> Done<BTreeSet<Vec<u8>>> {
        let notes = read_note(&self.links_mark_of(repo))?.unwrap_or_default();
        let notes = notes.split(|byte| *byte == 0);
        Ok(notes.map(<[u8]>::to_vec).collect())
    }

    /// Ignore files beside tracked files that are not tracked themselves, without those of the setup.
    pub(super) fn new_ignore_files(
        &self,
        repo: &Repo,
        index: &IndexSummary,
    ) -> Done<BTreeSet<PathBuf>> {
        let mut files = ignore_files(repo, index);
        if !files.is_empty() {
            let known = self.known_files(repo)?;
            files.retain(|file| !known.contains(&file.note()));
        }
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn links_mark_of(&self, repo: &Repo) -> PathBuf {
        let name = repo.dir.file_name().unwrap_or_default();
        self.links_mark(&name.to_string_lossy())
    }

    pub(super) fn links_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.links"))
    }

    /// All submodules of a tree, and those inside them. Of those that are empty only the tree's
    /// own: nobody can have made a commit in the others.
    fn modules_in(&self, repo: &Repo, base: Option<&str>) -> Done<Vec<Module>> {
        let users = self.common_dir()?.join("modules");
        let mut found = Vec::new();
        let mut levels = vec![(repo.clone(), base.map(str::to_owned), users, PathBuf::new())];
        while let Some((repo, base, users, above)) = levels.pop() {
            let modules = submodules(&repo)?;
            if modules.is_empty() {
                continue;
            }
            for link in repo.index()?.links.clone() {
                let Some((name, _)) = modules.iter().find(|(_, module)| *module == link.path)
                else {
                    continue;
                };
                let before = linked_in(&repo, base.as_deref(), &link.path);
                let folder = users.join(name);
                let module = Module {
                    is_new: before.as_ref() != Some(&link.commit),
                    sub: repo.beside(&repo.dir.join(&link.path)),
                    path: above.join(&link.path),
                    commit: link.commit,
                    users: self.user.beside(&folder).with_env("GIT_DIR", &folder),
                };
                if module.is_populated() {
                    let inside = folder.join("modules");
                    levels.push((module.sub.clone(), before, inside, module.path.clone()));
                } else if !above.as_os_str().is_empty() {
                    continue;
                }
                found.push(module);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Repositories that git ignores, with commits that no other has: in ignored folders, and in
    /// the folders right below.
    fn ignored_repositories(&self, repo: &Repo) -> Done<Vec<PathBuf>> {
        let listed = repo.paths(&[
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--directory",
            "--exclude-standard",
        ])?;
        let mut folders: Vec<PathBuf> = listed
            .iter()
            .filter(|path| path.as_os_str().as_encoded_bytes().ends_with(b"/"))
            .map(|path| path.components().collect())
            .collect();
        for folder in folders.clone() {
            let entries = fs_err::read_dir(repo.dir.join(&folder));
            let entries = entries.into_iter().flatten().flatten();
            folders.extend(entries.map(|entry| folder.join(entry.file_name())));
        }
        let mut found = Vec::new();
        for path in folders {
            let inner = repo.beside(&repo.dir.join(&path));
            if is_repository(&inner.dir) && own_tips(&inner)?.next().is_some() {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// What would be lost with a worktree, once everything that can be committed is.
    pub(super) fn unsaved(&self, repo: &Repo, untracked: &[PathBuf]) -> Done<Vec<String>> {
        let mut nested = self.nested(repo, untracked)?;
        nested.extend(self.ignored_repositories(repo)?);
        let mut found: Vec<String> = nested
            .iter()
            .map(|path| format!("the repository {}", path.display()))
            .collect();
        for module in self.modules_in(repo, None)? {
            if module.is_populated() && (module.sub.is_dirty()? || module.has_own_commits()?) {
                found.push(format!(
                    "work inside the submodule {}",
                    module.path.display()
                ));
            }
        }
        for (link, files) in self.files_below_links(repo)? {
            let link = link.display();
            found.push(format!(
                "files in {link}, a repository that is not checked out there: {}",
                named(&files)
            ));
        }
        for SelfIgnored { file, hides } in self.self_ignored(repo)? {
            let file = file.display();
            found.push(format!("what {file} hides from git: {}", named(&hides)));
        }
        Ok(found)
    }

    /// The files among paths that are in no commit.
    pub(super) fn files_in(&self, untracked: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let file = |path: &PathBuf| !path.to_string_lossy().ends_with('/');
        let own = self.prefix.join(".descartes");
        let theirs = |path: &PathBuf| !path.starts_with(&own);
        let files = untracked.into_iter().filter(file);
        files.filter(theirs).collect()
    }

    /// Those of them that are hidden by rules that were not there when the loop began. What git sees and no
    /// commit has is no work.
    pub(super) fn hidden(&self, repo: &Repo, untracked: Vec<PathBuf>) -> Done<Vec<PathBuf>> {
        let mut hidden = self.files_in(untracked);
        if !hidden.is_empty() {
            let seen = repo.changed()?.untracked;
            hidden.retain(|path| !seen.contains(path));
        }
        Ok(hidden)
    }

    /// Puts such files into a commit with a name of its own, and says which.
    pub(super) fn save_hidden(&self, repo: &Repo, files: &[PathBuf]) -> Done<()> {
        let index = self.folder.join("hidden-index");
        drop(fs_err::remove_file(&index));
        let apart = repo.with_env("GIT_INDEX_FILE", &index);
        apart.quiet(&["read-tree", "HEAD"])?;
        let specs = zero_ended(":(top,literal)", files.iter().map(PathBuf::as_path));
        apart.quiet_with(&[&["add", "--force"], &FROM_STDIN[..]].concat(), &specs)?;
        let tree = apart.quiet(&["write-tree"])?;
        let message = "files that an agent had git ignore";
        let commit = repo.quiet(&["commit-tree", &tree, "-p", "HEAD", "-m", message])?;
        drop(fs_err::remove_file(&index));
        let kept = self.keep_commit(&commit)?;
        self.user.locks.tell(format!(
            "files that an agent made git ignore are not in any commit that lands, and are kept \
             on {kept}: {}",
            named(files)
        ));
        Ok(())
    }

    /// Takes away the marks by which git does not look at changed files.
    pub(super) fn clear_marks(&self, repo: &Repo) -> Done<()> {
        self.clear_marks_of(repo, |path| path.symlink_metadata().is_ok())
    }

    /// Takes them away from files too that an agent had git leave out of the tree, unless the user
    /// has such a tree as well.
    pub(super) fn clear_sparse_marks(&self, repo: &Repo) -> Done<()> {
        if repo.index()?.skipped.is_empty() {
            return self.clear_marks(repo);
        }
        let sparse = repo.ask(&["config", "--type=bool", "--get", "core.sparseCheckout"]);
        match sparse.as_deref() {
            Ok("true") => self.clear_marks(repo),
            _ => self.clear_marks_of(repo, |_| true),
        }
    }

    fn clear_marks_of(&self, repo: &Repo, skipped_too: impl Fn(&Path) -> bool) -> Done<()> {
        let index = repo.index()?;
        let skipped = index.skipped.iter();
        let skipped = skipped.filter(|path| skipped_too(&repo.dir.join(path)));
        let (assumed, skipped) = (index.assumed.iter().collect(), skipped.collect());
        let marks: [(&str, Vec<&PathBuf>); 2] = [
            ("--no-assume-unchanged", assumed),
            ("--no-skip-worktree", skipped),
        ];
        for (flag, paths) in marks {
            if !paths.is_empty() {
                let paths = zero_ended("", paths.iter().map(|path| path.as_path()));
                repo.quiet_with(&["update-index", flag, "-z", "--stdin"], &paths)?;
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

/// Names and paths of the submodules that the tree itself knows. Where git could not be asked, nobody may take
/// that for none: what they hold would be removed with the tree.
fn submodules(repo: &Repo) -> Done<Vec<(String, PathBuf)>> {
    let args = [
        "config",
        "--file",
        ".gitmodules",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ];
    if !repo.dir.join(".gitmodules").is_file() {
        return Ok(Vec::new());
    }
    let listed = match repo.ask(&args) {
        // It names none, or is broken: repositories there count as nested then.
        Err(error) if error.kind() == GitErrorKind::Failed => String::new(),
        listed => listed?,
    };
    let entry = |line: &str| {
        let (key, path) = line.split_once(' ')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), PathBuf::from(path)))
    };
    Ok(listed.lines().filter_map(entry).collect())
}

/// Links to other repositories among the entries of a commit.
fn links_among(listed: &[PathBuf]) -> Vec<Link> {
    let link = |entry: &PathBuf| {
        let row = entry.as_os_str().as_bytes();
        let tab = row.iter().position(|byte| *byte == b'\t')?;
        let head = String::from_utf8_lossy(row.get(..tab)?);
        let commit = head.strip_prefix("160000 commit ")?.to_owned();
        let path = PathBuf::from(OsStr::from_bytes(row.get(tab + 1..)?));
        Some(Link { commit, path })
    };
    listed.iter().filter_map(link).collect()
}
