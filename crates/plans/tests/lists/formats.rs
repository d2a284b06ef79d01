//! Each format with the forms that its users write.

use descartes_plans::graph::TaskStatus;
use descartes_plans::lists::{
    By, ListContext, ListFormat, ListOptions, TaskList, criteria, ledger_done, read as read_list,
    story_section,
};

use crate::{file, read, read_with, rows};

const FEATURE: &str = "\
# Tasks: Harbour

<!--
- [ ] T999 a sample
-->

## Phase 1: Setup
- [X] T001 Create the folders
- [ ] T002 [P] Configure the linter
- [ ] T003 [P] Configure the tests

## Phase 2: Foundational
- [ ] **T004** Table of harbours

## Phase 3: User Story 1 - Tides
### Tests for User Story 1
- [ ] T005 [P] [US1] Test of high water
- [ ] T006 [P] [US1] Test of low water
### Implementation
- [ ] T007 [US1] Predict (depends on T005 and T006)
  - **Verification**: `test -d src`

## Phase 4: User Story 2 - Warnings
- [ ] T008 [US2] Warn
- [ ] [US2] [DEFERRED] a box without an id

## Phase 5: Polish
- [ ] T009 Document it

```
- [ ] T900 in a fence
```
";

#[test]
fn spec_kit_runs_phases_in_order_and_parallel_tasks_together() {
    let list = read(ListFormat::SpecKit, FEATURE);
    assert_eq!(
        rows(&list),
        [
            "T001 done",
            "T002 todo after T001",
            "T003 todo after T001",
            "T004 todo after T002 T003",
            "T005 todo after T004",
            "T006 todo after T004",
            "T007 todo after T005 T006",
            "T008 todo after T007",
            "T009 todo after T008",
        ]
    );
    assert_eq!(list.left_out.len(), 1);
    assert_eq!(list.task("T005").unwrap().title, "Test of high water");
    assert_eq!(list.task("T005").unwrap().refers_to, ["US1"]);
}

#[test]
fn stories_run_side_by_side_when_asked() {
    let options = ListOptions {
        stories: true,
        ..ListOptions::default()
    };
    let list = read_with(ListFormat::SpecKit, FEATURE, options);
    let depends = |id: &str| -> Vec<&str> { list.depends_of(list.task(id).unwrap()).collect() };
    assert_eq!(depends("T005"), ["T004"]);
    assert_eq!(depends("T008"), ["T004"], "beside the first story");
    assert_eq!(depends("T009"), ["T007", "T008"], "after all stories");
}

#[test]
fn one_agent_can_be_given_a_phase() {
    let options = ListOptions {
        by: By::Section,
        ..ListOptions::default()
    };
    let list = read_with(ListFormat::SpecKit, FEATURE, options);
    assert_eq!(
        rows(&list),
        [
            "phase-1-setup todo",
            "phase-2-foundational todo after phase-1-setup",
            "phase-3-user-story-1-tides todo after phase-2-foundational",
            "phase-4-user-story-2-warnings todo after phase-3-user-story-1-tides",
            "phase-5-polish todo after phase-4-user-story-2-warnings",
        ]
    );
    let files = [file("tasks.md", FEATURE)];
    let changed = list.set_done(&files, "phase-1-setup", true).unwrap();
    let expected = FEATURE
        .replace("[ ] T002", "[x] T002")
        .replace("[ ] T003", "[x] T003");
    assert_eq!(changed[0].text, expected);
}

#[test]
fn odd_spec_kit_files_are_read_as_they_are_meant() {
    let text = "## フェーズ1\r\n- [ ] **T001a**: first\r\n* [] T002 second, requires T004\r\n- [ ] T003 third\r\n- [ ] T004 fourth, after T001a\r\n- [ ] T003 third again\r\n- [ ] T005 blocked by T777\r\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        [
            "T001a todo",
            "T002 todo after T004",
            "T003 todo after T001a",
            "T004 todo after T003 T001a",
            "T003-2 todo after T002",
            "T005 todo after T003-2",
        ]
    );
    assert_eq!(list.task("T005").unwrap().unknown, ["T777"]);
    let graph = list.graph(ListOptions::default());
    let held = graph.node(graph.find("T005").unwrap());
    assert_eq!(
        held.status,
        TaskStatus::Blocked,
        "an unknown task is never done"
    );
    assert!(graph.plan().is_ok(), "no circle: {:?}", list.findings);
    let changed = list.set_done(&[file("t", text)], "T002", true).unwrap();
    assert_eq!(changed[0].text, text.replace("* [] T002", "* [x] T002"));
}

