//! The window without a display: clicks, typed text, pictures.
use std::pin::pin;

use crate::common::{SIZE, Tale, Window, at_work, config, now};
use descartes_gui::message::{Effect, Followed, Message, Refused};
use descartes_gui::model::Agent;
use descartes_gui::model::form::Field;
use descartes_gui::model::{Area, Dialog, Model, Tab};
use descartes_gui::theme::Mode;
use descartes_gui::view::drawn::Drawn;
use descartes_gui::view::reach::watched;
use descartes_gui::view::view;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::event::*;
use descartes_kernel::outcome::{Budget, IterativeExitReason};
use descartes_views::view::Life;
use iced::futures::{FutureExt, StreamExt};
use iced::keyboard::key::Named;
use iced::keyboard::{Key, Modifiers};
use iced_test::Simulator;
use jiff::SignedDuration;

fn key(window: &mut Window, key: &str) {
    window.tell(Message::Key(Key::Character(key.into()), Modifiers::empty()));
}

fn named(window: &mut Window, key: Named, modifiers: Modifiers) {
    window.tell(Message::Key(Key::Named(key), modifiers));
}

fn sent(window: &Window) -> Vec<&Command> {
    let commands = window.effects.iter().filter_map(|effect| match effect {
        Effect::Send { command, .. } => Some(command),
        _ => None,
    });
    commands.collect()
}

#[test]
fn a_loop_at_work_is_shown_with_everything_there_is_to_know() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    window.printed(&["reading src/lexer.rs", "running cargo test"]);
    for text in [
        "iteration 3 of at most 20",
        "Running",
        "started 30 min ago   ·   30m elapsed   ·   24.6k tokens   ·   $0.28   ·   /home/ada/parser",
        "claude -p",
        "Make the parser pass its tests",
        "Fixed two of three red tests",
        "red: cargo test",
        "1m5s",
        "12.3k",
        "running",
        "Live output",
        "running cargo test",
        "Pause",
        "Cancel",
        "View Logs",
    ] {
        window.assert_sees(text);
    }
    assert!(!window.sees("Retry now"));
    assert!(!window.sees("Waves"));
}

#[test]
fn every_exit_reason_has_a_label_of_its_own() {
    use IterativeExitReason as Reason;
    let reasons = [
        Reason::CompletionPromiseDetected,
        Reason::ProcessSuccess,
        Reason::GatesPassed,
        Reason::MaxIterationsReached,
        Reason::BudgetExhausted {
            budget: Budget::Cost,
            limit: 5.0,
            used: 5.1,
        },
        Reason::Stalled {
            iterations: 10,
            evidence: "no file changed".into(),
        },
        Reason::AgentBlocked {
            message: "no access".into(),
        },
        Reason::AgentFailed {
            failures: 5,
            last: "exit code 1".into(),
        },
        Reason::TasksBlocked {
            tasks: vec!["7".into()],
            unlanded: None,
        },
        Reason::Error {
            message: "disk full".into(),
        },
        Reason::UserCancelled,
    ];
    let mut labels = std::collections::BTreeSet::new();
    for reason in reasons {
        let label = reason.label();
        assert!(labels.insert(label), "{label} twice");
        let mut tale = Tale::new("parser", config());
        tale.add(Event::LoopFinished { reason });
        let mut window = Window::showing(&tale, Mode::Light);
        window.assert_sees(label);
    }
    let mut window = Window::showing(&Tale::new("parser", config()), Mode::Light);
    window.assert_sees("Ready");
}

#[test]
fn unlimited_has_no_bar_and_no_limit_in_its_label() {
    let mut tale = Tale::new(
        "endless",
        descartes_kernel::config::IterativeLoopConfig {
            max_iterations: None,
            ..config()
        },
    );
    tale.start();
    let mut window = Window::showing(&tale, Mode::Light);
    window.assert_sees("iteration 1, no limit");
}

