//! Forms of lists that people write beside those of their tools: boxes without bullets, stories with a
//! status, and ids of their own.

use descartes_plans::lists::{ListFormat, ListOptions, Recognized, TaskList, by_content};

use crate::{file, read, rows};

fn recognized(path: &str, text: &str) -> Option<ListFormat> {
    match by_content(path, text) {
        Recognized::List(format) => Some(format),
        _ => None,
    }
}

fn titles(list: &TaskList) -> Vec<&str> {
    list.tasks.iter().map(|task| task.title.as_str()).collect()
}

/// The text when a task is marked.
fn ticked(format: ListFormat, text: &str, id: &str) -> String {
    let files = [file("list", text)];
    let changed = read(format, text).set_done(&files, id, true).unwrap();
    changed.into_iter().next().unwrap().text
}

fn warnings(list: &TaskList) -> Vec<&str> {
    let all = list.findings.iter();
    all.map(|finding| finding.message.as_str()).collect()
}

#[test]
fn boxes_need_no_bullet() {
    let text = "# Todo\r\n\r\n[x] T01 Set up\r\n[ ] T02 Write it\r\n    [ ] with tests\r\n      in Rust\r\n\r\n[ ] T03 Ship it\r\n";
    assert_eq!(recognized("/p/TODO.md", text), Some(ListFormat::Checklist));
    let begin = text.trim_start_matches("# Todo\r\n\r\n");
    assert_eq!(
        recognized("/p/TODO.txt", begin),
        Some(ListFormat::Checklist)
    );
    let list = read(ListFormat::Checklist, text);
    assert_eq!(titles(&list), ["T01 Set up", "T02 Write it", "T03 Ship it"]);
    assert_eq!(rows(&list), ["1 done", "2 todo after 1", "3 todo after 2"]);
    assert_eq!(list.tasks[1].body, "[ ] with tests\n  in Rust");
    let expected = text
        .replace("[ ] T02", "[x] T02")
        .replace("[ ] with", "[x] with");
    assert_eq!(ticked(ListFormat::Checklist, text, "2"), expected);

    let text = "## Phase 1: Setup\n[ ] T001 [P] a\n[ ] T002 [P] b\n[ ] T003 c\n";
    assert_eq!(recognized("/p/x.md", text), Some(ListFormat::SpecKit));
    let list = read(ListFormat::SpecKit, text);
    assert_eq!(
        rows(&list),
        ["T001 todo", "T002 todo", "T003 todo after T001 T002"]
    );
}

#[test]
fn prose_and_legends_are_no_boxes() {
    for text in [
        "# Status\n\n[ ] open\n[x] done\n",
        "Signs: [ ] is open and\n[x] Ticked is done.\n",
        "# Report\n\n[x] Something\n",
        "[ ] = to be done\n[x] = there\n\n1. First\n2. Second\n",
    ] {
        assert_eq!(recognized("/p/x.md", text), None, "{text}");
    }
    let text = "[ ] Work to do\n[x] Work done\n\n- [ ] Write it\n";
    let list = read(ListFormat::Checklist, text);
    assert_eq!(titles(&list), ["Write it"]);
}

#[test]
fn stories_may_have_a_status() {
    let text = "{\n  \"project\": \"x\",\n  \"features\": [\n    {\"id\": \"F1\", \"name\": \"A\", \"status\": \"Completed\"},\n    {\"id\": \"F2\", \"name\": \"B\", \"status\": \"in_progress\", \"dependencies\": [\"F3\"]},\n    {\"id\": \"F3\", \"name\": \"C\",\t\"status\" : \"Not Started\"}\n  ]\n}";
    for path in ["/p/feature_list.json", "/p/tasks.json"] {
        assert_eq!(recognized(path, text), Some(ListFormat::PassesJson));
    }
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(rows(&list), ["F1 done", "F2 doing after F3", "F3 todo"]);
    assert_eq!(warnings(&list), [""; 0]);
    let expected = text.replace("\"Not Started\"", "\"Completed\"");
    assert_eq!(ticked(ListFormat::PassesJson, text, "F3"), expected);
    let files = [file("list", &expected)];
    let again = read(ListFormat::PassesJson, &expected);
    let open = again.set_done(&files, "F3", false).unwrap();
    assert!(open[0].text.contains("\"status\" : \"pending\""));
}