#[test]
fn the_notes_at_the_end_of_a_spec_kit_file_are_no_boxes() {
    let text = "- [ ] T001 [P] first\n\n## Notes\n\n- [P] tasks = different files, no dependencies\n- [Story] label maps a task to a story\n";
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(rows(&list), ["T001 todo"]);
    assert!(list.left_out.is_empty(), "{:?}", list.left_out);
    assert!(list.findings.is_empty(), "{:?}", list.findings);
}

#[test]
fn tasks_that_wait_for_each_other_are_said_and_run() {
    let text = "- [ ] T001 a (depends on T002)\n- [ ] T002 b (depends on T001)\n";
    let list = read(ListFormat::SpecKit, text);
    assert!(list.graph(ListOptions::default()).plan().is_ok());
    let said = list
        .findings
        .iter()
        .any(|found| found.message.contains("each other"));
    assert!(said, "{:?}", list.findings);
}

#[test]
fn openspec_is_a_chain_and_nested_boxes_are_steps() {
    let text = "## 1. Writer\n- [x] 1.1 Rows\n- [ ] 1.2 Quotes\n  - [ ] test first\n## 2. Rest\n- [ ] no number\n- [ ] 2.1.1 Deep\n- [ ]\n";
    let list = read(ListFormat::OpenSpec, text);
    assert_eq!(
        rows(&list),
        [
            "1.1 done",
            "1.2 todo after 1.1",
            "3 todo after 1.2",
            "2.1.1 todo after 3"
        ]
    );
    let changed = list.set_done(&[file("t", text)], "1.2", true).unwrap();
    assert!(
        changed[0]
            .text
            .contains("- [x] 1.2 Quotes\n  - [x] test first")
    );
    assert_eq!(list.left_out.len(), 1);
}

const KIRO: &str = "\
# Implementation Plan

- [-] 1. Store
  - [x] 1.1 Write it
    - _Requirements: 1.2_
  - [ ]* 1.2 Property test
- [ ] 2. Switch
  - [ ] 2.1 Component
  - [ ] 2.2 Styles
- [ ] 3. Checkpoint - all tests pass
  - Ensure all tests pass, ask the user if questions arise.
- [ ] 4. Wire it in
- [ ] a note
";

#[test]
fn kiro_parents_are_never_run_and_are_ticked_with_their_last_part() {
    let list = read(ListFormat::Kiro, KIRO);
    assert_eq!(
        rows(&list),
        [
            "1 doing container",
            "1.1 done",
            "1.2 todo optional after 1.1",
            "2 todo container",
            "2.1 todo after 1.1",
            "2.2 todo after 2.1",
            "3 todo after 2.2",
            "4 todo after 3",
        ]
    );
    let files = [file("tasks.md", KIRO)];
    let first = list.set_done(&files, "2.1", true).unwrap();
    assert_eq!(first[0].text, KIRO.replace("[ ] 2.1", "[x] 2.1"));
    let again = read(ListFormat::Kiro, &first[0].text);
    let both = again.set_done(&first, "2.2", true).unwrap();
    let expected = first[0]
        .text
        .replace("[ ] 2.2", "[x] 2.2")
        .replace("[ ] 2. ", "[x] 2. ");
    assert_eq!(both[0].text, expected);
    let back = read(ListFormat::Kiro, &both[0].text);
    let back = back.set_done(&both, "2.2", false).unwrap();
    assert_eq!(back[0].text, first[0].text, "and un-ticked with it");
}

#[test]
fn a_task_for_a_person_is_held_or_passed_over() {
    let list = read(ListFormat::Kiro, KIRO);
    let graph = list.graph(ListOptions::default());
    assert_eq!(
        graph.node(graph.find("3").unwrap()).status,
        TaskStatus::Blocked
    );
    assert!(graph.find("1.2").is_none(), "optional");
    let options = ListOptions {
        skip_human: true,
        optional: true,
        ..ListOptions::default()
    };
    let graph = list.graph(options);
    assert!(graph.find("3").is_none());
    let four = graph.find("4").unwrap();
    let on = graph
        .all_dependencies(four)
        .into_iter()
        .map(|on| graph.node(on).id.as_str());
    assert_eq!(
        on.collect::<Vec<_>>(),
        ["2.2"],
        "what was passed over holds nobody"
    );
    assert!(graph.find("1.2").is_some());
}

