//! What holds for lists of every tool: other writers, links, claims, two runs, ids of another format.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::task_common::{left, repository, run, said};

const WORKS: &str =
    "append ../../../ran ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";
/// Says in every way that it knows that everything is done.
const MARKS: &str = "sh git ls-files -z | xargs -0 sed -i -e 's/\\[ \\]/[x]/' -e 's/\"passes\": *false/\"passes\":true/' \
    -e 's/\"pending\"/\"done\"/' -e 's/^status: .*/status: Done/' -e 's/^Status: .*/Status: done/' ;; \
    write work-${DESCARTES_TASK_ID} x ;; promise";

const TASK_MASTER: &str = r#"{"master":{"tasks":[{"id":1,"title":"a","status":"pending","dependencies":[]},
 {"id":2,"title":"b","status":"pending","dependencies":[1]}]}}"#;
const TICKET: &str = "---\nid: a-1\nstatus: open\ndeps: []\n---\n# Read\n";

/// A list of each format, and what is typed to run it.
const LISTS: [(&str, &str, &str); 9] = [
    (
        "openspec/changes/add/tasks.md",
        "openspec/changes/add",
        "- [ ] 1.1 a\n- [ ] 1.2 b\n",
    ),
    (
        ".kiro/specs/theme/tasks.md",
        ".kiro/specs/theme",
        "- [ ] 1. a\n- [ ] 2. b\n",
    ),
    (
        "specs/001-x/tasks.md",
        "specs/001-x",
        "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n",
    ),
    (
        "docs/superpowers/plans/x.md",
        "docs/superpowers/plans/x.md",
        "### Task 1: a\n- [ ] **Step 1: do**\n",
    ),
    ("TODO.md", "TODO.md", "- [ ] a\n- [ ] b\n"),
    (
        "prd.json",
        "prd.json",
        r#"{"userStories":[{"id":"A","title":"a","passes":false}]}"#,
    ),
    (".taskmaster/tasks/tasks.json", ".taskmaster", TASK_MASTER),
    (".tickets/a-1.md", ".tickets", TICKET),
    (
        ".scratch/x/issues/01-a.md",
        ".scratch/x",
        "# a\n\nStatus: ready-for-agent\n\n- [ ] reads\n",
    ),
];

#[test]
fn what_agents_mark_themselves_does_not_count_in_any_list() {
    for (file, path, text) in LISTS {
        let world = repository(file, text);
        let agent = world.agent(MARKS);
        let words = [
            "roadmap",
            "run",
            path,
            "--command",
            &agent,
            "--verify",
            "false",
        ];
        let ended = run(
            &world,
            &[&words[..], &["--max-iterations-per-task", "1"]].concat(),
        );
        ended.assert_code(6);
        assert_eq!(world.read(file), text, "{file}: {ended}");
        let committed = world.git(["show", &format!("HEAD:{file}")]);
        assert_eq!(committed.trim_end(), text.trim_end(), "{file}");
    }
}

#[test]
fn in_the_users_own_tree_a_mark_without_proof_is_taken_back_and_other_edits_stay() {
    let world = repository("TODO.md", "# TODO\n- [ ] first\n");
    let agent = world.agent("sh sed -i 's/\\[ \\]/[x]/' TODO.md && echo '- [ ] found on the way' >> TODO.md ;; write work x");
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--in-place",
        "--command",
        &agent,
    ];
    let flags = ["--verify", "false", "--max-iterations-per-task", "1"];
    let ended = run(&world, &[&words[..], &flags].concat());
    ended.assert_code(6);
    let text = world.read("TODO.md");
    assert!(
        text.starts_with("# TODO\n- [ ] first\n- [ ] found on the way\n"),
        "{text}\n{ended}"
    );
    assert!(!text.contains("[x]"), "{text}");
    assert!(said(&ended).contains("the mark was taken back"), "{ended}");
}

#[test]
fn a_list_behind_a_link_keeps_its_link_its_mode_and_its_line_ends() {
    let world = repository("lists/real.md", "# TODO\r\n- [ ] first\r\n- [ ] second");
    let real = world.project().join("lists/real.md");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("lists/real.md", world.project().join("TODO.md")).unwrap();
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "a link"]);
    let agent = world.agent(WORKS);
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    run(&world, &words).assert_code(0);
    assert_eq!(
        world.read("lists/real.md"),
        "# TODO\r\n- [x] first\r\n- [x] second"
    );
    let link = world.project().join("TODO.md");
    assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
    let mode = real.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
}

