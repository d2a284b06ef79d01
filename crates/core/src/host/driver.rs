//! The driver: turns whatever happened into one input, asks the kernel, performs what it
//! says. It decides nothing itself.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use descartes_kernel::config::KILL_GRACE;
use descartes_kernel::control::{Answer, Command, CommandId};
use descartes_kernel::event::{Decided, Event, Record, TreeFacts};
use descartes_kernel::fact;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{Kept, LoopState, Phase, RunInfo, Spent};
use descartes_kernel::steering::Sender;
use descartes_kernel::step::{
    Action, Agents, EndRun, Input, LastSeen, close_unfinished, end_run, finish, give_up, leave,
    plan, plan_attempt, react, refusal, settled_by_end,
};
use descartes_kernel::transition::{apply, checkpoint};
use descartes_proc::{Ending, RunClock, Supervisor};
use descartes_store::catalog;
use descartes_store::debug_log::variant;
use descartes_store::journal::Journal;
use descartes_store::layout::LoopDir;
use jiff::Timestamp;
use tracing::{Span, debug, error, info, info_span, warn};

use super::agent::{ResolvedAgent, resolve_all};
use super::alarm::Alarm;
use super::control::ControlSocket;
use super::loop_files::{LoopFiles, Warnings};
use super::message::HostMessage;
use super::reply::Reply;
use super::run::LiveRun;
use super::work_directory::WorkDirectory;
use super::{HostEnd, HostError, HostSettings};
use crate::tasks::{Prepared, TaskBrief, TaskEvent, check_agents};
use crate::worktree::{Snapshot, Tree};

/// Waits look at the wall clock again this often: suspend and clock jumps.
const CLOCK_CHECK: Duration = Duration::from_secs(15);

/// One loop, held by this process.
pub(crate) struct Driver {
    pub(crate) state: LoopState,
    pub(crate) journal: Journal,
    pub(crate) dir: LoopDir,
    /// What the state file holds and no journal does.
    pub(crate) kept: Kept,
    pub(crate) settings: HostSettings,
    pub(crate) agents: Vec<ResolvedAgent>,
    pub(crate) policy: Agents,
    pub(crate) supervisor: Supervisor,
    pub(crate) rx: Receiver<HostMessage>,
    pub(crate) tx: std::sync::mpsc::Sender<HostMessage>,
    pub(crate) tree: Tree,
    /// Where it works.
    pub(crate) work_directory: WorkDirectory,
    /// Held for its drop, which removes the file.
    pub(crate) _socket: Option<ControlSocket>,
    pub(crate) waiting: Vec<(CommandId, Reply)>,
    /// Commands that have taken effect, to be answered once the state file says so too.
    pub(crate) effective: Vec<(Reply, Answer)>,
    pub(crate) clock: RunClock,
    pub(crate) run: Option<LiveRun>,
    /// The newest measure of the work tree.
    pub(crate) measured: Option<(TreeFacts, Snapshot)>,
    pub(crate) reported_gate_files: BTreeSet<(String, Option<String>)>,
    pub(crate) warned_spec: bool,
    pub(crate) warned_prompt: bool,
    /// What was said last of the state file and of its lock.
    pub(crate) said: Warnings,
    pub(crate) files: LoopFiles,
    /// Numbers of trees, gates included; only the supervisor sees them.
    pub(crate) trees: u64,
    pub(crate) listeners: Vec<super::Listener>,
    /// For the loop of one task: it is given back once so many iterations are over.
    pub(crate) attempt_limit: Option<u32>,
    /// For a task loop that is taken up only to land what is finished: how it had ended.
    pub(crate) land_only: Option<IterativeExitReason>,
    /// The end of the wait at hand.
    pub(crate) alarm: Option<Alarm>,
    /// For a task loop: its tasks, until it is driven.
    pub(crate) tasks: Option<Box<Prepared>>,
    /// TaskEvent of tasks that came while something else was waited for.
    pub(crate) news: VecDeque<TaskEvent>,
    /// For a task loop: one task for each agent that its tasks ask for.
    pub(crate) task_agents: Vec<TaskBrief>,
    /// For the loop of one task: hears what its run has spent so far.
    pub(crate) tell_spending: Option<TellSpending>,
}

/// Hears what a run has spent so far.
pub(crate) type TellSpending = Box<dyn Fn(Spent) + Send>;

impl Driver {
    /// Runs the loop until it is over or left.
    pub(crate) fn drive(mut self) -> Result<HostEnd, HostError> {
        self.drive_here()
    }