#[test]
fn kiro_waves_are_used_where_they_are_json() {
    let waves =
        |graph: &str| format!("{KIRO}\n## Task Dependency Graph\n\n```json\n{graph}\n```\n");
    for graph in [
        r#"{"waves": [{"id": 0, "tasks": ["1.1"]}, {"id": 1, "tasks": ["2"]}, {"id": 2, "tasks": ["4"]}]}"#,
        r#"[["1.1"], ["2"], ["4"]]"#,
    ] {
        let list = read(ListFormat::Kiro, &waves(graph));
        let depends = |id: &str| {
            let on = list.depends_of(list.task(id).unwrap());
            on.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(depends("2.1"), "1.1");
        assert_eq!(
            depends("2.2"),
            "2.1",
            "a parent stands for its parts, in order"
        );
        assert_eq!(depends("4"), "2.2");
        assert_eq!(
            depends("3"),
            "1.1 2.1 2.2",
            "outside the graph: after all before it"
        );
    }
    let arrows = read(ListFormat::Kiro, &waves("1.1 --> 2"));
    assert_eq!(
        arrows.task("4").unwrap().depends,
        ["3"],
        "no JSON: in order"
    );
}

#[test]
fn cc_sdd_marks_what_may_run_beside_its_peers() {
    let text = "- [ ] 1. A\n- [ ] 1.1 a\n- [ ] 1.2 (P) b\n- [ ] 1.3 (P) c\n- [ ] 1.4 d\n  - _Depends: 1.2_\n- [ ] 2. (P) B\n- [ ] 2.1 e\n- [ ] 3. C\n- [ ] 3.1 f\n";
    let list = read(ListFormat::Kiro, text);
    assert_eq!(
        rows(&list),
        [
            "1 todo container",
            "1.1 todo",
            "1.2 todo after 1.1",
            "1.3 todo after 1.1",
            "1.4 todo after 1.2 1.3",
            "2 todo container",
            "2.1 todo after 1.4",
            "3 todo container",
            "3.1 todo after 2.1",
        ]
    );
}

#[test]
fn the_criteria_and_the_story_of_a_task_are_found() {
    let requirements = "## Requirements\n### Requirement 1: Switch\n#### Acceptance Criteria\n1. WHEN pressed THEN dark\n2. WHEN loaded THEN kept\n### Requirement 2\n1. contrast\n";
    assert_eq!(
        criteria(requirements, &["1.2".to_owned(), "2".to_owned()]),
        ["1.2 WHEN loaded THEN kept", "2.1 contrast"]
    );
    let spec = "# Spec\n### User Story 1 - Tides (P1)\nhigh\n### User Story 10 - Other\nlow\n";
    assert_eq!(
        story_section(spec, "US1").unwrap(),
        "### User Story 1 - Tides (P1)\nhigh"
    );
    assert_eq!(story_section(spec, "US2"), None);
}

#[test]
fn a_plan_has_tasks_as_headings_and_boxes_as_steps() {
    let text = "# Plan\n\nGoal: tides.\n\n## Validation Commands\n- `cargo test`\n\n### Task 1: Read\n- [x] **Step 1: test**\n- [ ] **Step 2: code**\n#### Details\n- [ ] more\n\n````md\n### Task 9: in a fence\n- [ ] no\n````\n\n### Task 2.5: Print\nOnly prose.\n\n### Task 3: Ship\n- [x] done\n\n## Post-Completion\n- [ ] watch it\n";
    let list = read(ListFormat::Plan, text);
    assert_eq!(
        rows(&list),
        ["1 todo", "2.5 todo after 1", "3 done after 2.5"]
    );
    assert_eq!(list.gates[0].command, "cargo test");
    assert_eq!(list.left_out[0].text, "watch it");
    assert!(list.introduction.contains("Goal: tides."));
    let changed = list.set_done(&[file("p", text)], "1", true).unwrap();
    let expected = text
        .replace("[ ] **Step 2", "[x] **Step 2")
        .replace("- [ ] more", "- [x] more");
    assert_eq!(changed[0].text, expected);
    assert_eq!(list.set_done(&[file("p", text)], "2.5", true).unwrap(), []);
    let context = ListContext {
        ledger: ledger_done("# SDD ledger\nTask 1: complete (commits a..b)\nTask 2: in work\n"),
        ..ListContext::default()
    };
    let known = read_list(
        ListFormat::Plan,
        &[file("p", text)],
        &context,
        ListOptions::default(),
    );
    assert!(known.task("1").unwrap().is_done());
}

#[test]
fn a_check_list_leaves_out_what_is_no_work() {
    let text = "# TODO\n- [x] a\n- [ ] b\n    - [ ] step\n1. [ ] c\n- [l](x)\n## Notes\n- [ ] note\n## Done ✅\n- [x] old\n## Donec\n- [ ] work\n";
    let list = read(ListFormat::Checklist, text);
    assert_eq!(
        rows(&list),
        [
            "1 done",
            "2 todo after 1",
            "3 todo after 2",
            "4 todo after 3"
        ]
    );
    let why: Vec<&str> = list.left_out.iter().map(|left| left.why.as_str()).collect();
    assert_eq!(
        why,
        ["it stands under `Notes`", "it stands under `Done ✅`"]
    );
}

#[test]
fn stories_in_json_wait_by_dependency_or_by_priority() {
    let text = r#"{"userStories":[
        {"id":"US-1","title":"a","priority":2,"passes":false},
        {"id":"US-2","title":"\"passes\": false","priority":1,"passes":true},
        {"id":"US-3","title":"c","priority":2,"passes":false,"verifyCommands":["make"]}]}"#;
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(
        rows(&list),
        ["US-1 todo after US-2", "US-2 done", "US-3 todo after US-2"]
    );
    assert_eq!(list.task("US-3").unwrap().gates, ["make"]);
    let changed = list.set_done(&[file("p", text)], "US-3", true).unwrap();
    let expected = text.replace(
        r#""priority":2,"passes":false,"verify"#,
        r#""priority":2,"passes":true,"verify"#,
    );
    assert_eq!(changed[0].text, expected);
    let bare = r#"[{"category":"x","description":"first","passes":false},{"description":"second","passes":false},{"description":"odd"}]"#;
    let list = read(ListFormat::PassesJson, bare);
    assert_eq!(rows(&list), ["1 todo", "2 todo after 1"]);
    assert_eq!(list.left_out.len(), 1);
    let depends = r#"{"stories":[{"id":1,"title":"a","passes":false,"dependsOn":[2,"9"]},{"id":2,"title":"b","passes":false}]}"#;
    let list = read(ListFormat::PassesJson, depends);
    assert_eq!(rows(&list), ["1 todo after 2", "2 todo"]);
    assert_eq!(list.task("1").unwrap().unknown, ["9"]);
}