#[test]
fn boxes_that_were_done_are_trusted_and_one_that_is_opened_again_is_run_when_asked() {
    let world = repository("TODO.md", "- [x] first\n- [ ] second\n");
    let agent = world.agent(WORKS);
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    run(&world, &words).assert_code(0);
    assert_eq!(left(&world, "ran"), "2\n");
    world.write("TODO.md", "- [ ] first\n- [x] second\n");
    world.git(["commit", "--quiet", "--all", "--message", "open it again"]);
    let again = run(&world, &[&words[..], &["--retry-blocked"]].concat());
    again.assert_code(0);
    assert_eq!(left(&world, "ran"), "2\n1\n", "{again}");
    assert_eq!(world.read("TODO.md"), "- [x] first\n- [x] second\n");
}

fn waits(world: &World, words: &[&str]) -> Child {
    let script = "append ../../../ran ${DESCARTES_TASK_ID} ;; wait-file ../../../go ;; write work x ;; promise";
    let agent = world.agent(script);
    let mut command = world.descartes([words, &["--command", &agent, "--verify", "true"]].concat());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let soon = Duration::from_secs(60);
    eventually("an agent works", soon, || !left(world, "ran").is_empty());
    child
}

const CLAIMED: [(&str, &str, &str, &str, &str); 3] = [
    (
        "backlog/tasks/task-1 - Read.md",
        "backlog",
        "---\nid: TASK-1\ntitle: Read\nstatus: To Do\n---\n",
        "status: To Do",
        "status: In Progress",
    ),
    (
        ".taskmaster/tasks/tasks.json",
        ".taskmaster",
        r#"{"master":{"tasks":[{"id":1,"title":"a","status":"pending"}]}}"#,
        "\"pending\"",
        "\"in-progress\"",
    ),
    (
        ".tickets/a-1.md",
        ".tickets",
        TICKET,
        "status: open",
        "status: in_progress",
    ),
];

#[test]
fn a_list_says_what_is_worked_on_when_asked_and_never_afterwards() {
    for (file, path, text, open, doing) in CLAIMED {
        let world = repository(file, text);
        if path == "backlog" {
            world.write(
                "backlog/config.yml",
                "statuses: [\"To Do\", \"In Progress\", \"Done\"]\n",
            );
            world.git(["add", "."]);
            world.git(["commit", "--quiet", "--message", "config"]);
        }
        // Without being asked, nothing is said.
        let mut child = waits(
            &world,
            &["roadmap", "run", path, "--state-file", ".descartes/a.json"],
        );
        assert_eq!(world.read(file), text, "{file}");
        run(
            &world,
            &["loop", "cancel", "--state-file", ".descartes/a.json"],
        )
        .assert_code(0);
        child.wait().unwrap();
        std::fs::remove_file(world.state().join("ran")).unwrap();
        let words = [
            "roadmap",
            "run",
            path,
            "--claim",
            "--state-file",
            ".descartes/b.json",
        ];
        let mut child = waits(&world, &words);
        assert_eq!(world.read(file), text.replace(open, doing), "{file}");
        run(
            &world,
            &["loop", "cancel", "--state-file", ".descartes/b.json"],
        )
        .assert_code(0);
        child.wait().unwrap();
        assert_eq!(world.read(file), text, "{file}: it is given back");
        std::fs::write(world.state().join("go"), "").unwrap();
        let mut child = waits(
            &world,
            &[
                "roadmap",
                "run",
                path,
                "--claim",
                "--state-file",
                ".descartes/c.json",
            ],
        );
        assert!(child.wait().unwrap().success(), "{file}");
        assert_ne!(world.read(file), text, "{file}");
        assert!(
            !world.read(file).contains(doing),
            "{file}: {}",
            world.read(file)
        );
        assert_eq!(
            world.git(["status", "--porcelain"]).trim(),
            "",
            "{file}: and committed"
        );
    }
    let world = repository("TODO.md", "- [ ] first\n");
    let refused = run(
        &world,
        &["roadmap", "run", "TODO.md", "--claim", "--dry-run"],
    );
    refused.assert_code(64);
    assert!(refused.stderr().contains("--claim is for"), "{refused}");
}

