//! SCUD task files: reading, checking, one-cell edits.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use descartes_plans::graph::{Plan, Priority, TaskIx, TaskStatus};
use descartes_plans::scud::{self, EditError, Form, ScudFile};
use descartes_text::finding::Severity;
use jiff::Timestamp;
use proptest::prelude::*;

const HARBOUR: &str = include_str!("fixtures/scud/harbour.scg");
const ODD: &str = include_str!("fixtures/scud/odd.scg");
const TAG_MAP: &str = include_str!("fixtures/scud/tasks.json");
const PIER: &str = include_str!("fixtures/scud/pier.json");

fn now() -> Timestamp {
    "2026-02-03T04:05:06.000000007Z".parse().unwrap()
}

fn scg(text: &str) -> ScudFile {
    scud::parse(text, &Form::Scg).unwrap()
}

fn pier() -> Form {
    Form::OneTag {
        tag: "pier".to_owned(),
    }
}

fn waves(plan: &Plan) -> Vec<Vec<&str>> {
    let name = |task: &TaskIx| plan.graph().node(*task).id.as_str();
    plan.waves()
        .iter()
        .map(|wave| wave.iter().map(name).collect())
        .collect()
}

/// The lines in which two texts of as many lines differ.
fn changed_lines<'a>(old: &'a str, new: &'a str) -> Vec<(&'a str, &'a str)> {
    assert_eq!(old.matches('\n').count(), new.matches('\n').count());
    old.split('\n')
        .zip(new.split('\n'))
        .filter(|(a, b)| a != b)
        .collect()
}

#[test]
fn a_graph_file_is_read_whole() {
    let file = scg(HARBOUR);
    assert_eq!(file.findings, []);
    assert_eq!(file.tag_names().collect::<Vec<_>>(), ["harbour", "lights"]);
    let tag = file.tag("harbour").unwrap();
    let ids: Vec<&str> = tag.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "2.1", "2.2", "3", "10"]);
    let curve = tag.task("2").unwrap();
    assert_eq!(curve.title, "Draw the curve | of the day");
    assert_eq!((curve.status, curve.complexity), (TaskStatus::Expanded, 8));
    assert_eq!(curve.subtasks, ["2.1", "2.2"]);
    let plot = tag.task("2.2").unwrap();
    assert_eq!(plot.priority, Priority::Critical);
    assert_eq!(plot.parent.as_deref(), Some("2"));
    assert_eq!(
        plot.description,
        "One line for each hour.\n# not a comment: a heading of the text"
    );
    assert_eq!(plot.details.as_deref(), Some("Keep the aspect ratio."));
    assert_eq!(
        tag.task("1").unwrap().test_strategy.as_deref(),
        Some("cargo test tides::reads_37_rows")
    );
    assert_eq!(tag.task("10").unwrap().assigned_to.as_deref(), Some("mira"));
    assert_eq!(tag.task("3").unwrap().agent_type.as_deref(), Some("writer"));
    assert_eq!(tag.task("3").unwrap().line, 16);
}

#[test]
fn waves_of_a_tag_are_the_same_every_time() {
    let file = scg(HARBOUR);
    let plan = file.graph("harbour").unwrap().plan().unwrap();
    assert_eq!(
        waves(&plan),
        [vec!["1"], vec!["2.1", "10"], vec!["2.2"], vec!["3"]]
    );
}

