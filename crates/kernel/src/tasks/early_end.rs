//! Whether a task loop ends though tasks are left.

use super::state::Landing;
use crate::budget::Reached;
use crate::event::StopBy;
use crate::outcome::IterativeExitReason;
use crate::sched::{AttemptEnd, Input, Outcome, StopReason};

/// What a host saw of an attempt that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedAttempt {
    /// How it ended for its tasks.
    pub end: AttemptEnd,
    /// Why the whole loop ends with it, as its own loop tells
    /// ([`ends_all_tasks`](super::ends_all_tasks)).
    pub ends_all: Option<IterativeExitReason>,
    /// Something other than its agent or gates went wrong.
    pub trouble: Option<AttemptTrouble>,
    /// Whether its run did something, as its summary shows.
    pub worked: bool,
    /// No other attempt is under way.
    pub is_last: bool,
}

/// What went wrong with an attempt, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptTrouble {
    /// With the host of the task loop: no place to work, a disk that is full. No other attempt would fare
    /// better.
    Host(String),
    /// With the machine of a worker, before its agent did anything: it is another's turn.
    Worker(String),
    /// A worker's agent cannot be used: it cannot be started there, or its login is wrong.
    Agent(String),
    /// What a worker's agent did could not be handed over or taken in, and has to be done again.
    Handover(String),
}

impl AttemptTrouble {
    /// What went wrong with an attempt that a worker made, by what its host says: for a task loop of its own
    /// that would be the end, for this one it is that of an attempt. What is left ends all: budgets.
    pub fn of_worker(
        trouble: Option<String>,
        ends_all: Option<IterativeExitReason>,
        had_run: bool,
    ) -> (Option<Self>, Option<IterativeExitReason>) {
        match (trouble, ends_all) {
            (Some(message), _) if had_run => (Some(Self::Handover(message)), None),
            (Some(message), _) | (None, Some(IterativeExitReason::Error { message })) => {
                (Some(Self::Worker(message)), None)
            }
            (None, Some(IterativeExitReason::AgentFailed { last, .. })) => {
                (Some(Self::Agent(last)), None)
            }
            (None, ends_all) => (None, ends_all),
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Host(message)
            | Self::Worker(message)
            | Self::Agent(message)
            | Self::Handover(message) => message,
        }
    }
}

/// So many attempts in a row whose work could not be taken in are the end: each of them is paid for.
const LOST_HANDOVERS: u32 = 3;
/// The same where the agent could be used by no worker while nothing else was under way.
const UNUSABLE_AGENTS: u32 = 3;

/// The reason for which a task loop ends early; the first one holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlyEnd {
    reason: Option<IterativeExitReason>,
    failures: FailedAttempts,
    /// Attempts in a row whose work could not be taken in.
    lost_handovers: u32,
    /// Attempts in a row whose agent no worker could use.
    unusable_agents: u32,
}

impl EarlyEnd {
    /// Whether there is a reason.
    pub fn is_decided(&self) -> bool {
        self.reason.is_some()
    }

    /// The reason.
    pub fn into_reason(self) -> Option<IterativeExitReason> {
        self.reason
    }

    /// An attempt is over, in a loop in which so many tasks are done and that may have used up a
    /// budget. Tells how the attempt ended for its tasks, and what the scheduler hears after that.
    pub fn attempt_over(
        &mut self,
        attempt: EndedAttempt,
        done: usize,
        max_failures: u32,
        reached: Option<Reached>,
    ) -> (AttemptEnd, Option<Input>) {
        let is_interrupted = attempt.trouble.is_some();
        let trouble = self.ends_by(attempt.trouble, attempt.is_last);
        let mut budget = None;
        let end = match trouble.or(attempt.ends_all) {
            // Of the whole: what runs is ended, and a loop that is done all the same is done.
            Some(IterativeExitReason::BudgetExhausted {
                budget: which,
                limit,
                used,
            }) => {
                budget = Some(Reached {
                    budget: which,
                    limit,
                    used,
                });
                AttemptEnd::Interrupted
            }
            Some(reason) => {
                self.reason.get_or_insert(reason);
                AttemptEnd::Interrupted
            }
            None if is_interrupted => AttemptEnd::Interrupted,
            None => attempt.end,
        };
        let hopeless = self
            .failures
            .count(&end, attempt.worked, done, max_failures);
        self.reason = self.reason.take().or(hopeless);
        let then = match self.reason {
            Some(_) => Some(Input::Cancel),
            None => reached.or(budget).map(Input::from),
        };
        (end, then)
    }

