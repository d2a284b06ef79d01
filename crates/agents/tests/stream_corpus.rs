//! The stream parsers against the labelled corpus: from bytes to the claim in the agent's
//! final message, every label must hold, however the bytes arrive.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and reads its corpus from files"
)]

use std::fs;
use std::path::PathBuf;

use descartes_agents::agent::{ResultState, RunSummary, StreamKind, parser};
use descartes_agents::promise::{ClaimKind, PromiseMatch, PromiseSpec};
use descartes_agents::run::EndedBy;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    agent: StreamKind,
    mode: PromiseMatch,
    promise: String,
    abort: Option<String>,
    repeat: Option<Repeat>,
    stdout: String,
    encoding: Encoding,
    expect: Expect,
    /// Whether there is a near miss, where the case says so.
    near: Option<bool>,
    why: String,
}

#[derive(Deserialize)]
struct Repeat {
    before: usize,
    line: String,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Utf8,
    Hex,
}

#[derive(Deserialize, PartialEq, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Done,
    Abort,
    None,
}

impl Case {
    fn stdout(&self) -> Vec<u8> {
        let hex = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let mut bytes = Vec::new();
        if let Some(Repeat { before, line }) = &self.repeat {
            bytes.extend_from_slice(format!("{line}\n").repeat(*before).as_bytes());
        }
        match self.encoding {
            Encoding::Utf8 => bytes.extend_from_slice(self.stdout.as_bytes()),
            Encoding::Hex => bytes.extend(self.stdout.as_bytes().chunks(2).map(hex)),
        }
        bytes
    }

    fn summary<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> RunSummary {
        let mut parser = parser(self.agent, None).unwrap();
        let mut events = Vec::new();
        for part in parts {
            parser.push(part, &mut events);
        }
        parser.finish(&mut events);
        let mut summary = RunSummary::searching(&self.spec());
        events.iter().for_each(|event| summary.push(event));
        summary.finish(parser.trouble());
        summary
    }

    fn spec(&self) -> PromiseSpec {
        PromiseSpec {
            done: Some(self.promise.clone()),
            abort: self.abort.clone(),
            mode: self.mode,
        }
    }

    fn found(&self, mut summary: RunSummary) -> (Expect, u64) {
        let (claim, near) = summary.search().unwrap().end(EndedBy::Exit);
        // What an agent said before it failed is not its last word.
        let claim = claim.filter(|_| !matches!(summary.result(), ResultState::Error(_)));
        let found = match claim.map(|claim| claim.kind) {
            Some(ClaimKind::Done) => Expect::Done,
            Some(ClaimKind::Abort) => Expect::Abort,
            None => Expect::None,
        };
        (found, near.count)
    }
}

/// Those known to the rules, and those written from the contract alone.
const SETS: [(&str, usize); 3] = [("streams", 300), ("held-out", 300), ("held-out-2", 80)];

fn cases(set: &str) -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/promise");
    let mut cases = Vec::new();
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let text = fs::read_to_string(folder.join(format!("{set}-{agent}.jsonl"))).unwrap();
        cases.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Case>(line).unwrap()),
        );
    }
    cases
}

#[test]
fn every_label_holds() {
    for (set, at_least) in SETS {
        assert_labels(set, at_least);
    }
}

fn assert_labels(set: &str, at_least: usize) {
    let cases = cases(set);
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let (mut false_claims, mut missed, mut right) = (0, 0, 0);
    let mut wrong = String::new();
    for case in &cases {
        let (found, near) = case.found(case.summary([&*case.stdout()]));
        if let Some(wanted) = case.near
            && wanted != (near > 0)
        {
            let (id, why) = (&case.id, &case.why);
            wrong += &format!("{id}: near misses: {near}, not {wanted} ({why})\n");
        }
        match (case.expect, found) {
            (want, got) if want == got => right += usize::from(want != Expect::None),
            (Expect::None, _) => false_claims += 1,
            (_, Expect::None) => missed += 1,
            _ => (false_claims, missed) = (false_claims + 1, missed + 1),
        }
        if found != case.expect {
            let (id, want, why) = (&case.id, case.expect, &case.why);
            wrong += &format!("{id}: {want:?} expected, {found:?} found ({why})\n");
        }
    }
    assert!(
        wrong.is_empty(),
        "{right} right, {false_claims} false claims, {missed} missed of {}:\n{wrong}",
        cases.len()
    );
}

#[test]
fn a_split_of_the_bytes_changes_nothing() {
    for case in SETS.into_iter().flat_map(|(set, _)| cases(set)) {
        let stream = case.stdout();
        let whole = case.summary([&*stream]);
        for size in [1, 7, 64, 4096] {
            assert_eq!(
                case.summary(stream.chunks(size)),
                whole,
                "{} by {size}",
                case.id
            );
        }
    }
}