#[test]
fn a_word_for_done_that_nobody_used_yet_is_told() {
    let text = "[{\"title\": \"A\", \"priority\": 1, \"status\": \"TODO\"}, {\"title\": \"B\", \"status\": \"TODO\"}]";
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(
        warnings(&list),
        [
            "no story is done yet, so the file does not say its word for that: `DONE` is written for one that is proven"
        ]
    );
    assert!(
        ticked(ListFormat::PassesJson, text, "1")
            .contains("\"A\", \"priority\": 1, \"status\": \"DONE\"")
    );
    let two = text
        .replacen("TODO", "done", 1)
        .replacen("TODO", "complete", 1);
    let more = two.replace(
        ']',
        ", {\"title\": \"C\", \"status\": \"todo\"}, {\"title\": \"D\", \"status\": \"complete\"}]",
    );
    let list = read(ListFormat::PassesJson, &more);
    assert_eq!(
        warnings(&list),
        [
            "the file says `complete` and `done` for stories that are done: `complete` is written for one that is proven"
        ]
    );
}

#[test]
fn a_file_may_declare_its_words() {
    let text = r#"{"rules": {"valid_status": ["pending", "spec_ready", "triaged", "shipped", "done"]},
        "features": [{"id": 1, "name": "a", "title": "A", "acceptance": ["works"], "status": "pending"},
        {"id": 2, "name": "b", "status": "spec_ready"}, {"id": 3, "name": "c", "status": "triaged"}]}"#;
    let path = "/p/feature_list.json";
    assert_eq!(recognized(path, text), Some(ListFormat::PassesJson));
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(titles(&list), ["A", "b", "c"]);
    assert_eq!(list.tasks[0].body, "Acceptance criteria:\n- works");
    assert_eq!(
        warnings(&list),
        ["story `3` has the unknown status `triaged`: it is held"]
    );
    let expected = text.replacen("\"status\": \"pending\"", "\"status\": \"done\"", 1);
    assert_eq!(ticked(ListFormat::PassesJson, text, "1"), expected);
}

#[test]
fn other_json_with_a_status_is_no_list() {
    for text in [
        r#"[{"name": "web", "status": "active"}, {"name": "db", "status": "done"}]"#,
        r#"{"tasks": [{"title": "A", "status": 200}]}"#,
        r#"{"tasks": [{"title": "A", "status": "done"}, {"title": "B"}]}"#,
        r#"{"tasks": [{"id": 1, "status": "done"}]}"#,
        r#"{"services": [{"id": 1, "name": "a", "status": "open"}]}"#,
        r#"{"tasks": [{"id": 1, "title": "a", "status": "pending", "subtasks": [{"id": 1, "title": "b", "status": "pending"}]}]}"#,
    ] {
        assert_eq!(recognized("/p/data.json", text), None, "{text}");
    }
}

#[test]
fn ids_in_a_check_list_can_be_depended_on() {
    let text = "- [ ] T1.1 Read (depends on T2.1)\n- [ ] **T1.2** Parse\n- [ ] T2.1: Write, requires ES2022\n- [ ] T2.2 Ship\n  - after T1.1 and T9.9\n";
    assert_eq!(recognized("/p/PLAN.md", text), Some(ListFormat::Checklist));
    let list = read(ListFormat::Checklist, text);
    assert_eq!(
        rows(&list),
        [
            "1 todo after 3",
            "2 todo",
            "3 todo after 2",
            "4 todo after 1"
        ]
    );
    assert_eq!(list.tasks[3].unknown, ["T9.9"]);
    assert_eq!(list.tasks[2].unknown, [""; 0]);
    let waves = list.graph(ListOptions::default()).plan().unwrap();
    assert_eq!(waves.waves().len(), 4);
    let plain = "- [ ] T1.1 Read\n- [ ] T1.2 Parse\n";
    let list = read(ListFormat::Checklist, plain);
    assert_eq!(rows(&list), ["1 todo", "2 todo after 1"]);
}

