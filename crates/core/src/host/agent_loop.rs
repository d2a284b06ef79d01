//! A loop whose work is done by agents: one prompt, run again and again, or one attempt at a task.

use std::collections::BTreeSet;
use std::time::Duration;

use descartes_kernel::config::KILL_GRACE;
use descartes_kernel::event::TreeFacts;
use descartes_kernel::state::{Phase, Spent};
use descartes_kernel::step::{Action, EndRun, Input, LastSeen, leave, plan, plan_attempt};
use descartes_proc::Ending;
use descartes_store::debug_log::variant;
use jiff::Timestamp;
use tracing::{Span, debug, info_span};

use super::agent::{ResolvedAgent, resolve_all};
use super::confined_git::HowSigned;
use super::driver::Driver;
use super::end::HostEnd;
use super::error::HostError;
use super::git_look::GitLook;
use super::live_run::LiveRun;
use super::message::HostMessage;
use super::prompt_files::PromptFiles;
use super::sandbox::LoopSandbox;
use crate::worktree::{Snapshot, Tree};

/// Waits look at the wall clock again this often: suspend and clock jumps.
const CLOCK_CHECK: Duration = Duration::from_secs(15);

/// A loop whose work is done by agents.
pub(crate) struct AgentLoop {
    pub(super) d: Driver,
    pub(super) agents: Vec<ResolvedAgent>,
    /// `None` while it is measured.
    pub(super) tree: Option<Tree>,
    pub(super) run: Option<LiveRun>,
    /// The newest measure of the work tree.
    pub(super) measured: Option<(TreeFacts, Snapshot)>,
    pub(super) reported_gate_files: BTreeSet<(String, Option<String>)>,
    pub(super) files: PromptFiles,
    pub(super) warned_spec: bool,
    pub(super) warned_prompt: bool,
    /// Numbers of trees, gates included; only the supervisor sees them.
    pub(super) trees: u64,
    /// For the loop of one task: the attempt that it is lent for.
    pub(super) attempt: Option<AttemptLoan>,
    /// What its runs are confined by.
    pub(super) sandbox: Option<LoopSandbox>,
    /// Names of variables that the last agent was not given.
    pub(super) env_dropped: Vec<String>,
    /// How the user's commits are signed, by the settings of before the first agent.
    pub(super) signing: HowSigned,
    /// What was there before the first agent by which git starts programs.
    pub(super) git_look: Option<GitLook>,
}

/// The loop of a task is lent to the task loop for one attempt.
pub(super) struct AttemptLoan {
    /// It is given back once so many iterations are over.
    pub(super) until: u32,
    pub(super) tell_spending: TellSpending,
    pub(super) agent_ended: Option<AgentEnded>,
}

/// Hears what a run has spent so far.
pub(crate) type TellSpending = Box<dyn Fn(Spent) + Send>;

/// Hears that the agent has ended and that its gates are about to run.
pub(crate) type AgentEnded = Box<dyn FnOnce() + Send>;

impl AgentLoop {
    pub(super) fn new(
        d: Driver,
        agents: Vec<ResolvedAgent>,
        tree: Tree,
        sandbox: Option<LoopSandbox>,
    ) -> Self {
        Self {
            d,
            agents,
            tree: Some(tree),
            run: None,
            measured: None,
            reported_gate_files: BTreeSet::new(),
            files: PromptFiles::default(),
            warned_spec: false,
            warned_prompt: false,
            trees: 0,
            attempt: None,
            sandbox,
            env_dropped: Vec::new(),
            signing: None,
            git_look: None,
        }
    }

    pub(super) fn next_action(&self) -> Action {
        let now = Timestamp::now();
        match &self.attempt {
            Some(attempt) => plan_attempt(&self.d.state, self.d.policy, attempt.until, now),
            None => plan(&self.d.state, self.d.policy, now),
        }
    }

    /// Runs the loop until it is over or left.
    pub(super) fn go(&mut self) -> Result<HostEnd, HostError> {
        self.take_signing();
        self.begin_git_look();
        let sandbox = self.sandbox.as_ref();
        let held = sandbox.and_then(|sandbox| sandbox.project().hold_git());
        let end = self.go_on();
        if let Some(sandbox) = &self.sandbox {
            sandbox.project().tidy_up(held);
        }
        end
    }

