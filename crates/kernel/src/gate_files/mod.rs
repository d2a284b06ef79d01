//! Which files a gate's verdict hangs on, as far as its command tells: the words that may be files,
//! and the manifests of the programs that it runs (`Makefile` for make, `package.json` for npm).

mod glob;
mod shell;

use std::collections::BTreeSet;

pub use glob::{expand, is_pattern};
use shell::{Shell, ShellCommand, UNKNOWN};

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

/// What variables hold where the gates run.
pub type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Names, relative to where the gates run, of files that their verdict may hang on. Most of them
/// will not be files at all; some are patterns.
pub fn gate_file_names(gates: &[String], variables: Variables<'_>) -> BTreeSet<String> {
    found_in(gates, variables).names
}

/// Those of them that a gate runs: scripts and manifests. Where one is missing when the loop begins and
/// an agent makes it, the agent has made the gate; a file that a gate only looks for is its task.
pub fn executed_names(gates: &[String], variables: Variables<'_>) -> BTreeSet<String> {
    found_in(gates, variables).executed
}

/// Those of them that are scripts of the project: what a program such as make reads is an agent's to change.
pub fn script_names(gates: &[String], variables: Variables<'_>) -> BTreeSet<String> {
    let mut names = executed_names(gates, variables);
    names.retain(|name| !is_manifest(name));
    names
}

fn is_manifest(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let mut files = MANIFESTS.iter().flat_map(|(_, files)| files.iter());
    files.any(|file| file.rsplit('/').next() == Some(base))
}

/// Programs without a folder that gates begin with: looked for on the PATH, which may lead into the work tree.
pub fn program_names(gates: &[String], variables: Variables<'_>) -> BTreeSet<String> {
    found_in(gates, variables).programs
}

fn found_in(gates: &[String], variables: Variables<'_>) -> FoundNames {
    let mut found = FoundNames::default();
    for gate in gates {
        found.take(&mut Shell::new(variables, None), gate, "");
    }
    found
}

/// What a shell script runs, relative to where it is started. What it runs for its output, as a test does with
/// what is under test, is the agent's to write.
pub fn run_by_script(name: &str, text: &str, variables: Variables<'_>) -> BTreeSet<String> {
    if !is_shell_script(name, text) {
        return BTreeSet::new();
    }
    let mut found = FoundNames {
        looks_at_output: true,
        ..FoundNames::default()
    };
    found.take(&mut Shell::new(variables, Some(name)), text, "");
    found.executed
}

/// Whether a shell reads it: by its first line, else by its name.
fn is_shell_script(name: &str, text: &str) -> bool {
    let Some(first) = text.lines().next().filter(|line| line.starts_with("#!")) else {
        let base = name.rsplit('/').next().unwrap_or(name);
        return base.ends_with("sh") || !base.contains('.');
    };
    let words = first.trim_start_matches("#!").split_whitespace();
    let mut programs = words.filter_map(|word| word.rsplit('/').next());
    programs.any(|program| SHELLS.contains(&program))
}

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

/// Programs that run the file that they are given first, or what they read.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "python", "python3", "node", "ruby", "perl",
    "php", "lua", ".", "source",
];

