//! What a gate's verdict hangs on: the scripts that its command names, the manifests of the programs
//! that it runs, and these programs. An agent that changes one of them is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use descartes_kernel::gate_files::{
    executed_names, expand, gate_file_names, gate_file_text, is_pattern, run_by_script,
};
use sha2::{Digest, Sha256};

/// The fingerprint of a file that is not there.
const ABSENT: &str = "absent";

/// Larger files are known by size and time of change: hashing a compiler before every gate would
/// cost more than the gate.
const MOST: u64 = 1 << 20;

/// Fingerprints of the files that the gates hang on: those of the tree by their name, programs by
/// their path.
pub(crate) fn gate_files(
    gates: &[String],
    dir: &Path,
    environment: &[(OsString, OsString)],
) -> BTreeMap<String, String> {
    gate_files_by(gates, dir, environment, |name| {
        fingerprint(name, &dir.join(name))
    })
}

/// Fingerprints of the programs on `PATH` that gates run.
pub(crate) fn gate_programs(
    gates: &[String],
    environment: &[(OsString, OsString)],
) -> BTreeMap<String, String> {
    let mut files = gate_files_by(gates, Path::new("/"), environment, |_| None);
    files.retain(|file, _| file.starts_with('/'));
    files
}

/// Fingerprints of the files in `dir` that commands run or read, as far as their words tell: scripts,
/// not the programs on `PATH`.
pub fn command_files(commands: &[String], dir: &Path) -> BTreeMap<String, String> {
    gate_files(commands, dir, &[])
}

/// The same, where the files of the tree are read in another way.
pub(crate) fn gate_files_by(
    gates: &[String],
    dir: &Path,
    environment: &[(OsString, OsString)],
    read: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let found = GateNames::find(gates, dir, environment);
    for name in found.names {
        if let Some(members) = found.patterns.get(&name) {
            // One more or less is a change, too.
            files.insert(name, fingerprint_of("", members.join("\n").as_bytes()));
            continue;
        }
        if let Some(program) = on_path(&name, dir, environment)
            && let Some(print) = fingerprint("", &program)
        {
            files.insert(program.display().to_string(), print);
        }
        if let Some(print) = read(&name) {
            files.insert(name, print);
        } else if found.executed.contains(&name) && !dir.join(&name).is_file() {
            // One that an agent makes is not as it was, either.
            files.insert(name, ABSENT.to_owned());
        }
    }
    files
}

/// Names of files that gates hang on: those that their commands name, and what scripts among them run in turn.
pub(crate) struct GateNames {
    pub(crate) names: BTreeSet<String>,
    pub(crate) executed: BTreeSet<String>,
    /// Patterns among them, and what they stand for.
    patterns: BTreeMap<String, Vec<String>>,
}

/// Scripts that start scripts are followed so far.
const MOST_SCRIPTS: usize = 200;

impl GateNames {
    pub(crate) fn find(gates: &[String], dir: &Path, environment: &[(OsString, OsString)]) -> Self {
        let variables = |name: &str| variable(environment, name);
        let mut found = Self {
            names: gate_file_names(gates, &variables),
            executed: executed_names(gates, &variables),
            patterns: BTreeMap::new(),
        };
        let mut left: Vec<String> = found.executed.iter().cloned().collect();
        while let Some(name) = left.pop().filter(|_| found.executed.len() < MOST_SCRIPTS) {
            let more = match is_pattern(&name) {
                true => {
                    let members = expand(&name, &|folder| entries(&dir.join(folder)));
                    found.patterns.insert(name, members.clone());
                    members
                }
                false => {
                    let text = script_text(&dir.join(&name)).unwrap_or_default();
                    run_by_script(&name, &text, &variables)
                        .into_iter()
                        .collect()
                }
            };
            for name in more {
                found.names.insert(name.clone());
                if found.executed.insert(name.clone()) {
                    left.push(name);
                }
            }
        }
        found
    }
}

fn variable(environment: &[(OsString, OsString)], name: &str) -> Option<String> {
    let mut all = environment.iter().rev();
    let (_, value) = all.find(|(key, _)| key == name)?;
    value.to_str().map(str::to_owned)
}

/// What is in a folder, and whether it is a folder itself.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.flatten().filter_map(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        Some((entry.file_name().into_string().ok()?, is_folder))
    });
    entries.collect()
}

