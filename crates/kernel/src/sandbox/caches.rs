//! Caches in a home directory: which of them agents and gates share with their user, and which they have
//! apart.
//!
//! What programs outside take from a cache and run, link or unpack without looking must not come from an agent.
//! So most of it is kept apart: in its place a folder is seen that only sandboxes see, and that stays from run
//! to run.

/// Where something in a home directory lies that [`APART`] or [`SHARED`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cache {
    /// From the home directory.
    pub(super) place: &'static str,
    /// Whose it is: made where it is missing and this program is there.
    pub(super) tool: &'static str,
}

const fn cache(place: &'static str, tool: &'static str) -> Cache {
    Cache { place, tool }
}

/// The folder of caches; `XDG_CACHE_HOME` may move it.
pub const CACHE_HOME: &str = ".cache";

/// The user's own, and writable: only data, which its reader checks against a checksum from elsewhere, or which
/// nothing runs.
pub(super) const SHARED: &[Cache] = &[
    // Answers of an index; each file of it is checked against the hash that the index names.
    cache(".cache/pip/http", ""),
    cache(".cache/pip/http-v2", ""),
    // Looked up by the hash in the lockfile, and checked when it is read.
    cache(".npm/_cacache", "npm"),
    cache(".yarn/berry/cache", ""),
    // Read by people.
    cache(".npm/_logs", "npm"),
    // Archives, checked when they are loaded. What is built is unpacked from them, apart.
    cache(".cargo/registry/cache", "cargo"),
    cache(".cargo/registry/index", "cargo"),
    cache("go/pkg/mod/cache/download", "go"),
];

/// Not the user's own: programs outside run, link or build what lies here as it lies.
pub(super) const APART: &[Cache] = &[
    // Prompts of shells, results of compilers (go-build, ccache, sccache), wheels, unpacked packages (uv, yarn,
    // deno), engines and browsers; and what is made there next year.
    cache(CACHE_HOME, ""),
    // Sources as cargo builds them, build scripts among them; nothing checks them again.
    cache(".cargo/registry/src", "cargo"),
    // Repositories, whose configuration names programs, and their work trees.
    cache(".cargo/git", "cargo"),
    // Sources as go builds them.
    cache("go/pkg/mod", "go"),
    // Plugins, which run in the build.
    cache(".m2/repository", "mvn"),
    // Compiled build scripts and plugins; and what gradle needs to start at all.
    cache(".gradle/caches", "gradle"),
    cache(".gradle/daemon", "gradle"),
    cache(".gradle/native", "gradle"),
    cache(".gradle/notifications", "gradle"),
    cache(".gradle/.tmp", "gradle"),
    // Files as they are linked into projects; the index that says which is theirs is not checked.
    cache(".local/share/pnpm/store", "pnpm"),
    cache(".bun/install/cache", "bun"),
    cache(".nuget/packages", "dotnet"),
    // Objects that are linked into programs.
    cache(".ccache", ""),
];

/// Seen in a folder of caches as the user has them, and read-only: what is installed there once, and run.
pub(super) const INSTALLED: &[&str] = &[
    ".cache/ms-playwright",
    ".cache/ms-playwright-go",
    ".cache/puppeteer",
    ".cache/Cypress",
    ".cache/selenium",
    ".cache/electron",
    ".cache/electron-builder",
    ".cache/node/corepack",
    ".cache/node-gyp",
    ".cache/pre-commit",
    ".cache/prek",
    ".cache/pypoetry/virtualenvs",
    ".cache/bazelisk",
    // Models and data sets: read, and as pickles run.
    ".cache/huggingface",
    ".cache/torch",
    ".cache/whisper",
];

/// What keeps a cache of its user from being touched, for people.
pub(super) const APART_WHY: &str = "a cache of the sandbox's own: yours is not touched";

/// The folder below that of caches in which they are kept apart.
pub const OWN_CACHES: &str = "descartes/sandbox";

/// Places of caches that sandboxes have apart.
pub fn apart_caches() -> impl Iterator<Item = &'static str> {
    APART.iter().map(|cache| cache.place)
}

/// Places of caches that have to be there before a run, where these programs are: they cannot be made inside.
pub fn wanted_caches(has: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    let all = APART.iter().chain(SHARED);
    let wanted = all.filter(|cache| match cache.tool {
        "" => cache.place == CACHE_HOME,
        tool => has(tool),
    });
    wanted.map(|cache| cache.place).collect()
}
