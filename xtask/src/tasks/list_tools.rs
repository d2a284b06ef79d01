//! The tools whose lists are run in place: what they say after our marks is what they say after their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::lab::{Lab, Row, Rows, Trial, Trouble};
use crate::shell;

/// Packages and versions; each is also the name of its program here.
const TOOLS: [(&str, &str); 3] = [
    ("@fission-ai/openspec", "1.13.2"),
    ("task-master-ai", "0.43.1"),
    ("backlog.md", "1.52.0"),
];
/// spec-kit's program, from PyPI.
const SPECIFY: &str = "specify-cli==1.2.3";
/// beads in Rust, from the crate registry; its program is `br`.
const BEADS: (&str, &str) = ("beads_rust", "0.7.6");
/// Works on whatever it is given.
const WORKS: &str = "write work-${DESCARTES_TASK_ID} x ;; promise";

fn folder() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    home.join(".cache/descartes-test/list-tools")
}

fn program(name: &str) -> PathBuf {
    let inside = match name {
        "specify" => "venv/bin",
        "br" => "bin",
        _ => "node_modules/.bin",
    };
    folder().join(inside).join(name)
}

/// `lists-install`: the tools, from the registries. That of beads is compiled, which takes minutes.
pub fn install() -> Result<(), String> {
    std::fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let place = folder().to_string_lossy().into_owned();
    let packages = TOOLS.map(|(name, version)| format!("{name}@{version}"));
    let mut words = vec!["install", "--no-audit", "--no-fund", "--prefix", &place];
    words.extend(packages.iter().map(String::as_str));
    shell::run("npm", &words)?;
    let venv = folder().join("venv").to_string_lossy().into_owned();
    shell::run("python3", &["-m", "venv", &venv])?;
    let pip = format!("{venv}/bin/pip");
    shell::run(&pip, &["install", "--quiet", SPECIFY])?;
    if is_there(&program("br")) {
        return Ok(());
    }
    let (name, version) = BEADS;
    let mut words = vec!["install", name, "--version", version, "--root", &place];
    // A quick build is good enough for a few issues.
    words.extend(["--debug", "--locked"]);
    shell::run("cargo", &words)
}

