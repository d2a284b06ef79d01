//! Nothing of another tool is read as something else, and no roadmap of ours as another tool's.

use descartes_plans::lists::{ListFormat, Recognized, by_content, by_feature, by_place};

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
        ("/p/.claude/epics/e/001.md", Some(ListFormat::Ccpm)),
        ("/p/.scratch/f/issues/01-x.md", Some(ListFormat::Tickets)),
        ("/p/.scratch/f/notes.md", None),
        ("/p/issues/01-x.md", None),
        ("/p/docs/plans/roadmap.md", None),
        ("/p/specs/001-a/tasks.md", None),
    ] {
        assert_eq!(by_place(path), expected, "{path}");
    }
}

#[test]
fn properties_spelled_as_ours_tell_whose_an_id_without_a_colon_is() {
    let heads = [
        ("/p/TODO.md", "- [ ] **T1** Do it", ListFormat::Checklist),
        (
            "/p/docs/plans/x.md",
            "## Phase 1\n- [ ] **T001** Do it",
            ListFormat::SpecKit,
        ),
    ];
    for (path, head, format) in heads {
        for (property, expected) in [
            ("- files: a", Recognized::Roadmap),
            ("- depends: []", Recognized::Roadmap),
            ("- Files: a", list(format)),
            ("- Timeout: 5s was too short", list(format)),
            ("files: a", list(format)),
        ] {
            let text = format!("{head}\n  {property}\n");
            assert_eq!(by_content(path, &text), expected, "{path}\n{text}");
        }
    }
}

/// Words that are keys of ours, under boxes that are not.
#[test]
fn words_of_ours_under_a_box_of_others_make_no_roadmap() {
    let keys = [
        "- Files: a",
        "- files: a",
        "- Model: loses its state",
        "- Timeout: 5s was too short",
        "- depends: []",
        "- check: make",
        "- agent: main",
        "- cli: a",
        "- retries: 3",
        "- ralph: true",
        "- max_iterations: 3",
        "Files: a",
        "depends: a",
    ];
    let heads = [
        ("/p/TODO.md", "- [ ] Do it", ListFormat::Checklist),
        ("/p/TODO.md", "- [ ] **Do it** now", ListFormat::Checklist),
        ("/p/PLAN.md", "- [x] 1. Do it", ListFormat::Checklist),
        (
            "/p/specs/006-x/tasks.md",
            "- [ ] T001 Do it",
            ListFormat::SpecKit,
        ),
        (
            "/p/docs/plans/x.md",
            "### Task 1: A\n\n- [ ] Do it",
            ListFormat::Plan,
        ),
        (
            "/p/docs/superpowers/plans/x.md",
            "### Task 1: A\n\n- [ ] **Step 1**: Do it",
            ListFormat::Plan,
        ),
    ];
    for (path, head, format) in heads {
        for key in keys {
            let text = format!("{head}\n  {key}\n");
            assert_eq!(by_content(path, &text), list(format), "{path}\n{text}");
        }
    }
    // Spelled as another tool does, even under an id with a colon.
    let text = "## Phase 1\n- [ ] **T001**: Do it\n  - Files: a\n";
    assert_eq!(by_content("/p/x.md", text), list(ListFormat::SpecKit));
}

#[test]
fn properties_under_a_task_line_of_ours_make_a_roadmap() {
    for text in [
        "- [ ] **T001**: Do it\n  - depends: T000\n## Phase 2\n- [ ] **T002**: [P] More\n",
        "### Task 1: A\n- [ ] **fetch** Do it\n  - check: make\n",
        "### Task 1: A\n- [ ] **fetch**: Do it\n  - [ ] a step\n  - check: make\n",
        "- [ ] **fetch**: Do it\n\n  Words.\n\n  - timeout: 20min\n",
    ] {
        for path in ["/p/x.md", "/p/docs/plans/x.md", "/p/specs/001-x/tasks.md"] {
            let found = by_content(path, text);
            assert_eq!(found, Recognized::Roadmap, "{path}\n{text}");
        }
    }
}

#[test]
fn a_feature_of_spec_kit_is_known_by_its_folder() {
    let path = "/p/specs/001-x/tasks.md";
    for (text, alone, beside) in [
        ("## Tasks\n- [ ] **T001**: [P] a\n", true, true),
        (
            "## Tasks\n- [ ] **T001**: a\n- [ ] **T002**: b (depends on T001)\n",
            true,
            true,
        ),
        ("## Tasks\n- [ ] **T001**: a\n", false, true),
        (
            "## Tasks\n- [ ] **T001**: a\n  - check: make\n",
            false,
            false,
        ),
        ("## Tasks\n- [ ] **fetch**: a\n", false, false),
    ] {
        let of = |found: bool| found.then_some(ListFormat::SpecKit);
        assert_eq!(by_feature(path, text, false), of(alone), "{text}");
        assert_eq!(by_feature(path, text, true), of(beside), "{text}");
        assert_eq!(by_feature("/p/specs/tasks.md", text, true), None, "{text}");
    }
}

#[test]
fn what_is_no_list_is_called_what_it_is() {
    let boxes = "- [ ] I have read the rules\n";
    for (path, text, words) in [
        ("/p/.github/ISSUE_TEMPLATE/bug.md", boxes, "a template"),
        ("/p/.github/PULL_REQUEST_TEMPLATE.md", boxes, "a template"),
        ("/p/docs/pull_request_template/a.md", boxes, "a template"),
        (
            "/p/.beads/issues.jsonl",
            "{\"id\":\"a\"}\n{\"id\":\"b\"}\n",
            "beads",
        ),
        ("/p/prd.json", "{\"prd\": {}}", "its keys are: prd"),
        ("/p/prd.json", "{\"prd\": ", "not valid JSON"),
        (
            "/p/package.json",
            "{\"name\": \"a\"}",
            "JSON that is not run",
        ),
    ] {
        let Recognized::Other { what, instead } = by_content(path, text) else {
            panic!("{path} is a list");
        };
        assert!(
            what.contains(words) && !what.contains("stories in JSON"),
            "{path}: {what}"
        );
        assert!(!instead.is_empty(), "{path}");
    }
}