    /// The same, for those who want to look at the state afterwards.
    pub(crate) fn drive_here(&mut self) -> Result<HostEnd, HostError> {
        let _span = info_span!("loop", id = %self.state.loop_id).entered();
        let dir = self.working_dir();
        info!(dir = %dir.display(), seq = self.state.seq, "host begins");
        let end = match self.tasks.take() {
            Some(tasks) => self.go_through_tasks(*tasks),
            None => self.go(),
        };
        // One that has ended for another reason did not end for this one.
        let has_ended = matches!(self.state.phase, Phase::Finished { .. });
        if let (Err(error), false) = (&end, has_ended) {
            self.give_up(error);
        }
        match &end {
            Ok(end) => info!(
                reason = %variant(&end.reason),
                stop = ?end.stop,
                iterations = end.iterations,
                code = end.exit_code(),
                "host leaves"
            ),
            Err(error) => error!(%error, "host cannot continue"),
        }
        self.answer_effective();
        self.supervisor.terminate(Ending::Kill);
        end
    }

    fn next_action(&self) -> Action {
        let now = Timestamp::now();
        match self.attempt_limit {
            Some(until) => plan_attempt(&self.state, self.policy, until, now),
            None => plan(&self.state, self.policy, now),
        }
    }

    fn go(&mut self) -> Result<HostEnd, HostError> {
        // What was said while the loop was being opened: a stop is meant for the first agent, too.
        while let Ok(message) = self.rx.try_recv() {
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
            if proves && self.attempt_limit.is_none() {
                self.work_directory.check()?;
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
                Action::Finish(reason) => self.finish(reason)?,
                Action::Leave(by) => {
                    self.settle_logs()?;
                    self.append(leave(by))?;
                    self.save_last();
                    return Ok(self.end());
                }
                Action::ReturnToParent => {
                    self.settle_logs()?;
                    self.save_last();
                    return Ok(self.end());
                }
                Action::Over => return Ok(self.end()),
            }
        }
    }

    /// The run that an action is about.
    fn run_span(&self, action: &Action) -> Span {
        let under_way = self.state.run().map(|run| run.run);
        let run = match action {
            Action::Start { run, .. } => Some(*run),
            _ => under_way,
        };
        run.map_or_else(Span::none, |run| info_span!("run", run))
    }

    pub(crate) fn end(&self) -> HostEnd {
        HostEnd {
            reason: self.state.exit_reason(),
            stop: self.state.stop,
            iterations: self.state.iterations,
            completion: self.state.completion.as_ref().map(|c| c.1.clone()),
            trouble: self.said.state_file.last(),
        }
    }

    pub(crate) fn finish(&mut self, reason: IterativeExitReason) -> Result<(), HostError> {
        self.settle_logs()?;
        self.append(finish(reason))?;
        self.save_last();
        self.append_all(settled_by_end(&self.state))?;
        self.answer_effective();
        Ok(())
    }

    /// The host cannot continue: write down why, on the last reserve if need be.
    fn give_up(&mut self, error: &HostError) {
        // An iteration that was begun is closed first: an end would forget it, and a resume
        // would use its number again. Unless its end is in the journal already, and only the
        // sync of it failed.
        if self.journal.next_seq() == self.state.seq + 1
            && let Some(event) = close_unfinished(&self.state, |run| self.seen_now(run))
        {
            self.last_word(event);
        }
        self.last_word(give_up(error.to_string()));
        // The journal has the reason; a state file that cannot be written is rebuilt from it.
        drop(self.save_state());
    }

    /// The run under way, as it stands now.
    fn seen_now(&self, run: &RunInfo) -> LastSeen {
        let told = self.run.as_ref().map(|live| &live.spent);
        let agent = self.agents.get(run.agent as usize);
        LastSeen {
            at: Some(Timestamp::now()),
            tokens: told.map(|told| told.tokens),
            cost: (agent.zip(told)).and_then(|(agent, told)| agent.cost(told, &self.settings)),
        }
    }

    fn last_word(&mut self, event: Decided) {
        let now = Timestamp::now();
        if let Ok(seq) = self.journal.append_from_reserve(now, &event) {
            let record = event.into_record(seq, now);
            if apply(&mut self.state, &record).is_ok() {
                self.tell(&record);
            }
        }
    }

    pub(crate) fn input(&mut self, input: &Input) -> Result<(), HostError> {
        debug!(input = %variant(input), "input");
        self.append_all(react(&self.state, input, self.policy, Timestamp::now()))
    }

