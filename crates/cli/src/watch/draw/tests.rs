//! Screens over fixed values, as text. Colours are told by the themes' own tests.

use std::sync::Arc;

use descartes_client::logs::{LogLine, LogWindow};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::Command;
use descartes_kernel::event::{Event, FORMAT, Record};
use descartes_kernel::transition::fold;
use descartes_views::view::{Head, Life, Status, Story};
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::*;
use crate::watch::app::Dialog;
use crate::watch::detail::{Detail, LogPlace, LogView, LoopView, Rows};
use crate::watch::input::Key;
use crate::watch::keys;
use crate::watch::list::tests::brief;
use crate::watch::theme::{Charset, Depth};

const BEGIN: i64 = 1_767_323_045;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(BEGIN + second).unwrap()
}

fn context(charset: Charset) -> Context {
    Context {
        theme: Theme::new(Depth::Plain, charset),
        now: at(600),
        zone: TimeZone::UTC,
        home: Some("/home/me".into()),
    }
}

fn screen_of(app: &App, size: (u16, u16), charset: Charset) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| drop(draw(frame, app, &context(charset))))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(size.0));
    let lines = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn places_of(app: &App, size: (u16, u16)) -> Places {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let mut places = Places::default();
    terminal
        .draw(|frame| places = draw(frame, app, &context(Charset::Utf8)))
        .unwrap();
    places
}

fn screen(app: &App) -> String {
    screen_of(app, (80, 24), Charset::Utf8)
}

/// A loop after these events, 20 s apart.
fn detail(config: IterativeLoopConfig, events: Vec<Event>, life: Life) -> Detail {
    let created = Event::LoopCreated {
        loop_id: "1".into(),
        name: "auth".into(),
        config: Box::new(config),
        started_at: at(0),
        iterations: 0,
        summaries: Vec::new(),
        spent: None,
        ended: None,
    };
    let records: Vec<Record> = std::iter::once(created)
        .chain(events)
        .enumerate()
        .map(|(seq, event)| Record {
            v: FORMAT,
            seq: seq as u64,
            at: at(seq as i64 * 20),
            event,
        })
        .collect();
    let state = fold(&records).unwrap().unwrap();
    let mut story = Story::new(100);
    records.iter().for_each(|record| story.push(record));
    let rows = story
        .rows()
        .iter()
        .chain(story.current())
        .cloned()
        .collect();
    let rows = Rows {
        from: 0,
        total: state.runs,
        rows,
    };
    Detail {
        id: "1".into(),
        standing: Some(Arc::new(LoopView {
            head: Head::of(&state, life),
            state,
            life,
            waits: story.waits().iter().cloned().collect(),
            notes: story.notes().iter().cloned().collect(),
            remarks: story.remarks().iter().cloned().collect(),
        })),
        rows: Arc::new(rows),
        log: None,
        trouble: None,
    }
}

fn event(value: Value) -> Event {
    serde_json::from_value(value).unwrap()
}

fn started(iteration: u32, notes: &[u64]) -> Event {
    event(
        json!({"kind": "run_started", "run": iteration, "iteration": iteration,
        "prompt": "", "prompt_bytes": 0, "before": {}, "notes": notes}),
    )
}

/// An iteration with a claim that its gate refused.
fn refused(iteration: u32, notes: &[u64]) -> Vec<Event> {
    vec![
        started(iteration, notes),
        event(
            json!({"kind": "agent_ended", "run": iteration, "iteration": iteration,
            "ended_by": "exit", "exit": {"code": 0}, "duration_ms": 61_000 * iteration,
            "stdout_bytes": 10, "stderr_bytes": 0, "preview": "I wrote the parser\nand its tests",
            "claim": "COMPLETE", "tokens": {"input": 12_000, "output": 300},
            "cost": {"micros": 210_000 * iteration, "estimated": false}}),
        ),
        event(
            json!({"kind": "gate_finished", "iteration": iteration, "gate": 0,
            "command": "cargo test", "end": {"exit": {"code": 101}}, "duration_ms": 3200,
            "tail": "running 3 tests\ntest parse ... FAILED\n"}),
        ),
        event(
            json!({"kind": "iteration_finished", "iteration": iteration, "run": iteration,
            "verdict": "refused", "progress": {"moved": ["tree"]}, "after": {}, "files": 4,
            "spent_ms": 64_000 * iteration}),
        ),
    ]
}

fn config() -> IterativeLoopConfig {
    IterativeLoopConfig {
        command: "claude".into(),
        args: vec!["-p".into()],
        prompt: "Make every test pass".into(),
        max_iterations: Some(20),
        completion_promise: Some("COMPLETE".into()),
        verify: vec!["cargo test".into(), "cargo clippy".into()],
        ..Default::default()
    }
}

