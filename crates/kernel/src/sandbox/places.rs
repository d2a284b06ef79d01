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

/// Keys, logins and histories in a home directory.
pub(super) const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/rclone",
    ".config/doctl",
    ".config/containers",
    ".fly",
    ".local/share/keyrings",
    ".local/share/fish/fish_history",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/Slack",
    ".config/Signal",
    "snap/firefox",
    "snap/chromium",
];

/// Pure caches: what is put there is data that is looked up by a hash, or made again. None is on a PATH.
pub const DEFAULT_CACHES: &[&str] = &[
    "~/.cache",
    "~/.cargo/registry",
    "~/.cargo/git",
    "~/.npm/_cacache",
    "~/.npm/_logs",
    "~/.local/share/pnpm/store",
    "~/.yarn/berry/cache",
    "~/go/pkg/mod",
    "~/.m2/repository",
    "~/.gradle/caches",
];

/// Below a writable cache: what would be run, not looked up.
pub(super) const LOCKED_IN_CACHES: &[&str] = &[".cache/pre-commit", ".cache/node/corepack"];

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

/// In the folder of a repository: what decides which programs git starts. All but the last are made
/// where they are missing.
pub(super) const GIT_LOCKS: &[(&str, GitEntry)] = &[
    ("config", GitEntry::File),
    ("hooks", GitEntry::Folder),
    ("info", GitEntry::Folder),
    ("modules", GitEntry::IfThere),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitEntry {
    File,
    Folder,
    IfThere,
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
