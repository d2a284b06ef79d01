//! What there is to show, in its order: the journal's records, and between them the output
//! of the run they tell of, read from its log files by offset. The host is never waited for
//! and never waits: a view that falls behind skips ahead.

use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::apply;
use descartes_store::journal::{JournalError, JournalReader, last_records};
use descartes_store::layout::{LoopDir, RunDir};
use descartes_store::logs::LogTail;

use super::voice::{Voice, Voices};

/// A view that is further behind than this skips ahead.
pub const FAR_BEHIND: u64 = 1 << 20;
/// So much of the end is shown after a skip.
const LANDING: u64 = 64 << 10;
/// So much is read of a running agent in one pass.
const ONE_PASS: usize = 256 << 10;
/// More records than this are not written while a loop is opened.
const OPENING: usize = 64;

/// Which of the agent's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes what there is to show. An error (a terminal that is gone) ends the view.
pub trait Sink {
    /// A record, with the state after it.
    fn record(&mut self, record: &Record, state: &LoopState) -> std::io::Result<()>;
    /// Output of the agent.
    fn output(&mut self, channel: Channel, bytes: &[u8]) -> std::io::Result<()>;
    /// Output that was passed over.
    fn skipped(&mut self, iteration: u32, bytes: u64) -> std::io::Result<()>;
    /// No more output of this run.
    fn run_over(&mut self) -> std::io::Result<()>;
}

/// Why a view ends early.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nobody looks any more.
    #[error(transparent)]
    Gone(#[from] std::io::Error),
}

/// Whether the agent's output is shown.
#[derive(Debug)]
pub enum Want {
    /// Records and output, read as these agents speak.
    Everything(Voices),
    /// Records alone.
    Records,
}

/// What changed about the run that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Nothing.
    Same,
    /// Another run: its logs are to be watched.
    Run(RunDir),
    /// None any more.
    None,
}

/// Follows one loop.
#[derive(Debug)]
pub struct Feed {
    journal: JournalReader,
    dir: LoopDir,
    want: Want,
    state: LoopState,
    run: Option<Run>,
    /// What was written while the loop was opened.
    opening: Vec<Record>,
    more: bool,
}

#[derive(Debug)]
struct Run {
    dir: RunDir,
    number: u64,
    iteration: u32,
    tails: [(Channel, LogTail); 2],
    /// Reads standard output; `None` for plain text.
    voice: Option<Voice>,
    /// After a skip, the rest of a line is no line.
    mid_line: bool,
}

impl Feed {
    /// Follows from `state` on: the journal is read from where that was folded.
    pub fn new(dir: &LoopDir, state: LoopState, want: Want) -> Result<Self, JournalError> {
        let (journal, _) = JournalReader::open_tail(&dir.journal(), 0)?;
        let opening = since_opened(last_records(&dir.journal(), OPENING)?);
        Ok(Self {
            journal,
            dir: dir.clone(),
            want,
            state,
            run: None,
            opening,
            more: false,
        })
    }

    /// Shows what was written while the loop was opened.
    pub fn opening(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        for record in std::mem::take(&mut self.opening) {
            sink.record(&record, &self.state)?;
        }
        Ok(())
    }

    /// Whether the last pass left something for the next.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// The state as far as it was shown.
    pub fn state(&self) -> &LoopState {
        &self.state
    }

    /// Shows everything that is new.
    pub fn pass(&mut self, sink: &mut dyn Sink) -> Result<Followed, FeedError> {
        let before = self.run.as_ref().map(|run| run.number);
        let Self {
            journal,
            dir,
            want,
            state,
            run,
            more,
            ..
        } = self;
        let mut shown = 0;
        let mut gone = Ok(());
        journal.for_each_new(|record| {
            if gone.is_ok() {
                gone = take(&record, dir, want, state, run, &mut shown, sink);
            }
        })?;
        gone?;
        *more = match run {
            Some(run) => run.read(ONE_PASS, sink)? >= ONE_PASS as u64,
            None => false,
        };
        Ok(match (&self.run, before) {
            (Some(run), before) if before != Some(run.number) => Followed::Run(run.dir.clone()),
            (None, Some(_)) => Followed::None,
            _ => Followed::Same,
        })
    }
}