/// Programs that start another: their options that have a value of their own, and how many words come before
/// the command.
const STARTERS: [(&str, &str, usize); 24] = [
    ("timeout", "ks", 1),
    ("env", "uC", 0),
    ("nice", "n", 0),
    ("ionice", "cn", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("time", "fo", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "a", 0),
    ("stdbuf", "ioe", 0),
    ("unbuffer", "", 0),
    ("chronic", "", 0),
    ("flock", "wE", 1),
    ("taskset", "", 1),
    ("chrt", "", 1),
    ("sudo", "ugCpT", 0),
    ("doas", "uC", 0),
    ("xargs", "nPIsLdEa", 0),
    ("xvfb-run", "nsfe", 0),
    ("faketime", "", 1),
    ("strace", "oep", 0),
    ("watch", "n", 0),
    ("retry", "td", 0),
];

/// The same behind a word of theirs: `uv run`.
const RUNNERS: [(&str, &str); 10] = [
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("pdm", "run"),
    ("rye", "run"),
    ("bundle", "exec"),
    ("mise", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
];

/// Programs that only look at the files that they are given: nothing of them is run, and they compare with no
/// file that says what is right. Of all others nobody knows.
const LOOKERS: [&str; 8] = ["test", "[", "grep", "egrep", "fgrep", "ls", "wc", "stat"];

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
    programs: BTreeSet<String>,
    /// What is run for its output counts for nothing.
    looks_at_output: bool,
}

impl FoundNames {
    /// Takes commands that begin in this folder.
    fn take(&mut self, shell: &mut Shell<'_>, text: &str, folder: &str) {
        let commands = shell.commands(text);
        // Where each bracket began.
        let mut here = vec![folder.to_owned()];
        let mut manifests: Vec<&'static str> = Vec::new();
        let mut folders = vec![folder.to_owned()];
        for (n, command) in commands.iter().enumerate() {
            let place = here.last().cloned().unwrap_or_default();
            here.resize(command.depth + 1, place);
            let at = here[command.depth].clone();
            let before = (command.is_fed && n > 0).then(|| &commands[n - 1]);
            if let Some(to) = self.command(shell, command, before, &at) {
                folders.push(to.clone());
                here[command.depth] = to;
            }
            for word in &command.words {
                let base = word.rsplit('/').next().unwrap_or(word);
                let of_program = MANIFESTS.iter().filter(|(names, _)| names.contains(&base));
                manifests.extend(of_program.flat_map(|(_, files)| files.iter()));
            }
            folders.extend(folders_of(&command.words, &at));
        }
        for folder in &folders {
            for file in &manifests {
                self.executed.insert(joined(folder, file));
                self.names.insert(joined(folder, file));
            }
        }
    }

    /// Takes a command; gives the folder that it goes to.
    fn command(
        &mut self,
        shell: &mut Shell<'_>,
        command: &ShellCommand,
        before: Option<&ShellCommand>,
        here: &str,
    ) -> Option<String> {
        if self.looks_at_output && command.is_used {
            return None;
        }
        let words = &command.words[started(&command.words)..];
        let arguments = words.get(1..).unwrap_or_default();
        let program = words.first().map_or("", String::as_str);
        let base = program.rsplit('/').next().unwrap_or(program);
        for file in &command.reads {
            self.name(here, file);
        }
        if command.is_used || !is_look(program, arguments) {
            self.words(&command.words, here);
        }
        let looks = is_look(program, arguments) || matches!(program, "echo" | "printf");
        for (n, inner) in command.words.iter().enumerate().filter(|_| !looks) {
            // A command within the command: su -c '…', watch '…'.
            let is_command = n > 0 && matches!(command.words[n - 1].as_str(), "-c" | "--command");
            if inner.contains(char::is_whitespace) || (is_command && inner.contains('/')) {
                self.take(shell, inner, here);
            }
        }
        match base {
            "" => {}
            "cd" | "pushd" => {
                let to = arguments.iter().find(|word| !word.starts_with('-'));
                return to.map(|to| joined(here, to));
            }
            "eval" => self.take(shell, &arguments.join(" "), here),
            "run-parts" => {
                let folders = arguments.iter().filter(|word| !word.starts_with('-'));
                for folder in folders {
                    self.execute(here, &format!("{folder}/*"));
                }
            }
            "find" => self.find(arguments, here),
            _ if INTERPRETERS.contains(&program) || INTERPRETERS.contains(&base) => {
                self.interpreter(shell, base, arguments, command, before, here);
            }
            _ if program.contains('/') || is_script_of(&command.words, program) => {
                self.execute(here, program);
            }
            _ => {
                let paths = command.set.iter().filter(|(name, _)| name == "PATH");
                let folders = paths.flat_map(|(_, path)| path.split(':'));
                for folder in folders.filter(|folder| is_name(folder)) {
                    self.execute(here, &format!("{folder}/{program}"));
                }
                self.programs.insert(program.to_owned());
            }
        }
        None
    }

    fn words(&mut self, words: &[String], here: &str) {
        for word in words {
            if let Some((_, value)) = word.split_once('=').filter(|_| word.starts_with('-')) {
                self.name(here, value);
            }
            self.name(here, word);
        }
    }

    fn name(&mut self, here: &str, word: &str) {
        if is_name(word) {
            self.names.insert(joined(here, word));
        }
    }

    fn execute(&mut self, here: &str, word: &str) {
        if is_name(word) && !word.contains(char::is_whitespace) {
            self.executed.insert(joined(here, word));
            self.names.insert(joined(here, word));
        }
    }

    fn interpreter(
        &mut self,
        shell: &mut Shell<'_>,
        base: &str,
        arguments: &[String],
        command: &ShellCommand,
        before: Option<&ShellCommand>,
        here: &str,
    ) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            match cluster {
                Some(short) if short.ends_with('c') || short == "e" && !is_shell(base) => {
                    if let Some(text) = words.next().filter(|_| is_shell(base)) {
                        self.take(shell, text, here);
                    }
                    return;
                }
                Some("m") => return,
                Some(short) if short.ends_with('o') && is_shell(base) => drop(words.next()),
                Some("W" | "X" | "r" | "I") => drop(words.next()),
                Some(_) => {}
                None if word.starts_with("--") => {}
                None => return self.execute(here, word),
            }
        }
        // Without a script it runs what it reads.
        for file in &command.reads {
            self.execute(here, file);
        }
        if is_shell(base) && !command.input.is_empty() {
            self.take(shell, &command.input, here);
        }
        if let Some(before) = before {
            self.printed(before, here);
        }
    }

    /// Files that a command prints, by content or name, for one that runs what it is given.
    fn printed(&mut self, command: &ShellCommand, here: &str) {
        match command.words.split_first() {
            Some((program, arguments)) if program == "find" => {
                for pattern in find_patterns(arguments) {
                    self.execute(here, &pattern);
                }
            }
            Some((program, files))
                if matches!(program.as_str(), "cat" | "ls" | "echo" | "printf") =>
            {
                for file in files.iter().filter(|file| file.contains(['/', '.'])) {
                    self.execute(here, file);
                }
            }
            _ => {}
        }
    }

    /// `find ci -name '*.sh' -exec sh {} \;` runs what it finds.
    fn find(&mut self, arguments: &[String], here: &str) {
        let is_exec = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok");
        let Some(at) = arguments.iter().position(is_exec) else {
            return;
        };
        let run = &arguments[at + 1..];
        let run = &run[started(run)..];
        let runs = match run.split_first() {
            Some((program, _)) if program == "{}" => true,
            Some((program, rest)) => {
                let base = program.rsplit('/').next().unwrap_or(program);
                self.execute_if_path(here, program);
                let first = rest.iter().find(|word| !word.starts_with('-'));
                INTERPRETERS.contains(&base) && first.is_some_and(|word| word == "{}")
            }
            None => false,
        };
        for pattern in find_patterns(&arguments[..at]).iter().filter(|_| runs) {
            self.execute(here, pattern);
        }
    }

    fn execute_if_path(&mut self, here: &str, program: &str) {
        if program.contains('/') {
            self.execute(here, program);
        }
    }
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// `uv run check.py` runs a file without a folder.
fn is_script_of(words: &[String], program: &str) -> bool {
    let is_run = |first: &String| RUNNERS.iter().any(|(name, _)| first == name);
    program.contains('.') && words.first().is_some_and(is_run)
}

