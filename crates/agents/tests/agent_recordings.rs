//! The parsers against what the real CLIs printed when they were recorded.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and reads its recordings from files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use descartes_agents::agent::{FailureKind, ResultState, RunSummary, StreamKind, parser};
use descartes_agents::promise::{ClaimKind, PromiseMatch, PromiseSpec, find_in_text};
use descartes_agents::provider_limit::{LimitKind, told};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How a recorded run must be understood.
#[derive(Debug, PartialEq)]
enum Seen {
    Done,
    Abort,
    /// It ended well and claims nothing.
    Nothing,
    /// It neither spoke nor acted.
    Empty,
    /// It was cut off and says nothing of it.
    Missing,
    Failed(FailureKind),
    /// A limit that came as the model's answer.
    LimitAnswer,
}

use FailureKind::{ContextTooLong, EmptyAnswer, Interrupted, MaxTokens, Other, Provider};
use LimitKind::{Login, Network, Overload, Rate, Usage};
use Seen::{Abort, Done, Empty, Failed, LimitAnswer, Missing, Nothing};

fn expected(agent: &str, case: &str) -> Option<Seen> {
    Some(match (agent, case) {
        ("claude" | "codex", "html") => Failed(Provider(Network)),
        ("claude", "quota" | "usage-limit") => Failed(Provider(Rate)),
        ("claude", "stream-error") => Failed(Provider(Overload)),
        ("claude", "int-in-tool" | "int-waiting") => Failed(Interrupted),
        ("codex", "stream-error") => Failed(Provider(Rate)),
        ("gemini", "empty") => Failed(EmptyAnswer),
        ("gemini", "max-tokens") => Nothing,
        ("gemini", "usage-limit") => Missing,
        (_, "400") => Failed(Other),
        (_, "401") => Failed(Provider(Login)),
        (_, "429" | "429-no-hint") => Failed(Provider(Rate)),
        (_, "500" | "529") => Failed(Provider(Overload)),
        (_, "context") => Failed(ContextTooLong),
        (_, "cut" | "html" | "stream-error") => Failed(Provider(Network)),
        (_, "max-tokens") => Failed(MaxTokens),
        (_, "quota" | "usage-limit" | "subscription-limit" | "subscription-weekly") => {
            Failed(Provider(Usage))
        }
        (_, "usage-text") => LimitAnswer,
        (_, "blocked") => Abort,
        (_, "empty") => Empty,
        (_, "int-in-tool" | "int-waiting") => Missing,
        (_, "denied" | "early-promise" | "quotes-promise" | "thinking" | "tool-says-promise") => {
            Nothing
        }
        (
            _,
            "ok"
            | "429-then-ok"
            | "split-promise"
            | "subscription-warning"
            | "tool"
            | "tool-fails"
            | "two-tools",
        ) => Done,
        _ => return None,
    })
}

fn seen(summary: &RunSummary) -> Seen {
    let spec = PromiseSpec {
        done: Some("COMPLETE".into()),
        abort: Some("BLOCKED".into()),
        mode: PromiseMatch::Tagged,
    };
    let claim = find_in_text(&spec, summary.claim_text()).map(|claim| claim.kind);
    match (summary.result(), claim) {
        (ResultState::Error(failure), _) => Failed(failure.kind),
        (_, Some(ClaimKind::Done)) => Done,
        (_, Some(ClaimKind::Abort)) => Abort,
        (ResultState::Missing, None) => Missing,
        (ResultState::Ok, None) if summary.limit(now(), &TimeZone::UTC).is_some() => LimitAnswer,
        (ResultState::Ok, None) if summary.did_nothing() => Empty,
        (ResultState::Ok, None) => Nothing,
    }
}

fn now() -> Timestamp {
    "2026-11-15T03:40:00Z".parse().unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams")
}

