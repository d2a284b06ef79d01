//! `cargo xtask load [--short]`: the tests beside six busy loops and six writers to the disk. Whoever builds on
//! a busy machine must not be told of failures that are none.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::lab::Form;
use crate::shell::{Step, answers, root};
use crate::suite;

const OF_EACH_KIND: usize = 6;

/// `load [--short]`: in the long form all tests twice, and ten times those that look at a clock; in the short
/// form these once.
pub fn run(rest: &[String]) -> Step {
    let form = match rest {
        [] => Form::Long,
        [word] if word == "--short" => Form::Short,
        _ => return Err("load takes --short, or nothing".to_owned()),
    };
    if !answers("cargo", &["nextest", "--version"]) {
        println!("skipped: cargo-nextest is not installed, which tells the tests by name");
        return Ok(());
    }
    let clocks = look_at_clocks()?;
    suite::build()?;
    let _load = Load::begin()?;
    for _ in 0..form.pick(0, 2) {
        suite::run_all(&["--no-fail-fast".to_owned()], suite::Extent::Everyday)?;
    }
    for _ in 0..form.pick(1, 10) {
        suite::run_chosen(&clocks)?;
    }
    Ok(())
}

/// Processes that keep the processors and the disk busy, until it is dropped.
struct Load {
    children: Vec<Child>,
    folder: PathBuf,
}

impl Load {
    fn begin() -> Result<Self, String> {
        let folder = root().join("target/load");
        let failed = |error: std::io::Error| format!("load: {error}");
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut load = Self {
            children: Vec::new(),
            folder,
        };
        for n in 0..OF_EACH_KIND {
            // They end with this process, however it ends.
            let alive = format!("while kill -0 {} 2>/dev/null", std::process::id());
            let write = "dd if=/dev/zero of=$0 bs=1M count=64 conv=fsync 2>/dev/null";
            for text in [":", write] {
                let text = format!("{alive}; do {text}; done");
                let mut command = Command::new("sh");
                command
                    .args(["-c", &text, &n.to_string()])
                    .current_dir(&load.folder);
                let command = command.stdin(Stdio::null()).process_group(0);
                load.children.push(command.spawn().map_err(failed)?);
            }
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Not reaped yet, so its group is its own.
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).ok();
            drop(child.wait());
        }
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// A filter of nextest for the modules with tests that compare times.
fn look_at_clocks() -> Result<String, String> {
    let mut rows = BTreeSet::new();
    let crates = fs::read_dir(root().join("crates"));
    let crates = crates.map_err(|error| format!("crates: {error}"))?;
    for folder in crates.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        for below in ["src", "tests"] {
            let top = folder.path().join(below);
            for file in sources(&top) {
                let text = fs::read_to_string(&file).unwrap_or_default();
                if text.contains("#[test]") && text.contains(".elapsed()") {
                    rows.insert(filter_of(&name, &top, &file, below == "tests"));
                }
            }
        }
    }
    match rows.is_empty() {
        true => Err("no test looks at a clock: the search is broken".to_owned()),
        false => Ok(rows.into_iter().collect::<Vec<_>>().join(" | ")),
    }
}

fn filter_of(package: &str, top: &Path, file: &Path, is_test: bool) -> String {
    let below = file.strip_prefix(top).unwrap_or(file);
    let stem = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let first = below.components().next();
    let first = first.map_or_else(String::new, |first| stem(Path::new(first.as_os_str())));
    let module = match stem(below).as_str() {
        "mod" | "main" | "lib" => below.parent().map_or_else(String::new, stem),
        name => name.to_owned(),
    };
    match is_test {
        // Not as the module of a binary with several files: the file is the binary.
        true if below.components().count() == 1 => {
            format!("binary_id(=descartes-{package}::{first})")
        }
        true => format!("(binary_id(=descartes-{package}::{first}) & test(/(^|::){module}::/))"),
        false => format!("(package(=descartes-{package}) & test(/(^|::){module}::/))"),
    }
}

fn sources(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![top.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_look_at_a_clock_are_found_in_binaries_and_modules() {
        let filter = look_at_clocks().unwrap();
        for row in [
            "binary_id(=descartes-proc::endings)",
            "(binary_id(=descartes-cli::it) & test(/(^|::)notify::/))",
            "(package(=descartes-store) & test(/(^|::)watching::/))",
        ] {
            assert!(filter.contains(row), "{row} in {filter}");
        }
    }
}
