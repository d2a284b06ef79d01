//! What the library promises to those who embed it: real agents, real files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use descartes_core::host::{HostError, HostSettings};
use descartes_core::{
    Event, GenericBackend, IterativeExitReason, IterativeLoop, IterativeLoopConfig, LoopBackend,
    LoopBackendConfig, RalphConfig, RalphExecutor,
};
use descartes_store::layout::StateRoot;
use descartes_testkit::World;

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

fn config(world: &World, script: &str) -> IterativeLoopConfig {
    let words = shell_words::split(&world.agent(script)).unwrap();
    IterativeLoopConfig {
        command: words[0].clone(),
        args: words[1..].to_vec(),
        prompt: "Do the work".into(),
        completion_promise: Some("COMPLETE".into()),
        working_directory: Some(world.project()),
        failure_backoff_secs: 0,
        ..Default::default()
    }
}

async fn start(world: &World, config: IterativeLoopConfig) -> IterativeLoop {
    IterativeLoop::with_settings(config, settings(world))
        .await
        .unwrap()
}

fn state_file(world: &World) -> PathBuf {
    world.project().join(".descartes/loop-state.json")
}

#[tokio::test]
async fn a_loop_runs_until_the_promise_and_tells_what_came_of_it() {
    let world = World::in_memory();
    let mut l = start(&world, config(&world, "print working\n@3 promise")).await;
    assert_eq!((l.current_iteration(), l.is_completed()), (0, false));
    let result = l.execute().await.unwrap();
    assert_eq!(
        result.exit_reason,
        IterativeExitReason::CompletionPromiseDetected
    );
    assert_eq!(
        (result.iterations_completed, result.completion_promise_found),
        (3, true)
    );
    assert_eq!(result.completion_text.as_deref(), Some("COMPLETE"));
    assert!(
        result
            .final_output
            .contains("working\n<promise>COMPLETE</promise>")
    );
    assert!(l.is_completed());
    assert_eq!(l.state().iteration_summaries.len(), 3);
    assert_eq!(l.state().iteration_summaries[0].output_preview, "working\n");
}

#[tokio::test]
async fn a_state_file_in_the_work_tree_is_no_progress_of_the_agent() {
    for in_git in [false, true] {
        let world = World::in_memory();
        if in_git {
            world.git_init();
        }
        let mut asked = config(&world, "print hm");
        asked.state_file = Some(world.project().join("loop.json"));
        asked.stall_after = Some(1);
        let result = start(&world, asked).await.execute().await.unwrap();
        assert!(
            matches!(result.exit_reason, IterativeExitReason::Stalled { .. }),
            "{:?}",
            result.exit_reason
        );
    }
}

#[tokio::test]
async fn a_claim_is_nothing_without_its_green_gate() {
    let world = World::in_memory();
    let mut config = config(&world, "append log x ;; promise");
    config.verify = vec!["test $(wc -l < log) -ge 3".into()];
    let result = start(&world, config).await.execute().await.unwrap();
    assert_eq!(result.iterations_completed, 3);
    assert_eq!(
        result.exit_reason,
        IterativeExitReason::CompletionPromiseDetected
    );
}

#[tokio::test]
async fn the_next_prompt_tells_of_the_gate_that_refused() {
    let world = World::in_memory();
    let mut config = config(
        &world,
        "save-prompt prompt-${ITERATION} ;; promise\n@2 touch ok",
    );
    config.verify = vec!["echo the reason; test -e ok".into()];
    start(&world, config).await.execute().await.unwrap();
    assert_eq!(world.read("prompt-1"), "Do the work");
    let second = world.read("prompt-2");
    assert!(second.contains("This is iteration 2 of 10"), "{second}");
    assert!(
        second.contains("- Command: echo the reason; test -e ok"),
        "{second}"
    );
    assert!(second.contains("    the reason"), "{second}");
}