/// Where the command that is started in the end begins, behind programs that start another.
fn started(words: &[String]) -> usize {
    let mut at = 0;
    while at < words.len() {
        let program = words[at].rsplit('/').next().unwrap_or(&words[at]);
        let verb = words.get(at + 1).map_or("", String::as_str);
        if RUNNERS.contains(&(program, verb)) {
            at += 2;
        } else if let Some((_, valued, skipped)) =
            STARTERS.iter().find(|(name, ..)| *name == program)
        {
            at = behind(words, at + 1, valued, *skipped);
            continue;
        } else {
            return at;
        }
        at = behind(words, at, "", 0);
    }
    words.len()
}

/// Skips options, variables that are set, and so many other words.
fn behind(words: &[String], mut at: usize, valued: &str, mut skipped: usize) -> usize {
    while let Some(word) = words.get(at) {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if let Some(short) = short {
            let last = short.chars().last().filter(|_| short.chars().count() == 1);
            at += usize::from(last.is_some_and(|last| valued.contains(last)));
        } else if word.starts_with("--") || (word.contains('=') && !word.starts_with(['.', '/'])) {
        } else if skipped > 0 {
            skipped -= 1;
        } else {
            return at;
        }
        at += 1;
    }
    at
}

/// What `find` looks for, as patterns.
fn find_patterns(arguments: &[String]) -> Vec<String> {
    let is_folder = |word: &&String| !word.starts_with(['-', '(', '!']);
    let mut folders: Vec<&str> = arguments
        .iter()
        .take_while(is_folder)
        .map(String::as_str)
        .collect();
    if folders.is_empty() {
        folders.push(".");
    }
    let named = arguments
        .iter()
        .position(|word| matches!(word.as_str(), "-name" | "-iname"));
    let name = named
        .and_then(|at| arguments.get(at + 1))
        .map_or("*", String::as_str);
    let patterns = folders
        .iter()
        .map(|folder| format!("{}/**/{name}", folder.trim_end_matches('/')));
    patterns.collect()
}

