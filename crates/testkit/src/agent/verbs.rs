//! The verbs, carried out one after the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{self, Signal};

use super::arguments::{Arguments, duration, missing};
use super::files::append;
use super::script::Script;
use super::speak::speak;
use super::stamps::Stamps;
use super::text::word;
use super::work::work;
use super::{Trouble, limit, signals};

/// What comes after a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    Exit(u8),
}

/// An agent that plays its script.
pub(super) struct Player {
    started: u64,
    iteration: u64,
    stamps: Stamps,
}

impl Player {
    pub(super) fn new(started: u64, iteration: u64) -> Self {
        Self {
            started,
            iteration,
            stamps: Stamps::new(iteration),
        }
    }

    /// Plays the lines of this iteration, stamps the end, and gives the exit code.
    pub(super) fn play(&self, script: &Script) -> Result<u8, Trouble> {
        let outcome = self.lines(script);
        self.stamps.end();
        outcome
    }

    fn lines(&self, script: &Script) -> Result<u8, Trouble> {
        for line in script.lines(self.iteration) {
            let next = self.verb(&line.text).map_err(|trouble| match trouble {
                Trouble::Script(what) => {
                    Trouble::Script(format!("line {}: {what}: {}", line.number, line.text))
                }
                other => other,
            })?;
            if let Next::Exit(code) = next {
                return Ok(code);
            }
        }
        Ok(0)
    }

    fn verb(&self, line: &str) -> Result<Next, Trouble> {
        let (verb, rest) = word(line).ok_or_else(|| missing("a verb"))?;
        let mut arguments = Arguments {
            rest,
            iteration: self.iteration,
        };
        match verb {
            "exit" => return Ok(Next::Exit(arguments.number("an exit code")?)),
            "stream-limit" => return stream_limit(arguments),
            "sh" => return shell(&arguments.text()),
            "repeat" | "if-file" | "unless-file" => return self.conditional(verb, arguments),
            "stamp" => self.stamps.begin(&arguments.path()?, self.started)?,
            "die" => self.die(&arguments.word("a signal")?)?,
            "on-signal" => self.on_signal(arguments)?,
            _ => match speak(verb, &arguments) {
                Some(spoken) => spoken?,
                None => work(verb, arguments)?,
            },
        }
        Ok(Next::Line)
    }

    fn conditional(&self, verb: &str, mut arguments: Arguments<'_>) -> Result<Next, Trouble> {
        let condition = arguments.take("a number or file")?;
        let times = match verb {
            "repeat" => condition.parse().map_err(|_| missing("a number"))?,
            "if-file" => u64::from(Path::new(&condition).exists()),
            _ => u64::from(!Path::new(&condition).exists()),
        };
        for _ in 0..times {
            if let exit @ Next::Exit(_) = self.verb(arguments.rest)? {
                return Ok(exit);
            }
        }
        Ok(Next::Line)
    }

    fn die(&self, name: &str) -> Result<(), Trouble> {
        let signal = signals::by_name(name)?;
        self.stamps.end();
        signals::restore(signal)?;
        // Twice, since the runtime answers the first SIGSEGV and SIGBUS by restoring the default. A
        // signal that ends nobody by default leaves us here.
        for _ in 0..2 {
            signal::raise(signal).map_err(|error| Trouble::system("raise a signal", error))?;
        }
        Ok(())
    }

    fn on_signal(&self, mut arguments: Arguments<'_>) -> Result<(), Trouble> {
        let signal = signals::by_name(&arguments.take("a signal")?)?;
        let file = PathBuf::from(arguments.take("a file")?);
        let mut word = arguments.take("exit N or stay")?;
        let mut delay = Duration::ZERO;
        if word == "after" {
            delay = duration(&arguments.take("a duration")?)?;
            word = arguments.take("exit N or stay")?;
        }
        let end = match word.as_str() {
            "stay" => None,
            "exit" => Some(arguments.number("an exit code")?),
            _ => return Err(missing("exit N or stay")),
        };
        let stamps = self.stamps.clone();
        signals::on(signal, delay, move || react(signal, &file, end, &stamps))
    }
}

#[expect(
    clippy::exit,
    reason = "the thread that waits for a signal ends the process"
)]
fn react(signal: Signal, file: &Path, end: Option<u8>, stamps: &Stamps) {
    if file != Path::new("-") {
        let _ = append(file, &format!("{}\n", signal.as_str()));
    }
    if let Some(code) = end {
        stamps.end();
        std::process::exit(i32::from(code));
    }
}

fn stream_limit(mut arguments: Arguments<'_>) -> Result<Next, Trouble> {
    let agent = arguments.take("an agent")?;
    limit::print(&agent, arguments.duration()?).map(Next::Exit)
}

fn shell(command: &str) -> Result<Next, Trouble> {
    let status = signals::command("sh")?.arg("-c").arg(command).status();
    let status = status.map_err(|error| Trouble::system("sh", error))?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(128);
    Ok(if code == 0 {
        Next::Line
    } else {
        Next::Exit(code)
    })
}
