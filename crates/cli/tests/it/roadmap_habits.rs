//! What goes wrong in other roadmap runners, done right, with the real binary.
//!
//! | what goes wrong elsewhere | shown here by |
//! |---|---|
//! | no `###` heading: no tasks, and the roadmap counts as complete | `a_roadmap_without_phases_is_run`, kernel `roadmap` |
//! | an empty roadmap is complete and grows for ever | `a_roadmap_without_tasks_is_refused`, `growth_that_fails_is_the_end` |
//! | `--parallel` runs one after the other | `parallel_tasks_are_at_work_at_the_same_time` |
//! | a killed host leaves its agent, and its task in progress for ever | `a_killed_host_leaves_no_agent_and_is_resumed` |
//! | signals are ignored until a loop ends | `a_looping_task_ends_when_it_is_told_to` |
//! | the default iterations and promise change nothing | `defaults_for_looping_tasks_count` |
//! | after its limit a task fails without being run, also after a reset | `a_reset_task_is_run_again` |
//! | an echo of the prompt completes a task | `an_echo_of_the_prompt_is_no_promise` |
//! | all blocked, a ring, an unknown dependency: idle for ever | `tasks::a_roadmap_task_that_is_not_reached…`, `roadmaps_that_cannot_be_run` |
//! | `[X]`, `[x]` in a text, ids twice, `depends: [a, b]`, `1h`, quotes, paths in lower case | kernel `roadmap` |
//! | `cli: codex,gemini` stops everything | `roadmap_keys::a_second_cli_takes_over…` |
//! | `--dry-run` marks tasks done | `a_dry_run_changes_nothing` |
//! | `timeout:` and `retries:` are not used | `timeout_and_retries_count` |
//! | an exit code is ignored, a promise on standard error unseen | `exit_codes_count_and_both_outputs_are_heard` |
//! | words like `error:` in an output fail a task | `words_in_an_output_decide_nothing` |
//! | agents read the terminal's input | `agents_have_no_terminal_to_wait_for` |
//! | saving costs more with every iteration; all output is held in memory | `store` scale tests; `cargo xtask bench` |

use std::process::Stdio;
use std::time::{Duration, Instant};

use descartes_testkit::{World, eventually};

use crate::landing::set_up_by;
use crate::task_common::{kill_when, left, repository, roadmap, run, said};

fn project(tasks: &str) -> World {
    let text = format!("# Roadmap: Habits\n\n## Tasks\n{tasks}");
    repository("ROADMAP.md", text)
}

const TWO: &str = "- [ ] **a**: First\n- [ ] **b**: Second\n";
const LOOPING: &str = "- [ ] **a**: First\n  - ralph: true\n";
/// It says something, too: a task without a gate and without a promise asks for that.
const WORKS: &str = "append ../../../ran ${DESCARTES_TASK_ID} ;; write ${DESCARTES_TASK_ID}.txt x ;; print it works";

#[test]
fn help_and_dry_run_tell_the_limits_that_hold_for_roadmaps() {
    let world = project(TWO);
    let help = run(&world, &["roadmap", "run", "--help"]).stdout();
    for words in ["roadmap-FILE.json", "[default: unlimited]", "[default: 30]"] {
        assert!(help.contains(words), "{words}: {help}");
    }
    for words in ["loop-state.json", "[default: 20]", "[default: 3]"] {
        assert!(!help.contains(words), "{words}: {help}");
    }
    let dry = roadmap(&world, WORKS, &["--dry-run"]);
    dry.assert_code(0);
    let out = dry.stdout();
    assert!(out.contains("30 for a looping task, 1 plus its"), "{dry}");
    for words in [
        "iterations        no limit",
        "permissions       what the agent's own settings allow",
        "sandbox           off",
        "lands on          the branch that is checked out",
        "a, b: no gate, each attempt at most 30m",
    ] {
        assert!(out.contains(words), "{words}: {dry}");
    }
    let flags = [
        "--timeout",
        "5",
        "--max-duration",
        "7",
        "--verify",
        "true",
        "--branch",
    ];
    let dry = roadmap(
        &world,
        WORKS,
        &[&flags[..], &["--dry-run", "--permissions", "edit"]].concat(),
    );
    for words in [
        "gate              true",
        "permissions       edit: it may change files",
        "each at most      5s",
        "total at most     7s",
        "a, b: each attempt at most 5s",
        "lands on          a new branch, ",
    ] {
        assert!(dry.stdout().contains(words), "{words}: {dry}");
    }
}

