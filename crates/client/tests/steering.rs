//! Commands: two answers of a running loop, a record in the journal of one that is not.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use common::{Made, config, facts, line, world};
use descartes_client::{ClientError, ControlEffect, LoopHandle, Recorded, Sent};
use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::control::{Answer, Command, Grace};
use descartes_kernel::event::{Event, Verdict, WaitReason};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{Pause, Phase};
use descartes_store::journal::Journal;
use descartes_store::state_file::{Origin, load};

const SHORT: Duration = Duration::from_millis(200);

fn say(text: &str) -> Command {
    Command::Say { text: text.into() }
}

fn cancel() -> Command {
    Command::Cancel { grace: Grace::Ask }
}

fn set(change: ConfigChange) -> Command {
    Command::Set {
        change: Box::new(change),
    }
}

fn recorded(found: &LoopHandle, command: &Command) -> Recorded {
    match found.send(command).unwrap() {
        Sent::Recorded(recorded) => *recorded,
        other => panic!("{other:?}"),
    }
}

/// The loop as the next resume finds it: journal whole, state file in step.
fn resumable(made: &Made) -> descartes_kernel::state::LoopState {
    let found = made.journal.path();
    let (_, records, recovered) = Journal::open(found).unwrap();
    assert_eq!(recovered.cut, None);
    let state = descartes_kernel::transition::fold(&records)
        .unwrap()
        .unwrap();
    let file = load(made.file.path()).unwrap();
    assert_eq!(file.origin, Origin::Projected { seq: state.seq });
    assert_eq!(file.state.config, state.config);
    state
}

#[test]
fn what_is_said_to_a_stopped_loop_stands_in_its_journal() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    let wait = WaitReason::Failures(1);
    let until = "2099-01-01T00:00:00Z".parse().unwrap();
    made.append(Event::WaitStarted {
        until,
        reason: wait,
    });
    let found = world.find("auth");
    recorded(&found, &say("use jiff"));
    recorded(&found, &Command::Pause);
    let change = ConfigChange {
        max_iterations: Some(Some(99)),
        ..ConfigChange::default()
    };
    recorded(&found, &set(change));
    let state = resumable(&made);
    assert_eq!(state.next_prompt.notes[0].text, "use jiff");
    assert_eq!(state.requests.pause, Pause::Asked);
    assert_eq!(state.config.max_iterations, Some(99));
    assert!(state.wait().is_some());
    recorded(&found, &Command::RetryNow);
    recorded(&found, &Command::Unpause);
    let state = resumable(&made);
    assert_eq!((state.requests.pause, state.wait()), (Pause::No, None));
    assert_eq!(found.life().unwrap(), descartes_views::view::Life::Gone);
}

#[test]
fn what_cannot_be_is_refused_and_not_recorded() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    let found = world.find("auth");
    let before = std::fs::read(made.dir.journal()).unwrap();
    let zero = ConfigChange {
        max_iterations: Some(Some(0)),
        ..ConfigChange::default()
    };
    for command in [say(" "), say("a\0b"), set(zero)] {
        let error = found.send(&command).unwrap_err();
        assert_eq!(error.exit_code(), 65, "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    assert_eq!(std::fs::read(made.dir.journal()).unwrap(), before);
    let reason = IterativeExitReason::CompletionPromiseDetected;
    made.append(Event::LoopFinished { reason });
    let error = found.send(&say("late")).unwrap_err();
    assert!(error.to_string().contains("is done"), "{error}");
}

#[test]
fn cancelling_a_stopped_loop_only_records_it_and_no_number_is_used_twice() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    made.start();
    let found = world.find("auth");
    recorded(&found, &say("pending"));
    let done = recorded(&found, &cancel());
    let kinds: Vec<String> = done
        .records
        .iter()
        .map(|record| {
            serde_json::to_value(&record.event).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "command_accepted",
            "iteration_interrupted",
            "loop_finished",
            "command_effective",
        ],
        "the note stays for the next iteration that counts"
    );
    let state = resumable(&made);
    assert_eq!(state.exit_reason(), IterativeExitReason::UserCancelled);
    assert_eq!(
        state.iterations, 2,
        "the number of the lost iteration is used up"
    );
    assert_eq!(state.requests.pending.len(), 1, "the note");
    let file = load(made.file.path()).unwrap().state;
    assert!(file.completed && file.exit_reason == IterativeExitReason::UserCancelled);
    // Once more there is nothing to record.
    assert!(recorded(&found, &cancel()).records.is_empty());
}

