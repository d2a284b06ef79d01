//! Ids and headings as people and their models write them, beside those of the templates.

use descartes_plans::lists::{ListFormat, Recognized, TaskList, by_content};

use crate::{file, read, rows};

fn list(format: ListFormat) -> Recognized {
    Recognized::List(format)
}

/// `text: why` of everything that is left out.
fn left_out(list: &TaskList) -> Vec<String> {
    let all = list.left_out.iter();
    all.map(|one| format!("{}: {}", one.text, one.why))
        .collect()
}

#[test]
fn ids_of_spec_kit_are_known_in_every_spelling() {
    for (spelled, id, title) in [
        ("T004 Read", "T004", "Read"),
        ("T004: Read", "T004", "Read"),
        ("T004 - Read", "T004", "Read"),
        ("T004 — Read", "T004", "Read"),
        ("T004 (P1): Read", "T004", "(P1): Read"),
        ("T004a Read", "T004a", "Read"),
        ("T004A Read", "T004A", "Read"),
        ("T004.2 Read", "T004.2", "Read"),
        ("T004-A Read", "T004-A", "Read"),
        ("T004-2 Read", "T004-2", "Read"),
        ("T004-Search Read", "T004-Search", "Read"),
        ("T004_schema Read", "T004_schema", "Read"),
        ("T-004 Read", "T-004", "Read"),
        ("T-004: Read", "T-004", "Read"),
        ("**T004** Read", "T004", "Read"),
        ("**T004 Read**", "T004", "Read"),
        ("_T004_ Read", "T004", "Read"),
        ("`T004` Read", "T004", "Read"),
        ("[T004] Read", "T004", "Read"),
        ("**[T004]** Read", "T004", "Read"),
        ("**[T004] Read**", "T004", "Read"),
        ("**[T004] [P]** Read", "T004", "Read"),
        ("[T004](t004.md): Read", "T004", "Read"),
        ("[P] T004 Read", "T004", "Read"),
        ("[P] [US1] **T004** Read", "T004", "Read"),
        ("[P] [T004] Read", "T004", "Read"),
        ("T004-⏳ [P] Read", "T004", "Read"),
        ("T004 [P] [deps: T002] Read", "T004", "Read"),
    ] {
        let text = format!("- [ ] T002 a\n- [ ] T003 b\n- [ ] {spelled}\n");
        let found = by_content("/p/tasks.md", &text);
        assert_eq!(found, list(ListFormat::SpecKit), "{text}");
        let read = read(ListFormat::SpecKit, &text);
        assert_eq!(read.tasks.len(), 3, "{text}");
        assert_eq!(read.tasks[2].id, id, "{text}");
        assert_eq!(read.tasks[2].title, title, "{text}");
        // What is written is the box alone.
        let ticked = read.set_done(&[file("list", &text)], id, true).unwrap();
        let expected = text.replace(&format!("[ ] {spelled}"), &format!("[x] {spelled}"));
        assert_eq!(ticked[0].text, expected);
    }
    for other in [
        "T-30 Tell them",
        "T12 Read",
        "[TODO] Read",
        "T004x5 Read",
        "see T004",
    ] {
        let text = format!("- [ ] {other}\n");
        let found = by_content("/p/TODO.md", &text);
        assert_eq!(found, list(ListFormat::Checklist), "{text}");
    }
}

#[test]
fn labels_before_an_id_count_as_behind_it() {
    let text = "## Phase 1\n- [ ] T001 a\n- [ ] [P] T002 b\n- [ ] [P] [US1] [T003] c\n\
                - [ ] [DEFERRED] T004 d\n- [ ] [REMOVED] T005 e\n- [ ] T006 f (depends on T005)\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        [
            "T001 todo",
            "T002 todo after T001",
            "T003 todo after T001",
            "T004 todo optional after T002 T003",
            "T006 todo after T002 T003",
        ]
    );
    assert_eq!(list.tasks[2].refers_to, ["US1"]);
    assert_eq!(left_out(&list), ["[REMOVED] T005 e: it says REMOVED"]);
}

