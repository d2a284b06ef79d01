//! What people see of task loops and of the work in them, and how they steer them.

use std::time::{Duration, Instant};

use descartes_testkit::world::Finished;
use descartes_testkit::{World, descartes, eventually};
use serde_json::Value;

use crate::task_common::{run, said, scud_project, statuses};

const TASKS: &str = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n\
    1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n\n\
    @edges\n3 -> 1\n3 -> 2\n\n@agents\n1 | builder\n";

fn project() -> World {
    scud_project(TASKS)
}

fn start(world: &World, script: &str, flags: &[&str]) -> Finished {
    let agent = world.agent(script);
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    run(world, &[&words[..], &["--verify", "true"], flags].concat())
}

fn ask(world: &World, sql: &str) -> Value {
    let asked = run(world, &["query", sql, "--json"]);
    asked.assert_code(0);
    serde_json::from_str(&asked.stdout()).unwrap()
}

const WORKS: &str =
    "print hello from ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";
/// Waits for the file `go` in the state folder.
const WAITS: &str = "unless-file ../../../go wait-file ../../../go 60s ;; write work-${DESCARTES_TASK_ID} x ;; promise";

#[test]
fn agents_are_heard_with_their_task_in_front_and_their_loops_stand_under_the_task_loop() {
    let world = project();
    let done = start(&world, WORKS, &["--parallel", "2", "--name", "all"]);
    done.assert_code(0);
    for id in 1..=3 {
        let line = format!("\n[{id}] hello from {id}\n");
        assert!(done.stdout().contains(&line), "{}", done.stdout());
    }
    let list = run(&world, &["loop", "list", "--all"]).stdout();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("3/3 tasks"), "{list}");
    let list = run(&world, &["loop", "list", "--children"]).stdout();
    assert_eq!(list.lines().count(), 5, "{list}");
    let json = run(&world, &["loop", "list", "--children", "--json"]).stdout();
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows[0]["parent"], Value::Null);
    assert_eq!(rows[3]["parent"], rows[0]["loop_id"]);
    assert_eq!(rows[3]["task"], "3");
    let history = run(&world, &["loop", "history"]).stdout();
    let lines: Vec<&str> = history.lines().collect();
    assert_eq!(lines.len(), 4, "{history}");
    assert!(
        lines[0].contains("TASK") && lines[3].contains("hello from 3"),
        "{history}"
    );
    let summary = done.stdout();
    assert!(!summary.contains("loop diff") && !summary.contains("loop logs"));
    assert!(summary.contains("loop list --children"), "{summary}");
    for words in [&["logs"][..], &["logs", "-f"]] {
        let logs = run(&world, &[&["loop"], words].concat());
        logs.assert_code(0);
        assert!(logs.stdout().contains("hello from 3"), "{logs}");
        assert!(logs.stderr().contains("task 3, loop "), "{logs}");
    }
    for words in [&["logs", "3"][..], &["diff", "3"], &["diff"]] {
        let refused = run(&world, &[&["loop"], words].concat());
        refused.assert_code(65);
        assert!(refused.stderr().contains("works on tasks"), "{refused}");
        assert!(refused.stderr().contains("--children"), "{refused}");
        assert!(!refused.stderr().contains("loop diff"), "{refused}");
    }
    let id = rows[3]["loop_id"].as_str().unwrap();
    let diff = run(&world, &["loop", "diff", id]);
    diff.assert_code(0);
    assert!(diff.stdout().contains("+++ b/work-3"), "{diff}");
    let gone = run(&world, &["loop", "rewind", "1", id]);
    gone.assert_code(65);
    assert!(
        gone.stderr().contains("the worktree of task 3 is gone"),
        "{gone}"
    );
    assert!(
        gone.stderr().contains(&format!("descartes loop diff {id}")),
        "{gone}"
    );
    let last = run(&world, &["loop", "history", "--last", "1"]).stdout();
    assert_eq!(last.lines().count(), 2, "{last}");
    let sql = "select t.task, i.verdict, i.gates_green from tasks t \
        join iterations i on i.loop_id = t.task_loop where t.status = 'done'";
    assert_eq!(ask(&world, sql).as_array().unwrap().len(), 3);
    let waves = ask(
        &world,
        "select wave from waves where commit_hash is not null",
    );
    assert_eq!(waves.as_array().unwrap().len(), 2);
}

