//! Code that is written from the guide compiles and runs: its types, its names, its paths.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use descartes_core::host::HostSettings;
use descartes_core::iterative_loop::{
    self, ClaudeBackend, ConfigChange, GenericBackend, IterativeExitReason, IterativeLoop,
    IterativeLoopConfig, IterativeLoopState, LoopBackend, LoopBackendConfig, LoopGitConfig,
    LoopSpecConfig, OpenCodeBackend, RalphConfig, RalphExecutor, RalphPersistence,
    ScudIterativeLoop, ScudLoopConfig,
};
use descartes_store::layout::StateRoot;
use descartes_testkit::{World, eventually};

const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

fn settings(world: &World) -> HostSettings {
    let environment = world.environment().into_iter();
    let environment = environment.map(|(k, v)| (k.into(), v.into()));
    HostSettings {
        root: StateRoot::at(world.state()),
        environment: environment.collect(),
        ..HostSettings::from_process().unwrap()
    }
}

/// As the guide has it: every field of its tables, by its type.
fn config(world: &World, script: &str) -> IterativeLoopConfig {
    let words = shell_words::split(&world.agent(script)).unwrap();
    IterativeLoopConfig {
        command: words[0].clone(),
        args: words[1..].to_vec(),
        prompt: "Do the work".to_string(),
        completion_promise: Some("COMPLETE".to_string()),
        max_iterations: Some(5),
        working_directory: Some(world.project()),
        state_file: None,
        include_iteration_context: true,
        iteration_timeout_secs: Some(300u64),
        backend: LoopBackendConfig {
            backend_type: "generic".to_string(),
            prompt_mode: "arg".to_string(),
            environment: HashMap::<String, String>::new(),
            output_format: "text".to_string(),
            ..Default::default()
        },
        git: LoopGitConfig {
            auto_commit: false,
            commit_template: "loop: iteration {iteration}".to_string(),
            create_branch: false,
            branch_template: "loop/{timestamp}".to_string(),
            ..Default::default()
        },
        ..Default::default()
    }
}

async fn begin(world: &World, config: IterativeLoopConfig) -> IterativeLoop {
    let begun = IterativeLoop::with_settings(config, settings(world)).await;
    begun.unwrap()
}