#[test]
fn a_spec_of_no_task_names_the_roadmap_again() {
    let world = project(TWO);
    let refused = run(&world, &["spec", "nowhere", "--roadmap", "ROADMAP.md"]);
    refused.assert_code(65);
    let words = "descartes graph --roadmap ROADMAP.md";
    assert!(refused.stderr().contains(words), "{refused}");
}

#[test]
fn a_roadmap_without_phases_is_run() {
    let world = project(
        "- [ ] **a**: First\n- [X] **b**: Done before\n- [ ] **c**: Third\n  - depends: [a, b]\n  - success: prints [x]\n",
    );
    roadmap(&world, WORKS, &[]).assert_code(0);
    assert_eq!(left(&world, "ran"), "a\nc\n");
    let text = world.read("ROADMAP.md");
    assert!(
        text.contains("- [x] **a**")
            && text.contains("- [X] **b**")
            && text.contains("- [x] **c**"),
        "{text}"
    );
}

#[test]
fn a_roadmap_without_tasks_is_refused() {
    let world = project("\n## Growth Mode\n1. More\n");
    let before = world.read("ROADMAP.md");
    roadmap(&world, WORKS, &["--growth", "3"]).assert_code(65);
    assert_eq!(world.read("ROADMAP.md"), before);
    assert_eq!(left(&world, "ran"), "");
}

#[test]
fn growth_that_fails_is_the_end() {
    let world = project("- [ ] **a**: First\n\n## Growth Mode\n1. More\n");
    // Its work is fine; asked for more it can only complain.
    let script = "append ../../../ran ${DESCARTES_TASK_ID}\n\
        if-file a.txt err stdin is not a terminal ;; if-file a.txt exit 1\nwrite a.txt x";
    let since = Instant::now();
    let ended = roadmap(&world, script, &["--growth", "9"]);
    ended.assert_code(0);
    assert!(since.elapsed() < Duration::from_secs(100));
    assert_eq!(left(&world, "ran"), "a\n=growth-2\n");
    assert!(
        said(&ended).contains("no task was added"),
        "{}",
        said(&ended)
    );
    assert_eq!(world.read("ROADMAP.md").matches("- [").count(), 1);
}

#[test]
fn a_proposal_of_an_agent_that_failed_does_not_count() {
    let world = project("- [ ] **a**: First\n\n## Growth Mode\n1. More\n");
    let script = "if-file a.txt print TASK_ID: more ;; if-file a.txt print DESCRIPTION: One more\n\
        if-file a.txt exit 1\nwrite a.txt x";
    let ended = roadmap(&world, script, &["--growth", "1"]);
    ended.assert_code(0);
    let words = "no task was added to the roadmap: the agent that was asked failed: ";
    assert!(said(&ended).contains(words), "{}", said(&ended));
    assert_eq!(world.read("ROADMAP.md").matches("- [").count(), 1);
}

/// The agents may bring it, and the list may be meant for another machine: it is told, and no error.
#[test]
fn a_check_whose_program_is_missing_is_told_once() {
    let world = project(
        "- [ ] **a**: First\n  - check: no-such-tool --fast\n- [ ] **b**: Second\n  - check: no-such-tool\n- [ ] **c**: Third\n  - check: test -e c.txt\n",
    );
    let checked = run(&world, &["roadmap", "check", "ROADMAP.md"]);
    checked.assert_code(0);
    let words = "note: the gate `no-such-tool --fast` (from `check:` of task a) runs `no-such-tool`, which is not installed here";
    assert!(checked.stdout().contains(words), "{checked}");
    assert_eq!(
        checked.stdout().matches("not installed").count(),
        1,
        "{checked}"
    );
}

/// No flag changes it.
#[test]
fn a_run_that_goes_on_takes_the_setup_that_the_config_has_now() {
    let world = project("- [ ] **a**: First\n");
    let script = "unless-file ../../../ready exit 1\nwrite a.txt x";
    roadmap(&world, script, &[]).assert_code(6);
    set_up_by(&world, "touch ../../../ready");
    let on = roadmap(&world, script, &["--retry-blocked"]);
    on.assert_code(0);
    assert!(said(&on).contains("continuing the run"), "{on}");
    assert_eq!(world.read("a.txt"), "x\n");
}

