//! `-f`: what there is, then whatever comes, until the loop (or the iteration that was asked
//! for) is over.

use std::time::Duration;

use descartes_client::{Follower, LoopHandle, LoopUpdate, Output};
use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::{LoopState, Phase};
use descartes_views::view::Life;

use super::{CHUNK, ShowOutput, StopShowing, wanted, whole};
use crate::args::loops::LogsArgs;
use crate::printer::Printer;

struct Following<'a> {
    found: LoopHandle,
    iteration: Option<u32>,
    args: &'a LogsArgs,
    show: Box<dyn ShowOutput>,
    /// Runs up to this one were shown before, or are no news.
    after: u64,
    /// The run that is being shown.
    run: Option<u64>,
    /// Whether nothing more is to be shown.
    over: bool,
}

pub(super) fn run(
    found: &LoopHandle,
    iteration: Option<u32>,
    (args, printer): (&LogsArgs, &Printer),
    show: Box<dyn ShowOutput>,
) -> Result<(), StopShowing> {
    let (state, mut follower) = found.follow(Output::All)?;
    let mut following = Following::new(found.clone(), iteration, args, show);
    following.begin(&state, follower.life())?;
    following.catch_up(&mut follower)?;
    following.show.caught_up()?;
    following.go_on(follower, printer)
}

/// The runs of a loop, shown as they come beside those of others.
pub(super) struct Beside<'a> {
    following: Following<'a>,
    pub(super) follower: Follower,
}

/// What came of a look at a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There was something to show.
    LoopUpdate,
    /// Nothing is new.
    Quiet,
    /// The loop was given back, and all of it is shown up to this run.
    Over(u64),
}

impl<'a> Beside<'a> {
    /// Shows the runs behind this one.
    pub(super) fn new(
        found: LoopHandle,
        after: u64,
        args: &'a LogsArgs,
        show: Box<dyn ShowOutput>,
    ) -> Result<Self, StopShowing> {
        let follower = found.follow_from_first(Output::All)?;
        let mut following = Following::new(found, None, args, show);
        following.after = after;
        Ok(Self {
            following,
            follower,
        })
    }

    /// Nothing was printed before: all of it comes as it is printed.
    pub(super) fn begin(&mut self) -> Result<(), StopShowing> {
        Ok(self.following.show.caught_up()?)
    }

    /// What was printed before.
    pub(super) fn catch_up(&mut self) -> Result<(), StopShowing> {
        self.following.catch_up(&mut self.follower)?;
        Ok(self.following.show.caught_up()?)
    }

    /// What is new by now.
    pub(super) fn step(&mut self) -> Result<Step, StopShowing> {
        // A loop that is gone has written its last; all of that is still to be told.
        let life = self.follower.life();
        let news = self.follower.news()?;
        match (news.is_empty(), life) {
            (true, Life::Alive) => Ok(Step::Quiet),
            (true, Life::Gone) => {
                self.following.end_run()?;
                Ok(Step::Over(self.following.after))
            }
            (false, _) => {
                self.following.tell(news)?;
                Ok(Step::LoopUpdate)
            }
        }
    }
}

impl<'a> Following<'a> {
    fn new(
        found: LoopHandle,
        iteration: Option<u32>,
        args: &'a LogsArgs,
        show: Box<dyn ShowOutput>,
    ) -> Self {
        Self {
            found,
            iteration,
            args,
            show,
            after: 0,
            run: None,
            over: false,
        }
    }

    /// What there is already: a run under way is followed, one that is over shown whole.
    fn begin(&mut self, state: &LoopState, life: Life) -> Result<(), StopShowing> {
        if let Phase::Running(run) = &state.phase
            && self.iteration.is_none_or(|wanted| wanted == run.iteration)
        {
            return self.show_run(run.run, run.iteration, run.agent);
        }
        let at = state.run().map_or(state.iterations, |run| run.iteration);
        let to_come = life == Life::Alive && self.iteration.is_none_or(|wanted| wanted > at);
        if to_come && (state.runs == 0 || self.iteration.is_some()) {
            return Ok(());
        }
        let log = self.found.log(self.iteration)?;
        log.check()?;
        whole(&log, self.args, self.show.as_mut())?;
        if self.iteration.is_some() {
            self.over = true;
        }
        Ok(())
    }

    fn go_on(&mut self, mut follower: Follower, printer: &Printer) -> Result<(), StopShowing> {
        let mut life = follower.life();
        while !self.over {
            // A loop that is gone has written its last; all of that is still to be told.
            let patience = match life {
                Life::Alive => None,
                Life::Gone => Some(Duration::ZERO),
            };
            let news = follower.next(patience)?;
            if news.is_empty() && life == Life::Gone {
                break;
            }
            self.tell(news)?;
            printer.tell_polling();
            life = follower.life();
        }
        self.end_run()
    }

    /// What was printed before; an agent that prints without end is caught up with all the same.
    fn catch_up(&mut self, follower: &mut Follower) -> Result<(), StopShowing> {
        loop {
            let news = follower.news()?;
            let printed = |news: &LoopUpdate| match news {
                LoopUpdate::Output { bytes, .. } => bytes.len(),
                _ => 0,
            };
            let bytes: usize = news.iter().map(printed).sum();
            self.tell(news)?;
            if bytes < CHUNK / 2 {
                return Ok(());
            }
        }
    }

    fn tell(&mut self, news: Vec<LoopUpdate>) -> Result<(), StopShowing> {
        for one in news {
            match one {
                LoopUpdate::Record(record) => self.record(&record)?,
                LoopUpdate::Output {
                    run, source, bytes, ..
                } => {
                    if self.run == Some(run) && wanted(self.args, source) {
                        self.show.output(source, &bytes)?;
                    }
                }
                LoopUpdate::Skipped { .. } | LoopUpdate::Life(_) => {}
            }
            if self.over {
                break;
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), StopShowing> {
        match &record.event {
            Event::RunStarted {
                run,
                iteration,
                agent,
                ..
            } => {
                let wanted = self.iteration.unwrap_or(*iteration);
                if *run <= self.after {
                    self.end_run()?;
                } else if *iteration > wanted {
                    self.over = true;
                } else if *iteration == wanted {
                    self.show_run(*run, *iteration, *agent)?;
                }
            }
            Event::AgentEnded { .. } | Event::IterationInterrupted { .. } => self.end_run()?,
            Event::IterationFinished { iteration, .. } if self.iteration == Some(*iteration) => {
                self.over = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn show_run(&mut self, run: u64, iteration: u32, agent: u32) -> Result<(), StopShowing> {
        self.end_run()?;
        let log = self.found.log_of_run(run, iteration, agent)?;
        (self.run, self.after) = (Some(run), self.after.max(run));
        Ok(self.show.begin(&log)?)
    }

    fn end_run(&mut self) -> Result<(), StopShowing> {
        if self.run.take().is_some() {
            self.show.end()?;
        }
        Ok(())
    }
}