#[test]
fn the_guides_names_are_at_the_root_and_in_its_module() {
    let _: iterative_loop::LoopClaudeBackend = descartes_core::ClaudeBackend {
        model: Some("opus".to_string()),
        output_format: "stream-json".to_string(),
    };
    let _: descartes_core::LoopOpenCodeBackend = OpenCodeBackend { model: None };
    let _: descartes_core::LoopGenericBackend = GenericBackend {
        command: "python".to_string(),
        base_args: vec!["agent.py".to_string()],
    };
    let state: descartes_core::IterativeLoopState = iterative_loop::IterativeLoopState::default();
    let started: descartes_core::Timestamp = state.started_at;
    let last: Option<iterative_loop::Timestamp> = state.last_iteration_at;
    let why: Option<IterativeExitReason> = state.exit_reason;
    assert_eq!(state.version, "1.0");
    assert_eq!((last, why), (None, Some(IterativeExitReason::Running)));
    assert!(started.to_string().ends_with('Z'), "{started}");
    let scud = ScudLoopConfig {
        tag: "feature-x".to_string(),
        plan_path: Some(PathBuf::from("/path/to/plan.md")),
        max_iterations_per_task: 3u32,
        max_total_iterations: 100u32,
        spec: LoopSpecConfig {
            additional_specs: vec![PathBuf::from("./ARCHITECTURE.md")],
            max_spec_tokens: Some(5000),
            ..Default::default()
        },
        ..Default::default()
    };
    let written = serde_json::to_value(&scud).unwrap();
    assert_eq!(written["max_total_iterations"], 100);
    let least: ScudLoopConfig = serde_json::from_str(r#"{"tag": "feature-x"}"#).unwrap();
    assert_eq!(least.max_iterations_per_task, 3);
    assert!(least.use_sub_agents && least.auto_commit_waves);
}

#[tokio::test]
async fn a_config_of_the_guide_runs() {
    let world = World::in_memory();
    let mut l = begin(&world, config(&world, "@2 promise\n@* print working")).await;
    let result = l.execute().await.unwrap();
    assert_eq!(
        (result.iterations_completed, result.completion_promise_found),
        (2, true)
    );
    let state: &IterativeLoopState = l.state();
    assert_eq!(
        state.exit_reason,
        Some(IterativeExitReason::CompletionPromiseDetected)
    );
    assert_eq!(state.config.iteration_timeout_secs, Some(300));
    assert_eq!(state.config.backend.prompt_mode, "arg");
    // The file is what the state is, and both are read as the same.
    let text = std::fs::read_to_string(l.state_file()).unwrap();
    let mut read: IterativeLoopState = serde_json::from_str(&text).unwrap();
    read.extra.remove("journal");
    assert_eq!(read, *state);
}

#[tokio::test]
async fn a_wrong_word_is_an_error_of_new_that_names_its_place() {
    let world = World::in_memory();
    let mut odd = config(&world, "promise");
    odd.backend.prompt_mode = "pipe".to_string();
    let error = IterativeLoop::with_settings(odd, settings(&world)).await;
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 64);
    assert!(
        error.to_string().contains("backend.prompt_mode: `pipe`"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("`stdin`"), "{error:?}");
    let mut odd = config(&world, "promise");
    odd.backend.backend_type = "clod".to_string();
    let error = IterativeLoop::with_settings(odd, settings(&world)).await;
    assert!(error.unwrap_err().to_string().contains("`clod`"));
    assert!(!world.has(".descartes"));
}

#[tokio::test]
async fn a_state_that_serde_wrote_is_resumed() {
    let world = World::in_memory();
    let state = IterativeLoopState {
        iteration: 3,
        config: config(&world, "print iteration ${ITERATION}\n@4 promise"),
        ..Default::default()
    };
    let text = serde_json::to_string_pretty(&state).unwrap();
    let path = world.write(".descartes/loop-state.json", text);
    let mut l = IterativeLoop::resume_with(path.clone(), settings(&world))
        .await
        .unwrap();
    assert_eq!(l.current_iteration(), 3);
    assert_eq!(l.state().started_at, state.started_at);
    let result = l.execute().await.unwrap();
    assert_eq!(result.iterations_completed, 4);
    assert!(result.final_output.contains("iteration 4"), "{result:?}");
}

#[tokio::test]
async fn a_loops_own_state_written_back_by_serde_goes_on() {
    let world = World::in_memory();
    let mut asked = config(&world, "print working\n@3 promise");
    asked.max_iterations = Some(2);
    let mut l = begin(&world, asked).await;
    l.execute().await.unwrap();
    let mut state = l.state().clone();
    assert_eq!(
        state.exit_reason,
        Some(IterativeExitReason::MaxIterationsReached)
    );
    state.config.max_iterations = Some(9);
    let text = serde_json::to_string(&state).unwrap();
    std::fs::write(l.state_file(), text).unwrap();
    // A looser limit in a file is for a person to accept: it is said, and nothing runs.
    let mut again = IterativeLoop::resume_with(l.state_file(), settings(&world))
        .await
        .unwrap();
    let said = again.notices().join("\n");
    assert!(said.contains("max_iterations: 2 -> 9"), "{said}");
    let result = again.execute().await.unwrap();
    assert_eq!(result.iterations_completed, 2);
    let more = ConfigChange {
        max_iterations: Some(Some(9)),
        ..Default::default()
    };
    let mut again = IterativeLoop::resume_changed(l.state_file(), more, settings(&world))
        .await
        .unwrap();
    assert_eq!(again.execute().await.unwrap().iterations_completed, 3);
    // Interrupted at its second iteration, it goes on with its third.
    let world = World::in_memory();
    let script = "print working\n@2 touch up\n@2 hang\n@3 promise";
    let mut l = begin(&world, config(&world, script)).await;
    let flag = l.cancellation_handle();
    let up = world.path("up");
    std::thread::spawn(move || {
        eventually("the second iteration runs", EVENT_TIMEOUT, || up.exists());
        flag.store(true, Ordering::Relaxed);
    });
    let result = l.execute().await.unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
    let done = l.current_iteration();
    let text = serde_json::to_string(l.state()).unwrap();
    std::fs::write(l.state_file(), text).unwrap();
    let mut again = IterativeLoop::resume_with(l.state_file(), settings(&world))
        .await
        .unwrap();
    assert_eq!(again.current_iteration(), done);
    let result = again.execute().await.unwrap();
    assert!(result.completion_promise_found, "{result:?}");
    assert_eq!(result.iterations_completed, 3);
}

#[tokio::test]
async fn two_loops_of_one_process_work_in_one_folder_side_by_side() {
    let world = World::in_memory();
    // Each agent waits for the other: one after the other they would never end.
    let first = config(&world, "touch one ;; wait-file two 60s ;; promise");
    let second = config(&world, "touch two ;; wait-file one 60s ;; promise");
    let (first, second) = tokio::join!(begin(&world, first), begin(&world, second));
    let (mut first, mut second) = (first, second);
    assert_ne!(first.state_file(), second.state_file());
    let names = [first.state_file(), second.state_file()].map(|path| {
        let name = path.file_name().unwrap();
        name.to_str().unwrap().to_owned()
    });
    assert!(names.contains(&"loop-state.json".to_owned()), "{names:?}");
    assert!(names.contains(&"loop-state-2.json".to_owned()), "{names:?}");
    let said = [first.notices(), second.notices()].concat();
    assert!(
        said.iter().any(
            |notice| notice.contains("of this process") && notice.contains("loop-state-2.json")
        ),
        "{said:?}"
    );
    assert_ne!(first.state().name, second.state().name);
    let (one, two) = tokio::join!(first.execute(), second.execute());
    for result in [one.unwrap(), two.unwrap()] {
        assert!(result.completion_promise_found, "{result:?}");
    }
    assert!(first.is_completed() && second.is_completed());
    world.assert_no_survivors();
    // Both are over: the next one has the usual file again.
    let third = begin(&world, config(&world, "promise")).await;
    assert!(third.state_file().ends_with("loop-state.json"));
}

#[tokio::test]
async fn one_of_two_loops_in_a_folder_is_cancelled_and_the_other_is_not() {
    let world = World::in_memory();
    let mut hangs = config(&world, "spawn-child setsid pids ;; touch up ;; hang");
    hangs.kill_grace_secs = Some(1);
    let mut hangs = begin(&world, hangs).await;
    let script = "spawn-child plain other ;; wait-file go 60s ;; promise";
    let mut works = begin(&world, config(&world, script)).await;
    let flag = hangs.cancellation_handle();
    let (up, other, go) = (world.path("up"), world.path("other"), world.path("go"));
    let cancelled = async {
        let result = hangs.execute().await.unwrap();
        // Only now may the other one end.
        std::fs::write(go, "").unwrap();
        result
    };
    std::thread::spawn(move || {
        eventually("both are up", EVENT_TIMEOUT, || {
            up.exists() && other.exists()
        });
        flag.store(true, Ordering::Relaxed);
    });
    let (cancelled, worked) = tokio::join!(cancelled, works.execute());
    assert_eq!(cancelled.exit_reason, IterativeExitReason::UserCancelled);
    assert!(worked.unwrap().completion_promise_found);
    world.assert_no_survivors();
}

#[tokio::test]
async fn a_loop_that_was_cancelled_before_it_ran_starts_no_agent() {
    let world = World::in_memory();
    let mut l = begin(&world, config(&world, "touch started ;; promise")).await;
    l.cancellation_handle().store(true, Ordering::Relaxed);
    let result = l.execute().await.unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
    assert!(!world.has("started"));
}

#[tokio::test]
async fn cancelling_is_heard_while_the_agent_claims_without_end() {
    let world = World::in_memory();
    // Every claim is a message to the driver, which must not hide the flag.
    let script = "touch up ;; repeat 100000000 promise";
    let mut busy = config(&world, script);
    busy.kill_grace_secs = Some(0);
    busy.verify = vec!["false".to_string()];
    let mut l = begin(&world, busy).await;
    let flag = l.cancellation_handle();
    let up = world.path("up");
    std::thread::spawn(move || {
        eventually("the agent is up", EVENT_TIMEOUT, || up.exists());
        flag.store(true, Ordering::Relaxed);
    });
    let result = tokio::time::timeout(EVENT_TIMEOUT, l.execute()).await;
    let result = result.unwrap().unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
    world.assert_no_survivors();
}

/// Remembers which threads asked it.
struct Asked {
    by: Mutex<Vec<ThreadId>>,
    command: String,
}

impl LoopBackend for Asked {
    fn command(&self) -> &str {
        &self.command
    }

    fn base_args(&self) -> Vec<String> {
        self.by.lock().unwrap().push(std::thread::current().id());
        Vec::new()
    }

    fn format_prompt(&self, prompt: &str, iteration: u32, max: Option<u32>) -> String {
        format!("{prompt} ({iteration} of {max:?})")
    }

    fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
        output.contains(promise).then(|| promise.to_string())
    }
}