#[test]
fn buttons_steer_and_cancel_asks_first() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    window.click("Pause");
    assert_eq!(sent(&window), [&Command::Pause]);
    // Until it is answered nothing else is sent.
    window.assert_sees("Pausing …");
    window.tell(Message::Sent(
        "parser".into(),
        Ok("held before iteration 4".into()),
    ));
    window.assert_sees("held before iteration 4");
    window.click("Dismiss");
    assert!(!window.sees("held before iteration 4"));

    window.effects.clear();
    window.click("Cancel");
    assert!(sent(&window).is_empty());
    window.assert_sees("Cancel parser?");
    window.click("Keep running");
    assert!(sent(&window).is_empty() && window.model.dialog.is_none());
    window.click("Cancel");
    window.click("Cancel the loop");
    assert_eq!(sent(&window), [&Command::Cancel { grace: Grace::Ask }]);
}

#[test]
fn a_note_is_typed_and_sent_and_an_unheard_one_is_kept() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    window.screen(|screen| {
        screen.click("Note for the next iteration …").unwrap();
        let _ = screen.typewrite("u");
    });
    // Each letter is a message; the field shows what the model holds.
    for text in ["us", "use jiff"] {
        window.tell(Message::Note(text.into()));
    }
    window.assert_sees("use jiff");
    window.click("Send");
    assert_eq!(
        sent(&window),
        [&Command::Say {
            text: "use jiff".into()
        }]
    );
    let silent = "the loop's process (pid 7) did not answer in 5s";
    window.tell(Message::Sent("parser".into(), Err(silent.into())));
    window.assert_sees(silent);
    assert_eq!(window.model.chosen.as_ref().unwrap().note, "use jiff");
    window.click("Send");
    window.tell(Message::Sent("parser".into(), Ok("noted".into())));
    assert_eq!(window.model.chosen.as_ref().unwrap().note, "");
}

#[test]
fn a_wait_counts_down_and_can_be_ended() {
    let mut tale = at_work();
    tale.agent_ended("limit").finish(Verdict::Worked);
    let until = crate::common::now() + SignedDuration::from_secs(125);
    tale.add(Event::WaitStarted {
        until,
        reason: WaitReason::Limit(ReportedLimit {
            kind: LimitKind::Usage,
            until: None,
            words: "5-hour limit reached".into(),
        }),
    });
    let mut window = Window::showing(&tale, Mode::Light);
    window.assert_sees("Waiting 2m5s: 5-hour limit reached");
    window.tell(Message::Tick(
        crate::common::now() + SignedDuration::from_secs(5),
    ));
    window.assert_sees("Waiting 2m: 5-hour limit reached");
    window.click("Retry now");
    assert_eq!(sent(&window), [&Command::RetryNow]);
}

#[test]
fn trouble_is_a_line_and_the_window_goes_on() {
    let mut tale = at_work();
    let mut window = Window::showing(&tale, Mode::Light);
    window.printed(&["still here"]);
    let torn = "the journal is damaged at byte 812";
    window.tell(Message::Followed(
        "parser".into(),
        Followed::Trouble(torn.into()),
    ));
    window.assert_sees(torn);
    window.assert_sees("still here");
    // A loop that dies while it is watched.
    tale.life = Life::Gone;
    window.stands(&tale);
    window.assert_sees("Interrupted");
    window.assert_sees("Not running: Resume continues where it stopped");
    assert!(!window.sees(torn));
    // A log that was deleted.
    window.tell(Message::Row(2));
    let Some(Effect::ReadLog(request)) = window.effects.pop_back() else {
        panic!("the output of iteration 2");
    };
    window.tell(Message::Log(
        request,
        Err("the output of iteration 2 is gone".into()),
    ));
    window.assert_sees("the output of iteration 2 is gone");
    window.tell(Message::Fleet(Err("cannot list loops".into())));
    window.assert_sees("cannot list loops");
}

