//! The integration worktree: where work comes together and is proven before it lands.
//!
//! No agent enters it. An agent shares the repository, though, and can write its configuration,
//! its excludes and its attributes; so everything here is checked out through a git folder of our
//! own (`control`) that holds those as they were when the loop began. Gates see an ordinary
//! worktree of the user's repository, whose index and HEAD are made to agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use descartes_kernel::tasks::{ProvenAt, ProvenTree};
use descartes_store::safe_open::read_user_file;

use super::beginning::{FETCHING, FETCHING_KEYS};
use super::files::{is_gone, remove_all, remove_with_folders};
use super::{Done, GitError, Trees};
use crate::tasks::git::{ChangedPaths, Repo};
use crate::tasks::git::{link_above, zero_ended};
use crate::tasks::place::{GateFailure, Gates};

/// Ignored files that are named to an agent.
const NAMED: usize = 20;

/// What is taken over from the user's configuration: what decides how content becomes a file, how
/// contents are merged, and who commits.
const SECTIONS: [&str; 8] = [
    "filter",
    "gpg",
    "lfs",
    "merge",
    "user",
    "author",
    "committer",
    "i18n",
];
const CORE: [&str; 10] = [
    "core.autocrlf",
    "core.eol",
    "core.symlinks",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.bigfilethreshold",
    "core.checkroundtripencoding",
    "core.protecthfs",
    "core.protectntfs",
];

/// How long a lock in the user's checkout is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tasks) enum LockPatience {
    /// Other work goes on meanwhile, and this one lands with the next that can.
    UntilLater,
    /// There is nothing else to do: until somebody has seen to it.
    UntilGone,
}

/// What came of the gates on a commit.
#[derive(Debug)]
pub(super) enum Proof {
    Green,
    Red(String),
    Stopped,
}

/// The integration worktree, and the two ways to look at it.
pub(super) struct Integration {
    /// As gates and hooks see it.
    pub(super) face: Repo,
    /// As we do.
    pub(super) control: Repo,
    folder: PathBuf,
}

