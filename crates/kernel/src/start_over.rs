//! What becomes of a state file that is there already when a loop is started.
//!
//! A loop that is over does not block its folder. But who starts the same work again by a script,
//! after it ended at a limit or failed, must not get fresh budgets for it.

use std::path::{Path, PathBuf};

use crate::config::IterativeLoopConfig;
use crate::outcome::IterativeExitReason;
use crate::state::IterativeLoopState;
use crate::tasks::TaskFile;
use descartes_text::units::plural;

/// What a start does with the state file that it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartOver {
    /// Keeps it beside the new one, dated: its loop is over.
    KeepBeside,
    Refuse {
        /// How that loop stands: `was interrupted after 3 iterations`.
        how: String,
        /// Flags with which `loop resume` goes on.
        resume_flags: String,
    },
}

/// Decides it, from the loop of the file and what is asked for now.
pub fn start_over(old: &IterativeLoopState, new: &IterativeLoopConfig) -> StartOver {
    let reason = &old.exit_reason;
    if !old.completed {
        let count = plural(u64::from(old.iteration), "iteration");
        return StartOver::Refuse {
            how: format!("was interrupted after {count}"),
            resume_flags: String::new(),
        };
    }
    let settled = reason.is_success()
        || *reason == IterativeExitReason::UserCancelled
        || never_got_going(old);
    if settled || !same_work(&old.config, new) {
        return StartOver::KeepBeside;
    }
    StartOver::Refuse {
        how: format!("has already ended this work: {}", reason.sentence()),
        resume_flags: reason.resume_flags(old.config.max_iterations),
    }
}

/// Whether every run of a loop failed as soon as it was started: nothing was used that a start could get anew.
fn never_got_going(old: &IterativeLoopState) -> bool {
    let failed = matches!(
        old.exit_reason,
        IterativeExitReason::AgentFailed { .. } | IterativeExitReason::Error { .. }
    );
    let rows = &old.iteration_summaries;
    failed
        && rows.len() as u64 == u64::from(old.iteration)
        && rows
            .iter()
            .all(|row| row.failed_at_start() && !row.shows_work())
}

/// Whether two loops are asked for the same: by their tasks, else their prompt, else, where neither
/// has one, their command.
fn same_work(old: &IterativeLoopConfig, new: &IterativeLoopConfig) -> bool {
    match (&old.tasks, &new.tasks) {
        (Some(old), Some(new)) => same_tasks(&old.source, &new.source),
        (None, None) => match (prompt_file(old), prompt_file(new)) {
            // Its text may have been edited since: that steers the same loop.
            (Some(old), Some(new)) => old == new,
            (None, None) if has_prompt(old) || has_prompt(new) => {
                old.prompt.trim() == new.prompt.trim()
            }
            (None, None) => old.command == new.command && old.args == new.args,
            _ => false,
        },
        _ => false,
    }
}

fn has_prompt(config: &IterativeLoopConfig) -> bool {
    !config.prompt.trim().is_empty()
}

fn prompt_file(config: &IterativeLoopConfig) -> Option<PathBuf> {
    let file = config.prompt_file.as_ref()?;
    let dir = config.working_directory.clone().unwrap_or_default();
    Some(dir.join(file))
}

/// Whether a loop is about another list than one that is to be run in a folder. A project that was moved since
/// has the same lists.
pub fn is_of_other_list(old: &IterativeLoopConfig, list: &Path, dir: &Path) -> bool {
    let Some(tasks) = &old.tasks else {
        return false;
    };
    let old_list = tasks.source.path();
    let below = |path: &Path, dir: Option<&Path>| Some(path.strip_prefix(dir?).ok()?.to_owned());
    let relative = below(old_list, old.working_directory.as_deref()).zip(below(list, Some(dir)));
    match relative {
        Some((old, new)) => old != new,
        None => old_list != list,
    }
}

