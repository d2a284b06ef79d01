//! Many loops at once under the terminal view: what the view costs, and that no loop loses a byte
//! or a record by it.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use descartes_store::journal::JournalReader;
use descartes_testkit::agent::flood::{BLOCK, Pattern};
use descartes_testkit::wait;
use serde_json::Value;

use super::views::{self, MEASURE};
use crate::lab::trial::Running;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, seen};

/// Longer than a loop needs to say what it has to say beside all others.
const LONG: Duration = Duration::from_secs(180);
/// What the scripted agent says at the end.
const PROMISE: &[u8] = b"<promise>COMPLETE</promise>\n";

/// How many loops do what.
#[derive(Clone, Copy)]
struct Crowd {
    silent: usize,
    loud: usize,
    /// Those whose output is known.
    told: usize,
    /// MiB that each of these prints.
    mib: u64,
}

impl Crowd {
    /// Those that go on until they are cancelled.
    fn endless(self) -> usize {
        self.silent + self.loud
    }

    fn bytes(self) -> u64 {
        self.mib << 20
    }
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let short = Crowd {
        silent: 6,
        loud: 3,
        told: 1,
        mib: 5,
    };
    let long = Crowd {
        silent: 30,
        loud: 20,
        told: 3,
        mib: 50,
    };
    let crowd = lab.form.pick(short, long);
    let trial = Trial::new(lab);
    for number in 0..crowd.endless() {
        start(&trial, crowd, number)?;
    }
    let pty = views::watch(&trial, &["watch"]);
    let all = format!("{} running", crowd.endless());
    views::until(&pty, Instant::now(), &all)?;
    // The newest is chosen, and it prints.
    views::until(&pty, Instant::now(), "following")?;
    let mut told = tell(&trial, crowd)?;
    let cpu = views::share(pty.pid(), lab.form.pick(5, 30));
    let codes: Vec<i32> = told
        .iter_mut()
        .map(|host| host.code_within(LONG))
        .collect::<Result<_, _>>()?;
    views::quit(pty)?;

    let what = format!("{} loops, {} printing hard", crowd.endless(), crowd.loud);
    let mut lost = cancel(&trial, crowd);
    lost.extend(untrue(&trial, crowd));
    lost.extend(
        codes
            .iter()
            .filter(|code| **code != 0)
            .map(|code| format!("a loop that did its work ended with {code}")),
    );
    Ok(vec![
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{what}: processor of the view"),
            (cpu, "%"),
            10.0,
        ),
        Row::count(
            MEASURE,
            format!(
                "{what}, and {} × {} MiB more while the view is open: bytes lost",
                crowd.told, crowd.mib
            ),
            crowd.told as u64,
            &match lost_bytes(&trial, crowd)? {
                0 => Vec::new(),
                bytes => vec![format!("{bytes} bytes")],
            },
        ),
        Row::count(
            MEASURE,
            format!("{what}: journals that are whole and true, and nothing left after cancel"),
            (crowd.endless() + crowd.told) as u64,
            &lost,
        ),
    ])
}

/// Starts one that goes on until it is cancelled.
fn start(trial: &Trial<'_>, crowd: Crowd, number: usize) -> Result<(), Trouble> {
    let script = match number < crowd.silent {
        true => "hang",
        false => "flood 1000GB lines",
    };
    let (name, file) = (endless(number), file(number));
    let flags = [
        &["--detach", "--max-log", "64MB", "--kill-grace", "0s"][..],
        &["--name", &name, "--state-file", &file],
    ]
    .concat();
    let started = trial.run(trial.start(script, &flags))?;
    match started.code() {
        Some(0) => Ok(()),
        _ => Err(started.to_string()),
    }
}

fn endless(number: usize) -> String {
    format!("endless-{number}")
}

fn told(number: usize) -> String {
    format!("told-{number}")
}

fn file(number: usize) -> String {
    format!("loop-{number}.json")
}

/// Starts those whose output is known.
fn tell(trial: &Trial<'_>, crowd: Crowd) -> Result<Vec<Running>, Trouble> {
    let script = format!("flood {} lines\npromise", crowd.bytes());
    let start = |number: usize| {
        let (name, file) = (told(number), file(crowd.endless() + number));
        let flags = [
            &["--max-log", "unlimited", "--max-iterations", "1"][..],
            &["--name", &name, "--state-file", &file],
        ]
        .concat();
        trial.spawn(trial.start(&script, &flags))
    };
    (0..crowd.told).map(start).collect()
}

/// Cancels all that are left; what went wrong with it.
fn cancel(trial: &Trial<'_>, crowd: Crowd) -> Vec<String> {
    let mut lost = Vec::new();
    // Those that print first: the others are spoken to in peace.
    for number in (0..crowd.endless()).rev() {
        let words = ["loop", "cancel", &endless(number)];
        match trial.run(trial.descartes(&words)) {
            Ok(ended) if ended.code() == Some(0) => {}
            Ok(ended) => lost.push(format!("{}: {ended}", endless(number))),
            Err(trouble) => lost.push(format!("{}: {trouble}", endless(number))),
        }
    }
    let mut left = Vec::new();
    let mut gone = || {
        left = trial.world.processes();
        left.is_empty().then_some(())
    };
    if wait::poll(Duration::from_secs(30), &mut gone).is_none() {
        lost.extend(left.iter().map(|process| format!("left over: {process:?}")));
    }
    lost
}