#[test]
fn parallel_tasks_are_at_work_at_the_same_time() {
    let tasks: String = ["a", "b", "c", "d"]
        .map(|id| format!("- [ ] **{id}**: Meet\n"))
        .concat();
    let world = project(&tasks);
    let meets = ["a", "b", "c", "d"]
        .map(|id| format!("wait-file ../../../at-{id} 60s\n"))
        .concat();
    let script = format!("touch ../../../at-${{DESCARTES_TASK_ID}}\n{meets}{WORKS}");
    roadmap(&world, &script, &["--parallel", "4"]).assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 4);
}

#[test]
fn a_killed_host_leaves_no_agent_and_is_resumed() {
    let world = project(TWO);
    let script = "unless-file ../../../go touch ../../../begun\n\
        unless-file ../../../go hang\nwrite ${DESCARTES_TASK_ID}.txt x";
    let agent = world.agent(script);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    kill_when(&world, &words, "an agent works", || {
        world.state().join("begun").exists()
    });
    eventually("its agent is gone", Duration::from_secs(60), || {
        world.processes().is_empty()
    });
    // A git that was killed with it, or a power cut, leaves its lock.
    for tree in std::fs::read_dir(world.project().join(".git/worktrees")).unwrap() {
        std::fs::write(tree.unwrap().path().join("index.lock"), "").unwrap();
    }
    std::fs::write(world.state().join("go"), "").unwrap();
    run(&world, &words).assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 2);
}

/// The host died after its record of the task and before the box was ticked.
#[test]
fn a_tick_that_was_lost_with_its_host_is_made_up_for_and_nothing_is_done_twice() {
    let world = project("- [ ] **a**: First\n- [ ] **b**: Second\n  - depends: a\n");
    let script = "append ../../../ran ${DESCARTES_TASK_ID} ;; write ${DESCARTES_TASK_ID}.txt x\n\
        print it works\n\
        if-file a.txt unless-file ../../../go touch ../../../begun-${DESCARTES_TASK_ID}\n\
        if-file b.txt unless-file ../../../go hang";
    let agent = world.agent(script);
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    kill_when(&world, &words, "the second task is at work", || {
        world.state().join("begun-b").exists()
    });
    eventually("its agent is gone", Duration::from_secs(60), || {
        world.processes().is_empty()
    });
    let text = world.read("ROADMAP.md");
    assert!(text.contains("- [x] **a**"), "{text}");
    world.write("ROADMAP.md", text.replace("[x]", "[ ]"));
    std::fs::write(world.state().join("go"), "").unwrap();
    run(&world, &words).assert_code(0);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 2);
    assert_eq!(left(&world, "ran"), "a\nb\nb\n");
}

