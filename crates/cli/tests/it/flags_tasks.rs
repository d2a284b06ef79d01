//! Flags of loops over tasks, of both kinds: each changes what happens. What a flag of a loop with one
//! prompt does there, it does in the loop of each task.

use descartes_testkit::{World, eventually};
use serde_json::Value;
use std::time::Duration;

use crate::common::{json_lines, loops};
use crate::task_common::{graph, repository, roadmap, run, said, scud_project, start, statuses};

const SOON: Duration = descartes_testkit::PATIENCE;

/// Which tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Scud,
    Roadmap,
}

const BOTH: [Kind; 2] = [Kind::Scud, Kind::Roadmap];

impl Kind {
    /// A project with so many tasks that do not depend on each other; those of the roadmap loop.
    fn project(self, tasks: u32) -> World {
        match self {
            Self::Scud => {
                let row = |task| format!("{task} | Task {task} | P | 1 | H");
                let rows: Vec<String> = (1..=tasks).map(row).collect();
                scud_project(graph(&rows.join("\n"), ""))
            }
            Self::Roadmap => {
                let row = |task| format!("- [ ] **{task}**: Task {task}\n  - ralph: true\n");
                let rows: Vec<String> = (1..=tasks).map(row).collect();
                repository(
                    "ROADMAP.md",
                    format!("# Roadmap: R\n## Tasks\n{}", rows.concat()),
                )
            }
        }
    }

    /// Runs it with an agent of this script.
    #[track_caller]
    fn run(
        self,
        world: &World,
        script: &str,
        flags: &[&str],
    ) -> descartes_testkit::world::Finished {
        match self {
            Self::Scud => start(world, script, flags),
            Self::Roadmap => roadmap(world, script, flags),
        }
    }

    /// The flag that limits the attempts at a task.
    fn attempts(self) -> &'static str {
        match self {
            Self::Scud => "--max-iterations-per-task",
            Self::Roadmap => "--ralph-default-iterations",
        }
    }

    fn state(self, world: &World) -> Value {
        let file = match self {
            Self::Scud => ".descartes/loop-state.json",
            Self::Roadmap => ".descartes/roadmap-ROADMAP.json",
        };
        serde_json::from_str(&world.read(file)).unwrap()
    }
}

/// The records of the task loop (0) or of a task's own loop (from 1).
fn journal(world: &World, which: usize) -> Vec<Value> {
    let dirs = loops(world);
    json_lines(&std::fs::read_to_string(dirs[which].join("journal.jsonl")).unwrap())
}

fn count(world: &World, which: usize, kind: &str) -> usize {
    let records = journal(world, which);
    records
        .iter()
        .filter(|record| record["kind"] == kind)
        .count()
}

/// What an agent with this script was told.
const SEES: &str = "save-prompt ${DESCARTES_SEEN}";

