//! Whole graphs of tasks: real agents, real git, real task files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use descartes_core::host::{HostError, HostSettings};
use descartes_core::{
    IterativeExitReason as Reason, IterativeLoop, IterativeLoopConfig, ScudIterativeLoop,
    ScudLoopConfig,
};
use descartes_store::layout::StateRoot;
use descartes_testkit::World;
use serde_json::json;

fn settings(world: &World) -> HostSettings {
    let environment = world
        .environment()
        .into_iter()
        .map(|(k, v)| (k.into(), v.into()));
    HostSettings {
        root: StateRoot::at(world.state()),
        environment: environment.collect(),
        ..HostSettings::from_process().unwrap()
    }
}

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@meta {\n  name auth\n  \
    updated 2025-01-01T00:00:00.000000000+00:00\n}\n\n@nodes\n\
    # id | title | status | complexity | priority\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n\n\
    @edges\n# dependent -> dependency\n3 -> 1\n3 -> 2\n\n\
    @details\n1 | description |\n  Write the model.\n";

fn world(tasks: &str) -> World {
    let world = World::in_memory();
    world.git_init();
    world.write(".scud/tasks/tasks.scg", tasks);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world
}

fn config(world: &World, script: &str) -> ScudLoopConfig {
    let words = shell_words::split(&world.agent(script)).unwrap();
    ScudLoopConfig {
        tag: "auth".into(),
        in_place: true,
        base: IterativeLoopConfig {
            command: words[0].clone(),
            args: words[1..].to_vec(),
            completion_promise: Some("COMPLETE".into()),
            working_directory: Some(world.project()),
            failure_backoff_secs: 0,
            ..Default::default()
        },
        ..Default::default()
    }
}

async fn run(world: &World, config: ScudLoopConfig) -> (Reason, serde_json::Value) {
    let mut l = ScudIterativeLoop::with_settings(config, settings(world))
        .await
        .unwrap();
    let result = l.execute().await.unwrap();
    (result.exit_reason, serde_json::to_value(l.state()).unwrap())
}

fn statuses(world: &World) -> String {
    let text = std::fs::read_to_string(world.project().join(".scud/tasks/tasks.scg")).unwrap();
    let rows = text.lines().filter(|line| line.matches('|').count() == 4);
    rows.filter_map(|row| row.split(" | ").nth(2)).collect()
}

fn log(world: &World) -> Vec<String> {
    let log = world.git(["log", "--format=%s", "--reverse"]);
    log.lines().map(str::to_owned).collect()
}

/// Writes a file of the task's own, and claims.
const WORKS: &str = "write work-${DESCARTES_TASK_ID}.txt done ;; promise";

#[tokio::test]
async fn a_tag_is_run_wave_by_wave_with_a_commit_for_each() {
    let world = world(TASKS);
    let mut config = config(&world, WORKS);
    config.verification_command = Some("test -f work-1.txt || test -f work-2.txt".into());
    let (reason, state) = run(&world, config).await;
    assert_eq!(reason, Reason::GatesPassed);
    assert_eq!(statuses(&world), "statusDDD");
    assert_eq!(
        log(&world)[2..],
        ["feat(auth): complete wave 1", "feat(auth): complete wave 2"]
    );
    let wave = world.git(["show", "--name-only", "--format=", "HEAD~1"]);
    assert_eq!(wave, "work-1.txt\nwork-2.txt");
    assert_eq!(state["iteration"], 3);
    assert_eq!(state["wave_commits"].as_array().unwrap().len(), 2);
    assert_eq!(
        state["wave_commits"][0]["tasks_completed"],
        json!(["1", "2"])
    );
    assert_eq!(state["blocked_tasks"], json!([]));
    assert_eq!(state["iteration_summaries"][2]["task"], "3");
    // Every other byte of the task file is as it was, save the time of the change.
    let text = std::fs::read_to_string(world.project().join(".scud/tasks/tasks.scg")).unwrap();
    let same = |line: &&str| !line.contains("updated") && !line.contains(" | ");
    let (old, new) = (TASKS.lines().filter(same), text.lines().filter(same));
    assert!(old.eq(new));
}

#[tokio::test]
async fn a_task_that_stays_red_is_blocked_and_the_rest_goes_on() {
    let world = world(TASKS);
    let mut config = config(&world, WORKS);
    config.verification_command = Some("test ! -f work-1.txt".into());
    let (reason, state) = run(&world, config).await;
    // Task 2 comes after the red work of task 1, in the same tree.
    assert_eq!(reason.exit_code(), 6, "{reason:?}");
    assert_eq!(statuses(&world), "statusBBP");
    let blocked = &state["blocked_tasks"];
    assert_eq!(blocked[0]["task_id"], "1");
    assert_eq!(blocked[0]["attempts"], 3);
    assert!(
        blocked[0]["reason"]
            .as_str()
            .unwrap()
            .contains("verification failed")
    );
    assert_eq!(state["iteration"], 6);
}

