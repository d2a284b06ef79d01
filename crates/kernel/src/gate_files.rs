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
    let mut found = FoundNames::default();
    for gate in gates {
        found.take(gate, "");
    }
    found.names
}

/// Those of them that a gate runs: scripts and manifests. Where one is missing when the loop begins and
/// an agent makes it, the agent has made the gate; a file that a gate only looks for is its task.
pub fn executed_names(gates: &[String]) -> BTreeSet<String> {
    let mut found = FoundNames::default();
    for gate in gates {
        found.take(gate, "");
    }
    found.executed
}

/// Those of them that are scripts of the project: what a program such as make reads is an agent's to change.
pub fn script_names(gates: &[String]) -> BTreeSet<String> {
    let is_manifest = |name: &String| {
        let base = name.rsplit('/').next().unwrap_or(name);
        let mut files = MANIFESTS.iter().flat_map(|(_, files)| files.iter());
        files.any(|file| file.rsplit('/').next() == Some(base))
    };
    let mut names = executed_names(gates);
    names.retain(|name| !is_manifest(name));
    names
}

/// Programs that run the file that they are given first.
const INTERPRETERS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "fish", "python", "python3", "node", "ruby", "perl", "php", ".",
];

/// Words of a shell behind which a command begins.
const BEFORE_COMMANDS: [&str; 9] = [
    "then", "do", "else", "!", "exec", "time", "nice", "env", "source",
];

/// Programs that only look at the files that they are given: nothing of them is run, and they compare with no
/// file that says what is right. Of all others nobody knows.
const LOOKERS: [&str; 8] = ["test", "[", "grep", "egrep", "fgrep", "ls", "wc", "stat"];

/// The words of a command, by their number, that are files which it only looks at. Where the shell may
/// understand the command otherwise than these words say, there are none: a warning too many is better
/// than one too few.
fn looked_at(command: &str, words: &[String]) -> BTreeSet<usize> {
    let is_separator = |word: &str| matches!(word, ";" | "&&" | "||" | "|" | "&");
    let is_plain = |word: &str| {
        let word = word.strip_suffix(';').unwrap_or(word);
        !word.contains([';', '&', '|', '(', ')', '$', '`', '{', '}']) || word == "2>&1"
    };
    let is_clear = |word: &String| is_separator(word) || is_plain(word);
    if command.contains('\n') || !words.iter().all(is_clear) {
        return BTreeSet::new();
    }
    let mut found = BTreeSet::new();
    let mut first = 0;
    while first < words.len() {
        let rest = &words[first..];
        let ends = |word: &String| is_separator(word) || word.ends_with(';');
        let length = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
        let (part, end) = (&rest[..length], rest[length - 1].as_str());
        let program = part.iter().position(|word| word != "!").unwrap_or(0);
        // What is printed for another program may be run by that.
        if end != "|" && is_look(&part[program], &part[program + 1..]) {
            found.extend(first + program + 1..first + length);
        }
        first += length;
    }
    found
}

fn is_look(program: &str, arguments: &[String]) -> bool {
    let short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    // A file with patterns decides what is found.
    let has_patterns =
        |word: &String| word.starts_with("--f") || (short(word) && word.contains('f'));
    LOOKERS.contains(&program) && !(program.ends_with("grep") && arguments.iter().any(has_patterns))
}

#[derive(Default)]
struct FoundNames {
    names: BTreeSet<String>,
    executed: BTreeSet<String>,
}

impl FoundNames {
    /// Takes a command that begins in this folder.
    fn take(&mut self, command: &str, folder: &str) {
        let words = shell_words::split(command)
            .unwrap_or_else(|_| command.split_whitespace().map(str::to_owned).collect());
        let mut here = folder.to_owned();
        let mut folders = vec![here.clone()];
        let mut programs: Vec<&'static [&'static str]> = Vec::new();
        let mut before = String::new();
        let mut place = WordPosition::Command;
        let looked_at = looked_at(command, &words);
        for (at, word) in words.iter().enumerate() {
            if word.contains(char::is_whitespace) && word != command {
                // A command within the command: sh -c '…'.
                self.take(word, &here);
            }
            let runs = place.is_run(word);
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
            if runs && is_name(word) {
                self.executed.insert(joined(&here, word));
            }
            if looked_at.contains(&at) {
                // Its content is what the agent is to bring about.
            } else if is_name(word) {
                self.names.insert(joined(&here, word));
            } else if is_name(value) {
                self.names.insert(joined(&here, value));
            }
            before = word.to_owned();
        }
        for folder in &folders {
            let files = programs.iter().copied().flatten();
            for file in files.map(|file| joined(folder, file)) {
                self.executed.insert(file.clone());
                self.names.insert(file);
            }
        }
    }
}

