//! Markdown roadmaps: reading, checking, one-character edits.

use std::time::Duration;

use descartes_plans::graph::{OnFail, Proof, TaskStatus};
use descartes_plans::roadmap::{
    self, CheckMark, Defaults, EditError, NewTask, Roadmap, append_task, known_keys, mark_of,
    set_mark, tick,
};
use descartes_text::finding::{Severity, has_errors};
use proptest::prelude::*;

const LIGHTHOUSE: &str = include_str!("fixtures/roadmap/lighthouse.md");
const QUEUE: &str = include_str!("fixtures/roadmap/queue.md");
const WRONG: &str = include_str!("fixtures/roadmap/wrong.md");

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn ids(roadmap: &Roadmap) -> Vec<&str> {
    roadmap.tasks.iter().map(|task| task.id.as_str()).collect()
}

fn told(text: &str) -> Vec<String> {
    roadmap::check(text)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_roadmap_of_the_older_dialect_is_read_whole() {
    let roadmap = roadmap::parse(LIGHTHOUSE);
    assert_eq!(roadmap.check(), []);
    assert_eq!(roadmap.title.as_deref(), Some("Lighthouse log"));
    assert_eq!(
        roadmap.objective,
        "A small service that records every flash of the lamp."
    );
    assert_eq!(roadmap.constraints.max_time, Some(minutes(20)));
    assert_eq!(roadmap.constraints.retries, Some(2));
    assert_eq!(
        roadmap.constraints.cwd.as_deref(),
        Some("./LampHouse"),
        "the case of a path is kept"
    );
    assert_eq!(
        roadmap.constraints.other,
        ["Use the standard library alone"]
    );
    assert_eq!(roadmap.criteria.len(), 2);
    assert_eq!(
        roadmap
            .phases
            .iter()
            .map(|phase| phase.name.as_str())
            .collect::<Vec<_>>(),
        ["Reading", "Writing"]
    );
    assert_eq!(
        roadmap.growth,
        ["Count the flashes of a night", "Draw them"]
    );
    assert_eq!(ids(&roadmap), ["sensor", "format", "print"]);
    let print = roadmap.task("print").unwrap();
    assert_eq!(
        print.keys.completion_promise.as_deref(),
        Some("LAMP_LIT"),
        "without its quotes"
    );
    assert_eq!(
        print.keys.timeout,
        Some(minutes(60)),
        "an hour is no minute"
    );
    assert_eq!(
        print.keys.cli,
        ["codex", "gemini"],
        "the second takes over from the first"
    );
    assert_eq!(print.keys.model.as_deref(), Some("o9"));
    assert_eq!((print.phase, print.place.line), (Some(1), 26));
    let depends: Vec<&str> = print.keys.depends.iter().map(|on| on.id.as_str()).collect();
    assert_eq!(
        depends,
        ["sensor", "format"],
        "brackets are no part of an id"
    );
}

#[test]
fn only_its_own_box_says_whether_a_task_is_done() {
    let roadmap = roadmap::parse(LIGHTHOUSE);
    assert_eq!(
        roadmap.task("sensor").unwrap().mark,
        CheckMark::Open,
        "an [x] in its success text is text"
    );
    assert_eq!(
        roadmap.task("format").unwrap().mark,
        CheckMark::Done,
        "[X] is done, and not dropped"
    );
    let queue = roadmap::parse(QUEUE);
    assert_eq!(
        queue.task("toll").unwrap().mark.status(),
        TaskStatus::Cancelled
    );
    assert_eq!(
        queue.task("signals").unwrap().mark.status(),
        TaskStatus::Blocked
    );
    assert_eq!(queue.task("boarding").unwrap().mark, CheckMark::Open);
}

#[test]
fn a_roadmap_without_phases_has_its_tasks() {
    let roadmap = roadmap::parse(QUEUE);
    assert_eq!(told(QUEUE), Vec::<String>::new());
    assert_eq!(ids(&roadmap), ["lanes", "boarding", "toll", "signals"]);
    assert_eq!(roadmap.task("lanes").unwrap().phase, None);
}

#[test]
fn every_key_of_the_wider_dialect_is_read() {
    let roadmap = roadmap::parse(QUEUE);
    let lanes = &roadmap.task("lanes").unwrap().keys;
    assert_eq!(
        lanes.check,
        ["cargo test -p lanes layout", "./scripts/no-gap.sh \"a b\""]
    );
    let boarding = roadmap.task("boarding").unwrap();
    let keys = &boarding.keys;
    assert_eq!(keys.verify_timeout, Some(minutes(5)));
    assert_eq!(keys.max_time, Some(minutes(120)));
    assert_eq!(keys.max_cost, Some(6.0));
    assert_eq!(keys.idle_timeout, Some(Duration::from_secs(90)));
    assert_eq!((keys.stuck_after, keys.retries), (Some(3), Some(4)));
    assert_eq!(keys.on_fail, Some(OnFail::Skip));
    assert_eq!(keys.abort_promise.as_deref(), Some("FERRY_GONE"));
    assert_eq!(keys.agent.as_deref(), Some("my-agent --flag \"x y\""));
    assert_eq!(keys.files, ["src/boarding/**", "tests/boarding.rs"]);
    assert_eq!(
        boarding.body,
        "Two cars must never hold one place. The script proves it;\ndo not edit the script.\n\n```sh\n\
         - [ ] **not-a-task**: this is an example\n- timeout: never\n```\n\n- [ ] first step\n- [x] second step"
    );
}

#[test]
fn each_of_the_older_dialects_keys_is_known() {
    let upstream = [
        ("timeout", "30"),
        ("depends", "none"),
        ("success", "it works"),
        ("cwd", "./A"),
        ("cli", "claude"),
        ("model", "m"),
        ("ralph", "true"),
        ("max_iterations", "5"),
        ("completion_promise", "X"),
        ("require_tests", "true"),
        ("test_path", "tests"),
        ("goal_validate", "no"),
        ("goal_threshold", "0.8"),
        ("daemon_url", "http://localhost:1"),
        ("scoring_interval", "3"),
        ("inject_checklist", "1"),
        ("oscillation_detection", "false"),
        ("worktree", "yes"),
        ("worktree_base", "main"),
        ("auto_merge", "true"),
        ("issue", "#12"),
        ("sync_github", "true"),
    ];
    for (key, value) in upstream {
        assert!(known_keys().any(|known| known == key), "{key}");
        let text = format!("## Tasks\n- [ ] **a**: b\n  - {key}: {value}\n");
        let findings = roadmap::check(&text);
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::Note),
            "{key}: {findings:?}"
        );
        let keys = format!("{:?}", roadmap::parse(&text).tasks[0].keys);
        assert_ne!(
            keys == format!("{:?}", roadmap::Keys::default()),
            key != "depends" && findings.is_empty(),
            "{key} is stored where it has an effect"
        );
    }
}