    pub(crate) fn append_all(
        &mut self,
        events: impl IntoIterator<Item = Decided>,
    ) -> Result<(), HostError> {
        let mut events = events.into_iter();
        events.try_for_each(|event| self.append(event))
    }

    /// Journal first, then the state, then everybody who watches.
    pub(crate) fn append(&mut self, event: Decided) -> Result<(), HostError> {
        let durability = event.durability();
        let now = Timestamp::now();
        let seq = self.journal.append(now, &event, durability)?;
        if self.journal.take_made_anew() {
            self.make_whole();
        }
        let record = event.into_record(seq, now);
        let told = match record.event {
            Event::CommandEffective { id } => Some((id, self.effective_words(id))),
            _ => None,
        };
        apply(&mut self.state, &record)?;
        self.tell(&record);
        if let Some((id, message)) = told {
            self.hold_answer(id, &message);
        }
        Ok(())
    }

    /// The loop's folder was deleted, and the journal is back: so is what others find the loop by.
    /// What cannot be written now is tried again when it happens again.
    fn make_whole(&mut self) {
        warn!(dir = %self.dir.path().display(), "the loop's folder was deleted: restoring it");
        if let Some(meta) = &self.files.meta {
            drop(catalog::register(&self.settings.root, meta));
        }
        drop(self.files.info.write(&self.dir));
        drop(self.files.lock.keep_in_root());
    }

    fn tell(&mut self, record: &Record) {
        self.listeners.retain(|listener| listener(record));
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) -> Result<(), HostError> {
        self.append(fact::warning(message))
    }