/// Journals that are not whole, or tell another end than there was; and those that are missing.
fn untrue(trial: &Trial<'_>, crowd: Crowd) -> Vec<String> {
    let mut expected: Vec<(String, &str)> = Vec::new();
    expected.extend((0..crowd.endless()).map(|number| (endless(number), "user_cancelled")));
    expected.extend((0..crowd.told).map(|number| (told(number), "completion_promise_detected")));
    let journals = trial.journals();
    let mut wrong = Vec::new();
    for path in &journals {
        match whole(path) {
            Err(trouble) => wrong.push(trouble),
            Ok((name, end)) => {
                let place = expected.iter().position(|(known, _)| *known == name);
                match place.map(|place| expected.swap_remove(place)) {
                    Some((_, true_end)) if end == true_end => {}
                    _ => wrong.push(format!("{name} tells of its end: {end}")),
                }
            }
        }
    }
    wrong.extend(
        expected
            .iter()
            .map(|(name, _)| format!("{name}: no journal")),
    );
    wrong
}

/// The name and the end of a loop, out of a journal of which every record is there.
fn whole(path: &Path) -> Result<(String, String), Trouble> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = fs::read(path).map_err(|error| said(&error))?;
    // Checksums, and nothing after the last whole line.
    let mut reader = JournalReader::open(path).map_err(|error| said(&error))?;
    reader.read_new().map_err(|error| said(&error))?;
    if reader.offset() != bytes.len() as u64 {
        return Err(said(&"its end is torn"));
    }
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let records: Vec<Value> = lines
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()
        .map_err(|error| said(&error))?;
    let wrong = seen::wrong(&[], &bytes, &records).or_else(|| seen::open_ends(&records));
    if let Some(wrong) = wrong {
        return Err(said(&wrong));
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("none").to_owned();
    let name = text(records.first().map(|record| &record["name"]));
    // Who asked for the end is answered after it.
    let end = records
        .iter()
        .rfind(|record| record["kind"] == "loop_finished");
    let end = text(end.map(|record| &record["reason"]["type"]));
    Ok((name, end))
}

/// Bytes of known output that are not where they belong in the logs.
fn lost_bytes(trial: &Trial<'_>, crowd: Crowd) -> Result<u64, Trouble> {
    let mut lost = 0;
    let mut found = 0;
    for journal in trial.journals() {
        let name = whole(&journal).map_or_else(|_| String::new(), |(name, _)| name);
        if !name.starts_with("told") {
            continue;
        }
        found += 1;
        let log = journal.with_file_name("runs").join("0001/stdout.log");
        let kept = kept(&log, crowd.bytes()).map_err(|error| format!("{name}: {error}"))?;
        lost += crowd.bytes() + PROMISE.len() as u64 - kept;
    }
    let missing = crowd.told.saturating_sub(found) as u64;
    Ok(lost + missing * crowd.bytes())
}

/// How many bytes of a flood and the promise after it a log holds, up to the first that differs.
fn kept(log: &Path, size: u64) -> std::io::Result<u64> {
    let mut file = File::open(log)?;
    let block = Pattern::Lines.block();
    let mut read = Vec::with_capacity(BLOCK);
    for offset in (0..size).step_by(BLOCK) {
        read.clear();
        file.by_ref().take(BLOCK as u64).read_to_end(&mut read)?;
        if read != block {
            let same = read.iter().zip(&block).take_while(|(a, b)| a == b);
            return Ok(offset + same.count() as u64);
        }
    }
    read.clear();
    file.read_to_end(&mut read)?;
    Ok(size
        + if read == PROMISE {
            PROMISE.len() as u64
        } else {
            0
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_missing_changed_or_too_many_are_not_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let log = folder.path().join("stdout.log");
        let size = 2 * BLOCK as u64;
        let kept_of = |bytes: &[u8]| {
            fs::write(&log, bytes).unwrap();
            kept(&log, size).unwrap()
        };
        let whole = [Pattern::Lines.block().repeat(2), PROMISE.to_vec()].concat();
        assert_eq!(kept_of(&whole), whole.len() as u64);
        assert_eq!(kept_of(&whole[..BLOCK + 7]), BLOCK as u64 + 7);
        assert_eq!(kept_of(&whole[..2 * BLOCK]), size);
        assert_eq!(kept_of(&[&whole[..], b"more"].concat()), size);
        let mut changed = whole.clone();
        changed[BLOCK + 100] ^= 1;
        assert_eq!(kept_of(&changed), BLOCK as u64 + 100);
    }
}
