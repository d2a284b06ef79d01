//! What is fed, and what must hold whatever it is fed with.

use std::fs;
use std::path::PathBuf;

use descartes_agents::agent::{AgentEvent, StreamKind, parser};
use descartes_agents::promise::{Claim, Detector, PromiseMatch, PromiseSpec};
use descartes_agents::provider_limit;
use descartes_kernel::control::Request;
use descartes_plans::graph::TaskStatus;
use descartes_plans::scud::{self, Form};
use descartes_plans::{roadmap, spec};
use descartes_store::config::{ConfigPlaces, Layers};
use descartes_store::journal::{Journal, JournalReader};
use descartes_store::state_file::StateFile;
use descartes_text::units;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tempfile::TempDir;

/// Something that reads bytes.
pub struct Target {
    /// As typed.
    pub name: &'static str,
    /// Where its corpus lies.
    pub seeds: &'static [Seeds],
    /// What must hold.
    pub check: fn(&[u8]) -> Result<(), String>,
}

/// Files of a folder, by the beginning of their names.
pub struct Seeds {
    pub folder: &'static str,
    pub begins: &'static str,
}

const fn seeds(folder: &'static str, begins: &'static str) -> Seeds {
    Seeds { folder, begins }
}

const STREAMS: &str = "crates/agents/tests/fixtures/streams";
const SCUD: &str = "crates/plans/tests/fixtures/scud";

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "claude",
        seeds: &[seeds(STREAMS, "claude")],
        check: |bytes| stream(StreamKind::Claude, bytes),
    },
    Target {
        name: "codex",
        seeds: &[seeds(STREAMS, "codex")],
        check: |bytes| stream(StreamKind::Codex, bytes),
    },
    Target {
        name: "gemini",
        seeds: &[seeds(STREAMS, "gemini")],
        check: |bytes| stream(StreamKind::Gemini, bytes),
    },
    Target {
        name: "opencode",
        seeds: &[seeds(STREAMS, "opencode")],
        check: |bytes| stream(StreamKind::OpenCode, bytes),
    },
    Target {
        name: "promise",
        seeds: &[seeds("fuzz/corpus/promise", "")],
        check: promise,
    },
    Target {
        name: "limits",
        seeds: &[seeds("fuzz/corpus/limits", "")],
        check: limits,
    },
    Target {
        name: "scg",
        seeds: &[seeds(SCUD, "harbour"), seeds(SCUD, "odd")],
        check: |bytes| task_file(bytes, &Form::Scg),
    },
    Target {
        name: "scud-json",
        seeds: &[seeds(SCUD, "tasks"), seeds(SCUD, "pier")],
        check: |bytes| {
            task_file(bytes, &Form::TagMap)?;
            let tag = "pier".to_owned();
            task_file(bytes, &Form::OneTag { tag })
        },
    },
    Target {
        name: "roadmap",
        seeds: &[seeds("crates/plans/tests/fixtures/roadmap", "")],
        check: roadmap_file,
    },
    Target {
        name: "plan",
        seeds: &[seeds("fuzz/corpus/plan", "")],
        check: plan,
    },
    Target {
        name: "config",
        seeds: &[seeds("fuzz/corpus/config", "")],
        check: config,
    },
    Target {
        name: "journal",
        seeds: &[seeds("fuzz/corpus/journal", "")],
        check: journal,
    },
    Target {
        name: "state",
        seeds: &[seeds("fuzz/corpus/state", "")],
        check: state_file,
    },
    Target {
        name: "control",
        seeds: &[seeds("fuzz/corpus/control", "")],
        check: control,
    },
    Target {
        name: "units",
        seeds: &[seeds("fuzz/corpus/units", "")],
        check: amounts,
    },
];

/// Pieces of odd sizes that depend on the bytes alone.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    let mut step = bytes.len() % 7 + 1;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(step.min(rest.len()));
        rest = after;
        step = step * 5 % 97 + 1;
        Some(piece)
    })
}

fn same<T: PartialEq + std::fmt::Debug>(whole: &T, split: &T) -> Result<(), String> {
    if whole == split {
        Ok(())
    } else {
        Err("split bytes give another result".to_owned())
    }
}

fn stream(kind: StreamKind, bytes: &[u8]) -> Result<(), String> {
    let read = |parts: &mut dyn Iterator<Item = &[u8]>| {
        let mut parser = parser(kind, None).map_err(|error| error.to_string())?;
        let mut events: Vec<AgentEvent> = Vec::new();
        for part in parts {
            parser.push(part, &mut events);
        }
        parser.finish(&mut events);
        Ok::<_, String>((events, parser.trouble().clone()))
    };
    same(
        &read(&mut std::iter::once(bytes))?,
        &read(&mut pieces(bytes))?,
    )
}

fn promise(bytes: &[u8]) -> Result<(), String> {
    for mode in [
        PromiseMatch::Tagged,
        PromiseMatch::Line,
        PromiseMatch::Anywhere,
    ] {
        let spec = PromiseSpec {
            done: Some("COMPLETE".to_owned()),
            abort: Some("BLOCKED".to_owned()),
            mode,
        };
        let find = |parts: &mut dyn Iterator<Item = &[u8]>| {
            let prompt = "Mend the gate.\nSay <promise>COMPLETE</promise> when it is mended.\n";
            let mut detector = Detector::new(&spec, prompt);
            let mut claims: Vec<Claim> = Vec::new();
            for part in parts {
                detector.push(part, &mut claims);
            }
            detector.finish(&mut claims);
            claims
        };
        same(
            &find(&mut std::iter::once(bytes)),
            &find(&mut pieces(bytes)),
        )?;
    }
    Ok(())
}

