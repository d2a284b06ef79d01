//! Tasks, dependencies and what was given up, in the spellings of other people's lists.

use descartes_plans::lists::{
    ListContext, ListFormat, ListOptions, Recognized, TaskList, by_content, read as read_list,
};
use descartes_text::finding::Severity;

use crate::{file, read, rows};

/// `text: why` of everything that is left out.
fn left_out(list: &TaskList) -> Vec<String> {
    let all = list.left_out.iter();
    all.map(|one| format!("{}: {}", one.text, one.why))
        .collect()
}

fn warnings(list: &TaskList) -> Vec<&str> {
    let all = list.findings.iter();
    let all = all.filter(|finding| finding.severity == Severity::Warning);
    all.map(|finding| finding.message.as_str()).collect()
}

#[test]
fn a_plan_keeps_its_tasks_whatever_follows_their_numbers() {
    let titles = [
        "Task 2 — B",
        "Task 2. B",
        "Task 2 - B",
        "Task 2) B",
        "Task 2 (P0): B",
        "Task 2：B",
        "**Task 2: B**",
        "✅ Task 2: B",
        "TASK 2: B",
        "Task #2: B",
        "Iteration 2 - B",
    ];
    for title in titles {
        let text = format!("### Task 1: A\n\n- [ ] a\n\n### {title}\n\n- [ ] b\n");
        let list = read(ListFormat::Plan, &text);
        assert_eq!(rows(&list), ["1 todo", "2 todo after 1"], "{title}");
        assert_eq!(list.tasks[1].title, "B", "{title}");
        assert_eq!(list.tasks[0].marks.len(), 1, "{title}");
        if !title.starts_with("Iteration") {
            let alone = format!("### {title}\n\n- [ ] b\n");
            let found = by_content("/p/x.md", &alone);
            assert_eq!(found, Recognized::List(ListFormat::Plan), "{title}");
        }
    }
    let list = read(ListFormat::Plan, "### Task T001: A\n- [ ] a\n");
    assert_eq!(rows(&list), ["T001 todo"]);
    // Words behind a number make no task of a heading.
    let text = "### Task 1: A\n- [ ] a\n\n### Task 1 follow-ups\n- [ ] b\n";
    assert_eq!(rows(&read(ListFormat::Plan, text)), ["1 todo"]);
}

#[test]
fn dependencies_with_a_colon_are_dependencies() {
    let text = "- [ ] T001 a\n- [ ] T002 [P] b\n- [ ] T003 [P] [depends: T001, T002] c\n\
                - [ ] T004 [P] d **[Depends: T003]**\n- [ ] T005 [P] e (depends: T004)\n\
                - [ ] T006 [P] f\n  - Dependencies: T005\n- [ ] T007 [P] g [Depends: T099]\n\
                - [x] T008 [P] h [Depends: T098]\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        [
            "T001 todo",
            "T002 todo after T001",
            "T003 todo after T001 T002",
            "T004 todo after T001 T003",
            "T005 todo after T001 T004",
            "T006 todo after T001 T005",
            "T007 todo after T001",
            "T008 done after T001",
        ]
    );
    assert_eq!(list.tasks[6].unknown, ["T099"]);
    // What is done is not held.
    let held = "task `T007` depends on `T099`, which is not in the list: it is held";
    assert_eq!(warnings(&list), [held]);
}

#[test]
fn ids_of_spec_kit_have_parts_and_ranges() {
    let text = "- [ ] T001.1 a\n- [ ] T001.2 [P] b\n- [ ] T002 [P] c (depends on T001.2)\n\
                - [~] T062-T067 DROPPED - x\n- [ ] T070–T072 [P] d\n\
                - [ ] T073 [P] e (depends on T063, T071)\n- [ ] T074 [REMOVED] f\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        [
            "T001.1 todo",
            "T001.2 todo after T001.1",
            "T002 todo after T001.1 T001.2",
            "T070-T072 todo after T001.1",
            "T073 todo after T001.1 T070-T072",
        ]
    );
    assert_eq!(list.tasks[1].title, "b");
    assert_eq!(
        left_out(&list),
        [
            "T062-T067 DROPPED - x: it says DROPPED",
            "T074 [REMOVED] f: it says REMOVED"
        ]
    );
    assert_eq!(warnings(&list), [""; 0]);
}

#[test]
fn what_is_struck_through_is_left_out() {
    let gone = "it is struck through";
    for (format, text, expected) in [
        (
            ListFormat::OpenSpec,
            "- [ ] 1.2 a\n- [ ] ~~1.3 Add x~~ (not needed)\n- [ ] 1.4 b\n",
            vec!["1.2 todo", "1.4 todo after 1.2"],
        ),
        (
            ListFormat::Kiro,
            "- [ ] 1. a\n- [ ] ~~2. b~~\n- [ ] 3. c\n  - _Depends: 2_\n",
            vec!["1 todo", "3 todo after 1"],
        ),
        (
            ListFormat::SpecKit,
            "- [ ] T001 a\n- [ ] ~~T002~~ **REMOVED** b\n- [ ] T003 c (depends on T002)\n",
            vec!["T001 todo", "T003 todo after T001"],
        ),
        (
            ListFormat::SpecKit,
            "- [ ] T001 a\n- [ ] T002 ~~b~~ - dropped\n- [ ] T003 c (depends on T002)\n",
            vec!["T001 todo", "T003 todo after T001"],
        ),
        (
            ListFormat::SpecKit,
            "- [x] ~~T001 a~~ (was there)\n- [ ] ~~T002 b~~ — **取消**\n- [ ] T003 c\n",
            vec!["T001 done", "T003 todo after T001"],
        ),
        (
            ListFormat::Checklist,
            "- [ ] a\n- [ ] ~~b~~\n  - [ ] part of b\n- [ ] ~~old~~ new\n",
            vec!["1 todo", "2 todo after 1"],
        ),
        (
            ListFormat::Plan,
            "### Task 1: a\n- [ ] a\n### ~~Task 2: b~~\n- [ ] b\n### Task 3: c\n- [ ] c\n",
            vec!["1 todo", "3 todo after 1"],
        ),
    ] {
        let list = read(format, text);
        assert_eq!(rows(&list), expected, "{text}");
        assert_eq!(list.left_out.len(), 1, "{text}");
        assert_eq!(list.left_out[0].why, gone, "{text}");
        assert_eq!(warnings(&list), [""; 0], "{text}");
    }
    // A step that nobody is to do is not ticked with its task.
    for (format, text) in [
        (ListFormat::Checklist, "- [ ] a\n  - [ ] b\n  - [ ] ~~c~~\n"),
        (
            ListFormat::Plan,
            "### Task 1: a\n- [ ] a\n- [ ] b\n- [ ] ~~c~~\n",
        ),
    ] {
        assert_eq!(read(format, text).tasks[0].marks.len(), 2, "{text}");
    }
}