#[test]
fn a_looping_task_ends_when_it_is_told_to() {
    let world = project(LOOPING);
    let agent = world.agent("append ../../../ran x ;; sleep 20ms");
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let mut command = world.descartes(words);
    command.args(["--ralph-default-iterations", "100000"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut host = command.spawn().unwrap();
    eventually("it loops", Duration::from_secs(60), || {
        left(&world, "ran").lines().count() > 2
    });
    let pid = nix::unistd::Pid::from_raw(host.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let since = Instant::now();
    assert_eq!(host.wait().unwrap().code(), Some(143));
    assert!(since.elapsed() < Duration::from_secs(30));
    world.assert_no_survivors();
}

#[test]
fn defaults_for_looping_tasks_count() {
    let flags = [
        "--ralph-default-iterations",
        "2",
        "--ralph-default-promise",
        "ZZZ",
    ];
    let world = project(LOOPING);
    let script =
        "append ../../../ran x ;; save-prompt ../../../prompt ;; write f-${ITERATION} x ;; promise";
    roadmap(&world, script, &flags).assert_code(6);
    assert_eq!(
        left(&world, "ran"),
        "x\nx\n",
        "COMPLETE is not what it waits for"
    );
    assert!(left(&world, "prompt").contains("<promise>ZZZ</promise>"));
    let world = project(LOOPING);
    roadmap(&world, "write a x ;; promise ZZZ", &flags).assert_code(0);
}

#[test]
fn a_reset_task_is_run_again() {
    let world = project(LOOPING);
    let script = "append ../../../ran x ;; write f-${ITERATION} x\nif-file ../../../go promise";
    let flags = ["--ralph-default-iterations", "3"];
    roadmap(&world, script, &flags).assert_code(6);
    assert_eq!(left(&world, "ran").lines().count(), 3);
    run(&world, &["roadmap", "reset", "ROADMAP.md"]).assert_code(0);
    std::fs::write(world.state().join("go"), "").unwrap();
    roadmap(&world, script, &flags).assert_code(0);
    assert_eq!(left(&world, "ran").lines().count(), 4);
    assert_eq!(world.read("ROADMAP.md").matches("[x]").count(), 1);
}

#[test]
fn an_echo_of_the_prompt_is_no_promise() {
    let world = project(
        "- [ ] **a**: First. Output <promise>COMPLETE</promise> when done.\n  - ralph: true\n  - max_iterations: 2\n",
    );
    let script = "append ../../../ran x ;; echo-prompt ;; write f-${ITERATION} x";
    roadmap(&world, script, &[]).assert_code(6);
    assert_eq!(left(&world, "ran"), "x\nx\n");
    assert!(world.read("ROADMAP.md").contains("- [ ] **a**"));
}

#[test]
fn roadmaps_that_cannot_be_run() {
    for (tasks, words) in [
        (
            "- [ ] **a**: A\n  - depends: b\n- [ ] **b**: B\n  - depends: a\n",
            "ROADMAP.md:4:1: dependency cycle: a → b → a",
        ),
        (
            "- [ ] **a**: A\n  - depends: a\n",
            "ROADMAP.md:5:14: task `a` depends on itself",
        ),
        (
            "- [ ] **a**: A\n  - depends: nobody\n",
            "`a` depends on `nobody`, which does not exist",
        ),
        (
            "- [ ] **a**: A\n- [ ] **a**: B\n",
            "ROADMAP.md:5:1: the id `a` is already used on line 4",
        ),
        (
            "- [ ] **a**: A\n  - timeout: soon\n",
            "ROADMAP.md:5:5: invalid value in `timeout: soon`",
        ),
    ] {
        let world = project(tasks);
        let refused = roadmap(&world, WORKS, &[]);
        refused.assert_code(65);
        assert!(said(&refused).contains(words), "{}", said(&refused));
        let check = run(&world, &["roadmap", "check", "ROADMAP.md"]);
        check.assert_code(1);
        assert!(
            said(&check).replace(": error: ", ": ").contains(words),
            "{}",
            said(&check)
        );
        assert!(!world.has(".descartes"), "nothing is begun");
        assert_eq!(left(&world, "ran"), "");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let world = project(TWO);
    let before = world.read("ROADMAP.md");
    roadmap(&world, WORKS, &["--dry-run"]).assert_code(0);
    assert_eq!(world.read("ROADMAP.md"), before);
    assert!(!world.has(".descartes") && !world.state().join("loops").exists());
    roadmap(&world, WORKS, &[]).assert_code(0);
    assert_eq!(left(&world, "ran"), "a\nb\n", "both are still to be done");
}

#[test]
fn timeout_and_retries_count() {
    let world = project(
        "- [ ] **a**: First\n  - timeout: 5s\n  - retries: 1\n- [ ] **b**: Second\n  - depends: a\n",
    );
    let script = format!("{WORKS}\nif-file ../../../at-a exit 0\ntouch ../../../at-a ;; hang");
    let since = Instant::now();
    roadmap(&world, &script, &["--kill-grace", "100ms"]).assert_code(0);
    assert!(since.elapsed() < Duration::from_secs(100));
    assert_eq!(left(&world, "ran"), "a\na\nb\n");
}

#[test]
fn exit_codes_count_and_both_outputs_are_heard() {
    let world = project(&format!("{LOOPING}  - max_iterations: 2\n"));
    let script = format!("{WORKS} ;; promise ;; exit 3");
    roadmap(&world, &script, &[]).assert_code(6);
    assert_eq!(left(&world, "ran"), "a\na\n");
    let world = project(LOOPING);
    let script = format!("{WORKS} ;; err <promise>COMPLETE</promise>");
    roadmap(&world, &script, &[]).assert_code(0);
    assert_eq!(left(&world, "ran"), "a\n");
}

#[test]
fn words_in_an_output_decide_nothing() {
    let world = project("- [ ] **a**: Handle every error\n  - check: test -f a.txt\n");
    let script = format!("repeat 9 print error: Traceback (most recent call last) failed\n{WORKS}");
    roadmap(&world, &script, &[]).assert_code(0);
}

#[test]
fn agents_have_no_terminal_to_wait_for() {
    let world = project("- [ ] **a**: First\n");
    let script = format!("tty-check ;; {WORKS}");
    let done = roadmap(&world, &script, &[]);
    done.assert_code(0);
    assert!(said(&done).contains("stdin=none"), "{}", said(&done));
}