/// The records since the last host took the loop, with those that led to it.
fn since_opened(mut records: Vec<Record>) -> Vec<Record> {
    let host = records
        .iter()
        .rposition(|record| matches!(record.event, Event::HostStarted { .. }));
    let leads = |record: &Record| {
        matches!(
            record.event,
            Event::LoopCreated { .. } | Event::LoopReopened | Event::ConfigChanged { .. }
        )
    };
    let first = host.map_or(records.len(), |host| {
        let before = records[..host]
            .iter()
            .rev()
            .take_while(|record| leads(record))
            .count();
        host - before
    });
    records.split_off(first)
}

fn take(
    record: &Record,
    dir: &LoopDir,
    want: &Want,
    state: &mut LoopState,
    run: &mut Option<Run>,
    shown: &mut u64,
    sink: &mut dyn Sink,
) -> std::io::Result<()> {
    if let Event::AgentEnded { .. } | Event::IterationInterrupted { .. } = record.event
        && let Some(mut ended) = run.take()
    {
        *shown += ended.read_rest(*shown, sink)?;
        sink.run_over()?;
    }
    // A record that this version cannot apply is shown all the same.
    drop(apply(state, record));
    sink.record(record, state)?;
    if let (
        Event::RunStarted {
            run: number,
            iteration,
            agent,
            ..
        },
        Want::Everything(voices),
    ) = (&record.event, want)
    {
        *run = Some(Run::new(
            dir.run(*number),
            *number,
            *iteration,
            voices.voice(*agent),
        ));
    }
    Ok(())
}

impl Run {
    fn new(dir: RunDir, number: u64, iteration: u32, voice: Option<Voice>) -> Self {
        let tails = [
            (Channel::Stdout, LogTail::from(&dir.stdout(), 0)),
            (Channel::Stderr, LogTail::from(&dir.stderr(), 0)),
        ];
        Self {
            dir,
            number,
            iteration,
            tails,
            voice,
            mid_line: false,
        }
    }

    fn path(&self, channel: Channel) -> std::path::PathBuf {
        match channel {
            Channel::Stdout => self.dir.stdout(),
            Channel::Stderr => self.dir.stderr(),
        }
    }

    /// Reads what is new, at most `most` bytes of each stream.
    fn read(&mut self, most: usize, sink: &mut dyn Sink) -> std::io::Result<u64> {
        self.catch_up(FAR_BEHIND, sink)?;
        let mut total = 0;
        let mut bytes = Vec::new();
        for (channel, tail) in &mut self.tails {
            bytes.clear();
            // A log that cannot be read is a log that is not shown.
            let read = tail.read_new(&mut bytes, most).unwrap_or(0);
            if read > 0 {
                total += read as u64;
                let voice = self.voice.as_mut().filter(|_| *channel == Channel::Stdout);
                speak(voice, &mut self.mid_line, *channel, &bytes, sink)?;
            }
        }
        Ok(total)
    }

    /// Reads to the end of both logs, which have ended. Where much was shown in this pass
    /// already, older runs are passed over: somebody was away for long.
    fn read_rest(&mut self, shown: u64, sink: &mut dyn Sink) -> std::io::Result<u64> {
        self.catch_up(FAR_BEHIND.saturating_sub(shown), sink)?;
        let mut total = 0;
        loop {
            match self.read(ONE_PASS, sink)? {
                0 => break,
                read => total += read,
            }
        }
        if let Some(voice) = &mut self.voice {
            let rest = voice.finish();
            sink.output(Channel::Stdout, rest.as_bytes())?;
        }
        Ok(total)
    }

    /// Skips ahead in a log that is further behind than `most`.
    fn catch_up(&mut self, most: u64, sink: &mut dyn Sink) -> std::io::Result<()> {
        for at in 0..self.tails.len() {
            let (channel, tail) = &self.tails[at];
            let path = self.path(*channel);
            let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            let behind = length.saturating_sub(tail.offset());
            if behind > most.max(LANDING) {
                let (channel, landing) = (*channel, length - LANDING);
                sink.skipped(self.iteration, landing - tail.offset())?;
                self.tails[at] = (channel, LogTail::from(&path, landing));
                self.mid_line |= channel == Channel::Stdout;
            }
        }
        Ok(())
    }
}

