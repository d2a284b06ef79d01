//! What a person writes into a state file holds: variables for the agent, a branch to work on.

use descartes_testkit::World;
use serde_json::{Value, json};

use crate::common::{descartes, events, loop_dir, state};

const FILE: &str = ".descartes/loop-state.json";
const SECRET: &str = "hunter2-of-the-file";

/// A state file with these fields of `config` and an agent that works by this script.
fn by_hand(world: &World, script: &str, fields: Value) {
    let words = shell_words::split(&world.agent(script)).unwrap();
    let mut config = json!({
        "command": words[0], "args": words[1..], "prompt": "go", "completion_promise": "COMPLETE",
    });
    let more = fields.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(more);
    let file = json!({"version": "1.0", "iteration": 0, "config": config, "own": "kept"});
    world.write(FILE, file.to_string());
}

fn environment() -> Value {
    json!({"backend": {"environment": {"KEY_OF_FILE": SECRET}}, "max_iterations": 1})
}

/// Which files of the loop's own folder hold the value.
fn told_in_the_journal(world: &World) -> String {
    let mut grep = std::process::Command::new("grep");
    let found = grep.args(["-rl", SECRET]).arg(loop_dir(world));
    let found = found.output().unwrap();
    String::from_utf8_lossy(&found.stdout).into_owned()
}

#[test]
fn variables_in_the_file_reach_the_agent_at_every_resume_and_stay_where_they_are() {
    let world = World::in_memory();
    by_hand(&world, "dump-env env-${ITERATION}", environment());
    for iteration in 1..=3 {
        let limit = iteration.to_string();
        let run = descartes(&world, &["loop", "resume", "-m", &limit]);
        run.assert_code(2);
        assert!(!run.stderr().contains("pass them again"), "{run}");
        assert!(!format!("{run}").contains(SECRET), "{run}");
        let env = world.read(format!("env-{iteration}"));
        assert!(env.contains(&format!("KEY_OF_FILE={SECRET}")), "{env}");
        let file = state(&world);
        assert_eq!(
            file["config"]["backend"]["environment"]["KEY_OF_FILE"],
            SECRET
        );
        assert_eq!(
            (&file["own"], &file["iteration"]),
            (&json!("kept"), &json!(iteration))
        );
    }
    assert_eq!(told_in_the_journal(&world), "");
    // Commands to a loop that is not running write the file as well.
    descartes(&world, &["loop", "set", "--max-iterations", "9"]).assert_code(0);
    let file = state(&world);
    assert_eq!(
        file["config"]["backend"]["environment"]["KEY_OF_FILE"],
        SECRET
    );
    let shown = descartes(&world, &["loop", "status", "--json"]);
    assert!(!shown.stdout().contains(SECRET), "{shown}");
}

#[test]
fn a_value_on_the_command_line_wins_and_is_not_written() {
    let world = World::in_memory();
    by_hand(&world, "dump-env env", environment());
    let words = [
        "loop",
        "resume",
        "--env",
        "KEY_OF_FILE=of-the-flag",
        "--env",
        "OTHER=x-of-the-flag",
    ];
    descartes(&world, &words).assert_code(2);
    let env = world.read("env");
    assert!(env.contains("KEY_OF_FILE=of-the-flag"), "{env}");
    let file = world.read(FILE);
    assert!(
        file.contains(SECRET) && !file.contains("of-the-flag"),
        "{file}"
    );
}