impl Trees {
    pub(super) fn control_folder(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// Whether those of the loop's beginning are still there; a loop that ended takes them along.
    pub(super) fn has_control(&self) -> bool {
        self.control_folder().join("HEAD").exists()
    }

    /// Writes down configuration, excludes and attributes as they are now.
    pub(super) fn take_control(&self) -> Done<()> {
        let folder = self.control_folder();
        for name in ["info", "refs", "objects"] {
            fs_err::create_dir_all(folder.join(name))?;
        }
        let common = self.common_dir()?;
        let home_file = |key: &str, default: &str| -> Option<PathBuf> {
            let set = self.user.ask(&["config", "--type=path", "--get", key]);
            if let Some(set) = set.ok().filter(|set| !set.is_empty()) {
                return Some(self.user.dir.join(set));
            }
            let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let config = config.filter(|path| path.is_absolute());
            let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
            Some(config.or_else(home)?.join("git").join(default))
        };
        let take = |from: Option<PathBuf>, to: &str| {
            let text = match from.as_deref().map(read_user_file) {
                Some(Ok(text)) => text,
                None => Vec::new(),
                Some(Err(error)) if is_gone(&error) => Vec::new(),
                // `/dev/null`, for one.
                Some(Err(_)) if is_special(from.as_deref()) => Vec::new(),
                // What it hides would be removed, and what it says would not hold.
                Some(Err(error)) => {
                    let path = from.unwrap_or_default();
                    let message = format!("{} cannot be read: {error}", path.display());
                    return Err(GitError::Refused(message));
                }
            };
            fs_err::write(folder.join("info").join(to), text).map_err(GitError::from)
        };
        take(Some(common.join("info/exclude")), "exclude")?;
        take(Some(common.join("info/attributes")), "attributes")?;
        take(home_file("core.excludesFile", "ignore"), "excludes")?;
        take(
            home_file("core.attributesFile", "attributes"),
            "home-attributes",
        )?;
        self.take_hooks(&common)?;
        let config = self.control_config(&common)?;
        fs_err::write(folder.join("config"), config)?;
        if !folder.join("HEAD").exists() {
            fs_err::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
        }
        Ok(())
    }

    fn control_config(&self, common: &Path) -> Done<String> {
        let format = self.user.ask(&["rev-parse", "--show-object-format"]);
        let format = format.unwrap_or_else(|_| "sha1".to_owned());
        let partial = self.is_partial();
        let version = u8::from(format != "sha1" || partial);
        let mut text = format!("[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n");
        if format != "sha1" {
            text.push_str(&format!("[extensions]\n\tobjectFormat = {format}\n"));
        }
        let listed = self.user.ask(&["config", "--list", "--includes", "-z"])?;
        for entry in listed.split('\0') {
            let (key, value) = match entry.split_once('\n') {
                Some((key, value)) => (key, Some(value)),
                None => (entry, None),
            };
            let section = key.split('.').next().unwrap_or("");
            let lower = key.to_ascii_lowercase();
            let fetches =
                partial && (FETCHING.contains(&section) || FETCHING_KEYS.contains(&lower.as_str()));
            if SECTIONS.contains(&section) || CORE.contains(&lower.as_str()) || fetches {
                text.push_str(&config_entry(key, value));
            }
        }
        // The last one is that of our own call.
        let signs = listed
            .split('\0')
            .rev()
            .map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
        let signs = signs.filter(|(key, _)| *key == "commit.gpgsign").nth(1);
        let signs = signs.map_or("false", |(_, value)| value);
        text.push_str(&config_entry("commit.gpgSign", Some(signs)));
        let path = |name: &str| self.control_folder().join("info").join(name);
        for (key, value) in [
            ("core.excludesFile", path("excludes")),
            ("core.attributesFile", path("home-attributes")),
            ("lfs.storage", common.join("lfs")),
        ] {
            text.push_str(&config_entry(key, Some(&value.to_string_lossy())));
        }
        for (key, value) in self.take_sparse()? {
            text.push_str(&config_entry(key, Some(value)));
        }
        // Every trick with times and marks of the index is of no use here.
        text.push_str("[core]\n\ttrustCtime = true\n\tcheckStat = default\n\tfsmonitor = false\n");
        Ok(text)
    }

    /// Git with the excludes, attributes and filters of the loop's beginning, over a work tree.
    pub(super) fn controlled(&self, dir: &Path) -> Done<Repo> {
        let folder = self.control_folder();
        if !self.has_control() {
            self.take_control()?;
        }
        let common = self.common_dir()?;
        // Where the history ends in a clone of a part of it: fetches move that.
        let (from, to) = (common.join("shallow"), folder.join("shallow"));
        let ends = match from.exists() {
            true => fs_err::copy(&from, &to).map(drop),
            false => super::files::remove_all(&to),
        };
        ends?;
        let objects = common.join("objects");
        Ok(self
            .user
            .beside(dir)
            .with_env("GIT_DIR", &folder)
            .with_env("GIT_WORK_TREE", dir)
            .with_env("GIT_OBJECT_DIRECTORY", objects)
            .with_env("GIT_CONFIG_GLOBAL", "/dev/null")
            .with_env("GIT_CONFIG_NOSYSTEM", "1")
            .with_env("GIT_ATTR_NOSYSTEM", "1"))
    }

    /// Arguments that list files by the excludes of the loop's beginning.
    pub(super) fn exclude_args(&self) -> [String; 3] {
        let from = |name: &str| {
            let path = self.control_folder().join("info").join(name);
            format!("--exclude-from={}", path.display())
        };
        [
            "--exclude-per-directory=.gitignore".to_owned(),
            from("exclude"),
            from("excludes"),
        ]
    }

    pub(super) fn integration(&self) -> Done<Integration> {
        let face = self.worktree("merged")?;
        let control = self.controlled(&face.dir)?;
        let folder = self.control_folder();
        Ok(Integration {
            face,
            control,
            folder,
        })
    }

    /// Runs the gates on a commit, unless they were green on its tree before.
    pub(super) fn prove(
        &self,
        place: &Integration,
        commit: &str,
        gates: Gates<'_>,
        tasks: &[String],
        slot: Option<&Path>,
    ) -> Done<Proof> {
        let tree = self.user.tree_of(commit)?;
        if gates.commands().is_empty() || self.is_proven(&tree, gates.commands()) {
            return Ok(Proof::Green);
        }
        let proof = self.run_gates(place, commit, &tree, gates, tasks, slot);
        self.note_leftovers(place);
        proof
    }

    fn run_gates(
        &self,
        place: &Integration,
        commit: &str,
        tree: &str,
        gates: Gates<'_>,
        tasks: &[String],
        slot: Option<&Path>,
    ) -> Done<Proof> {
        place.check_out(self, commit)?;
        let set_up = match self.set_up_worktree(&place.face.dir, commit) {
            Err(_) if self.is_stopped() => return Ok(Proof::Stopped),
            set_up => set_up?,
        };
        if let Err(tail) = set_up {
            return Ok(match self.is_stopped() {
                true => Proof::Stopped,
                false => Proof::Red(tail),
            });
        }
        place.note_brought(self)?;
        let dir = place.face.dir.join(&self.prefix);
        let mut caches = Vec::new();
        let mut ran = gates.run(&dir);
        if let (Err(GateFailure::Red(_)), Some(slot)) = (&ran, slot) {
            caches = match self.take_caches(place, commit, slot) {
                Err(_) if self.is_stopped() => return Ok(Proof::Stopped),
                caches => caches?,
            };
            if !caches.is_empty() {
                ran = gates.run(&dir);
            }
        }
        match ran {
            Ok(()) => {
                self.add_proof(ProvenTree {
                    tree: tree.to_owned(),
                    gates: gates.commands().to_vec(),
                    place: ProvenAt::Integration,
                    tasks: tasks.to_vec(),
                    caches,
                });
                Ok(Proof::Green)
            }
            Err(GateFailure::Stopped) => Ok(Proof::Stopped),
            Err(GateFailure::Red(tail)) => {
                // Where another agent works by now, its files are no cause.
                let only = match slot {
                    Some(slot) if tasks.len() == 1 && !self.is_at_work(slot) => {
                        self.only_in(place, commit, slot)?
                    }
                    _ => Vec::new(),
                };
                Ok(Proof::Red(match only.is_empty() {
                    true => tail,
                    false => format!("{tail}\n{}", only_words(&only)),
                }))
            }
        }
    }

    fn is_at_work(&self, slot: &Path) -> bool {
        let name = slot.file_name().unwrap_or_default();
        self.at_work_mark(&name.to_string_lossy()).exists()
    }

    /// Everything that git ignores in a slot, folders as one.
    fn ignored_in(&self, commit: &str, slot: &Path) -> Done<Vec<PathBuf>> {
        let index = self.control_folder().join("slot-index");
        drop(fs_err::remove_file(&index));
        let repo = self.controlled(slot)?.with_env("GIT_INDEX_FILE", &index);
        repo.quiet(&["read-tree", commit])?;
        let mut found = BTreeSet::new();
        // By the rules of the loop's beginning, and by what the agent made of them.
        let [one, two, three] = self.exclude_args();
        let common = ["ls-files", "-z", "--others", "--directory"];
        let ignored = [&common[..], &["--ignored", &one, &two, &three]].concat();
        found.extend(repo.paths(&ignored)?);
        // What the agent hid by rules of its own is in no commit and ignored by nobody else.
        let hidden = [&common[..], &[&one, &two, &three]].concat();
        found.extend(repo.paths(&hidden)?);
        let own = self.prefix.join(".descartes");
        found.retain(|path| !path.starts_with(".git") && !path.starts_with(&own));
        Ok(found.into_iter().collect())
    }

    /// Copies folders of dependencies from the slot in which the same commit was green.
    fn take_caches(&self, place: &Integration, commit: &str, slot: &Path) -> Done<Vec<String>> {
        let mut taken = Vec::new();
        for path in self.ignored_in(commit, slot)? {
            // Without the slash: with it, what a link points to would be looked at.
            let path: PathBuf = path.components().collect();
            let name = &*path.to_string_lossy();
            let last = path.file_name().map(|last| last.to_string_lossy());
            let is_cache = |cache: &String| {
                let cache = cache.trim_matches('/');
                name == cache || last.as_deref() == Some(cache)
            };
            let from = slot.join(&path);
            let is_folder = fs_err::symlink_metadata(&from).is_ok_and(|meta| meta.is_dir());
            if !is_folder || !self.caches.iter().any(is_cache) || from.join(".git").exists() {
                continue;
            }
            let to = place.face.dir.join(&path);
            let is_link = to.is_symlink() && link_above(&place.face.dir, &path).is_none();
            let tracked = ["ls-files", "-z", "--", &format!(":(literal){name}")];
            if is_link && place.control.paths(&tracked)?.is_empty() {
                // A setup's or a gate's, without which the gates are red as well.
                remove_all(&to)?;
            } else if is_link || link_above(&place.face.dir, &path).is_some() {
                continue;
            }
            // With the slash: it is a folder, and not there yet.
            let folder = format!("{name}/");
            let asked = ["check-ignore", "--quiet", "--no-index", "--", &folder];
            if !place.control.holds(&asked)? {
                continue;
            }
            remove_all(&to)?;
            if let Some(parent) = to.parent() {
                fs_err::create_dir_all(parent)?;
            }
            let copied = self.copy_all(&format!("the cache {name}"), &from, &to);
            let copied = self.copied_where_there_is_room(copied);
            if !matches!(copied, Ok(true)) {
                // A part of it would make gates green or red that are not.
                remove_all(&to)?;
            }
            if copied? {
                taken.push(name.to_owned());
            }
        }
        Ok(taken)
    }

    /// Ignored files that the slot has and the integration worktree has not.
    fn only_in(&self, place: &Integration, commit: &str, slot: &Path) -> Done<Vec<String>> {
        let missing = |path: &PathBuf| place.face.dir.join(path).symlink_metadata().is_err();
        let found = self.ignored_in(commit, slot)?.into_iter().filter(missing);
        Ok(found
            .map(|path| path.to_string_lossy().into_owned())
            .collect())
    }

    /// Copies what git does not bring and runs the setup, where that is due. The evidence where
    /// the setup fails.
    pub(super) fn set_up_worktree(&self, dir: &Path, commit: &str) -> Done<Result<(), String>> {
        for path in self.copied(commit)? {
            let (from, to, name) = (self.user.dir.join(&path), dir.join(&path), path.display());
            if let Some(link) = link_above(dir, &path) {
                self.user.locks.tell(format!(
                    "worktree_copy: {name} is not copied, because {} is a symbolic link there",
                    link.display()
                ));
                continue;
            }
            if let Some(parent) = to.parent() {
                fs_err::create_dir_all(parent)?;
            }
            let what = format!("{name} for worktree_copy");
            self.copied_where_there_is_room(self.copy_fresher(&what, &from, &to))?;
        }
        self.set_up(dir, commit)
    }
}

/// Whether something is there that is no file.
fn is_special(path: Option<&Path>) -> bool {
    let meta = path.map(fs_err::metadata);
    meta.is_some_and(|meta| meta.is_ok_and(|meta| !meta.is_file()))
}

fn only_words(only: &[String]) -> String {
    let mut message = format!(
        "These files are in your worktree, but git ignores them, so they are not in any commit: {}",
        only[..only.len().min(NAMED)].join(", ")
    );
    if only.len() > NAMED {
        message.push_str(&format!(" and {} more", only.len() - NAMED));
    }
    message
}

fn config_entry(key: &str, value: Option<&str>) -> String {
    let Some((section, rest)) = key.split_once('.') else {
        return String::new();
    };
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (head, name) = match rest.rsplit_once('.') {
        Some((sub, name)) => (format!("[{section} \"{}\"]", escape(sub)), name),
        None => (format!("[{section}]"), rest),
    };
    match value {
        None => format!("{head}\n\t{name}\n"),
        Some(value) => {
            let value = escape(value).replace('\n', "\\n").replace('\t', "\\t");
            format!("{head}\n\t{name} = \"{value}\"\n")
        }
    }
}

impl Integration {
    /// Makes the tree what a commit says, leaving what git ignores: build caches stay warm.
    pub(super) fn check_out(&self, trees: &Trees, commit: &str) -> Done<()> {
        self.unlock()?;
        self.control.set_head(&self.folder, commit)?;
        if let Err(message) = self.control.quiet(&["read-tree", "--reset", "-u", commit]) {
            // An index that cannot be read: a machine that lost its power leaves such.
            fs_err::remove_file(self.folder.join("index")).map_err(|_| message)?;
            self.control
                .quiet(&["read-tree", "--reset", "-u", commit])?;
        }
        self.show_sparse_work(trees, commit)?;
        self.clear(trees)?;
        self.expel(trees)?;
        self.show(commit)
    }