#[tokio::test]
async fn an_agent_that_exits_with_an_error_or_does_nothing_has_done_nothing() {
    for script in ["exit 7", "print hello"] {
        let world = world(TASKS);
        let mut config = config(&world, script);
        config.verification_command = Some("true".into());
        config.max_iterations_per_task = 1;
        let (reason, state) = run(&world, config).await;
        assert!(
            matches!(
                reason,
                Reason::TasksBlocked { .. } | Reason::AgentFailed { .. }
            ),
            "{script}: {reason:?}"
        );
        assert_eq!(statuses(&world), "statusBBP", "{script}");
        assert_eq!(state["wave_commits"], json!([]));
    }
}

#[tokio::test]
async fn an_agent_that_sets_its_own_status_is_not_believed() {
    let world = world(TASKS);
    let script = "sh sed -i 's/| P |/| D |/; s/| I |/| D |/' .scud/tasks/tasks.scg";
    let mut config = config(&world, script);
    config.verification_command = Some("false".into());
    config.max_iterations_per_task = 1;
    let (reason, _) = run(&world, config).await;
    // What it did to tasks that nobody worked on is checked by the gates: red, each is set back
    // once; task 3 is marked a second time by the agent of task 2, and that mark stays.
    assert_eq!(reason.exit_code(), 6);
    assert_eq!(statuses(&world), "statusBBD");
}

#[tokio::test]
async fn the_prompt_tells_the_task_and_its_gate_and_the_red_one_comes_back() {
    let world = world(TASKS);
    let mut config = config(
        &world,
        "save-prompt ../prompt-${DESCARTES_TASK_ID}-${ITERATION} ;; write a-${ITERATION} x ;; promise",
    );
    config.verification_command = Some("echo boom; test -f a-2".into());
    let (reason, _) = run(&world, config).await;
    assert_eq!(reason, Reason::GatesPassed);
    let prompt =
        |name: &str| std::fs::read_to_string(world.project().join("..").join(name)).unwrap();
    let first = prompt("prompt-1-1");
    assert!(first.contains("# Task 1: Model") && first.contains("Write the model."));
    assert!(first.contains("test -f a-2") && first.contains("<promise>COMPLETE</promise>"));
    let second = prompt("prompt-1-2");
    assert!(second.contains("VERIFICATION FAILED") && second.contains("boom"));
    assert!(prompt("prompt-3-1").contains("Done before"));
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_any_agent() {
    let cycle = TASKS.replace("3 -> 1\n", "3 -> 1\n1 -> 3\n");
    let unknown = TASKS.replace("3 -> 1\n", "3 -> 9\n");
    for (tasks, tag, words) in [
        (TASKS, "nope", "no tag `nope`"),
        (cycle.as_str(), "auth", "dependency cycle"),
        (unknown.as_str(), "auth", "`9`"),
    ] {
        let world = world(tasks);
        let mut config = config(&world, "write started x");
        config.tag = tag.into();
        let error = ScudIterativeLoop::with_settings(config, settings(&world))
            .await
            .unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_code(), 65);
        assert!(!world.project().join("started").exists());
        assert!(!world.project().join(".descartes").exists());
    }
}

#[tokio::test]
async fn in_place_needs_a_clean_tree_and_works_without_git() {
    let world = world(TASKS);
    world.write("mine.txt", "mine");
    let error = ScudIterativeLoop::with_settings(config(&world, WORKS), settings(&world))
        .await
        .unwrap_err();
    assert!(matches!(error, HostError::Refused { .. }));
    assert!(error.to_string().contains("mine.txt"), "{error}");

    let plain = World::in_memory();
    plain.write(".scud/tasks/tasks.scg", TASKS);
    let (reason, state) = run(&plain, config(&plain, WORKS)).await;
    assert_eq!(reason, Reason::CompletionPromiseDetected);
    assert_eq!(statuses(&plain), "statusDDD");
    assert_eq!(state["wave_commits"][0]["commit_hash"], json!(null));
}