/// Hands output on, through the agent's voice where it has one.
fn speak(
    voice: Option<&mut Voice>,
    mid_line: &mut bool,
    channel: Channel,
    bytes: &[u8],
    sink: &mut dyn Sink,
) -> std::io::Result<()> {
    let Some(voice) = voice else {
        return sink.output(channel, bytes);
    };
    let from = match (*mid_line, bytes.iter().position(|byte| *byte == b'\n')) {
        (false, _) => 0,
        (true, Some(end)) => end + 1,
        (true, None) => return Ok(()),
    };
    *mid_line = false;
    sink.output(channel, voice.push(&bytes[from..]).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_kernel::config::IterativeLoopConfig;
    use descartes_kernel::event::{EndedBy, ExitStatus, RunFacts, TreeFacts};
    use descartes_kernel::transition::begin;
    use descartes_store::journal::Journal;
    use descartes_store::layout::StateRoot;
    use std::io;

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Sink for Told {
        fn record(&mut self, record: &Record, _: &LoopState) -> io::Result<()> {
            let value = serde_json::to_value(record).unwrap();
            self.0.push(value["kind"].as_str().unwrap().to_owned());
            Ok(())
        }
        fn output(&mut self, channel: Channel, bytes: &[u8]) -> io::Result<()> {
            if bytes.is_empty() {
                return Ok(());
            }
            self.0.push(match bytes.len() {
                0..=20 => format!("{channel:?} {}", String::from_utf8_lossy(bytes)),
                many => format!("{channel:?} {many} bytes"),
            });
            Ok(())
        }
        fn skipped(&mut self, iteration: u32, bytes: u64) -> io::Result<()> {
            self.0.push(format!("skipped {bytes} of {iteration}"));
            Ok(())
        }
        fn run_over(&mut self) -> io::Result<()> {
            self.0.push("over".to_owned());
            Ok(())
        }
    }

    fn everything(backend: &str) -> Want {
        let profiles = descartes_kernel::agent::Profiles::builtin().unwrap();
        let mut config = IterativeLoopConfig {
            command: backend.into(),
            ..Default::default()
        };
        config.backend.backend_type = profiles.guess(&[backend.to_owned()]).to_owned();
        Want::Everything(Voices::of(&config, &profiles, crate::style::Paint::Plain))
    }

    struct Stage {
        _folder: tempfile::TempDir,
        dir: LoopDir,
        journal: Journal,
        feed: Feed,
    }

    impl Stage {
        fn new(want: Want) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let dir = StateRoot::at(folder.path()).loop_dir("x").unwrap();
            std::fs::create_dir_all(dir.path()).unwrap();
            let mut journal = Journal::create(&dir.journal()).unwrap();
            let now = jiff::Timestamp::now();
            let event = Event::LoopCreated {
                loop_id: "x".into(),
                name: "x".into(),
                config: Box::new(IterativeLoopConfig::default()),
                started_at: now,
                iterations: 0,
                summaries: vec![],
                ended: None,
            };
            let seq = journal.append(now, &event, event.durability()).unwrap();
            let state = begin(&Record {
                v: 1,
                seq,
                at: now,
                event,
            })
            .unwrap();
            let feed = Feed::new(&dir, state, want).unwrap();
            Self {
                _folder: folder,
                dir,
                journal,
                feed,
            }
        }

        fn append(&mut self, event: &Event) {
            self.journal
                .append(jiff::Timestamp::now(), event, event.durability())
                .unwrap();
        }

        fn started(&mut self, run: u64) {
            self.append(&Event::RunStarted {
                run,
                iteration: run as u32,
                agent: 0,
                guard_pid: None,
                prompt: String::new(),
                prompt_bytes: 0,
                before: TreeFacts::default(),
                notes: vec![],
            });
            std::fs::create_dir_all(self.dir.run(run).path()).unwrap();
        }

        fn ended(&mut self, run: u64) {
            let facts = RunFacts {
                ended_by: EndedBy::Exit,
                exit: Some(ExitStatus::Code(0)),
                duration_ms: 1,
                stdout_bytes: 0,
                stderr_bytes: 0,
                preview: String::new(),
                claim: None,
                abort: None,
                error: None,
                limit: None,
                idle_hands: false,
                tokens: None,
                cost: None,
                leftovers: 0,
                survivors: vec![],
                log_dropped: 0,
                trouble: 0,
                denied: vec![],
            };
            self.append(&Event::AgentEnded {
                run,
                iteration: run as u32,
                facts: Box::new(facts),
            });
        }

        fn pass(&mut self) -> (Followed, Vec<String>) {
            let mut told = Told::default();
            let followed = self.feed.pass(&mut told).unwrap();
            (followed, told.0)
        }
    }

    #[test]
    fn output_stands_between_the_records_of_its_run() {
        let mut stage = Stage::new(everything("agent"));
        assert_eq!(stage.pass(), (Followed::Same, vec![]));
        stage.started(1);
        std::fs::write(stage.dir.run(1).stdout(), "one\n").unwrap();
        let run = stage.dir.run(1);
        assert_eq!(
            stage.pass(),
            (
                Followed::Run(run.clone()),
                vec!["run_started".into(), "Stdout one\n".into()]
            )
        );
        std::fs::write(run.stdout(), "one\ntwo\n").unwrap();
        std::fs::write(run.stderr(), "oh\n").unwrap();
        stage.ended(1);
        stage.append(&Event::Nudged { iterations: 1 });
        let (followed, told) = stage.pass();
        assert_eq!(followed, Followed::None);
        assert_eq!(
            told,
            [
                "Stdout two\n",
                "Stderr oh\n",
                "over",
                "agent_ended",
                "nudged"
            ]
        );
        assert_eq!(stage.feed.state().runs, 1);
    }

    #[test]
    fn a_view_far_behind_skips_ahead_and_says_how_far() {
        let mut stage = Stage::new(everything("agent"));
        stage.started(1);
        let big = (FAR_BEHIND + 100) as usize;
        std::fs::write(stage.dir.run(1).stdout(), vec![b'x'; big]).unwrap();
        let (_, told) = stage.pass();
        assert_eq!(
            told,
            [
                "run_started",
                &format!("skipped {} of 1", big as u64 - LANDING),
                "Stdout 65536 bytes"
            ]
        );
    }

    #[test]
    fn somebody_who_was_away_for_long_is_not_drowned() {
        let mut stage = Stage::new(everything("agent"));
        for run in 1..=3 {
            stage.started(run);
            let text = vec![b'x'; 800 << 10];
            std::fs::write(stage.dir.run(run).stdout(), text).unwrap();
            stage.ended(run);
            stage.append(&Event::IterationInterrupted {
                iteration: run as u32,
                run,
                spent_ms: 0,
                tokens: None,
                cost: None,
            });
        }
        let (_, told) = stage.pass();
        let skips = told
            .iter()
            .filter(|line| line.starts_with("skipped"))
            .count();
        assert_eq!(skips, 2, "{told:?}");
    }

    #[test]
    fn an_understood_stream_is_shown_as_its_words_also_after_a_skip() {
        let line = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hello"}]}}"#;
        let mut stage = Stage::new(everything("claude"));
        stage.started(1);
        std::fs::write(stage.dir.run(1).stdout(), format!("{line}\n")).unwrap();
        assert_eq!(stage.pass().1, ["run_started", "Stdout hello\n"]);
        let many = format!("{line}\n").repeat(FAR_BEHIND as usize / line.len() + 100);
        std::fs::write(stage.dir.run(1).stdout(), many).unwrap();
        let told = stage.pass().1;
        assert!(told[0].starts_with("skipped"), "{told:?}");
        assert!(
            told[1].starts_with("Stdout ") && !told[1].contains('{'),
            "{told:?}"
        );
    }

    #[test]
    fn records_alone_read_no_log() {
        let mut stage = Stage::new(Want::Records);
        stage.started(1);
        std::fs::write(stage.dir.run(1).stdout(), "one\n").unwrap();
        stage.ended(1);
        assert_eq!(
            stage.pass(),
            (
                Followed::Same,
                vec!["run_started".into(), "agent_ended".into()]
            )
        );
    }
}
