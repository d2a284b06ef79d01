//! Which gates a task has is one question with one answer: its own, its list's, those of the loop.

use crate::task_common::{repository, roadmap, run, said};

const PLAN: &str = "# Plan\n\n## Validation Commands\n- `test -e work`\n\n\
    ### Task 1: Work\n- [ ] Write the file `work`\n";

#[test]
fn the_gate_of_a_list_proves_a_task_without_a_promise() {
    for flags in [&[][..], &["--no-promise"]] {
        let world = repository("docs/plans/2026-01-01-work.md", PLAN);
        let agent = world.agent("write work x");
        let words = ["roadmap", "run", "docs/plans/2026-01-01-work.md"];
        let words = [&words[..], &["--command", &agent], flags].concat();
        let ended = run(&world, &words);
        ended.assert_code(0);
        assert!(world.has("work"), "{ended}");
        let told = said(&ended);
        assert!(told.contains("gate        test -e work: green"), "{told}");
        let state = run(&world, &["loop", "status", "--json"]).stdout();
        assert!(state.contains("gates_passed"), "{state}");
    }
}

#[test]
fn without_any_gate_and_without_a_promise_nothing_starts() {
    let world = repository("TODO.md", "- [ ] Write the file `work`\n");
    let agent = world.agent("write work x");
    let words = ["roadmap", "run", "TODO.md", "--command", &agent];
    let words = [&words[..], &["--no-promise"]].concat();
    run(&world, &words).assert_code(64);
}

#[test]
fn a_task_that_nobody_asked_a_proof_for_is_done_and_unproven() {
    let world = repository(
        "ROADMAP.md",
        "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n  - check: test -e work-b\n",
    );
    let ended = roadmap(&world, "write work-${DESCARTES_TASK_ID} x", &[]);
    ended.assert_code(0);
    let told = said(&ended);
    assert!(told.contains("unproven    a First"), "{told}");
    assert!(!told.contains("unproven    b"), "{told}");
    let status = run(&world, &["loop", "status"]).stdout();
    assert!(status.contains("Done, unproven: a First"), "{status}");
    let status = run(&world, &["roadmap", "status", "ROADMAP.md"]).stdout();
    assert_eq!(status.matches("unproven").count(), 1, "{status}");
}

#[test]
fn an_agent_that_did_and_said_nothing_has_failed() {
    let world = repository("ROADMAP.md", "# Roadmap\n\n## Tasks\n- [ ] **a**: First\n");
    let ended = roadmap(&world, "exit 0", &[]);
    ended.assert_code(6);
    assert!(world.read("ROADMAP.md").contains("- [ ] **a**"), "{ended}");
}
