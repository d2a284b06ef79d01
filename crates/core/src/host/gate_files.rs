//! What a gate's verdict hangs on: the scripts that its command names, and the programs that the
//! shell would find for it. An agent that changes one of them is reported.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Larger files are known by size and time of change: hashing a compiler before every gate would
/// cost more than the gate.
const MOST: u64 = 1 << 20;

/// Fingerprints of the files that the gates' commands name: scripts by their name in the command,
/// programs by their path.
pub(super) fn gate_files(
    gates: &[String],
    dir: &Path,
    environment: &[(OsString, OsString)],
) -> BTreeMap<String, String> {
    let words = gates.iter().flat_map(|gate| {
        shell_words::split(gate)
            .unwrap_or_else(|_| gate.split_whitespace().map(str::to_owned).collect())
    });
    let mut files = BTreeMap::new();
    for word in words {
        if let Some(print) = fingerprint(&dir.join(&word)) {
            files.insert(word.clone(), print);
        }
        if let Some(program) = on_path(&word, dir, environment)
            && let Some(print) = fingerprint(&program)
        {
            files.insert(program.display().to_string(), print);
        }
    }
    files
}

/// The program that the shell would run for this word.
fn on_path(word: &str, dir: &Path, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if word.starts_with('-') || word.is_empty() || !word.chars().all(plain) {
        return None;
    }
    let (_, path) = environment.iter().find(|(key, _)| key == "PATH")?;
    std::env::split_paths(path)
        .map(|folder| dir.join(folder).join(word))
        .find(|program| {
            program
                .metadata()
                .is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
        })
}

fn fingerprint(path: &Path) -> Option<String> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if found.len() > MOST {
        return Some(format!(
            "{} bytes, changed {}.{:09}",
            found.len(),
            found.mtime(),
            found.mtime_nsec()
        ));
    }
    let bytes = fs_err::read(path).ok()?;
    let hash = Sha256::digest(&bytes);
    Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn scripts_and_programs_of_a_gate_are_known_and_a_change_of_either_shows() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, bin) = (folder.path().join("work"), folder.path().join("bin"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::create_dir(&bin).unwrap();
        let program = bin.join("check");
        std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.join("all.sh"), "exit 1\n").unwrap();
        let environment = [("PATH".into(), bin.clone().into_os_string())];
        let gates = ["check all.sh -x".to_owned()];
        let before = gate_files(&gates, &dir, &environment);
        let named: Vec<&str> = before.keys().map(String::as_str).collect();
        assert_eq!(named, [program.to_str().unwrap(), "all.sh"]);
        std::fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
        let after = gate_files(&gates, &dir, &environment);
        assert_ne!(before[named[0]], after[named[0]]);
        assert_eq!(before["all.sh"], after["all.sh"]);
    }
}