fn agents() -> [(&'static str, StreamKind); 4] {
    [
        ("claude", StreamKind::Claude),
        ("codex", StreamKind::Codex),
        ("gemini", StreamKind::Gemini),
        ("opencode", StreamKind::OpenCode),
    ]
}

fn summary(kind: StreamKind, bytes: &[u8]) -> RunSummary {
    let mut parser = parser(kind, None).unwrap();
    let mut events = Vec::new();
    parser.push(bytes, &mut events);
    parser.finish(&mut events);
    let mut summary = RunSummary::default();
    events.iter().for_each(|event| summary.push(event));
    summary.finish(parser.trouble());
    summary
}

/// Every recorded run by agent and case.
fn recordings() -> Vec<(&'static str, StreamKind, String, RunSummary)> {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: BTreeMap<String, serde_json::Value> = serde_json::from_str(&index).unwrap();
    index
        .keys()
        .map(|name| {
            let (agent, case) = name.split_once('-').unwrap();
            let (agent, kind) = agents()
                .into_iter()
                .find(|(known, _)| *known == agent)
                .unwrap();
            let bytes = fs::read(folder().join(format!("{name}.jsonl"))).unwrap();
            (agent, kind, case.to_owned(), summary(kind, &bytes))
        })
        .collect()
}

#[test]
fn recorded_runs_are_understood() {
    let recordings = recordings();
    assert!(recordings.len() >= 90);
    let mut wrong = String::new();
    for (agent, _, case, summary) in &recordings {
        // Runs of opencode are judged once they are all recorded.
        let Some(want) = expected(agent, case).filter(|_| *agent != "opencode") else {
            continue;
        };
        let got = seen(summary);
        if got != want {
            wrong += &format!("{agent}-{case}: {want:?} expected, {got:?} seen\n");
        }
        assert!(
            summary.trouble.is_none(),
            "{agent}-{case}: {:?}",
            summary.trouble
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn tokens_and_tools_are_counted() {
    for (agent, _, case, summary) in recordings() {
        match case.as_str() {
            "tool" => assert_eq!(summary.tool_calls, 1, "{agent}"),
            "two-tools" => assert_eq!(summary.tool_calls, 2, "{agent}"),
            _ => continue,
        }
        assert!(
            summary.usage().total().is_some_and(|total| total > 0),
            "{agent}-{case}"
        );
        let priced = matches!(agent, "claude" | "opencode");
        assert_eq!(summary.cost().is_some(), priced, "{agent}-{case}");
    }
}

#[test]
fn resets_are_told_where_the_cli_tells_them() {
    let told_ends = [
        "claude-subscription-limit",
        "claude-subscription-weekly",
        "codex-usage-limit",
        "codex-stream-error",
        "gemini-429",
        "claude-usage-text",
    ];
    for name in told_ends {
        let (agent, case) = name.split_once('-').unwrap();
        let recordings = recordings();
        let run = recordings
            .iter()
            .find(|(a, _, c, _)| *a == agent && c == case);
        let (_, _, _, summary) = run.unwrap();
        let limit = summary
            .limit(now(), &TimeZone::UTC)
            .unwrap_or_else(|| panic!("{name}"));
        let until = limit
            .until
            .unwrap_or_else(|| panic!("{name}: {}", limit.words));
        assert!(
            until.duration_since(now()).as_secs() >= 0,
            "{name}: {until}"
        );
    }
}

#[test]
fn geminis_limits_stand_on_stderr_too() {
    let table = [
        ("429", Some(Rate)),
        ("usage-limit", Some(Usage)),
        ("quota", Some(Usage)),
        ("401", Some(Login)),
        ("500", Some(Overload)),
        ("ok", None),
        ("tool", None),
        ("context", None),
    ];
    for (case, want) in table {
        let text = fs::read_to_string(folder().join(format!("gemini-{case}.stderr"))).unwrap();
        let got = told(&text, now(), &TimeZone::UTC).map(|told| told.kind);
        assert_eq!(got, want, "{case}");
    }
}