#[test]
fn dependencies_are_found_whatever_the_ids_look_like() {
    let text = "- [ ] [T001] [deps:] a\n- [ ] [T002] [P] [deps:T001] b\n- [ ] [T003] [P] [deps:T001] c\n\
                - [ ] [T004] [deps:T002,T003] d\n- [ ] T-005 [P] e (depends on T-006)\n- [ ] T-006 [P] f\n\
                - [ ] T007-A [P] g\n- [ ] T007-B [P] h (depends on T007-A)\n\
                - [ ] T008 [P] i, after T004-Based work\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        [
            "T001 todo",
            "T002 todo after T001",
            "T003 todo after T001",
            "T004 todo after T002 T003",
            "T-005 todo after T004 T-006",
            "T-006 todo after T004",
            "T007-A todo after T004",
            "T007-B todo after T004 T007-A",
            "T008 todo after T004",
        ]
    );
    assert!(list.tasks.iter().all(|task| task.unknown.is_empty()));
}

#[test]
fn what_only_speaks_of_tasks_is_none() {
    let text = "## Parallel Execution Examples\n**Story 1**:\n- [ ] [P] T001 a\n- [ ] T002 b\n\n\
                ## Phase 1\n- [ ] T001 a\n- [ ] T002 b\n- [P] T003, T004 can run together\n\
                - [P] = other files\n\n## Definition of Done\n- [ ] T001-T002: works\n- [ ] green\n";
    let read = read(ListFormat::SpecKit, text);
    assert_eq!(rows(&read), ["T001 todo", "T002 todo after T001"]);
    assert_eq!(
        left_out(&read),
        [
            "T003, T004 can run together: it has [P] where a checkbox belongs",
            "[P] T001 a: it stands under `Parallel Execution Examples`",
            "T002 b: it stands under `Parallel Execution Examples`",
            "T001-T002: works: it sums up tasks such as T001",
            "green: it has no task id such as T001",
        ]
    );
    // One box that speaks of tasks makes no list of spec-kit's.
    let text = "- [ ] All of it works\n- [ ] T001-T005 tests pass\n- [ ] Reviewed\n";
    assert_eq!(by_content("/p/a.md", text), list(ListFormat::Checklist));
    // Acceptance criteria beside tasks do not decide.
    let text = "## Acceptance Criteria\n- [ ] a\n- [ ] b\n- [ ] c\n\n## Tasks\n- [ ] T-001: d\n";
    assert_eq!(by_content("/p/a.md", text), list(ListFormat::SpecKit));
}

#[test]
fn headings_with_boxes_are_tasks_of_a_plan() {
    for (one, two, ids) in [
        ("Task 1 Read", "Task 2 Print", ["1", "2"]),
        ("Task A: Read", "Task B: Print", ["A", "B"]),
        ("Task A — Read", "Task B (P1)", ["A", "B"]),
        ("Task 1/2: Read", "Task 2/2: Print", ["1", "2"]),
        ("Task 1 of 2: Read", "Task 2 of 2: Print", ["1", "2"]),
        ("Task 1: Read", "Task 2 Print", ["1", "2"]),
    ] {
        let text = format!("# Plan\n\n### {one}\n- [ ] a\n- [ ] b\n\n### {two}\n- [x] c\n");
        let found = by_content("/p/x.md", &text);
        assert_eq!(found, list(ListFormat::Plan), "{text}");
        let read = read(ListFormat::Plan, &text);
        let [one, two] = ids;
        let expected = [format!("{one} todo"), format!("{two} done after {one}")];
        assert_eq!(rows(&read), expected, "{text}");
        assert_eq!(read.tasks[0].marks.len(), 2, "{text}");
    }
}

#[test]
fn a_box_of_a_heading_speaks_for_its_task() {
    for steps in ["", "- [ ] a\n- [x] b\n"] {
        let text = format!(
            "# Plan\n\n### [x] Task 1: Read\n{steps}\n### [ ] Task 2: Print\n{steps}\n#### [/] Task 3 Check\n{steps}\n### [P] Task 4: Say\n- [ ] c\n"
        );
        let found = by_content("/p/x.md", &text);
        assert_eq!(found, list(ListFormat::Plan), "{text}");
        let read = read(ListFormat::Plan, &text);
        let expected = [
            "1 done",
            "2 todo after 1",
            "3 todo after 2",
            "4 todo after 3",
        ];
        assert_eq!(rows(&read), expected, "{text}");
        let ticked = read.set_done(&[file("list", &text)], "2", true).unwrap();
        let (before, behind) = text.split_once("### [ ] Task 2").unwrap();
        let (own, rest) = behind.split_once("#### ").unwrap();
        let own = own.replace("[ ]", "[x]");
        let expected = format!("{before}### [x] Task 2{own}#### {rest}");
        assert_eq!(ticked[0].text, expected);
    }
    let text = "## [ ] Task 1: Read\n\nWords.\n\n## [x] Task 2: Print\n";
    assert_eq!(by_content("/p/x.md", text), list(ListFormat::Plan));
}