/// A fence that is shown inside a code block does not end it.
#[test]
fn a_fence_in_code_ends_nothing() {
    let text = "- [ ] Read answers\n\n```python\nANSWER = \"\"\"\n    ```python\n    pass\n    ```\n\"\"\"\n```\n\n- [ ] Count votes\n\n```sh\nmake\n```\n\n- [ ] Ship it\n";
    let list = read(ListFormat::Checklist, text);
    assert_eq!(titles(&list), ["Read answers", "Count votes", "Ship it"]);
}

#[test]
fn what_work_has_to_come_up_to_is_no_work() {
    for heading in [
        "PART 5: SUCCESS CRITERIA",
        "Phase 1 Success Criteria",
        "US-1 — Acceptance criteria:",
        "AC Checklist",
        "Verification Checklist",
        "✅ Definition of Done",
        "Anti-Patterns Checklist",
        "验收标准",
    ] {
        let text = format!("## Work\n\n- [ ] Do it\n\n## {heading}\n\n- [ ] It is fast\n");
        let list = read(ListFormat::Checklist, &text);
        assert_eq!(titles(&list), ["Do it"], "{heading}");
        assert_eq!(list.left_out.len(), 1, "{heading}");
    }
    for heading in [
        "Write the success criteria",
        "Phase 4: Validation",
        "Verification",
    ] {
        let text = format!("## {heading}\n\n- [ ] Do it\n");
        let list = read(ListFormat::Checklist, &text);
        assert_eq!(titles(&list), ["Do it"], "{heading}");
    }
}

/// The boxes of a story are what it has to come up to: one agent does the story.
#[test]
fn stories_under_headings_are_tasks() {
    let text = "# Product\n\n## Goals\n\n### US-001: Add months\n**Acceptance Criteria:**\n- [x] Field in the form\n- [x] Types are right\n\n### US-002 — Show months\n\n#### Acceptance Criteria\n\n- [ ] Column in the list\n- [ ] Types are right\n\n## Definition of Done\n\n- [ ] It is written down\n";
    assert_eq!(recognized("/p/PRD.md", text), Some(ListFormat::Plan));
    let list = read(ListFormat::Plan, text);
    assert_eq!(titles(&list), ["Add months", "Show months"]);
    assert_eq!(rows(&list), ["US-001 done", "US-002 todo after US-001"]);
    assert_eq!(list.left_out.len(), 1);
    let (story, rest) = text.split_once("## Definition").unwrap();
    let expected = format!("{}## Definition{rest}", story.replace("[ ]", "[x]"));
    assert_eq!(ticked(ListFormat::Plan, text, "US-002"), expected);

    // Criteria that are stories of their own kind are still none.
    let text =
        "## Acceptance Criteria\n\n### AC-1: Fast\n\n- [ ] a\n\n### AC-2: Small\n\n- [ ] b\n";
    assert_eq!(recognized("/p/x.md", text), Some(ListFormat::Checklist));
    assert_eq!(read(ListFormat::Checklist, text).tasks.len(), 0);
}

/// `Write the test` and `see it fail` are no work for two agents.
#[test]
fn boxes_that_are_steps_belong_to_the_heading_above() {
    let text = "# Plan\n\n## Cycle 1 — The seal\n\n- [ ] **Step 1.1 — Write the test**\n- [ ] **Step 1.2 — See it fail**\n\n## Cycle 2 — The prompt\n\n- [ ] **Step 2.1 — Write the test**\n";
    assert_eq!(recognized("/p/x.md", text), Some(ListFormat::Plan));
    let list = read(ListFormat::Plan, text);
    assert_eq!(titles(&list), ["The seal", "The prompt"]);
    assert_eq!(rows(&list), ["1 todo", "2 todo after 1"]);

    for [first, second] in [
        ["RED: test for a", "GREEN: write a"],
        ["Red — test for a", "Green — write a"],
        ["Write the failing test", "Make it pass"],
    ] {
        let part = |at: u32| format!("## Cycle {at}: a\n\n- [ ] {first}\n- [ ] {second}\n\n");
        let text = format!("{}{}", part(1), part(2).replace("est for a", "est for b"));
        assert_eq!(
            recognized("/p/x.md", &text),
            Some(ListFormat::Plan),
            "{text}"
        );
        assert_eq!(read(ListFormat::Plan, &text).tasks.len(), 2, "{text}");
    }
}