#[test]
fn logs_are_followed_from_task_to_task_until_the_task_loop_is_over() {
    let world = project();
    let script = "print begin ${DESCARTES_TASK_ID} ;; wait-file ../../../go-${DESCARTES_TASK_ID} 60s ;; \
        print end ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";
    start(&world, script, &["--detach"]).assert_code(0);
    let seen = world.root().join("seen");
    let mut command = world.descartes(["loop", "logs", "-f"]);
    command.stdout(std::fs::File::create(&seen).unwrap());
    let mut follower = command.spawn().unwrap();
    let text = || std::fs::read_to_string(&seen).unwrap();
    for task in 1..=3 {
        let begin = format!("--- task {task}, iteration 1 ---\n[{task}] begin {task}\n");
        eventually("it speaks", Duration::from_secs(60), || {
            text().contains(&begin)
        });
        assert!(!text().contains(&format!("end {task}")), "{}", text());
        assert!(follower.try_wait().unwrap().is_none());
        std::fs::write(world.state().join(format!("go-{task}")), "").unwrap();
    }
    assert!(follower.wait().unwrap().success());
    let heads = text().matches("--- task ").count();
    assert_eq!(
        (heads, text().matches("end ").count()),
        (3, 3),
        "{}",
        text()
    );
    assert!(
        text().ends_with("[3] end 3\n[3] <promise>COMPLETE</promise>\n"),
        "{}",
        text()
    );
    assert_eq!(statuses(&world), "DDD");
}

#[test]
fn logs_of_tasks_at_work_side_by_side_are_followed_side_by_side() {
    let world = project();
    let script = "print begin ${DESCARTES_TASK_ID} ;; wait-file ../../../go-${DESCARTES_TASK_ID} 60s ;; \
        print end ${DESCARTES_TASK_ID} ;; write work-${DESCARTES_TASK_ID} x ;; promise";
    start(&world, script, &["--parallel", "2", "--detach"]).assert_code(0);
    let follow = |flag: Option<&str>, name: &str| {
        let mut command = world.descartes(["loop", "logs", "-f"]);
        command.args(flag);
        command.stdout(std::fs::File::create(world.root().join(name)).unwrap());
        command.spawn().unwrap()
    };
    let followers = [
        (follow(None, "human"), "human"),
        (follow(Some("--json"), "json"), "json"),
        (follow(Some("--raw"), "raw"), "raw"),
    ];
    let all_say = |words: &str| {
        let says = |name: &str| {
            let text = std::fs::read_to_string(world.root().join(name)).unwrap();
            text.contains(words)
        };
        ["human", "json", "raw"].into_iter().all(says)
    };
    let go = |task: &str| std::fs::write(world.state().join(format!("go-{task}")), "").unwrap();
    let soon = Duration::from_secs(60);
    eventually("both speak", soon, || {
        all_say("begin 1") && all_say("begin 2")
    });
    go("2");
    eventually("the second ends", soon, || all_say("end 2"));
    assert!(!all_say("end 1"));
    go("1");
    go("3");
    for (mut follower, name) in followers {
        assert!(follower.wait().unwrap().success());
        let text = std::fs::read_to_string(world.root().join(name)).unwrap();
        for words in ["begin ", "end "] {
            assert_eq!(text.matches(words).count(), 3, "{name}: {text}");
        }
    }
    let text = std::fs::read_to_string(world.root().join("human")).unwrap();
    for task in 1..=3 {
        let lines = format!("[{task}] end {task}\n[{task}] <promise>COMPLETE</promise>\n");
        assert!(text.contains(&lines), "{text}");
    }
}

#[test]
fn cancel_now_waits_for_no_agents_grace() {
    let world = project();
    let script = "ignore TERM ;; touch ../../../begun-${DESCARTES_TASK_ID} ;; hang";
    let flags = ["--parallel", "2", "--kill-grace", "5m", "--detach"];
    start(&world, script, &flags).assert_code(0);
    eventually("both are at work", Duration::from_secs(60), || {
        let begun = |id: u32| world.state().join(format!("begun-{id}")).exists();
        begun(1) && begun(2)
    });
    let history = run(&world, &["loop", "history"]).stdout();
    assert_eq!(history.matches("running").count(), 2, "{history}");
    let since = Instant::now();
    run(&world, &["loop", "cancel", "--now"]).assert_code(0);
    assert!(since.elapsed() < Duration::from_secs(100));
    world.assert_no_survivors();
    assert_eq!(statuses(&world), "PPP");
}

