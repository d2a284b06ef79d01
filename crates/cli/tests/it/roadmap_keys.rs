//! Every key of a roadmap's task changes what happens.

use std::time::Duration;

use descartes_testkit::world::Finished;
use descartes_testkit::{World, descartes};
use serde_json::Value;

use crate::common::{claude_result, prints};
use crate::task_common::{self, repository};

/// A project whose roadmap holds the task `a` with these keys, and a task that is no part of it.
fn project(keys: &str) -> World {
    let text = format!(
        "# Roadmap: Keys\n## Tasks\n- [ ] **a**: Do it\n{keys}- [ ] **other**: Something else\n"
    );
    repository("ROADMAP.md", text)
}

fn run(world: &World, agent: &str, flags: &[&str]) -> Finished {
    let mut command = world.command(descartes());
    command.args(["roadmap", "run", "ROADMAP.md", "--command", agent]);
    command.args(flags);
    world.run_within(command, Duration::from_secs(180))
}

/// The task `a` is blocked for this reason, after so many attempts.
#[track_caller]
fn assert_blocked(world: &World, reason: &str, attempts: u32) {
    let state = std::fs::read_to_string(state_file(world)).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let entries = state["blocked_tasks"].as_array().unwrap();
    let of_a = entries.iter().find(|entry| entry["task_id"] == "a");
    assert!(of_a.is_some(), "a is not blocked: {state:#}");
    let of_a = of_a.unwrap();
    let told = of_a["reason"].as_str().unwrap();
    assert!(told.contains(reason), "{of_a}");
    assert_eq!(of_a["attempts"], attempts, "{of_a}");
}

fn state_file(world: &World) -> std::path::PathBuf {
    let folder = world.project().join(".descartes");
    let files = std::fs::read_dir(&folder).unwrap().flatten();
    let mut paths = files.map(|entry| entry.path());
    let is_state = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("roadmap-") && name.ends_with(".json")
    };
    paths
        .find(is_state)
        .unwrap_or_else(|| folder.join("loop-state.json"))
}

/// The other task always works.
fn agent(world: &World, script: &str) -> String {
    world.agent(&format!(
        "if-file ../../../{MARK}-${{DESCARTES_TASK_ID}} print it works\n\
         if-file ../../../{MARK}-${{DESCARTES_TASK_ID}} exit 0\n{script}"
    ))
}

const MARK: &str = "works";

fn let_other_work(world: &World) {
    std::fs::create_dir_all(world.state()).unwrap();
    std::fs::write(world.state().join(format!("{MARK}-other")), "").unwrap();
}

/// Agents of tasks see what is committed; what is said helps as it is typed.
#[test]
fn an_agent_that_is_in_no_commit_is_refused_with_what_to_type() {
    for name in ["slow.sh", "my tools/slow.sh"] {
        let world = repository("ROADMAP.md", "- [ ] **a**: First\n");
        let agent = world.write(name, "#!/bin/sh\necho x > work\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&agent, mode).unwrap();
        let command = format!("'./{name}'");
        let words = ["roadmap", "run", "ROADMAP.md", "--command", &command];
        let refused = task_common::run(&world, &words);
        refused.assert_code(65);
        let told = task_common::said(&refused);
        assert!(told.contains(&format!("./{name} is not")), "{refused}");
        let full = format!("'{}'", agent.display());
        task_common::run(
            &world,
            &[
                "roadmap",
                "run",
                "ROADMAP.md",
                "--dry-run",
                "--command",
                &full,
            ],
        )
        .assert_code(0);
        let (_, typed) = told.split_once("type: ").unwrap();
        let (typed, _) = typed.split_once("; or give").unwrap();
        let mut sh = world.command("sh");
        sh.args(["-c", typed]);
        world.run(sh).assert_code(0);
        task_common::run(&world, &words).assert_code(0);
        assert_eq!(world.git(["show", "HEAD:work"]), "x");
    }
}

#[test]
fn max_time_is_for_all_attempts_together_and_blocks_that_task_alone() {
    let world = project("  - ralph: true\n  - max_time: 6s\n  - max_iterations: 9\n");
    let_other_work(&world);
    let agent = agent(&world, "append ../../../ran x\n@1 sleep 1s\n@2- hang");
    run(&world, &agent, &["--kill-grace", "100ms"]).assert_code(6);
    assert_blocked(&world, "time budget used up", 2);
    let text = std::fs::read_to_string(world.project().join("ROADMAP.md")).unwrap();
    assert!(text.contains("- [x] **other**") && text.contains("- [ ] **a**"));
}

#[test]
fn max_cost_is_for_all_attempts_together_and_needs_an_agent_that_tells_it() {
    let world = project("  - ralph: true\n  - max_cost: $0.75\n");
    let_other_work(&world);
    let agent = agent(&world, &prints(&claude_result("on it")));
    let refused = run(&world, &agent, &[]);
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("task a: --max-cost"),
        "{}",
        refused.stderr()
    );
    let flags = ["--backend", "claude", "--permissions", "edit"];
    run(&world, &agent, &flags).assert_code(6);
    assert_blocked(&world, "cost budget used up", 2);
}