#[test]
fn the_loop_of_a_task_is_held_to_what_the_flags_say() {
    for kind in BOTH {
        let world = kind.project(1);
        let other = world.agent("promise");
        let fallback = ["--fallback", &other];
        let table: Vec<(&[&str], &str, Value)> = vec![
            (&["--verify", "true"], "/verify/0", "true".into()),
            (
                &["--verify-timeout", "7m"],
                "/verify_timeout_secs",
                420.into(),
            ),
            (&["--promise-grace", "3s"], "/promise_grace_secs", 3.into()),
            (
                &["--abort-promise", "STUCK"],
                "/abort_promise",
                "STUCK".into(),
            ),
            (
                &["--promise-match", "anywhere"],
                "/promise_match",
                "anywhere".into(),
            ),
            (&["--promise-hint", "off"], "/promise_hint", false.into()),
            (&["--max-duration", "1h"], "/max_duration_secs", 3600.into()),
            (&["--timeout", "9m"], "/iteration_timeout_secs", 540.into()),
            (&["--idle-timeout", "8m"], "/idle_timeout_secs", 480.into()),
            (&["--stall-after", "6"], "/stall_after", 6.into()),
            (&["--kill-grace", "2s"], "/kill_grace_secs", 2.into()),
            (&["--max-log", "5MB"], "/max_log_bytes", 5_000_000.into()),
            (
                &["--max-snapshots", "6MB"],
                "/max_snapshot_bytes",
                6_000_000.into(),
            ),
            (&["--model", "small"], "/model", "small".into()),
            (&["--permissions", "edit"], "/permissions", "edit".into()),
            (&fallback, "/fallback/0", other.as_str().into()),
            (
                &["--prompt-mode", "stdin"],
                "/backend/prompt_mode",
                "stdin".into(),
            ),
            (
                &["--backend", "generic"],
                "/backend/backend_type",
                "generic".into(),
            ),
            (
                &["--env", "GREETING=hello"],
                "/backend/environment_names/0",
                "GREETING".into(),
            ),
        ];
        let flags: Vec<&str> = table
            .iter()
            .flat_map(|(flags, ..)| *flags)
            .copied()
            .collect();
        let script = "sh printf %s \"$GREETING\" > greeting\npromise";
        let ended = kind.run(&world, script, &flags);
        ended.assert_code(0);
        let config = &journal(&world, 1)[0]["config"];
        for (flag, pointer, value) in table {
            let found = config.pointer(pointer).unwrap_or(&Value::Null);
            let same = match (found.as_f64(), value.as_f64()) {
                // What is left of the whole when the task begins.
                (Some(found), Some(value)) if pointer == "/max_duration_secs" => {
                    found <= value && found > value / 2.0
                }
                (Some(found), Some(value)) => (found - value).abs() < 0.1,
                _ => *found == value,
            };
            assert!(
                same,
                "{kind:?} {flag:?}: {found} at {pointer}, not {value}\n{ended}"
            );
        }
        assert_eq!(world.read("greeting"), "hello", "{kind:?} --env\n{ended}");
    }
}

#[test]
fn promises_of_tasks_are_found_as_the_flags_say() {
    let words = "write work x ;; print it is COMPLETE now";
    for kind in BOTH {
        let once = [kind.attempts(), "1"];
        for (flags, code) in [(&[][..], 6), (&["--promise-match", "anywhere"], 0)] {
            let flags = [&once[..], flags].concat();
            let ended = kind.run(&kind.project(1), words, &flags);
            assert_eq!(ended.code(), Some(code), "{kind:?} {flags:?}: {ended}");
        }
        // The same from the config.
        let world = kind.project(1);
        world.configure("promise_match = \"anywhere\"\n");
        kind.run(&world, words, &once).assert_code(0);
        // Alone on a line, in any case, where tags are not required.
        let alone = "write work x ;; print Complete";
        for (config, code) in [
            ("require_xml_format = false\n", 0),
            ("require_xml_format = true\n", 6),
            (
                "require_xml_format = false\npromise_match = \"tagged\"\n",
                6,
            ),
        ] {
            let world = kind.project(1);
            world.configure(config);
            let ended = kind.run(&world, alone, &once);
            assert_eq!(ended.code(), Some(code), "{kind:?} {config}: {ended}");
        }
        let named = "write work x ;; promise SHIPPED";
        for (flags, code) in [(&[][..], 6), (&["--completion-promise", "SHIPPED"], 0)] {
            let flags = [&once[..], flags].concat();
            let ended = kind.run(&kind.project(1), named, &flags);
            assert_eq!(ended.code(), Some(code), "{kind:?} {flags:?}: {ended}");
        }
        let stuck = "promise STUCK";
        let world = kind.project(1);
        let flags = [kind.attempts(), "3", "--abort-promise", "STUCK"];
        let ended = kind.run(&world, stuck, &flags);
        ended.assert_code(6);
        assert!(said(&ended).contains("gave up"), "{ended}");
        assert_eq!(count(&world, 1, "run_started"), 1, "{ended}");
    }
}

#[test]
fn a_roadmap_task_says_itself_whether_tags_are_required() {
    let text = |value: &str| {
        format!(
            "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - ralph: true\n  - max_iterations: 1\n  - require_xml_format: {value}\n"
        )
    };
    for (value, code) in [("false", 0), ("true", 6)] {
        let world = repository("ROADMAP.md", text(value));
        let ended = roadmap(&world, "write work x ;; print Complete", &[]);
        assert_eq!(ended.code(), Some(code), "{value}: {ended}");
        run(&world, &["roadmap", "check", "ROADMAP.md"]).assert_code(0);
    }
    let world = repository("ROADMAP.md", text("perhaps"));
    run(&world, &["roadmap", "check", "ROADMAP.md"]).assert_code(1);
}

