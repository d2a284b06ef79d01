//! Answers of issue trackers are read as lists: order, what is held and why, what is left out.

use descartes_plans::lists::trackers::{
    LIST, Outward, TrackerCommands, custom_commands, instead, list_name, wanted, with_finished,
};
use descartes_plans::lists::{ListContext, ListFile, ListFormat, ListOptions, TaskList, read};

fn answers(all: &[(&str, &str)]) -> Vec<ListFile> {
    let file = |(path, text): &(&str, &str)| ListFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    all.iter().map(file).collect()
}

fn list(format: ListFormat, all: &[(&str, &str)]) -> TaskList {
    let (context, options) = (ListContext::default(), ListOptions::default());
    read(format, &answers(all), &context, options)
}

/// Each task with what it waits for, what it is held by, and its parent.
fn shape(list: &TaskList) -> String {
    let task = |task: &descartes_plans::lists::ListTask| {
        let mut text = task.id.clone();
        let mut add = |mark: &str, values: &[String]| {
            if !values.is_empty() {
                text.push_str(&format!("{mark}{}", values.join(",")));
            }
        };
        add("<", &task.depends);
        add("?", &task.unknown);
        add("^", task.parent.as_slice());
        for (mark, is) in [
            ("*", task.container),
            ("=", task.is_done()),
            ("!", task.human.is_some()),
        ] {
            text.push_str(if is { mark } else { "" });
        }
        text
    };
    let tasks: Vec<String> = list.tasks.iter().map(task).collect();
    tasks.join(" ")
}

fn requests(format: ListFormat, all: &[(&str, &str)]) -> Vec<String> {
    let commands = TrackerCommands::of(format, "bd", Some("l"), Outward::default());
    let wanted = wanted(format, &commands, &answers(all));
    let name = |request: &descartes_plans::lists::trackers::TrackerRequest| request.name.clone();
    wanted.iter().map(name).collect()
}

const NEW: &str = r###"[
 {"number": 32, "title": "Quoting", "state": "OPEN", "labels": [], "assignees": [],
  "body": "See #7.\r\n\r\n## Blocked by\r\n\r\n- #31 — Header\r\n", "parent": {"number": 18},
  "blockedBy": {"nodes": [{"number": 31, "state": "OPEN"}, {"number": 5, "state": "CLOSED"}]},
  "subIssues": {"nodes": [], "totalCount": 0}},
 {"number": 18, "title": "Export", "state": "OPEN", "labels": [], "assignees": [],
  "body": "Whole", "parent": null, "blockedBy": {"nodes": []},
  "subIssues": {"nodes": [{"number": 31, "state": "OPEN"}], "totalCount": 2}},
 {"number": 31, "title": "Header", "state": "OPEN", "labels": [{"name": "ready-for-human"}],
  "assignees": [], "body": null, "parent": {"number": 18}, "blockedBy": {"nodes": []},
  "subIssues": {"nodes": [], "totalCount": 0}},
 {"number": 40, "title": "Other", "state": "OPEN", "labels": [{"name": "wontfix"}],
  "assignees": [], "body": "", "blockedBy": {"nodes": []}},
 {"number": 41, "title": "Taken", "state": "OPEN", "labels": [],
  "assignees": [{"login": "ann"}], "body": "", "blockedBy": {"nodes": []}},
 {"number": 42, "title": "Waits", "state": "OPEN", "labels": [], "assignees": [], "body": "",
  "blockedBy": {"nodes": [{"number": 77, "state": "OPEN"}]}}
]"###;

