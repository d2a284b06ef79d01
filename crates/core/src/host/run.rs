//! One run of the agent: start it, watch it, collect what it said.

use std::any::Any;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use descartes_agents::reader::{Note, RunReport, Spending};
use descartes_kernel::budget;
use descartes_kernel::config::PromptMode;
use descartes_kernel::event::{EndedBy, ExitStatus, RunFacts, TreeFacts};
use descartes_kernel::fact::{self, StartFacts};
use descartes_kernel::limits::{Watch, WatchLimits, WatchVerdict};
use descartes_kernel::outcome::Budget;
use descartes_kernel::sandbox::RunPurpose;
use descartes_kernel::state::Spent;
use descartes_kernel::step::{Input, before_start};
use descartes_proc::{Ending, Exit, Launch, PumpReport, RunClock, StartError, Stdin, TreeEvent};
use descartes_store::logs::{LogFile, expect_run, tail};

use super::agent_loop::AgentLoop;
use super::error::HostError;
use super::live_run::LiveRun;
use super::message::HostMessage;
use super::prompt::BuiltPrompt;
use super::sandbox::{environment_rules, scrub};
use super::sink::{LastOutput, RunSink};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::{info, warn};

/// Output still in the pipes is waited for so long after the tree is gone.
const DRAIN: Duration = Duration::from_millis(500);

/// What a backend of the user's own is shown of a run.
const OWN_BACKEND_LOOKS_AT: usize = 1 << 20;

/// Turns the process crate's exit into the journal's.
pub(crate) fn exit_status(exit: Exit) -> ExitStatus {
    match exit {
        Exit::Code(code) => ExitStatus::Code(code),
        Exit::Signal(signal) => ExitStatus::Signal(signal),
    }
}

impl AgentLoop {
    /// Builds the prompt, writes down the intent, starts the agent.
    pub(crate) fn start(&mut self, run: u64, iteration: u32, agent: u32) -> Result<(), HostError> {
        let Some(texts) = self.read_prompt_files()? else {
            return Ok(());
        };
        let planned = self.next_action();
        let before = self.measure_before()?;
        self.tell_measure()?;
        if self.next_action() != planned {
            // Somebody said something else meanwhile.
            return Ok(());
        }
        self.d
            .append_all(before_start(&self.d.state, self.d.policy))?;
        let prompt = match self.build_prompt(iteration, agent, &texts) {
            Ok(prompt) => prompt,
            Err(HostError::Prompt(message)) => return self.broken(message),
            Err(error) => return Err(error),
        };
        let launch = match self.launch(iteration, agent, &prompt) {
            Ok(launch) => launch,
            Err(HostError::Prompt(message)) => return self.broken(message),
            Err(HostError::Agent(error)) => return self.broken(start_message(&error)),
            Err(error) => return Err(error),
        };
        let confined = match self.confine_agent(agent, &prompt, launch) {
            Ok(confined) => Ok(confined),
            Err(HostError::Refused { message, hint } | HostError::Usage { message, hint }) => {
                return self.broken(format!("{message}; {hint}"));
            }
            Err(HostError::Agent(error)) => Err(error),
            Err(error) => return Err(error),
        };
        let facts = StartFacts {
            guard_pid: self.d.supervisor.guard_pid(),
            prompt: prompt.hash.clone(),
            prompt_bytes: prompt.text.len() as u64,
            before,
            notes: prompt.notes.clone(),
        };
        self.d
            .append(fact::run_started(&self.d.state, agent, facts))?;
        let started = confined.and_then(|(launch, plan)| {
            self.spawn(run, agent, &launch, &prompt)?;
            Ok(plan)
        });
        match started {
            Ok(plan) => {
                if let Some(live) = &mut self.run {
                    live.plan = plan;
                }
                info!(iteration, agent, "agent started");
                Ok(())
            }
            Err(error) => {
                warn!(iteration, agent, %error, "agent could not be started");
                self.d.input(&Input::NotStarted {
                    message: start_message(&error),
                    may_pass: error.may_pass(),
                })?;
                self.d.save_last();
                Ok(())
            }
        }
    }

    /// The loop ends here: no agent can be started.
    pub(super) fn broken(&mut self, message: String) -> Result<(), HostError> {
        self.d.input(&Input::Broken(message))?;
        self.d.save_last();
        Ok(())
    }

