//! Any file: read, mark any tasks, every other byte as before, read again: the same tasks.

use descartes_plans::lists::{
    KnownTask, ListContext, ListFile, ListFormat, ListOptions, Recognized, TaskList, by_content,
    read as read_list,
};
use proptest::prelude::*;

use crate::file;

fn line() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("T001 [P] [US1] a"),
        Just("T002 b (depends on T001)"),
        Just("**T003**: c, requires T004-T006"),
        Just("1. A"),
        Just("1.1 a"),
        Just("1.2* b"),
        Just("2.1 (P) c"),
        Just("**fetch**: read"),
        Just("plain words"),
        Just("~~1.3 gone~~ (not needed)"),
        Just("~~T001~~"),
        Just("**1.4 bold**"),
        Just("T001.2 [Depends: T001]"),
        Just("T004-T006 DROPPED"),
        Just("T1.1 d, after T1.2"),
        Just("T1.2 e"),
        Just("äöü ☃"),
        Just("Checkpoint: ask the user"),
        Just(""),
    ];
    let bullet = prop_oneof![
        Just("- "),
        Just("* "),
        Just("1. "),
        Just("-"),
        Just("+ "),
        Just("")
    ];
    let mark = prop_oneof![
        Just("[ ]"),
        Just("[x]"),
        Just("[X]"),
        Just("[]"),
        Just("[ x ]"),
        Just("[-]"),
        Just("[~]"),
        Just("[☃]"),
        Just("[✅]"),
        Just("[✔\u{fe0f}]"),
        Just("[ ]*"),
        Just("[a](b)"),
    ];
    let indent = prop_oneof![Just(""), Just("  "), Just("    "), Just("\t")];
    let boxed = (indent, bullet, mark, text)
        .prop_map(|(indent, bullet, mark, text)| format!("{indent}{bullet}{mark} {text}"));
    let other = prop_oneof![
        Just("## Phase 1: Setup"),
        Just("### Tests"),
        Just("### Task 1: Read"),
        Just("### Task 2: x"),
        Just("### Task 2 — y"),
        Just("### ~~Task 3. z~~"),
        Just("## Notes"),
        Just("```"),
        Just("````md"),
        Just("<!--"),
        Just("-->"),
        Just(""),
        Just("text"),
        Just("  - _Requirements: 1.1_"),
        Just("  - _Depends: 1.1, 9_"),
        Just("## Task Dependency Graph"),
        Just("---"),
        Just("status: open"),
        Just("id: a-1"),
        Just("{\"waves\": [[\"1.1\"], [\"2.1\"]]}"),
    ]
    .prop_map(str::to_owned);
    prop_oneof![3 => boxed, 2 => other]
}

fn text() -> impl Strategy<Value = String> {
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::collection::vec(line(), 0..24), end, any::<bool>()).prop_map(|(lines, end, last)| {
        let mut text = lines.join(end);
        if last {
            text.push_str(end);
        }
        text
    })
}

fn known(list: &TaskList) -> Vec<KnownTask> {
    let tasks = list.tasks.iter();
    tasks.map(KnownTask::of).collect()
}

/// A task, whether it is done, and its marks: file, place, whether it says done.
type TaskMarks = (String, bool, Vec<(usize, std::ops::Range<usize>, bool)>);

/// What decides the next change.
fn states(list: &TaskList) -> Vec<TaskMarks> {
    let tasks = list.tasks.iter();
    tasks
        .map(|task| {
            let marks = task.marks.iter();
            let marks = marks.map(|mark| (mark.file, mark.span.clone(), mark.is_done));
            (task.id.clone(), task.is_done(), marks.collect())
        })
        .collect()
}

/// What a change to these marks leaves as it was.
fn without_marks(list: &TaskList, files: &[ListFile]) -> String {
    let mut text = files[0].text.clone();
    let mut spans: Vec<_> = list.tasks.iter().flat_map(|task| &task.marks).collect();
    spans.sort_by_key(|mark| std::cmp::Reverse(mark.span.start));
    spans.dedup_by_key(|mark| mark.span.start);
    for mark in spans {
        text.replace_range(mark.span.clone(), "");
    }
    text
}