#[test]
fn a_document_in_json_is_refused_with_what_was_found() {
    for (text, message) in [
        (r#"{"prd":{"title":"x"}}"#, "its keys are: prd"),
        ("{\"a\": ", "not valid JSON"),
    ] {
        let found = read(ListFormat::PassesJson, text).check(ListOptions::default());
        assert!(found[0].message.contains(message), "{found:?}");
    }
}

#[test]
fn task_master_sub_tasks_are_the_work() {
    let text = r#"{"master":{"tasks":[
        {"id":1,"title":"a","status":"done","dependencies":[],"subtasks":[]},
        {"id":"2","title":"b","status":"pending","dependencies":[1],"subtasks":[
            {"id":1,"title":"x","status":"cancelled","dependencies":[]},
            {"id":2,"title":"y","status":"pending","dependencies":[1]},
            {"id":3,"title":"z","status":"in-progress","dependencies":["2.2"]}]},
        {"id":3,"title":"c","status":"deferred","dependencies":["2"]}]}}"#;
    let list = read(ListFormat::TaskMaster, text);
    assert_eq!(
        rows(&list),
        [
            "1 done",
            "2 todo container after 1",
            "2.1 done",
            "2.2 todo after 2.1",
            "2.3 doing after 2.2",
            "3 todo after 2",
        ]
    );
    let one = list.set_done(&[file("t", text)], "2.2", true).unwrap();
    let expected = text.replace(
        r#""title":"y","status":"pending""#,
        r#""title":"y","status":"done""#,
    );
    assert_eq!(one[0].text, expected);
    let all = read(ListFormat::TaskMaster, &one[0].text)
        .set_done(&one, "2.3", true)
        .unwrap();
    let again = read(ListFormat::TaskMaster, &all[0].text);
    assert!(again.task("2").unwrap().is_done(), "with its last part");
    assert!(list.graph(ListOptions::default()).plan().is_ok());
}