#[test]
fn the_form_says_what_is_wrong_beside_the_field_and_starts_a_loop() {
    let mut window = Window::new(Mode::Light);
    window.tell(Message::Fleet(Ok(vec![])));
    window.assert_sees("No loops yet");
    window.click("New loop");
    assert!(window.effects.contains(&Effect::FindAgents));
    let agent = |name: &str| Agent {
        name: name.into(),
        command: name.into(),
        version: Some("2.1".into()),
    };
    window.tell(Message::Agents(Ok(vec![agent("claude"), agent("codex")])));
    window.click("codex 2.1");
    assert_eq!(window.model.form.text(Field::Agent), "codex");
    window.tell(Message::Field(Field::MaxIterations, "many".into()));
    window.click("Start");
    window.assert_sees("must be a number, or unlimited");
    window.assert_sees("enter a prompt, or name a prompt file");
    window.tell(Message::Field(Field::MaxIterations, "7".into()));
    let typed = iced::widget::text_editor::Edit::Paste(std::sync::Arc::new("mend it".to_owned()));
    window.tell(Message::Prompt(iced::widget::text_editor::Action::Edit(
        typed,
    )));
    window.effects.clear();
    named(&mut window, Named::Enter, Modifiers::CTRL);
    let Some(Effect::Start { words, folder }) = window.effects.pop_front() else {
        panic!("it was to be started");
    };
    assert_eq!(folder.to_str(), Some("/home/ada/parser"));
    assert!(
        words
            .join(" ")
            .starts_with("loop start --detach --json --command=codex --prompt=mend it")
    );
    window.assert_sees("Starting …");
    let message = "--max-cost needs an agent that reports its cost";
    window.tell(Message::Started(Err(Refused {
        field: Some(Field::MaxCost),
        message: message.into(),
    })));
    window.assert_sees(message);
    window.tell(Message::Started(Ok("0192".into())));
    assert_eq!(window.model.chosen.as_ref().unwrap().id, "0192");
}

#[test]
fn fields_without_the_cursor_leave_the_keys_alone() {
    let mut window = Window::new(Mode::Light);
    window.tell(Message::Fleet(Ok(vec![])));
    window.click("New loop");
    window.effects.clear();
    window.screen(|screen| {
        let _ = screen.tap_key(Named::Tab);
    });
    assert!(window.effects.is_empty(), "{:?}", window.effects);
}

#[test]
fn keys_do_what_buttons_do() {
    let first = at_work();
    let mut second = Tale::new("storage", config());
    second.start();
    let mut window = Window::new(Mode::Light);
    window.tell(Message::Fleet(Ok(vec![first.brief(), second.brief()])));
    key(&mut window, "j");
    assert_eq!(window.model.chosen.as_ref().unwrap().id, "storage");
    key(&mut window, "k");
    window.stands(&first);
    key(&mut window, "p");
    assert_eq!(sent(&window), [&Command::Pause]);
    key(&mut window, "2");
    assert_eq!(window.model.chosen.as_ref().unwrap().tab, Tab::Output);
    key(&mut window, "3");
    assert_eq!(
        window.model.chosen.as_ref().unwrap().tab,
        Tab::Output,
        "no waves here"
    );
    key(&mut window, "t");
    assert_eq!(window.model.mode, Mode::Dark);
    key(&mut window, "?");
    assert_eq!(window.model.dialog, Some(Dialog::Help));
    window.assert_sees("cancel (asks first)");
    named(&mut window, Named::Escape, Modifiers::empty());
    assert_eq!(window.model.dialog, None);
    key(&mut window, "n");
    window.assert_sees("or prompt file");
    named(&mut window, Named::Escape, Modifiers::empty());
    window.assert_sees("iteration 3 of at most 20");
    window.tell(Message::Key(Key::Character("q".into()), Modifiers::CTRL));
    assert_eq!(window.effects.back(), Some(&Effect::Exit));
}

