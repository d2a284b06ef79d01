//! Nothing of another tool is read as something else, and no roadmap of ours as another tool's.

use descartes_plans::lists::{ListFormat, Recognized, by_content, by_place};

fn list(format: ListFormat) -> Recognized {
    Recognized::List(format)
}

#[test]
fn files_are_told_by_what_stands_in_them() {
    let ours = Recognized::Roadmap;
    for (text, expected) in [
        ("## Tasks\n- [ ] **fetch**: Read\n", ours.clone()),
        ("## Tasks\n- [ ] **T001**: Read\n", ours.clone()),
        (
            "- [ ] **T001**: Read\n  - check: make\n## Phase 1\n",
            ours.clone(),
        ),
        (
            "# Roadmap\n- [ ] **fetch**: Read\n- [ ] **print**: Print\n",
            ours.clone(),
        ),
        ("- [ ] T001 Read\n", list(ListFormat::SpecKit)),
        (
            "## Phase 1: Setup\n- [ ] **T001** Read\n",
            list(ListFormat::SpecKit),
        ),
        (
            "### Task 1: Read\n- [ ] **Step 1: test**\n",
            list(ListFormat::Plan),
        ),
        (
            "- [ ] 1. A\n  - [ ] 1.1 B\n    - _Requirements: 1.1_\n",
            list(ListFormat::Kiro),
        ),
        (
            "# TODO\n- [ ] read\n- [ ] print\n",
            list(ListFormat::Checklist),
        ),
        (
            "# TODO\n- [ ] **Fix the login**: soon\n- [ ] **Print it**\n",
            list(ListFormat::Checklist),
        ),
        (
            "# TODO\n- [ ] **read**: a\n- [ ] print it\n",
            list(ListFormat::Checklist),
        ),
        (
            r#"[{"description":"a","passes":false}]"#,
            list(ListFormat::PassesJson),
        ),
        (
            r#"{"master":{"tasks":[{"id":1,"status":"done"}]}}"#,
            list(ListFormat::TaskMaster),
        ),
    ] {
        assert_eq!(by_content("/p/LIST.md", text), expected, "{text}");
    }
    for text in [
        "# Roadmap\n- [ ] **Phase 1: Data** - read\n",
        "- [ ] **Track: Login**\n",
        "# Plan\n\nOnly prose.\n",
    ] {
        let found = by_content("/p/LIST.md", text);
        assert!(
            matches!(found, Recognized::Other { .. }),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn the_folder_of_a_tool_decides_first() {
    for (path, expected) in [
        (
            "/p/openspec/changes/add/tasks.md",
            Some(ListFormat::OpenSpec),
        ),
        ("/p/openspec/changes/archive/2026-01-01-add/tasks.md", None),
        ("/p/.kiro/specs/theme/tasks.md", Some(ListFormat::Kiro)),
        (
            "/p/.taskmaster/tasks/tasks.json",
            Some(ListFormat::TaskMaster),
        ),
        ("/p/backlog/tasks/task-1 - A.md", Some(ListFormat::Backlog)),
        ("/p/.tickets/a-1.md", Some(ListFormat::Tk)),
        ("/p/out/sprint-status.yaml", Some(ListFormat::Bmad)),
        ("/p/docs/plans/roadmap.md", None),
        ("/p/specs/001-a/tasks.md", None),
    ] {
        assert_eq!(by_place(path), expected, "{path}");
    }
}