#[test]
fn each_file_of_a_folder_is_a_task() {
    let files = [
        file(
            "tasks/task-10 - C.md",
            "---\nid: TASK-10\ntitle: C\nstatus: To Do\ndependencies:\n  - task-02\n---\n",
        ),
        file(
            "tasks/task-2 - B.md",
            "---\nid: TASK-2\ntitle: B\nstatus: \"To Do\"\ndependencies: [task-1]\nparent_task_id: TASK-10\n---\nstatus: To Do\n- [ ] #1 ac\n- [ ] other\n",
        ),
        file(
            "tasks/task-1 - A.md",
            "---\nid: TASK-1\ntitle: A\nstatus: In Progress\n---\n",
        ),
        file(
            "completed/task-0 - Z.md",
            "---\nid: TASK-0\ntitle: Z\nstatus: To Do\n---\n",
        ),
    ];
    let context = ListContext {
        config: Some("statuses: [\"To Do\", \"In Progress\", \"Shipped\"]\n".to_owned()),
        ..ListContext::default()
    };
    let options = ListOptions::default();
    let list = read_list(ListFormat::Backlog, &files, &context, options);
    assert_eq!(
        rows(&list),
        [
            "TASK-0 done",
            "TASK-1 doing",
            "TASK-2 todo after TASK-1",
            "TASK-10 todo after TASK-2"
        ]
    );
    let changed = list.set_done(&files, "TASK-2", true).unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(
        changed[0].text,
        files[1]
            .text
            .replacen("\"To Do\"", "\"Shipped\"", 1)
            .replace("[ ] #1", "[x] #1")
    );
}

#[test]
fn tickets_name_their_status_in_a_line() {
    let files = [
        file(
            "01-a.md",
            "# 01 — A\n\n**Blocked by:** None\n\n**Status:** ready-for-agent\n- [ ] x\n",
        ),
        file(
            "02-b.md",
            "# 02 — B\n\nType: research\nStatus: claimed\nBlocked by: 01 (A), 03\n",
        ),
    ];
    let list = read_list(
        ListFormat::Tickets,
        &files,
        &ListContext::default(),
        ListOptions::default(),
    );
    assert_eq!(rows(&list), ["01 todo", "02 doing after 01"]);
    assert_eq!(list.task("02").unwrap().unknown, ["03"]);
    let one = list.set_done(&files, "01", true).unwrap();
    assert!(one[0].text.contains("**Status:** done\n- [x] x"));
    let two = list.set_done(&files, "02", true).unwrap();
    assert!(two[0].text.contains("Status: resolved\n"));
    assert_eq!(TaskList::held_reason(list.task("01").unwrap()), None);
}

#[test]
fn bmad_marks_the_story_and_the_sprint() {
    let files = [
        file(
            "sprint-status.yaml",
            "development_status:\n  epic-1: in-progress\n  1-1-a: done\n  1-2-b: ready-for-dev  # next\n  1-3-c: backlog\n",
        ),
        file(
            "1-2-b.md",
            "# Story 1.2: B\n\nStatus: ready-for-dev\n\n## Tasks / Subtasks\n- [ ] one\n  - [ ] two\n\n## Verification\n**Commands:**\n- `make b` -- expected: green\n",
        ),
    ];
    let list = read_list(
        ListFormat::Bmad,
        &files,
        &ListContext::default(),
        ListOptions::default(),
    );
    assert_eq!(rows(&list), ["1-1-a done", "1-2-b todo after 1-1-a"]);
    assert_eq!(list.task("1-2-b").unwrap().gates, ["make b"]);
    let changed = list.set_done(&files, "1-2-b", true).unwrap();
    assert_eq!(
        changed[0].text,
        files[0]
            .text
            .replace("1-2-b: ready-for-dev", "1-2-b: review")
    );
    let story = files[1]
        .text
        .replace("Status: ready-for-dev", "Status: review");
    assert_eq!(changed[1].text, story.replace("[ ]", "[x]"));
}
