//! Where the programs under test lie. Building them is the test runner's job.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static DESCARTES: OnceLock<PathBuf> = OnceLock::new();
static AGENT: OnceLock<PathBuf> = OnceLock::new();

/// For a harness that built them elsewhere, before any is asked for: where they are.
pub fn lie_at(descartes: &Path, agent: &Path) {
    // The first word counts; whoever measures says it once, with what it built.
    DESCARTES.get_or_init(|| descartes.to_path_buf());
    AGENT.get_or_init(|| agent.to_path_buf());
}

/// The `descartes` binary: `DESCARTES_BIN`, else beside the test's own build.
///
/// # Panics
/// When it has not been built.
pub fn descartes() -> &'static Path {
    DESCARTES.get_or_init(|| locate("DESCARTES_BIN", "descartes", "descartes-cli"))
}

/// The scripted agent: `DESCARTES_SCRIPTED_AGENT`, else beside the test's own build.
///
/// # Panics
/// When it has not been built.
pub fn scripted_agent() -> &'static Path {
    AGENT.get_or_init(|| {
        locate(
            "DESCARTES_SCRIPTED_AGENT",
            "descartes-scripted-agent",
            "descartes-testkit",
        )
    })
}

fn locate(variable: &str, name: &str, package: &str) -> PathBuf {
    if let Some(given) = std::env::var_os(variable) {
        return PathBuf::from(given);
    }
    let test = std::env::current_exe().expect("the path of the test");
    // target/PROFILE/deps/test-HASH, target/PROFILE/examples/x, or target/PROFILE/bin.
    let found = test
        .ancestors()
        .skip(1)
        .take(3)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "{name} is not built beside {}\nhint: cargo build -p {package}, or set {variable}",
            test.display()
        )
    })
}
