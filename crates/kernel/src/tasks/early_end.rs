//! Whether a task loop ends though tasks are left.

use std::collections::BTreeMap;

use super::state::Landing;
use crate::budget::Reached;
use crate::event::StopBy;
use crate::outcome::IterativeExitReason;
use crate::sched::{AttemptEnd, Input, Outcome, StopReason};
use crate::step::DENIED_IN_ROW;

/// What a host saw of an attempt that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedAttempt {
    /// Its task, or the wave that one agent was given.
    pub work: String,
    /// How it ended for its tasks.
    pub end: AttemptEnd,
    /// Why the whole loop ends with it, as its own loop tells
    /// ([`ends_all_tasks`](super::ends_all_tasks)).
    pub ends_all: Option<IterativeExitReason>,
    /// Something other than its agent or gates went wrong.
    pub trouble: Option<AttemptTrouble>,
    /// Whether its run did something, as its summary shows.
    pub worked: bool,
    /// Whether it failed since tools were denied to its agent.
    pub denied: bool,
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

/// So many attempts in a row, at several tasks, whose work could not be taken in are the end: each of them is
/// paid for.
const LOST_HANDOVERS: usize = 3;
/// So many of one task block it: its agent does something that lets its work not be taken in.
const LOST_OF_TASK: u32 = 2;
/// The same where the agent could be used by no worker while nothing else was under way.
const UNUSABLE_AGENTS: u32 = 3;

/// What something that went wrong with an attempt means for the rest.
#[derive(Clone, Debug, PartialEq)]
enum AfterTrouble {
    /// The task is attempted again as if nothing had been, if the attempt came to nothing.
    GoesOn,
    EndsAll(IterativeExitReason),
    /// The task alone.
    Blocks(String),
}

/// The reason for which a task loop ends early; the first one holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlyEnd {
    reason: Option<IterativeExitReason>,
    failures: FailedAttempts,
    /// The work of attempts in a row that could not be taken in.
    lost_in_row: Vec<String>,
    /// The same by its task, whatever came in between.
    lost_of_task: BTreeMap<String, u32>,
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
        let trouble = self.after(&attempt.work, attempt.trouble, attempt.is_last);
        let mut budget = None;
        let (ends_all, blocks) = match trouble {
            AfterTrouble::GoesOn => (attempt.ends_all, None),
            AfterTrouble::EndsAll(reason) => (Some(reason), None),
            AfterTrouble::Blocks(message) => (attempt.ends_all, Some(message)),
        };
        let end = match ends_all {
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
            None => match blocks {
                Some(message) => AttemptEnd::NotTakenIn { message },
                None if is_interrupted => AttemptEnd::Interrupted,
                None => attempt.end,
            },
        };
        let hopeless =
            self.failures
                .count(&end, (attempt.worked, attempt.denied), done, max_failures);
        self.reason = self.reason.take().or(hopeless);
        let then = match self.reason {
            Some(_) => Some(Input::Cancel),
            None => reached.or(budget).map(Input::from),
        };
        (end, then)
    }

    /// What something that went wrong with an attempt at a piece of work means.
    fn after(
        &mut self,
        work: &str,
        trouble: Option<AttemptTrouble>,
        is_last: bool,
    ) -> AfterTrouble {
        match trouble {
            None => {
                self.lost_in_row.clear();
                self.lost_of_task.remove(work);
                self.unusable_agents = 0;
                AfterTrouble::GoesOn
            }
            Some(AttemptTrouble::Host(message)) => {
                AfterTrouble::EndsAll(IterativeExitReason::Error { message })
            }
            Some(AttemptTrouble::Worker(_)) => AfterTrouble::GoesOn,
            Some(AttemptTrouble::Handover(message)) => self.lost(work, message),
            Some(AttemptTrouble::Agent(last)) => {
                self.unusable_agents += 1;
                let failures = self.unusable_agents;
                match is_last && failures >= UNUSABLE_AGENTS {
                    true => {
                        AfterTrouble::EndsAll(IterativeExitReason::AgentFailed { failures, last })
                    }
                    false => AfterTrouble::GoesOn,
                }
            }
        }
    }

    /// The work of an attempt could not be taken in.
    fn lost(&mut self, work: &str, message: String) -> AfterTrouble {
        self.lost_in_row.push(work.to_owned());
        let is_of_several = self.lost_in_row.iter().any(|lost| lost != work);
        if is_of_several && self.lost_in_row.len() >= LOST_HANDOVERS {
            return AfterTrouble::EndsAll(IterativeExitReason::Error { message });
        }
        let lost = self.lost_of_task.entry(work.to_owned()).or_default();
        *lost += 1;
        match *lost >= LOST_OF_TASK {
            true => {
                // Opened again by a person, it has as many once more.
                self.lost_of_task.remove(work);
                AfterTrouble::Blocks(message)
            }
            false => AfterTrouble::GoesOn,
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
struct FailedAttempts {
    count: u32,
    /// Of these, the last in a row for which tools were denied.
    denied: u32,
}

impl FailedAttempts {
    /// Takes the end of an attempt, whose run may have done something (`worked`) or may have been denied its
    /// tools, in a loop in which so many tasks are done. An agent that fails again and again before anything was
    /// ever done fails for every task: that is the end.
    fn count(
        &mut self,
        end: &AttemptEnd,
        (worked, denied): (bool, bool),
        done: usize,
        max_failures: u32,
    ) -> Option<IterativeExitReason> {
        match end {
            AttemptEnd::Failed { message } | AttemptEnd::CutOff { message, .. } if !worked => {
                self.count += 1;
                self.denied = if denied { self.denied + 1 } else { 0 };
                let is_enough = self.count >= max_failures.max(1) || self.denied >= DENIED_IN_ROW;
                let hopeless = done == 0 && is_enough;
                return hopeless.then(|| IterativeExitReason::AgentFailed {
                    failures: self.count,
                    last: message.clone(),
                });
            }
            // Nothing was tried; or it did nothing, and nothing is wrong with it as far as can be told.
            AttemptEnd::Limited { .. }
            | AttemptEnd::Interrupted
            | AttemptEnd::Cancelled
            | AttemptEnd::NotTakenIn { .. }
            | AttemptEnd::NothingDone => {}
            _ => *self = Self::default(),
        }
        None
    }
}