    fn go_on(&mut self) -> Result<HostEnd, HostError> {
        // What was said while the loop was being opened: a stop is meant for the first agent, too.
        while let Ok(message) = self.d.rx.try_recv() {
            self.handle_control(message)?;
        }
        loop {
            let action = self.next_action();
            let _span = self.run_span(&action).entered();
            debug!(action = %variant(&action), "next action");
            // An attempt at a task proves nothing yet: a red gate sends it back.
            let proves = matches!(
                action,
                Action::Start { .. } | Action::Gate { .. } | Action::Close
            );
            if proves && self.attempt.is_none() {
                self.d.work_directory.check()?;
            }
            match action {
                Action::Start {
                    run,
                    iteration,
                    agent,
                } => self.start(run, iteration, agent)?,
                Action::Watch => self.watch()?,
                Action::Gate { index, command } => self.gate(index, &command)?,
                Action::Close => self.close()?,
                Action::Wait(until) => self.wait(until)?,
                Action::Hold => self.hold()?,
                Action::Finish(reason) => self.d.finish(reason)?,
                Action::Leave(by) => {
                    self.d.settle_logs()?;
                    self.d.append(leave(by))?;
                    self.d.save_last();
                    return Ok(self.d.end());
                }
                Action::ReturnToParent => {
                    self.d.settle_logs()?;
                    self.d.save_last();
                    return Ok(self.d.end());
                }
                Action::Over => return Ok(self.d.end()),
            }
        }
    }

    /// The run that an action is about.
    fn run_span(&self, action: &Action) -> Span {
        let under_way = self.d.state.run().map(|run| run.run);
        let run = match action {
            Action::Start { run, .. } => Some(*run),
            _ => under_way,
        };
        run.map_or_else(Span::none, |run| info_span!("run", run))
    }

    /// The run under way, as it stands now.
    pub(super) fn seen_now(&self) -> LastSeen {
        let agent = self.d.state.run().map_or(0, |run| run.agent);
        let spent = self.run.as_ref().map(|live| &live.spent);
        let agent = self.agents.get(agent as usize);
        LastSeen {
            at: Some(Timestamp::now()),
            tokens: spent.map(|spent| spent.tokens),
            cost: (agent.zip(spent)).and_then(|(agent, spent)| agent.cost(spent, &self.d.settings)),
        }
    }

    /// Deals with everything that is not about a process tree. Returns how the tree that
    /// may be running is to be ended, if that follows from it.
    pub(super) fn handle_control(
        &mut self,
        message: HostMessage,
    ) -> Result<Option<Ending>, HostError> {
        // A change of the config brings the agents as they are then.
        let asked = self.d.asked_config(&message);
        let agents = asked.map(|config| resolve_all(&config, &self.d.settings));
        let (agents, refusal) = match agents.transpose() {
            Ok(agents) => (agents, None),
            Err(error) => (None, Some(error)),
        };
        let handled = self.d.handle_control(message, refusal)?;
        if let Some(agents) = agents.filter(|_| handled.reconfigured) {
            self.agents = agents;
            self.limits_changed();
        }
        Ok(handled.end.map(|end| match end {
            EndRun::Ask => self.kill_grace(),
            EndRun::Kill => Ending::Kill,
        }))
    }

    /// Time for the tree that runs: as the user says, else as the agent's profile does.
    pub(super) fn kill_grace(&self) -> Ending {
        let profile = match &self.d.state.phase {
            Phase::Running(run) => self.agents.get(run.agent as usize),
            _ => None,
        };
        let given = self.d.state.config.kill_grace_secs.map(|grace| grace.0);
        let grace = given
            .or_else(|| profile?.kill_grace())
            .unwrap_or(KILL_GRACE);
        Ending::Ask { grace }
    }

    fn wait(&mut self, until: Timestamp) -> Result<(), HostError> {
        let deadline = self.d.mono() + self.d.left_until(until).min(CLOCK_CHECK);
        if let Some(message) = self.d.next(Some(deadline))? {
            self.handle_control(message)?;
        } else if self.d.left_until(until).is_zero() {
            self.d.alarm = None;
            self.d.input(&Input::WaitElapsed)?;
        }
        Ok(())
    }

    fn hold(&mut self) -> Result<(), HostError> {
        self.d.input(&Input::Held)?;
        if let Some(message) = self.d.next(None)? {
            self.handle_control(message)?;
        }
        Ok(())
    }
}