fn same_tasks(old: &TaskFile, new: &TaskFile) -> bool {
    match (old, new) {
        (TaskFile::Scud { tag: old, file: a }, TaskFile::Scud { tag: new, file: b }) => {
            old == new && a == b
        }
        (old, new) => {
            std::mem::discriminant(old) == std::mem::discriminant(new) && old.path() == new.path()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EndedBy, Verdict};
    use crate::outcome::Budget;
    use crate::state::IterationSummary;

    fn prompt(text: &str) -> IterativeLoopConfig {
        IterativeLoopConfig {
            command: "agent".to_owned(),
            prompt: text.to_owned(),
            max_iterations: Some(20),
            working_directory: Some("/project".into()),
            ..IterativeLoopConfig::default()
        }
    }

    fn file(name: &str) -> IterativeLoopConfig {
        IterativeLoopConfig {
            prompt_file: Some(name.into()),
            ..prompt("")
        }
    }

    fn command(name: &str) -> IterativeLoopConfig {
        IterativeLoopConfig {
            command: name.to_owned(),
            ..prompt("")
        }
    }

    fn tasks(source: TaskFile) -> IterativeLoopConfig {
        let tasks = serde_json::json!({ "source": source });
        IterativeLoopConfig {
            tasks: Some(serde_json::from_value(tasks).unwrap()),
            ..prompt("")
        }
    }

    fn scud(tag: &str) -> IterativeLoopConfig {
        tasks(TaskFile::Scud {
            tag: tag.to_owned(),
            file: "/project/.scud/tasks.scg".into(),
        })
    }

    fn roadmap(path: &str) -> IterativeLoopConfig {
        tasks(TaskFile::Roadmap {
            file: path.into(),
            defaults: crate::tasks::RoadmapDefaults::default(),
        })
    }

    fn ended(config: IterativeLoopConfig, reason: IterativeExitReason) -> IterativeLoopState {
        IterativeLoopState {
            config,
            completed: reason != IterativeExitReason::Running,
            exit_reason: reason,
            iteration: 3,
            ..IterativeLoopState::default()
        }
    }

    fn spent(budget: Budget, limit: f64) -> IterativeExitReason {
        IterativeExitReason::BudgetExhausted {
            budget,
            limit,
            used: limit,
        }
    }

    #[test]
    fn what_was_done_or_cancelled_makes_room_even_for_the_same() {
        for reason in [
            IterativeExitReason::CompletionPromiseDetected,
            IterativeExitReason::ProcessSuccess,
            IterativeExitReason::GatesPassed,
            IterativeExitReason::UserCancelled,
        ] {
            let old = ended(prompt("a"), reason);
            assert_eq!(start_over(&old, &prompt("a")), StartOver::KeepBeside);
        }
    }

    #[test]
    fn the_same_after_a_limit_or_failure_is_refused_with_the_way_on() {
        let message = || "m".to_owned();
        for (reason, flags) in [
            (
                IterativeExitReason::MaxIterationsReached,
                "--max-iterations 40",
            ),
            (spent(Budget::Cost, 2.5), "--max-cost 5.00"),
            (spent(Budget::Duration, 90.0), "--max-duration 180s"),
            (spent(Budget::Tokens, 1000.0), "--max-tokens 2000"),
            (
                IterativeExitReason::Stalled {
                    iterations: 10,
                    evidence: message(),
                },
                "",
            ),
            (IterativeExitReason::AgentBlocked { message: message() }, ""),
            (
                IterativeExitReason::AgentFailed {
                    failures: 5,
                    last: message(),
                },
                "",
            ),
            (IterativeExitReason::Error { message: message() }, ""),
            (
                IterativeExitReason::TasksBlocked {
                    tasks: Vec::new(),
                    unlanded: None,
                },
                "--retry-blocked",
            ),
        ] {
            let old = ended(prompt("a"), reason.clone());
            let how = format!("has already ended this work: {}", reason.sentence());
            let resume_flags = flags.to_owned();
            let refused = StartOver::Refuse { how, resume_flags };
            assert_eq!(start_over(&old, &prompt("a")), refused);
            assert_eq!(start_over(&old, &prompt("b")), StartOver::KeepBeside);
        }
    }

    #[test]
    fn a_loop_whose_agent_never_got_going_makes_room() {
        let row = |seconds: i64, tokens| IterationSummary {
            started_at: Some(jiff::Timestamp::UNIX_EPOCH),
            completed_at: jiff::Timestamp::from_second(seconds).ok(),
            exit_code: Some(2),
            ended_by: Some(EndedBy::Exit),
            verdict: Some(Verdict::Failed("exit code 2".into())),
            tokens,
            ..IterationSummary::default()
        };
        let worked = IterationSummary {
            verdict: Some(Verdict::Worked),
            ..row(1, None)
        };
        let failed = || IterativeExitReason::AgentFailed {
            failures: 2,
            last: "exit code 2".into(),
        };
        let at_limit = || IterativeExitReason::MaxIterationsReached;
        for (reason, rows, makes_room) in [
            (failed(), vec![row(1, None), row(2, None)], true),
            (failed(), vec![row(1, None), row(9, None)], false),
            (failed(), vec![row(1, None), row(2, Some(7))], false),
            (failed(), vec![worked, row(2, None)], false),
            // Not all of them are known.
            (failed(), vec![row(1, None)], false),
            (at_limit(), vec![row(1, None), row(2, None)], false),
        ] {
            let old = IterativeLoopState {
                iteration: 2,
                iteration_summaries: rows,
                ..ended(prompt("a"), reason.clone())
            };
            let is_room = start_over(&old, &prompt("a")) == StartOver::KeepBeside;
            assert_eq!(is_room, makes_room, "{reason:?}");
        }
        // Where no agent could be started, none has an iteration.
        let error = IterativeExitReason::Error {
            message: "m".into(),
        };
        let old = IterativeLoopState {
            iteration: 0,
            ..ended(prompt("a"), error)
        };
        assert_eq!(start_over(&old, &prompt("a")), StartOver::KeepBeside);
    }

    #[test]
    fn an_interrupted_loop_is_never_started_over() {
        let old = ended(prompt("a"), IterativeExitReason::Running);
        for new in [prompt("a"), prompt("b"), scud("t")] {
            let StartOver::Refuse { how, resume_flags } = start_over(&old, &new) else {
                panic!("{new:?}");
            };
            assert_eq!(how, "was interrupted after 3 iterations");
            assert_eq!(resume_flags, "");
        }
    }

    #[test]
    fn a_list_is_another_one_by_where_it_lies_in_its_project() {
        let old = roadmap("/project/api/TODO.md");
        let of_list =
            |path: &str, dir: &str| is_of_other_list(&old, Path::new(path), Path::new(dir));
        assert!(!of_list("/project/api/TODO.md", "/project"));
        assert!(of_list("/project/web/TODO.md", "/project"));
        assert!(!of_list("/moved/api/TODO.md", "/moved"));
        assert!(of_list("/elsewhere/TODO.md", "/project"));
        let plain = prompt("a");
        assert!(!is_of_other_list(&plain, Path::new("/x"), Path::new("/")));
    }

    #[test]
    fn work_is_the_same_by_tasks_then_prompt_then_command() {
        let absolute = file("/project/P.md");
        for (old, new, same) in [
            (prompt("a"), prompt(" a\n"), true),
            (prompt("a"), prompt("b"), false),
            (file("P.md"), absolute.clone(), true),
            (file("P.md"), file("Q.md"), false),
            (file("P.md"), prompt("a"), false),
            (prompt("a"), absolute, false),
            (command("x"), command("x"), true),
            (command("x"), command("y"), false),
            (command("x"), prompt("a"), false),
            (scud("t"), scud("t"), true),
            (scud("t"), scud("u"), false),
            (scud("t"), prompt("a"), false),
            (scud("t"), roadmap("/project/R.md"), false),
            (roadmap("/project/R.md"), roadmap("/project/R.md"), true),
            (roadmap("/project/R.md"), roadmap("/project/S.md"), false),
        ] {
            assert_eq!(same_work(&old, &new), same, "{old:?}\n{new:?}");
        }
    }
}