struct ListTool {
    name: &'static str,
    /// What `roadmap run` is given.
    path: &'static str,
    /// Makes the list, with the tool or as its users do.
    make: fn(&Trial<'_>) -> Result<(), Trouble>,
    /// Marks all tasks as the tool or its instructions do it.
    mark: fn(&Trial<'_>) -> Result<(), Trouble>,
    /// What the tool says of its tasks.
    say: fn(&Trial<'_>) -> Result<String, Trouble>,
}

const LISTS: [ListTool; 5] = [
    ListTool {
        name: "openspec",
        path: "openspec/changes/add-login",
        make: |trial| {
            tool(trial, "openspec", &["init", "--tools", "none", "."])?;
            let change = "openspec/changes/add-login";
            trial.world.write(
                format!("{change}/proposal.md"),
                "## Why\nBecause.\n\n## What Changes\n- Login\n",
            );
            trial.world.write(
                format!("{change}/tasks.md"),
                "## 1. Form\n- [ ] 1.1 Page\n- [ ] 1.2 Check\n\n## 2. Rest\n- [ ] 2.1 Docs\n",
            );
            Ok(())
        },
        // Agents tick what they have done.
        mark: |trial| {
            let file = "openspec/changes/add-login/tasks.md";
            let text = trial.world.read(file).replace("- [ ]", "- [x]");
            trial.world.write(file, text);
            Ok(())
        },
        say: |trial| {
            let said = tool(trial, "openspec", &["list", "--json"])?;
            let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
            let change = &said["changes"][0];
            let (done, all) = (&change["completedTasks"], &change["totalTasks"]);
            Ok(format!("{done} of {all}, {}", change["status"]))
        },
    },
    ListTool {
        name: "task-master",
        path: ".taskmaster",
        make: |trial| {
            let task = |id: u32, depends: &str, parts: &str| {
                format!(
                    "{{\"id\":{id},\"title\":\"T{id}\",\"description\":\"d\",\"details\":\"\",\
                     \"testStrategy\":\"\",\"status\":\"pending\",\"priority\":\"medium\",\
                     \"dependencies\":[{depends}],\"subtasks\":[{parts}]}}"
                )
            };
            let part = |id: u32, depends: &str| {
                format!(
                    "{{\"id\":{id},\"title\":\"P{id}\",\"description\":\"d\",\
                     \"status\":\"pending\",\"dependencies\":[{depends}]}}"
                )
            };
            let parts = format!("{},{}", part(1, ""), part(2, "1"));
            let tasks = format!("{},{}", task(1, "", &parts), task(2, "1", ""));
            trial.world.write(
                ".taskmaster/tasks/tasks.json",
                format!("{{\"master\":{{\"tasks\":[{tasks}],\"metadata\":{{}}}}}}"),
            );
            Ok(())
        },
        mark: |trial| {
            for id in ["1.1", "1.2", "2"] {
                let status = format!("--id={id}");
                tool(
                    trial,
                    "task-master",
                    &["set-status", &status, "--status=done"],
                )?;
            }
            Ok(())
        },
        say: |trial| {
            let said = tool(trial, "task-master", &["list", "--with-subtasks", "--json"])?;
            // It says other things around it.
            let begin = said.find('{').unwrap_or(0);
            let mut values = serde_json::Deserializer::from_str(&said[begin..]).into_iter();
            let said: Value = match values.next() {
                Some(said) => said.map_err(|error| error.to_string())?,
                None => return Err(format!("task-master printed no JSON: {said}")),
            };
            let tasks = said["tasks"].as_array().cloned().unwrap_or_default();
            let one = |task: &Value| {
                let parts = task["subtasks"].as_array().cloned().unwrap_or_default();
                let parts: Vec<String> = parts.iter().map(|p| p["status"].to_string()).collect();
                format!("{} {} [{}]", task["id"], task["status"], parts.join(" "))
            };
            let tasks: Vec<String> = tasks.iter().map(one).collect();
            Ok(tasks.join("; "))
        },
    },
    ListTool {
        name: "backlog",
        path: "backlog",
        make: |trial| {
            tool(trial, "backlog", &["init", "demo", "--defaults"])?;
            tool(
                trial,
                "backlog",
                &["task", "create", "One", "--ac", "works"],
            )?;
            let two = ["task", "create", "Two", "--dep", "task-1"];
            tool(trial, "backlog", &two).map(drop)
        },
        mark: |trial| {
            tool(
                trial,
                "backlog",
                &["task", "edit", "1", "-s", "Done", "--check-ac", "1"],
            )?;
            tool(trial, "backlog", &["task", "edit", "2", "-s", "Done"]).map(drop)
        },
        say: |trial| tool(trial, "backlog", &["task", "list", "--plain"]),
    },
    ListTool {
        name: "specify",
        path: ".",
        make: |trial| {
            let init = ["init", "--here", "--force", "--non-interactive"];
            let more = ["--ignore-agent-tools", "--integration", "claude"];
            tool(trial, "specify", &[&init[..], &more].concat())?;
            script(trial, "create-new-feature.sh", &["--json", "Export"])?;
            // Its own template, up to the second phase.
            let template = trial.world.read(".specify/templates/tasks-template.md");
            let first = template.split("\n## Phase 2").next().unwrap_or_default();
            let feature = "specs/001-export";
            trial.world.write(format!("{feature}/tasks.md"), first);
            trial.world.write(format!("{feature}/plan.md"), "# Plan\n");
            Ok(())
        },
        // Its instructions tell the agent to do so.
        mark: |trial| {
            let file = "specs/001-export/tasks.md";
            let text = trial.world.read(file).replace("- [ ] T", "- [X] T");
            trial.world.write(file, text);
            Ok(())
        },
        say: |trial| {
            let words = ["--json", "--require-tasks", "--include-tasks"];
            let said = script(trial, "check-prerequisites.sh", &words)?;
            let project = trial.world.project();
            let said = said.replace(&*project.to_string_lossy(), "");
            let tasks = trial.world.read("specs/001-export/tasks.md");
            let done = |line: &&str| line.starts_with("- [x] T") || line.starts_with("- [X] T");
            let done = tasks.lines().filter(done).count();
            Ok(format!("{} and {done} done", said.trim()))
        },
    },
    ListTool {
        name: "br",
        path: ".beads",
        make: |trial| {
            std::os::unix::fs::symlink(program("br"), trial.world.bin().join("br"))
                .map_err(|error| error.to_string())?;
            tool(trial, "br", &["init", "--prefix", "b"])?;
            let create = |title: &str| tool(trial, "br", &["create", title, "--json"]);
            let (one, two) = (bead(&create("One")?)?, bead(&create("Two")?)?);
            tool(trial, "br", &["dep", "add", &two, &one]).map(drop)
        },
        mark: |trial| {
            let list = tool(trial, "br", &["list", "--json", "--all", "--limit", "0"])?;
            for id in beads(&list, "One")?.iter().chain(&beads(&list, "Two")?) {
                tool(trial, "br", &["close", id, "--reason", "done and verified"])?;
            }
            Ok(())
        },
        say: |trial| {
            let list = tool(trial, "br", &["list", "--json", "--all", "--limit", "0"])?;
            let mut rows: Vec<String> = issues(&list)?
                .iter()
                .map(|issue| format!("{} {}", issue["title"], issue["status"]))
                .collect();
            rows.sort();
            Ok(rows.join(", "))
        },
    },
];

/// What a script of spec-kit prints.
fn script(trial: &Trial<'_>, name: &str, words: &[&str]) -> Result<String, Trouble> {
    let mut command: Command = trial.world.command("bash");
    command
        .arg(format!(".specify/scripts/bash/{name}"))
        .args(words);
    let ended = trial.run(command)?;
    match ended.code() {
        Some(0) => Ok(ended.stdout()),
        _ => Err(format!("{name}: {ended}")),
    }
}

/// The issues of an answer, which may stand in an envelope.
fn issues(answer: &str) -> Result<Vec<Value>, Trouble> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    let inside = answer.as_array().or(answer["issues"].as_array());
    Ok(inside.cloned().unwrap_or_else(|| vec![answer.clone()]))
}

/// The id of the only issue of an answer.
fn bead(answer: &str) -> Result<String, Trouble> {
    let id = issues(answer)?
        .first()
        .and_then(|issue| issue["id"].as_str().map(str::to_owned));
    id.ok_or_else(|| format!("br named no id: {answer}"))
}

fn beads(answer: &str, title: &str) -> Result<Vec<String>, Trouble> {
    let all = issues(answer)?;
    let own = all.iter().filter(|issue| issue["title"] == title);
    Ok(own
        .filter_map(|issue| issue["id"].as_str().map(str::to_owned))
        .collect())
}

/// What a tool prints, run in the project.
fn tool(trial: &Trial<'_>, name: &str, words: &[&str]) -> Result<String, Trouble> {
    let mut command: Command = trial.world.command(program(name));
    command.args(words);
    let ended = trial.run(command)?;
    match ended.code() {
        Some(0) => Ok(ended.stdout()),
        _ => Err(format!("{name} {words:?}: {ended}")),
    }
}

fn prepare<'a>(lab: &'a Lab, list: &ListTool) -> Result<Trial<'a>, Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    trial.world.write("README.md", "x");
    (list.make)(&trial)?;
    trial.world.git(["add", "--all"]);
    trial.world.git(["commit", "--quiet", "--message", "list"]);
    Ok(trial)
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    LISTS.iter().map(|list| one(lab, list)).collect()
}

fn one(lab: &Lab, list: &ListTool) -> Result<Row, Trouble> {
    let what = format!("{} after our marks and after its own", list.name);
    if !is_there(&program(list.name)) {
        let why = "NOT RUN: it is not installed here (cargo xtask lists-install)";
        return Ok(Row::cannot("list-tools", what, why));
    }
    let (ours, theirs) = (prepare(lab, list)?, prepare(lab, list)?);
    let agent = ours.agent(WORKS);
    let words = ["roadmap", "run", list.path, "--command", &agent];
    let mut command = ours.descartes(&words);
    command.args(["--verify", "true"]);
    let ended = ours.run(command)?;
    let mut lost = Vec::new();
    if ended.code() != Some(0) {
        lost.push(format!("the run: {ended}"));
    }
    (list.mark)(&theirs)?;
    let (said, expected) = ((list.say)(&ours)?, (list.say)(&theirs)?);
    if said != expected {
        lost.push(format!("it says `{said}`, and of its own `{expected}`"));
    }
    println!("  {}: {}", list.name, said.trim().replace('\n', ", "));
    Ok(Row::count("list-tools", what, 1, &lost))
}

fn is_there(program: &Path) -> bool {
    shell::answers(&program.to_string_lossy(), &["--version"])
}