#[test]
fn a_cancelled_run_keeps_what_it_cost() {
    let world = world();
    let mut claude = IterativeLoopConfig {
        command: "claude".into(),
        ..config()
    };
    claude.backend.backend_type = "claude".into();
    let mut made = world.made_with("0192aaaa-1", "auth", "s.json", claude);
    let run = made.start();
    let stream = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":100,"output_tokens":20}}}"#,
        "\n",
    );
    std::fs::write(made.dir.run(run).stdout(), stream).unwrap();
    let state = recorded(&world.find("auth"), &cancel()).state;
    assert!(
        state.spent.tokens.is_some_and(|tokens| tokens >= 100),
        "{:?}",
        state.spent
    );
    // One that was being judged had told it already.
    let mut made = world.made_with("0193aaaa-1", "other", "t.json", config());
    made.start();
    made.end(facts());
    let state = recorded(&world.find("other"), &cancel()).state;
    assert_eq!((state.iterations, state.spent.ms), (1, 1000));
    assert!(matches!(state.verdict, Some(Verdict::Stopped)));
}

#[test]
fn a_persons_edit_comes_first_a_torn_file_is_mended_and_another_loops_is_left_alone() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let (path, found) = (made.file.path().to_owned(), world.find("auth"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("do it", "do that")).unwrap();
    let change = ConfigChange {
        max_failures: Some(9),
        ..ConfigChange::default()
    };
    let done = recorded(&found, &set(change));
    assert!(
        done.notices[0].contains("edited by hand"),
        "{:?}",
        done.notices
    );
    let state = resumable(&made);
    assert_eq!(
        (state.config.prompt.as_str(), state.config.max_failures),
        ("do that", 9)
    );

    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let done = recorded(&found, &say("x"));
    assert!(done.notices[0].contains("rebuilt"), "{:?}", done.notices);
    resumable(&made);

    let foreign = text.replace("0192aaaa-1", "0199ffff-1");
    std::fs::write(&path, &foreign).unwrap();
    let done = recorded(&found, &say("y"));
    assert!(
        done.notices[0].contains("another loop"),
        "{:?}",
        done.notices
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
    assert_eq!(found.state().unwrap().next_prompt.notes.len(), 2);

    let newer = text.replace("\"version\": \"1.0\"", "\"version\": \"2.0\"");
    std::fs::write(&path, &newer).unwrap();
    assert!(matches!(
        found.send(&say("z")),
        Err(ClientError::StateFile(_))
    ));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
}

#[test]
fn a_running_loop_gives_two_answers() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let _lock = made.lock();
    let accepted = line(&Answer::Accepted { id: 7 });
    let other = line(&Answer::Effective {
        id: 6,
        message: "not ours".into(),
    });
    let effective = line(&Answer::Effective {
        id: 7,
        message: "done".into(),
    });
    let host = made.answer(vec![accepted, other, effective]);
    let Sent::Live(mut ticket) = world.find("auth").send(&say("hello")).unwrap() else {
        panic!("it runs");
    };
    assert_eq!(ticket.id(), 7);
    assert_eq!(
        ticket.effect(Duration::from_secs(9)).unwrap(),
        ControlEffect::Done("done".into())
    );
    assert_eq!(
        host.join().unwrap(),
        "{\"v\":1,\"command\":\"say\",\"text\":\"hello\"}\n"
    );
}

#[test]
fn an_effect_may_take_long_and_a_host_may_go() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let _lock = made.lock();
    let (hold, gate) = std::sync::mpsc::channel::<()>();
    let socket = made.dir.path().join("s2");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let info = descartes_store::host::HostInfo {
        facts: descartes_store::host::this_host("test"),
        socket: Some(socket),
    };
    info.write(&made.dir).unwrap();
    let host = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, &line(&Answer::Accepted { id: 1 })).unwrap();
        gate.recv().ok();
    });
    let Sent::Live(mut ticket) = world.find("auth").send(&Command::Pause).unwrap() else {
        panic!("it runs");
    };
    assert_eq!(
        ticket.effect(Duration::from_millis(20)).unwrap(),
        ControlEffect::Pending
    );
    drop(hold);
    host.join().unwrap();
    assert_eq!(
        ticket.effect(Duration::from_secs(9)).unwrap(),
        ControlEffect::HostGone
    );
}