#[tokio::test]
async fn files_and_processes_are_waited_for_on_other_threads_than_the_callers() {
    let world = World::in_memory();
    let asked = config(&world, "print so it is COMPLETE");
    let backend = Arc::new(Asked {
        by: Mutex::default(),
        command: asked.command.clone(),
    });
    let settings = HostSettings {
        backend: Some(backend.clone()),
        ..settings(&world)
    };
    let mut l = IterativeLoop::with_settings(asked, settings.clone())
        .await
        .unwrap();
    assert!(l.execute().await.unwrap().completion_promise_found);
    let mut cut = config(&world, "print nothing");
    cut.max_iterations = Some(1);
    let path = world.path("second.json");
    cut.state_file = Some(path.clone());
    IterativeLoop::with_settings(cut, settings.clone())
        .await
        .unwrap()
        .execute()
        .await
        .unwrap();
    IterativeLoop::resume_with(&path, settings).await.unwrap();
    let here = std::thread::current().id();
    let by = backend.by.lock().unwrap();
    assert!(!by.is_empty() && by.iter().all(|thread| *thread != here));
}

#[tokio::test]
async fn a_loop_whose_making_was_given_up_is_in_nobodys_way() {
    let world = World::in_memory();
    let making = IterativeLoop::with_settings(config(&world, "promise"), settings(&world));
    // Polled once and dropped; where it was quicker than that, it is dropped as a loop.
    drop(tokio::time::timeout(Duration::ZERO, making).await);
    let file = world.project().join(".descartes/loop-state.json");
    let said = || std::fs::read_to_string(&file).unwrap_or_default();
    eventually("the loop is cancelled", EVENT_TIMEOUT, || {
        said().contains("user_cancelled") || said().contains("\"running\"")
    });
    if said().contains("user_cancelled") {
        eventually("its file is free", EVENT_TIMEOUT, || {
            let held = descartes_store::lock::holder_of(&StateRoot::at(world.state()), &file);
            held.unwrap().is_none()
        });
        let mut l = begin(&world, config(&world, "promise")).await;
        assert!(l.execute().await.unwrap().completion_promise_found);
    }
}