    pub(crate) fn mono(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The next thing that happened, at most until `deadline`.
    pub(crate) fn next(
        &mut self,
        deadline: Option<Duration>,
    ) -> Result<Option<HostMessage>, HostError> {
        self.answer_effective();
        loop {
            let got = match deadline.map(|at| at.saturating_sub(self.mono())) {
                None => self.rx.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) => self.rx.recv_timeout(left),
            };
            match got {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(HostError::Internal(
                        "the driver's queue was closed".to_owned(),
                    ));
                }
            }
            if deadline.is_some_and(|at| self.mono() >= at) {
                return Ok(None);
            }
        }
    }

    /// Deals with everything that is not about a process tree. Returns how the tree that
    /// may be running is to be ended, if that follows from it.
    pub(crate) fn handle_control(
        &mut self,
        message: HostMessage,
    ) -> Result<Option<Ending>, HostError> {
        match message {
            HostMessage::Stop(by) => self.stop(&Input::Stop(by)),
            HostMessage::Kill(by) => self.stop(&Input::Kill(by)),
            HostMessage::Command(command, from, reply) => self.command(command, *from, reply),
            HostMessage::FilesGone => {
                self.journal.keep()?;
                if self.journal.take_made_anew() {
                    self.make_whole();
                }
                Ok(None)
            }
            HostMessage::Task(news) => {
                self.news.push_back(*news);
                Ok(None)
            }
            HostMessage::BudgetGone(_) => self.stop(&Input::BudgetGone),
            HostMessage::Tree(_) | HostMessage::Note(..) | HostMessage::Committed(_) => Ok(None),
        }
    }

    /// Time for the tree that runs: as the user says, else as the agent's profile does.
    pub(super) fn kill_grace(&self) -> Ending {
        let profile = match &self.state.phase {
            Phase::Running(run) => self.agents.get(run.agent as usize),
            _ => None,
        };
        let given = self.state.config.kill_grace_secs.map(|grace| grace.0);
        let grace = given
            .or_else(|| profile?.kill_grace())
            .unwrap_or(KILL_GRACE);
        Ending::Ask { grace }
    }

    /// How a process tree that may be running is to be ended because of this.
    fn ending(&self, input: &Input) -> Option<Ending> {
        Some(match end_run(&self.state, input)? {
            EndRun::Ask => self.kill_grace(),
            EndRun::Kill => Ending::Kill,
        })
    }

    fn stop(&mut self, input: &Input) -> Result<Option<Ending>, HostError> {
        info!(?input, "asked to stop");
        let ending = self.ending(input);
        self.input(input)?;
        Ok(ending)
    }

    fn command(
        &mut self,
        command: Command,
        from: Sender,
        reply: Reply,
    ) -> Result<Option<Ending>, HostError> {
        if command == Command::Ping {
            reply.send(&Answer::Effective {
                id: 0,
                message: "alive".to_owned(),
            });
            return Ok(None);
        }
        let agents = match self.check_command(&command) {
            Ok(agents) => agents,
            Err(error) => {
                info!(command = %variant(&command), "command refused");
                let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
                reply.send(&Answer::Refused { message, hint });
                return Ok(None);
            }
        };
        let id = self.state.next_command;
        info!(command = %variant(&command), id, "command accepted");
        let input = Input::Command {
            command,
            from: Some(from),
        };
        let ending = self.ending(&input);
        let events = react(&self.state, &input, self.policy, Timestamp::now());
        self.waiting.push((id, reply));
        for event in events {
            let accepted = matches!(*event, Event::CommandAccepted { .. });
            self.append(event)?;
            if accepted && let Some((_, reply)) = self.waiting.last() {
                reply.send(&Answer::Accepted { id });
            }
        }
        if let Some(agents) = agents {
            self.agents = agents;
            self.limits_changed();
            self.gates_changed()?;
        }
        self.save_or_warn()?;
        self.answer_effective();
        Ok(ending)
    }

    /// Refuses what cannot be; a change of the config brings the agents as they are then.
    fn check_command(&self, command: &Command) -> Result<Option<Vec<ResolvedAgent>>, HostError> {
        if let Some(error) = refusal(&self.state, command) {
            return Err(error.into());
        }
        let Command::Set { change } = command else {
            return Ok(None);
        };
        let mut config = self.state.config.clone();
        change.apply_to(&mut config);
        if config.tasks.is_some() {
            let dir = self.working_dir();
            check_agents(&self.task_agents, &config, &self.settings, &dir)?;
            return Ok(Some(Vec::new()));
        }
        resolve_all(&config, &self.settings).map(Some)
    }

    /// What is said of a command that takes effect now.
    fn effective_words(&self, id: CommandId) -> String {
        let pending = self.state.pending.iter().find(|(of, _)| *of == id);
        match (pending, self.state.exit_reason()) {
            (Some((_, Command::Say { .. })), _) if self.state.config.tasks.is_none() => {
                format!("iteration {} got the note", self.state.iterations)
            }
            (Some((_, Command::Say { .. })), _) => "an attempt got the note".to_owned(),
            (_, IterativeExitReason::Running) => "done".to_owned(),
            (_, reason) => reason.sentence(),
        }
    }

    fn hold_answer(&mut self, id: CommandId, message: &str) {
        for (_, reply) in self.waiting.extract_if(.., |(waiting, _)| *waiting == id) {
            let message = message.to_owned();
            self.effective
                .push((reply, Answer::Effective { id, message }));
        }
    }

    /// Whoever is told that a command has taken effect finds it in the state file.
    fn answer_effective(&mut self) {
        for (reply, answer) in self.effective.drain(..) {
            reply.send(&answer);
        }
    }

    fn wait(&mut self, until: Timestamp) -> Result<(), HostError> {
        let deadline = self.mono() + self.left_until(until).min(CLOCK_CHECK);
        if let Some(message) = self.next(Some(deadline))? {
            self.handle_control(message)?;
        } else if self.left_until(until).is_zero() {
            self.alarm = None;
            self.input(&Input::WaitElapsed)?;
        }
        Ok(())
    }

    /// How long the wait for this time still lasts.
    pub(crate) fn left_until(&mut self, until: Timestamp) -> Duration {
        let (wall, mono) = (Timestamp::now(), self.mono());
        let alarm = match self.alarm {
            Some(alarm) if alarm.is_for(until) => alarm,
            _ => {
                info!(%until, "waiting");
                *self.alarm.insert(Alarm::new(until, wall, mono))
            }
        };
        alarm.left(wall, mono)
    }

    fn hold(&mut self) -> Result<(), HostError> {
        self.input(&Input::Held)?;
        if let Some(message) = self.next(None)? {
            self.handle_control(message)?;
        }
        Ok(())
    }

    /// The journal is the durable one; the state file is its fold, made anew from it if lost.
    pub(crate) fn save_state(&mut self) -> Result<(), HostError> {
        self.append_all(checkpoint(&self.state))?;
        if self.work_directory.is_above(self.files.state_file()) {
            // A working directory is never made anew to have a place for the state file.
            self.work_directory.check()?;
        }
        let state = self.state.project(&self.kept);
        Ok(self.files.save(&state, self.state.seq)?)
    }
}