#[test]
fn everything_that_would_be_dropped_is_told_with_its_line() {
    insta::assert_snapshot!(told(WRONG).join("\n"), @"
    3:1: warning: this task is outside `## Tasks` and will not run
    5:1: error: dependency cycle: a → b → a (hint: remove one of these dependencies)
    6:17: error: task `a` depends on `nowhere`, which does not exist
    7:5: warning: unknown key `tiemout`: the line is treated as text (hint: did you mean `timeout`?)
    8:5: error: invalid value in `timeout: soon` (hint: write a duration, for example 45min, 1h30m or 90s)
    9:5: error: invalid value in `ralph: perhaps` (hint: write true or false)
    10:5: error: invalid value in `max_iterations: 0` (hint: write a whole number, 1 or more)
    11:5: note: `goal_validate` has no effect (there is no judge; a gate (`check:`) decides)
    14:20: warning: `of work` after the value of `timeout` is ignored
    15:5: warning: `timeout` is set again (first on line 14): this value is used
    16:3: warning: `depends:` without a bullet is treated as text (hint: write - depends: a)
    17:1: error: the checkbox of `c` is not one of [ ] [x] [X] [-] [!] (hint: write [ ])
    18:1: error: the checkbox of `d` is not one of [ ] [x] [X] [-] [!] (hint: write [ ])
    19:1: error: a task without an id: `no id at all` (hint: write - [ ] **some-id**: no id at all)
    20:1: error: the id `a` is already used on line 5 (hint: give one of them a different id)
    21:3: warning: `inner` is indented, so it is part of the text of `a`, not a task (hint: to make it a task, indent it like the other tasks)
    22:5: warning: unknown key `verify`: the line is treated as text (hint: did you mean `check`?)
    23:1: warning: the text asks for the promise `OTHER`, but the task expects `COMPLETE` (hint: write - completion_promise: OTHER)
    24:14: warning: task `e` is waiting for `f`, which is marked [-] (hint: remove `f` from its dependencies, or reopen it)
    28:1: note: this task is inside a comment and will not run
    ");
    assert!(has_errors(&roadmap::check(WRONG)));
}

#[test]
fn a_file_without_tasks_is_an_error_and_never_complete() {
    for text in [
        "",
        "# Roadmap: x\n",
        "# Roadmap: x\n## Tasks\n### Phase 1: y\n",
        "\u{feff}## Tasks\n",
    ] {
        assert!(has_errors(&roadmap::check(text)), "{text:?}");
        assert_eq!(roadmap::parse(text).tasks, []);
    }
}

#[test]
fn tasks_are_found_where_their_author_put_them() {
    let text = "# Plan\n\n## Phase 1\n- [ ] **a**: one\n## Phase 2\n  * [ ] **b**: two\n    - depends: a\n  * [ ] **c**: three\n## Success Criteria\n- [ ] **d**: no task\n";
    let roadmap = roadmap::parse(text);
    assert_eq!(ids(&roadmap), ["a", "b", "c"]);
    assert_eq!(
        told(text),
        ["4:1: warning: there is no section `## Tasks`: tasks are taken from the whole file"]
    );
    assert_eq!(roadmap.title.as_deref(), Some("Plan"));
}

#[test]
fn wrapped_lines_stay_with_what_they_belong_to() {
    let text = "## tasks\n- [ ] **a**: begins here\n  and goes on.\n  - success: all of it\n    is green\n  - Note that: this is a sentence\n  - https://example.org/x\n  Last words.\n\n---\n";
    let roadmap = roadmap::parse(text);
    assert_eq!(roadmap.findings, []);
    let task = &roadmap.tasks[0];
    assert_eq!(task.keys.success.as_deref(), Some("all of it is green"));
    assert_eq!(
        task.body,
        "and goes on.\n- Note that: this is a sentence\n- https://example.org/x\nLast words."
    );
}

#[test]
fn keys_are_read_in_every_spelling() {
    let text = "## Tasks\n- [ ] **a**: b\n- Timeout: 5\n  * **max-iterations:** 7 times\n  - `ralph`: Yes\n  - Completion Promise: <promise>X Y</promise>\n";
    let keys = &roadmap::parse(text).tasks[0].keys;
    assert_eq!(
        (keys.timeout, keys.max_iterations, keys.ralph),
        (Some(minutes(5)), Some(7), Some(true))
    );
    assert_eq!(keys.completion_promise.as_deref(), Some("X Y"));
}

#[test]
fn settings_put_the_task_the_file_and_the_defaults_together() {
    let roadmap = roadmap::parse(LIGHTHOUSE);
    let defaults = Defaults {
        iterations: 2,
        promise: "ZZZ".to_owned(),
        ..Defaults::default()
    };
    let of = |id: &str| roadmap.settings(roadmap.task(id).unwrap(), &defaults);
    assert_eq!(of("sensor").promise, None);
    assert_eq!(
        of("sensor").max_attempts,
        3,
        "one attempt and the two retries of the constraints"
    );
    assert_eq!(of("format").timeout, minutes(20));
    assert_eq!(of("print").promise.as_deref(), Some("LAMP_LIT"));
    assert_eq!(
        (of("print").max_attempts, of("print").timeout),
        (12, minutes(60))
    );
    assert_eq!(of("print").cwd.as_deref(), Some("./LampHouse"));

    let bare = roadmap::parse(
        "## Tasks\n- [ ] **a**: b\n  - ralph: true\n  - require_tests: true\n- [ ] **c**: d\n",
    );
    let a = bare.settings(&bare.tasks[0], &defaults);
    assert_eq!(
        (a.max_attempts, a.promise.as_deref()),
        (2, Some("ZZZ")),
        "the flags of the run count"
    );
    assert_eq!(a.gates, ["pytest tests"]);
    let c = bare.settings(&bare.tasks[1], &defaults);
    assert_eq!(
        (c.max_attempts, c.promise, c.timeout),
        (1, None, minutes(30))
    );
    let graph = bare.graph_with(&defaults);
    assert_eq!(graph.node(0).rules.proof, Proof::Promise);
    assert_eq!(
        (graph.node(1).rules.proof, graph.node(1).rules.max_attempts),
        (Proof::Exit, Some(1))
    );
}

#[test]
fn a_tick_is_one_character() {
    let edit = tick(QUEUE, "boarding").unwrap();
    assert_eq!(edit.line, 7);
    let differ: Vec<usize> = QUEUE
        .bytes()
        .zip(edit.new_text.bytes())
        .enumerate()
        .filter(|(_, (a, b))| a != b)
        .map(|(at, _)| at)
        .collect();
    assert_eq!((edit.new_text.len(), differ.len()), (QUEUE.len(), 1));
    assert_eq!(
        &edit.new_text[differ[0] - 3..differ[0] + 15],
        "- [x] **boarding**"
    );
    assert_eq!(
        tick(&edit.new_text, "boarding").unwrap().new_text,
        edit.new_text
    );
    let back = set_mark(
        &edit.new_text,
        "boarding",
        Some(CheckMark::Done),
        CheckMark::Open,
    )
    .unwrap();
    assert_eq!(back.new_text, QUEUE);
}

#[test]
fn ticks_that_cannot_be_made_say_why() {
    let say = |text: &str, id: &str| tick(text, id).unwrap_err().to_string();
    assert_eq!(
        say(QUEUE, "bording"),
        "the roadmap has no task `bording`; did you mean `boarding`?"
    );
    assert_eq!(
        say(WRONG, "a"),
        "`a` appears twice in the roadmap, on lines 5 and 20; give one of them a different id"
    );
    assert_eq!(
        say(WRONG, "c"),
        "the checkbox of `c` on line 17 cannot be updated; change it to [ ]"
    );
    assert_eq!(
        say(WRONG, "d"),
        "the checkbox of `d` on line 18 cannot be updated; change it to [ ]"
    );
    let changed = set_mark(QUEUE, "toll", Some(CheckMark::Open), CheckMark::Done).unwrap_err();
    assert_eq!(
        changed.to_string(),
        "the checkbox of `toll` is [-], not [ ]: someone else changed it"
    );
}

fn idea(id: &str, description: &str) -> NewTask {
    NewTask {
        id: id.to_owned(),
        description: description.to_owned(),
        keys: vec![
            ("timeout".to_owned(), "20min".to_owned()),
            ("success".to_owned(), "it counts".to_owned()),
        ],
    }
}

#[test]
fn a_new_task_stands_behind_the_last_one_and_is_added_once() {
    let task = idea("count", "Count the flashes of a night");
    let edit = append_task(LIGHTHOUSE, &task).unwrap();
    let roadmap = roadmap::parse(&edit.new_text);
    assert_eq!(ids(&roadmap), ["sensor", "format", "print", "count"]);
    assert_eq!(roadmap.task("count").unwrap().place.line, edit.line);
    assert_eq!(
        roadmap.task("count").unwrap().keys.timeout,
        Some(minutes(20))
    );
    assert_eq!(roadmap.growth.len(), 2, "the section behind it is whole");
    let added = "\n- [ ] **count**: Count the flashes of a night\n  - timeout: 20min\n  - success: it counts";
    assert_eq!(edit.new_text.replacen(added, "", 1), LIGHTHOUSE);
    let again = append_task(
        &edit.new_text,
        &idea("count2", "count  the flashes of a NIGHT"),
    )
    .unwrap_err();
    assert!(matches!(again, EditError::Exists { .. }), "{again}");
    assert!(matches!(
        append_task(LIGHTHOUSE, &idea("print", "x")),
        Err(EditError::Exists { .. })
    ));
    assert!(matches!(
        append_task(LIGHTHOUSE, &idea("a*b", "x")),
        Err(EditError::BadTask { .. })
    ));
    assert!(matches!(
        append_task(LIGHTHOUSE, &idea("ab", "x\ny")),
        Err(EditError::BadTask { .. })
    ));
}

#[test]
fn a_new_task_finds_its_place_in_any_file() {
    for text in [
        "",
        "# Roadmap: x",
        "# Roadmap: x\n",
        "# R\n\n## Tasks\n\n## Growth Mode\n1. a\n",
        "# R\n## Growth Mode\n1. a\n",
        "# R\r\n## Tasks\r\n- [ ] **a**: b\r\n",
    ] {
        let edit = append_task(text, &idea("new", "A new one")).unwrap();
        let roadmap = roadmap::parse(&edit.new_text);
        assert_eq!(roadmap.tasks.last().unwrap().id, "new", "{text:?}");
        assert_eq!(
            roadmap.tasks.last().unwrap().place.line,
            edit.line,
            "{text:?}"
        );
        assert_eq!(roadmap::check(&edit.new_text), [], "{text:?}");
        if text.contains('\r') {
            assert!(
                !edit.new_text.replace("\r\n", "").contains('\n'),
                "line ends are those of the file"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_tick_changes_one_character_whatever_the_file(
        tasks in prop::collection::vec(("[a-z]{1,4}", "[ -~é]{0,20}", prop::collection::vec("(  - [a-z_]{1,8}: [ -~]{0,10}|  [ -~é]{0,16}|)", 0..4)), 1..6),
        which in any::<prop::sample::Index>(), windows in any::<bool>(),
    ) {
        let mut text = String::from("# Roadmap: x\n## Tasks\n");
        for (i, (id, description, lines)) in tasks.iter().enumerate() {
            text.push_str(&format!("- [ ] **{id}{i}**: {description}\n"));
            for line in lines {
                text.push_str(&format!("{line}\n"));
            }
        }
        if windows {
            text = text.replace('\n', "\r\n");
        }
        let before = roadmap::parse(&text);
        prop_assume!(before.tasks.len() == tasks.len());
        let slot = which.index(tasks.len());
        let edit = tick(&text, &before.tasks[slot].id).unwrap();
        let differ: Vec<(u8, u8)> = text.bytes().zip(edit.new_text.bytes()).filter(|(a, b)| a != b).collect();
        prop_assert_eq!(differ, [(b' ', b'x')]);
        prop_assert_eq!(edit.new_text.len(), text.len());
        let mut wanted = before;
        wanted.tasks[slot].mark = CheckMark::Done;
        prop_assert_eq!(roadmap::parse(&edit.new_text).tasks, wanted.tasks);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(## Tasks\n|### Phase 1: x\n|- \\[[ xX!-]?\\] \\*\\*a\\*\\*: b\n|  - [a-z_]{1,8}: [ -~é]{0,8}\n|```\n|<!--\n|-->\n|[ -~é\r\n]{0,20}){0,10}") {
        let findings = roadmap::check(&text);
        let lines = text.lines().count() as u32;
        prop_assert!(findings.iter().all(|finding| finding.line <= lines));
        // What is changed is what was read.
        let roadmap = roadmap::parse(&text);
        let of_a: Vec<_> = roadmap.tasks.iter().filter(|task| task.id == "a").collect();
        prop_assert_eq!(mark_of(&text, "a"), of_a.first().map(|task| task.mark));
        match tick(&text, "a") {
            Ok(edit) => prop_assert_eq!((of_a.len(), edit.line), (1, of_a[0].place.line)),
            Err(EditError::Twice { first, second, .. }) => {
                prop_assert_eq!((first, second), (of_a[0].place.line, of_a[1].place.line));
            }
            Err(EditError::UnknownTask { .. }) => prop_assert_eq!(of_a.len(), 0),
            Err(_) => prop_assert_eq!(of_a.len(), 1),
        }
        let _ignored = append_task(&text, &idea("new", "A new one"));
    }
}