fn app() -> App {
    let mut app = App::new(Some("1".into()));
    let over = Status::Ended {
        reason: descartes_kernel::outcome::IterativeExitReason::CompletionPromiseDetected,
    };
    let waits = Status::Waiting {
        until: at(900),
        why: "usage limit".into(),
    };
    app.take_fleet(Ok(vec![
        brief("3", "nightly-refactor-of-everything", None, waits),
        brief("2", "docs", None, over),
        brief("1", "auth", None, Status::Running),
    ]));
    let say = Event::CommandAccepted {
        id: 0,
        command: Command::Say {
            text: "use jiff, not chrono".into(),
        },
        from: None,
    };
    let mut events = refused(1, &[]);
    events.push(say);
    events.extend(refused(2, &[0]));
    events.push(event(
        json!({"kind": "warning", "message": "no identity: commits are off"}),
    ));
    events.push(started(3, &[]));
    app.take_detail(detail(config(), events, Life::Alive));
    app
}

#[test]
fn the_history_of_a_running_loop() {
    insta::assert_snapshot!(screen(&app()));
    let mut app = app();
    app.row = Some(1);
    insta::assert_snapshot!("history_wide", screen_of(&app, (130, 30), Charset::Utf8));
}

#[test]
fn a_terminal_without_utf8_gets_plain_characters() {
    let text = screen_of(&app(), (80, 24), Charset::Ascii);
    let strange: Vec<char> = text
        .chars()
        .filter(|c| !c.is_ascii() && *c != '·' && *c != '…')
        .collect();
    assert!(
        strange.iter().all(|c| "↑↓→".contains(*c)),
        "{strange:?}\n{text}"
    );
    assert!(
        text.contains("###") && text.contains("xx") || text.contains('x'),
        "{text}"
    );
}

#[test]
fn gates_with_their_tails() {
    let mut app = app();
    app.tab = Tab::Gates;
    insta::assert_snapshot!(screen(&app));
}

#[test]
fn plots_of_duration_and_cost() {
    let mut app = app();
    app.tab = Tab::Plots;
    insta::assert_snapshot!(screen(&app));
}

#[test]
fn notes_waits_and_remarks() {
    let mut app = app();
    app.tab = Tab::Notes;
    insta::assert_snapshot!(screen(&app));
}

#[test]
fn notes_that_do_not_fit_are_scrolled_from_where_the_screen_stands() {
    let mut app = app();
    let remarks = |count: usize| {
        let message = |number| json!({"kind": "warning", "message": format!("remark {number}.")});
        let events = (0..count).map(message).map(event).collect();
        detail(config(), events, Life::Alive)
    };
    app.take_detail(remarks(60));
    app.tab = Tab::Notes;
    let shown = |app: &mut App, keys: &str| -> String {
        for typed in keys.chars() {
            let places = places_of(app, (80, 24));
            app.drawn(&places);
            keys::key(app, Key::Char(typed), &places);
        }
        screen(app)
    };
    let top = shown(&mut app, "");
    assert!(
        top.contains("remark 0.") && top.contains("more lines"),
        "{top}"
    );
    let middle = shown(&mut app, "m");
    assert!(
        middle.contains("remark 30.") && !middle.contains("remark 59."),
        "{middle}"
    );
    let end = shown(&mut app, "G");
    assert!(end.contains("remark 59.") && !end.contains("more"), "{end}");
    // Keys beyond the end are no debt.
    assert!(shown(&mut app, "jjjk").contains("… 2 more lines"));
    assert!(shown(&mut app, "Gk").contains("… 2 more lines"));
    // The end is followed, a place is kept.
    shown(&mut app, "G");
    app.take_detail(remarks(80));
    assert!(screen(&app).contains("remark 79."));
    shown(&mut app, "k");
    app.take_detail(remarks(100));
    assert!(!screen(&app).contains("remark 79."));
    assert_eq!(shown(&mut app, "g"), shown(&mut app, "k"));
    assert!(screen(&app).contains("remark 0."));
}

#[test]
fn output_is_followed_or_read_anywhere() {
    let mut app = app();
    app.tab = Tab::Output;
    let line = |number: u64| LogLine {
        offset: number * 10,
        text: match number {
            7 => "a long line that says much more than fits into one row of the pane, and goes on"
                .into(),
            number => format!("line {number}"),
        },
    };
    let view = LogView {
        iteration: 3,
        run: 3,
        window: LogWindow {
            begin: 0,
            end: 400,
            size: 400,
            lines: (0..40).map(line).collect(),
        },
        at: None,
    };
    let mut detail = app.detail.clone().unwrap();
    detail.log = Some(Ok(Arc::new(view)));
    app.take_detail(detail.clone());
    app.tab = Tab::History;
    insta::assert_snapshot!("output_below_the_history", screen(&app));
    app.tab = Tab::Output;
    let text = screen(&app);
    assert!(
        text.contains("following") && text.contains("line 39"),
        "{text}"
    );
    assert!(!text.contains("line 9\n"), "{text}");
    app.place = LogPlace::At(70);
    insta::assert_snapshot!(screen(&app));
    detail.log = Some(Err("the log of iteration 3 is gone".into()));
    app.take_detail(detail);
    assert!(screen(&app).contains("! the log of iteration 3 is gone"));
}