#[test]
fn github_issues_are_ordered_by_what_blocks_them() {
    let all = [(LIST, NEW)];
    let found = list(ListFormat::GitHub, &all);
    assert_eq!(shape(&found), "18* 31^18! 32<31^18 42?77");
    let left: Vec<&str> = found
        .left_out
        .iter()
        .map(|left| left.why.as_str())
        .collect();
    assert_eq!(left, ["it is labelled `wontfix`", "ann is assigned to it"]);
    assert_eq!(requests(ListFormat::GitHub, &all), ["user", "issue/77"]);
    let more = [
        (LIST, NEW),
        ("user", "ann\n"),
        ("issue/77", r#"{"number":77,"state":"CLOSED"}"#),
    ];
    let found = list(ListFormat::GitHub, &more);
    assert_eq!(
        shape(&found),
        "18* 31^18! 32<31^18 41 42",
        "mine, and nothing open"
    );
    assert!(requests(ListFormat::GitHub, &more).is_empty());
    assert_eq!(found.tasks[2].closes.as_deref(), Some("Closes #32"));
}

#[test]
fn an_older_gh_is_asked_without_what_it_does_not_know() {
    let commands = TrackerCommands::of(ListFormat::GitHub, "", Some("agent"), Outward::default());
    let asked = commands.list.join(" ");
    assert!(asked.starts_with("gh issue list --state open --label agent --limit 1000 --json "));
    let complaint = "Unknown JSON field: \"blockedBy\"";
    let older = instead(ListFormat::GitHub, &commands.list, complaint).unwrap();
    assert!(!older.join(" ").contains("blockedBy"), "{older:?}");
    assert_eq!(instead(ListFormat::GitHub, &older, complaint), None);
    assert_eq!(
        instead(ListFormat::GitHub, &commands.list, "no network"),
        None
    );
    let old = r##"[
     {"number": 41, "title": "Worker", "body": "Depends on #40, #39\n\nText with Blocked by #99.", "state": "OPEN"},
     {"number": 40, "title": "Schema", "body": null, "state": "OPEN"},
     {"number": 42, "title": "Both", "body": "**Blocked by:** #41\n\n- [x] #40\n- [ ] #41\n- [ ] step\n", "state": "OPEN"}
    ]"##;
    let found = list(ListFormat::GitHub, &[(LIST, old)]);
    assert_eq!(shape(&found), "40^42 41<40?39^42 42*");
    let notes: Vec<String> = found.findings.iter().map(|f| f.message.clone()).collect();
    assert!(
        notes.iter().any(|note| note.contains("update gh")),
        "{notes:?}"
    );
}

#[test]
fn only_people_of_the_project_replace_the_description() {
    let with = |association: &str| {
        let text = format!(
            r###"[{{"number": 1, "title": "T", "state": "OPEN", "body": "the body", "comments":
            [{{"authorAssociation": "{association}", "body": "## Agent Brief\nthe brief"}}]}}]"###
        );
        list(ListFormat::GitHub, &[(LIST, &text)]).tasks[0]
            .body
            .clone()
    };
    assert_eq!(with("NONE"), "the body");
    assert_eq!(with("CONTRIBUTOR"), "the body");
    assert_eq!(with("MEMBER"), "## Agent Brief\nthe brief");
}

