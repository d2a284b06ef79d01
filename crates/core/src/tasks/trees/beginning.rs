//! What the integration worktree takes from the loop's beginning besides configuration: the
//! user's hooks, which part of the tree is checked out, and where missing objects are fetched.

use std::path::{Path, PathBuf};

use descartes_kernel::sandbox::SandboxLevel;

use super::super::git::Repo;
use super::files::remove_all;
use super::{Done, GitError, Trees};
use crate::host::confined_hooks::confined_hooks;

/// A folder around the hooks is taken along, for what they call there, unless it holds more.
const FILES: usize = 2_000;

/// Sections of the configuration by which a git fetches what it does not have.
pub(super) const FETCHING: [&str; 6] = ["remote", "url", "credential", "http", "protocol", "ssh"];

/// Single settings of that kind.
pub(super) const FETCHING_KEYS: [&str; 3] = [
    "extensions.partialclone",
    "core.sshcommand",
    "core.gitproxy",
];

/// Settings of signatures, and what git takes where they are not set.
const SIGNING: &[(&str, &str)] = &[
    ("commit.gpgsign", "false"),
    ("gpg.format", "openpgp"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.ssh.defaultkeycommand", ""),
];

impl Trees {
    fn hooks_mark(&self) -> PathBuf {
        self.control_folder().join("hooks-path")
    }

    /// The hooks of the loop's beginning.
    pub(super) fn hooks_then(&self) -> Option<String> {
        let path = fs_err::read_to_string(self.hooks_mark()).ok()?;
        Some(path).filter(|path| !path.is_empty())
    }

    /// The same tree, whose commits start these hooks in the sandbox, where the loop has one.
    pub(super) fn with_confined_hooks(&self, repo: &Repo, hooks: &Path) -> Done<Repo> {
        let name = repo.dir.file_name().unwrap_or_default().to_string_lossy();
        let folder = self.folder.join(format!("{name}.hooks"));
        let made = confined_hooks(
            &self.confinement(),
            &self.settings,
            &repo.dir,
            hooks,
            &folder,
        );
        let made = made.map_err(|error| format!("hooks cannot be confined: {error}"))?;
        let is_confined = self.confinement().sandbox.effective_for_gates() != SandboxLevel::Off;
        let signing = match is_confined {
            true => self.signing_then()?,
            false => Vec::new(),
        };
        let set = |repo: Repo, (key, value): &(String, String)| repo.with_setting(key, value);
        let repo = &signing.iter().fold(repo.clone(), set);
        Ok(match made {
            Some(folder) => repo.with_setting("core.hooksPath", &folder.to_string_lossy()),
            // There are none: a folder of that name in this tree is the agent's.
            None if is_confined => repo.with_setting("core.hooksPath", "/dev/null"),
            None => repo.clone(),
        })
    }

    /// How the user signs, by the settings of the loop's beginning: what has landed since may be included by them.
    fn signing_then(&self) -> Done<Vec<(String, String)>> {
        if !self.has_control() {
            self.take_control()?;
        }
        let file = self.control_folder().join("config");
        let file = file.to_string_lossy();
        let listed = self
            .user
            .ask(&["config", "--file", &file, "--list", "-z"])?;
        let known = |key: &str| {
            let entries = listed.split('\0').rev();
            let mut entries = entries.filter_map(|entry| entry.split_once('\n'));
            entries
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        if known("commit.gpgsign").is_none() {
            // An older version wrote it.
            return Ok(Vec::new());
        }
        let mut settings = Vec::new();
        for (key, default) in SIGNING {
            // One is another name of the other.
            let value = known(key).or(match *key {
                "gpg.openpgp.program" => known("gpg.program"),
                _ => None,
            });
            let value = value.unwrap_or(default);
            let is_path = key.ends_with("program") && value.contains('/');
            if is_path && self.user.dir.join(value).starts_with(&self.user.dir) {
                return Err(format!(
                    "{key} is {value}, which agents can write: no commit is signed by it"
                )
                .into());
            }
            settings.push(((*key).to_owned(), value.to_owned()));
        }
        Ok(settings)
    }

    /// Where the user's hooks are.
    pub(super) fn hooks_now(&self, common: &Path) -> PathBuf {
        let asked = ["config", "--type=path", "--get-all", "core.hooksPath"];
        let set = self.user.ask(&asked).unwrap_or_default();
        // The last one is that of our own call.
        let set = set.lines().rev().nth(1);
        match set.filter(|set| !set.is_empty()) {
            Some(set) => self.user.dir.join(set),
            None => common.join("hooks"),
        }
    }

    /// Copies the user's hooks as they are now.
    pub(super) fn take_hooks(&self, common: &Path) -> Done<()> {
        let (from, to) = (self.hooks_now(common), self.control_folder().join("hooks"));
        drop(fs_err::remove_file(self.hooks_mark()));
        remove_all(&to)?;
        fs_err::create_dir_all(&to)?;
        if !from.is_dir() {
            return fs_err::write(self.hooks_mark(), to.to_string_lossy().as_bytes())
                .map_err(GitError::from);
        }
        // Hooks in the user's tree call what lies beside them.
        let inside = from.strip_prefix(&self.user.dir).ok();
        let parent = inside.and_then(Path::parent);
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.filter(|parent| !parent.starts_with(".git"));
        let around = parent.and(from.parent());
        let around = around.filter(|around| count(around, FILES) < FILES);
        let name = from.file_name().unwrap_or_default();
        let (source, at) = match around {
            Some(around) => (around.to_owned(), to.join("around").join(name)),
            None => (from.clone(), to.join("around")),
        };
        self.copy_all("the hooks", &source, &to.join("around"))?;
        fs_err::write(self.hooks_mark(), at.to_string_lossy().as_bytes()).map_err(GitError::from)
    }

    fn sparse_patterns(&self) -> PathBuf {
        self.control_folder().join("info").join("sparse-checkout")
    }

    /// Whether the user has a part of the tree checked out.
    pub(super) fn is_sparse(&self) -> bool {
        self.sparse_patterns().exists()
    }

    /// Which part of the tree is checked out in the user's checkout, as settings; its patterns are
    /// written down.
    pub(super) fn take_sparse(&self) -> Done<Vec<(&'static str, &'static str)>> {
        let is_set = |key: &str| {
            let asked = ["config", "--type=bool", "--get", key];
            self.user.ask(&asked).is_ok_and(|value| value == "true")
        };
        let to = self.sparse_patterns();
        remove_all(&to)?;
        if !is_set("core.sparseCheckout") {
            return Ok(Vec::new());
        }
        for from in self.user.git_paths(&["info/sparse-checkout"])? {
            fs_err::copy(from, &to)?;
        }
        let cone = match is_set("core.sparseCheckoutCone") {
            true => "true",
            false => "false",
        };
        Ok(vec![
            ("core.sparseCheckout", "true"),
            ("core.sparseCheckoutCone", cone),
        ])
    }

    /// Whether objects that are not here are fetched when they are needed.
    pub(super) fn is_partial(&self) -> bool {
        let asked = ["config", "--get-regexp", r"^remote\..*\.promisor$"];
        self.user.ask(&asked).is_ok_and(|found| !found.is_empty())
    }
}

/// Entries in a folder and below, as far as it matters.
fn count(folder: &Path, most: usize) -> usize {
    let (mut found, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
            found += 1;
            if found >= most {
                return found;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}
