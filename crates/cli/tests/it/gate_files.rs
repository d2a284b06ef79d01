//! A file that a gate hangs on and that the agent changed is told where the result is told: in plain
//! loops and in task loops, where what one task landed is no baseline for the next.

use descartes_testkit::World;

use crate::common::{json_lines, start};
use crate::task_common::{graph, run, said, scud_project};

const TOLD: &str = "changed since the loop began";

#[test]
fn a_plain_loop_tells_of_its_changed_gate_file_in_every_view_of_the_result() {
    let world = World::in_memory();
    world.write("check.sh", "exit 1\n");
    let ended = start(
        &world,
        "write check.sh exit 0 ;; promise",
        &["--verify", "sh check.sh"],
    );
    ended.assert_code(0);
    let told = said(&ended);
    assert!(told.contains("with changed gate files"), "{told}");
    assert!(
        told.contains("gate file   check.sh (iteration 1)"),
        "{told}"
    );
    let status = run(&world, &["loop", "status"]).stdout();
    let line = "Gate file changed since the loop began: check.sh (iteration 1)";
    assert!(status.contains(line), "{status}");
    let status = run(&world, &["loop", "status", "--json"]).stdout();
    assert!(status.contains("changed_gate_files"), "{status}");
    let history = run(&world, &["loop", "history"]).stdout();
    assert!(
        history.contains("[gate file changed: check.sh]"),
        "{history}"
    );
    let rows = run(&world, &["loop", "history", "--json"]).stdout();
    assert_eq!(json_lines(&rows)[0]["changed_gate_files"][0], "check.sh");
    run(&world, &["report", "--output", "page.html"]).assert_code(0);
    assert!(world.read("page.html").contains(TOLD));
}

#[test]
fn a_gate_file_that_the_agent_made_is_told_and_a_file_that_a_gate_looks_for_is_not() {
    let world = World::in_memory();
    let ended = start(
        &world,
        "write check.sh exit 0 ;; touch done.txt ;; promise",
        &["--verify", "sh check.sh", "--verify", "test -e done.txt"],
    );
    ended.assert_code(0);
    let told = said(&ended);
    assert!(
        told.contains("gate file   check.sh (iteration 1)"),
        "{told}"
    );
    assert!(!told.contains("gate file   done.txt"), "{told}");
}

#[test]
fn a_file_that_a_gate_looks_at_is_the_agents_to_change() {
    let world = World::in_memory();
    world.write("base.txt", "base\n");
    let gate = "test -s base.txt && grep -q more base.txt";
    let ended = start(
        &world,
        "append base.txt more ;; promise",
        &["--verify", gate],
    );
    ended.assert_code(0);
    assert!(!said(&ended).contains("gate file"), "{}", said(&ended));
}

#[test]
fn manifests_of_the_gates_program_are_gate_files() {
    let world = World::in_memory();
    world.write("Makefile", "check:\n\tfalse\n");
    world.program("make", "#!/bin/sh\nexec sh -c \"$(tail -n 1 Makefile)\"\n");
    let ended = start(
        &world,
        "write Makefile true ;; promise",
        &["--verify", "make check"],
    );
    ended.assert_code(0);
    assert!(
        said(&ended).contains("gate file   Makefile"),
        "{}",
        said(&ended)
    );
}

#[test]
fn a_task_loop_tells_which_task_changed_a_gate_file_and_takes_no_landed_one_for_the_first() {
    let world = scud_project(graph("1 | One | P | 1 | H\n2 | Two | P | 1 | M", ""));
    world.write("check.sh", "test -e work-1\n");
    world.git(["add", "check.sh"]);
    world.git(["commit", "--quiet", "--message", "check"]);
    let agent = world.program(
        "rewriting-agent",
        "#!/bin/sh\necho x > work-$DESCARTES_TASK_ID\n\
         [ $DESCARTES_TASK_ID = 1 ] && echo 'exit 0' > check.sh\n\
         echo '<promise>COMPLETE</promise>'\n",
    );
    let agent = agent.display().to_string();
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let ended = run(&world, &[&words[..], &["--verify", "sh check.sh"]].concat());
    ended.assert_code(0);
    let told = said(&ended);
    assert!(told.contains("gate file   check.sh (task 1)"), "{told}");
    assert!(told.contains("gate file   check.sh (task 2)"), "{told}");
    let status = run(&world, &["loop", "status"]).stdout();
    assert!(status.contains("check.sh (task 1)"), "{status}");
}

#[test]
fn gates_that_were_replaced_are_not_told_as_changed() {
    let world = World::in_memory();
    let limited = start(
        &world,
        "print x",
        &["--verify", "false", "--max-iterations", "1"],
    );
    limited.assert_code(2);
    let again = run(
        &world,
        &[
            "loop",
            "resume",
            "--verify",
            "true",
            "--max-iterations",
            "2",
        ],
    );
    assert!(!said(&again).contains(TOLD), "{}", said(&again));
}

/// A gate that the agent rewrites is locked where a sandbox is, however the gate names it, and told where none is.
#[test]
fn a_script_of_a_gate_is_locked_or_told_however_it_is_named() {
    let gates = [
        "$PWD/check.sh",
        "X=./check.sh; $X",
        "timeout 5 ./check.sh",
        "bash -c './check.sh'",
        "if ./check.sh; then true; else false; fi",
        "find . -maxdepth 1 -name 'check*' -exec sh {} \\; | grep -q fine",
        "PATH=.:$PATH check.sh",
        "env A=1 nice ./check.sh",
        "some-wrapper ./check.sh",
    ];
    let confined = crate::sandbox::has_bwrap();
    for gate in gates {
        let world = World::new();
        world.git_init();
        world.write("check.sh", "#!/bin/sh\ntest -e done.txt && echo fine\n");
        world.git(["add", "."]);
        world.git(["commit", "--quiet", "--message", "gate"]);
        world.program("some-wrapper", "#!/bin/sh\nexec \"$@\"\n");
        let mut command = world.command("chmod");
        command.arg("+x").arg(world.path("check.sh"));
        world.run(command).assert_code(0);
        world.program(
            "agent",
            "#!/bin/sh\necho 'echo fine' > check.sh; touch done.txt; echo COMPLETE\n",
        );
        let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
        let flags = ["--sandbox", "off", "--verify", gate];
        let ended = run(&world, &[&words[..], &flags].concat());
        ended.assert_code(0);
        let told = said(&ended);
        assert!(told.contains("gate file   check.sh"), "{gate}: {told}");
        if confined {
            world.write("check.sh", "#!/bin/sh\ntest -e done.txt && echo fine\n");
            let flags = ["--force", "--sandbox", "workspace", "--verify", gate];
            let ended = run(&world, &[&words[..], &flags].concat());
            ended.assert_code(0);
            assert!(world.read("check.sh").contains("done.txt"), "{gate}");
            assert!(
                !said(&ended).contains("gate file"),
                "{gate}: {}",
                said(&ended)
            );
        }
    }
}

#[test]
fn a_script_that_a_gates_script_starts_is_told() {
    let world = World::in_memory();
    world.write("check.sh", ". ./lib.sh\n");
    world.write("lib.sh", "exit 1\n");
    let agent = "write lib.sh true ;; promise";
    let ended = start(&world, agent, &["--verify", "sh check.sh"]);
    ended.assert_code(0);
    assert!(
        said(&ended).contains("gate file   lib.sh"),
        "{}",
        said(&ended)
    );
}