/// Noon of a day on which the clocks change.
const NOON: i64 = 1_774_782_000;

fn limits(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let now = Timestamp::from_second(NOON).map_err(|error| error.to_string())?;
    let zone = TimeZone::get("Europe/Berlin").map_err(|error| error.to_string())?;
    let _ = provider_limit::kind_in_error(&text);
    for told in [
        provider_limit::told(&text, now, &zone),
        provider_limit::told_in_error(&text, now, &zone),
    ]
    .into_iter()
    .flatten()
    {
        if told.words.len() > 64 * 1024 {
            return Err("a limit quotes without an end".to_owned());
        }
    }
    Ok(())
}

fn task_file(bytes: &[u8], form: &Form) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    let Ok(file) = scud::parse(text, form) else {
        return Ok(());
    };
    let now = Timestamp::from_second(NOON).map_err(|error| error.to_string())?;
    for tag in file.tags.iter().take(3) {
        for task in tag.tasks.iter().take(3) {
            let new = TaskStatus::InProgress;
            let Ok(edit) = scud::set_status(text, form, &tag.name, &task.id, None, new, now) else {
                continue;
            };
            let after = scud::parse(&edit.new_text, form)
                .map_err(|error| format!("after an edit of {}: {error}", task.id))?;
            let found = after.tag(&tag.name).and_then(|tag| tag.task(&task.id));
            if found.is_none_or(|task| task.status != new) {
                return Err(format!("the edit of {} is not there", task.id));
            }
        }
    }
    Ok(())
}

fn roadmap_file(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    let _ = roadmap::check(text);
    let before = roadmap::parse(text);
    let _ = before.graph();
    for task in before.tasks.iter().take(4) {
        let Ok(edit) = roadmap::tick(text, &task.id) else {
            continue;
        };
        if edit.new_text.len().abs_diff(text.len()) > 3 {
            return Err(format!("ticking {} changed more than a character", task.id));
        }
        let after = roadmap::parse(&edit.new_text);
        let found = after.tasks.iter().find(|other| other.id == task.id);
        if found.is_none_or(|task| task.mark != roadmap::CheckMark::Done) {
            return Err(format!("{} is not ticked", task.id));
        }
        if after.tasks.len() != before.tasks.len() {
            return Err(format!("ticking {} lost a task", task.id));
        }
    }
    Ok(())
}

fn plan(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    for (id, title) in [("3", "Wire up the bell"), ("", ""), ("auth-1", "Über uns")] {
        let section = spec::find_section(&text, id, title);
        if section.is_some_and(|section| !text.contains(section)) {
            return Err("a section that is not in the plan".to_owned());
        }
    }
    Ok(())
}

/// A file of its own, made anew for each input.
fn in_file(
    name: &str,
    bytes: &[u8],
    check: impl FnOnce(PathBuf) -> Result<(), String>,
) -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let path = folder.path().join(name);
    fs::write(&path, bytes).map_err(|error| error.to_string())?;
    check(path)
}

fn config(bytes: &[u8]) -> Result<(), String> {
    in_file("config.toml", bytes, |path| {
        let places = ConfigPlaces {
            project_file: Some(path),
            ..ConfigPlaces::default()
        };
        match Layers::load(&places) {
            Ok(layers) => layers
                .rows()
                .iter()
                .try_for_each(|row| match row.key.is_empty() {
                    true => Err("a row without a key".to_owned()),
                    false => Ok(()),
                }),
            Err(error) if error.to_string().is_empty() => Err("an error without words".to_owned()),
            Err(_) => Ok(()),
        }
    })
}

/// Opening cuts off a torn end; what was read then is read again, and no more is cut.
fn journal(bytes: &[u8]) -> Result<(), String> {
    in_file("journal.jsonl", bytes, |path| {
        let read = |path: &PathBuf| {
            let mut reader = JournalReader::open(path).ok()?;
            reader.read_new().ok()
        };
        let seen = read(&path);
        let Ok((_, records, _)) = Journal::open(&path) else {
            return Ok(());
        };
        if seen.is_some_and(|seen| seen.len() > records.len()) {
            return Err("opening lost records that a reader had seen".to_owned());
        }
        match Journal::open(&path) {
            Ok((_, again, recovered)) if again.len() == records.len() => match recovered.cut {
                None => Ok(()),
                Some(_) => Err("a second opening cut again".to_owned()),
            },
            Ok(_) => Err("a second opening reads other records".to_owned()),
            Err(error) => Err(format!("a second opening fails: {error}")),
        }
    })
}

fn state_file(bytes: &[u8]) -> Result<(), String> {
    in_file("loop-state.json", bytes, |path| {
        let mut file = StateFile::at(&path).map_err(|error| error.to_string())?;
        match file.load() {
            Ok(loaded) if loaded.state.version.is_empty() => {
                Err("a state without a version was taken".to_owned())
            }
            _ => Ok(()),
        }
    })
}

fn control(bytes: &[u8]) -> Result<(), String> {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(request) = serde_json::from_slice::<Request>(line) else {
            continue;
        };
        let text = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
        let again: Request = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        same(&request, &again)?;
    }
    Ok(())
}

fn amounts(bytes: &[u8]) -> Result<(), String> {
    for line in String::from_utf8_lossy(bytes).lines() {
        let _ = (
            units::parse_usd(line),
            units::parse_count(line),
            units::parse_size(line),
        );
        if let Ok(duration) = units::parse_duration(line) {
            let shown = units::show_duration(duration);
            units::parse_duration(&shown).map_err(|error| format!("{line} → {shown}: {error}"))?;
        }
    }
    Ok(())
}