#[test]
fn gitlab_issues_wait_for_what_they_are_linked_to() {
    let text = r##"[
     {"iid": 3, "title": "C", "state": "opened", "description": "Blocked by: #9", "labels": [], "assignees": []},
     {"iid": 1, "title": "A", "state": "opened", "description": null, "labels": ["x"], "assignees": []},
     {"iid": 2, "title": "B", "state": "opened", "description": "", "labels": ["needs-info"], "assignees": [{"username": "bob"}]}
    ]"##;
    let links = r#"[{"iid": 1, "link_type": "is_blocked_by", "state": "opened"},
        {"iid": 8, "link_type": "is_blocked_by", "state": "closed"},
        {"iid": 2, "link_type": "relates_to", "state": "opened"}]"#;
    let all = [(LIST, text), ("links/3", links)];
    assert_eq!(shape(&list(ListFormat::GitLab, &all)), "1 3<1?9");
    let asked = requests(ListFormat::GitLab, &all);
    assert_eq!(asked, ["user", "links/1", "links/2", "issue/9"]);
    let more = [
        (LIST, text),
        ("user", r#"{"username":"bob"}"#),
        ("issue/9", r#"{"iid":9,"state":"closed"}"#),
    ];
    assert_eq!(shape(&list(ListFormat::GitLab, &more)), "1 2! 3");
    let page = format!(
        "[{}]",
        (1..=100)
            .map(|id| format!(r#"{{"iid":{id},"title":"t","state":"opened"}}"#))
            .collect::<Vec<_>>()
            .join(",")
    );
    assert_eq!(requests(ListFormat::GitLab, &[(LIST, &page)]), ["list/2"]);
}

const BEADS: &str = r#"{"id":"l-a","title":"Export","status":"open","priority":1,"issue_type":"epic"}
{"id":"l-a.1","title":"Header","status":"closed","priority":1,"issue_type":"task","dependencies":[{"depends_on_id":"l-a","type":"parent_child"}]}
{"id":"l-a.2","title":"Quoting","description":"Commas","acceptance_criteria":"- quoted","status":"open","priority":0,"issue_type":"task","dependencies":[{"depends_on_id":"l-a","type":"parent-child"},{"depends_on_id":"l-a.1","type":"blocks"}]}
{"id":"l-k","title":"Command","status":"blocked","priority":2,"issue_type":"task","dependencies":[{"depends_on_id":"l-a.2","type":"blocks"},{"depends_on_id":"l-z","type":"blocks"},{"depends_on_id":"l-y","type":"discovered-from"}]}
{"id":"l-z","title":"Deleted","status":"tombstone","priority":2,"issue_type":"bug"}
{"id":"l-q","title":"Later","status":"deferred","priority":3,"issue_type":"chore"}
{"id":"l-r","title":"Review","status":"in_review","priority":3,"issue_type":"chore"}
{"id":"l-w","title":"Working","status":"in_progress","assignee":"ann","priority":3,"issue_type":"task"}
{"id":"l-m","title":"Perhaps","status":"open","priority":4,"issue_type":"task","dependencies":[{"depends_on_id":"l-k","type":"conditional-blocks"}]}
"#;

#[test]
fn beads_are_read_in_every_shape_they_are_printed_in() {
    let expected = "l-a.2<l-a.1^l-a l-a* l-a.1^l-a= l-k<l-a.2 l-r! l-w! l-m!";
    let lines = list(ListFormat::Beads, &[(LIST, BEADS)]);
    assert_eq!(shape(&lines), expected);
    let array = format!("[{}]", BEADS.trim().replace('\n', ","));
    for text in [
        array.clone(),
        format!("{{\"schema_version\":1,\"data\":{array}}}"),
        format!("{{\"issues\":{array}}}"),
    ] {
        assert_eq!(shape(&list(ListFormat::Beads, &[(LIST, &text)])), expected);
    }
    let quoting = &lines.tasks[0];
    assert_eq!(quoting.body, "Commas\n\n## Acceptance criteria\n\n- quoted");
    assert_eq!(lines.left_out[0].why, "it is deferred");
    // Claims may be our own, of a run that died.
    let context = ListContext {
        claims: true,
        ..ListContext::default()
    };
    let all = answers(&[(LIST, BEADS)]);
    let ours = read(ListFormat::Beads, &all, &context, ListOptions::default());
    assert!(ours.task("l-w").unwrap().human.is_none());
}

#[test]
fn beads_that_only_count_their_dependencies_are_asked_for_them() {
    let text = r#"[{"id":"a","title":"A","status":"open","dependency_count":1},{"id":"b","title":"B","status":"open","dependency_count":0}]"#;
    assert_eq!(requests(ListFormat::Beads, &[(LIST, text)]), ["show/0"]);
    let shown = r#"[{"id":"a","title":"A","status":"open","description":"more","dependencies":[{"id":"b","status":"open","dependency_type":"blocks"}]}]"#;
    let found = list(ListFormat::Beads, &[(LIST, text), ("show/0", shown)]);
    assert_eq!(shape(&found), "a<b b");
    assert_eq!(found.tasks[0].body, "more");
    // Once that one is closed, it is still what was done before.
    let closed = shown.replace(
        "\"status\":\"open\",\"dependency_type\"",
        "\"status\":\"closed\",\"dependency_type\"",
    );
    assert_ne!(closed, shown);
    let found = list(ListFormat::Beads, &[(LIST, text), ("show/0", &closed)]);
    assert_eq!(shape(&found), "a<b b");
}

#[test]
fn what_a_command_prints_is_checked() {
    let read = |text: &str| {
        let found = list(ListFormat::Command, &[(LIST, text)]);
        let errors = found.check(ListOptions::default());
        let errors: Vec<String> = errors.iter().map(|found| found.message.clone()).collect();
        format!("{} / {}", shape(&found), errors.join("; "))
    };
    let table = [
        (
            r#"[{"id": 1, "title": "A"}, {"id": "b", "depends": [1], "status": "doing"}, {"id": "c", "status": "done"}]"#,
            "1 b<1 c= / ",
        ),
        (r#"{"tasks": [{"id": "x"}]}"#, "x / "),
        (
            "",
            " / the command did not print JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "{}",
            " / the command printed an object without a list `tasks`",
        ),
        ("3", " / the command printed no list of tasks"),
        (
            r#"[{"title": "A"}]"#,
            " / task 1 of the command has no `id`",
        ),
        (
            r#"[{"id": "a"}, {"id": "a"}]"#,
            "a / two tasks of the command have the id `a`",
        ),
        (
            r#"[{"id": "a", "status": "odd"}]"#,
            " / task `a` of the command: its status `odd` is none of todo, doing and done",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn commands_of_a_config_are_lines_for_a_shell() {
    let table = |text: &str| custom_commands(&text.parse().unwrap());
    let found = table("list = 'jira ls'\ndone = 'jira done $DESCARTES_TASK_ID'").unwrap();
    assert_eq!(found.list, ["sh", "-c", "jira ls"]);
    assert_eq!(found.claim, None);
    for (text, why) in [
        ("list = 'x'", "`done` is missing"),
        ("list = 'x'\ndone = 3", "`done` must be a command in quotes"),
        (
            "list = 'x'\ndone = 'y'\nlists = 'z'",
            "`lists` is unknown; it takes list, done, claim, release, reopen",
        ),
    ] {
        assert_eq!(table(text).unwrap_err(), why);
    }
}

#[test]
fn tasks_that_were_done_here_stay_in_a_list_of_open_ones() {
    let before = r##"[{"number":1,"title":"A","state":"OPEN"},{"number":2,"title":"B","state":"OPEN","body":"Blocked by #1"},{"number":3,"title":"C","state":"OPEN"}]"##;
    let now = r##"[{"number":2,"title":"B","state":"OPEN","body":"Blocked by #1"}]"##;
    let finished = std::collections::BTreeSet::from(["1".to_owned()]);
    let merged = with_finished(ListFormat::GitHub, before, now.to_owned(), &finished);
    let found = list(ListFormat::GitHub, &[(LIST, &merged)]);
    assert_eq!(
        shape(&found),
        "1= 2<1",
        "the third was closed by somebody else"
    );
    for odd in ["", "null", "{}"] {
        let kept = with_finished(ListFormat::GitHub, odd, now.to_owned(), &finished);
        assert_eq!(kept, now);
    }
}

#[test]
fn ids_are_words_and_names_are_plain() {
    let outward = Outward {
        claim: true,
        close: true,
    };
    let commands = TrackerCommands::of(ListFormat::GitHub, "", Some("l"), outward);
    let done = TrackerCommands::about(&commands.done.unwrap(), "1; rm -rf /");
    assert_eq!(done[3], "1; rm -rf /");
    assert_eq!(
        list_name("github", Some("Ready for Agent/2")),
        "github-ready-for-agent-2"
    );
    assert_eq!(list_name("beads", None), "beads");
}

#[test]
fn no_answer_is_a_crash() {
    let texts = [
        "",
        "null",
        "[]",
        "[null, 3, {}]",
        "{",
        "{\"id\": 3}",
        "[[[[",
        "\u{feff}",
    ];
    for format in ListFormat::TRACKERS
        .into_iter()
        .chain([ListFormat::Command])
    {
        for text in texts {
            let found = list(format, &[(LIST, text), ("user", text), ("show/0", text)]);
            found.check(ListOptions::default());
            requests(format, &[(LIST, text)]);
        }
    }
}
