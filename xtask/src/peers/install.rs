//! `cargo xtask peers --install`: from the registries into a folder of the cache.

use std::path::{Path, PathBuf};

use super::tool::Tool;
use crate::shell::{Step, run};

/// `DESCARTES_TEST_PEERS`, else `descartes-test/peers` in the user's cache.
pub fn folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(given) = variable("DESCARTES_TEST_PEERS") {
        return PathBuf::from(given);
    }
    let home = || PathBuf::from(variable("HOME").unwrap_or_else(|| "/tmp".into()));
    let cache = variable("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    cache.join("descartes-test/peers")
}

/// Installs those that are named, or all; what is there already is left alone.
pub fn install(names: &[String]) -> Step {
    let known: Vec<&str> = Tool::ALL
        .into_iter()
        .filter(|tool| tool.package().is_some())
        .map(Tool::name)
        .collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{name}` is none of: {}", known.join(", ")));
    }
    for tool in Tool::ALL {
        let wanted = names.is_empty() || names.iter().any(|name| name == tool.name());
        let (Some((package, version)), Some(program)) = (tool.package(), tool.program()) else {
            continue;
        };
        if wanted && !program.exists() {
            one(tool, package, version)?;
        }
    }
    Ok(())
}

fn one(tool: Tool, package: &str, version: &str) -> Step {
    let place = folder().join(tool.name());
    let text = |path: &Path| path.to_string_lossy().into_owned();
    match tool {
        Tool::RalphPy | Tool::Ralphify => {
            run("python3", &["-m", "venv", &text(&place)])?;
            let wanted = format!("{package}=={version}");
            run(
                &text(&place.join("bin/pip")),
                &["install", "--quiet", &wanted],
            )
        }
        // Its launcher wants bun, which npm has too.
        Tool::RalphTui => {
            std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
            let (place, wanted) = (text(&place), format!("{package}@{version}"));
            run(
                "npm",
                &[
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--prefix",
                    &place,
                    &wanted,
                    "bun",
                ],
            )
        }
        Tool::Scud => crate::tasks::install(),
        _ => {
            let place = text(&place);
            run(
                "cargo",
                &[
                    "install",
                    package,
                    "--version",
                    version,
                    "--locked",
                    "--root",
                    &place,
                ],
            )
        }
    }
}
