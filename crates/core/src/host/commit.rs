//! The commit of an iteration. Hooks, filters and gpg may take their time: it is made beside the
//! driver, which goes on listening to people, signals and budgets, and ends it when they say so.

use std::time::Duration;

use descartes_kernel::budget::time_left_to_close;
use descartes_kernel::fact;

use super::HostError;
use super::agent_loop::AgentLoop;
use super::message::HostMessage;
use crate::worktree::CommitOutcome;

/// A commit that takes longer is told of.
const SLOW: Duration = Duration::from_secs(1);
/// A commit has so much time even where the budget is used up: the work is to be kept.
const AT_LEAST: Duration = Duration::from_secs(5);

impl AgentLoop {
    pub(super) fn commit(&mut self) -> Result<Option<String>, HostError> {
        let message = match self.d.fill(&self.d.state.config.git.commit_template) {
            Ok(message) => message,
            Err(why) => {
                self.d.warn(format!("no commit: {why}"))?;
                return Ok(None);
            }
        };
        let outcome = self.commit_beside(&message)?;
        // Hooks and filters ran code of the agent's.
        self.look_at_git()?;
        match outcome {
            CommitOutcome::Made { hash } => Ok(Some(hash)),
            CommitOutcome::Nothing => Ok(None),
            CommitOutcome::Failed { message } => {
                let message = match message.contains("Please tell me who you are") {
                    // Git's own advice is a page.
                    true => {
                        "Author identity unknown; set it with git config user.name NAME and git config user.email EMAIL"
                    }
                    false => &message,
                };
                self.d.warn(format!("no commit: {message}"))?;
                Ok(None)
            }
        }
    }

    fn commit_beside(&mut self, message: &str) -> Result<CommitOutcome, HostError> {
        let confined = match self.confined_git() {
            Ok(confined) => confined,
            Err(error) => {
                let message = format!("git cannot be confined: {error}");
                return Ok(CommitOutcome::Failed { message });
            }
        };
        let job = self.work_tree()?.commit_job(message).confined(confined);
        let tx = self.d.tx.clone();
        let thread = std::thread::Builder::new().name("commit".to_owned());
        let begun = thread.spawn(move || drop(tx.send(HostMessage::Committed(job.run()))));
        if let Err(error) = begun {
            let message = format!("cannot start a thread: {error}");
            return Ok(CommitOutcome::Failed { message });
        }
        let notice_at = self.d.mono() + SLOW;
        let mut notice_at = Some(notice_at);
        let mut until =
            time_left_to_close(&self.d.state).map(|left| self.d.mono() + left.max(AT_LEAST));
        loop {
            let deadline = [notice_at, until].into_iter().flatten().min();
            match self.d.next(deadline)? {
                Some(HostMessage::Committed(outcome)) => return Ok(outcome),
                Some(message) => {
                    if let Some(ending) = self.handle_control(message)? {
                        self.work_tree()?.end_calls(ending);
                    }
                }
                None if notice_at.is_some_and(|at| self.d.mono() >= at) => {
                    notice_at = None;
                    self.d.append(fact::busy("committing: running git hooks"))?;
                }
                None => {
                    until = None;
                    self.work_tree()?.end_calls(self.kill_grace());
                }
            }
        }
    }
}