/// Two waves done or begun, one to come, one task blocked.
fn tasks() -> Tale {
    use descartes_kernel::sched::{
        AttemptEnd, BlockReason, Event as Step, Evidence, EvidenceKind, Next,
    };
    use descartes_kernel::tasks::PlannedTask;
    let task = |id: &str, wave, after: &[&str]| PlannedTask {
        commands: None,
        under: None,
        id: id.into(),
        title: format!("Build part {id}"),
        wave,
        complexity: 3,
        after: after.iter().map(|id| (*id).into()).collect(),
        after_blocks: Vec::new(),
    };
    let mut tale = Tale::new("auth", config());
    tale.add(Event::TasksPlanned {
        held: Vec::new(),
        tag: "auth".into(),
        tasks: vec![
            task("1", 1, &[]),
            task("2", 1, &[]),
            task("3", 2, &["1"]),
            task("4", 2, &["1", "2"]),
            task("5", 3, &["4"]),
        ],
        blocks: Vec::new(),
    });
    let mut step = |event| {
        tale.add(Event::Tasks {
            event: Box::new(event),
        });
    };
    for (id, next) in [("1", Next::Done), ("2", Next::Done)] {
        step(Step::AttemptStarted {
            task: id.into(),
            slot: 0,
            attempt: 1,
        });
        step(Step::AttemptEnded {
            task: id.into(),
            end: AttemptEnd::Interrupted,
            next,
        });
    }
    let last = Evidence {
        kind: EvidenceKind::RedGate,
        text: "2 tests failed".into(),
    };
    step(Step::AttemptStarted {
        task: "3".into(),
        slot: 0,
        attempt: 3,
    });
    step(Step::AttemptEnded {
        task: "3".into(),
        end: AttemptEnd::Interrupted,
        next: Next::Block {
            reason: BlockReason::Attempts {
                last,
                made: 3,
                limit: 3,
            },
        },
    });
    step(Step::AttemptStarted {
        task: "4".into(),
        slot: 1,
        attempt: 1,
    });
    for (id, minutes, verdict) in [
        ("1", 28, Verdict::Promise),
        ("2", 25, Verdict::Promise),
        ("3", 21, Verdict::Refused),
    ] {
        let began = crate::common::now() - SignedDuration::from_mins(minutes);
        let summary = descartes_kernel::state::IterationSummary {
            started_at: Some(began),
            exit_code: Some(0),
            output_preview: format!("worked on part {id}"),
            verdict: Some(verdict),
            ..Default::default()
        };
        tale.add(Event::TaskRun {
            task: id.into(),
            loop_id: format!("of-{id}"),
            iterations: 1,
            summary: Box::new(summary),
            spent: descartes_kernel::state::Spent {
                ms: 170_000,
                tokens: Some(9_000),
                ..Default::default()
            },
            wall_ms: None,
        });
    }
    tale
}

#[test]
fn a_task_loop_shows_its_waves_first() {
    let tale = tasks();
    let mut child = at_work().brief();
    child.id = "child".into();
    child.name = "auth/4".into();
    child.parent = Some("auth".into());
    let mut window = Window::showing(&tale, Mode::Light);
    window.tell(Message::Fleet(Ok(vec![tale.brief(), child])));
    for text in [
        "Wave 2 of 3",
        "2 of 5 tasks done",
        "Complete (2 tasks)",
        "In Progress (0/2 tasks)",
        "Pending (1 task)",
        "in-progress",
        "4 Build part 4",
        "Blocked tasks",
        "3 Build part 3",
        "3 of 3 attempts used: verification failed: 2 tests failed",
    ] {
        window.assert_sees(text);
    }
    // Its own loop is one click away.
    window.click("Open");
    assert_eq!(window.model.chosen.as_ref().unwrap().id, "child");
}

#[test]
fn waves_look_as_they_did_and_pictures_are_drawn() {
    let mut window = Window::showing(&tasks(), Mode::Dark);
    window.assert_looks_like("waves-dark");
    key(&mut window, "4");
    for title in ["Iterations over time", "Tasks over time"] {
        window.assert_sees(title);
    }
}

