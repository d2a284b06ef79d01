//! Why a loop ended, and the exit code that says so.

pub use descartes_agents::run::Budget;
use serde::{Deserialize, Serialize};

use descartes_text::units::{plural, show_usd};

/// Exit codes that are no outcome of a loop but of the command line itself.
pub mod exit {
    /// A usage error: wrong flags or values.
    pub const USAGE: i32 = 64;
    /// A refusal: state file held, finished, foreign or unreadable; unknown tag; bad graph.
    pub const REFUSED: i32 = 65;
    /// Findings of `check` and `doctor`, and plain errors.
    pub const ERROR: i32 = 1;
    /// Ended by Ctrl-C, or cancelled.
    pub const INTERRUPTED: i32 = 130;
    /// Ended by SIGTERM.
    pub const TERMINATED: i32 = 143;
    /// The terminal was closed (SIGHUP); the loop can be resumed.
    pub const HUNG_UP: i32 = 129;
}

/// Finished work of a task loop that could not be brought into the user's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlanded {
    /// The branch on which it waits.
    pub branch: String,
    /// Why it waits.
    pub why: String,
    /// Whether nothing but a full disk keeps it from landing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_disk: bool,
}

/// Why a loop ended; `Running` while it has not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IterativeExitReason {
    /// The loop has not ended.
    #[default]
    Running,
    /// The agent claimed its promise, and every gate was green.
    CompletionPromiseDetected,
    /// No promise and no gate: the agent exited with code 0.
    ProcessSuccess,
    /// No promise: the gates alone decided, and were green.
    GatesPassed,
    /// The iteration limit was reached first.
    MaxIterationsReached,
    /// A budget of the whole loop was used up.
    BudgetExhausted {
        budget: Budget,
        /// What was allowed.
        limit: f64,
        /// What was used.
        used: f64,
    },
    /// No evidence of progress for too long.
    Stalled {
        /// Iterations in a row without evidence.
        iterations: u32,
        /// What was looked at.
        evidence: String,
    },
    /// The agent said that it cannot be done.
    AgentBlocked {
        /// The agent's words.
        message: String,
    },
    /// The agent failed too often in a row, or its login is wrong.
    AgentFailed {
        /// Failures in a row.
        failures: u32,
        /// The last failure.
        last: String,
    },
    /// Task loops: nothing more can run.
    TasksBlocked {
        /// Ids of the tasks that are not done.
        tasks: Vec<String>,
        /// Finished work that is not in the user's branch, and why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unlanded: Option<Unlanded>,
    },
    /// Something went wrong that is no fault of the agent.
    Error { message: String },
    /// A person ended it.
    UserCancelled,
}