/// Folders in which a program is told to work.
fn folders_of(words: &[String], here: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.as_str(), words.get(n + 1).map(String::as_str)),
        };
        if let Some(value) = value.filter(|value| FOLDERS.contains(&flag) && is_name(value)) {
            found.push(joined(here, value));
        }
    }
    found
}

/// Whether a word may name a file.
fn is_name(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains([UNKNOWN, '\n'])
}

/// A name in a folder, without what leads nowhere.
fn joined(folder: &str, name: &str) -> String {
    let whole = match (folder, name.starts_with('/')) {
        (_, true) | ("", _) => name.to_owned(),
        (folder, _) => format!("{folder}/{name}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            (part, _) => parts.push(part),
        }
    }
    let root = if whole.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
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

    fn none(_: &str) -> Option<String> {
        None
    }

    fn names(gate: &str) -> Vec<String> {
        gate_file_names(&[gate.to_owned()], &none)
            .into_iter()
            .collect()
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
        let executed = |gate: &str| executed_names(&[gate.to_owned()], &none);
        for (gate, files) in [
            ("./check.sh --all", &["check.sh"][..]),
            ("sh -e tests/all.sh x.txt", &["tests/all.sh"]),
            ("cd web && ./run; bash ../b.sh", &["b.sh", "web/run"]),
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
        let scripts = script_names(&["make check && sh ci/a.sh".to_owned()], &none);
        assert_eq!(scripts.into_iter().collect::<Vec<_>>(), ["ci/a.sh"]);
    }

    /// Each is run by its gate, so it is locked while an agent works.
    #[test]
    fn what_a_shell_would_run_is_found_however_it_is_written() {
        let variables = |name: &str| match name {
            "CI_DIR" => Some("ci".to_owned()),
            _ => None,
        };
        for (gate, script) in [
            ("./check.sh", "check.sh"),
            ("$PWD/check.sh", "check.sh"),
            ("\"${PWD}\"/check.sh -x", "check.sh"),
            ("$(pwd)/check.sh", "check.sh"),
            ("`pwd`/check.sh", "check.sh"),
            ("X=./check.sh; $X", "check.sh"),
            ("export X=check.sh && sh \"$X\"", "check.sh"),
            ("${X:-./check.sh}", "check.sh"),
            ("$CI_DIR/check.sh", "ci/check.sh"),
            ("timeout 5 ./check.sh", "check.sh"),
            (
                "timeout -k 5s --signal=INT 60 sh ci/check.sh",
                "ci/check.sh",
            ),
            ("bash -c './check.sh'", "check.sh"),
            ("bash -euo pipefail -c \"cd ci; ./check.sh\"", "ci/check.sh"),
            ("bash -euo pipefail ci/check.sh", "ci/check.sh"),
            ("if ./check.sh; then echo yes; fi", "check.sh"),
            ("if true; then ./check.sh; fi", "check.sh"),
            ("while ! ./check.sh; do sleep 1; done", "check.sh"),
            ("env -i A=1 ./check.sh", "check.sh"),
            ("env -C ci A=1 nice -n 5 ./check.sh", "check.sh"),
            ("nice ./check.sh", "check.sh"),
            ("nohup setsid ./check.sh", "check.sh"),
            ("flock /tmp/lock ./check.sh", "check.sh"),
            ("time -p ./check.sh", "check.sh"),
            ("exec ./check.sh", "check.sh"),
            ("{ ./check.sh; }", "check.sh"),
            ("(cd ci && true); ./check.sh", "check.sh"),
            ("true&&./check.sh||false", "check.sh"),
            ("./a.sh;./check.sh", "check.sh"),
            ("true | ./check.sh", "check.sh"),
            ("! ./check.sh", "check.sh"),
            (". ./check.sh", "check.sh"),
            ("source ci/check.sh", "ci/check.sh"),
            ("sh < check.sh", "check.sh"),
            ("cat check.sh | sh", "check.sh"),
            ("eval ./check.sh", "check.sh"),
            ("test \"$(./check.sh)\" = ok", "check.sh"),
            ("diff <(./check.sh) wanted.txt", "check.sh"),
            ("sh <<EOF\n./check.sh\nEOF", "check.sh"),
            ("uv run check.py", "check.py"),
            ("poetry run python ci/check.py", "ci/check.py"),
            ("PATH=./ci:$PATH run.sh", "ci/run.sh"),
            ("find ci -name '*.sh' -exec sh {} \\;", "ci/**/*.sh"),
            ("find ci -name '*.sh' | xargs -n1 sh", "ci/**/*.sh"),
            ("for f in ci/*.sh; do sh $f || exit 1; done", "ci/*.sh"),
            ("run-parts ci", "ci/*"),
            ("su me -c './check.sh'", "check.sh"),
            ("cd ci\n./check.sh", "ci/check.sh"),
            ("./check\\\n.sh", "check.sh"),
            ("echo \"it's\"; ./check.sh", "check.sh"),
        ] {
            let found = script_names(&[gate.to_owned()], &variables);
            assert!(found.contains(script), "{gate}: {found:?}");
        }
        // Nothing of these is run.
        for gate in [
            "echo ./check.sh",
            "find . -name '*.sh' -exec shellcheck {} \\;",
            "echo x > out/check.sh",
            "true # ./check.sh",
            "grep -q './check.sh x' README",
            "$UNKNOWN/check.sh",
        ] {
            let found = script_names(&[gate.to_owned()], &variables);
            assert!(found.is_empty(), "{gate}: {found:?}");
        }
        let programs = program_names(&["timeout 5 check --all".to_owned()], &none);
        assert_eq!(programs.into_iter().collect::<Vec<_>>(), ["check"]);
    }

    #[test]
    fn what_a_script_runs_is_relative_to_where_it_is_started_or_to_itself() {
        let text = "#!/bin/bash\nset -eu\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n\
             . \"$here/lib.sh\"\n\"${0%/*}/other.sh\"\n./top.sh\npython3 ci/x.py\n\
             got=$(sh ./roman.sh 4)\n./tool.sh | grep -q fine\n";
        let found = run_by_script("ci/check.sh", text, &none);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["ci/lib.sh", "ci/other.sh", "ci/x.py", "top.sh"]);
        let python = "#!/usr/bin/env python3\n./a.sh\n";
        assert!(run_by_script("check", python, &none).is_empty());
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
            ("test -s a.txt;sh b.sh", &["b.sh"]),
            ("test -s a.txt\nsh b.sh", &["b.sh"]),
            ("test -s $(sh b.sh)", &["b.sh"]),
            ("sh <(grep x b.sh)", &["b.sh"]),
            ("find a.txt -exec grep x b.sh +", &["a.txt", "b.sh"]),
            ("A=1 grep x b.sh", &[]),
        ] {
            let mut found = names(gate);
            found.retain(|name| [".txt", ".sh", ".rs"].iter().any(|end| name.contains(end)));
            assert_eq!(found, files, "{gate}");
        }
        // One gate looks at it, another runs it.
        let both = ["test -s a.sh".to_owned(), "sh a.sh".to_owned()];
        assert!(gate_file_names(&both, &none).contains("a.sh"));
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