/// Elsewhere boxes under `Week 1` are tasks; in a folder of plans a heading is one.
#[test]
fn counted_headings_are_tasks_in_a_folder_of_plans() {
    for word in ["Phase", "Cycle", "Sprint", "Milestone", "Week", "Etappe"] {
        let text = format!(
            "## {word} 1: Set up\n\n- [ ] Write a\n- [ ] Write b\n\n## {word} 2: More\n\n- [ ] Write c\n"
        );
        let found = recognized("/p/x.md", &text);
        assert_eq!(found, Some(ListFormat::Checklist), "{word}");
        let found = recognized("/p/docs/plans/x.md", &text);
        assert_eq!(found, Some(ListFormat::Plan), "{word}");
        let list = read(ListFormat::Plan, &text);
        assert_eq!(titles(&list), ["Set up", "More"], "{word}");
        assert_eq!(rows(&list), ["1 todo", "2 todo after 1"], "{word}");
    }
    for text in [
        "## Week 1: a\n- [ ] a\n## Month 2: b\n- [ ] b\n",
        "## Week 1: a\n- [ ] a\n## Week 2: b\n- [ ] b\n## Later\n- [ ] c\n",
        "## Week 1: a\n- [ ] a\n",
    ] {
        let found = recognized("/p/docs/plans/x.md", text);
        assert_eq!(found, Some(ListFormat::Checklist), "{text}");
    }
}

#[test]
fn stories_may_have_a_state_or_say_that_they_are_complete() {
    let text = r#"{"features": [
  {"id": "a-1", "title": "A", "state": "passing", "verification_command": "make a"},
  {"id": "a-2", "title": "B", "state": "not_started", "verification_command": "make b"}
]}"#;
    assert_eq!(
        recognized("/p/feature_list.json", text),
        Some(ListFormat::PassesJson)
    );
    let list = read(ListFormat::PassesJson, text);
    assert_eq!(rows(&list), ["a-1 done", "a-2 todo after a-1"]);
    assert_eq!(list.tasks[1].gates, ["make b"]);
    let expected = text.replace("not_started", "passing");
    assert_eq!(ticked(ListFormat::PassesJson, text, "a-2"), expected);

    let text = r#"[{"id": 1, "name": "A", "state": "not_started", "status": "not-started"}]"#;
    let expected = r#"[{"id": 1, "name": "A", "state": "done", "status": "done"}]"#;
    assert_eq!(ticked(ListFormat::PassesJson, text, "1"), expected);

    let text = r#"[
  {"category": "x", "description": "Do a", "started": true, "complete": true},
  {"category": "x", "description": "Do b", "started": false, "complete": false}
]"#;
    assert_eq!(
        recognized("/p/prd.json", text),
        Some(ListFormat::PassesJson)
    );
    assert_eq!(
        rows(&read(ListFormat::PassesJson, text)),
        ["1 done", "2 todo after 1"]
    );
    let expected = text.replace("\"complete\": false", "\"complete\": true");
    assert_eq!(ticked(ListFormat::PassesJson, text, "2"), expected);

    let text = r#"{"tasks": [{"name": "A", "done": true}, {"name": "B"}]}"#;
    assert_eq!(recognized("/p/x.json", text), None);
}

/// A parent that may be left out with all its parts is not work beside them.
#[test]
fn an_optional_parent_is_done_with_its_last_part() {
    let text = "- [ ]* 1. Test it\n  - [ ]* 1.1 Write tests\n  - [ ]* 1.2 Run them\n";
    let list = read(ListFormat::Kiro, text);
    let containers: Vec<bool> = list.tasks.iter().map(|task| task.container).collect();
    assert_eq!(containers, [true, false, false]);
    let first = text.replace("[ ]* 1.1", "[x]* 1.1");
    assert_eq!(ticked(ListFormat::Kiro, text, "1.1"), first);
    assert_eq!(
        ticked(ListFormat::Kiro, &first, "1.2"),
        text.replace("[ ]", "[x]")
    );
}
