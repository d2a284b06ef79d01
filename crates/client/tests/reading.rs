//! History and logs: the right run, the bytes, and what a person reads of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;
use std::ops::ControlFlow;

use common::{config, facts, world};
use descartes_agents::reader::Source;
use descartes_client::logs::{Prose, RunLog, Thoughts, Tools, TranscriptEntry};
use descartes_client::{ClientError, From};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{Event, Verdict};
use descartes_store::logs::GapMarks;

fn rows(found: &descartes_client::LoopHandle, from: From) -> Vec<(u32, u64)> {
    let mut rows = Vec::new();
    let current = found.history(from, |row| {
        rows.push((row.iteration, row.run));
        ControlFlow::Continue(())
    });
    rows.extend(current.unwrap().map(|row| (row.iteration, row.run)));
    rows
}

#[test]
fn history_is_told_from_any_run_on() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    made.limited();
    made.iterate();
    made.start();
    let found = world.find("auth");
    assert_eq!(rows(&found, From::First), [(1, 1), (2, 2), (2, 3), (3, 4)]);
    assert_eq!(rows(&found, From::Run(3)), [(2, 3), (3, 4)]);
    assert_eq!(rows(&found, From::Last(2)), [(2, 3), (3, 4)]);
    assert_eq!(rows(&found, From::Last(99)), rows(&found, From::First));
    let mut first = None;
    found
        .history(From::First, |row| {
            first = Some(row.run);
            ControlFlow::Break(())
        })
        .unwrap();
    assert_eq!(first, Some(1));
}

#[test]
fn the_trees_of_an_iteration_are_its_own_also_when_it_was_cut_off() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.iterate();
    let run = made.start();
    let found = world.find("auth");
    let open = found.trees(None).unwrap();
    assert_eq!((open.row.iteration, open.after), (2, None));
    made.append(Event::IterationInterrupted {
        iteration: 2,
        run,
        spent_ms: 1,
        tokens: None,
        cost: None,
    });
    made.start();
    let first = found.trees(Some(1)).unwrap();
    let pair = |a: &str, b: &str| (Some(a.to_owned()), Some(b.to_owned()));
    assert_eq!((first.before, first.after), pair("before-1", "after-1"));
    let second = found.trees(Some(2)).unwrap();
    assert_eq!((second.before, second.after), pair("before-2", "before-3"));
    let error = found.trees(Some(9)).unwrap_err();
    assert!(
        error.to_string().contains("there are iterations 1 to 3"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 65);
}

fn bytes(log: &RunLog, source: Source) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.open(source, GapMarks::Hidden)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

#[test]
fn the_log_of_an_iteration_is_that_of_its_last_run() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    let found = world.find("auth");
    assert!(matches!(found.log(None), Err(ClientError::NoIteration(_))));
    for _ in 0..60 {
        made.limited();
        made.iterate();
        let run = made.dir.run(made.state.runs);
        std::fs::write(run.stdout(), format!("run {}\n", made.state.runs)).unwrap();
    }
    for iteration in [1, 2, 33, 59, 60] {
        let log = found.log(Some(iteration)).unwrap();
        assert_eq!(log.run, u64::from(iteration) * 2);
        assert_eq!(
            bytes(&log, Source::Stdout),
            format!("run {}\n", log.run).into_bytes()
        );
        assert_eq!(bytes(&log, Source::Stderr), b"");
    }
    assert_eq!(found.log(None).unwrap().iteration, 60);
    assert_eq!(found.log(Some(7)).unwrap().size(Source::Stdout), 7);
    let error = found.log(Some(61)).unwrap_err();
    assert!(
        error.to_string().contains("there are iterations 1 to 60"),
        "{error}"
    );
    std::fs::remove_dir_all(made.dir.run(2).path()).unwrap();
    let error = found.log(Some(1)).unwrap().check().unwrap_err();
    assert_eq!(error.exit_code(), 65);
    assert!(error.hint().is_some());
    // A person who set the count back made two iterations of one number.
    let config = Box::new(made.state.config.clone());
    made.append(Event::StateEdited {
        from: None,
        config,
        iterations: 5,
    });
    made.iterate();
    assert_eq!(found.log(None).unwrap().iteration, 6);
    assert!(found.log(Some(50)).is_ok());
}

