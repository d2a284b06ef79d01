//! The verbs that print.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant, SystemTime};

use super::arguments::{Arguments, duration, missing};
use super::flood::{self, Pattern};
use super::output::Out;
use super::prompt::Source;
use super::text::unescape;
use super::{Trouble, dump};
use crate::units;

/// Prints; none when the verb is of another sort.
pub(super) fn speak(verb: &str, arguments: &Arguments<'_>) -> Option<Result<(), Trouble>> {
    let line = || format!("{}\n", arguments.text()).into_bytes();
    Some(match verb {
        "print" => Out::Stdout.write(&line()),
        "err" => Out::Stderr.write(&line()),
        "printf" => unescape(&arguments.text()).and_then(|bytes| Out::Stdout.write(&bytes)),
        "errf" => unescape(&arguments.text()).and_then(|bytes| Out::Stderr.write(&bytes)),
        "promise" => promise(&arguments.text()),
        "flush-split" => flush_split(arguments.clone()),
        "drip" => drip(arguments.clone()),
        "flood" => pour(arguments.clone()),
        "echo-prompt" => prompt(arguments.clone()).and_then(|bytes| Out::Stdout.write(&bytes)),
        "stream" => stream(arguments.clone()),
        "tty-check" => Out::Stdout.write(dump::terminals().as_bytes()),
        "close-stdout" => Out::Stdout.close(),
        "close-stderr" => Out::Stderr.close(),
        _ => return None,
    })
}

fn promise(text: &str) -> Result<(), Trouble> {
    let text = if text.is_empty() { "COMPLETE" } else { text };
    Out::Stdout.write(format!("<promise>{text}</promise>\n").as_bytes())
}

fn flush_split(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let cuts = arguments.take("each or offsets")?;
    let mut pause = Duration::from_millis(1);
    if let Some(rest) = arguments.rest.strip_prefix("pause ") {
        arguments.rest = rest;
        pause = duration(&arguments.take("a duration")?)?;
    }
    let bytes = unescape(&arguments.text())?;
    if cuts == "each" {
        return Out::Stdout.write_split(&bytes, 1..bytes.len(), pause);
    }
    let cuts: Option<Vec<usize>> = cuts.split(',').map(|cut| cut.parse().ok()).collect();
    Out::Stdout.write_split(
        &bytes,
        cuts.ok_or_else(|| missing("offsets"))?.into_iter(),
        pause,
    )
}

/// Lines at a steady pace, each with the time at which it was written.
fn drip(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let count = u32::from(arguments.take_number("a number of lines")?);
    let pace = duration(&arguments.take("a duration")?)?;
    let begun = Instant::now();
    for number in 1..=count {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_micros() as f64 / 1e3;
        Out::Stdout.write(format!("mark {now:.3}\n").as_bytes())?;
        std::thread::sleep((pace * number).saturating_sub(begun.elapsed()));
    }
    Ok(())
}

fn pour(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let size = units::size(&arguments.take("a size")?).ok_or_else(|| missing("a size"))?;
    let (mut pattern, mut out) = (Pattern::Lines, Out::Stdout);
    while let Ok(word) = arguments.take("") {
        match (Pattern::from_name(&word), word.as_str()) {
            (Some(named), _) => pattern = named,
            (None, "stderr") => out = Out::Stderr,
            (None, _) => return Err(missing("lines, oneline, binary or stderr")),
        }
    }
    flood::pour(size, pattern, out)
}

fn prompt(mut arguments: Arguments<'_>) -> Result<Vec<u8>, Trouble> {
    Source::from_name(arguments.take("").ok().as_deref())?.read()
}

fn stream(mut arguments: Arguments<'_>) -> Result<(), Trouble> {
    let path = arguments.path()?;
    let (mut first, mut pause) = (usize::MAX, Duration::ZERO);
    while let Ok(word) = arguments.take("") {
        match word.as_str() {
            "first" => first = usize::from(arguments.take_number("a number of lines")?),
            "pause" => pause = duration(&arguments.take("a duration")?)?,
            _ => return Err(missing("first N or pause DUR")),
        }
    }
    let failed = |error| Trouble::system(path.display().to_string(), error);
    let mut reader = BufReader::new(File::open(&path).map_err(failed)?);
    let mut line = Vec::new();
    for _ in 0..first {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        Out::Stdout.write(&line)?;
        std::thread::sleep(pause);
    }
    Ok(())
}
