//! Where the programs under test lie. Building them is the test runner's job.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The `descartes` binary: `DESCARTES_BIN`, else beside the test's own build.
///
/// # Panics
/// When it has not been built.
pub fn descartes() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| locate("DESCARTES_BIN", "descartes", "descartes-cli"))
}

/// The scripted agent: `DESCARTES_SCRIPTED_AGENT`, else beside the test's own build.
///
/// # Panics
/// When it has not been built.
pub fn scripted_agent() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
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