#[tokio::test]
async fn a_backend_of_ours_given_by_hand_runs_and_understands_its_agent() {
    let world = World::in_memory();
    let claude = world.program(
        "claude",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > args\n\
         text='Done.\\n<promise>COMPLETE</promise>'\n\
         printf '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$text\"\n\
         printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\"}\\n' \"$text\"\n",
    );
    let settings = HostSettings {
        backend: Some(Arc::new(ClaudeBackend {
            model: Some("opus".to_string()),
            output_format: "stream-json".to_string(),
        })),
        ..settings(&world)
    };
    let config = IterativeLoopConfig {
        command: claude.display().to_string(),
        args: Vec::new(),
        ..config(&world, "promise")
    };
    let mut l = IterativeLoop::with_settings(config, settings)
        .await
        .unwrap();
    let result = l.execute().await.unwrap();
    assert!(result.completion_promise_found, "{result:?}");
    assert_eq!(result.iterations_completed, 1);
    let args = world.read("args");
    assert!(
        args.contains("stream-json\n--verbose\n--model\nopus"),
        "{args}"
    );
}

#[tokio::test]
async fn tasks_with_like_names_have_files_of_their_own() {
    let world = World::in_memory();
    let folder = world.project().join(".descartes/tasks");
    let tasks = RalphPersistence::new(&folder);
    let ids = [
        "a b",
        "a_b",
        "a/b",
        "a\tb",
        "ä",
        "_",
        ".hidden",
        "..",
        &"x".repeat(300),
    ];
    let mut files: Vec<PathBuf> = ids.iter().map(|id| tasks.state_file(id)).collect();
    for file in &files {
        assert_eq!(file.parent(), Some(folder.as_path()), "{file:?}");
        assert!(file.file_name().unwrap().len() < 128, "{file:?}");
    }
    files.sort();
    files.dedup();
    assert_eq!(files.len(), ids.len());

    let base = config(&world, "save-prompt seen ;; promise");
    let executor = RalphExecutor::new(RalphConfig::default(), base, &folder)
        .unwrap()
        .with_settings(settings(&world));
    for id in ["a b", "a_b"] {
        let result = executor.execute(id, &format!("do {id}")).await.unwrap();
        assert_eq!((result.success, result.iterations), (true, 1), "{result:?}");
        let state = executor.persistence().load(id).unwrap().unwrap();
        assert_eq!(state.config.prompt, format!("do {id}"));
    }
    assert!(executor.persistence().load("a/b").unwrap().is_none());
}

