//! A search for work that may be lost.

use std::path::Path;

use super::Trial;
use crate::shell::root;

/// Those of these texts that are found neither in a file of the world, apart from the scripts of
/// its agents, nor in an object of the project's repository that a ref reaches.
pub fn lost<'t>(trial: &Trial<'_>, texts: &[&'t str]) -> Vec<&'t str> {
    let mut missing = texts.to_vec();
    let scripts = trial.world.root().join("agents");
    look_in_files(trial.world.root(), &scripts, &mut missing);
    if !missing.is_empty() {
        let objects = reachable_objects(trial);
        missing.retain(|text| !holds(&objects, text));
    }
    missing
}

/// Copies a world in which something was lost to where it can be looked at, and says where.
pub fn keep_world(trial: &Trial<'_>, name: &str) -> String {
    let to = root().join("target/measurements/lost").join(name);
    let copied = std::fs::create_dir_all(&to)
        .and_then(|()| {
            let mut copy = std::process::Command::new("cp");
            copy.arg("-a").arg(trial.world.root()).arg(&to).status()
        })
        .is_ok_and(|status| status.success());
    match copied {
        true => format!("its world is in {}", to.display()),
        false => "its world could not be kept".to_owned(),
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

fn look_in_files(folder: &Path, but: &Path, missing: &mut Vec<&str>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path != but) {
        if missing.is_empty() {
            return;
        }
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => look_in_files(&path, but, missing),
            Ok(meta) if meta.is_file() && !is_record(&path) => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                missing.retain(|text| !holds(&bytes, text));
            }
            _ => {}
        }
    }
}

/// Journals and logs quote what agents print, which is not the work itself.
fn is_record(path: &Path) -> bool {
    path.extension()
        .is_some_and(|name| name == "jsonl" || name == "log")
}

fn reachable_objects(trial: &Trial<'_>) -> Vec<u8> {
    let script = "git rev-list --all --objects | cut -d' ' -f1 | git cat-file --batch --buffer";
    let mut command = trial.world.command("sh");
    let output = command.args(["-c", script]).output();
    output.map(|output| output.stdout).unwrap_or_default()
}
