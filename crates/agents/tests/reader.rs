//! What a run's two streams come to, from recordings of the real agents.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its recordings"
)]

use descartes_agents::agent::{StreamKind, parser};
use descartes_agents::promise::{PromiseMatch, PromiseSpec};
use descartes_agents::provider_limit::LimitKind;
use descartes_agents::reader::{Note, RunReader, RunReport, Source};
use descartes_agents::run::{EndedBy, ExitStatus};
use jiff::Timestamp;
use jiff::tz::TimeZone;

fn spec(mode: PromiseMatch) -> PromiseSpec {
    PromiseSpec {
        done: Some("COMPLETE".into()),
        abort: Some("BLOCKED".into()),
        mode,
    }
}

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn kind(name: &str) -> StreamKind {
    match name.split('-').next().unwrap() {
        "claude" => StreamKind::Claude,
        "codex" => StreamKind::Codex,
        "gemini" => StreamKind::Gemini,
        _ => StreamKind::OpenCode,
    }
}

fn fixture(name: &str, ending: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams");
    std::fs::read(format!("{folder}/{name}.{ending}")).unwrap_or_default()
}

fn read(name: &str, exit: i32) -> (RunReport, Vec<Note>) {
    let mut reader = RunReader::understood(
        &spec(PromiseMatch::Tagged),
        parser(kind(name), None).unwrap(),
    );
    let mut notes = Vec::new();
    for piece in fixture(name, "jsonl").chunks(7) {
        reader.push(Source::Stdout, piece, &mut notes);
    }
    reader.push(Source::Stderr, &fixture(name, "stderr"), &mut notes);
    let exit = Some(ExitStatus::Code(exit));
    (
        reader.finish(exit, EndedBy::Exit, now(), &TimeZone::UTC),
        notes,
    )
}

#[test]
fn each_agents_good_run_claims_tells_its_result_and_its_tokens() {
    for name in ["claude-ok", "codex-ok", "gemini-ok", "opencode-ok"] {
        let (report, notes) = read(name, 0);
        assert_eq!(
            report.claim.as_deref(),
            Some("COMPLETE"),
            "{name}: {report:?}"
        );
        assert_eq!((report.error, report.limit), (None, None), "{name}");
        assert!(report.tokens.is_some(), "{name}");
        assert!(notes.contains(&Note::Resulted), "{name}: {notes:?}");
        assert!(!notes.contains(&Note::Hopeless), "{name}");
        assert!(!report.preview.is_empty() && !report.did_nothing, "{name}");
    }
    assert!(
        read("claude-ok", 0).0.cost.is_some(),
        "claude tells its cost"
    );
    assert!(
        read("codex-ok", 0).0.cost.is_none(),
        "codex tells none: unknown is not zero"
    );
}

#[test]
fn a_promise_in_a_tools_output_or_an_early_message_is_none() {
    for agent in ["claude", "codex", "gemini", "opencode"] {
        for case in ["tool-says-promise", "early-promise", "quotes-promise"] {
            let (report, _) = read(&format!("{agent}-{case}"), 0);
            assert_eq!(report.claim, None, "{agent}-{case}");
        }
        let (report, _) = read(&format!("{agent}-split-promise"), 0);
        assert_eq!(
            report.claim.as_deref(),
            Some("COMPLETE"),
            "{agent}-split-promise"
        );
        let (report, _) = read(&format!("{agent}-blocked"), 0);
        assert!(
            report.abort.is_some() && report.claim.is_none(),
            "{agent}-blocked"
        );
    }
}

#[test]
fn limits_overloads_and_wrong_logins_are_told_apart() {
    let table = [
        ("claude-subscription-limit", 1, LimitKind::Usage),
        ("claude-529", 1, LimitKind::Overload),
        ("claude-401", 1, LimitKind::Login),
        ("codex-usage-limit", 1, LimitKind::Usage),
        ("codex-500", 1, LimitKind::Overload),
        ("codex-401", 1, LimitKind::Login),
        ("gemini-529", 17, LimitKind::Overload),
        ("opencode-401", 1, LimitKind::Login),
    ];
    for (name, exit, kind) in table {
        let limit = read(name, exit).0.limit;
        assert_eq!(
            limit.as_ref().map(|l| l.kind),
            Some(kind),
            "{name}: {limit:?}"
        );
    }
    for name in ["claude-429", "codex-429", "gemini-429", "opencode-429"] {
        let limit = read(name, 1).0.limit.unwrap();
        assert!(
            matches!(limit.kind, LimitKind::Rate | LimitKind::Usage),
            "{name}: {limit:?}"
        );
    }
}

