//! Growth: when every task of a roadmap is done, an agent is asked for one more, as often as the
//! person allowed and no more.

use descartes_kernel::event::Verdict;
use descartes_kernel::sched::{Input, Outcome, Scheduler};
use descartes_kernel::tasks::{TaskFile, growth_config};
use descartes_plans::graph::TaskId;
use descartes_plans::roadmap::{growth_prompt, growth_reply};

use super::event::AttemptNews;
use super::launch;
use super::place::Work;
use super::runner::Runner;
use super::runner_state::{GROWTH, GrowthStanding};
use crate::host::HostError;

/// An agent's answer.
pub(super) struct GrowthAnswer {
    work: Option<Work>,
    /// What it said, or why that does not count.
    said: Result<String, String>,
}

impl GrowthAnswer {
    /// What the run of its loop came to.
    pub(super) fn of(news: &AttemptNews) -> Self {
        let work = |task: &TaskId| Work::named(task.to_string(), String::new());
        let summary = news.run.as_ref().map(|run| &run.summary);
        let said = match summary.and_then(|summary| Some((summary.verdict.as_ref()?, summary))) {
            Some((verdict, summary)) if verdict.proves() => Ok(summary.output_preview.clone()),
            Some((Verdict::Failed(why), _)) => {
                Err(format!("the agent that was asked failed: {why}"))
            }
            Some((Verdict::Stopped, _)) | None => {
                Err("the agent that was asked was stopped before it had answered".to_owned())
            }
            Some(_) => Err("the agent that was asked did not end with success".to_owned()),
        };
        Self {
            work: news.tasks.first().map(work),
            said,
        }
    }
}

impl Runner<'_> {
    /// Whether an agent is to be asked for one more task.
    pub(super) fn wants_growth(&self) -> bool {
        let TaskFile::Roadmap { defaults, .. } = &self.config.source else {
            return false;
        };
        let complete = self
            .ended
            .as_ref()
            .is_some_and(|ended| ended.outcome == Outcome::Complete);
        complete
            && self.growth.standing == GrowthStanding::Open
            && self.growth.asked < defaults.growth
            && self.d.state.requests.stop.is_none()
            && !self.early.is_decided()
    }

    /// Asks an agent for one more task.
    pub(super) fn grow(&mut self) -> Result<(), HostError> {
        self.growth.asked += 1;
        self.growth.standing = GrowthStanding::UnderWay;
        let text = descartes_store::safe_open::read_user_text(self.config.source.path())
            .map_err(|error| HostError::refused(error.to_string(), "look at the roadmap"))?;
        let roadmap = descartes_plans::roadmap::parse(&text);
        // Numbers of earlier hosts are not used again: each question is a loop of its own.
        let number = roadmap.tasks.len() as u32 + self.growth.asked;
        let title = "a proposal for one more task".to_owned();
        let work = Work::named(format!("{GROWTH}{number}"), title);
        let config = growth_config(
            &self.d.state.config,
            &self.spent_now(),
            growth_prompt(&roadmap),
            launch::state_file(self, &work),
        );
        let task = TaskId::from(work.id.as_str());
        launch::start(self, 0, 1, vec![task], work, config, None).map(drop)
    }

    /// Takes the answer: one more task in the file, or a word on why there is none.
    pub(super) fn grown(&mut self, answer: &GrowthAnswer) -> Result<(), HostError> {
        self.grew.extend(answer.work.clone());
        let said = answer.said.as_ref().map_err(Clone::clone);
        let added = said.and_then(|said| growth_reply(said)).and_then(|task| {
            let id = task.id.clone();
            self.orders.grant(task.id.as_str().into());
            self.source.add(&task).map_err(|error| error.to_string())?;
            Ok(id)
        });
        match added {
            Ok(id) => {
                self.growth.standing = GrowthStanding::Open;
                self.d.warn(format!("task {id} was added to the roadmap"))?;
                self.begin_again()
            }
            Err(why) => {
                self.growth.standing = GrowthStanding::Over;
                self.d
                    .warn(format!("no task was added to the roadmap: {why}"))
            }
        }
    }

    /// The scheduler had come to its end: another takes up what is known, with the new plan.
    fn begin_again(&mut self) -> Result<(), HostError> {
        self.loaded = self.source.load()?;
        self.announce()?;
        let config = self.config.sched(self.d.state.config.max_iterations);
        let plan = self.loaded.plan.clone();
        self.sched = Scheduler::recover(plan, config, &self.history)
            .map_err(|error| HostError::Internal(error.to_string()))?;
        self.ended = None;
        self.inputs.push_back(Input::Begin);
        Ok(())
    }
}