#[tokio::test]
async fn events_are_the_journals_and_come_as_they_happen() {
    let world = World::in_memory();
    let mut l = start(&world, config(&world, "promise")).await;
    let mut events = l.subscribe();
    l.execute().await.unwrap();
    let mut kinds = Vec::new();
    while let Ok(record) = events.try_recv() {
        kinds.push(match &record.event {
            Event::RunStarted { .. } => "run",
            Event::AgentEnded { .. } => "ended",
            Event::IterationFinished { .. } => "iteration",
            Event::LoopFinished { .. } => "finished",
            _ => "other",
        });
    }
    assert_eq!(kinds, ["run", "ended", "iteration", "finished"]);
}

#[tokio::test]
async fn cancelling_ends_the_agent_and_everything_it_started() {
    let world = World::in_memory();
    let mut config = config(&world, "spawn-child setsid pids ;; touch up ;; hang");
    config.kill_grace_secs = Some(1);
    let mut l = start(&world, config).await;
    let cancel = l.cancellation_handle();
    let up = world.path("up");
    std::thread::spawn(move || {
        descartes_testkit::eventually("the agent is up", Duration::from_secs(20), || up.exists());
        cancel.store(true, Ordering::Relaxed);
    });
    let result = l.execute().await.unwrap();
    assert_eq!(result.exit_reason, IterativeExitReason::UserCancelled);
    world.assert_no_survivors();
}

#[tokio::test]
async fn dropping_the_future_cancels_the_loop() {
    let world = World::in_memory();
    let mut config = config(&world, "touch up ;; hang");
    config.kill_grace_secs = Some(1);
    let mut l = start(&world, config).await;
    let dropped = tokio::time::timeout(Duration::from_secs(1), l.execute()).await;
    assert!(dropped.is_err());
    world.assert_no_survivors();
}

