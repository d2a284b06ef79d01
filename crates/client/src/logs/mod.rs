//! What an agent printed: the bytes, and what a person wants to read of them.

mod prose;
mod transcript;
mod window;

use std::path::PathBuf;

use descartes_agents::agent::{AgentNotice, Choices, Invocation, Profiles, StreamParser, build};
use descartes_agents::reader::Source;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::Event;
use descartes_store::layout::RunDir;
use descartes_store::logs::{GapMarks, LogReader, LogTail, read_log, tail};

pub use prose::{Prose, Thoughts, Tools};
pub use transcript::{Transcript, TranscriptEntry};
pub use window::{LogLine, LogPosition, LogWindow};

use crate::error::at;
use crate::{ClientError, LoopHandle};

/// The output of one run.
#[derive(Clone, Debug)]
pub struct RunLog {
    pub run: u64,
    pub iteration: u32,
    /// How its stream is understood; `None` for plain text.
    invocation: Option<Invocation>,
    dir: RunDir,
}

impl LoopHandle {
    /// The output of an iteration, or of the newest one.
    pub fn log(&self, iteration: Option<u32>) -> Result<RunLog, ClientError> {
        let started = match iteration {
            Some(iteration) => self.run_started(iteration)?,
            None => self.last_run_started()?,
        };
        let Event::RunStarted {
            run,
            iteration,
            agent,
            ..
        } = started.event
        else {
            return Err(ClientError::NoIteration("no such run".to_owned()));
        };
        self.log_of_run(run, iteration, agent)
    }

    /// Why none of the loop's agents would be told this model; `None` where one would.
    pub fn model_not_told(&self, model: &str) -> Result<Option<String>, ClientError> {
        let config = self.state()?.config;
        Ok(model_not_told(&config, &self.known.profiles, model))
    }

    /// The output of a known run of the loop's n-th agent.
    pub fn log_of_run(&self, run: u64, iteration: u32, agent: u32) -> Result<RunLog, ClientError> {
        Ok(self.log_under(&self.state()?.config, run, iteration, agent))
    }

    /// The same where the loop's config is known.
    pub fn log_under(
        &self,
        config: &IterativeLoopConfig,
        run: u64,
        iteration: u32,
        agent: u32,
    ) -> RunLog {
        RunLog {
            run,
            iteration,
            invocation: understood(config, &self.known.profiles, agent),
            dir: self.dir.run(run),
        }
    }
}

/// Why none of the agents of a config would be told this model; `None` where one would.
pub fn model_not_told(
    config: &IterativeLoopConfig,
    profiles: &Profiles,
    model: &str,
) -> Option<String> {
    let choices = Choices {
        model: Some(model.to_owned()),
        ..Choices::default()
    };
    let mut why = None;
    for agent in 0..=u32::try_from(config.fallback.len()).unwrap_or(0) {
        let found = invocation(config, profiles, agent, &choices)?;
        let about_model = |notice: &&AgentNotice| {
            matches!(
                notice,
                AgentNotice::NoModelFlag { .. } | AgentNotice::ModelGiven { .. }
            )
        };
        let notice = found.notices.iter().find(about_model)?;
        why = why.or_else(|| Some(notice.to_string()));
    }
    why
}

/// How the n-th agent of a loop is understood, if it is: `--command`, then the fallbacks.
pub fn understood(
    config: &IterativeLoopConfig,
    profiles: &Profiles,
    agent: u32,
) -> Option<Invocation> {
    let invocation = invocation(config, profiles, agent, &Choices::default())?;
    invocation.stream.is_understood().then_some(invocation)
}

/// The command line of the n-th agent of a loop, as far as its profile is known.
fn invocation(
    config: &IterativeLoopConfig,
    profiles: &Profiles,
    agent: u32,
    choices: &Choices,
) -> Option<Invocation> {
    let read = |name: &str, words: &[String]| Some(build(profiles.get(name)?, words, choices));
    let Some(fallback) = (agent as usize).checked_sub(1) else {
        let words = std::iter::once(&config.command).chain(&config.args);
        let words: Vec<String> = words.cloned().collect();
        let choices = Choices {
            output_format: config.backend.wanted_format(),
            ..choices.clone()
        };
        let profile = profiles.get(&config.backend.backend_type)?;
        return Some(build(profile, &words, &choices));
    };
    let text = config.fallback.get(fallback)?;
    match profiles.get(text) {
        Some(profile) if !profile.command.is_empty() => read(text, &[]),
        _ => {
            let words = shell_words::split(text).ok()?;
            read(profiles.guess(&words), &words)
        }
    }
}

impl RunLog {
    /// Where the bytes of a stream lie.
    pub fn path(&self, source: Source) -> PathBuf {
        match source {
            Source::Stdout => self.dir.stdout(),
            Source::Stderr => self.dir.stderr(),
        }
    }

    /// Its folder, with the logs of its gates.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// How many bytes the stream has so far.
    pub fn size(&self, source: Source) -> u64 {
        std::fs::metadata(self.path(source)).map_or(0, |meta| meta.len())
    }

    /// Refuses a log that made room for newer ones. One that was never begun is empty.
    pub fn check(&self) -> Result<(), ClientError> {
        match self.dir.path().is_dir() {
            true => Ok(()),
            false => Err(ClientError::NoLog {
                iteration: self.iteration,
                path: self.dir.path().to_owned(),
            }),
        }
    }

    /// All bytes of a stream, from the first.
    pub fn open(&self, source: Source, marks: GapMarks) -> Result<LogReader, ClientError> {
        let path = self.path(source);
        read_log(&path, marks).map_err(at("read", &path))
    }

    /// The last lines of a stream, as bytes; reads no more than `most`.
    pub fn tail(&self, source: Source, lines: usize, most: usize) -> Result<Vec<u8>, ClientError> {
        let path = self.path(source);
        tail(&path, lines, most).map_err(at("read", &path))
    }

    /// A stream from some place on, as it grows.
    pub fn grow(&self, source: Source, offset: u64) -> LogTail {
        LogTail::from(&self.path(source), offset)
    }

    /// Reads standard output as its agent speaks; `None` for plain text.
    pub fn transcript(&self) -> Option<Transcript> {
        self.parser().map(Transcript::new)
    }

    /// The parser of its standard output; `None` for plain text.
    pub fn parser(&self) -> Option<Box<dyn StreamParser>> {
        self.invocation.as_ref()?.parser().ok()
    }
}
