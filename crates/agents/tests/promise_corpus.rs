//! The detector against the labelled corpus: every label must hold, however the bytes arrive.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and reads its corpus from files"
)]

use std::fs;
use std::path::PathBuf;

use descartes_agents::promise::{
    Claim, ClaimKind, Detector, NearMisses, PromiseMatch, PromiseSpec,
};
use serde::Deserialize;

/// Streams up to this length are cut in two at every byte.
const SHORT: usize = 160;

/// Streams beyond this length do not arrive byte by byte.
const LONG: usize = 100_000;

/// Of a line that is repeated, so many are split: each further one is met as those before it were.
const REPEATED: usize = 3_000;

/// Written from the contract alone.
const HELD_OUT: [&str; 3] = [
    "held-out.jsonl",
    "held-out-plain.jsonl",
    "held-out-2-plain.jsonl",
];

#[derive(Deserialize)]
struct Case {
    id: String,
    mode: PromiseMatch,
    promise: String,
    abort: Option<String>,
    prompt: String,
    repeat: Option<Repeat>,
    stdout: String,
    stderr: Option<String>,
    encoding: Encoding,
    expect: Expect,
    /// Whether there is a near miss, where the case says so.
    near: Option<bool>,
    /// Whether the agent was ended by somebody else.
    #[serde(default)]
    cut: bool,
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
    fn spec(&self) -> PromiseSpec {
        let (done, abort) = (Some(self.promise.clone()), self.abort.clone());
        PromiseSpec {
            done,
            abort,
            mode: self.mode,
        }
    }

    fn stdout(&self) -> Vec<u8> {
        self.stdout_of(usize::MAX)
    }

    /// With a line that is repeated at most so often.
    fn stdout_of(&self, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(Repeat { before, line }) = &self.repeat {
            bytes.extend_from_slice(format!("{line}\n").repeat((*before).min(most)).as_bytes());
        }
        bytes.extend(self.decode(&self.stdout));
        bytes
    }

    fn stderr(&self) -> Vec<u8> {
        self.decode(self.stderr.as_deref().unwrap_or_default())
    }

    fn decode(&self, text: &str) -> Vec<u8> {
        let hex = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        match self.encoding {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Hex => text.as_bytes().chunks(2).map(hex).collect(),
        }
    }

    fn detector(&self) -> Detector {
        Detector::new(&self.spec(), &self.prompt)
    }

    /// What a detector that has seen nothing yet finds. It is copied: making one costs more than most streams.
    fn claims<'a>(
        &self,
        fresh: &Detector,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<Claim>, NearMisses) {
        let mut detector = fresh.clone();
        let mut claims = Vec::new();
        for part in parts {
            detector.push(part, &mut claims);
        }
        match self.cut {
            true => detector.cut_off(&mut claims),
            false => detector.finish(&mut claims),
        }
        (claims, detector.near())
    }

    /// What is claimed: the last word on stdout, or else on stderr.
    fn found(&self) -> (Expect, u64) {
        let fresh = self.detector();
        let (out, out_near) = self.claims(&fresh, [&*self.stdout()]);
        let (err, err_near) = self.claims(&fresh, [&*self.stderr()]);
        let claim = out.last().or(err.last());
        let found = match claim.map(|claim| claim.kind) {
            Some(ClaimKind::Done) => Expect::Done,
            Some(ClaimKind::Abort) => Expect::Abort,
            None => Expect::None,
        };
        (found, out_near.count + err_near.count)
    }

    /// The claims must be the same ones for every way to cut the bytes.
    fn assert_split_alike(&self) {
        let fresh = self.detector();
        for stream in [self.stdout_of(REPEATED), self.stderr()] {
            let whole = self.claims(&fresh, [&*stream]);
            let size = if stream.len() <= LONG { 1 } else { 61 };
            let parts = self.claims(&fresh, stream.chunks(size));
            assert_eq!(parts, whole, "{}: by {size} bytes", self.id);
            for cut in 0..=if stream.len() <= SHORT {
                stream.len()
            } else {
                0
            } {
                let (left, right) = stream.split_at(cut);
                assert_eq!(
                    self.claims(&fresh, [left, right]),
                    whole,
                    "{}: cut at {cut}",
                    self.id
                );
            }
        }
    }
}

fn corpus(name: &str) -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/promise")
        .join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn assert_labels(names: &[&str]) {
    let mut wrong = Vec::new();
    let cases: Vec<Case> = names.iter().flat_map(|name| corpus(name)).collect();
    for case in &cases {
        let (found, near) = case.found();
        if let Some(wanted) = case.near
            && wanted != (near > 0)
        {
            let (id, why) = (&case.id, &case.why);
            wrong.push(format!("{id}: near misses: {near}, not {wanted}: {why}"));
        }
        if found != case.expect {
            wrong.push(format!(
                "{}: {found:?}, not {:?}: {}",
                case.id, case.expect, case.why
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_label_of_the_plain_corpus_holds() {
    assert_labels(&["plain.jsonl"]);
}

/// Cases that were not looked at while the rules were written.
#[test]
fn every_label_of_the_held_out_corpus_holds() {
    assert_labels(&HELD_OUT);
}

#[test]
fn no_split_of_a_plain_stream_changes_its_claims() {
    corpus("plain.jsonl")
        .iter()
        .for_each(Case::assert_split_alike);
}

#[test]
fn no_split_of_a_held_out_stream_changes_its_claims() {
    for name in HELD_OUT {
        corpus(name).iter().for_each(Case::assert_split_alike);
    }
}