#[test]
fn variables_that_the_agent_put_into_the_file_hold_only_where_a_person_accepts_them() {
    let world = World::in_memory();
    // It changes nothing but a value, or adds one.
    let script = "dump-env env-${ITERATION}\n\
                  @1 sh sed -i 's/hunter2-of-the-file/of-the-agent/' .descartes/loop-state.json";
    by_hand(&world, script, environment());
    descartes(&world, &["loop", "resume", "-m", "1"]).assert_code(2);
    // The host wrote its own over it; so it is done again while nobody looks.
    let text = world.read(FILE);
    assert!(text.contains(SECRET), "{text}");
    world.write(FILE, text.replace(SECRET, "of-the-agent"));
    let run = descartes(&world, &["loop", "resume", "-m", "2"]);
    run.assert_code(2);
    assert!(run.stderr().contains("backend.environment"), "{run}");
    assert!(run.stderr().contains("--accept-edits"), "{run}");
    assert!(!world.read("env-2").contains("KEY_OF_FILE"));
    let run = descartes(&world, &["loop", "resume", "-m", "3", "--accept-edits"]);
    run.assert_code(2);
    let env = world.read("env-3");
    assert!(env.contains("KEY_OF_FILE=of-the-agent"), "{env}");
    descartes(&world, &["loop", "resume", "-m", "4"]).assert_code(2);
    let env = world.read("env-4");
    assert!(env.contains("KEY_OF_FILE=of-the-agent"), "{env}");
}

#[test]
fn a_branch_that_the_file_asks_for_is_made_once() {
    let world = World::in_memory();
    world.git_init();
    world.write("README.md", "x");
    world.git(["add", "-A"]);
    world.git(["commit", "-qm", "first"]);
    let fields = json!({
        "git": {"create_branch": true, "branch_template": "loop/by-hand", "auto_commit": true},
        "max_iterations": 1,
    });
    by_hand(&world, "append log x", fields);
    descartes(&world, &["loop", "resume", "-m", "1"]).assert_code(2);
    let on = || world.git(["branch", "--show-current"]).trim().to_owned();
    assert_eq!(on(), "loop/by-hand");
    assert_eq!(events(&world, "branched").len(), 1);
    let log = world.git(["log", "--format=%s", "-1"]);
    assert_eq!(log.trim(), "loop: iteration 1");
    // The second time it is there already, and nothing is made again.
    descartes(&world, &["loop", "resume", "-m", "2"]).assert_code(2);
    assert_eq!(events(&world, "branched").len(), 1);
    assert_eq!(on(), "loop/by-hand");
}

#[test]
fn a_branch_that_an_edited_file_asks_for_is_made() {
    let world = World::in_memory();
    world.git_init();
    world.write("README.md", "x");
    world.git(["add", "-A"]);
    world.git(["commit", "-qm", "first"]);
    by_hand(&world, "append log x", json!({"max_iterations": 1}));
    descartes(&world, &["loop", "resume", "-m", "1"]).assert_code(2);
    let text = world.read(FILE);
    let text = text.replace("\"create_branch\": false", "\"create_branch\": true");
    let text = text.replace("loop/{timestamp}", "loop/later");
    world.write(FILE, text);
    descartes(&world, &["loop", "resume", "-m", "2"]).assert_code(2);
    assert_eq!(world.git(["branch", "--show-current"]).trim(), "loop/later");
}

#[test]
fn a_branch_that_cannot_be_made_refuses_the_resume_and_leaves_no_loop() {
    let world = World::in_memory();
    let fields = json!({"git": {"create_branch": true}});
    by_hand(&world, "touch ran ;; promise", fields);
    let before = world.read(FILE);
    let run = descartes(&world, &["loop", "resume"]);
    run.assert_code(65);
    assert!(run.stderr().contains("branch"), "{run}");
    assert!(!world.has("ran"));
    assert_eq!(world.read(FILE), before);
    // Mended in git, it goes on.
    world.git_init();
    world.git(["add", "-A"]);
    world.git(["commit", "-qm", "first", "--allow-empty"]);
    descartes(&world, &["loop", "resume"]).assert_code(0);
}

#[test]
fn an_edit_that_does_not_hold_is_named_even_where_the_loop_is_at_its_limit() {
    let world = World::in_memory();
    by_hand(&world, "print working", json!({"max_iterations": 1}));
    descartes(&world, &["loop", "resume"]).assert_code(2);
    let text = world.read(FILE);
    let looser = text.replace("\"max_iterations\": 1", "\"max_iterations\": 9");
    assert_ne!(text, looser);
    world.write(FILE, looser);
    let run = descartes(&world, &["loop", "resume"]);
    run.assert_code(2);
    assert!(run.stderr().contains("max_iterations: 1 -> 9"), "{run}");
    assert!(run.stderr().contains("--accept-edits"), "{run}");
}
