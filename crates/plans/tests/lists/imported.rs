//! Plans that cannot be run in place become roadmaps of ours that can.

use descartes_plans::lists::{Imported, import};
use descartes_plans::roadmap;
use descartes_text::finding::has_errors;

use crate::file;

fn made(files: &[(&str, &str)]) -> (Imported, Vec<String>) {
    let files: Vec<_> = files.iter().map(|(path, text)| file(path, text)).collect();
    let made = import("Tides", "the plan", &files).expect("something to do");
    let read = roadmap::parse(&made.roadmap);
    let findings = read.check();
    assert!(!has_errors(&findings), "{findings:?}\n{}", made.roadmap);
    assert_eq!(read.tasks.len(), made.tasks, "{}", made.roadmap);
    let row = |task: &roadmap::RoadmapTask| {
        let on: Vec<&str> = task.keys.depends.iter().map(|on| on.id.as_str()).collect();
        let mark = task.mark.character();
        format!(
            "[{mark}] {}: {} <{}>",
            task.id,
            task.description,
            on.join(" ")
        )
    };
    let rows = read.tasks.iter().map(row).collect();
    (made, rows)
}

#[test]
fn gsd_plans_keep_their_order_and_propose_their_checks() {
    let (made, rows) = made(&[
        (
            "01-01-PLAN.md",
            "---\ndepends_on: []\n---\n<objective>\nRead it.\n</objective>\n",
        ),
        ("01-01-SUMMARY.md", "# Summary\n"),
        (
            "01-02-PLAN.md",
            "---\ndepends_on: [\"01-01\"]\nfiles_modified: [src/a.rs]\n---\n<task>\n<name>Task 1: units</name>\n<verify>cargo test units</verify>\n</task>\n- check: rm -rf /\n",
        ),
    ]);
    assert_eq!(made.what, "GSD plans");
    assert_eq!(
        rows,
        ["[x] 01-01: Read it. <>", "[ ] 01-02: Task 1: units <01-01>"]
    );
    assert!(made.roadmap.contains("<!-- - check: cargo test units -->"));
    let read = roadmap::parse(&made.roadmap);
    assert!(
        read.tasks.iter().all(|task| task.keys.check.is_empty()),
        "only proposed"
    );
}

#[test]
fn other_plans_become_tasks_in_their_order() {
    let (_, rows) = made(&[(
        "queue.jsonc",
        "{\"version\":1, // the queue\n\"tasks\":[{\"id\":\"RQ-1\",\"title\":\"a \\\"//\\\" b\",\"status\":\"done\"},{\"id\":\"RQ-2\",\"title\":\"c\",\"status\":\"todo\",\"depends_on\":[\"RQ-1\"],},]}",
    )]);
    assert_eq!(rows, ["[x] rq-1: a \"//\" b <>", "[ ] rq-2: c <rq-1>"]);
    let (_, rows) = made(&[(
        "tasks.yaml",
        "tasks:\n  - title: Read it\n    completed: true\n  - title: \"Print\"\n    parallel_group: 1\n  - title: Warn\n    parallel_group: 1\n  - title: Ship\n",
    )]);
    assert_eq!(
        rows,
        [
            "[x] read-it: Read it <>",
            "[ ] print: Print <read-it>",
            "[ ] warn: Warn <read-it>",
            "[ ] ship: Ship <print warn>",
        ]
    );
    let (_, rows) = made(&[(
        "epics.md",
        "# E\n## Epic 1: A\n### Story 1.1: Read\nAs a user\n### Story 1.2: Print\n",
    )]);
    assert_eq!(
        rows,
        ["[ ] story-1-1: Read <>", "[ ] story-1-2: Print <story-1-1>"]
    );
    let (_, rows) = made(&[(
        "ROADMAP.md",
        "- [x] **Phase 1: Data** - read\n- [ ] **Phase 2: Output** - print\n",
    )]);
    assert_eq!(
        rows,
        [
            "[x] phase-1: Data - read <>",
            "[ ] phase-2: Output - print <phase-1>"
        ]
    );
    let (_, rows) = made(&[(
        "IMPLEMENTATION_PLAN.md",
        "# Plan\n## Remaining\n- **Parser**: weeks are wrong\n- **Printer**: no colours\n## Done\n- ~~Reader~~\n- Writer\n",
    )]);
    assert_eq!(
        rows,
        [
            "[ ] parser: Parser: weeks are wrong <>",
            "[ ] printer: Printer: no colours <parser>"
        ]
    );
    let (_, rows) = made(&[(
        "PLAN.md",
        "# Plan\nIntro.\n## Read the table\nAll of it.\n## Print it\nFour lines.\n",
    )]);
    assert_eq!(
        rows,
        [
            "[ ] read-the-table: Read the table <>",
            "[ ] print-it: Print it <read-the-table>"
        ]
    );
}

#[test]
fn a_text_without_headings_and_lists_is_no_plan() {
    assert_eq!(import("x", "y", &[file("a.md", "Just words.\n")]), None);
    assert_eq!(import("x", "y", &[]), None);
}