/// Where the next word of a command stands.
#[derive(PartialEq)]
enum WordPosition {
    /// Where a program is named.
    Command,
    /// Behind a program that runs a file.
    Script,
    Argument,
}

impl WordPosition {
    /// Whether this word is a file that is run; goes on to the next.
    fn is_run(&mut self, raw: &str) -> bool {
        let word = raw.trim_matches([';', '&', '|', '(', ')', '<', '>']);
        let is_file = !word.contains(char::is_whitespace);
        let base = word.rsplit('/').next().unwrap_or(word);
        let (run, next) = match self {
            _ if word.is_empty() => (false, Self::Command),
            Self::Command if BEFORE_COMMANDS.contains(&word) => (false, Self::Command),
            Self::Command if word.split('/').next().is_some_and(|w| w.contains('=')) => {
                (false, Self::Command)
            }
            Self::Command if INTERPRETERS.contains(&base) => (false, Self::Script),
            Self::Command => (is_file && word.contains('/'), Self::Argument),
            Self::Script if matches!(word, "-c" | "-m") => (false, Self::Argument),
            Self::Script if word.starts_with('-') => (false, Self::Script),
            Self::Script => (is_file, Self::Argument),
            Self::Argument => (false, Self::Argument),
        };
        *self = match raw.ends_with([';', '&', '|', '(']) {
            true => Self::Command,
            false => next,
        };
        run
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
    fn scripts_and_manifests_are_run_and_other_files_are_looked_for() {
        let executed = |gate: &str| executed_names(&[gate.to_owned()]);
        for (gate, files) in [
            ("./check.sh --all", &["check.sh"][..]),
            ("sh -e tests/all.sh x.txt", &["tests/all.sh"]),
            ("cd web && ./run; bash ../b.sh", &["web/../b.sh", "web/run"]),
            ("test -e done.txt", &[]),
            ("grep -q x out/report.md && bin/verify", &["bin/verify"]),
            ("A=1 ./a.sh | tee log.txt", &["a.sh"]),
            ("sh -c './b.sh; test -f c.txt'", &["b.sh"]),
            ("python -m pytest tests/x.py", &[]),
            ("just check", &[".justfile", "Justfile", "justfile"]),
        ] {
            let found: Vec<String> = executed(gate).into_iter().collect();
            let manifests = [
                "pytest.ini",
                "conftest.py",
                "pyproject.toml",
                "tox.ini",
                "setup.cfg",
            ];
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let rest = found.iter().filter(|file| !manifests.contains(*file));
            assert_eq!(rest.copied().collect::<Vec<_>>(), files, "{gate}");
        }
        assert!(executed("make check").contains("GNUmakefile"));
        let scripts = script_names(&["make check && sh ci/a.sh".to_owned()]);
        assert_eq!(scripts.into_iter().collect::<Vec<_>>(), ["ci/a.sh"]);
    }

    #[test]
    fn files_that_a_gate_only_looks_at_are_none_of_its_own() {
        for (gate, files) in [
            ("test -s base.txt", &[][..]),
            ("[ -s base.txt ] && grep -q more base.txt", &[]),
            ("! grep -rq TODO src/a.rs; ls out.txt", &[]),
            ("wc -l base.txt 2>&1 > out.txt", &[]),
            ("cd sub && test -e a.txt", &[]),
            // Run by what follows, or printed for something that may run it.
            ("test -x run.sh && ./run.sh", &["run.sh"]),
            ("grep -v '^#' steps.txt | sh", &["steps.txt"]),
            ("grep -v x tests.txt | xargs ./t.sh", &["t.sh", "tests.txt"]),
            // What is right stands in a file.
            ("grep -qf wanted.txt a.txt", &["a.txt", "wanted.txt"]),
            ("grep --file=wanted.txt a.txt", &["a.txt", "wanted.txt"]),
            ("diff wanted.txt a.txt", &["a.txt", "wanted.txt"]),
            ("cat steps.txt", &["steps.txt"]),
            // The shell may see another command here.
            ("test -s a.txt;sh b.sh", &["a.txt;sh", "b.sh"]),
            ("test -s a.txt\nsh b.sh", &["a.txt", "b.sh"]),
            ("test -s $(sh b.sh)", &["b.sh"]),
            ("sh <(grep x b.sh)", &["b.sh"]),
            ("find a.txt -exec grep x b.sh +", &["a.txt", "b.sh"]),
            ("A=1 grep x b.sh", &["b.sh"]),
        ] {
            let mut found = names(gate);
            found.retain(|name| [".txt", ".sh", ".rs"].iter().any(|end| name.contains(end)));
            assert_eq!(found, files, "{gate}");
        }
        // One gate looks at it, another runs it.
        let both = ["test -s a.sh".to_owned(), "sh a.sh".to_owned()];
        assert!(gate_file_names(&both).contains("a.sh"));
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
