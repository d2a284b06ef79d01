//! An attempt that is over: what the task loop makes of it.

use descartes_kernel::event::Event;
use descartes_kernel::outcome::{Budget, IterativeExitReason};
use descartes_kernel::sched::{AttemptEnd, Input};
use descartes_kernel::step::settled_by_attempt;

use super::attempt::AttemptNews;
use super::growth::Answer;
use super::launch;
use super::run::Runner;
use crate::host::HostError;

impl Runner<'_> {
    pub(super) fn attempt_over(&mut self, mut news: AttemptNews) -> Result<(), HostError> {
        // An agent may have set its own status: that is put right before it is judged.
        self.reload()?;
        self.advance()?;
        let notes = self.live.remove(&news.slot).map(|live| live.notes);
        let answer = self.growth.is_under_way().then(|| Answer::of(&news));
        let worked = has_worked(&news);
        for warning in std::mem::take(&mut news.warnings) {
            self.d.warn(warning)?;
        }
        let work = launch::work_id(self, &news.tasks);
        for file in std::mem::take(&mut news.gate_files) {
            let task = Some(work.as_str().into());
            let known = self.d.state.changed_gate_files.iter();
            if !known
                .into_iter()
                .any(|known| known.file == file && known.task == task)
            {
                self.d.append(Event::GateFileChanged { file, task })?;
            }
        }
        if let Some(run) = news.run.take() {
            let task = launch::work_id(self, &news.tasks);
            let delivers = run.had_prompt
                && (run.summary.verdict.as_ref()).is_some_and(|verdict| verdict.delivers());
            self.d.append(Event::TaskRun {
                task: task.as_str().into(),
                loop_id: run.loop_id,
                iterations: run.iterations,
                summary: Box::new(run.summary),
                spent: run.spent,
            })?;
            let notes = notes.filter(|_| delivers).unwrap_or_default();
            for event in settled_by_attempt(&self.d.state, &notes) {
                self.d.append(event)?;
            }
        }
        if let Some(answer) = answer {
            self.grown(&answer)?;
            return self.d.keep_locks();
        }
        let mut end = news.end;
        if let Some(reason) = news.fatal {
            self.fatal.get_or_insert(reason);
            end = AttemptEnd::Interrupted;
        }
        if let (Some(words), AttemptEnd::Green { .. }) = (news.no_commit, &end) {
            for task in &news.tasks {
                self.no_commit.insert(task.clone(), words.clone());
            }
        }
        self.count_failures(&end, worked);
        for task in news.tasks {
            let end = end.clone();
            self.inputs.push_back(Input::Finished { task, end });
        }
        if self.fatal.is_some() {
            self.inputs.push_back(Input::Cancel);
        } else if let Some((budget, limit, used)) = self.exhausted() {
            self.fatal = Some(IterativeExitReason::BudgetExhausted {
                budget,
                limit,
                used,
            });
            self.inputs.push_back(Input::BudgetReached {
                budget,
                limit,
                used,
            });
        }
        self.d.keep_locks()
    }

    /// An agent that fails again and again fails for every task: it exits with an error or tells
    /// one, and leaves no work behind.
    pub(super) fn count_failures(&mut self, end: &AttemptEnd, worked: bool) {
        match end {
            AttemptEnd::Failed { message } if !worked => {
                self.failures += 1;
                if self.failures >= self.d.state.config.max_failures.max(2) && self.hopeless() {
                    self.fatal.get_or_insert(IterativeExitReason::AgentFailed {
                        failures: self.failures,
                        last: message.clone(),
                    });
                }
            }
            AttemptEnd::Limited { .. } | AttemptEnd::Interrupted => {}
            // It did nothing, and nothing is wrong with it as far as can be told.
            AttemptEnd::NothingDone => {}
            _ => self.failures = 0,
        }
    }

    /// Nothing was ever done in this loop.
    pub(super) fn hopeless(&self) -> bool {
        let done = self.d.state.tasks.as_ref().map_or(0, |t| t.count().0);
        done == 0
    }

    pub(super) fn exhausted(&self) -> Option<(Budget, f64, f64)> {
        let (config, spent) = (&self.d.state.config, &self.d.state.spent);
        let time = config.max_duration_secs.map(|limit| {
            (
                Budget::Duration,
                limit.0.as_secs_f64(),
                spent.ms as f64 / 1e3,
            )
        });
        let cost = config.max_cost_usd.zip(spent.cost_micros);
        let cost = cost.map(|(limit, used)| (Budget::Cost, limit, used as f64 / 1e6));
        let tokens = config.max_tokens.zip(spent.tokens);
        let tokens = tokens.map(|(limit, used)| (Budget::Tokens, limit as f64, used as f64));
        let all = [time, cost, tokens].into_iter().flatten();
        all.into_iter().find(|(_, limit, used)| used >= limit)
    }
}

/// Whether the run of an attempt changed files.
fn has_worked(news: &AttemptNews) -> bool {
    let run = news.run.as_ref();
    run.and_then(|run| run.summary.files)
        .is_some_and(|files| files > 0)
}
