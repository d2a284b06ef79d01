//! Whatever was changed since a loop began stands in its result, with who and when: a result is worth
//! what its gates were.

use descartes_testkit::World;

use crate::common::{CLAIMS, descartes, start, state};
use crate::task_common::{left, repository, run, said};

#[test]
fn gates_and_limits_changed_by_a_resume_stand_in_the_result() {
    for detached in [false, true] {
        let world = World::in_memory();
        start(&world, CLAIMS, &["--verify", "false", "-m", "1"]).assert_code(2);
        let mut words = vec!["loop", "resume", "--verify", "true", "-m", "3"];
        words.extend(detached.then_some("--detach"));
        let resumed = descartes(&world, &words);
        resumed.assert_code(0);
        if detached {
            descartes(&world, &["loop", "status", "--watch"]);
        } else {
            let told = said(&resumed);
            let row = told.lines().find(|line| line.contains("changed"));
            assert!(row.is_some(), "{told}");
            assert!(told.contains(r#"verify: ["false"] -> ["true"]"#), "{told}");
        }
        let status = descartes(&world, &["loop", "status"]).stdout();
        for words in [
            "Completed",
            "Changed while it ran: ",
            r#"verify: ["false"] -> ["true"]"#,
            "max_iterations: 1 -> 3",
            "by resume: descartes (pid ",
        ] {
            assert!(status.contains(words), "{detached}: {words}: {status}");
        }
        let history = descartes(&world, &["loop", "history"]).stdout();
        assert!(history.contains("by resume: descartes"), "{history}");
        let change = &state(&world)["changes"][0];
        assert_eq!(change["by"], "resume", "{change}");
        assert!(change["from"]["pid"].as_u64() > Some(1), "{change}");
        let json = descartes(&world, &["loop", "status", "--json"]).stdout();
        assert!(json.contains("\"changes\""), "{json}");
    }
}

#[test]
fn an_edited_state_file_is_told_with_who_took_it() {
    let world = World::in_memory();
    start(&world, CLAIMS, &["--verify", "false", "-m", "1"]).assert_code(2);
    let file = ".descartes/loop-state.json";
    let text = world.read(file);
    let edited = text.replace("\"false\"", "\"true\"");
    assert_ne!(edited, text);
    world.write(file, edited);
    let words = ["loop", "resume", "--accept-edits", "-m", "3"];
    descartes(&world, &words).assert_code(0);
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("by state file: descartes (pid "),
        "{status}"
    );
}

fn project(tasks: &str) -> World {
    repository(
        "ROADMAP.md",
        format!("# Roadmap: Orders\n\n## Tasks\n{tasks}"),
    )
}

/// Runs the roadmap with an agent that does this to `$R`, the roadmap in the person's checkout.
fn with_agent(world: &World, script: &str, flags: &[&str]) -> descartes_testkit::world::Finished {
    let text = format!(
        "#!/bin/sh\nR='{}'\n{script}\necho \"$DESCARTES_TASK_ID\" >>'{}'\necho x >work-$DESCARTES_TASK_ID\necho '<promise>COMPLETE</promise>'\n",
        world.path("ROADMAP.md").display(),
        world.state().join("ran").display()
    );
    let agent = world.program("agent.sh", &text).display().to_string();
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    run(world, &[&words[..], flags].concat())
}

#[test]
fn an_agent_does_not_get_rid_of_its_gate_by_editing_the_roadmap() {
    for (edit, flags) in [
        ("sed -i '/check:/d' \"$R\"", &[][..]),
        ("sed -i 's/check: .*/check: true/' \"$R\"", &[]),
        ("sed -i '/check:/d' \"$R\"", &["--in-place"]),
    ] {
        let world = project("- [ ] **a**: First\n  - check: test -e proof-a\n  - retries: 1\n");
        let ended = with_agent(&world, edit, flags);
        ended.assert_code(6);
        let told = said(&ended);
        assert!(told.contains("stay as they were"), "{told}");
        assert!(told.contains("task a check: test -e proof-a ->"), "{told}");
        let row = told.lines().find(|line| line.trim().starts_with("changed"));
        assert!(row.is_some_and(|row| row.contains("task a")), "{told}");
        assert!(!world.read("ROADMAP.md").contains("[x]"));
    }
}

#[test]
fn commands_of_a_task_that_an_agent_added_wait_for_a_person() {
    let world = project("- [ ] **a**: First\n");
    let pwned = world.state().join("pwned");
    let edit = format!(
        "grep -q '\\*\\*b\\*\\*' \"$R\" || printf -- '- [ ] **b**: Second\\n  - check: touch {}\\n' >>\"$R\"",
        pwned.display()
    );
    let ended = with_agent(&world, &edit, &[]);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("it was added while the loop was running"),
        "{told}"
    );
    assert!(told.contains("--retry-blocked"), "{told}");
    assert!(!pwned.exists());
    assert_eq!(left(&world, "ran"), "a\n");
    // A person has seen it, and starts it.
    let words = ["roadmap", "run", "ROADMAP.md", "--retry-blocked"];
    let agent = world.bin().join("agent.sh").display().to_string();
    run(&world, &[&words[..], &["--command", &agent]].concat()).assert_code(0);
    assert!(pwned.exists());
}

#[test]
fn a_roadmap_that_was_edited_between_two_starts_is_taken_and_told() {
    let world = project("- [ ] **a**: First\n  - check: test -e proof-a\n");
    with_agent(&world, ":", &[]).assert_code(6);
    let text = world.read("ROADMAP.md");
    world.write(
        "ROADMAP.md",
        text.replace("test -e proof-a", "test -e work-a"),
    );
    let ended = with_agent(&world, ":", &["--retry-blocked"]);
    ended.assert_code(0);
    let told = said(&ended);
    assert!(
        told.contains("task a: check: test -e proof-a -> check: test -e work-a"),
        "{told}"
    );
}
