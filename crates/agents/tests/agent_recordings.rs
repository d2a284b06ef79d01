//! The parsers against what the real CLIs printed when they were recorded.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and reads its recordings from files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use descartes_agents::agent::{
    FailureKind, Profile, Profiles, Reports, ResultState, RunSummary, Trouble, parser,
};
use descartes_agents::promise::{ClaimKind, PromiseMatch, PromiseSpec, find_in_text};
use descartes_agents::provider_limit::{LimitKind, told};
use descartes_agents::reader::{RunReader, Source};
use descartes_agents::run::{EndedBy, ExitStatus};
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
        // They try again without a word, and were ended.
        ("droid" | "qwen", "429") => Missing,
        ("cline" | "droid" | "kilo" | "qwen", "500") => Missing,
        ("cline" | "copilot" | "droid" | "qwen", "usage-limit") => Missing,
        // It tells errors on standard error alone.
        ("gptme", "401" | "429" | "500" | "context" | "usage-limit") => Missing,
        // It ends for want of permission, and says so.
        ("kilo", "denied") => Failed(Other),
        // Nothing in their streams says that all went well.
        (
            "goose" | "gptme",
            "denied" | "early-promise" | "quotes-promise" | "tool-says-promise",
        ) => Missing,
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

fn summary(profile: &Profile, bytes: &[u8]) -> RunSummary {
    let mut parser = parser(profile.stream, profile.jsonl.as_ref()).unwrap();
    let mut events = Vec::new();
    parser.push(bytes, &mut events);
    parser.finish(&mut events);
    let mut summary = RunSummary::default();
    events.iter().for_each(|event| summary.push(event));
    summary.finish(parser.trouble());
    summary
}

/// The names of all recorded runs: agent and case.
fn names() -> Vec<(String, String)> {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: BTreeMap<String, serde_json::Value> = serde_json::from_str(&index).unwrap();
    let parts = |name: &String| {
        name.split_once('-')
            .map(|(a, c)| (a.to_owned(), c.to_owned()))
    };
    index.keys().filter_map(parts).collect()
}

/// Every recorded run of an understood agent, by agent and case.
fn recordings() -> Vec<(String, String, RunSummary)> {
    let profiles = Profiles::builtin();
    let understood = |agent: &str| profiles.get(agent).unwrap().stream.is_understood();
    let runs = names().into_iter().filter(|(agent, _)| understood(agent));
    runs.map(|(agent, case)| {
        let bytes = fs::read(folder().join(format!("{agent}-{case}.jsonl"))).unwrap();
        let summary = summary(profiles.get(&agent).unwrap(), &bytes);
        (agent, case, summary)
    })
    .collect()
}

#[test]
fn recorded_runs_are_understood() {
    let recordings = recordings();
    assert!(recordings.len() >= 90);
    let mut wrong = String::new();
    for (agent, case, summary) in &recordings {
        // Runs of opencode are judged once they are all recorded.
        let Some(want) = expected(agent, case).filter(|_| agent != "opencode") else {
            continue;
        };
        let got = seen(summary);
        if got != want {
            wrong += &format!("{agent}-{case}: {want:?} expected, {got:?} seen\n");
        }
        // What tools print stands between gptme's events.
        let trouble = Trouble {
            noise_lines: summary.trouble.noise_lines * u64::from(agent != "gptme"),
            ..summary.trouble.clone()
        };
        if !trouble.is_none() {
            wrong += &format!("{agent}-{case}: {trouble:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn tokens_and_tools_are_counted() {
    let profiles = Profiles::builtin();
    for (agent, case, summary) in recordings() {
        // The call by which gptme ends its run is one too.
        let end = u64::from(agent == "gptme");
        match case.as_str() {
            "tool" => assert_eq!(summary.tool_calls, 1 + end, "{agent}"),
            "two-tools" => assert_eq!(summary.tool_calls, 2, "{agent}"),
            _ => continue,
        }
        let reports = profiles.get(&agent).unwrap().reports;
        let total = summary.usage().total();
        assert_eq!(
            total.is_some_and(|total| total > 0),
            reports != Reports::Nothing,
            "{agent}-{case}"
        );
        assert_eq!(
            summary.cost().is_some(),
            reports == Reports::Cost,
            "{agent}-{case}"
        );
    }
}

/// Every agent that is said to be verified has a recording of the version it was tested with.
#[test]
fn verified_agents_are_recorded() {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: BTreeMap<String, serde_json::Value> = serde_json::from_str(&index).unwrap();
    let profiles = Profiles::builtin();
    let verified = profiles.iter().filter(|profile| profile.verified);
    for profile in verified.filter(|profile| !profile.command.is_empty()) {
        let recorded = &index[&format!("{}-ok", profile.name)];
        let known = profile.known_version.as_deref();
        assert_eq!(recorded["version"].as_str(), known, "{}", profile.name);
    }
}

/// Agents that print plain text, whose errors come with any exit code.
#[test]
fn recorded_text_is_understood() {
    let profiles = Profiles::builtin();
    let spec = PromiseSpec {
        done: Some("COMPLETE".into()),
        abort: Some("BLOCKED".into()),
        mode: PromiseMatch::Line,
    };
    let mut wrong = String::new();
    for (agent, case) in names() {
        let profile = profiles.get(&agent).unwrap();
        if profile.stream.is_understood() {
            continue;
        }
        let index = fs::read_to_string(folder().join("index.json")).unwrap();
        let index: BTreeMap<String, serde_json::Value> = serde_json::from_str(&index).unwrap();
        let exit = &index[&format!("{agent}-{case}")]["exit"];
        let (exit, by) = match exit.as_i64() {
            Some(code) => (Some(ExitStatus::Code(code as i32)), EndedBy::Exit),
            None => (None, EndedBy::Idle),
        };
        let prompt = "Write a file, then finish.\nPrint <promise>COMPLETE</promise> when done.";
        let mut reader = RunReader::plain(&spec, prompt).with_errors(&profile.error_starts);
        for (source, ending) in [(Source::Stdout, "txt"), (Source::Stderr, "stderr")] {
            let file = folder().join(format!("{agent}-{case}.{ending}"));
            let bytes = fs::read(file).unwrap_or_default();
            reader.push(source, &bytes, &mut Vec::new());
        }
        let report = reader.finish(exit, by, now(), &TimeZone::UTC);
        let limit = report.limit.map(|limit| limit.kind);
        let want = match (agent.as_str(), case.as_str()) {
            (_, "ok" | "tool" | "tool-fails" | "edit") => (true, false, None),
            (_, "blocked") => (false, true, None),
            (_, "401") => (false, false, Some(Login)),
            ("aider", "429") => (false, false, Some(Rate)),
            ("aider", "usage-limit") => (false, false, Some(Usage)),
            ("aider", "500") => (false, false, Some(Overload)),
            // It tries again without a word.
            _ => (false, false, None),
        };
        let got = (report.claim.is_some(), report.abort.is_some(), limit);
        if got != want {
            wrong += &format!("{agent}-{case}: {want:?} expected, {got:?} seen\n");
        }
        if case == "context" && report.error.is_none() && exit.is_some_and(ExitStatus::is_success) {
            wrong += &format!("{agent}-{case}: no error\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
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
        let run = recordings.iter().find(|(a, c, _)| a == agent && c == case);
        let (_, _, summary) = run.unwrap();
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