#[tokio::test]
async fn a_task_that_version_0_1_0_began_is_taken_up() {
    let world = World::in_memory();
    let folder = world.project().join(".descartes/tasks");
    let base = config(&world, "print iteration ${ITERATION}\n@3 promise");
    let state = IterativeLoopState {
        iteration: 2,
        config: IterativeLoopConfig {
            prompt: "Print the tides".to_string(),
            ..base.clone()
        },
        ..Default::default()
    };
    let text = serde_json::to_string(&state).unwrap();
    world.write(".descartes/tasks/print_1.json", text);
    let executor = RalphExecutor::new(RalphConfig::default(), base, &folder)
        .unwrap()
        .with_settings(settings(&world));
    let known = executor.persistence().load("print/1").unwrap();
    assert_eq!(known.unwrap().iteration, 2);
    let result = executor.execute("print/1", "Print the tides").await;
    assert_eq!(result.unwrap().iterations, 3);
    // Another task of that name has no part in it.
    let result = executor.execute("print 1", "Print the moon").await;
    assert_eq!(result.unwrap().iterations, 3, "three of its own");
    assert!(folder.join("print_1.json").exists());
    let own = executor.persistence().state_file("print 1");
    assert!(own.exists());
}

#[tokio::test]
async fn a_flag_of_ones_own_cancels_too() {
    let world = World::in_memory();
    let flag = Arc::new(AtomicBool::new(false));
    let settings = HostSettings {
        cancel: Some(flag.clone()),
        ..settings(&world)
    };
    let mut hangs = config(&world, "touch up ;; hang");
    hangs.kill_grace_secs = Some(1);
    let mut l = IterativeLoop::with_settings(hangs, settings).await.unwrap();
    let up = world.path("up");
    std::thread::spawn(move || {
        eventually("the agent is up", EVENT_TIMEOUT, || up.exists());
        flag.store(true, Ordering::Relaxed);
    });
    let result = l.execute().await.unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
}

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@meta {\n  name auth\n  \
    updated 2025-01-01T00:00:00.000000000+00:00\n}\n\n@nodes\n\
    # id | title | status | complexity | priority\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n\n\
    @edges\n# dependent -> dependency\n2 -> 1\n\n\
    @details\n1 | description |\n  Write the model.\n";