#[test]
fn refusals_garbage_and_silence_of_a_host_are_told_apart() {
    let refused = Answer::Refused {
        message: "no".into(),
        hint: "do this".into(),
    };
    let huge = vec![b'x'; (1 << 20) + 10];
    let cases: [(Vec<u8>, &str, i32); 4] = [
        (line(&refused), "no", 65),
        (
            b"HTTP/1.1 400 \x1b[2J Bad Request\r\n".to_vec(),
            "unexpected answer: HTTP/1.1 400 \\u{1b}",
            1,
        ),
        (huge, "unexpected", 1),
        (b"{\"answer\":\"teleported\"}\n".to_vec(), "unexpected", 1),
    ];
    for (bytes, words, code) in cases {
        let world = world();
        let made = world.made("0192aaaa-1");
        let _lock = made.lock();
        let host = made.answer(vec![bytes]);
        let error = world.find("auth").send(&Command::Pause).unwrap_err();
        host.join().ok();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_code(), code, "{error}");
        assert!(error.hint().is_some());
    }
    let world = world();
    let made = world.made("0192aaaa-1");
    let _lock = made.lock();
    let socket = made.dir.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let info = descartes_store::host::HostInfo {
        facts: descartes_store::host::this_host("test"),
        socket: Some(socket),
    };
    info.write(&made.dir).unwrap();
    let error = world
        .find("auth")
        .send_within(&Command::Pause, SHORT)
        .unwrap_err();
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    assert!(error.hint().unwrap().contains("kill -CONT"));
}

#[test]
fn a_live_loop_without_a_socket_is_said_and_a_dead_socket_is_no_answer() {
    let world = world();
    let made = world.made("0192aaaa-1");
    let _lock = made.lock();
    let found = world.find("auth");
    let error = found.send_within(&Command::Pause, SHORT).unwrap_err();
    assert!(error.to_string().contains("no control socket"), "{error}");
    let socket = made.dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let info = descartes_store::host::HostInfo {
        facts: descartes_store::host::this_host("test"),
        socket: Some(socket),
    };
    info.write(&made.dir).unwrap();
    let error = found.send_within(&Command::Pause, SHORT).unwrap_err();
    assert!(error.hint().unwrap().contains("loop cancel"), "{error}");
    assert_eq!(
        found.ping(SHORT).unwrap(),
        descartes_views::view::Life::Gone
    );
}

#[test]
fn a_command_that_a_dying_host_had_taken_is_not_recorded_again() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let lock = made.lock();
    let socket = made.dir.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let info = descartes_store::host::HostInfo {
        facts: descartes_store::host::this_host("test"),
        socket: Some(socket),
    };
    info.write(&made.dir).unwrap();
    let found = world.find("auth");
    let host = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        // It is durable, and then the host dies before it can say so.
        made.append(Event::CommandAccepted {
            id: 1,
            command: say("once"),
            from: None,
        });
        drop((stream, listener, lock));
        made
    });
    let Sent::Live(mut ticket) = found.send(&say("once")).unwrap() else {
        panic!("the host had taken it");
    };
    let made = host.join().unwrap();
    assert_eq!(
        (ticket.id(), ticket.effect(SHORT).unwrap()),
        (1, ControlEffect::HostGone)
    );
    assert_eq!(found.state().unwrap().next_prompt.notes.len(), 1);
    assert!(matches!(made.state.phase, Phase::Ready { .. }));
}

#[test]
fn a_loop_whose_state_file_another_runs_on_is_not_touched() {
    let world = world();
    let old = world.made("0192aaaa-1");
    let new = world.made_with("0193bbbb-1", "new", ".descartes/loop-state.json", config());
    let _lock = new.lock();
    let error = world.find("0192aaaa-1").send(&say("x")).unwrap_err();
    assert!(error.to_string().contains("0193bbbb-1"), "{error}");
    assert!(old.state.next_prompt.notes.is_empty());
}