    fn spawn(
        &mut self,
        run: u64,
        agent: u32,
        launch: &Launch,
        prompt: &BuiltPrompt,
    ) -> Result<(), StartError> {
        let folder = self.d.dir.run(run);
        let budget = self.d.state.config.max_log_bytes;
        let pulse = Arc::new(LastOutput::default());
        self.trees += 1;
        let sink = RunSink {
            stdout: LogFile::new(folder.stdout(), budget),
            stderr: LogFile::new(folder.stderr(), budget),
            reader: self.agents[agent as usize].reader(&self.d.state.config, &prompt.echoes()),
            pulse: pulse.clone(),
            clock: self.d.clock.clone(),
            tx: self.d.tx.clone(),
            run: self.trees,
            notes: Vec::new(),
        };
        self.d.tell_lease();
        let began = RunClock::start(&self.d.lease);
        self.d
            .supervisor
            .start(self.trees, launch, Box::new(sink))?;
        // A log that cannot be made now meets the same trouble with its first bytes, and it is told.
        let _ = expect_run(&folder);
        self.d.files.count_logs();
        let limit = self.d.state.config.max_snapshot_bytes;
        if let Some(budget) = limit.and_then(|limit| self.tree.as_ref()?.budget(limit)) {
            self.d.files.keep_snapshots(budget);
        }
        let mut watch = Watch::new(self.watch_limits(), self.d.mono());
        if let Some(share) = self.agents[agent as usize].idle_share() {
            watch.idles_at(share);
        }
        let ended_by = EndedBy::Exit;
        self.run = Some(LiveRun {
            tree: self.trees,
            began,
            watch,
            pulse,
            ended_by,
            exit: None,
            spent: Spending::default(),
            budget_gone: None,
            plan: None,
        });
        Ok(())
    }

    /// What a person changes holds for the run under way, too.
    pub(super) fn limits_changed(&mut self) {
        let limits = self.watch_limits();
        if let Some(live) = &mut self.run {
            live.watch.change(limits);
        }
        self.end_over_budget();
    }

    /// What the run under way has told of its use.
    fn spent_so_far(&self) -> Spent {
        let told = self.run.as_ref().map(|live| &live.spent);
        let agent = self.d.state.run().map_or(0, |run| run.agent);
        let agent = self.agents.get(agent as usize);
        let cost = (agent.zip(told)).and_then(|(agent, told)| agent.cost(told, &self.d.settings));
        Spent {
            ms: 0,
            tokens: told.and_then(|told| told.tokens.total()),
            cost_micros: cost.map(|cost| cost.micros),
            estimated: cost.is_some_and(|cost| cost.estimated),
        }
    }

    /// Ends the run under way where it has told more than what is left.
    fn end_over_budget(&mut self) {
        let spent = self.spent_so_far();
        let over = self.run.as_ref();
        let over = over.and_then(|live| live.watch.spent(spent.tokens, spent.cost_micros));
        if let Some(by) = over {
            self.end_run(by, None);
        }
    }

    fn watch_limits(&self) -> WatchLimits {
        let config = &self.d.state.config;
        let left = budget::left(config, &self.d.state.spent);
        WatchLimits {
            timeout: config.iteration_timeout_secs.map(|t| t.0),
            idle: config.idle_timeout_secs.0,
            promise_grace: config.promise_grace_secs.0,
            time_left: left.time,
            tokens_left: left.tokens,
            cost_left: left.cost_micros,
        }
    }

