//! Which files a gate's verdict hangs on, as far as its command tells: the words that may be files,
//! and the manifests of the programs that it runs (`Makefile` for make, `package.json` for npm).

use std::collections::BTreeSet;

/// Programs that do what a file of the project says, and these files.
const MANIFESTS: [(&[&str], &[&str]); 15] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (
        &["npm", "npx", "yarn", "pnpm", "bun", "bunx"],
        &["package.json"],
    ),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (
        &["pytest", "py.test"],
        &[
            "pytest.ini",
            "conftest.py",
            "pyproject.toml",
            "tox.ini",
            "setup.cfg",
        ],
    ),
    (&["tox"], &["tox.ini", "pyproject.toml", "setup.cfg"]),
    (&["nox"], &["noxfile.py"]),
    (
        &["cargo"],
        &["Cargo.toml", ".cargo/config.toml", ".cargo/config"],
    ),
    (&["rake"], &["Rakefile"]),
    (&["mvn"], &["pom.xml"]),
    (&["gradle"], &["build.gradle", "build.gradle.kts"]),
    (&["composer"], &["composer.json"]),
    (&["mix"], &["mix.exs"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["ctest", "cmake"], &["CMakeLists.txt"]),
];

/// Flags that name the folder in which the program works.
const FOLDERS: [&str; 6] = [
    "-C",
    "--prefix",
    "--cwd",
    "--dir",
    "--directory",
    "--project",
];

/// Names, relative to where the gates run, of files that their verdict may hang on. Most of them
/// will not be files at all.
pub fn gate_file_names(gates: &[String]) -> BTreeSet<String> {
    let mut found = Found::default();
    for gate in gates {
        found.take(gate, "");
    }
    found.names
}

#[derive(Default)]
struct Found {
    names: BTreeSet<String>,
}

impl Found {
    /// Takes a command that begins in this folder.
    fn take(&mut self, command: &str, folder: &str) {
        let words = shell_words::split(command)
            .unwrap_or_else(|_| command.split_whitespace().map(str::to_owned).collect());
        let mut here = folder.to_owned();
        let mut folders = vec![here.clone()];
        let mut programs: Vec<&'static [&'static str]> = Vec::new();
        let mut before = String::new();
        for word in &words {
            if word.contains(char::is_whitespace) && word != command {
                // A command within the command: sh -c '…'.
                self.take(word, &here);
            }
            let word = word.trim_matches([';', '&', '|', '(', ')', '<', '>']);
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => (flag, value),
                _ => (before.as_str(), word),
            };
            if before == "cd" {
                here = joined(&here, word);
                folders.push(here.clone());
            } else if FOLDERS.contains(&flag) {
                folders.push(joined(&here, value));
            }
            let base = word.rsplit('/').next().unwrap_or(word);
            let manifests = MANIFESTS.iter().filter(|(names, _)| names.contains(&base));
            programs.extend(manifests.map(|(_, files)| *files));
            let is_name = |text: &str| !text.is_empty() && !text.starts_with('-');
            if is_name(word) {
                self.names.insert(joined(&here, word));
            } else if is_name(value) {
                self.names.insert(joined(&here, value));
            }
            before = word.to_owned();
        }
        for folder in &folders {
            let files = programs.iter().copied().flatten();
            self.names.extend(files.map(|file| joined(folder, file)));
        }
    }
}

fn joined(folder: &str, name: &str) -> String {
    let name = name.strip_prefix("./").unwrap_or(name);
    match folder {
        _ if name.starts_with('/') => name.to_owned(),
        "" => name.to_owned(),
        folder => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// What of a file matters to a gate: dependencies that an agent adds to a manifest do not.
pub fn gate_file_text(name: &str, text: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    match base {
        "package.json" | "composer.json" => without_dependencies(text),
        "Cargo.toml" => sections(text, |head| {
            !head.contains("dependencies") && !head.starts_with("[patch")
        }),
        "pyproject.toml" => sections(text, |head| head.starts_with("[tool.")),
        _ => text.to_owned(),
    }
}

fn without_dependencies(text: &str) -> String {
    let Ok(serde_json::Value::Object(mut map)) = serde_json::from_str(text) else {
        return text.to_owned();
    };
    map.retain(|key, _| {
        let key = key.to_ascii_lowercase();
        !key.ends_with("dependencies")
            && key != "version"
            && key != "require"
            && key != "require-dev"
    });
    serde_json::Value::Object(map).to_string()
}

/// The sections of a TOML text whose head is wanted; what stands before the first is.
fn sections(text: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut keep = true;
    let mut kept = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            keep = wanted(line);
        }
        let skipped = line.is_empty() || line.starts_with('#') || line.starts_with("version");
        if keep && !skipped {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(gate: &str) -> Vec<String> {
        gate_file_names(&[gate.to_owned()]).into_iter().collect()
    }

    #[test]
    fn scripts_and_manifests_of_a_command_are_named() {
        for (gate, file) in [
            ("./check.sh", "check.sh"),
            ("sh tests/all.sh -x", "tests/all.sh"),
            ("make check test", "Makefile"),
            ("make -C sub check", "sub/Makefile"),
            ("cd web && npm test", "web/package.json"),
            ("npm --prefix=web test", "web/package.json"),
            ("sh -c 'cd a; ./b.sh'", "a/b.sh"),
            ("python -m pytest -q", "conftest.py"),
            ("just check", "justfile"),
            ("cargo test --manifest-path=x/Cargo.toml", "x/Cargo.toml"),
            ("/usr/bin/make", "Makefile"),
            ("(./a.sh; ./b.sh)", "b.sh"),
        ] {
            let found = names(gate);
            assert!(found.contains(&file.to_owned()), "{gate}: {found:?}");
        }
        assert!(!names("true").contains(&"Makefile".to_owned()));
    }

    #[test]
    fn new_dependencies_are_no_change_and_new_scripts_are() {
        let package = |script: &str, rest: &str| {
            let text = format!(r#"{{"scripts":{{"test":"{script}"}}{rest}}}"#);
            gate_file_text("web/package.json", &text)
        };
        let before = package("jest", "");
        assert_eq!(before, package("jest", r#","dependencies":{"a":"1"}"#));
        assert_ne!(before, package("true", ""));
        let cargo = |text: &str| gate_file_text("Cargo.toml", text);
        let plain = cargo("[package]\nname = \"a\"\n");
        assert_eq!(
            plain,
            cargo("[package]\nname = \"a\"\n\n[dependencies]\nb = \"1\"\n")
        );
        assert_ne!(
            plain,
            cargo("[package]\nname = \"a\"\n[lib]\ntest = false\n")
        );
        assert_ne!(gate_file_text("check.sh", "exit 1"), "exit 0");
    }
}