    /// Where the user has a part of the tree checked out, the work is there as a whole: its agent had it before
    /// its eyes, and gates look at it.
    fn show_sparse_work(&self, trees: &Trees, commit: &str) -> Done<()> {
        if !trees.is_sparse() {
            return Ok(());
        }
        let Some(head) = trees.user.commit_of("HEAD")? else {
            return Ok(());
        };
        let names = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
        let work = trees
            .user
            .paths(&[&names[..], &["--diff-filter=d", &head, commit]].concat())?;
        let index = self.control.index()?;
        let skipped: BTreeSet<&PathBuf> = index.skipped.iter().collect();
        let left_out = work.iter().filter(|path| skipped.contains(path));
        let left_out = zero_ended("", left_out.map(PathBuf::as_path));
        if left_out.is_empty() {
            return Ok(());
        }
        let show = ["update-index", "--no-skip-worktree", "-z", "--stdin"];
        self.control.quiet_with(&show, &left_out)?;
        let write = ["checkout-index", "--force", "-z", "--stdin"];
        self.control.quiet_with(&write, &left_out).map(drop)
    }

    /// Removes what is neither in the commit nor ignored, nor as a setup made it.
    fn clear(&self, trees: &Trees) -> Done<()> {
        let spared = trees.spared(&self.face.dir)?;
        if !spared.is_whole {
            drop(fs_err::remove_file(trees.setup_mark("merged")));
        }
        for path in trees.untracked(&self.control)? {
            if !spared.holds(&path) {
                let removed = remove_with_folders(&self.control.dir, &path);
                removed.map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Writes down what was brought, before gates run.
    fn note_brought(&self, trees: &Trees) -> Done<()> {
        let brought = ChangedPaths {
            untracked: trees.untracked(&self.control)?.into_iter().collect(),
            ..ChangedPaths::default()
        };
        trees.write_brought(&self.face.dir, None, Vec::new(), &brought)
    }

    /// Makes what gates and hooks see agree with what is checked out.
    pub(super) fn show(&self, head: &str) -> Done<()> {
        self.face.set_head(&self.face.git_dir()?, head)?;
        self.show_index()
    }

    fn show_index(&self) -> Done<()> {
        let [index] = <[PathBuf; 1]>::try_from(self.face.git_paths(&["index"])?)
            .map_err(|_| "git did not say where its index is".to_owned())?;
        let new = index.with_extension("descartes");
        fs_err::copy(self.folder.join("index"), &new)?;
        fs_err::rename(&new, &index).map_err(GitError::from)
    }

    /// Locks of a git that was killed; nobody but us works with this folder.
    fn unlock(&self) -> Done<()> {
        for lock in ["index.lock", "HEAD.lock"].map(|name| self.folder.join(name)) {
            if lock.symlink_metadata().is_ok() && self.control.locks.await_gits(&self.control.dir) {
                drop(fs_err::remove_file(lock));
            }
        }
        Ok(())
    }

    /// A path that the work changed, and that a commit has as it was before: a merge of both that
    /// changes nothing is not to be believed.
    fn left_out(&self, trees: &Trees, base: &str, theirs: Theirs<'_>) -> Done<Option<PathBuf>> {
        let same = trees.user.tree_of(base)? == trees.user.tree_of(theirs.commit)?;
        if same || trees.user.is_ancestor(theirs.commit, base)? {
            return Ok(None);
        }
        let from = match theirs.from {
            Some(from) => from.to_owned(),
            None => trees.user.ask(&["merge-base", base, theirs.commit])?,
        };
        let changed = |to: &str| {
            let names = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
            trees.user.paths(&[&names[..], &[&from, to]].concat())
        };
        let here: BTreeSet<PathBuf> = changed(base)?.into_iter().collect();
        let mut wanted = changed(theirs.commit)?.into_iter();
        Ok(wanted.find(|path| !here.contains(path) && !trees.is_put_back(path)))
    }

    /// Puts work on top of a commit, as one commit of its own.
    pub(super) fn squash(
        &self,
        trees: &Trees,
        base: &str,
        theirs: Theirs<'_>,
        message: &str,
        hooks: Hooks,
    ) -> Done<Squashed> {
        if trees.holds_already(base, theirs)? {
            return Ok(Squashed::Nothing);
        }
        self.check_out(trees, base)?;
        let left = trees.spared(&self.face.dir)?.files;
        trees.make_way(&self.control.dir, &left, theirs.commit)?;
        let merged = match theirs.from {
            None => {
                let merge = ["merge", "--squash", "--quiet", theirs.commit];
                self.control.attempt(&merge)?
            }
            Some(from) => {
                let alone = trees.changes_alone(from, theirs.commit)?;
                let pick = ["cherry-pick", "--no-commit", &alone];
                self.control.attempt(&pick)?
            }
        };
        if let Err(error) = merged {
            let files = self.control.unmerged()?;
            let files = files.iter().map(|file| file.display().to_string());
            let files = files.collect();
            self.check_out(trees, base)?;
            let message = error.to_string();
            return Ok(Squashed::Conflict { message, files });
        }
        if !trees.restore_ignored_files(&self.control)? {
            return Ok(match self.left_out(trees, base, theirs)? {
                None => Squashed::Nothing,
                Some(path) => Squashed::Refused(GitError::Refused(format!(
                    "git reports nothing to merge, but {} from the work is missing",
                    path.display()
                ))),
            });
        }
        self.show(base)?;
        let commit = ["commit", "--quiet", "-m", message];
        let made = match hooks {
            // An agent can write hooks, and say where they are.
            Hooks::Run => match trees.hooks_then() {
                Some(hooks) => {
                    let face = self.face.with_setting("core.hooksPath", &hooks);
                    trees
                        .with_confined_hooks(&face, Path::new(&hooks))?
                        .act(&commit)
                }
                None => {
                    let none = trees.control_folder().join("no-hooks");
                    trees.with_confined_hooks(&self.face, &none)?.act(&commit)
                }
            },
            Hooks::Skip => self.face.quiet(&commit),
        };
        if let Err(error) = made {
            self.check_out(trees, base)?;
            return Ok(Squashed::Refused(error));
        }
        let commit = self.face.commit_of("HEAD")?.ok_or("there is no commit")?;
        Ok(Squashed::Commit(commit))
    }
}

/// Work that is put on top of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theirs<'a> {
    pub(super) commit: &'a str,
    /// What it is built on, where git's own merge base would take more for its changes.
    pub(super) from: Option<&'a str>,
}

/// Whether the user's hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hooks {
    Run,
    Skip,
}

/// What came of putting work on top of a commit.
#[derive(Debug)]
pub(super) enum Squashed {
    Commit(String),
    /// It is there already.
    Nothing,
    Conflict {
        message: String,
        files: Vec<String>,
    },
    /// It could not be committed.
    Refused(GitError),
}