#[tokio::test]
async fn an_ended_loop_is_set_aside_and_the_next_begins_at_one() {
    let world = World::in_memory();
    let mut first = config(&world, "print one");
    first.max_iterations = Some(1);
    start(&world, first).await.execute().await.unwrap();
    let text = std::fs::read_to_string(state_file(&world)).unwrap();
    assert!(text.contains("max_iterations_reached"), "{text}");
    let mut again = start(&world, config(&world, "promise")).await;
    assert_eq!(again.execute().await.unwrap().iterations_completed, 1);
    let aside = std::fs::read_dir(world.project().join(".descartes")).unwrap();
    let names: Vec<String> = aside
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|n| n.starts_with("loop-state.json.2")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_state_file_written_by_hand_resumes_with_its_count() {
    let world = World::in_memory();
    let command = world.agent("print iteration ${ITERATION}\n@4 promise");
    let words = shell_words::split(&command).unwrap();
    let file = serde_json::json!({
        "version": "1.0", "iteration": 3,
        "config": {"command": words[0], "args": words[1..], "prompt": "go",
                   "completion_promise": "COMPLETE", "mystery": 7},
        "started_at": "2025-01-15T10:30:00Z", "completed": false,
        "exit_reason": {"type": "running"}, "iteration_summaries": [], "own_field": "kept"
    });
    let path = world.write(".descartes/loop-state.json", file.to_string());
    let mut l = IterativeLoop::resume_with(&path, settings(&world))
        .await
        .unwrap();
    assert_eq!(l.current_iteration(), 3);
    let result = l.execute().await.unwrap();
    assert_eq!(result.iterations_completed, 4);
    assert!(
        result.final_output.contains("iteration 4"),
        "{}",
        result.final_output
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("own_field") && text.contains("mystery"),
        "{text}"
    );
}

#[tokio::test]
async fn a_torn_state_file_is_an_error_with_its_place_and_never_a_fresh_start() {
    let world = World::in_memory();
    let path = world.write(
        ".descartes/loop-state.json",
        r#"{"version":"1.0","iteration":3,"#,
    );
    let error = IterativeLoop::resume_with(&path, settings(&world))
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 65);
    assert!(error.to_string().contains("byte"), "{error}");
    let error = IterativeLoop::with_settings(config(&world, "promise"), settings(&world))
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 65, "{error}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        r#"{"version":"1.0","iteration":3,"#
    );
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_an_error_before_anything_is_written() {
    let world = World::in_memory();
    let mut config = config(&world, "promise");
    config.command = "no-such-agent-anywhere".into();
    let error = IterativeLoop::with_settings(config, settings(&world))
        .await
        .unwrap_err();
    assert!(matches!(error, HostError::Agent(_)), "{error}");
    assert!(!world.has(".descartes"));
}

#[tokio::test]
async fn a_timed_out_iteration_is_searched_for_the_promise_all_the_same() {
    let world = World::in_memory();
    let mut config = config(&world, "promise ;; repeat 100 print . ;; hang");
    config.iteration_timeout_secs = Some(1);
    config.kill_grace_secs = Some(1);
    let began = Instant::now();
    let result = start(&world, config).await.execute().await.unwrap();
    assert_eq!(
        result.exit_reason,
        IterativeExitReason::CompletionPromiseDetected
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    world.assert_no_survivors();
}

struct Shouting(String);

impl LoopBackend for Shouting {
    fn command(&self) -> &str {
        &self.0
    }
    fn base_args(&self) -> Vec<String> {
        Vec::new()
    }
    fn check_completion(&self, output: &str, promise: &str) -> Option<String> {
        output
            .contains(&format!("!!{promise}!!"))
            .then(|| promise.to_owned())
    }
}

#[tokio::test]
async fn a_backend_of_ones_own_decides_what_completion_is() {
    let world = World::in_memory();
    let script = "save-prompt p-${ITERATION}\n@1 promise\n@2 print !!COMPLETE!!";
    let mut config = config(&world, script);
    config.max_iterations = Some(4);
    let backend = Arc::new(Shouting(config.command.clone()));
    let settings = HostSettings {
        backend: Some(backend),
        ..settings(&world)
    };
    let mut l = IterativeLoop::with_settings(config, settings)
        .await
        .unwrap();
    let result = l.execute().await.unwrap();
    assert_eq!(
        result.iterations_completed, 2,
        "a plain promise means nothing to this backend"
    );
    assert!(result.completion_promise_found);
    assert!(world.read("p-2").contains("Iteration 2 of 4"));
}

#[tokio::test]
async fn environment_values_reach_the_agent_and_no_file() {
    let world = World::in_memory();
    let mut config = config(&world, "dump-env env ;; promise");
    config.backend = LoopBackendConfig {
        environment: [("SECRET".to_owned(), "hunter2".to_owned())].into(),
        prompt_mode: "env".into(),
        ..Default::default()
    };
    start(&world, config).await.execute().await.unwrap();
    let env = world.read("env");
    assert!(
        env.contains("SECRET=hunter2") && env.contains("PROMPT=Do the work"),
        "{env}"
    );
    let found = std::process::Command::new("grep")
        .args(["-rl", "hunter2"])
        .arg(world.state())
        .arg(state_file(&world))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[tokio::test]
async fn a_roadmap_task_loops_under_its_own_state_file() {
    let world = World::in_memory();
    let folder = world.project().join(".descartes/tasks");
    let base = config(&world, "@2 promise TIDES\n@* print COMPLETE");
    let ralph = RalphConfig {
        completion_promise: "TIDES".into(),
        ..RalphConfig::default()
    };
    let executor = RalphExecutor::new(ralph, base, &folder)
        .unwrap()
        .with_settings(settings(&world));
    let result = executor
        .execute("print/1", "Print the tides")
        .await
        .unwrap();
    assert_eq!((result.success, result.iterations), (true, 2));
    assert_eq!(result.promise_text.as_deref(), Some("TIDES"));
    let state = executor.persistence().load("print/1").unwrap().unwrap();
    assert_eq!(state.iteration, 2);
    assert!(state.completed);
}

#[test]
fn the_generic_backend_is_any_command() {
    let generic = GenericBackend::new("my-agent");
    assert_eq!(
        (generic.command(), generic.output_format()),
        ("my-agent", "text")
    );
    assert_eq!(
        generic
            .check_completion("**COMPLETE.**", "COMPLETE")
            .unwrap(),
        "COMPLETE"
    );
}