#[test]
fn all_that_scud_would_drop_is_told_with_its_line() {
    let file = scg(ODD);
    let told: Vec<String> = file.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    9:1: warning: `Q` is not a status: SCUD reads it as pending (hint: write one of P I D R B F C X !)
    9:1: warning: `Z` is not a priority: SCUD reads it as medium (hint: write one of C H M L)
    9:1: warning: `many` is not a complexity: SCUD reads it as 0
    10:1: note: SCUD drops everything after the priority when it writes the file
    11:1: error: SCUD drops this row: it has fewer than five cells (hint: write id | title | status | complexity | priority)
    18:1: warning: SCUD drops this edge: there is no task `9`
    19:1: note: SCUD drops this edge when it writes the file, and it does not affect the order
    20:1: warning: SCUD drops this row: `nonsense` is not an edge (hint: write dependent -> dependency)
    23:1: warning: SCUD loses these subtasks: it cuts off the parent `odd:5` at its first colon
    24:1: warning: SCUD drops this row: there is no task `77`
    26:1: warning: SCUD reads the rows of `@weave` as part of the section before it
    33:1: warning: SCUD cuts the text here: it reads a line that starts with `@` as a section (hint: put a word before the `@`)
    33:1: note: SCUD drops the blank lines of this text when it writes the file
    34:1: note: other programs that read SCUD files end the tag at this line (hint: use *** for a horizontal rule)
    36:1: warning: SCUD drops this line: text under @details must be indented by two spaces
    37:1: warning: SCUD drops the text `remarks` when it writes the file
    39:1: warning: SCUD drops this text: there is no task `42`
    ");
    let one = file.tag("odd").unwrap().task("1").unwrap();
    assert_eq!(
        (one.status, one.complexity, one.priority),
        (TaskStatus::Pending, 0, Priority::Medium)
    );
    assert_eq!(
        one.description,
        "first paragraph\n\n@staticmethod stays in the text\n---\n# a heading\nnot indented"
    );
    assert_eq!(one.notes, [("remarks".to_owned(), "kept by us".to_owned())]);
    let part = file.tag("odd").unwrap().task("odd:5.1").unwrap();
    assert_eq!(
        part.parent.as_deref(),
        Some("odd:5"),
        "namespaced ids keep their family"
    );
    assert!(
        file.tag("odd").unwrap().task("w:1").is_none(),
        "no phantom task of a foreign section"
    );
}

#[test]
fn windows_line_ends_split_tags_too() {
    let windows = HARBOUR.replace('\n', "\r\n");
    let file = scg(&windows);
    let unix = scg(HARBOUR);
    assert_eq!(file.tags, unix.tags);
    assert!(
        file.findings
            .iter()
            .any(|finding| finding.message.contains("CRLF"))
    );
    let edit = scud::set_status(
        &windows,
        &Form::Scg,
        "lights",
        "2",
        None,
        TaskStatus::Done,
        now(),
    )
    .unwrap();
    assert_eq!(
        edit.new_text.matches("\r\n").count(),
        windows.matches("\r\n").count()
    );
    assert_eq!(changed_lines(&windows, &edit.new_text).len(), 2);
}

#[test]
fn what_is_no_graph_file_is_an_error_with_its_line() {
    for (text, line) in [
        ("hello\n", 1),
        ("# SCUD Graph v1\n", 2),
        ("# SCUD Graph v1\n@meta {\n", 2),
        ("\n\n{}\n", 3),
    ] {
        let error = scud::parse(text, &Form::Scg).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
        let edit = scud::set_status(text, &Form::Scg, "a", "1", None, TaskStatus::Done, now());
        assert!(edit.is_err(), "{text:?}");
    }
    assert_eq!(scg("").tags, []);
    assert_eq!(scg("\n \n").tags, []);
}

#[test]
fn a_file_cut_in_half_never_reads_as_whole() {
    let whole = scg(HARBOUR);
    for end in (1..HARBOUR.len()).filter(|end| HARBOUR.is_char_boundary(*end)) {
        let cut = &HARBOUR[..end];
        let Ok(file) = scud::parse(cut, &Form::Scg) else {
            continue;
        };
        if !cut.ends_with('\n') {
            assert!(
                file.findings
                    .iter()
                    .any(|f| f.message.contains("truncated")),
                "{end}"
            );
        }
        assert!(file.tags.len() <= whole.tags.len());
    }
}

#[test]
fn a_status_change_is_one_cell_and_the_time() {
    let edit = scud::set_status(
        HARBOUR,
        &Form::Scg,
        "harbour",
        "10",
        Some(TaskStatus::Pending),
        TaskStatus::InProgress,
        now(),
    )
    .unwrap();
    assert_eq!(
        changed_lines(HARBOUR, &edit.new_text),
        [
            (
                "  updated 2025-12-02T10:00:00.000000001+00:00",
                "  updated 2026-02-03T04:05:06.000000007+00:00"
            ),
            (
                "10 | Warn of spring tides | P | 5 | M",
                "10 | Warn of spring tides | I | 5 | M"
            ),
        ]
    );
    assert_eq!(edit.changes.len(), 1);
    assert_eq!(
        (edit.changes[0].line, edit.changes[0].from),
        (17, TaskStatus::Pending)
    );
}

