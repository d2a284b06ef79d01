//! The demo's agent: a hidden verb of this binary that plays one. It needs three tries, and
//! reads in its prompt what the gate said about the last.

use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::files::{PROGRAM, program};

/// The hidden verb.
pub const VERB: &str = "__demo-agent";
/// Its pace for people.
pub const PLEASANT: &str = "pleasant";
/// Its pace for tests.
pub const FAST: &str = "fast";

const PAUSE: Duration = Duration::from_millis(260);

/// One try: what it thinks, and the table it writes.
struct Try {
    thought: &'static str,
    table: &'static str,
}

const TRIES: [Try; 3] = [
    Try {
        thought: "Largest letter first, as often as it fits. That is all there is to it.",
        table: "1000:M 500:D 100:C 50:L 10:X 5:V 1:I",
    },
    Try {
        thought: "Of course: 4 is IV and 9 is IX. They go into the table.",
        table: "1000:M 500:D 100:C 50:L 10:X 9:IX 5:V 4:IV 1:I",
    },
    Try {
        thought: "The same holds for 40, 90, 400 and 900. Now the table is complete.",
        table: "1000:M 900:CM 500:D 400:CD 100:C 90:XC 50:L 40:XL 10:X 9:IX 5:V 4:IV 1:I",
    },
];

/// Plays it: the words behind the verb are its pace and its prompt.
pub fn run(words: &[String], iteration: Option<&str>) -> io::Result<()> {
    let pleasant = words.first().is_none_or(|pace| pace != FAST);
    let prompt = words.get(1).map_or("", String::as_str);
    let number: usize = iteration
        .and_then(|number| number.parse().ok())
        .unwrap_or(1);
    let this = &TRIES[number.clamp(1, TRIES.len()) - 1];
    let pause = if pleasant { PAUSE } else { Duration::ZERO };
    let say = |line: &str| say(line, pause);
    match complaint(prompt) {
        None => say("I read PROMPT.md: a number goes in, Roman numerals come out.")?,
        Some(line) => {
            say("I was sure, but the gate was not. It said:")?;
            say(&format!("    {line}"))?;
        }
    }
    say(this.thought)?;
    say(&format!("Writing {PROGRAM} …"))?;
    std::fs::write(Path::new(PROGRAM), program(this.table))?;
    say("Done!")?;
    say("<promise>COMPLETE</promise>")
}

/// What the gate said last, as the prompt tells it.
fn complaint(prompt: &str) -> Option<&str> {
    prompt
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("NOT OK"))
}

fn say(line: &str, pause: Duration) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    thread::sleep(pause);
    Ok(())
}