#[test]
fn a_list_is_run_once_at_a_time_whatever_its_state_file() {
    let world = repository("TODO.md", "- [ ] first\n");
    let mut child = waits(
        &world,
        &[
            "roadmap",
            "run",
            "TODO.md",
            "--state-file",
            ".descartes/a.json",
        ],
    );
    let agent = world.agent(WORKS);
    let words = [
        "roadmap",
        "run",
        "TODO.md",
        "--state-file",
        ".descartes/b.json",
        "--command",
        &agent,
    ];
    let second = run(&world, &[&words[..], &["--verify", "true"]].concat());
    second.assert_code(65);
    assert!(
        second
            .stderr()
            .contains("another run is already working on"),
        "{second}"
    );
    std::fs::write(world.state().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(world.read("TODO.md"), "- [x] first\n");
}

#[test]
fn the_folder_decides_the_order_and_the_text_the_ids() {
    for (file, path, format) in [
        (".kiro/specs/x/tasks.md", ".kiro/specs/x", "kiro"),
        (
            "openspec/changes/x/tasks.md",
            "openspec/changes/x",
            "openspec",
        ),
    ] {
        let world = repository(file, "- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n");
        let checked = run(&world, &["roadmap", "check", path, "--json"]);
        let checked: Value = serde_json::from_str(&checked.stdout()).unwrap();
        assert_eq!(checked["format"], format);
        assert_eq!(
            checked["waves"],
            serde_json::json!([["T001"], ["T002"], ["T003"]]),
            "{checked}"
        );
    }
}

#[test]
fn an_openspec_workflow_of_the_projects_own_is_followed() {
    let world = repository("openspec/changes/add/todo.md", "- [ ] 1.1 a\n- [ ] 1.2 b\n");
    world.write("openspec/changes/add/.openspec.yaml", "schema: mine\n");
    world.write("openspec/changes/add/brief.md", "# Brief\nTide tables.\n");
    world.write(
        "openspec/changes/add/tasks.md",
        "- [ ] 9.9 no task of this workflow\n",
    );
    world.write(
        "openspec/schemas/mine/schema.yaml",
        "name: mine\nartifacts:\n  - id: brief\n    generates: brief.md\n  - id: todo\n    generates: todo.md\napply:\n  requires: [todo]\n  tracks: todo.md\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "a workflow"]);
    for path in ["openspec/changes/add", "openspec/changes/add/todo.md", "."] {
        let checked = run(&world, &["roadmap", "check", path, "--json"]);
        let checked: Value = serde_json::from_str(&checked.stdout()).unwrap();
        assert_eq!(checked["format"], "openspec", "{path}");
        assert_eq!(checked["tasks"].as_array().unwrap().len(), 2, "{checked}");
        assert!(
            checked["spec_files"].to_string().contains("brief.md"),
            "{checked}"
        );
    }
    let agent = world.agent(WORKS);
    let words = [
        "roadmap",
        "run",
        "openspec/changes/add",
        "--command",
        &agent,
        "--verify",
        "true",
    ];
    run(&world, &words).assert_code(0);
    assert_eq!(
        world.read("openspec/changes/add/todo.md"),
        "- [x] 1.1 a\n- [x] 1.2 b\n"
    );
    assert_eq!(
        world.read("openspec/changes/add/tasks.md"),
        "- [ ] 9.9 no task of this workflow\n"
    );
}

#[test]
fn commands_in_prose_are_never_run_and_those_that_are_meant_as_proof_are() {
    let plan = "# Plan\n\n### Task 1: Read\n\nRun: `touch ../../../prose`\nExpected: PASS\n\n\
                - [ ] **Step 1: verify `touch ../../../prose` passes**\n\n## Validation Commands\n\n\
                - `touch ../../../validated`\n";
    let world = repository("docs/plans/x.md", plan);
    let agent = world.agent(WORKS);
    let words = ["roadmap", "run", "docs/plans/x.md", "--command", &agent];
    let ended = run(&world, &words);
    ended.assert_code(0);
    let told = "the gate is `touch ../../../validated`, from the list";
    assert!(ended.stderr().contains(told), "{ended}");
    // A gate runs in a slot and on the merged tree, which lie side by side.
    assert!(world.state().join("validated").exists(), "{ended}");
    assert!(!world.state().join("prose").exists(), "{ended}");
    let checked = run(&world, &["roadmap", "check", "docs/plans/x.md"]);
    assert!(
        checked.stdout().contains("touch ../../../prose"),
        "it is proposed: {checked}"
    );
}