#[tokio::test]
async fn a_stopped_task_loop_goes_on_where_it_was() {
    let world = world(TASKS);
    // Task 2 hangs until a person's file is there.
    let script = "write work-${DESCARTES_TASK_ID}.txt x ;; append ../runs ${DESCARTES_TASK_ID}\n\
        unless-file ../go if-file work-2.txt hang\npromise";
    let config = config(&world, script);
    let mut l = ScudIterativeLoop::with_settings(config, settings(&world))
        .await
        .unwrap();
    let cancel = l.as_loop().cancellation_handle();
    let runs = world.project().join("../runs");
    let watch = std::thread::spawn(move || {
        descartes_testkit::eventually("task 2", std::time::Duration::from_secs(60), || {
            std::fs::read_to_string(&runs).is_ok_and(|text| text == "1\n2\n")
        });
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let result = l.execute().await.unwrap();
    watch.join().unwrap();
    assert_eq!(result.exit_reason, Reason::UserCancelled);
    assert_eq!(statuses(&world), "statusDPP");
    world.write("../go", "");
    let file: PathBuf = world.project().join(".descartes/loop-state.json");
    let mut again = IterativeLoop::resume_with(&file, settings(&world))
        .await
        .unwrap();
    let result = again.execute().await.unwrap();
    assert_eq!(result.exit_reason, Reason::CompletionPromiseDetected);
    assert_eq!(statuses(&world), "statusDDD");
    let runs = std::fs::read_to_string(world.project().join("../runs")).unwrap();
    assert_eq!(runs, "1\n2\n2\n3\n");
}

/// The same, in worktrees.
fn trees(world: &World, script: &str) -> ScudLoopConfig {
    ScudLoopConfig {
        in_place: false,
        verification_command: Some("true".into()),
        ..config(world, script)
    }
}

fn branches(world: &World) -> String {
    world.git([
        "for-each-ref",
        "--format=%(refname)",
        "refs/heads/descartes",
        "refs/descartes",
    ])
}

#[tokio::test]
async fn work_in_worktrees_lands_wave_by_wave_and_the_users_own_changes_stay() {
    let world = world(TASKS);
    world.write("README.md", "changed by me\n");
    world.write("mine.txt", "mine");
    let (reason, state) = run(&world, trees(&world, WORKS)).await;
    assert_eq!(reason, Reason::GatesPassed, "{state:#}");
    assert_eq!(statuses(&world), "statusDDD");
    assert_eq!(
        log(&world)[2..],
        [
            "feat(auth): complete wave 1",
            "chore(auth): mark tasks 1, 2 done",
            "feat(auth): complete wave 2",
            "chore(auth): mark task 3 done"
        ]
    );
    let wave = world.git(["show", "--name-only", "--format=", "HEAD~3"]);
    assert_eq!(wave, "work-1.txt\nwork-2.txt");
    let head = world.git(["rev-parse", "HEAD~1"]);
    assert_eq!(state["wave_commits"][1]["commit_hash"], json!(head));
    let text = std::fs::read_to_string(world.project().join("README.md")).unwrap();
    assert_eq!(text, "changed by me\n");
    assert!(world.project().join("mine.txt").exists());
    assert_eq!(branches(&world), "");
    assert_eq!(world.git(["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.git(["stash", "list"]), "");
}

#[tokio::test]
async fn tasks_run_at_the_same_time_and_a_conflict_goes_back_to_its_agent() {
    let world = world(TASKS);
    // Both wait for each other, then write the same file; told of a conflict, they solve it.
    let script = "touch ../../../met-${DESCARTES_TASK_ID} ;; save-prompt ../../../p-${DESCARTES_TASK_ID}-${ITERATION}\n\
        if-file ../../../met-3 write three.txt x ;; if-file ../../../met-3 promise ;; if-file ../../../met-3 exit 0\n\
        wait-file ../../../met-1 60s ;; wait-file ../../../met-2 60s\n\
        @1 append shared.txt by ${DESCARTES_TASK_ID} ;; promise\n\
        @2 write shared.txt both ;; promise";
    let mut config = trees(&world, script);
    config.parallel = 2;
    let (reason, state) = run(&world, config).await;
    assert_eq!(reason, Reason::GatesPassed, "{state:#}");
    let text = std::fs::read_to_string(world.project().join("shared.txt")).unwrap();
    assert_eq!(text, "both\n");
    assert_eq!(state["iteration"], 4);
    let root = world.state().join("worktrees").join("..");
    let told = ["p-1-2", "p-2-2"]
        .into_iter()
        .filter_map(|name| std::fs::read_to_string(root.join(name)).ok())
        .collect::<String>();
    assert!(
        told.contains("CONFLICT") && told.contains("shared.txt"),
        "{told}"
    );
    assert_eq!(log(&world).len(), 6, "two waves, each with its statuses");
    assert_eq!(branches(&world), "");
}

#[tokio::test]
async fn what_is_red_only_together_goes_back_to_its_agent() {
    let world = world(TASKS);
    let script = "touch ../../../at-${DESCARTES_TASK_ID}\n\
        unless-file ../../../at-3 wait-file ../../../at-1 60s\n\
        unless-file ../../../at-3 wait-file ../../../at-2 60s\n\
        @1 write part-${DESCARTES_TASK_ID} x ;; promise\n\
        @2 write together x ;; promise";
    let mut config = trees(&world, script);
    config.parallel = 2;
    // Two parts need something that neither has alone.
    config.verification_command =
        Some("test ! -f part-1 || test ! -f part-2 || test -f together".into());
    let (reason, state) = run(&world, config).await;
    assert_eq!(reason, Reason::GatesPassed, "{state:#}");
    assert!(world.project().join("together").exists());
    assert_eq!(statuses(&world), "statusDDD");
}

#[tokio::test]
async fn a_blocked_tasks_work_stays_on_its_branch() {
    let world = world(TASKS);
    let mut config = trees(&world, WORKS);
    config.verification_command = Some("test ! -f work-1.txt".into());
    let (reason, state) = run(&world, config).await;
    assert_eq!(reason.exit_code(), 6);
    assert_eq!(statuses(&world), "statusBDP");
    assert!(!world.project().join("work-1.txt").exists());
    assert!(world.project().join("work-2.txt").exists());
    assert_eq!(
        branches(&world),
        "refs/descartes/auth/ours/1\nrefs/heads/descartes/auth/1"
    );
    let work = world.git(["show", "descartes/auth/1:work-1.txt"]);
    assert_eq!(work, "done");
    assert_eq!(state["blocked_tasks"][0]["attempts"], 3);
}

#[tokio::test]
async fn work_that_overlaps_with_the_users_changes_waits_to_land() {
    let world = world(TASKS);
    world.write("README.md", "mine, in no commit\n");
    let script = "write README.md by-${DESCARTES_TASK_ID} ;; promise";
    let (reason, state) = run(&world, trees(&world, script)).await;
    assert_eq!(reason.exit_code(), 6, "{reason:?}");
    assert!(reason.sentence().contains("README.md"), "{reason:?}");
    assert_eq!(log(&world).len(), 2, "nothing landed");
    let text = std::fs::read_to_string(world.project().join("README.md")).unwrap();
    assert_eq!(text, "mine, in no commit\n");
    assert_eq!(state["landing"]["landing"], "ready", "{state:#}");
    let branch = state["landing"]["branch"].as_str().unwrap();
    let ready = world.git(["show", &format!("{branch}:README.md")]);
    assert_eq!(ready, "by-3");
    world.git(["checkout", "--", "README.md"]);
    world.git(["merge", "--ff-only", "--quiet", branch]);
    assert_eq!(log(&world).len(), 4);
}

#[tokio::test]
async fn commits_that_the_user_makes_meanwhile_are_built_upon() {
    let world = world(TASKS);
    let project = world.project();
    let project = project.display();
    let script = format!(
        "write work-${{DESCARTES_TASK_ID}}.txt x ;; promise\n\
         sh cd {project} && echo ${{DESCARTES_TASK_ID}} >> user.txt && git add user.txt && git commit -qm user-${{DESCARTES_TASK_ID}} && cd - >/dev/null"
    );
    let (reason, state) = run(&world, trees(&world, &script)).await;
    assert_eq!(reason, Reason::GatesPassed, "{state:#}");
    let mut subjects = log(&world);
    subjects.retain(|subject| !subject.starts_with("chore"));
    assert!(subjects.contains(&"user-3".to_owned()), "{subjects:?}");
    assert_eq!(subjects.last().unwrap(), "feat(auth): complete wave 2");
    for id in 1..=3 {
        assert!(world.project().join(format!("work-{id}.txt")).exists());
    }
    assert_eq!(
        std::fs::read_to_string(world.project().join("user.txt")).unwrap(),
        "1\n2\n3\n"
    );
}

#[tokio::test]
async fn without_barriers_each_task_lands_and_waves_are_marked() {
    let world = world(TASKS);
    let mut config = trees(&world, WORKS);
    config.wave_barrier = false;
    let (reason, state) = run(&world, config).await;
    assert_eq!(reason, Reason::GatesPassed, "{state:#}");
    let mut subjects = log(&world)[2..].to_vec();
    subjects.retain(|subject| !subject.starts_with("chore"));
    assert_eq!(subjects.pop().unwrap(), "feat(auth): complete wave 2");
    assert!(subjects.contains(&"[1] Model".to_owned()), "{subjects:?}");
    assert!(
        subjects.contains(&"feat(auth): complete wave 1".to_owned()),
        "{subjects:?}"
    );
}