fn script_text(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    let is_read = found.is_file() && found.len() <= MOST;
    is_read.then(|| fs_err::read_to_string(path).ok()).flatten()
}

/// Files that are not as they were, of those that the gates hang on now: gates that a person took
/// away hang on nothing.
pub(crate) fn changed(
    before: &BTreeMap<String, String>,
    gates: &[String],
    dir: &Path,
    environment: &[(OsString, OsString)],
) -> Vec<(String, Option<String>)> {
    let now = gate_files(gates, dir, environment);
    let names = GateNames::find(gates, dir, environment).names;
    before
        .iter()
        .filter(|(file, print)| is_named(file, &names) && now.get(*file) != Some(*print))
        .map(|(file, _)| (file.clone(), now.get(file).cloned()))
        .collect()
}

/// Whether a file of a baseline is one of these names, or a program that one of them stands for.
pub(crate) fn is_named(file: &str, names: &BTreeSet<String>) -> bool {
    let program = file.starts_with('/').then(|| file.rsplit('/').next());
    names.contains(file) || program.flatten().is_some_and(|base| names.contains(base))
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

fn fingerprint(name: &str, path: &Path) -> Option<String> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if found.len() > MOST {
        return Some(format!(
            "{} bytes, changed {}.{:09}",
            found.len(),
            found.mtime(),
            found.mtime_nsec()
        ));
    }
    Some(fingerprint_of(name, &fs_err::read(path).ok()?))
}

/// The fingerprint of a file with this content.
pub(crate) fn fingerprint_of(name: &str, bytes: &[u8]) -> String {
    let hash = match std::str::from_utf8(bytes) {
        Ok(text) => Sha256::digest(gate_file_text(name, text).as_bytes()),
        Err(_) => Sha256::digest(bytes),
    };
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
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
        assert!(changed(&before, &gates, &dir, &environment).is_empty());
        std::fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
        let after = gate_files(&gates, &dir, &environment);
        assert_ne!(before[named[0]], after[named[0]]);
        assert_eq!(before["all.sh"], after["all.sh"]);
        std::fs::remove_file(dir.join("all.sh")).unwrap();
        let now = changed(&before, &gates, &dir, &environment);
        let now: Vec<&str> = now.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(now, named);
        let gates = ["sh missing.sh wanted.txt".to_owned(), "make".to_owned()];
        let before = gate_files(&gates, &dir, &environment);
        std::fs::write(dir.join("GNUmakefile"), "all:\n").unwrap();
        std::fs::write(dir.join("missing.sh"), "exit 0\n").unwrap();
        std::fs::write(dir.join("wanted.txt"), "done\n").unwrap();
        let now = changed(&before, &gates, &dir, &environment);
        let now: Vec<&str> = now.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(now, ["GNUmakefile", "missing.sh"], "made by somebody");
        let others = changed(&before, &["true".to_owned()], &dir, &environment);
        assert!(others.is_empty(), "gates that are gone hang on nothing");
    }

    #[test]
    fn what_a_script_of_a_gate_starts_is_known_and_so_is_one_more_of_many() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        std::fs::create_dir(dir.join("ci")).unwrap();
        for (file, text) in [
            ("check.sh", "#!/bin/sh\n. ci/lib.sh\n"),
            ("ci/lib.sh", "./ci/last\n"),
            ("ci/last", "#!/bin/sh\nexit 1\n"),
        ] {
            std::fs::write(dir.join(file), text).unwrap();
        }
        let changed_by = |gate: &str, file: &str| {
            let gates = [gate.to_owned()];
            let before = gate_files(&gates, dir, &[]);
            std::fs::write(dir.join(file), "exit 0\n").unwrap();
            let now = changed(&before, &gates, dir, &[]);
            now.into_iter().map(|(file, _)| file).collect::<Vec<_>>()
        };
        assert_eq!(changed_by("timeout 5 ./check.sh", "ci/last"), ["ci/last"]);
        assert_eq!(changed_by("sh check.sh", "ci/lib.sh"), ["ci/lib.sh"]);
        let gate = "for f in ci/*.sh; do sh $f; done";
        assert_eq!(changed_by(gate, "ci/new.sh"), ["ci/*.sh"]);
    }
}
