//! Gates that a project brings along, where nobody set any.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use descartes_plans::scud::backpressure;
use descartes_sandbox::small_text;
use descartes_store::safe_open;

use crate::host::HostError;

/// A gate that was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGates {
    /// The commands.
    pub commands: Vec<String>,
    /// What they were read off.
    pub source: String,
}

/// The gates that a project has set for SCUD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScudGates {
    /// The commands.
    pub commands: Vec<String>,
    /// SCUD's config.
    pub file: PathBuf,
}

/// The gates of SCUD's config, else those that the files of the project make likely.
pub fn found_gates(dir: &Path) -> Result<Option<FoundGates>, HostError> {
    let scud = scud_gates(dir)?.map(|found| FoundGates {
        commands: found.commands,
        source: "[swarm.backpressure] in .scud/config.toml".to_owned(),
    });
    Ok(scud.or_else(|| project_gates(dir)))
}

/// The gates of SCUD's config: whatever its author wrote, so a program asks the user before it runs them.
/// A config that cannot be read is an error: it may hold the gates.
pub fn scud_gates(dir: &Path) -> Result<Option<ScudGates>, HostError> {
    let Some(project) = dir.ancestors().find(|dir| dir.join(".scud").is_dir()) else {
        return Ok(None);
    };
    let file = project.join(".scud/config.toml");
    let unusable = |why: String| {
        HostError::refused(
            format!(
                "cannot read the gates in {}: {}",
                file.display(),
                why.trim_end()
            ),
            "fix the file, or name the gates with --verify",
        )
    };
    let text = match safe_open::read_user_text(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !safe_open::is_there(&file) => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(error.to_string())),
    };
    let found = backpressure(&text).map_err(|error| unusable(error.to_string()))?;
    Ok(found.map(|found| ScudGates {
        commands: found.commands,
        file,
    }))
}

/// Gates that the files of a project make likely: commands that are ours, found by what is there.
pub fn project_gates(dir: &Path) -> Option<FoundGates> {
    let has = |name: &str| dir.join(name).is_file();
    let read = |name: &str| small_text(dir.join(name)).ok();
    let found = |command: &str, source: &str| {
        Some(FoundGates {
            commands: vec![command.to_owned()],
            source: source.to_owned(),
        })
    };
    if has("Cargo.toml") {
        return found("cargo check && cargo test", "Cargo.toml");
    }
    for name in ["Makefile", "makefile", "GNUmakefile"] {
        if let Some(text) = read(name) {
            let target = |target: &str| {
                text.lines().any(|line| {
                    line.strip_prefix(target)
                        .is_some_and(|rest| rest.trim_start().starts_with(':'))
                })
            };
            let targets: Vec<&str> = ["check", "test"]
                .into_iter()
                .filter(|t| target(t))
                .collect();
            if !targets.is_empty() {
                return found(&format!("make {}", targets.join(" ")), name);
            }
        }
    }
    if let Some(text) = read("package.json") {
        let package: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let test =
            package.and_then(|json| json.pointer("/scripts/test")?.as_str().map(str::to_owned));
        if test.is_some_and(|test| !test.contains("no test specified")) {
            return found("npm test", "package.json");
        }
    }
    if ["pyproject.toml", "setup.py", "pytest.ini", "tox.ini"]
        .into_iter()
        .any(has)
    {
        return found("pytest", "the Python project");
    }
    if has("go.mod") {
        return found("go build ./... && go test ./...", "go.mod");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(files: &[(&str, &str)]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let found = found_gates(folder.path()).unwrap();
        found.map(|found| found.commands.join(" | "))
    }

    #[test]
    fn a_scud_config_that_cannot_be_read_is_refused() {
        let table: [(&str, &[u8]); 5] = [
            (
                "a syntax error",
                b"[swarm.backpressure]\ncommands = [\"false\"\n",
            ),
            (
                "another type",
                b"[swarm.backpressure]\ncommands = \"false\"\n",
            ),
            ("another type above", b"swarm = 3\n"),
            (
                "no UTF-8",
                b"[swarm.backpressure]\ncommands = [\"false\"]\n# \xff\n",
            ),
            ("a table of tables", b"[[swarm]]\nbackpressure = 1\n"),
        ];
        for (what, text) in table {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(".scud/config.toml");
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, text).unwrap();
            let error = found_gates(folder.path()).unwrap_err();
            assert!(error.to_string().contains("config.toml"), "{what}: {error}");
            assert_eq!(error.exit_code(), 65, "{what}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join(".scud/config.toml")).unwrap();
        assert!(found_gates(folder.path()).is_err(), "a folder");
    }

    #[test]
    fn gates_are_found_in_the_documented_order() {
        const SCUD: &str = "[swarm.backpressure]\ncommands = [\"a\", \"b\"]\n";
        type Case = (
            &'static [(&'static str, &'static str)],
            Option<&'static str>,
        );
        let table: [Case; 8] = [
            (
                &[(".scud/config.toml", SCUD), ("Cargo.toml", "")],
                Some("a | b"),
            ),
            (&[("Cargo.toml", "")], Some("cargo check && cargo test")),
            (
                &[("Makefile", "check:\n\ntest: check\n")],
                Some("make check test"),
            ),
            (
                &[("Makefile", "all:\n"), ("go.mod", "")],
                Some("go build ./... && go test ./..."),
            ),
            (
                &[("package.json", r#"{"scripts":{"test":"jest"}}"#)],
                Some("npm test"),
            ),
            (
                &[(
                    "package.json",
                    r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#,
                )],
                None,
            ),
            (&[("pyproject.toml", "")], Some("pytest")),
            (&[("README.md", "")], None),
        ];
        for (files, expected) in table {
            assert_eq!(gates(files).as_deref(), expected, "{files:?}");
        }
    }
}