#[test]
fn a_report_on_tasks_is_no_plan() {
    let text = "# Log\n\n- [x] Tools are there\n\n### Task 1: Read\n\nDone in a minute.\n\n### Task 2: Print\n\nDone.\n";
    assert_eq!(by_content("/p/log.md", text), list(ListFormat::Checklist));
    assert_eq!(rows(&read(ListFormat::Checklist, text)), ["1 done"]);
    let text = "# Log\n\n### Task 1: Read\n\nDone.\n";
    assert!(matches!(
        by_content("/p/log.md", text),
        Recognized::Other { .. }
    ));
}

#[test]
fn numbers_are_tasks_in_a_folder_of_plans_alone() {
    let text = "# Plan\n\n## 1. Read\n\nWhy.\n\n### 1.1 Parse\n- [ ] a\n- [ ] b\n\n### 1.2 Check\n#### Tests\n- [x] c\n\n\
                ## 2. Print\n- [ ] d\n\n## Success Criteria\n- [ ] e\n";
    let found = by_content("/p/docs/plans/x.md", text);
    assert_eq!(found, list(ListFormat::Plan));
    let read = read(ListFormat::Plan, text);
    let expected = ["1.1 todo", "1.2 done after 1.1", "2 todo after 1.2"];
    assert_eq!(rows(&read), expected);
    assert_eq!(left_out(&read), ["e: it stands under no `Task N` heading"]);
    let elsewhere = by_content("/p/docs/x.md", text);
    assert_eq!(elsewhere, list(ListFormat::Checklist));
}

#[test]
fn headings_that_only_look_like_tasks_are_none() {
    // A box that stands elsewhere would be lost.
    for text in [
        "### Task A: Read\n- [ ] a\n\n### Task B: Print\n- [ ] b\n\n### Ideas\n- [ ] c\n",
        "### Task 1 Setup\n\nWords.\n\n### Task 2 Setup\n\nWords.\n\n## TODO\n- [ ] a\n",
        "## Success Criteria\n### Task A: done\n- [x] a\n### Task B: done\n- [x] b\n## Rest\n- [ ] c\n",
        "## 1. Read\n- [ ] a\n\n## 2. Print\n- [ ] b\n\n## Ideas\n- [ ] c\n",
    ] {
        let found = by_content("/p/plans/x.md", text);
        assert_eq!(found, list(ListFormat::Checklist), "{text}");
    }
    let text = "# Lab\n\n### Task 1 Setup\n\nWords.\n\n### Task 2 Setup\n\nWords.\n";
    let found = by_content("/p/README.md", text);
    assert!(matches!(found, Recognized::Other { .. }), "{found:?}");
    // The second heading of a number is no second task.
    let text =
        "### Task 1 Read\n- [ ] a\n### Task 2 Print\n- [ ] b\n### Task 2 follow-ups\n- [ ] c\n";
    assert_eq!(
        rows(&read(ListFormat::Plan, text)),
        ["1 todo", "2 todo after 1"]
    );
}

#[test]
fn roadmaps_of_ours_stay_roadmaps() {
    for text in [
        "## Tasks\n### Task 1 Base\n- [ ] **base**: Do it\n### Task 2 Top\n- [ ] **top**: Do it\n",
        "### Task A: Base\n- [ ] **base**: Do it\n### Task B: Top\n- [ ] **top** Do it\n",
        "### 1. Base\n- [ ] **base**: Do it\n### 2. Top\n- [ ] **top**: Do it\n",
        "## Phase 1\n- [ ] **T-001**: Do it\n- [ ] **T-002** Do it\n",
        "- [ ] **[T001]**: Do it\n- [ ] **[T002]**: Do it\n",
        "- [ ] **[T001]** Do it\n  - check: make\n",
        "- [ ] **T001-A**: Do it\n  - depends: []\n",
    ] {
        for path in ["/p/ROADMAP.md", "/p/docs/plans/x.md"] {
            assert_eq!(
                by_content(path, text),
                Recognized::Roadmap,
                "{path}\n{text}"
            );
        }
    }
    // In brackets and without a colon they are others'.
    let text = "- [ ] **[B12]** Do it\n- [ ] **[F3]** Do it\n";
    assert_eq!(by_content("/p/x.md", text), list(ListFormat::Checklist));
}