#[test]
fn a_promise_of_its_own_is_named_once() {
    let world = Kind::Roadmap.project(1);
    let named = "write work x ;; promise SHIPPED";
    roadmap(&world, named, &["--ralph-default-promise", "SHIPPED"]).assert_code(0);
    let both = ["--ralph-default-promise", "A", "--completion-promise", "B"];
    roadmap(&Kind::Roadmap.project(1), named, &both).assert_code(64);
    let world = Kind::Roadmap.project(1);
    world.configure("completion_promise = \"SHIPPED\"\n");
    roadmap(&world, named, &[]).assert_code(0);
}

#[test]
fn the_first_prompt_of_a_task_tells_the_promise_unless_that_is_off() {
    for kind in BOTH {
        for (flags, told) in [(&[][..], true), (&["--promise-hint", "off"], false)] {
            let world = kind.project(1);
            let seen = format!("DESCARTES_SEEN={}", world.path("seen").display());
            let flags = [&["--env", &seen], flags].concat();
            let script = format!("{SEES}\nwrite work x ;; promise");
            kind.run(&world, &script, &flags).assert_code(0);
            let prompt = world.read("seen");
            assert_eq!(
                prompt.contains("<promise>COMPLETE</promise>"),
                told,
                "{kind:?}: {prompt}"
            );
        }
    }
}

#[test]
fn context_of_later_attempts_is_as_the_flags_say() {
    for (config, flags, told) in [
        ("", &[][..], true),
        ("", &["--fresh-context"], false),
        ("fresh_context = true\n", &[], false),
        ("fresh_context = true\n", &["--iteration-context"], true),
    ] {
        let world = Kind::Scud.project(1);
        world.configure(config);
        let seen = format!("DESCARTES_SEEN={}", world.path("seen").display());
        let flags = [&["--env", &seen, "--verify", "true"], flags].concat();
        let script = format!("{SEES}\n@1 print hm\n@2 write work x ;; promise");
        start(&world, &script, &flags).assert_code(0);
        let prompt = world.read("seen");
        assert_eq!(
            prompt.contains("This is iteration 2"),
            told,
            "{flags:?}: {prompt}"
        );
    }
}

#[test]
fn a_task_that_stalls_is_blocked_alone_after_twice_the_number() {
    for kind in BOTH {
        let world = kind.project(2);
        // The first task does nothing; the second is done at once.
        let script = "sh test $DESCARTES_TASK_ID = 1 || { echo x > work; echo '<promise>COMPLETE</promise>'; }";
        let flags = ["--stall-after", "2", kind.attempts(), "9"];
        let ended = kind.run(&world, script, &flags);
        ended.assert_code(6);
        assert_eq!(count(&world, 1, "run_started"), 4, "{kind:?}: {ended}");
        assert_eq!(count(&world, 1, "nudged"), 1, "{kind:?}: {ended}");
        assert_eq!(kind.state(&world)["tasks_done"], 1, "{kind:?}: {ended}");
    }
}

#[test]
fn failures_and_iterations_are_limited_over_all_tasks() {
    for kind in BOTH {
        for (limit, runs) in [("1", 1), ("3", 3)] {
            let world = kind.project(4);
            let flags = ["--max-failures", limit, kind.attempts(), "2"];
            let ended = kind.run(&world, "exit 1", &flags);
            ended.assert_code(7);
            assert_eq!(count(&world, 0, "task_run"), runs, "{kind:?}: {ended}");
        }
        let world = kind.project(3);
        let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
        kind.run(&world, works, &["--max-iterations", "2"])
            .assert_code(2);
        assert_eq!(kind.state(&world)["tasks_done"], 2);
    }
}

#[test]
fn budgets_hold_for_both_kinds() {
    let result = r#"print {"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"s","total_cost_usd":0.5,"usage":{"input_tokens":600,"output_tokens":400},"permission_denials":[]}"#;
    let script = format!("write work-${{DESCARTES_TASK_ID}} x\n{result}");
    for kind in BOTH {
        for (flag, limit) in [("--max-cost", "0.9"), ("--max-tokens", "1900")] {
            let world = kind.project(4);
            let flags = ["--backend", "claude", "--permissions", "edit", flag, limit];
            let ended = kind.run(&world, &script, &flags);
            ended.assert_code(3);
            assert_eq!(kind.state(&world)["tasks_done"], 2, "{kind:?}: {ended}");
        }
        let world = kind.project(3);
        let slow = "sh sleep 0.6\nwrite work-${DESCARTES_TASK_ID} x ;; promise";
        kind.run(&world, slow, &["--max-duration", "900ms"])
            .assert_code(3);
        assert_ne!(kind.state(&world)["tasks_done"], 3);
    }
}