#[test]
fn the_last_subtask_completes_its_whole() {
    let set = |text: &str, id: &str, status| {
        scud::set_status(text, &Form::Scg, "harbour", id, None, status, now()).unwrap()
    };
    let edit = set(HARBOUR, "2.2", TaskStatus::Done);
    let ids: Vec<&str> = edit
        .changes
        .iter()
        .map(|change| change.id.as_str())
        .collect();
    assert_eq!(ids, ["2.2", "2"]);
    assert!(
        edit.new_text
            .contains("2 | Draw the curve \\| of the day | D | 8 | M")
    );
    let blocked = set(HARBOUR, "2.2", TaskStatus::Blocked);
    assert_eq!(blocked.changes.len(), 1);
    // An agent that marked the subtask itself leaves the whole behind; saying done again mends it.
    let by_agent = HARBOUR.replace("24 Stunden | P", "24 Stunden | D");
    assert_eq!(set(&by_agent, "2.2", TaskStatus::Done).changes[0].id, "2");
    let again = set(&edit.new_text, "2.2", TaskStatus::Done);
    assert_eq!(
        (again.changes.len(), again.new_text == edit.new_text),
        (0, true)
    );
}

#[test]
fn edits_that_cannot_be_made_say_why() {
    let set = |text: &str, tag: &str, id: &str, expected| {
        scud::set_status(text, &Form::Scg, tag, id, expected, TaskStatus::Done, now()).unwrap_err()
    };
    assert_eq!(
        set(HARBOUR, "harbor", "1", None).to_string(),
        "there is no tag `harbor`; known tags: harbour, lights"
    );
    assert_eq!(
        set(HARBOUR, "harbour", "2.3", None).to_string(),
        "tag `harbour` has no task `2.3`; did you mean `2.1`?"
    );
    let changed = set(HARBOUR, "harbour", "1", Some(TaskStatus::Pending));
    assert!(
        matches!(
            changed,
            EditError::Changed {
                found: TaskStatus::Done,
                ..
            }
        ),
        "{changed}"
    );
    let twice = HARBOUR.replace("10 | Warn", "3 | Warn");
    let error = set(&twice, "harbour", "3", None).to_string();
    assert_eq!(
        error,
        "`3` appears twice in the file, on lines 16 and 17; rename one of them"
    );
}

#[test]
fn the_same_bare_id_of_another_tag_is_never_meant() {
    let file = scg(
        "# SCUD Graph v1\n# Phase: aaa\n@nodes\n1 | a | P | 1 | M\n2 | b | P | 1 | M\n@edges\n2 -> 1\n2 -> 7\n\n---\n\n\
         # SCUD Graph v1\n# Phase: bbb\n@nodes\n1 | c | D | 1 | M\n7 | d | D | 1 | M\n",
    );
    let findings = file.check("aaa");
    assert_eq!(
        findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "8:1: error: task `2` depends on `7`, which does not exist (hint: to refer to the one in tag `bbb`, write `bbb:7`)"
        ]
    );
    let mended = "# SCUD Graph v1\n# Phase: aaa\n@nodes\n1 | a | P | 1 | M\n2 | b | P | 1 | M\n@edges\n2 -> 1\n2 -> aaa:1\n";
    let plan = scg(mended).graph("aaa").unwrap().plan().unwrap();
    assert_eq!(
        waves(&plan),
        [["1"], ["2"]],
        "its own tag's name may be spelled out"
    );
}

