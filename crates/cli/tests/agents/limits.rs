//! A provider's limit is no iteration: it is waited for, through kills, and people can end it.

use crate::stage::{AGENTS, Stage, recording, seconds_between, whole};

#[test]
fn a_limit_counts_nothing_and_the_loop_goes_on_when_it_ends() {
    // Codex tells whole minutes: its wait is looked at below.
    for agent in ["claude", "gemini", "opencode"] {
        let stage = Stage::new();
        let done = recording(&format!("{agent}-ok"));
        let script = format!("@1 stream-limit {agent} 3s\n@* {done}");
        let run = stage.run(agent, &script, &["-m", "1", "--max-failures", "1"]);
        run.assert_code(0);
        let discarded = stage.record("run_discarded");
        assert_eq!(discarded["iteration"], 1, "{agent}");
        let started = stage.records("run_started");
        assert_eq!(started.len(), 2, "{agent}");
        assert_eq!(started[1]["iteration"], 1, "the same iteration: {agent}");
        let late = seconds_between(&discarded["retry_at"], &started[1]["at"]);
        assert!(
            (0.0..1.0).contains(&late),
            "{agent}: woke {late} s after the reset"
        );
        assert_eq!(stage.records("iteration_finished").len(), 1, "{agent}");
    }
}

#[test]
fn a_clock_time_is_waited_for() {
    let stage = Stage::new();
    let running = stage.spawn("codex", "stream-limit codex 10m", &[]);
    let wait = stage.await_record("wait_started");
    let left = seconds_between(&wait["at"], &wait["until"]);
    assert!((530.0..=600.0).contains(&left), "{left} s: {wait:#}");
    assert!(
        wait["reason"]["limit"]["words"]
            .as_str()
            .unwrap()
            .contains("usage limit")
    );
    running.end();
    stage.assert_nothing_counted();
}

#[test]
fn a_wait_survives_a_kill_and_ends_by_itself_after_resume() {
    let stage = Stage::new();
    let script = format!("@1 stream-limit claude 5s\n@* {}", recording("claude-ok"));
    let running = stage.spawn("claude", &script, &["-m", "1"]);
    let wait = stage.await_record("wait_started");
    running.kill();
    stage.assert_nothing_counted();
    let mut resume = stage.world.descartes(["loop", "resume"]);
    resume.env(
        "SCRIPTED_AGENT_COUNTER",
        stage.world.root().join("tmp/starts"),
    );
    stage.world.run(resume).assert_code(0);
    let started = stage.records("run_started");
    assert_eq!(started.len(), 2);
    let late = seconds_between(&wait["until"], &started[1]["at"]);
    assert!(late >= 0.0, "the agent was asked {late} s before the reset");
    assert_eq!(stage.records("iteration_finished").len(), 1);
}

#[test]
fn a_person_can_end_the_wait() {
    let stage = Stage::new();
    let script = format!("@1 stream-limit claude 1h\n@* {}", recording("claude-ok"));
    let running = stage.spawn("claude", &script, &["-m", "1"]);
    stage.await_record("wait_started");
    stage
        .world
        .run(stage.world.descartes(["loop", "set", "--retry-now"]))
        .assert_code(0);
    assert_eq!(running.code(), Some(0));
    assert_eq!(stage.record("wait_ended")["by"], "retry");
}

#[test]
fn status_says_until_when_and_why() {
    let stage = Stage::new();
    let running = stage.spawn("claude", "stream-limit claude 1h", &[]);
    stage.await_record("wait_started");
    let status = stage
        .world
        .run(stage.world.descartes(["loop", "status"]))
        .stdout();
    assert!(status.to_lowercase().contains("waiting"), "{status}");
    assert!(status.contains("limit reached"), "{status}");
    running.end();
}

#[test]
fn recorded_limits_and_overloads_are_waited_for() {
    let cases = [
        "429",
        "429-no-hint",
        "quota",
        "usage-limit",
        "usage-text",
        "500",
        "529",
    ];
    for (agent, case) in AGENTS
        .iter()
        .flat_map(|agent| cases.map(|case| (agent, case)))
    {
        // It would wait an hour by itself; that is another test's.
        if (*agent, case) == ("gemini", "usage-limit") {
            continue;
        }
        let stage = Stage::new();
        let running = stage.spawn(agent, &whole(&format!("{agent}-{case}")), &[]);
        let discarded = stage.await_record("run_discarded");
        let kind = discarded["limit"]["kind"].as_str().unwrap();
        let want: &[&str] = match case {
            "500" | "529" => &["overload"],
            "429" | "429-no-hint" => &["rate"],
            _ => &["usage", "rate"],
        };
        assert!(want.contains(&kind), "{agent}-{case}: {discarded:#}");
        stage.await_record("wait_started");
        running.end();
        stage.assert_nothing_counted();
    }
}

#[test]
fn gemini_sleeping_for_an_hour_is_ended_and_the_loop_waits_instead() {
    let stage = Stage::new();
    let script = whole("gemini-usage-limit") + "\nhang";
    let running = stage.spawn("gemini", &script, &["--kill-grace", "1s"]);
    let wait = stage.await_record("wait_started");
    assert_eq!(stage.record("agent_ended")["ended_by"], "gave");
    assert!(
        seconds_between(&wait["at"], &wait["until"]) > 600.0,
        "{wait:#}"
    );
    running.end();
    stage.assert_nothing_counted();
}

#[test]
fn a_limits_text_in_a_tool_result_is_no_limit() {
    for agent in AGENTS {
        let stage = Stage::new();
        let script = whole(&format!("{agent}-tool-says-promise"));
        stage.run(agent, &script, &["-m", "1"]).assert_code(2);
        assert!(stage.records("run_discarded").is_empty(), "{agent}");
        assert!(stage.records("wait_started").is_empty(), "{agent}");
        assert!(stage.record("agent_ended")["claim"].is_null(), "{agent}");
        assert_eq!(stage.records("iteration_finished").len(), 1, "{agent}");
    }
}

#[test]
fn a_wrong_login_ends_the_loop_at_once() {
    for agent in AGENTS {
        let stage = Stage::new();
        let run = stage.run(agent, &whole(&format!("{agent}-401")), &[]);
        run.assert_code(7);
        assert_eq!(stage.starts(), 1, "{agent}");
        assert_eq!(stage.reason()["type"], "agent_failed", "{agent}");
    }
}

#[test]
fn whatever_stands_in_the_log_of_a_run_that_died_with_its_host_it_is_taken_up() {
    for agent in AGENTS {
        let stage = Stage::new();
        let ok = recording(&format!("{agent}-ok"));
        let running = stage.spawn(agent, &format!("@1 hang\n@* {ok}"), &[]);
        let id = stage.await_record("run_started")["run"].clone();
        assert_eq!(id, 1);
        running.kill();
        // The end of its output, which nobody had heard: a wrong login.
        let words = recording(&format!("{agent}-401"));
        let words = std::fs::read(words.strip_prefix("stream ").unwrap()).unwrap();
        let loops = std::fs::read_dir(stage.world.state().join("loops")).unwrap();
        let dir = loops.flatten().next().unwrap().path();
        std::fs::create_dir_all(dir.join("runs/0001")).unwrap();
        std::fs::write(dir.join("runs/0001/stdout.log"), words).unwrap();
        let mut resume = stage.world.descartes(["loop", "resume"]);
        resume.stdin(std::process::Stdio::null());
        let run = stage.world.run(resume);
        run.assert_code(0);
        assert_eq!(stage.records("iteration_interrupted").len(), 1, "{agent}");
    }
}