    fn launch(
        &mut self,
        iteration: u32,
        agent: u32,
        prompt: &BuiltPrompt,
    ) -> Result<Launch, HostError> {
        let resolved = &self.agents[agent as usize];
        let delivery = resolved.deliver(&prompt.text, &prompt.path)?;
        let mut given: Vec<(OsString, OsString)> =
            self.d.settings.agent_environment().cloned().collect();
        if self.sandbox.is_some() {
            let profile = Some(resolved.profile());
            let rules = environment_rules(&self.d.settings, profile, RunPurpose::Agent);
            self.env_dropped = scrub(&mut given, &rules);
        }
        let unset = |key: &str| !given.iter().any(|(k, _)| k == key);
        let own = resolved.environment().iter();
        let own: Vec<(OsString, OsString)> = own
            .filter(|(key, _)| unset(key))
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let mut env = [given, own].concat();
        let mut set = |key: &str, value: OsString| {
            env.retain(|(k, _)| k != key);
            env.push((key.into(), value));
        };
        for (key, value) in resolved.off_environment() {
            set(key, value.into());
        }
        for (key, value) in self.d.state.config.backend.environment.iter() {
            set(key, value.into());
        }
        set(descartes_proc::MARK, (&self.d.state.loop_id).into());
        set("DESCARTES_ITERATION", iteration.to_string().into());
        let mut stdin = Stdin::Null;
        match delivery.mode {
            PromptMode::Stdin => stdin = Stdin::File(prompt.path.clone()),
            PromptMode::Env => set("PROMPT", (&prompt.text).into()),
            PromptMode::Arg | PromptMode::File | PromptMode::None => {}
        }
        let cwd = self.d.working_dir();
        if delivery.switched && !self.warned_prompt {
            self.warned_prompt = true;
            self.d.warn(format!(
                "the prompt has {} bytes, too many for an argument: it is passed on standard input",
                prompt.text.len()
            ))?;
        }
        let argv = delivery.argv.into_iter().map(OsString::from).collect();
        Ok(Launch {
            argv,
            env,
            cwd,
            stdin,
            finish: Duration::ZERO,
        })
    }

    /// Waits until the run's tree is gone, and ends it where a limit or a person says so.
    pub(crate) fn watch(&mut self) -> Result<(), HostError> {
        loop {
            let Some(live) = &mut self.run else {
                return Err(HostError::Internal("no run to watch".to_owned()));
            };
            let tree = live.tree;
            let now = self.d.clock.elapsed();
            let ms = live.pulse.last_output_ms();
            if ms > 0 {
                live.watch.output(Duration::from_millis(ms));
            }
            let supervisor = &self.d.supervisor;
            let verdict = live.watch.check(now, &mut || supervisor.cpu_time());
            let deadline = match verdict {
                _ if live.ended_by != EndedBy::Exit => None,
                WatchVerdict::End(by) => {
                    self.end_run(by, None);
                    None
                }
                WatchVerdict::Keep(next) => next,
            };
            match self.d.next(deadline)? {
                None => {}
                Some(HostMessage::Tree(event)) => match self.tree_event(tree, event)? {
                    ControlFlow::Break(()) => return Ok(()),
                    ControlFlow::Continue(()) => {}
                },
                Some(HostMessage::Note(of, note)) if of == tree => self.note(&note),
                Some(HostMessage::BudgetGone(budget)) => self.budget_gone(budget),
                Some(message) => {
                    if let Some(ending) = self.handle_control(message)? {
                        self.end_run(EndedBy::Cancel, Some(ending));
                    }
                }
            }
        }
    }

    fn note(&mut self, note: &Note) {
        let now = self.d.clock.elapsed();
        let Some(live) = &mut self.run else { return };
        match note {
            Note::Claimed => live.watch.claim(),
            Note::Unclaimed => live.watch.claim_void(),
            Note::Resulted => live.watch.result(now),
            Note::WentOn => {
                live.watch.result_void();
                if let Some(budget) = live.budget_gone {
                    self.end_run(EndedBy::Budget(budget), None);
                }
            }
            Note::Hopeless => self.end_run(EndedBy::GaveUp, None),
            Note::Spent(spending) => {
                live.spent = (**spending).clone();
                if let Some(attempt) = &self.attempt {
                    (attempt.tell_spending)(self.spent_so_far());
                }
                self.end_over_budget();
            }
        }
    }

    /// Others spent what this run might have: it is ended, unless it has told its result and is
    /// about to end by itself.
    fn budget_gone(&mut self, budget: Budget) {
        let Some(live) = &mut self.run else { return };
        match live.watch.has_result() {
            true => live.budget_gone = Some(budget),
            false => self.end_run(EndedBy::Budget(budget), None),
        }
    }

    fn end_run(&mut self, by: EndedBy, ending: Option<Ending>) {
        let ending = ending.unwrap_or_else(|| self.kill_grace());
        let Some(live) = &mut self.run else { return };
        info!(?by, ?ending, "ending the run");
        if live.ended_by == EndedBy::Exit {
            live.ended_by = by;
        }
        self.d.supervisor.terminate(ending);
    }