#[test]
fn an_agent_that_would_sleep_an_hour_by_itself_is_given_up_with_its_reset() {
    let mut reader = RunReader::understood(
        &spec(PromiseMatch::Tagged),
        parser(StreamKind::Gemini, None).unwrap(),
    );
    let mut notes = Vec::new();
    let line = b"Attempt 1 failed: You have exhausted your capacity on this model. Retrying after 3600000ms...\n";
    reader.push(Source::Stderr, line, &mut notes);
    assert_eq!(notes, [Note::Hopeless]);
    let report = reader.finish(
        Some(ExitStatus::Signal(15)),
        EndedBy::GaveUp,
        now(),
        &TimeZone::UTC,
    );
    let until = report.limit.unwrap().until.unwrap();
    assert_eq!(until.as_second() - now().as_second(), 3600);
}

#[test]
fn retrying_a_wrong_login_is_given_up_at_once() {
    let (_, notes) = read("claude-401", 1);
    assert_eq!(
        notes.iter().filter(|note| **note == Note::Hopeless).count(),
        1,
        "{notes:?}"
    );
}

#[test]
fn what_the_work_of_a_plain_agent_prints_of_its_own_servers_is_no_limit() {
    let limit = |text: &str, ended_by| {
        let mut reader = RunReader::plain(&spec(PromiseMatch::Line), "go");
        reader.push(Source::Stderr, text.as_bytes(), &mut Vec::new());
        let report = reader.finish(Some(ExitStatus::Code(1)), ended_by, now(), &TimeZone::UTC);
        report.limit.map(|limit| limit.kind)
    };
    let refused = "Error: connect ECONNREFUSED 127.0.0.1:3000\n";
    assert_eq!(limit(refused, EndedBy::Exit), None);
    let network = "Error: getaddrinfo ENOTFOUND api.example.com\n";
    assert_eq!(limit(network, EndedBy::Exit), Some(LimitKind::Network));
    // One that was ended has said no last words.
    assert_eq!(limit(network, EndedBy::Timeout), None);
}

#[test]
fn plain_text_meets_a_limit_only_in_a_run_that_failed() {
    let text = b"You've hit your limit \xc2\xb7 resets 5pm (Europe/Vilnius)\n";
    let run = |exit: i32| {
        let mut reader = RunReader::plain(&spec(PromiseMatch::Line), "go");
        reader.push(Source::Stdout, text, &mut Vec::new());
        reader.finish(
            Some(ExitStatus::Code(exit)),
            EndedBy::Exit,
            now(),
            &TimeZone::UTC,
        )
    };
    let until = run(1).limit.unwrap().until.unwrap();
    assert_eq!(until, "2026-11-15T15:00:00Z".parse().unwrap());
    assert_eq!(run(0).limit, None);
}

#[test]
fn an_unfinished_last_line_is_judged_when_the_stream_is_quiet() {
    let mut reader = RunReader::plain(&spec(PromiseMatch::Line), "go");
    let mut notes = Vec::new();
    reader.push(
        Source::Stdout,
        b"\x1b[1mworking\x1b[0m\n<promise>COMPLETE</promise>",
        &mut notes,
    );
    assert_eq!(notes, []);
    reader.quiet(&mut notes);
    assert_eq!(notes, [Note::Claimed]);
    let report = reader.finish(
        Some(ExitStatus::Code(0)),
        EndedBy::Promise,
        now(),
        &TimeZone::UTC,
    );
    assert_eq!(report.claim.as_deref(), Some("COMPLETE"));
    assert_eq!(report.preview, "working\n<promise>COMPLETE</promise>");
}