/// As the guide has it: no agent is named.
fn scud(world: &World) -> ScudLoopConfig {
    ScudLoopConfig {
        tag: "auth".to_string(),
        plan_path: Some(PathBuf::from("plan.md")),
        max_iterations_per_task: 3,
        max_total_iterations: 100,
        use_sub_agents: true,
        verification_command: Some("test -s work".to_string()),
        auto_commit_waves: true,
        spec: LoopSpecConfig {
            include_task: true,
            include_plan_section: true,
            additional_specs: vec![PathBuf::from("./ARCHITECTURE.md")],
            max_spec_tokens: Some(5000),
            spec_template: None,
        },
        base: IterativeLoopConfig {
            working_directory: Some(world.project()),
            permissions: "edit".to_string(),
            ..ScudLoopConfig::default().base
        },
        ..Default::default()
    }
}

fn scud_world() -> World {
    let world = World::in_memory();
    world.git_init();
    world.write(".scud/tasks/tasks.scg", TASKS);
    world.write("plan.md", "# Plan\n## Task 1: the model\nThree fields.\n");
    world.write("ARCHITECTURE.md", "Everything is a file.\n");
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    world.program(
        "claude",
        "#!/bin/sh\necho \"$DESCARTES_TASK_ID\" >> work\ncat > \"$TMPDIR/prompt-$DESCARTES_TASK_ID\"\n\
         text='Done.\\n<promise>COMPLETE</promise>'\n\
         printf '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$text\"\n\
         printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\"}\\n' \"$text\"\n",
    );
    world
}

#[tokio::test]
async fn the_guides_scud_loop_runs_claude_over_every_task() {
    let world = scud_world();
    let mut l = ScudIterativeLoop::with_settings(scud(&world), settings(&world))
        .await
        .unwrap();
    let result = l.execute().await.unwrap();
    assert!(result.exit_reason.is_success(), "{result:?}");
    assert_eq!(world.read("work"), "1\n2\n");
    let prompt = std::fs::read_to_string(world.root().join("tmp/prompt-1")).unwrap();
    assert!(
        prompt.contains("Three fields.") && prompt.contains("Everything is a file."),
        "{prompt}"
    );
    // Its state is a state like any other, with the waves.
    let state: &IterativeLoopState = l.state();
    assert_eq!(state.extra["wave_commits"].as_array().unwrap().len(), 2);
    let text = serde_json::to_string(state).unwrap();
    assert_eq!(
        serde_json::from_str::<IterativeLoopState>(&text).unwrap(),
        *state
    );
}

#[tokio::test]
async fn a_task_loop_that_was_cancelled_before_it_ran_starts_no_agent() {
    let world = scud_world();
    let mut l = ScudIterativeLoop::with_settings(scud(&world), settings(&world))
        .await
        .unwrap();
    let flag = l.as_loop().cancellation_handle();
    flag.store(true, Ordering::Relaxed);
    let result = l.execute().await.unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
    assert!(!world.root().join("tmp/prompt-1").exists());
}

#[tokio::test]
async fn the_guides_echo_completes_at_the_first_iteration_after_a_resume() {
    let world = World::in_memory();
    let state = IterativeLoopState {
        iteration: 5,
        config: IterativeLoopConfig {
            command: "echo".to_string(),
            prompt: "<promise>DONE</promise>".to_string(),
            completion_promise: Some("DONE".to_string()),
            max_iterations: Some(10),
            working_directory: Some(world.project()),
            ..Default::default()
        },
        ..Default::default()
    };
    let file = world.path("state.json");
    std::fs::write(&file, serde_json::to_string(&state).unwrap()).unwrap();
    let mut l = IterativeLoop::resume_with(file, settings(&world))
        .await
        .unwrap();
    assert_eq!(l.current_iteration(), 5);
    let result = l.execute().await.unwrap();
    assert!(result.completion_promise_found);
    assert_eq!(
        result.exit_reason,
        IterativeExitReason::CompletionPromiseDetected
    );
    assert_eq!(l.current_iteration(), 6);
}