#[test]
fn a_letter_behind_a_number_is_a_part_of_it() {
    let text = "- [ ] 1. a\n  - [ ] 1.1 b\n  - [ ] 1.1a c\n  - [ ] 1.2 d\n- [ ] 2. e\n";
    let kiro = read(ListFormat::Kiro, text);
    assert_eq!(
        rows(&kiro),
        [
            "1 todo container",
            "1.1 todo",
            "1.1a todo after 1.1",
            "1.2 todo after 1.1a",
            "2 todo after 1.2",
        ]
    );
    let openspec = read(
        ListFormat::OpenSpec,
        "- [ ] 1.2 a\n- [ ] 1.2a b\n- [ ] 2d view\n",
    );
    let expected = ["1.2 todo", "1.2a todo after 1.2", "3 todo after 1.2a"];
    assert_eq!(rows(&openspec), expected);
}

#[test]
fn boxes_of_kiro_without_numbers_are_tasks_where_none_has_one() {
    let text = "- [ ] a\n  - [ ] step\n- [x] b\n- [ ] c\n";
    let list = read(ListFormat::Kiro, text);
    assert_eq!(rows(&list), ["1 todo", "2 done after 1", "3 todo after 2"]);
    assert_eq!(list.tasks[0].marks.len(), 2);
    let text = "- [ ] Task 1: a\n  - [ ] Task 1.1: b\n    - _Depends: none (not even 2)_\n- [ ] Task 2: c\n- [ ] d\n";
    let list = read(ListFormat::Kiro, text);
    let expected = ["1 todo container", "1.1 todo", "2 todo after 1.1"];
    assert_eq!(rows(&list), expected);
    assert_eq!(list.tasks[1].title, "b");
    assert_eq!(left_out(&list), ["d: it has no number"]);
}

#[test]
fn commands_in_a_sentence_are_no_gates() {
    let text = "### Task 1: a\n- [ ] a\n\n## Validation Commands\nRead `notes.md` and run `it`.\n\n\
                - `make`\n- Backend: `make test` (all of it)\n- [ ] `make lint`\n1. `make docs`\n";
    let list = read(ListFormat::Plan, text);
    let gates = list.gates.iter().map(|gate| gate.command.as_str());
    let expected = ["make", "make test", "make lint", "make docs"];
    assert_eq!(gates.collect::<Vec<_>>(), expected);
}

#[test]
fn json_with_tasks_of_another_kind_is_not_task_masters() {
    for (path, text) in [
        (
            "/p/tasks/tasks.json",
            r#"{"tasks": [{"id": "a", "prompt": "b"}]}"#,
        ),
        (
            "/p/tasks/tasks.json",
            r#"{"tasks": [{"label": "a", "status": "b"}]}"#,
        ),
        ("/p/build.json", r#"{"all": {"tasks": [{"name": "a"}]}}"#),
        ("/p/build.json", r#"{"all": {"tasks": ["a", "b"]}}"#),
    ] {
        let found = by_content(path, text);
        assert!(
            matches!(found, Recognized::Other { .. }),
            "{path} {text}: {found:?}"
        );
    }
    for (path, text) in [
        (
            "/p/tasks/tasks.json",
            r#"{"tasks": [{"id": 1, "status": "pending"}, {"id": 2}]}"#,
        ),
        (
            "/p/x.json",
            r#"{"a": {"tasks": []}, "b": {"tasks": [{"id": 1, "status": "done"}]}}"#,
        ),
    ] {
        let found = by_content(path, text);
        assert_eq!(found, list(ListFormat::TaskMaster), "{path} {text}");
    }
}

#[test]
fn a_story_has_the_file_of_its_own_name() {
    let files = [
        file(
            "sprint-status.yaml",
            "development_status:\n  1-1-a: ready-for-dev\n  11-1-a: ready-for-dev\n  2-1-b:\n    status: done\n",
        ),
        file(
            "stories/11-1-a.md",
            "# Story 11.1: Far\n\nStatus: ready-for-dev\n",
        ),
    ];
    let context = descartes_plans::lists::ListContext::default();
    let options = descartes_plans::lists::ListOptions::default();
    let list = descartes_plans::lists::read(ListFormat::Bmad, &files, &context, options);
    assert_eq!(rows(&list), ["11-1-a todo"]);
    assert_eq!(
        left_out(&list),
        [
            "1-1-a: it has no story file yet",
            "2-1-b: it has no story file yet"
        ]
    );
}