fn check(format: ListFormat, text: &str, picks: &[usize]) -> Result<(), TestCaseError> {
    let mut files = vec![file("a-1.md", text)];
    let options = ListOptions::default();
    let mut list = read_list(format, &files, &ListContext::default(), options);
    let graph = list.graph(options);
    prop_assert!(graph.check().is_empty(), "{:?}", graph.check());
    let (first, bare) = (known(&list), without_marks(&list, &files));
    for pick in picks {
        let Some(task) = list.tasks.get(pick % list.tasks.len().max(1)) else {
            break;
        };
        let id = task.id.clone();
        let has_marks = !task.marks.is_empty();
        let changed = list.set_done(&files, &id, true).unwrap();
        if let Some(changed) = changed.into_iter().next() {
            files[0] = changed;
        }
        list.was_set_done(&id);
        let taken_over = states(&list);
        let context = ListContext {
            known: &first,
            ..ListContext::default()
        };
        list = read_list(format, &files, &context, options);
        prop_assert_eq!(taken_over, states(&list));
        prop_assert_eq!(&known(&list), &first);
        prop_assert_eq!(&without_marks(&list, &files), &bare);
        prop_assert!(
            !has_marks || list.task(&id).unwrap().is_done(),
            "{} in {:?}",
            id,
            files[0].text
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn marks_change_nothing_else(text in text(), picks in prop::collection::vec(0..30_usize, 0..6)) {
        for format in [
            ListFormat::OpenSpec,
            ListFormat::Kiro,
            ListFormat::SpecKit,
            ListFormat::Plan,
            ListFormat::Checklist,
            ListFormat::Tk,
        ] {
            check(format, &text, &picks)?;
        }
    }

    #[test]
    fn any_text_is_recognised_as_something(text in ".{0,200}") {
        if let Recognized::List(format) = by_content("/p/x.md", &text) {
            check(format, &text, &[0])?;
        }
        for format in ListFormat::ALL {
            let files = [file("a.md", &text)];
            let list = read_list(format, &files, &ListContext::default(), ListOptions::default());
            list.check(ListOptions::default());
        }
    }

    #[test]
    fn a_status_in_json_changes_and_nothing_else(
        words in prop::collection::vec(0..7_usize, 1..8),
        indent in any::<bool>(),
        picks in prop::collection::vec(0..8_usize, 0..4),
    ) {
        let all = ["todo", "Done", "completed", "in_progress", "blocked", "To Do", "cancelled"];
        let story = |(at, word): (usize, &usize)| {
            let title = format!("\"status\": \"todo\" {at} é");
            serde_json::json!({"id": format!("S{at}"), "title": title, "status": all[*word]})
        };
        let stories: Vec<_> = words.iter().enumerate().map(story).collect();
        let value = serde_json::json!({"features": stories});
        let text = match indent {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        let recognized = by_content("/p/feature_list.json", &text);
        prop_assert_eq!(recognized, Recognized::List(ListFormat::PassesJson));
        check(ListFormat::PassesJson, &text, &picks)?;
    }

    #[test]
    fn values_in_json_change_and_nothing_else(
        flags in prop::collection::vec((any::<bool>(), 0..4_u32, prop::collection::vec(0..8_usize, 0..3)), 1..8),
        indent in any::<bool>(),
        picks in prop::collection::vec(0..8_usize, 0..4),
    ) {
        let story = |(at, (passes, priority, on)): (usize, &(bool, u32, Vec<usize>))| {
            serde_json::json!({
                "id": format!("S{at}"), "title": format!("\"passes\": false {at} é"),
                "passes": passes, "priority": priority,
                "dependsOn": on.iter().map(|on| format!("S{on}")).collect::<Vec<_>>(),
            })
        };
        let stories: Vec<_> = flags.iter().enumerate().map(story).collect();
        let value = serde_json::json!({"userStories": stories});
        let text = match indent {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        check(ListFormat::PassesJson, &text, &picks)?;
    }
}