impl IterativeExitReason {
    /// The process exit code for this reason.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Running
            | Self::CompletionPromiseDetected
            | Self::ProcessSuccess
            | Self::GatesPassed => 0,
            Self::MaxIterationsReached => 2,
            Self::BudgetExhausted { .. } => 3,
            Self::Stalled { .. } => 4,
            Self::AgentBlocked { .. } => 5,
            // The tasks are done: what is wrong is the machine.
            Self::TasksBlocked {
                tasks,
                unlanded: Some(work),
            } if tasks.is_empty() && work.full_disk => 1,
            Self::TasksBlocked { .. } => 6,
            Self::AgentFailed { .. } => 7,
            Self::Error { .. } => 1,
            Self::UserCancelled => exit::INTERRUPTED,
        }
    }

    /// The flags with which `loop resume` goes on after it: twice the limit that was reached. None
    /// are needed after most.
    pub fn resume_flags(&self, max_iterations: Option<u32>) -> String {
        match self {
            Self::MaxIterationsReached => {
                let more = max_iterations.unwrap_or(20).max(1).saturating_mul(2);
                format!("--max-iterations {more}")
            }
            Self::BudgetExhausted {
                budget,
                limit,
                used,
            } => {
                // The last run may have passed the limit by far.
                let (flag, more) = (budget.flag(), limit.max(*used) * 2.0);
                match budget {
                    Budget::Duration => format!("{flag} {:.0}s", more.ceil().max(1.0)),
                    Budget::Cost => format!("{flag} {:.2}", more.max(0.01)),
                    Budget::Tokens => format!("{flag} {:.0}", more.max(1.0)),
                }
            }
            Self::TasksBlocked { .. } => "--retry-blocked".to_owned(),
            _ => String::new(),
        }
    }

    /// Whether the work was proven (or, without gates, claimed) done.
    pub fn is_success(&self) -> bool {
        matches!(
            self,
            Self::CompletionPromiseDetected | Self::ProcessSuccess | Self::GatesPassed
        )
    }

    /// A short label for lists, status lines and windows.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::CompletionPromiseDetected => "Completed (promise)",
            Self::ProcessSuccess => "Completed (exit 0)",
            Self::GatesPassed => "Completed (gates green)",
            Self::MaxIterationsReached => "Iteration limit reached",
            Self::BudgetExhausted { .. } => "Budget used up",
            Self::Stalled { .. } => "Stalled",
            Self::AgentBlocked { .. } => "Blocked by the agent",
            Self::AgentFailed { .. } => "Agent failed",
            Self::TasksBlocked {
                tasks,
                unlanded: Some(_),
            } if tasks.is_empty() => "Work not landed",
            Self::TasksBlocked { .. } => "Tasks blocked",
            Self::Error { .. } => "Error",
            Self::UserCancelled => "Cancelled",
        }
    }

    /// One sentence for a person: the label with what is known.
    pub fn sentence(&self) -> String {
        match self {
            Self::BudgetExhausted {
                budget,
                limit,
                used,
            } => match budget {
                Budget::Duration => format!("time budget used up ({used:.0} s of {limit:.0} s)"),
                Budget::Cost => format!(
                    "cost budget used up ({} of {})",
                    show_usd(*used),
                    show_usd(*limit)
                ),
                Budget::Tokens => format!("token budget used up ({used:.0} of {limit:.0})"),
            },
            Self::Stalled {
                iterations,
                evidence,
            } => {
                let still = plural(u64::from(*iterations), "iteration");
                format!("stalled: {still} without progress ({evidence})")
            }
            Self::AgentBlocked { message } => format!("blocked by the agent: {message}"),
            Self::AgentFailed { failures, last } => {
                let times = match failures {
                    1 => "once".to_owned(),
                    many => format!("{many} times in a row"),
                };
                format!("the agent failed {times}: {last}")
            }
            Self::TasksBlocked { tasks, unlanded } => {
                let blocked = (!tasks.is_empty() || unlanded.is_none())
                    .then(|| format!("tasks blocked: {}", tasks.join(", ")));
                let unlanded = unlanded
                    .as_ref()
                    .map(|work| format!("finished work has not landed: {}", work.why));
                let parts: Vec<String> = blocked.into_iter().chain(unlanded).collect();
                parts.join("; ")
            }
            Self::Error { message } => format!("error: {message}"),
            other => other.label().to_lowercase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_agree_with_their_counts() {
        let stalled = |iterations| {
            let evidence = "x".to_owned();
            IterativeExitReason::Stalled {
                iterations,
                evidence,
            }
            .sentence()
        };
        assert_eq!(stalled(1), "stalled: 1 iteration without progress (x)");
        assert_eq!(stalled(2), "stalled: 2 iterations without progress (x)");
    }

    #[test]
    fn exit_codes_are_the_documented_table() {
        use IterativeExitReason as R;
        let unlanded = |tasks: &[&str], full_disk| R::TasksBlocked {
            tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
            unlanded: Some(Unlanded {
                branch: "b".to_owned(),
                why: "w".to_owned(),
                full_disk,
            }),
        };
        let table = [
            (
                R::CompletionPromiseDetected,
                0,
                "completion_promise_detected",
            ),
            (R::ProcessSuccess, 0, "process_success"),
            (R::GatesPassed, 0, "gates_passed"),
            (R::MaxIterationsReached, 2, "max_iterations_reached"),
            (
                R::BudgetExhausted {
                    budget: Budget::Cost,
                    limit: 1.0,
                    used: 1.5,
                },
                3,
                "budget_exhausted",
            ),
            (
                R::Stalled {
                    iterations: 10,
                    evidence: "x".into(),
                },
                4,
                "stalled",
            ),
            (
                R::AgentBlocked {
                    message: "m".into(),
                },
                5,
                "agent_blocked",
            ),
            (
                R::TasksBlocked {
                    tasks: vec!["1".into()],
                    unlanded: None,
                },
                6,
                "tasks_blocked",
            ),
            (unlanded(&[], false), 6, "tasks_blocked"),
            (unlanded(&[], true), 1, "tasks_blocked"),
            (unlanded(&["1"], true), 6, "tasks_blocked"),
            (
                R::AgentFailed {
                    failures: 5,
                    last: "l".into(),
                },
                7,
                "agent_failed",
            ),
            (
                R::Error {
                    message: "m".into(),
                },
                1,
                "error",
            ),
            (R::UserCancelled, 130, "user_cancelled"),
            (R::Running, 0, "running"),
        ];
        for (reason, code, name) in table {
            assert_eq!(reason.exit_code(), code, "{reason:?}");
            let json = serde_json::to_value(&reason).unwrap();
            assert_eq!(json["type"], name);
            assert_eq!(serde_json::from_value::<R>(json).unwrap(), reason);
        }
    }
}
