//! M4: the labelled corpus of claims and of what only looks like one, read by the detector and by
//! the simple rules that loops are usually built on.

use std::fs;

use descartes_agents::agent::{ResultState, RunSummary, StreamKind, parser};
use descartes_agents::promise::{Claim, ClaimKind, Detector, PromiseSpec};
use descartes_kernel::event::EndedBy;
use serde_json::{Value, json};

use crate::lab::{Lab, Row, Rows, Trouble, Verdict};
use crate::shell::root;

/// The sets: what each is, and its files.
const SETS: [(&str, &[&str]); 4] = [
    (
        "plain text, held out",
        &["held-out", "held-out-plain", "held-out-2-plain"],
    ),
    (
        "event streams of four agents, held out",
        &[
            "held-out-claude",
            "held-out-codex",
            "held-out-gemini",
            "held-out-opencode",
            "held-out-2-claude",
            "held-out-2-codex",
            "held-out-2-gemini",
            "held-out-2-opencode",
        ],
    ),
    ("plain text, known to the rules", &["plain"]),
    (
        "event streams of four agents, known to the rules",
        &[
            "streams-claude",
            "streams-codex",
            "streams-gemini",
            "streams-opencode",
        ],
    ),
];

/// Who reads: us, and rules that need no detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Ours,
    /// The tag anywhere in the output: `grep -F`.
    Anywhere,
    /// A line that is the tag.
    OwnLine,
    /// The last line is the tag.
    LastLine,
}

impl Reader {
    const ALL: [(Self, &str); 4] = [
        (Self::Ours, "descartes"),
        (Self::Anywhere, "tag anywhere (`grep -F`)"),
        (Self::OwnLine, "tag alone on a line"),
        (Self::LastLine, "tag as the last line"),
    ];
}

struct Case {
    value: Value,
}

impl Case {
    fn text(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or_default()
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        let text = self.text(key).as_bytes();
        if self.text("encoding") == "utf8" {
            return text.to_vec();
        }
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
        text.chunks(2)
            .map(|pair| digit(pair[0]) << 4 | pair.get(1).map_or(0, |low| digit(*low)))
            .collect()
    }

    fn stdout(&self) -> Vec<u8> {
        let repeat = &self.value["repeat"];
        let count = repeat["before"].as_u64().unwrap_or(0) as usize;
        let line = format!("{}\n", repeat["line"].as_str().unwrap_or_default());
        let mut bytes = line.repeat(count).into_bytes();
        bytes.extend(self.bytes("stdout"));
        bytes
    }

    fn spec(&self) -> Result<PromiseSpec, Trouble> {
        let mode = serde_json::from_value(self.value["mode"].clone());
        Ok(PromiseSpec {
            done: Some(self.text("promise").to_owned()),
            abort: self.value["abort"].as_str().map(str::to_owned),
            mode: mode.map_err(|error| format!("{}: {error}", self.text("id")))?,
        })
    }

    fn is_done(&self) -> bool {
        self.text("expect") == "done"
    }

    /// Whether this reader takes it for the end of the work.
    fn heard(&self, reader: Reader) -> Result<bool, Trouble> {
        let out = || String::from_utf8_lossy(&self.stdout()).into_owned();
        let tag = format!("<promise>{}</promise>", self.text("promise"));
        Ok(match reader {
            Reader::Ours => self.ours()? == Some(ClaimKind::Done),
            Reader::Anywhere => out().contains(&tag),
            Reader::OwnLine => out().lines().any(|line| line.trim() == tag),
            Reader::LastLine => out()
                .trim_end()
                .lines()
                .last()
                .is_some_and(|line| line.trim() == tag),
        })
    }

    fn ours(&self) -> Result<Option<ClaimKind>, Trouble> {
        let spec = self.spec()?;
        if self.value["agent"].is_string() {
            return self.in_stream(&spec);
        }
        let claims = |bytes: &[u8]| -> Vec<Claim> {
            let mut detector = Detector::new(&spec, self.text("prompt"));
            let mut claims = Vec::new();
            detector.push(bytes, &mut claims);
            match self.value["cut"].as_bool() {
                Some(true) => detector.cut_off(&mut claims),
                _ => detector.finish(&mut claims),
            }
            claims
        };
        let all = [claims(&self.bytes("stderr")), claims(&self.stdout())].concat();
        Ok(all.last().map(|claim| claim.kind))
    }

    fn in_stream(&self, spec: &PromiseSpec) -> Result<Option<ClaimKind>, Trouble> {
        let kind: StreamKind =
            serde_json::from_value(self.value["agent"].clone()).map_err(|e| e.to_string())?;
        let mut parser = parser(kind, None).map_err(|error| error.to_string())?;
        let mut events = Vec::new();
        parser.push(&self.stdout(), &mut events);
        parser.finish(&mut events);
        let mut summary = RunSummary::searching(spec);
        events.iter().for_each(|event| summary.push(event));
        summary.finish(parser.trouble());
        let claim = summary
            .search()
            .and_then(|search| search.end(EndedBy::Exit).0);
        // What an agent said before it failed is not its last word.
        let failed = matches!(summary.result(), ResultState::Error(_));
        Ok(claim.filter(|_| !failed).map(|claim| claim.kind))
    }
}

fn load(files: &[&str]) -> Result<Vec<Case>, Trouble> {
    let folder = root().join("crates/agents/tests/corpus/promise");
    let mut cases = Vec::new();
    for file in files {
        let path = folder.join(format!("{file}.jsonl"));
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in text.lines() {
            let value = serde_json::from_str(line).map_err(|error| format!("{file}: {error}"))?;
            cases.push(Case { value });
        }
    }
    Ok(cases)
}

/// Takes it.
pub fn take(_: &Lab) -> Rows {
    let mut rows = Vec::new();
    for (set, files) in SETS {
        // The other ways to match are ours alone: no simple rule has a counterpart.
        let all = load(files)?;
        rows.push(row("descartes, every mode", set, Reader::Ours, &all)?);
        let tagged: Vec<Case> = all
            .into_iter()
            .filter(|case| case.text("mode") == "tagged")
            .collect();
        for (reader, name) in Reader::ALL {
            rows.push(row(name, set, reader, &tagged)?);
        }
    }
    Ok(rows)
}

fn row(name: &str, set: &str, reader: Reader, cases: &[Case]) -> Result<Row, Trouble> {
    let (mut fooled, mut missed, mut claims) = (Vec::new(), Vec::new(), 0);
    for case in cases {
        claims += usize::from(case.is_done());
        match (case.is_done(), case.heard(reader)?) {
            (false, true) => fooled.push(case.text("id").to_owned()),
            (true, false) => missed.push(case.text("id").to_owned()),
            _ => {}
        }
    }
    let others = cases.len() - claims;
    let wrong = [fooled.clone(), missed.clone()].concat();
    let mut row = Row::count("M4", format!("{name}: {set}"), cases.len() as u64, &wrong);
    row.ours = format!(
        "{} of {others} falsely done, {} of {claims} missed",
        fooled.len(),
        missed.len()
    );
    row.bar = "0 and 0".to_owned();
    row.raw = json!({
        "reader": name, "set": set, "others": others, "claims": claims,
        "fooled": fooled, "missed": missed,
    });
    if reader != Reader::Ours {
        (row.bar, row.verdict) = ("–".to_owned(), Verdict::Shown);
    }
    Ok(row)
}
