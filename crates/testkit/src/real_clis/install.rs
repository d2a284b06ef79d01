//! Getting the CLIs from npm.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::RealCli;

/// Why the CLIs could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A program could not be started, or a folder not made.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system answered.
        source: io::Error,
    },
    /// A program failed.
    #[error("{what} failed:\n{output}")]
    Failed {
        what: String,
        /// What it said.
        output: String,
    },
}

/// The folder of the CLIs: `DESCARTES_TEST_AGENTS`, else `descartes-test/agents` in the user's
/// cache.
pub fn folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(given) = variable("DESCARTES_TEST_AGENTS") {
        return PathBuf::from(given);
    }
    let home = || PathBuf::from(variable("HOME").unwrap_or_else(|| "/tmp".into()));
    let cache = variable("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    cache.join("descartes-test/agents")
}

/// Installs the newest version of each CLI into [`folder`]: about 1 GB.
///
/// # Errors
/// When npm is missing, cannot reach its registry, or a package does not install.
pub fn install(clis: &[RealCli]) -> Result<(), InstallError> {
    let folder = folder();
    let failed = |source| InstallError::System {
        what: folder.display().to_string(),
        source,
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder);
    // Without the tag npm would pick an older version whose declared engine fits better; the
    // binaries are native and need none.
    npm.args(clis.iter().map(|cli| format!("{}@latest", cli.package())));
    run(npm)?;
    for cli in clis {
        if let Some(script) = cli.post_install() {
            let mut node = Command::new("node");
            node.arg(script).current_dir(package_folder(&folder, *cli));
            run(node)?;
        }
    }
    Ok(())
}

/// The version that an installed CLI's package has.
pub fn version(cli: RealCli) -> Option<String> {
    let text = fs::read_to_string(package_folder(&folder(), cli).join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    package["version"].as_str().map(str::to_owned)
}

fn package_folder(folder: &Path, cli: RealCli) -> PathBuf {
    folder.join("node_modules").join(cli.package())
}

fn run(mut command: Command) -> Result<(), InstallError> {
    let what = format!("{command:?}");
    match command.output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(Output { stdout, stderr, .. }) => {
            let output = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
            Err(InstallError::Failed { what, output })
        }
        Err(source) => Err(InstallError::System { what, source }),
    }
}