#[test]
fn commands_and_dependencies_of_stories_are_all_read() {
    let text = r#"{"verifyCommands": ["make", "make test"], "userStories": [
        {"id": "a", "passes": false},
        {"id": "b", "passes": false, "verifyCommands": ["make b"]},
        {"id": "c", "passes": false, "blockedBy": ["a"], "dependencies": ["b", "a"]}]}"#;
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(rows(&list), ["a todo", "b todo", "c todo after b a"]);
    let gates = list.gates.iter().map(|gate| gate.command.as_str());
    assert_eq!(gates.collect::<Vec<_>>(), ["make", "make test"]);
    assert_eq!(list.tasks[1].gates, ["make b"]);
}

#[test]
fn waves_are_found_beside_pictures_and_under_longer_headings() {
    let tasks = "- [ ] 1. a\n- [ ] 2. b\n- [ ] 3. c\n\n";
    let waves = "```json\n{\"waves\": [[\"1\", \"2\"], [\"3\"]]}\n```\n";
    let picture = "```mermaid\ngraph TD\n```\n";
    for graph in [
        format!("## Task Dependency Graph\n\n{waves}\n{picture}"),
        format!("## Task Dependency Graph\n\n{picture}\n{waves}"),
        format!("## Task Dependency Graph (waves)\n\n{waves}"),
        format!("## Task Dependency Graph\n\n### JSON\n\n{waves}"),
    ] {
        let text = format!("{tasks}{graph}");
        let list = read(ListFormat::Kiro, &text);
        let expected = ["1 todo", "2 todo", "3 todo after 1 2"];
        assert_eq!(rows(&list), expected, "{text}");
        let found = by_content("/p/x.md", &text);
        assert_eq!(found, Recognized::List(ListFormat::Kiro), "{text}");
    }
}

#[test]
fn a_number_before_the_box_is_a_number_of_kiro() {
    let text = "1. [ ] a\n2. [ ] b\n   - [ ] 2.1 c\n- [ ] none\n";
    let list = read(ListFormat::Kiro, text);
    let expected = ["1 todo", "2 todo container", "2.1 todo after 1"];
    assert_eq!(rows(&list), expected);
    assert_eq!(left_out(&list), ["none: it has no number"]);
}

#[test]
fn other_marks_are_open_and_said() {
    let text = "- [ ] a\n  - [√] b\n- [✓] c\n- [✔\u{fe0f}] d\n- [✅] e\n- [?] f\n";
    let list = read(ListFormat::Checklist, text);
    let states: Vec<&str> = list.tasks.iter().map(|task| task.progress()).collect();
    assert_eq!(states, ["todo", "todo", "todo", "todo", "todo"]);
    let notes = list
        .findings
        .iter()
        .map(|note| (note.line, note.message.as_str()));
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            (2, "the box says [√]: it is read as not done"),
            (3, "the box says [✓]: it is read as not done"),
            (4, "the box says [✔]: it is read as not done"),
            (5, "the box says [✅]: it is read as not done"),
            (6, "the box says [?]: it is read as not done"),
        ]
    );
    // Two characters that are shown as one are ticked as one.
    let files = [file("list", text)];
    let ticked = list.set_done(&files, "3", true).unwrap();
    assert_eq!(ticked[0].text, text.replace("[✔\u{fe0f}]", "[x]"));
}

#[test]
fn names_in_bold_letters_leave_no_marks_in_titles() {
    for (format, text, title) in [
        (ListFormat::Kiro, "- [ ] **1. a**\n", "a"),
        (
            ListFormat::OpenSpec,
            "- [ ] **1.1 a and **b** too**\n",
            "a and **b** too",
        ),
        (
            ListFormat::OpenSpec,
            "- [ ] **1.1** a is **b**\n",
            "a is **b**",
        ),
        (ListFormat::SpecKit, "- [ ] **T001 a**\n", "a"),
    ] {
        assert_eq!(read(format, text).tasks[0].title, title, "{text}");
    }
}

#[test]
fn what_is_said_of_a_file_names_it() {
    let files = [
        file("a.md", "---\nid: a\nstatus: open\ndeps: [z]\n---\n"),
        file("b.md", "---\nid: a\nstatus: open\n---\n"),
        file("c.md", "---\nid: c\nstatus: closed\ndeps: [z]\n---\n"),
    ];
    let context = ListContext::default();
    let list = read_list(ListFormat::Tk, &files, &context, ListOptions::default());
    assert_eq!(
        warnings(&list),
        [
            "b.md: there is a task `a` already: this one is called `a-2`",
            "a.md: task `a` depends on `z`, which is not in the list: it is held",
        ]
    );
}
