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
/// Works on whatever it is given.
const WORKS: &str = "write work-${DESCARTES_TASK_ID} x ;; promise";

fn folder() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    home.join(".cache/descartes-test/list-tools")
}

fn program(name: &str) -> PathBuf {
    folder().join("node_modules/.bin").join(name)
}

/// `lists-install`: the tools, from the registry.
pub fn install() -> Result<(), String> {
    std::fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let place = folder().to_string_lossy().into_owned();
    let packages = TOOLS.map(|(name, version)| format!("{name}@{version}"));
    let mut words = vec!["install", "--no-audit", "--no-fund", "--prefix", &place];
    words.extend(packages.iter().map(String::as_str));
    shell::run("npm", &words)
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

const LISTS: [ListTool; 3] = [
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
];

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
        let why = "it is not installed here: cargo xtask lists-install";
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
