//! What kind of project a folder holds, and the gate that proves work in it.

use std::path::Path;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// What it is, for people.
    pub kinds: Vec<&'static str>,
    /// Gates, in their order.
    pub gates: Vec<String>,
    /// How it is built, tested and the like, for AGENTS.md.
    pub commands: Vec<(&'static str, String)>,
    /// Whether it is in git.
    pub git: bool,
}

/// Looks at a folder.
pub fn look(dir: &Path) -> Project {
    let mut found = Project {
        git: dir.ancestors().any(|folder| folder.join(".git").exists()),
        ..Project::default()
    };
    found.add_if(
        dir,
        "Cargo.toml",
        "Rust",
        ["cargo check", "cargo build", "cargo test"],
    );
    node(dir, &mut found);
    python(dir, &mut found);
    let go = ["go build ./...", "go build ./...", "go test ./..."];
    found.add_if(dir, "go.mod", "Go", go);
    // A Makefile is how people drive other things: its targets win where nothing else is found.
    if found.gates.is_empty() {
        make(dir, &mut found);
    }
    found
}

impl Project {
    /// A kind that its file tells, with the commands that check, build and test it.
    fn add_if(&mut self, dir: &Path, file: &str, kind: &'static str, commands: [&str; 3]) {
        let [check, build, test] = commands;
        if dir.join(file).is_file() {
            self.kinds.push(kind);
            self.gates.push(format!("{check} && {test}"));
            self.commands.push(("build", build.to_owned()));
            self.commands.push(("test", test.to_owned()));
        }
    }
}

fn node(dir: &Path, found: &mut Project) {
    let Some(package) = read_json(&dir.join("package.json")) else {
        return;
    };
    let runner = if dir.join("pnpm-lock.yaml").exists() {
        "pnpm"
    } else if dir.join("yarn.lock").exists() {
        "yarn"
    } else {
        "npm"
    };
    found.kinds.push("Node");
    let script = |name: &str| {
        let script = package.get("scripts")?.get(name)?.as_str()?;
        // What `npm init` writes is no test.
        (!script.contains("no test specified")).then(|| format!("{runner} run {name}"))
    };
    for name in ["build", "test", "lint", "typecheck"] {
        found
            .commands
            .extend(script(name).map(|command| (name, command)));
    }
    if script("test").is_some() {
        found.gates.push(format!("{runner} test"));
    }
}

fn python(dir: &Path, found: &mut Project) {
    let files = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
    ];
    if !files.iter().any(|file| dir.join(file).is_file()) {
        return;
    }
    found.kinds.push("Python");
    let mentions = |file: &str| {
        std::fs::read_to_string(dir.join(file)).is_ok_and(|text| text.contains("pytest"))
    };
    let has_tests = dir.join("tests").is_dir() || dir.join("test").is_dir();
    if has_tests || files.iter().any(|file| mentions(file)) || dir.join("pytest.ini").is_file() {
        found.gates.push("pytest".to_owned());
        found.commands.push(("test", "pytest".to_owned()));
    }
}

fn make(dir: &Path, found: &mut Project) {
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let text = names
        .iter()
        .find_map(|name| std::fs::read_to_string(dir.join(name)).ok());
    let Some(text) = text else { return };
    found.kinds.push("make");
    let has = |target: &str| {
        text.lines().any(|line| {
            let heads = line
                .split_once(':')
                .filter(|(_, rest)| !rest.starts_with('='));
            heads.is_some_and(|(heads, _)| {
                !heads.starts_with('\t') && heads.split_whitespace().any(|head| head == target)
            })
        })
    };
    let targets: Vec<&str> = ["check", "test"]
        .into_iter()
        .filter(|target| has(target))
        .collect();
    if !targets.is_empty() {
        let gate = format!("make {}", targets.join(" "));
        found.gates.push(gate.clone());
        found.commands.push(("test", gate));
    }
}

fn read_json(path: &Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> Project {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        look(folder.path())
    }

    #[test]
    fn each_kind_of_project_has_its_gate() {
        let node = r#"{"scripts":{"test":"vitest","build":"tsc"}}"#;
        let empty = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        type Files<'a> = &'a [(&'a str, &'a str)];
        let table: [(Files<'_>, &[&str]); 9] = [
            (&[("Cargo.toml", "")], &["cargo check && cargo test"]),
            (&[("package.json", node)], &["npm test"]),
            (
                &[("package.json", node), ("pnpm-lock.yaml", "")],
                &["pnpm test"],
            ),
            (&[("package.json", empty)], &[]),
            (
                &[("pyproject.toml", "[tool.pytest.ini_options]")],
                &["pytest"],
            ),
            (
                &[("go.mod", "module x")],
                &["go build ./... && go test ./..."],
            ),
            (
                &[("Makefile", "check: x\n\ttrue\ntest:\n\ttrue\n")],
                &["make check test"],
            ),
            (&[("Makefile", "CC := gcc\nall:\n\ttest: no\n")], &[]),
            (
                &[("Cargo.toml", ""), ("Makefile", "test:\n")],
                &["cargo check && cargo test"],
            ),
        ];
        for (files, gates) in table {
            assert_eq!(project(files).gates, gates, "{files:?}");
        }
        assert_eq!(project(&[]), Project::default());
    }
}
