//! The end of a task loop: every agent is ended, what is left is said, the reason written down.

use descartes_kernel::control::Command;
use descartes_kernel::fact;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched::Account;
use descartes_kernel::step::{EndRun, leave};
use descartes_kernel::tasks::{Hurry, Landing, end_after_landing, end_reason};

use super::event::TaskEvent;
use super::launch;
use super::place::{Closed, Work};
use super::runner::{Busy, Merging, Runner};
use crate::host::message::HostMessage;
use crate::host::{HostEnd, HostError};

impl Runner<'_> {
    /// Somebody does not want to wait for anybody's grace.
    pub(super) fn kill_all(&mut self) {
        self.source.hurry(Hurry::Kill);
        self.live.values().for_each(|live| live.control.kill());
        self.place.kill();
        self.merging.iter().for_each(Merging::kill);
    }

    pub(super) fn stop_all(&mut self) {
        self.questions.stop_held(|_| true);
        // First: what they do in git then fails, and they have to know why.
        self.live.values().for_each(|live| live.control.stop());
        self.merging.iter().for_each(Merging::stop);
        self.place.stop();
    }

    /// The same for a person, once: calls of git that take work into safety afterwards are not ended.
    pub(super) fn stop_for_person(&mut self) {
        if !std::mem::replace(&mut self.stopped_for_person, true) {
            self.stop_all();
        }
    }

    /// After an error of our own: every agent is ended before this thread is.
    pub(super) fn wait_for_all(&mut self) {
        while !self.live.is_empty() || !self.merging.is_empty() {
            let news = match self.news.pop_front() {
                Some(news) => news,
                None => match self.d.rx.recv() {
                    Ok(HostMessage::Task(news)) => *news,
                    // Who asks now was not heard before, or has asked already.
                    Ok(
                        HostMessage::Stop(_)
                        | HostMessage::Kill(_)
                        | HostMessage::Command(Command::Cancel { .. }, ..),
                    ) => {
                        self.kill_all();
                        continue;
                    }
                    Ok(_) => continue,
                    Err(_) => return,
                },
            };
            match news {
                TaskEvent::Opened { .. }
                | TaskEvent::Spent(..)
                | TaskEvent::FileWritten
                | TaskEvent::Answered(_)
                // Whoever waits for an answer hears that there is none.
                | TaskEvent::Offering { .. }
                | TaskEvent::Notice(_)
                | TaskEvent::Engine { .. }
                | TaskEvent::RoomChanged
                | TaskEvent::LockNotice
                | TaskEvent::Delivered(..)
                | TaskEvent::Closed(_)
                | TaskEvent::Prepared(_) => {}
                TaskEvent::Attempt(news) => drop(self.live.remove(&news.serial)),
                TaskEvent::Merged(..) | TaskEvent::Stacked(..) | TaskEvent::TrainGated { .. } => {
                    self.free_integration(Busy::Merge)
                }
                TaskEvent::WaveCommitted(..) => self.free_integration(Busy::Wave),
                TaskEvent::MarkChecked(..) => self.free_integration(Busy::Mark),
                TaskEvent::Landed(..) => self.free_integration(Busy::Landing),
            }
        }
    }

    pub(super) fn close(&mut self) -> Result<HostEnd, HostError> {
        let Some(ended) = self.ended.take() else {
            return Err(HostError::Internal("the tasks never ended".to_owned()));
        };
        if let Some(by) = self
            .early
            .leaves(self.d.state.requests.stop, &ended.outcome)
        {
            self.d.append(leave(by))?;
            self.d.save_last();
            return Ok(self.d.end());
        }
        self.say_held(&ended.account)?;
        self.close_place(&ended.account)?;
        let reason = match std::mem::take(&mut self.early).into_reason() {
            Some(reason) => reason,
            None => end_reason(&ended, self.gates(), self.landing()),
        };
        self.d.finish(reason)?;
        Ok(self.d.end())
    }

    /// The end of a loop that was taken up only to land: as it had ended before, save for what
    /// has landed since.
    pub(super) fn after_landing(
        &mut self,
        before: &IterativeExitReason,
    ) -> Result<HostEnd, HostError> {
        let over = *before != IterativeExitReason::Running;
        if over && self.d.state.requests.stop.is_none() {
            let account = self.sched.account();
            self.close_place(&account)?;
        }
        self.say()?;
        if !over {
            self.d.save_last();
            return Ok(self.d.end());
        }
        let reason = end_after_landing(before, self.gates(), self.landing());
        self.d.finish(reason)?;
        Ok(self.d.end())
    }

    /// Removes what is not needed any more, and tells what is left.
    fn close_place(&mut self, account: &Account) -> Result<(), HostError> {
        let mut done = launch::done_work(self, account);
        done.append(&mut self.grew);
        let Closed { waits, kept } = self.closed(done)?;
        self.say()?;
        let kept = fact::trees_kept(&self.d.state, kept);
        self.d.append_all(kept)?;
        let landing = self
            .d
            .state
            .tasks
            .as_ref()
            .and_then(|tasks| tasks.landing.clone());
        if let (
            Some(branch),
            Some(Landing::Ready {
                commit,
                why,
                by_hand,
                full_disk,
                ..
            }),
        ) = (waits, landing)
        {
            let landing = Landing::Ready {
                commit,
                branch,
                why,
                by_hand,
                full_disk,
            };
            let decided = fact::work_landed(&self.d.state, landing);
            self.d.append_all(decided)?;
        }
        Ok(())
    }

    /// Closes the place apart from this thread, which goes on hearing people: removing may take long.
    fn closed(&mut self, done: Vec<Work>) -> Result<Closed, HostError> {
        let (place, tx) = (self.place.clone(), self.d.tx.clone());
        launch::spawn("close", move || {
            let closed = TaskEvent::Closed(place.close(&done));
            drop(tx.send(HostMessage::Task(Box::new(closed))));
        })?;
        loop {
            match self.d.next(None)? {
                Some(HostMessage::Task(news)) => match *news {
                    TaskEvent::Closed(closed) => return Ok(closed),
                    TaskEvent::LockNotice => self.say()?,
                    // Everything else is over.
                    _ => {}
                },
                Some(message) => {
                    let end = self.handle_control(message)?;
                    if end == Some(EndRun::Kill) {
                        self.kill_all();
                    }
                }
                None => {}
            }
        }
    }

    fn landing(&self) -> Option<&Landing> {
        self.d.state.tasks.as_ref()?.landing.as_ref()
    }

    /// Which task blocks which.
    pub(super) fn say_held(&mut self, account: &Account) -> Result<(), HostError> {
        for held in &account.held {
            let message = match held.status {
                Some(status) => format!("task {} was not started: it is {status}", held.task),
                None => {
                    let by: Vec<&str> = held.by.iter().map(|id| &**id).collect();
                    format!(
                        "task {} was not started: it is waiting for {}",
                        held.task,
                        by.join(", ")
                    )
                }
            };
            self.d.warn(message)?;
        }
        Ok(())
    }
}