const STREAM: &str = concat!(
    r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#,
    "\n",
    r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
    "\n",
    r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"Exit code 1\nboom"}]}}"#,
    "\n",
    r#"{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"a.rs"}}]}}"#,
    "\n",
    "not json\n",
    r#"{"type":"assistant","message":{"id":"m3","role":"assistant","content":[{"type":"text","text":"Done."}]}}"#,
    "\n",
    r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#,
    "\n",
);

fn prose(log: &RunLog, thoughts: Thoughts, tools: Tools, pieces: usize) -> String {
    let mut transcript = log.transcript().unwrap();
    let (mut said, mut out) = (Vec::new(), String::new());
    for piece in bytes(log, Source::Stdout).chunks(pieces) {
        transcript.push(piece, &mut said);
    }
    transcript.finish(&mut said);
    let mut prose = Prose::new(thoughts, tools);
    for one in &said {
        prose.write(one, &mut out);
    }
    prose.finish(&mut out);
    out
}

#[test]
fn an_understood_stream_reads_as_words_and_a_line_for_each_tool() {
    let world = world();
    let mut claude = IterativeLoopConfig {
        command: "claude".into(),
        ..config()
    };
    claude.backend.backend_type = "claude".into();
    let mut made = world.made_with("0192aaaa-1", "auth", "s.json", claude);
    let run = made.start();
    std::fs::write(made.dir.run(run).stdout(), STREAM).unwrap();
    let log = world.find("auth").log(None).unwrap();
    let done = prose(&log, Thoughts::Hidden, Tools::WhenDone, 10_000);
    assert_eq!(done.lines().next(), Some("I look."), "{done}");
    let tool = done
        .lines()
        .find(|line| line.starts_with("$ cargo test  "))
        .unwrap();
    assert!(
        tool.ends_with("exit 1") || tool.ends_with("failed"),
        "{tool}"
    );
    assert!(done.contains("\nnot json\n"), "{done}");
    assert_eq!(done.matches("Done.").count(), 1, "{done}");
    assert!(
        !done.contains("hm\n") && !done.contains("session"),
        "{done}"
    );
    assert!(done.contains("read a.rs  no answer"), "{done}");
    assert_eq!(
        prose(&log, Thoughts::Hidden, Tools::WhenDone, 7),
        done,
        "any split"
    );
    assert!(prose(&log, Thoughts::Shown, Tools::WhenDone, 99).contains("~ hm\n"));
    let live = prose(&log, Thoughts::Hidden, Tools::WhenCalled, 99);
    assert!(
        live.contains(&format!("\n{tool}\n")),
        "finished on its own line: {live}"
    );
}

#[test]
fn a_call_that_something_came_between_is_told_again_with_its_end() {
    let mut prose = Prose::new(Thoughts::Hidden, Tools::WhenCalled);
    let call = |summary: &str| TranscriptEntry::ToolCall {
        summary: summary.into(),
    };
    let done = |summary: &str| TranscriptEntry::ToolDone {
        summary: summary.into(),
        outcome: descartes_agents::agent::ToolOutcome::Exit(1),
        duration: Some(std::time::Duration::from_millis(3200)),
    };
    let mut out = String::new();
    for said in [call("$ a"), call("$ b"), done("$ b"), done("$ a")] {
        prose.write(&said, &mut out);
    }
    assert_eq!(out, "$ a\n$ b  exit 1  3.2 s\n$ a  exit 1  3.2 s\n");
}

#[test]
fn an_error_that_the_agent_told_in_words_is_not_told_twice() {
    let mut prose = Prose::new(Thoughts::Hidden, Tools::WhenCalled);
    let text = |text: &str| TranscriptEntry::Text {
        piece: descartes_agents::agent::Piece::Block,
        text: text.into(),
    };
    let failed = |text: &str| TranscriptEntry::Failed(text.into());
    let mut out = String::new();
    for said in [text("401: log in\n"), failed("401:  log in"), failed("500")] {
        prose.write(&said, &mut out);
    }
    assert_eq!(out, "401: log in\n!! 500\n");
}

#[test]
fn plain_text_has_no_transcript() {
    let world = world();
    let mut made = world.made("0192aaaa-1");
    made.start();
    made.end(facts());
    made.judge(Verdict::Worked);
    assert!(world.find("auth").log(None).unwrap().transcript().is_none());
}