#[test]
fn a_task_file_that_changes_is_read_while_agents_work() {
    let world = project();
    start(&world, WAITS, &["--detach"]).assert_code(0);
    eventually("task 1 is at work", Duration::from_secs(60), || {
        statuses(&world).starts_with('I')
    });
    let path = world.project().join(".scud/tasks/tasks.scg");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("2 | Store | P", "2 | Store | C");
    let text = text.replace("@edges", "4 | Late | P | 1 | L\n\n@edges");
    std::fs::write(&path, text).unwrap();
    eventually("the change is seen", Duration::from_secs(60), || {
        let rows = ask(&world, "select task, status from tasks order by task");
        rows[1]["status"] == "cancelled" && rows[3]["task"] == "4"
    });
    let rows = ask(&world, "select ended_at from attempts");
    assert_eq!(rows[0]["ended_at"], Value::Null, "task 1 is still at work");
    std::fs::write(world.state().join("go"), "").unwrap();
    eventually("it ends", Duration::from_secs(120), || {
        let status = run(&world, &["loop", "status", "--json"]).stdout();
        serde_json::from_str::<Value>(&status).unwrap()["completed"] == true
    });
    assert_eq!(
        statuses(&world),
        "DCPD",
        "task 3 waits for one that was taken out"
    );
}

#[test]
fn finished_work_that_cannot_land_waits_under_its_tag() {
    let world = project();
    // The user's own file stands where the work of task 1 would come to lie.
    world.write("work-1", "mine");
    let done = start(&world, WORKS, &[]);
    done.assert_code(6);
    let words = said(&done);
    assert!(
        words.contains("finished work has not landed") && words.contains("work-1"),
        "{words}"
    );
    assert!(words.contains("descartes work land"), "{words}");
    assert!(world.has("work-1"));
    let refs = world.git([
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads/descartes",
    ]);
    assert_eq!(refs, "descartes/auth");
    let work = run(&world, &["work"]).stdout();
    assert!(work.contains("descartes work land auth\n"), "{work}");
    // More tasks make room for their branches, and everything lands in the end.
    std::fs::remove_file(world.project().join("work-1")).unwrap();
    let path = world.project().join(".scud/tasks/tasks.scg");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\n\n@edges", "\n4 | Docs | P | 1 | L\n\n@edges"),
    )
    .unwrap();
    start(&world, WORKS, &["--force"]).assert_code(0);
    let refs = world.git(["for-each-ref", "refs/heads/descartes", "refs/descartes"]);
    assert_eq!(refs, "");
    assert!(world.has("work-4") && world.has("work-1"));
}

#[test]
fn surroundings_that_matter_are_told_before_the_first_agent() {
    let world = project();
    world.write(
        ".gitmodules",
        "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n",
    );
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"scud hook stop"}]}]}}"#;
    world.write(".claude/settings.local.json", hook);
    let template = "[prompt]\ntemplate = \"\"\"\nTask {task.id}\n## Your Role\nBuild {task.id} well.\n\"\"\"\n";
    world.write(".scud/agents/builder.toml", template);
    let script = "dump-env ../../../env-${DESCARTES_TASK_ID} ;; save-prompt ../../../prompt-${DESCARTES_TASK_ID}";
    let agent = world.agent(&format!("{script} ;; {WORKS}"));
    let mut command = world.command(descartes());
    command.args(["loop", "start", "--scud-tag", "auth", "--command", &agent]);
    command
        .args(["--verify", "test ! -f work-2"])
        .env("SCUD_TASK_ID", "9");
    let done = world.run_within(command, Duration::from_secs(180));
    done.assert_code(6);
    let said = format!("{}{}", done.stdout(), done.stderr());
    assert!(
        said.contains("submodules") && said.contains("worktree_setup"),
        "{said}"
    );
    assert!(
        said.contains("settings.local.json contains SCUD's Stop hook"),
        "{said}"
    );
    let read = |name: &str| std::fs::read_to_string(world.state().join(name)).unwrap();
    assert!(!read("env-1").contains("SCUD_TASK_ID"));
    assert!(
        read("prompt-1").contains("Build 1 well."),
        "{}",
        read("prompt-1")
    );
    let log = |id: u32| {
        let path = world.project().join(format!(".scud/logs/{id}.log"));
        std::fs::read_to_string(path).unwrap_or_default()
    };
    assert!(
        log(1).starts_with("--- 20") && log(1).contains("done and proven"),
        "{}",
        log(1)
    );
    assert!(
        log(2).contains("descartes: blocked: 3 of 3 attempts used: verification failed"),
        "{}",
        log(2)
    );
}
