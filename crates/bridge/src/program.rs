//! The program `descartes-fleet`: where it is, and whether it is of this version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that speaks the engine's protocol.
pub const PROGRAM: &str = "descartes-fleet";

/// Names another one than that beside descartes.
pub const PROGRAM_VARIABLE: &str = "DESCARTES_FLEET";

/// What it answers to `version`. The name alone says little: others may be called so.
pub const VERSION_ANSWER: &str = concat!(
    "descartes-fleet ",
    env!("CARGO_PKG_VERSION"),
    " (bridge of descartes fleets)"
);

/// A program that answered as ours of this version does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetProgram(PathBuf);

/// Why there is none. Every message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error(
        "many machines need the program {PROGRAM}, and it is not beside descartes ({}); \
         install it there (in a checkout of descartes: cargo install --path crates/fleet), \
         or name it: {PROGRAM_VARIABLE}=/path/to/{PROGRAM}", .beside.display()
    )]
    Missing { beside: PathBuf },
    #[error(
        "{} is not the {PROGRAM} of this descartes ({}): it answers `{answer}`; \
         install both of one version", .program.display(), env!("CARGO_PKG_VERSION")
    )]
    OtherVersion { program: PathBuf, answer: String },
    #[error("cannot start {}: {error}; see that it is a program that you may run", .program.display())]
    Unusable { program: PathBuf, error: String },
}

impl FleetProgram {
    /// The one that `named` says (the value of [`PROGRAM_VARIABLE`]), else the one beside `descartes`.
    pub fn find(named: Option<&Path>, descartes: &Path) -> Result<Self, ProgramError> {
        let beside = descartes.with_file_name(PROGRAM);
        let program = named.map_or(beside, Path::to_owned);
        if named.is_none() && !program.is_file() {
            return Err(ProgramError::Missing { beside: program });
        }
        let asked = Command::new(&program)
            .arg("version")
            .stdin(Stdio::null())
            .output();
        let answer = match asked {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => {
                let error = error.to_string();
                return Err(ProgramError::Unusable { program, error });
            }
        };
        match answer.lines().next().unwrap_or_default() {
            VERSION_ANSWER => Ok(Self(program)),
            other => Err(ProgramError::OtherVersion {
                program,
                answer: other.chars().take(80).collect(),
            }),
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(folder: &Path, answer: &str) -> PathBuf {
        let program = folder.join(PROGRAM);
        fs::write(&program, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn it_is_found_beside_descartes_or_where_it_is_named() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let descartes = here.path().join("descartes");
        let missing = FleetProgram::find(None, &descartes).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("cargo install --path crates/fleet")
        );
        let named = script(there.path(), VERSION_ANSWER);
        let found = FleetProgram::find(Some(&named), &descartes).unwrap();
        assert_eq!(found.path(), named);
        let beside = script(here.path(), VERSION_ANSWER);
        let found = FleetProgram::find(None, &descartes).unwrap();
        assert_eq!(found.path(), beside);
    }

    #[test]
    fn another_version_is_refused_with_its_answer() {
        let here = tempfile::tempdir().unwrap();
        script(
            here.path(),
            "descartes-fleet 0.0.1 (bridge of descartes fleets)",
        );
        let refused = FleetProgram::find(None, &here.path().join("descartes")).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("answers `descartes-fleet 0.0.1")
        );
        let gone = FleetProgram::find(Some(&here.path().join("gone")), here.path());
        assert!(matches!(gone, Err(ProgramError::Unusable { .. })));
    }
}
