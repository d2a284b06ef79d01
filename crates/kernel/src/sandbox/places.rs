//! Places that every machine has.

use std::path::{Path, PathBuf};

/// Folders that inside are empty and private: what lies there belongs to others.
pub(super) const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];

/// Folders with sockets of services (docker, the session bus, the system bus).
pub(super) const SOCKETS: [&str; 1] = ["/run"];

/// What programs read below [`SOCKETS`]: name servers, and the programs of some distributions.
pub(super) const KEPT_IN_RUN: [&str; 6] = [
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/current-system",
    "/run/booted-system",
    "/run/wrappers",
];

/// In a home directory that is hidden (`strict`): toolchains and the settings of git.
pub(super) const TOOLCHAINS: &[&str] = &[
    ".cargo",
    ".rustup",
    ".nvm",
    ".fnm",
    ".volta",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".bun",
    ".deno",
    ".sdkman",
    ".nix-profile",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/fnm",
    ".npm-global",
    "go",
    ".gitconfig",
    ".config/git",
];

/// In a work tree: what starts programs in the user's next session, editor or shell.
pub(super) const TREE_SETTINGS: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".opencode/plugin",
    ".mcp.json",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea",
    ".envrc",
    ".husky",
];

/// Where a user's files are. The folders of XDG may lie elsewhere than usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeFolders {
    pub home: PathBuf,
    pub config: Option<PathBuf>,
    pub data: Option<PathBuf>,
    pub state: Option<PathBuf>,
    pub cache: Option<PathBuf>,
}

impl HomeFolders {
    /// Where a place of a home directory is: where XDG says, else where it usually is.
    pub fn place(&self, place: &str) -> PathBuf {
        let moved = [
            (".config", &self.config),
            (".local/share", &self.data),
            (".local/state", &self.state),
            (".cache", &self.cache),
        ];
        let moved = moved.into_iter().find_map(|(usual, moved)| {
            let below = Path::new(place).strip_prefix(usual).ok()?;
            let moved = moved.as_ref()?;
            Some(moved.join(below).components().collect())
        });
        moved.unwrap_or_else(|| self.home.join(place))
    }

    /// Both, where they differ: programs that know nothing of XDG look where it usually is.
    fn both(&self, place: &str) -> impl Iterator<Item = PathBuf> {
        let (moved, usual) = (self.place(place), self.home.join(place));
        let usual = (usual != moved).then_some(usual);
        [moved].into_iter().chain(usual)
    }

    /// All of them.
    pub(super) fn all<'p>(
        &'p self,
        places: &'p [&'static str],
    ) -> impl Iterator<Item = PathBuf> + 'p {
        places.iter().flat_map(|place| self.both(place))
    }
}

/// A path that may begin with `~/`.
pub fn home_path(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    match text.strip_prefix('~') {
        Some("" | "/") => home.map(Path::to_owned),
        Some(below) if below.starts_with('/') => {
            let below = below.trim_matches('/');
            home.map(|home| home.join(below))
        }
        // Without the `/` at its end, which says that it is a folder.
        _ => Some(Path::new(text).components().collect()),
    }
}
