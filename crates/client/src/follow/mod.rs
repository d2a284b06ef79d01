//! Following a loop: its records, the output of its runs, and whether it lives. Files tell
//! when they change; nothing is asked again and again, and the loop never waits for a view.

mod tails;
mod watch;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use descartes_agents::reader::Source;
use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::{LoopState, Phase};
use descartes_store::journal::JournalReader;
use descartes_store::layout::LoopDir;
use descartes_views::view::Life;

use self::tails::Tails;
pub(crate) use self::watch::FollowWatch;
use crate::{ClientError, LoopHandle, state};

/// Something that is new.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopUpdate {
    /// A record of the journal.
    Record(Box<Record>),
    /// Output of a run.
    Output {
        run: u64,
        iteration: u32,
        /// Which of its streams.
        source: Source,
        /// The bytes as they were printed.
        bytes: Vec<u8>,
    },
    /// Output that was passed over, to catch up.
    Skipped {
        run: u64,
        iteration: u32,
        /// Which of its streams.
        source: Source,
        bytes: u64,
    },
    /// A process took the loop, or the last one is gone.
    Life(Life),
}

/// Which output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    No,
    /// Every byte, from the beginning of the run under way.
    All,
    /// The newest: a view that is far behind skips ahead.
    Newest,
    /// Only that there is more, for a view that reads the logs itself: all of it is skipped.
    Growth,
}

/// Follows one loop. Every record comes after the output that was printed before it.
#[derive(Debug)]
pub struct Follower {
    handle: LoopHandle,
    dir: LoopDir,
    journal: JournalReader,
    output: Output,
    /// Records that were read and wait for the output before them.
    records: VecDeque<Record>,
    tails: Option<Tails>,
    life: Life,
    watch: FollowWatch,
    /// There was more than one look could take.
    more: bool,
}

impl LoopHandle {
    /// The state now, and a follower of everything from there on.
    pub fn follow(&self, output: Output) -> Result<(LoopState, Follower), ClientError> {
        let journal = self.journal("there is nothing to follow")?;
        // Before the state is read: what happens from there on is told.
        let (watch, life) = (FollowWatch::new(&self.dir), self.life()?);
        let (state, offset) = state::read(&journal)?;
        let reader = JournalReader::open_at(&journal, offset)?;
        let follower = Follower::new(self, reader, output, (watch, life));
        Ok(follower.taking_up(state))
    }

    /// The same, with the last records that led to the state, `count` or more where there are so many.
    pub fn follow_with_records(
        &self,
        output: Output,
        count: usize,
    ) -> Result<(Vec<Record>, LoopState, Follower), ClientError> {
        let journal = self.journal("there is nothing to follow")?;
        let (watch, life) = (FollowWatch::new(&self.dir), self.life()?);
        let (state, offset, records) = state::read_with_records(&journal, count)?;
        let reader = JournalReader::open_at(&journal, offset)?;
        let follower = Follower::new(self, reader, output, (watch, life));
        let (state, follower) = follower.taking_up(state);
        Ok((records, state, follower))
    }

    /// A follower of everything from the loop's first record on.
    pub fn follow_from_first(&self, output: Output) -> Result<Follower, ClientError> {
        let journal = self.journal("there is nothing to follow")?;
        let seen = (FollowWatch::new(&self.dir), self.life()?);
        let reader = JournalReader::open(&journal)?;
        Ok(Follower::new(self, reader, output, seen))
    }
}

impl Follower {
    /// Where the standard output of a run is kept.
    pub fn output_log(&self, run: u64) -> PathBuf {
        self.dir.run(run).stdout()
    }

    fn new(
        of: &LoopHandle,
        journal: JournalReader,
        output: Output,
        (watch, life): (FollowWatch, Life),
    ) -> Self {
        Self {
            handle: of.clone(),
            dir: of.dir.clone(),
            journal,
            output,
            records: VecDeque::new(),
            tails: None,
            life,
            watch,
            more: true,
        }
    }

    /// Takes up the run that is under way in a state.
    fn taking_up(mut self, state: LoopState) -> (LoopState, Self) {
        if let Phase::Running(run) = &state.phase {
            self.begin_run(run.run, run.iteration);
        }
        (state, self)
    }

    /// Whether a process has the loop, as far as it was told.
    pub fn life(&self) -> Life {
        self.life
    }

    /// Readable when there may be news, for event loops that wait for more than this; `None`
    /// where files cannot be watched, and [`wait`](Self::wait) looks every now and then.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.fd()
    }

    /// What is new, waiting for it at most `limit` (`None`: as long as it takes).
    pub fn next(&mut self, limit: Option<Duration>) -> Result<Vec<LoopUpdate>, ClientError> {
        let news = self.news()?;
        if !news.is_empty() || self.more {
            return Ok(news);
        }
        self.wait(limit);
        self.news()
    }

    /// Sleeps until there may be news, at most `limit`.
    pub fn wait(&mut self, limit: Option<Duration>) {
        if !self.more {
            self.watch.wait(limit);
        }
    }

    /// What is new by now. Takes a bounded piece of what an agent prints; the rest comes with
    /// the next call.
    pub fn news(&mut self) -> Result<Vec<LoopUpdate>, ClientError> {
        let mut news = Vec::new();
        self.more = false;
        // Asked before the journal is read: what a host wrote before it went is then read too.
        let life = match self.watch.take_lock_news() {
            true => Some(self.handle.life()?),
            false => None,
        };
        self.journal
            .for_each_new(|record| self.records.push_back(record))?;
        self.give_out(&mut news);
        if let Some(life) = life.filter(|life| *life != self.life) {
            self.life = life;
            self.watch.lock_settled();
            news.push(LoopUpdate::Life(life));
        }
        Ok(news)
    }

    /// Output first, then the record that tells of its end.
    fn give_out(&mut self, news: &mut Vec<LoopUpdate>) {
        loop {
            let ends = self.records.front().is_some_and(ends_run);
            if let Some(tails) = &mut self.tails {
                let read = tails.read(self.output, news);
                if read == tails::Read::More {
                    self.more = true;
                    return;
                }
            }
            if ends && self.tails.take().is_some() {
                self.watch.no_run();
            }
            let Some(record) = self.records.pop_front() else {
                return;
            };
            if let Event::RunStarted { run, iteration, .. } = record.event {
                self.begin_run(run, iteration);
            }
            news.push(LoopUpdate::Record(Box::new(record)));
        }
    }

    fn begin_run(&mut self, run: u64, iteration: u32) {
        if self.output != Output::No {
            let dir = self.dir.run(run);
            self.watch.run(&dir);
            self.tails = Some(Tails::new(dir, run, iteration));
        }
    }
}

fn ends_run(record: &Record) -> bool {
    matches!(
        record.event,
        Event::AgentEnded { .. }
            | Event::IterationInterrupted { .. }
            | Event::LoopFinished { .. }
            | Event::RunStarted { .. }
    )
}