#[test]
fn output_of_any_length_is_read_piece_by_piece() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    let lines: Vec<String> = (0..500).map(|n| format!("line {n}")).collect();
    window.printed(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    window.assert_sees("line 499");
    // What the person looks at stays where it is, whatever is printed meanwhile.
    window.tell(Message::Wheel(Area::Log, -100.0));
    assert!(!window.sees("line 499"));
    window.effects.clear();
    window.tell(Message::Followed("parser".into(), Followed::Output(3)));
    assert!(window.effects.is_empty());
    named(&mut window, Named::Home, Modifiers::empty());
    window.assert_sees("line 0");
    window.click("Follow");
    assert!(matches!(window.effects.back(), Some(Effect::ReadLog(read)) if read.anchor.is_none()));
}

#[test]
fn light_and_dark_look_as_they_did() {
    for (mode, name) in [(Mode::Light, "loop-light"), (Mode::Dark, "loop-dark")] {
        let mut window = Window::showing(&at_work(), mode);
        let lines: Vec<String> = (1..40).map(|n| format!("step {n}: cargo test")).collect();
        window.printed(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        window.assert_looks_like(name);
    }
}

#[test]
fn whoever_waits_for_the_window_to_be_drawn_is_told_each_time() {
    let drawn = Drawn::default();
    let mut times = pin!(drawn.times());
    let model = Model::new(now(), Mode::Light, "/".to_owned());
    let page = watched(view(&model), &drawn);
    let mut screen = Simulator::with_size(iced::Settings::default(), SIZE, page);
    assert!(times.next().now_or_never().is_none(), "not drawn yet");
    for _ in 0..2 {
        screen
            .snapshot(&descartes_gui::theme::theme(Mode::Light))
            .unwrap();
        assert!(times.next().now_or_never().is_some());
        assert!(times.next().now_or_never().is_none(), "once");
    }
}

fn resumed(window: &Window) -> Vec<String> {
    let words = window.effects.iter().filter_map(|effect| match effect {
        Effect::Resume { words, .. } => Some(words.join(" ")),
        _ => None,
    });
    words.collect()
}

#[test]
fn a_loop_that_is_not_running_and_not_done_can_be_resumed() {
    let mut tale = at_work();
    tale.life = Life::Gone;
    let mut window = Window::showing(&tale, Mode::Light);
    window.click("Resume");
    assert_eq!(resumed(&window), ["loop resume parser --detach --json"]);
    // Until it is answered nothing else is done.
    key(&mut window, "g");
    assert_eq!(resumed(&window).len(), 1);
    window.tell(Message::Sent("parser".into(), Ok("resumed".into())));
    window.assert_sees("resumed");

    let mut tale = at_work();
    tale.agent_ended("hm").finish(Verdict::Worked);
    tale.add(Event::LoopFinished {
        reason: IterativeExitReason::MaxIterationsReached,
    });
    let mut window = Window::showing(&tale, Mode::Light);
    let limit = tale.stands().state.config.max_iterations.unwrap() * 2;
    window.click(&format!("Resume --max-iterations {limit}"));
    let words = format!("loop resume parser --detach --json --max-iterations {limit}");
    assert_eq!(resumed(&window), [words]);

    let mut window = Window::showing(&at_work(), Mode::Light);
    key(&mut window, "g");
    assert!(resumed(&window).is_empty(), "it runs");
}

#[test]
fn what_came_of_one_loop_is_not_shown_on_the_page_of_the_next() {
    let mut window = Window::showing(&at_work(), Mode::Light);
    window.tell(Message::Sent("parser".into(), Ok("cancelled".into())));
    window.assert_sees("cancelled");
    window.tell(Message::Choose("other".into()));
    assert_eq!(window.model.notice, None);
    // An answer that comes late says whose it is.
    window.tell(Message::Sent("parser".into(), Ok("cancelled".into())));
    window.assert_sees("parser: cancelled");
}