#[test]
fn a_pause_in_the_middle_of_a_quotation_is_no_claim_in_the_end() {
    // Within an open fence it does not stand, however quiet the stream is.
    let (stands, undone) = (vec![Note::Claimed], vec![Note::Claimed, Note::Unclaimed]);
    for (before, after, quiet, later) in [
        (
            "```\n<promise>COMPLETE</promise>\n",
            "```\nI am not there yet.\n",
            vec![],
            vec![],
        ),
        (
            "<promise>COMPLETE</promise>",
            " is what I will print.\n",
            stands,
            undone,
        ),
    ] {
        let mut reader = RunReader::plain(&spec(PromiseMatch::Tagged), "go");
        let mut notes = Vec::new();
        reader.push(Source::Stdout, before.as_bytes(), &mut notes);
        reader.quiet(&mut notes);
        reader.quiet(&mut notes);
        assert_eq!(notes, quiet);
        reader.push(Source::Stdout, after.as_bytes(), &mut notes);
        assert_eq!(notes, later);
        let exit = Some(ExitStatus::Code(0));
        let report = reader.finish(exit, EndedBy::Exit, now(), &TimeZone::UTC);
        assert_eq!(report.claim, None, "{before}{after}");
    }
}

#[test]
fn stderr_claims_in_plain_text_and_the_last_word_on_stdout_wins() {
    let mut reader = RunReader::plain(&spec(PromiseMatch::Tagged), "go");
    reader.push(
        Source::Stderr,
        b"<promise>COMPLETE</promise>\n",
        &mut Vec::new(),
    );
    let exit = Some(ExitStatus::Code(0));
    let report = reader.finish(exit, EndedBy::Exit, now(), &TimeZone::UTC);
    assert_eq!(report.claim.as_deref(), Some("COMPLETE"));
    let mut reader = RunReader::plain(&spec(PromiseMatch::Tagged), "go");
    let out = b"<promise>COMPLETE</promise>\nThe database is gone.\n<promise>BLOCKED</promise>\n";
    reader.push(Source::Stdout, out, &mut Vec::new());
    let report = reader.finish(exit, EndedBy::Exit, now(), &TimeZone::UTC);
    assert_eq!(report.claim, None);
    assert!(report.abort.unwrap().contains("The database is gone."));
}

#[test]
fn an_agent_ended_in_a_silent_wait_was_hindered_by_what_it_waits_for() {
    let waits = concat!(
        r#"{"type":"thread.started","thread_id":"t"}"#,
        "\n",
        r#"{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}"#,
        "\n"
    );
    let goes_on =
        r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I am back."}}"#;
    let report = |stream: &str, by: EndedBy| {
        let parser = parser(StreamKind::Codex, None).unwrap();
        let mut reader = RunReader::understood(&spec(PromiseMatch::Tagged), parser);
        reader.push(Source::Stdout, stream.as_bytes(), &mut Vec::new());
        reader.finish(Some(ExitStatus::Signal(15)), by, now(), &TimeZone::UTC)
    };
    let waiting = report(waits, EndedBy::Idle);
    assert_eq!(waiting.limit.unwrap().kind, LimitKind::Rate);
    assert!(waiting.error.unwrap().contains("429"));
    assert_eq!(report(waits, EndedBy::Cancel).limit, None);
    let back = report(&format!("{waits}{goes_on}\n"), EndedBy::Idle);
    assert_eq!((back.limit, back.error), (None, None));
    let silent = report("{\"type\":\"turn.started\"}\n", EndedBy::Idle);
    assert_eq!(silent.error, None, "events are no words");
}

#[test]
fn tokens_are_told_with_their_model_while_they_are_spent() {
    let parser = parser(StreamKind::Claude, None).unwrap();
    let mut reader = RunReader::understood(&spec(PromiseMatch::Tagged), parser);
    let mut notes = Vec::new();
    let stream = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s","model":"opus","tools":[]}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"opus","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":700,"output_tokens":1}}}"#,
        "\n"
    );
    reader.push(Source::Stdout, stream.as_bytes(), &mut notes);
    let Some(Note::Spent(spent)) = notes.last() else {
        panic!("{notes:?}");
    };
    assert_eq!(spent.model.as_deref(), Some("opus"));
    assert_eq!(spent.tokens.input, Some(700));
}

#[test]
fn messages_stand_apart_in_a_preview() {
    let message = |id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let parser = parser(StreamKind::Claude, None).unwrap();
    let mut reader = RunReader::understood(&spec(PromiseMatch::Tagged), parser);
    for (id, text) in [
        ("a", "I look first."),
        ("b", "Now I write."),
        ("c", "Done."),
    ] {
        let line = message(id, text) + "\n";
        reader.push(Source::Stdout, line.as_bytes(), &mut Vec::new());
    }
    let exit = Some(ExitStatus::Code(0));
    let report = reader.finish(exit, EndedBy::Exit, now(), &TimeZone::UTC);
    assert_eq!(report.preview, "I look first. Now I write. Done.");
}