    /// The end that something which went wrong with an attempt is for all tasks.
    fn ends_by(
        &mut self,
        trouble: Option<AttemptTrouble>,
        is_last: bool,
    ) -> Option<IterativeExitReason> {
        match trouble {
            None => {
                (self.lost_handovers, self.unusable_agents) = (0, 0);
                None
            }
            Some(AttemptTrouble::Host(message)) => Some(IterativeExitReason::Error { message }),
            Some(AttemptTrouble::Worker(_)) => None,
            Some(AttemptTrouble::Handover(message)) => {
                self.lost_handovers += 1;
                let is_end = self.lost_handovers >= LOST_HANDOVERS;
                is_end.then_some(IterativeExitReason::Error { message })
            }
            Some(AttemptTrouble::Agent(last)) => {
                self.unusable_agents += 1;
                let failures = self.unusable_agents;
                let is_end = is_last && failures >= UNUSABLE_AGENTS;
                is_end.then_some(IterativeExitReason::AgentFailed { failures, last })
            }
        }
    }

    /// The time is used up while no agent was at work.
    pub fn time_is_up(&mut self, reached: Reached) {
        self.reason.get_or_insert(reached.exit_reason());
    }

    /// Who made the host leave the loop as it is, to be taken up again, when the scheduler has come to
    /// its end.
    pub fn leaves(&self, stop: Option<StopBy>, outcome: &Outcome) -> Option<StopBy> {
        let cancelled = matches!(
            outcome,
            Outcome::Stopped {
                why: StopReason::Cancelled
            }
        );
        stop.filter(|by| cancelled && self.reason.is_none() && !by.ends_loop())
    }

    /// Whether finished work that has not landed is tried once more when everything else is over.
    pub fn lands_rest(&self, stop: Option<StopBy>, landing: Option<&Landing>) -> bool {
        let over = stop.is_some() || self.reason.is_some();
        matches!(landing, Some(Landing::Ready { .. })) && !over
    }
}

impl From<Reached> for Input {
    fn from(reached: Reached) -> Self {
        let Reached {
            budget,
            limit,
            used,
        } = reached;
        Self::BudgetReached {
            budget,
            limit,
            used,
        }
    }
}

/// Attempts in a row, of whatever tasks, whose agent failed and left no work behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FailedAttempts(u32);

impl FailedAttempts {
    /// Takes the end of an attempt, whose run may have done something (`worked`), in a loop in which so
    /// many tasks are done. An agent that fails again and again before anything was ever done fails for
    /// every task: that is the end.
    fn count(
        &mut self,
        end: &AttemptEnd,
        worked: bool,
        done: usize,
        max_failures: u32,
    ) -> Option<IterativeExitReason> {
        match end {
            AttemptEnd::Failed { message } if !worked => {
                self.0 += 1;
                let hopeless = done == 0 && self.0 >= max_failures.max(1);
                return hopeless.then(|| IterativeExitReason::AgentFailed {
                    failures: self.0,
                    last: message.clone(),
                });
            }
            // Nothing was tried; or it did nothing, and nothing is wrong with it as far as can be told.
            AttemptEnd::Limited { .. } | AttemptEnd::Interrupted | AttemptEnd::NothingDone => {}
            _ => self.0 = 0,
        }
        None
    }
}
