//! A view on a thread of its own: sleeps, looks, shows, until the loop is over. It is a client
//! like any other: it follows the journal and the logs, and the loop never waits for it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use descartes_agents::reader::{Source, Spending};
use descartes_client::logs::{Thoughts, Tools};
use descartes_client::{ClientError, Follower, Known, LoopHandle, LoopUpdate, Output};
use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::{LoopState, Spent};
use descartes_kernel::transition::apply;
use descartes_store::journal::last_records;
use descartes_store::watching;
use descartes_text::display::{Clean, Colours, Shown};
use jiff::Timestamp;

use super::children::Children;
use super::signal::Signal;
use super::voice::{Speech, transcript_of};

/// More records than this are not written while a loop is opened.
const OPENING: usize = 64;

/// Something that shows a loop. An error (a terminal that is gone) ends the view.
pub trait View: Send {
    /// The first thing to show.
    fn open(&mut self, _: &LoopState) -> io::Result<()> {
        Ok(())
    }

    /// A record, with the state after it.
    fn record(&mut self, record: &Record, state: &LoopState) -> io::Result<()>;

    /// How output of a stream is cleaned before it is shown.
    fn cleaner(&self, _: Source) -> Clean {
        Clean::new(Colours::Drop)
    }

    /// Output of the agent.
    fn output(&mut self, source: Source, shown: &Shown) -> io::Result<()>;

    /// Output that was passed over.
    fn skipped(&mut self, iteration: u32, bytes: u64) -> io::Result<()>;

    /// What the run under way has told of its tokens and cost, when it tells more.
    fn spent(&mut self, _: &Spent) -> io::Result<()> {
        Ok(())
    }