#[test]
fn tasks_of_another_tag_are_waited_for_and_never_run() {
    let file = scg(HARBOUR);
    let plan = file.graph("lights").unwrap().plan().unwrap();
    assert_eq!(waves(&plan), [["1"], ["2"]]);
    let foreign: Vec<(&str, TaskStatus)> = plan
        .foreign()
        .map(|task| {
            (
                plan.graph().node(task).id.as_str(),
                plan.graph().node(task).status,
            )
        })
        .collect();
    assert_eq!(
        foreign,
        [
            ("harbour:1", TaskStatus::Done),
            ("harbour:2", TaskStatus::Expanded)
        ]
    );
    let done = HARBOUR.replace("24 Stunden | P", "24 Stunden | D");
    let plan = scg(&done).graph("lights").unwrap().plan().unwrap();
    assert!(
        plan.foreign()
            .all(|task| plan.graph().node(task).status == TaskStatus::Done)
    );
}

#[test]
fn a_tag_is_refused_before_any_agent_starts() {
    let nodes =
        "@nodes\n1 | a | P | 1 | M\n2 | b | P | 1 | M\n1 | c | P | 1 | M\n3 | d | X | 1 | M\n";
    let head = "# SCUD Graph v1\n# Phase: t\n";
    let check = |text: String| {
        let findings = scg(&text).check("t");
        findings
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .map(|f| f.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        check(format!("{head}{nodes}")),
        ["the id `1` is already used on line 4"]
    );
    assert_eq!(check(head.to_owned()), ["the tag `t` has no tasks"]);
    let ring =
        format!("{head}@nodes\n1 | a | P | 1 | M\n2 | b | P | 1 | M\n@edges\n1 -> 2\n2 -> 1\n");
    assert_eq!(check(ring), ["dependency cycle: 1 → 2 → 1"]);
    let pipeline = format!("{head}@meta {{\n  mode pipeline\n}}\n@nodes\n1 | a | P | 1 | M\n");
    assert!(check(pipeline)[0].contains("is a pipeline"));
    let unknown = scg(HARBOUR).check("nope");
    assert_eq!(
        unknown[0].to_string(),
        "error: there is no tag `nope` (hint: known tags: harbour, lights)"
    );
    let twice = format!(
        "{head}{}\n---\n{head}@nodes\n1 | a | P | 1 | M\n",
        "@nodes\n9 | a | P | 1 | M\n"
    );
    assert!(check(twice)[0].contains("appears again here"));
}

#[test]
fn a_map_of_tags_is_read_with_the_words_of_its_time() {
    let file = scud::parse(TAG_MAP, &Form::TagMap).unwrap();
    assert_eq!(file.findings, []);
    let tag = file.tag("harbour").unwrap();
    assert_eq!(tag.task("1").unwrap().status, TaskStatus::Done);
    assert_eq!(tag.task("2.2").unwrap().status, TaskStatus::InProgress);
    assert_eq!(tag.task("2.2").unwrap().line, 8);
    assert_eq!(tag.task("2").unwrap().subtasks, ["2.1", "2.2"]);
    let plan = file.graph("harbour").unwrap().plan().unwrap();
    assert_eq!(waves(&plan), [["1"], ["2.1"], ["2.2"], ["3"]]);
    assert_eq!(
        file.check("empty")[0].message,
        "the tag `empty` has no tasks"
    );
}

#[test]
fn a_map_of_tags_is_edited_in_place_in_its_own_spelling() {
    let edit = scud::set_status(
        TAG_MAP,
        &Form::TagMap,
        "harbour",
        "2.2",
        Some(TaskStatus::InProgress),
        TaskStatus::Done,
        now(),
    )
    .unwrap();
    let expected = TAG_MAP
        .replace("\"in_progress\"", "\"completed\"")
        .replace("\"expanded\"", "\"completed\"")
        .replace(
            "\"dependencies\": [\"2.1\"], \"details\": \"keep \\u00e9 and \\\\ as they are\", \"unknown\": [1,  2], \"updated_at\": \"2025-11-20T08:00:00Z\"",
            "\"dependencies\": [\"2.1\"], \"details\": \"keep \\u00e9 and \\\\ as they are\", \"unknown\": [1,  2], \"updated_at\": \"2026-02-03T04:05:06.000000007Z\"",
        )
        .replace(
            "\"subtasks\": [\"2.1\", \"2.2\"], \"updated_at\": \"2025-11-20T08:00:00Z\"",
            "\"subtasks\": [\"2.1\", \"2.2\"], \"updated_at\": \"2026-02-03T04:05:06.000000007Z\"",
        );
    assert_eq!(edit.new_text, expected);
    let claim = scud::set_status(
        TAG_MAP,
        &Form::TagMap,
        "harbour",
        "3",
        None,
        TaskStatus::InProgress,
        now(),
    )
    .unwrap();
    assert_eq!(
        changed_lines(TAG_MAP, &claim.new_text),
        [(
            r#"      { "title": "Print", "id": "3", "dependencies": ["2"] }"#,
            r#"      {"status": "in_progress",  "title": "Print", "id": "3", "dependencies": ["2"] }"#
        )]
    );
    let read = scud::parse(&claim.new_text, &Form::TagMap).unwrap();
    assert_eq!(
        read.tag("harbour").unwrap().task("3").unwrap().status,
        TaskStatus::InProgress
    );
}

#[test]
fn a_file_of_one_tag_has_numbers_for_ids() {
    let file = scud::parse(PIER, &pier()).unwrap();
    assert!(file.findings[0].message.contains("waves"));
    let plan = file.graph("pier").unwrap().plan().unwrap();
    assert_eq!(waves(&plan), [["1"], ["2"], ["10"]]);
    let edit = scud::set_status(
        PIER,
        &pier(),
        "pier",
        "10",
        Some(TaskStatus::Pending),
        TaskStatus::Done,
        now(),
    )
    .unwrap();
    let (old, new) = changed_lines(PIER, &edit.new_text)[0];
    assert_eq!(old.replace("pending", "done"), new);
    let list = r#"[{"id": 1, "status": "pending"}]"#;
    assert_eq!(
        scud::parse(list, &pier())
            .unwrap()
            .tag("pier")
            .unwrap()
            .tasks
            .len(),
        1
    );
}

#[test]
fn broken_json_is_an_error_with_its_line_and_never_edited() {
    let cut = &TAG_MAP[..TAG_MAP.len() / 2];
    assert!(scud::parse(cut, &Form::TagMap).unwrap_err().line > 1);
    let error = scud::set_status(
        cut,
        &Form::TagMap,
        "harbour",
        "1",
        None,
        TaskStatus::Done,
        now(),
    )
    .unwrap_err();
    assert!(matches!(error, EditError::Unreadable { .. }));
    let nested = r#"{"t": {"tasks": [{"id": 1, "subtasks": [{"id": 1}]}]}}"#;
    let file = scud::parse(nested, &Form::TagMap).unwrap();
    assert_eq!(
        file.findings[0].severity,
        Severity::Error,
        "nested subtasks are never dropped silently"
    );
    assert!(scud::parse(r#"{"t": 3}"#, &Form::TagMap).is_err());
}

/// A graph file of random tasks and oddities, and its ids.
fn any_scg() -> impl Strategy<Value = (String, Vec<String>)> {
    let row = (
        "[ a-zé|\\\\@#-]{0,12}",
        0_usize..9,
        "[ ]{0,2}",
        any::<bool>(),
    );
    let text = prop::collection::vec("[ -~é]{0,20}", 0..4);
    (prop::collection::vec((row, text), 1..12), any::<bool>()).prop_map(|(rows, windows)| {
        let letters = ["P", "I", "D", "R", "B", "F", "C", "!", ""];
        let mut text = String::from("# SCUD Graph v1\n# Phase: t\n\n@meta {\n  name t\n  updated 2025-01-01T00:00:00+00:00\n}\n\n@nodes\n");
        let mut ids = Vec::new();
        for (i, ((title, status, pad, extra), _)) in rows.iter().enumerate() {
            let title = title.replace('\\', "\\\\").replace('|', "\\|");
            let extra = if *extra { " | role=x" } else { "" };
            ids.push(format!("{}", i + 1));
            text.push_str(&format!("{}{pad}|{title}|{pad}{}{pad}| 1 | M{extra}\n", i + 1, letters[*status]));
        }
        text.push_str("\n@details\n");
        for (i, (_, lines)) in rows.iter().enumerate() {
            text.push_str(&format!("{} | description |\n", i + 1));
            for line in lines {
                text.push_str(&format!("  {line}\n"));
            }
        }
        if windows {
            text = text.replace('\n', "\r\n");
        }
        (text, ids)
    })
}

proptest! {
    #[test]
    fn an_edit_changes_one_cell_and_the_time_and_nothing_else(
        (text, ids) in any_scg(), which in any::<prop::sample::Index>(), new in 0_usize..9,
    ) {
        let id = &ids[which.index(ids.len())];
        let new = TaskStatus::ALL[new];
        let before = scg(&text);
        let edit = scud::set_status(&text, &Form::Scg, "t", id, None, new, now()).unwrap();
        let after = scg(&edit.new_text);
        let old = before.tag("t").unwrap();
        for task in &after.tag("t").unwrap().tasks {
            let mut wanted = old.task(&task.id).unwrap().clone();
            if &task.id == id {
                wanted.status = new;
            }
            prop_assert_eq!(task, &wanted);
        }
        let changed = changed_lines(&text, &edit.new_text);
        prop_assert!(changed.len() <= 2);
        for (old, new) in changed {
            if old.trim_start().starts_with("updated") {
                prop_assert_eq!(new, old.replace("2025-01-01T00:00:00", "2026-02-03T04:05:06.000000007"));
            } else {
                prop_assert!(new.len().abs_diff(old.len()) <= 1);
            }
        }
    }

    #[test]
    fn there_and_back_gives_the_same_bytes((text, ids) in any_scg(), which in any::<prop::sample::Index>()) {
        let id = &ids[which.index(ids.len())];
        let was = scg(&text).tag("t").unwrap().task(id).unwrap().status;
        let set = |text: &str, status| {
            scud::set_status(text, &Form::Scg, "t", id, None, status, now()).unwrap().new_text
        };
        let stamped = set(&set(&text, TaskStatus::Blocked), TaskStatus::Review);
        prop_assert_eq!(set(&set(&stamped, was), TaskStatus::Review), stamped);
    }

    #[test]
    fn no_text_makes_the_reader_or_the_editor_panic(text in "(# SCUD Graph v1\n# Phase: t\n)?(@nodes\n|@details\n|@edges\n|@parents\n|---\n|[ -~é\r\n|]{0,30}){0,8}") {
        let _ignored = scud::parse(&text, &Form::Scg).map(|file| file.check("t"));
        let _ignored = scud::set_status(&text, &Form::Scg, "t", "1", None, TaskStatus::Done, now());
        let _ignored = scud::parse(&text, &Form::TagMap);
    }

    #[test]
    fn json_edits_keep_everything_but_the_status(
        tasks in prop::collection::vec(("\\PC{0,8}", any::<bool>(), 0_usize..9), 1..8),
        which in any::<prop::sample::Index>(), new in 0_usize..9, pretty in any::<bool>(),
    ) {
        let list: Vec<serde_json::Value> = tasks.iter().enumerate().map(|(i, (title, number, status))| {
            let id = if *number { serde_json::json!(i) } else { serde_json::json!(i.to_string()) };
            serde_json::json!({"id": id, "title": title, "status": TaskStatus::ALL[*status].as_str(), "extra": [title, null]})
        }).collect();
        let json = serde_json::json!({"other": {"tasks": []}, "t": {"name": "t", "tasks": list}});
        let text = if pretty { serde_json::to_string_pretty(&json).unwrap() } else { json.to_string() };
        let slot = which.index(tasks.len());
        let new = TaskStatus::ALL[new];
        let edit = scud::set_status(&text, &Form::TagMap, "t", &slot.to_string(), None, new, now()).unwrap();
        let mut wanted = json;
        wanted["t"]["tasks"][slot]["status"] = new.as_str().into();
        let text = if pretty { serde_json::to_string_pretty(&wanted).unwrap() } else { wanted.to_string() };
        prop_assert_eq!(edit.new_text, text);
    }
}