#[test]
fn place_and_output_flags_hold_for_loops_over_tasks() {
    let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
    for kind in BOTH {
        let world = kind.project(1);
        let (dir, state_file) = (world.project(), world.root().join("kept.json"));
        let (dir, state_file) = (dir.to_str().unwrap(), state_file.to_str().unwrap());
        let file = world.path("ROADMAP.md");
        let agent = world.agent(works);
        let mut words = match kind {
            Kind::Scud => vec!["loop", "start", "--scud-tag", "auth"],
            Kind::Roadmap => vec!["roadmap", "run", file.to_str().unwrap()],
        };
        words.extend([
            "--command",
            &agent,
            "--working-dir",
            dir,
            "--state-file",
            state_file,
        ]);
        words.extend(["--name", "mine", "--json", "--color", "always"]);
        let mut dry = world.descartes([&words[..], &["--dry-run"]].concat());
        dry.current_dir(world.home());
        world.run(dry).assert_code(0);
        assert!(loops(&world).is_empty() && !std::path::Path::new(state_file).exists());
        let mut command = world.descartes(&words);
        command.current_dir(world.home());
        let ended = world.run_within(command, SOON);
        ended.assert_code(0);
        assert!(world.has("work-1"), "--working-dir: {ended}");
        let state: Value =
            serde_json::from_str(&std::fs::read_to_string(state_file).unwrap()).unwrap();
        assert_eq!(state["name"], "mine", "--state-file and --name: {ended}");
        let events = json_lines(&ended.stdout());
        assert!(
            events.iter().any(|event| event["kind"] == "task_run"),
            "--json: {ended}"
        );
        assert!(statuses_or_boxes(kind, &world), "{ended}");
    }
}

fn statuses_or_boxes(kind: Kind, world: &World) -> bool {
    match kind {
        Kind::Scud => statuses(world) == "D",
        Kind::Roadmap => world.read("ROADMAP.md").contains("- [x] **1**"),
    }
}

#[test]
fn a_task_loop_runs_in_the_background_and_anew() {
    let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
    for kind in BOTH {
        let world = kind.project(1);
        let started = kind.run(&world, works, &["--detach"]);
        started.assert_code(0);
        eventually("the end", SOON, || kind.state(&world)["completed"] == true);
        assert!(world.has("work-1"), "{started}");
        let before = loops(&world).len();
        kind.run(&world, works, &["--force"]).assert_code(0);
        assert!(loops(&world).len() > before, "{kind:?}");
    }
}

#[test]
fn a_task_loop_inside_another_loop_is_started_only_where_that_is_said() {
    let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
    for kind in BOTH {
        for (flags, code) in [(&[][..], 65), (&["--nested"], 0)] {
            let world = kind.project(1);
            let agent = world.agent(works);
            let words = match kind {
                Kind::Scud => ["loop", "start", "--scud-tag", "auth"].as_slice(),
                Kind::Roadmap => &["roadmap", "run", "ROADMAP.md"],
            };
            let mut command = world.descartes(
                [
                    words,
                    &["--command", &agent, "--state-file", "own.json"],
                    flags,
                ]
                .concat(),
            );
            command.env("DESCARTES_LOOP_ID", "somebody-elses");
            let ended = world.run_within(command, SOON);
            assert_eq!(ended.code(), Some(code), "{kind:?}: {ended}");
        }
    }
}

#[test]
fn the_projects_own_gates_hold_in_task_loops_once_they_are_trusted() {
    let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
    for kind in BOTH {
        let world = kind.project(1);
        world.write(".descartes/config.toml", "verify = [\"test -e work-1\"]\n");
        let refused = kind.run(&world, works, &[]);
        refused.assert_code(65);
        assert!(refused.stderr().contains("--trust-config"), "{refused}");
        kind.run(&world, works, &["--trust-config"]).assert_code(0);
        assert_eq!(
            journal(&world, 1)[0]["config"]["verify"][0],
            "test -e work-1"
        );
    }
}