    fn tree_event(&mut self, tree: u64, event: TreeEvent) -> Result<ControlFlow<()>, HostError> {
        let Some(live) = &mut self.run else {
            return Ok(ControlFlow::Continue(()));
        };
        match event {
            TreeEvent::Exited { run, exit } if run == tree => {
                live.exit = Some(exit_status(exit));
            }
            TreeEvent::GuardLost { run } if run == tree => live.ended_by = EndedBy::GuardLost,
            TreeEvent::Swept {
                run,
                survivors,
                killed,
            } if run == tree => {
                let pids = survivors.iter().map(|s| s.pid).collect();
                self.run_over(pids, killed)?;
                return Ok(ControlFlow::Break(()));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_over(&mut self, survivors: Vec<u32>, killed: u32) -> Result<(), HostError> {
        let Some(live) = self.run.take() else {
            return Ok(());
        };
        let report = self.d.supervisor.collect(DRAIN);
        self.take_over_objects()?;
        // Notes that were still under way belong to this run; people's words do not get lost.
        let (stdout_bytes, stderr_bytes) = (report.stdout.bytes, report.stderr.bytes);
        let agent = self.d.state.run().map_or(0, |run| run.agent);
        let (mut said, log_dropped) = read_back(report, live.exit, live.ended_by);
        self.agents[agent as usize].price(&mut said, &self.d.settings);
        self.ask_own_backend(&mut said);
        info!(
            ended_by = ?live.ended_by,
            exit = ?live.exit,
            ms = live.began.elapsed().as_millis() as u64,
            stdout_bytes,
            stderr_bytes,
            killed,
            survivors = survivors.len(),
            claim = said.claim.is_some(),
            "agent ended"
        );
        let facts = RunFacts {
            ended_by: live.ended_by,
            exit: live.exit,
            duration_ms: live.began.elapsed().as_millis() as u64,
            stdout_bytes,
            stderr_bytes,
            preview: said.preview,
            claim: said.claim,
            abort: said.abort,
            near_miss: said.near_miss,
            error: said.error,
            limit: said.limit,
            did_nothing: said.did_nothing,
            tokens: said.tokens,
            cost: said.cost,
            leftovers: u64::from(killed),
            survivors,
            log_dropped,
            trouble: said.trouble,
            denied: said.denied,
            // On record before it is judged: what is there at a resume may be something else.
            tree_after: self.measure()?.tree,
        };
        let failed = facts.failure().is_some();
        if let Some(plan) = &live.plan {
            self.tell_denials(plan, failed)?;
        }
        if log_dropped > 0 {
            self.d.warn(format!(
                "{log_dropped} bytes of output were not kept in the log"
            ))?;
        }
        self.d.input(&Input::RunEnded(Box::new(facts)))
    }

    /// A backend of the library user's own looks at the end of the output itself.
    fn ask_own_backend(&self, said: &mut RunReport) {
        let (Some(own), Some(promise)) = (
            &self.d.settings.backend,
            &self.d.state.config.completion_promise,
        ) else {
            return;
        };
        let Some(run) = self.d.state.run() else {
            return;
        };
        let log = self.d.dir.run(run.run).stdout();
        let output = tail(&log, usize::MAX, OWN_BACKEND_LOOKS_AT).unwrap_or_default();
        said.claim = own.check_completion(&String::from_utf8_lossy(&output), promise);
        said.near_miss.take_if(|_| said.claim.is_some());
    }

    /// The work tree before a run: as measured after the last one, if this host did it.
    /// What a person changed in between is taken for the agent's, which is the careful side:
    /// it can only delay a stall.
    fn measure_before(&mut self) -> Result<TreeFacts, HostError> {
        if self.measured.is_none() {
            self.measure()?;
            // The first run's changes are counted too.
            self.mark();
        }
        self.last_measure()
    }
}

fn read_back(report: PumpReport, exit: Option<ExitStatus>, ended_by: EndedBy) -> (RunReport, u64) {
    let sink = report
        .sink
        .and_then(|sink| (sink as Box<dyn Any>).downcast::<RunSink>().ok());
    match sink {
        Some(sink) => {
            let RunSink {
                stdout,
                stderr,
                mut reader,
                ..
            } = *sink;
            let dropped = stdout.finish().dropped + stderr.finish().dropped;
            (
                reader
                    .get()
                    .finish(exit, ended_by, Timestamp::now(), &TimeZone::system()),
                dropped,
            )
        }
        None => (RunReport::default(), 0),
    }
}

fn start_message(error: &StartError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
