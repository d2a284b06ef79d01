//! An attempt that is over: what the task loop makes of it.

use descartes_kernel::budget;
use descartes_kernel::fact;
use descartes_kernel::fleet::KnownOffer;
use descartes_kernel::sched::{AttemptEnd, Input};
use descartes_kernel::state::Spent;
use descartes_kernel::step::{budget_unkept_by_task, settled_by_attempt};
use descartes_kernel::tasks::{AttemptTrouble, EndedAttempt};
use descartes_plans::graph::TaskId;

use super::event::AttemptNews;
use super::growth::GrowthAnswer;
use super::launch;
use super::runner::{Live, Runner};
use super::runner_state::GROWTH;
use crate::host::HostError;

impl Runner<'_> {
    pub(super) fn attempt_over(&mut self, mut news: AttemptNews) -> Result<(), HostError> {
        // An agent may have set its own status: that is put right before it is judged.
        self.reload()?;
        self.advance()?;
        self.count_time();
        let live = self.live.remove(&news.serial);
        let answer = self.growth.is_under_way().then(|| GrowthAnswer::of(&news));
        let worked = (news.run.as_ref()).is_some_and(|run| run.summary.shows_work());
        let tools_denied = (news.run.as_ref()).is_some_and(|run| run.summary.is_denied());
        for warning in std::mem::take(&mut news.warnings) {
            self.d.warn(warning)?;
        }
        self.recorded.extend(news.recorded.take());
        let work = launch::work_id(self, &news.tasks);
        if self.has_heard(&work) {
            // The host before this one died between this record and the next.
            news.run = None;
        }
        for file in std::mem::take(&mut news.gate_files) {
            let task = Some(work.as_str().into());
            let known = self.d.state.changed_gate_files.iter();
            if !known
                .into_iter()
                .any(|known| known.file == file && known.task == task)
            {
                self.d.append(fact::gate_file_changed(file, task))?;
            }
        }
        let denied = std::mem::take(&mut news.denied);
        self.d.append_all(fact::sandbox_denied_to_task(
            &self.d.state,
            work.as_str().into(),
            denied,
        ))?;
        let planted = std::mem::take(&mut news.planted);
        let task = Some(work.as_str().into());
        let planted = fact::planted_in_git(&self.d.state, 0, task, planted);
        self.d.append_all(planted)?;
        if let Some(run) = news.run.take() {
            let unseen = self.unseen_ms(live.as_ref(), &run.spent);
            let wall_ms = self.take_time() + unseen;
            let delivers = run.had_prompt
                && (run.summary.verdict.as_ref()).is_some_and(|verdict| verdict.delivers());
            let unkept = budget_unkept_by_task(&self.d.state, &work, &run.summary);
            self.d.append_all(unkept)?;
            self.d.append(fact::task_run(
                work.as_str().into(),
                run.loop_id,
                run.iterations,
                run.summary,
                run.spent,
                wall_ms,
            ))?;
            let notes = live.filter(|_| delivers).map(|live| live.notes);
            let notes = notes.unwrap_or_default();
            self.d
                .append_all(settled_by_attempt(&self.d.state, &notes))?;
        }
        let over = news.offer_over.take();
        let over =
            over.and_then(|epoch| fact::offer_over(&self.d.state, work.as_str().into(), epoch));
        self.d.append_all(over)?;
        if let Some(answer) = answer {
            self.grown(&answer)?;
            return self.d.keep_locks();
        }
        let done = self.d.state.tasks.as_ref().map_or(0, |t| t.count().0);
        let max_failures = self.d.state.config.max_failures;
        let attempt = EndedAttempt {
            work,
            end: news.end,
            ends_all: news.ends_all,
            trouble: (news.remote_trouble).or_else(|| news.trouble.map(AttemptTrouble::Host)),
            worked,
            denied: tools_denied,
            is_last: self.live.is_empty(),
        };
        let reached = self.exhausted();
        let (end, then) = self
            .early
            .attempt_over(attempt, done, max_failures, reached);
        // What an attempt before left counts no more: its task may have left the file meanwhile.
        let unkept = news.no_commit;
        let unkept = unkept.filter(|_| matches!(end, AttemptEnd::Green { .. }));
        for task in &news.tasks {
            match unkept.clone() {
                Some(message) => drop(self.no_commit.insert(task.clone(), message)),
                None => drop(self.no_commit.remove(task)),
            }
        }
        for task in news.tasks {
            let end = end.clone();
            self.inputs.push_back(Input::Finished { task, end });
        }
        self.inputs.extend(then);
        self.d.keep_locks()
    }

    /// The time of a run before this host took its attempt up.
    fn unseen_ms(&self, live: Option<&Live>, spent: &Spent) -> u64 {
        let since = live.and_then(|live| live.taken_up);
        let seen = since.map(|since| self.d.mono().saturating_sub(since));
        seen.map_or(0, |seen| {
            budget::unseen_ms(spent.ms, seen, self.config.parallel)
        })
    }

    /// Whether what workers made of the last offer of this work is in the journal.
    fn has_heard(&self, work: &str) -> bool {
        let tasks = self.d.state.tasks.as_ref();
        self.config.workers.is_some() && tasks.is_some_and(|tasks| tasks.has_result(work))
    }

    /// Offers of earlier hosts that are not taken up, since somebody took their tasks out meanwhile or
    /// their results are in the journal: their workers are told.
    pub(super) fn close_left_offers(&mut self) {
        let Some(tasks) = self.d.state.tasks.as_ref() else {
            return;
        };
        let live = self.live.values().map(|live| live.tasks.clone());
        let held = self.questions.held.iter();
        let held = held.map(|held| held.tasks.iter().map(|one| one.task.clone()).collect());
        let under_way: Vec<String> = live
            .chain(held)
            .map(|tasks: Vec<TaskId>| launch::work_id(self, &tasks))
            .collect();
        let is_left = |work: &TaskId| {
            // A question for one more task is asked again later.
            !under_way.iter().any(|known| **known == **work) && !work.starts_with(GROWTH)
        };
        let left = tasks.offers.iter().filter(|(work, _)| is_left(work));
        let left = left.map(|(work, offer)| (work.to_string(), *offer));
        let left: Vec<(String, KnownOffer)> = left.collect();
        self.executor.close_left(left);
    }
}