/// A thought, and a result with the promise.
const THINKS: &str = r#"print {"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"deep thought"}]}}
print {"type":"assistant","message":{"id":"n","role":"assistant","content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
print {"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"s","permission_denials":[]}"#;

#[test]
fn thoughts_are_shown_where_they_are_asked_for() {
    let claude = ["--backend", "claude", "--permissions", "edit"];
    for (flags, shown) in [(&[][..], false), (&["--show-thinking"], true)] {
        let flags = [&claude[..], flags].concat();
        let script = format!("write work x\n{THINKS}");
        let world = World::in_memory();
        let plain = crate::common::start(&world, &script, &flags);
        assert_eq!(said(&plain).contains("deep thought"), shown, "{plain}");
        let logs = |flags: &[&str]| run(&world, &[&["loop", "logs"], flags].concat());
        assert!(!said(&logs(&[])).contains("deep thought"));
        assert!(said(&logs(&["--show-thinking"])).contains("deep thought"));
        for kind in BOTH {
            let ended = kind.run(&kind.project(1), &script, &flags);
            assert_eq!(
                said(&ended).contains("deep thought"),
                shown,
                "{kind:?}: {ended}"
            );
        }
    }
}

#[test]
fn flags_of_a_graph_work_for_roadmaps_too() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap: R\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n- [ ] **c**: Third\n  - depends: a\n",
    );
    world.write("plan.md", "# Plan\n\n## a: First\nuse the blue one\n");
    world.write("notes.md", "mind the gap\n");
    let seen = format!("DESCARTES_SEEN={}", world.path("seen").display());
    let script = format!("{SEES}-${{DESCARTES_TASK_ID}}\nwrite work-${{DESCARTES_TASK_ID}} x");
    let flags = [
        "--env",
        &seen,
        "--plan",
        "plan.md",
        "--handoff",
        "notes.md",
        "--spec-template",
        r"TOLD\n{task}\n{plan}\n{custom}\n{verification}",
        "--no-auto-commit-waves",
        "--no-wave-barrier",
    ];
    let ended = roadmap(&world, &script, &flags);
    ended.assert_code(0);
    let prompt = world.read("seen-a");
    assert!(prompt.starts_with("TOLD\n"), "{prompt}");
    assert!(
        prompt.contains("use the blue one") && prompt.contains("mind the gap"),
        "{prompt}"
    );
    let log = world.git(["log", "--format=%s"]);
    assert!(!log.contains("complete wave"), "{log}");
    assert!(
        log.contains("[a]") && log.contains("[c]"),
        "one a task: {log}"
    );
    // In place nothing is committed.
    for (flags, commits) in [(&[][..], true), (&["--no-auto-commit-waves"], false)] {
        let world = Kind::Roadmap.project(1);
        let flags = [&["--in-place"], flags].concat();
        roadmap(&world, "write work x ;; promise", &flags).assert_code(0);
        let log = world.git(["log", "--format=%s"]);
        assert_eq!(log.lines().count() > 2, commits, "{flags:?}: {log}");
    }
    // One agent is given a whole wave.
    let world = Kind::Roadmap.project(2);
    roadmap(&world, "write work x ;; promise", &["--no-sub-agents"]).assert_code(0);
    assert_eq!(count(&world, 0, "task_run"), 1);
}

#[test]
fn parallel_takes_no_file_for_its_number() {
    let world = Kind::Roadmap.project(2);
    let agent = world.agent("write work-${DESCARTES_TASK_ID} x ;; promise");
    let words = [
        "roadmap",
        "run",
        "--command",
        &agent,
        "--parallel",
        "ROADMAP.md",
    ];
    let ended = run(&world, &words);
    ended.assert_code(0);
    assert_eq!(
        journal(&world, 0)[0]["config"]["tasks"]["parallel"],
        4,
        "{ended}"
    );
}

#[test]
fn a_run_that_goes_on_takes_the_limits_that_are_typed_and_names_what_it_does_not_take() {
    let world = Kind::Roadmap.project(2);
    let works = "write work-${DESCARTES_TASK_ID} x ;; promise";
    roadmap(&world, works, &["--max-iterations", "1"]).assert_code(2);
    // It is over; as if its host had died before that was written.
    let dirs = loops(&world);
    let path = dirs[0].join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let open: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("loop_finished"))
        .collect();
    assert!(open.len() < text.lines().count());
    std::fs::write(&path, open.join("\n") + "\n").unwrap();
    std::fs::remove_file(world.path(".descartes/roadmap-ROADMAP.json")).unwrap();
    let again = roadmap(&world, works, &["--max-iterations", "5", "--parallel", "3"]);
    again.assert_code(0);
    assert!(world.has("work-2"), "{again}");
}

