//! Settings in layers, and `config show`.

use descartes_testkit::World;

use crate::common::{CLAIMS, descartes, events, start, start_command, state};

fn user_file(world: &World, text: &str) {
    let folder = world.home().join(".config/descartes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

#[test]
fn flags_win_over_environment_over_project_over_user_over_defaults() {
    let script = "print hm";
    let runs = |world: &World, variable: Option<&str>, flags: &[&str]| {
        let mut command = start_command(world, script, &[&["--force"], flags].concat());
        command.envs(variable.map(|value| ("DESCARTES_MAX_ITERATIONS", value)));
        world.run(command).assert_code(2);
        state(world)["iteration"].as_u64().unwrap()
    };
    let world = World::in_memory();
    user_file(&world, "max_iterations = 4\n");
    assert_eq!(runs(&world, None, &[]), 4);
    world.write(".descartes/config.toml", "max_iterations = 3\n");
    assert_eq!(runs(&world, None, &[]), 3);
    assert_eq!(runs(&world, Some("2"), &[]), 2);
    assert_eq!(runs(&world, Some("2"), &["-m", "1"]), 1);
}

#[test]
fn a_project_file_can_hold_everything_but_the_flags() {
    let world = World::in_memory();
    let agent = world.agent("save-prompt seen\ntouch proof\npromise");
    world.write("PROMPT.md", "from the file");
    world.configure(format!(
        "default_agent = {agent:?}\nprompt_file = \"PROMPT.md\"\nverify = \"test -e proof\"\n"
    ));
    descartes(&world, &["loop", "start"]).assert_code(0);
    assert!(world.read("seen").starts_with("from the file"));
    assert_eq!(events(&world, "gate_finished").len(), 1);
}

#[test]
fn a_promise_on_the_command_line_wins_over_no_promise_in_a_file() {
    let world = World::in_memory();
    world.write(".descartes/config.toml", "no_promise = true\n");
    start(
        &world,
        "print hm",
        &["-m", "1", "--completion-promise", "READY_TO_SHIP"],
    )
    .assert_code(2);
    start(&world, "print hm", &["-m", "1", "--force"]).assert_code(0);
}

#[test]
fn own_agents_are_profiles_in_a_config_file() {
    let world = World::in_memory();
    let agent = world.agent("dump-argv seen\nread-stdin-to prompt\npromise");
    world.configure(format!(
        "[agents.mine]\ncommand = {agent:?}\nargs = [\"--headless\"]\nprompt_mode = \"stdin\"\n"
    ));
    descartes(&world, &["loop", "start", "--backend", "mine", "-p", "go"]).assert_code(0);
    assert!(world.read("seen").contains("--headless"));
    assert_eq!(world.read("prompt").trim_end(), "go");
}

#[test]
fn pass_env_names_what_agents_may_see() {
    let world = World::in_memory();
    world.configure("pass_env = [\"WANTED\", \"ALSO_*\"]\n");
    let gate = ["--verify", "printenv MY_SECRET > gate-saw"];
    let mut command = start_command(&world, "dump-env seen\npromise", &gate);
    command.env("MY_SECRET", "s3cret").env("WANTED", "yes");
    command.env("ALSO_THIS", "too").env("LC_TIME", "C");
    world.run(command).assert_code(0);
    let seen = world.read("seen");
    assert!(!seen.contains("s3cret"), "{seen}");
    // What it names, and what nothing works without.
    let passed = ["WANTED=yes", "ALSO_THIS=too", "PATH=", "HOME=", "LC_TIME=C"];
    for variable in passed.iter().chain(&["DESCARTES_ITERATION=1"]) {
        assert!(seen.contains(variable), "{variable}: {seen}");
    }
    // A gate is the user's own program.
    assert_eq!(world.read("gate-saw").trim(), "s3cret");
}

#[test]
fn unknown_keys_are_warned_of_with_the_nearest_known_one() {
    let world = World::in_memory();
    world.write(".descartes/config.toml", "max_iteration = 3\n");
    let run = start(&world, CLAIMS, &[]);
    run.assert_code(0);
    let err = run.stderr();
    assert!(
        err.contains("warning: ")
            && err.contains("config.toml:1")
            && err.contains("max_iterations"),
        "{run}"
    );
}

#[test]
fn what_is_hinted_at_works_with_the_settings_that_do_not() {
    let world = World::in_memory();
    for (text, place) in [
        (
            "timeout = 0\n",
            "config.toml:1:11: `timeout`: must be greater than zero",
        ),
        ("max_iterations = \n", "config.toml:1:"),
        ("[agents.x]\nstream = \"y\"\n", "agent `x`"),
    ] {
        world.write(".descartes/config.toml", text);
        let run = start(&world, CLAIMS, &[]);
        run.assert_code(64);
        assert!(run.stderr().contains(place), "{run}");
        let hint = run.stderr().lines().last().unwrap().to_owned();
        let (_, words) = hint.rsplit_once("descartes ").expect(&hint);
        let hinted = descartes(&world, &words.split(' ').collect::<Vec<_>>());
        hinted.assert_code(0);
        assert!(hinted.stdout().contains("max_iterations"), "{hinted}");
    }
    std::fs::remove_file(world.path(".descartes/config.toml")).unwrap();
    std::fs::create_dir(world.path(".descartes/config.toml")).unwrap();
    let run = start(&world, CLAIMS, &[]);
    run.assert_code(65);
    assert!(run.stderr().contains("move it"), "{run}");
}

#[test]
fn settings_of_task_loops_in_a_file_hinder_no_other_loop() {
    let world = World::in_memory();
    world.write(
        ".descartes/config.toml",
        "parallel = 2\nmax_iterations_per_task = 2\nwave_barrier = false\n\
         branch_template = \"mine/{timestamp}\"\n",
    );
    let run = start(&world, "promise", &[]);
    run.assert_code(0);
    assert_eq!(run.stderr(), "");
}

#[test]
fn templates_that_nothing_uses_are_warned_of() {
    for (flags, needs) in [
        (["--branch-template", "mine/{timestamp}"], "--branch"),
        (["--commit-template", "step {iteration}"], "--auto-commit"),
    ] {
        let run = start(&World::in_memory(), "promise", &flags);
        run.assert_code(0);
        let words = format!("warning: {} has no effect without {needs}", flags[0]);
        assert!(run.stderr().contains(&words), "{run}");
    }
}

#[test]
fn weak_promises_are_warned_of() {
    let run = start(
        &World::in_memory(),
        "promise DONE",
        &["--completion-promise", "DONE"],
    );
    run.assert_code(0);
    assert!(
        run.stderr().contains("warning: the promise `DONE`"),
        "{run}"
    );
    let flags = ["--completion-promise", "DONE", "--promise-match", "tagged"];
    assert_eq!(
        start(&World::in_memory(), "promise DONE", &flags).stderr(),
        ""
    );
}

#[test]
fn config_show_tells_each_value_with_its_source() {
    let world = World::in_memory();
    user_file(&world, "max_failures = 9\n");
    world.write(".descartes/config.toml", "\nmax_iterations = 3\n");
    let mut command = world.descartes(["config", "show"]);
    command.env("DESCARTES_TIMEOUT", "1h");
    let run = world.run(command);
    run.assert_code(0);
    let row = |key: &str| {
        let found = run
            .stdout()
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .map(str::to_owned);
        found.unwrap_or_else(|| panic!("{key}: {run}"))
    };
    assert!(
        row("max_iterations").contains("project file")
            && row("max_iterations").contains("config.toml:2")
    );
    assert!(row("max_failures").contains("user file"));
    assert!(row("timeout").contains("DESCARTES_TIMEOUT"));
    assert!(row("kill_grace").contains("default"));
    assert!(row("max_cost").contains("default"));
    let json = descartes(&world, &["config", "show", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json.stdout()).unwrap();
    let found = rows
        .iter()
        .find(|row| row["key"] == "max_iterations")
        .unwrap();
    assert_eq!(
        (&found["value"], &found["source"]),
        (&3.into(), &"project file".into())
    );
}
