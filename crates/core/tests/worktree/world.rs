//! A temporary world: a working directory, a home without settings, a folder for snapshots.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use descartes_core::worktree::{Git, PriorAgents, Snapshot, Tree, TreeHash, TreeOptions, Watching};
use descartes_testkit::world::memory_folder;
use tempfile::TempDir;

pub const BUDGET: Duration = Duration::from_secs(60);

pub struct World {
    base: TempDir,
}

impl World {
    /// An empty folder, not in git.
    pub fn plain() -> World {
        let world = World {
            base: tempfile::tempdir_in(memory_folder()).unwrap(),
        };
        fs::create_dir(world.dir()).unwrap();
        fs::create_dir(world.home()).unwrap();
        world
    }

    /// A repository before its first commit, with an identity.
    pub fn unborn() -> World {
        let world = World::plain();
        world.git(&["init", "-q", "-b", "main"]);
        world.git(&["config", "user.name", "Ann"]);
        world.git(&["config", "user.email", "ann@example.org"]);
        world
    }

    /// A repository with one commit of two files.
    pub fn repository() -> World {
        let world = World::unborn();
        world.write("a.txt", "a\n");
        world.write("src/b.txt", "b\n");
        world.commit("start");
        world
    }

    pub fn dir(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }

    pub fn objects(&self) -> PathBuf {
        self.base.path().join("objects")
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub fn settings(&self) -> Git {
        Git::default()
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("GIT_CONFIG_GLOBAL")
            .env_remove("GIT_DIR")
    }

    pub fn tree(&self) -> Tree {
        self.tree_at(&self.dir(), Watching::WherePossible)
    }

    pub fn tree_at(&self, dir: &Path, watching: Watching) -> Tree {
        let options = TreeOptions {
            git: self.settings(),
            watching,
            ..TreeOptions::default()
        };
        Tree::open_with(dir, &self.objects(), options)
    }

    /// As it is opened by who looks at a loop, or takes it up, after agents worked here.
    pub fn tree_after_agents(&self) -> Tree {
        let options = TreeOptions {
            git: self.settings(),
            agents: PriorAgents::HaveWorked,
            ..TreeOptions::default()
        };
        Tree::open_with(&self.dir(), &self.objects(), options)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir().join(path)).unwrap()
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.dir().join(path)).unwrap();
    }

    pub fn exists(&self, path: &str) -> bool {
        self.dir().join(path).symlink_metadata().is_ok()
    }

    pub fn hook(&self, name: &str, script: &str) {
        let path = self.dir().join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.dir(), args)
    }

    pub fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let out = self.try_git(dir, args, &[]);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "git {args:?}: {err}");
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    pub fn try_git(&self, dir: &Path, args: &[&str], env: &[(&str, &Path)]) -> Output {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir).env("HOME", self.home());
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("XDG_CONFIG_HOME");
        command
            .env_remove("GIT_CONFIG_GLOBAL")
            .env_remove("GIT_DIR");
        command
            .env("GIT_ALLOW_PROTOCOL", "file")
            .env("GIT_OPTIONAL_LOCKS", "0");
        command.envs(env.iter().copied()).output().unwrap()
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// The tree that git itself makes of the work tree, from scratch.
    pub fn truth(&self) -> String {
        self.truth_listed().0
    }

    /// The same, with a list of the files in it.
    pub fn truth_listed(&self) -> (String, String) {
        let scratch = tempfile::tempdir_in(memory_folder()).unwrap();
        let (index, objects) = (scratch.path().join("index"), scratch.path().join("objects"));
        fs::create_dir(&objects).unwrap();
        let users = PathBuf::from(self.git(&["rev-parse", "--git-path", "index"]));
        let users = self.dir().join(users);
        if fs::copy(&users, &index).is_ok() {
            // Else git would miss edits in the instant after the index was written.
            let time = fs::metadata(&users).unwrap().modified().unwrap();
            let copy = fs::File::options().write(true).open(&index).unwrap();
            copy.set_modified(time).unwrap();
        }
        let theirs = self
            .dir()
            .join(self.git(&["rev-parse", "--git-path", "objects"]));
        let env: [(&str, &Path); 3] = [
            ("GIT_INDEX_FILE", &index),
            ("GIT_OBJECT_DIRECTORY", &objects),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", &theirs),
        ];
        let add = [
            "add",
            "-A",
            "--sparse",
            "--ignore-errors",
            "--",
            ".",
            ":(exclude,glob)**/.descartes/**",
        ];
        self.try_git(&self.dir(), &add, &env);
        let out = self.try_git(&self.dir(), &["write-tree"], &env);
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let listed = self.try_git(&self.dir(), &["ls-files", "-s"], &env).stdout;
        let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        (text(out.stdout), text(listed))
    }

    /// The files in a tree of ours.
    pub fn listed(&self, tree: &str) -> String {
        let theirs = self
            .dir()
            .join(self.git(&["rev-parse", "--git-path", "objects"]));
        let objects = self.objects();
        let env: [(&str, &Path); 2] = [
            ("GIT_OBJECT_DIRECTORY", &objects),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", &theirs),
        ];
        let out = self.try_git(&self.dir(), &["ls-tree", "-r", tree], &env);
        String::from_utf8(out.stdout).unwrap()
    }

    /// Every file of the repository itself, with its content.
    pub fn repository_bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.dir().join(".git"), &mut files);
        files
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
}

pub fn snap(tree: &mut Tree) -> Snapshot {
    let taken = tree.snapshot(BUDGET);
    if let TreeHash::Unknown { reason } = &taken.tree {
        panic!("{reason}");
    }
    taken
}

pub fn git_tree(snapshot: &Snapshot) -> &str {
    snapshot.tree.git_tree().unwrap()
}