#[test]
fn a_wait_counts_down_and_an_unlimited_loop_has_no_bar() {
    let mut app = app();
    let limit = event(json!({"kind": "wait_started", "until": at(842).to_string(),
        "reason": {"limit": {"kind": "usage", "until": null, "words": "usage limit reached"}}}));
    let config = IterativeLoopConfig {
        max_iterations: None,
        ..config()
    };
    let events = [refused(1, &[]), vec![limit]].concat();
    app.take_detail(detail(config, events, Life::Alive));
    let text = screen(&app);
    assert!(text.contains("waiting 4m2s: usage limit reached"), "{text}");
    assert!(text.contains("iteration 1, no limit\n"), "{text}");
    assert!(text.contains("Waiting"), "{text}");
}

#[test]
fn waves_running_and_blocked_tasks_and_the_graph() {
    let mut app = app();
    let task = |id: &str, title: &str, wave: u32, after: &[&str]| json!({"id": id, "title": title, "wave": wave, "complexity": 5, "after": after});
    let step = |value: Value| event(json!({"kind": "tasks", "event": value}));
    let ended = |id: &str, end: Value, next: Value| {
        step(json!({"kind": "attempt_ended", "task": id, "end": end, "next": next}))
    };
    let begun =
        |id: &str| step(json!({"kind": "attempt_started", "task": id, "slot": 0, "attempt": 1}));
    let green = json!({"end": "green", "changed": true, "claimed": true});
    let red = json!({"end": "red", "tail": "no rule"});
    let block = json!({"next": "block", "reason": {"why": "attempts",
        "last": {"kind": "red_gate", "text": "no rule to make target"}}});
    let events = vec![
        event(json!({"kind": "tasks_planned", "tag": "auth", "tasks": [
            task("1", "Schema", 1, &[]), task("2", "Parser of the config file", 1, &[]),
            task("3", "Login", 2, &["1"]), task("4", "Logout", 2, &["1", "2"]),
            task("5", "Docs", 3, &["3", "4"]),
        ]})),
        begun("1"),
        ended("1", green, json!({"next": "done"})),
        begun("2"),
        ended("2", red, block),
        begun("3"),
    ];
    app.take_detail(detail(config(), events, Life::Alive));
    app.tab = Tab::Tasks;
    insta::assert_snapshot!(screen_of(&app, (80, 30), Charset::Utf8));
}

#[test]
fn help_dialogs_and_messages() {
    let mut app = app();
    app.dialog = Dialog::Help;
    insta::assert_snapshot!(screen(&app));
    let last = |app: &App| screen(app).lines().last().unwrap_or_default().to_owned();
    app.dialog = Dialog::Cancel {
        id: "1".into(),
        name: "auth".into(),
    };
    assert!(last(&app).starts_with("cancel auth and end everything it started? y/n"));
    app.dialog = Dialog::Say {
        id: "1".into(),
        text: "use ji".into(),
    };
    assert!(last(&app).starts_with("say: use ji"), "{}", last(&app));
    app.dialog = Dialog::None;
    app.say(Tone::Bad, "the loop does not answer");
    assert_eq!(last(&app), "the loop does not answer");
}

#[test]
fn every_size_is_drawn_and_a_small_one_says_so() {
    let mut app = app();
    for (tab, _) in Tab::ALL {
        app.tab = tab;
        for (wide, high) in [
            (1, 1),
            (39, 24),
            (40, 10),
            (60, 12),
            (70, 11),
            (80, 24),
            (300, 90),
        ] {
            let text = screen_of(&app, (wide, high), Charset::Utf8);
            let small = wide < 40 || high < 10;
            assert_eq!(
                wide > 20 && text.contains("terminal too small"),
                wide > 20 && small,
                "{text}"
            );
        }
    }
    let empty = App::new(None);
    assert!(screen(&empty).contains("looking …"));
}

#[test]
fn numbers_of_a_long_history_are_whole() {
    let mut app = app();
    let mut detail = app.detail.clone().unwrap();
    let mut rows = (*detail.rows).clone();
    (rows.from, rows.total) = (1_234_567, 1_234_570);
    rows.rows
        .iter_mut()
        .zip(1_234_568..)
        .for_each(|(row, number)| row.iteration = number);
    detail.rows = Arc::new(rows);
    app.take_detail(detail);
    let text = screen(&app);
    assert!(text.contains(" 1234569   2m5s"), "{text}");
}