    /// No more output of this run.
    fn run_over(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Something that a person may want to know about the view itself.
    fn note(&mut self, text: &str) -> io::Result<()> {
        // A closed standard error does not end the view.
        drop(writeln!(io::stderr(), "note: {text}"));
        Ok(())
    }

    /// Everything that is known was handed over: draw it.
    fn refresh(&mut self, _: &LoopState, _: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// The loop is over.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The shortest time between two looks.
    fn pace(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// When to look again though nothing happened.
    fn tick(&self, _: &LoopState) -> Option<Duration> {
        None
    }
}

/// Why a view ends early.
#[derive(Debug, thiserror::Error)]
enum ViewError {
    /// The loop cannot be followed.
    #[error(transparent)]
    Loop(#[from] ClientError),
    /// Nobody looks any more.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// A view and the loop that it shows.
pub struct Show {
    view: Box<dyn View>,
    follower: Follower,
    state: LoopState,
    known: Known,
    speech: Speech,
    spending: Spending,
    /// Of standard output and standard error.
    opening: Vec<Record>,
    signal: Arc<Signal>,
    /// Of a task loop, where output is shown.
    children: Option<Children>,
}

impl Show {
    /// Shows a loop that has not gone on yet since `handle` was found.
    pub fn new(
        view: Box<dyn View>,
        handle: &LoopHandle,
        (output, thoughts): (Output, Thoughts),
        known: Known,
        signal: Arc<Signal>,
    ) -> Result<Self, ClientError> {
        let (state, follower) = handle.follow(output)?;
        let shows = output != Output::No && state.config.tasks.is_some();
        let profiles = Arc::clone(&known.profiles);
        let colours = view.cleaner(Source::Stdout).colours();
        let how = (output, thoughts, colours);
        let children = shows.then(|| Children::new(handle.clone(), how, profiles));
        let opening = since_opened(last_records(&handle.dir().journal(), OPENING)?);
        let cleaners = [Source::Stdout, Source::Stderr].map(|source| view.cleaner(source));
        Ok(Self {
            view,
            follower,
            state,
            known,
            speech: Speech::new(cleaners, thoughts, Tools::WhenCalled),
            spending: Spending::default(),
            opening,
            signal,
            children,
        })
    }

    /// Begins; `done` gets the last state when everything is shown.
    pub fn spawn(mut self, done: Sender<Option<LoopState>>) -> io::Result<()> {
        let thread = thread::Builder::new().name("view".to_owned());
        thread.spawn(move || {
            // A terminal that is gone, or a journal that cannot be read, ends the view alone.
            let shown = self.drive();
            drop(shown.and_then(|()| Ok(self.view.close()?)));
            drop(done.send(Some(self.state)));
        })?;
        Ok(())
    }

    fn drive(&mut self) -> Result<(), ViewError> {
        self.view.open(&self.state)?;
        for record in std::mem::take(&mut self.opening) {
            self.view.record(&record, &self.state)?;
        }
        loop {
            // Asked before looking: what was written until then is seen.
            let over = self.signal.is_finished();
            let mut quiet = !self.look_at_children()?;
            let news = self.follower.news()?;
            quiet &= news.is_empty();
            for news in news {
                self.show(news)?;
            }
            if let Some(words) = watching::untold() {
                self.view.note(&words)?;
            }
            self.view.refresh(&self.state, Timestamp::now())?;
            match (over, quiet) {
                (true, true) => return Ok(()),
                (_, false) => self.signal.rest(self.view.pace()),
                (false, true) => self.sleep(),
            }
        }
    }

    fn sleep(&mut self) {
        let own = self.follower.fd();
        let mut sees = own.is_some();
        let mut others: Vec<_> = own.into_iter().collect();
        if let Some(children) = &self.children {
            others.extend(children.fds());
            sees &= !children.is_blind();
        }
        let blind = (!sees).then_some(watching::BLIND);
        let tick = self.view.tick(&self.state);
        let limit = [tick, blind].into_iter().flatten().min();
        self.signal.wait_any(others, limit);
        self.follower.wait(Some(Duration::ZERO));
        if let Some(children) = &mut self.children {
            children.woken();
        }
    }

    /// Shows what the agents of tasks printed; whether there was anything.
    fn look_at_children(&mut self) -> io::Result<bool> {
        let Some(children) = &mut self.children else {
            return Ok(false);
        };
        let shown = children.news();
        if !shown.text.is_empty() {
            self.view.output(Source::Stdout, &shown.text)?;
        }
        Ok(shown.news)
    }

    fn show(&mut self, news: LoopUpdate) -> Result<(), ViewError> {
        match news {
            LoopUpdate::Record(record) => {
                if matches!(record.event, Event::Tasks { .. }) {
                    // What an agent printed stands before what became of it.
                    self.look_at_children()?;
                }
                self.record(&record)?;
            }
            LoopUpdate::Output {
                run, source, bytes, ..
            } => {
                let log = self.follower.output_log(run);
                let shown = self.speech.push(source, &bytes, Some(&log));
                self.view.output(source, &shown)?;
                if let Some(spending) = self.speech.spending() {
                    self.spend(spending)?;
                }
            }
            LoopUpdate::Skipped {
                iteration,
                source,
                bytes,
                ..
            } => {
                self.speech.skip(source);
                self.view.skipped(iteration, bytes)?;
            }
            LoopUpdate::Life(_) => {}
        }
        Ok(())
    }

    fn spend(&mut self, spending: Spending) -> io::Result<()> {
        if spending == self.spending {
            return Ok(());
        }
        let model = spending.model.as_ref().or(self.state.config.model.as_ref());
        let estimate = || self.known.prices.estimate(model?, &spending.tokens);
        let cost = spending.cost.or_else(estimate);
        let spent = Spent {
            ms: 0,
            tokens: spending.tokens.total(),
            cost_micros: cost.map(|cost| cost.micros),
            estimated: cost.is_some_and(|cost| cost.estimated),
        };
        self.spending = spending;
        self.view.spent(&spent)
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::AgentEnded { .. } | Event::IterationInterrupted { .. } => {
                for (source, rest) in self.speech.finish() {
                    if !rest.is_empty() {
                        self.view.output(source, &rest)?;
                    }
                }
                self.view.run_over()?;
            }
            Event::TaskLoop {
                task,
                slot,
                loop_id,
                ..
            } => {
                if let Some(children) = &mut self.children {
                    children.follow(task, *slot, loop_id);
                }
            }
            Event::RunStarted { agent, .. } => {
                let (config, profiles) = (&self.state.config, &self.known.profiles);
                self.speech.begin(transcript_of(config, profiles, *agent));
                self.spending = Spending::default();
            }
            _ => {}
        }
        // A record that this version cannot apply is shown all the same.
        drop(apply(&mut self.state, record));
        self.view.record(record, &self.state)
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
        let before = records[..host].iter().rev();
        host - before.take_while(|record| leads(record)).count()
    });
    records.split_off(first)
}