#[test]
fn idle_timeout_ends_a_silent_agent() {
    let world = project("  - idle_timeout: 500ms\n");
    let_other_work(&world);
    let agent = agent(&world, "hang");
    run(&world, &agent, &["--kill-grace", "100ms"]).assert_code(6);
    assert_blocked(&world, "hung", 1);
}

#[test]
fn abort_promise_is_the_tasks_own() {
    let world = project("  - ralph: true\n  - abort_promise: HOPELESS\n");
    let_other_work(&world);
    let agent = agent(&world, "print it cannot be done ;; promise HOPELESS");
    run(&world, &agent, &[]).assert_code(6);
    assert_blocked(&world, "the agent gave up", 1);
}

#[test]
fn stuck_after_nudges_and_then_blocks_a_task_without_progress() {
    let world = project("  - ralph: true\n  - stuck_after: 1\n");
    let_other_work(&world);
    let agent = agent(
        &world,
        "save-prompt ../../../prompt-${ITERATION} ;; print thinking",
    );
    run(&world, &agent, &[]).assert_code(6);
    assert_blocked(&world, "without progress", 2);
}

#[test]
fn files_are_the_scope_of_a_task() {
    let world = project("  - files: src, docs/*.md\n  - retries: 1\n");
    let_other_work(&world);
    let script = "save-prompt ../../../prompt-${ITERATION}\nwrite src/a.txt x ;; write docs/a.md x\n\
        @1 write elsewhere.txt x\n@2 rm elsewhere.txt";
    let agent = agent(&world, script);
    let done = run(&world, &agent, &[]);
    done.assert_code(0);
    assert!(done.stdout().contains("out of scope"), "{}", done.stdout());
    let prompt =
        |n: u32| std::fs::read_to_string(world.state().join(format!("prompt-{n}"))).unwrap();
    assert!(prompt(1).contains("- docs/*.md"), "{}", prompt(1));
    let second = prompt(2);
    assert!(
        second.contains("OUT OF SCOPE") && second.contains("elsewhere.txt"),
        "{second}"
    );
    assert!(world.project().join("src/a.txt").exists());
    assert!(!world.project().join("elsewhere.txt").exists());
}

#[test]
fn a_second_cli_takes_over_where_the_first_fails() {
    let world = project("  - cli: first, second\n  - retries: 1\n");
    let profile = |name: &str, script: &str| {
        format!("[agents.{name}]\ncommand = {:?}\n", world.agent(script))
    };
    let config = [
        profile("first", "append ../../../ran first ;; exit 3"),
        profile("second", "append ../../../ran second ;; print done"),
    ];
    world.configure(config.concat());
    run(&world, "sh -c 'echo done'", &[]).assert_code(0);
    let ran = std::fs::read_to_string(world.state().join("ran")).unwrap();
    assert_eq!(ran, "first\nsecond\n");

    let missing = project("  - cli: first, nobody-has-this\n");
    let refused = run(&missing, "true", &[]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("task a:"), "{}", refused.stderr());
    assert!(!missing.project().join(".descartes").exists());
}

#[test]
fn dependencies_are_told_with_what_they_delivered() {
    let world = project("");
    let text =
        "# Roadmap: Keys\n## Tasks\n- [ ] **a**: Do it\n- [ ] **b**: Then this\n  - depends: a\n";
    world.write("ROADMAP.md", text);
    let script = "save-prompt ../../../prompt-${DESCARTES_TASK_ID}\n\
        print I chose the wide table\nwrite ${DESCARTES_TASK_ID}.txt x";
    let agent = world.agent(script);
    run(&world, &agent, &[]).assert_code(0);
    let prompt = std::fs::read_to_string(world.state().join("prompt-b")).unwrap();
    assert!(prompt.contains("changed a.txt"), "{prompt}");
    assert!(prompt.contains("I chose the wide table"), "{prompt}");
}

#[test]
fn growth_is_asked_for_capped_and_its_tasks_are_run() {
    let world = project("");
    // Asked for more it proposes a task, the second time the same one again.
    let script = "save-prompt ../../../prompt-${DESCARTES_TASK_ID}\n\
        print TASK_ID: more\nprint DESCRIPTION: One more\nprint TIMEOUT: 500\nprint CHECK: test -f more.txt\n\
        write ${DESCARTES_TASK_ID}.txt x";
    let agent = world.agent(script);
    run(&world, &agent, &["--growth", "51"]).assert_code(64);
    let done = run(&world, &agent, &["--growth", "2"]);
    done.assert_code(0);
    assert!(
        done.stdout().contains("task more was added to the roadmap"),
        "{}",
        done.stdout()
    );
    assert!(
        done.stdout().contains("no task was added"),
        "{}",
        done.stdout()
    );
    let text = world.read("ROADMAP.md");
    assert_eq!(text.matches("[x]").count(), 3, "{text}");
    assert!(
        text.contains("- [x] **more**: One more\n  - timeout: 2h\n  - check: test -f more.txt"),
        "{text}"
    );
    assert!(world.has("more.txt"));
    assert_eq!(
        world.git(["for-each-ref", "refs/heads/descartes", "refs/descartes"]),
        ""
    );
    let asked = std::fs::read_to_string(world.state().join("prompt-=growth-3")).unwrap();
    assert!(asked.contains("- other: Something else"), "{asked}");
}