#[test]
fn roadmap_status_tells_what_each_task_took() {
    let world = Kind::Roadmap.project(2);
    let result = r#"print {"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"s","total_cost_usd":0.5,"usage":{"input_tokens":600,"output_tokens":400},"permission_denials":[]}"#;
    let script = format!("@1 print hm\n@2 write work-${{DESCARTES_TASK_ID}} x\n{result}");
    let script = script.replace("@1 print hm", "@1 print {\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"hm\",\"session_id\":\"s\",\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":1,\"output_tokens\":1},\"permission_denials\":[]}");
    roadmap(
        &world,
        &script,
        &["--backend", "claude", "--permissions", "edit"],
    )
    .assert_code(0);
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]);
    assert!(status.stdout().contains("2 iterations"), "{status}");
    assert!(status.stdout().contains("$0.75"), "{status}");
    let json = run(&world, &["roadmap", "status", "ROADMAP.md", "--json"]);
    let value: Value = serde_json::from_str(&json.stdout()).unwrap();
    let task = &value["tasks"][0];
    assert_eq!(task["iterations"], 2, "{json}");
    assert_eq!(task["cost_usd"], 0.75, "{json}");
    assert_eq!(task["tokens"], 1002, "{json}");
    assert!(task["seconds"].as_f64().unwrap() > 0.0, "{json}");
    // A task that was not run took nothing.
    let fresh = Kind::Roadmap.project(1);
    let json = run(&fresh, &["roadmap", "status", "ROADMAP.md", "--json"]);
    assert!(json.stdout().contains("\"iterations\":0"), "{json}");
}

#[test]
fn a_tag_that_has_no_file_of_its_own_is_told_those_that_have() {
    let world = repository(
        ".scud/tasks/auth.json",
        r#"{"name":"auth","tasks":[{"id":"1","title":"One","description":"","status":"pending","complexity":1,"priority":"high","dependencies":[]}]}"#,
    );
    let ended = run(
        &world,
        &["loop", "start", "--scud-tag", "aut", "--command", "true"],
    );
    ended.assert_code(65);
    let text = ended.stderr();
    assert!(
        text.contains("there is no tag `aut`") && text.contains("--scud-tag auth"),
        "{text}"
    );
}

#[test]
fn a_spec_is_shown_with_the_promise_that_the_agent_is_told() {
    for kind in BOTH {
        let world = kind.project(1);
        let which: &[&str] = match kind {
            Kind::Scud => &["--scud-tag", "auth"],
            Kind::Roadmap => &["--roadmap", "ROADMAP.md"],
        };
        let spec = run(&world, &[&["spec", "1"], which].concat());
        spec.assert_code(0);
        let seen = format!("DESCARTES_SEEN={}", world.path("seen").display());
        let script = format!("{SEES}\nwrite work x ;; promise");
        kind.run(&world, &script, &["--env", &seen]).assert_code(0);
        let prompt = world.read("seen");
        assert!(prompt.contains("<promise>COMPLETE</promise>"), "{prompt}");
        assert_eq!(spec.stdout().trim_end(), prompt.trim_end(), "{kind:?}");
    }
}

#[test]
fn a_loop_over_tasks_has_no_prompt_to_change() {
    let world = Kind::Scud.project(2);
    start(
        &world,
        "write work-${DESCARTES_TASK_ID} x ;; promise",
        &["--max-iterations", "1"],
    )
    .assert_code(2);
    let words = [
        "loop",
        "resume",
        "--prompt",
        "other",
        "--max-iterations",
        "5",
    ];
    let ended = run(&world, &words);
    ended.assert_code(64);
    assert!(ended.stderr().contains("no prompt of its own"), "{ended}");
    run(&world, &["loop", "resume", "--max-iterations", "5"]).assert_code(0);
}
