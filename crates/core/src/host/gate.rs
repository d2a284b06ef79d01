//! Gates: what descartes itself runs to find out whether a claim is true. Each in its own
//! tree, with its own time limit, after the agent's tree is gone.

use std::ffi::OsString;
use std::time::Duration;

use descartes_kernel::event::{ExitStatus, GateEnd, GateFacts};
use descartes_kernel::sandbox::SandboxPlan;
use descartes_kernel::step::{Input, next_gate};
use descartes_proc::{Launch, RunClock, Stdin, TreeEvent};
use descartes_store::logs::LogFile;
use tracing::info;

use super::HostError;
use super::agent_loop::AgentLoop;
use super::message::HostMessage;
use super::run::exit_status;
use crate::tail::TailSink;

/// Output still in the pipes is waited for so long.
const DRAIN: Duration = Duration::from_millis(500);

/// How a gate under way is coming along.
struct LiveGate {
    tree: u64,
    began: RunClock,
    end: Option<GateEnd>,
    /// Which one it is, as the plan has it.
    planned: (u32, String),
    /// What it may write and see, where it is confined.
    plan: Option<SandboxPlan>,
}

impl AgentLoop {
    pub(super) fn gate(&mut self, index: u32, command: &str) -> Result<(), HostError> {
        let attempt = self.attempt.as_mut();
        if let Some(tell) = attempt.and_then(|attempt| attempt.agent_ended.take()) {
            tell();
        }
        // Nothing ran since the agent, or the gate before, was measured.
        let before = self.last_measure()?;
        self.report_changed_gate_files()?;
        let (live, launch, sink) = self.prepare_gate(index, command);
        let mut live = live;
        let confined = self.confine_gate(launch);
        let started = confined.map_err(|error| error.to_string());
        let started = started.and_then(|(launch, plan)| {
            live.plan = plan;
            self.d.tell_lease();
            let started = self.d.supervisor.start(live.tree, &launch, Box::new(sink));
            started.map_err(|error| error.to_string())
        });
        let (end, tail) = match started {
            Ok(_) => {
                self.watch_gate(&mut live)?;
                let report = self.d.supervisor.collect(DRAIN);
                self.take_over_objects()?;
                let end = live.end.unwrap_or(GateEnd::Cancelled);
                (end, report.sink.map(TailSink::finish).unwrap_or_default())
            }
            Err(error) => (
                GateEnd::Exit(ExitStatus::Code(126)),
                format!("the gate could not be started: {error}"),
            ),
        };
        let facts = GateFacts {
            gate: index,
            command: command.to_owned(),
            end,
            duration_ms: live.began.elapsed().as_millis() as u64,
            tail,
            tree_before: before.tree,
            tree_after: self.measure()?.tree,
        };
        info!(gate = index + 1, ?end, ms = facts.duration_ms, "gate ended");
        if let Some(plan) = &live.plan {
            self.tell_gate_denials(plan, &facts)?;
        }
        self.d.input(&Input::GateEnded(Box::new(facts)))
    }

    fn prepare_gate(&mut self, index: u32, command: &str) -> (LiveGate, Launch, TailSink) {
        self.trees += 1;
        let run = self.d.state.run().map_or(0, |run| run.run);
        let iteration = self.d.state.run().map_or(0, |run| run.iteration);
        let log = LogFile::new(
            self.d.dir.run(run).gate(index + 1),
            self.d.state.config.max_log_bytes,
        );
        let mut env = self.d.settings.environment.clone();
        env.retain(|(key, _)| key != descartes_proc::MARK && key != "DESCARTES_ITERATION");
        env.push((descartes_proc::MARK.into(), (&self.d.state.loop_id).into()));
        env.push(("DESCARTES_ITERATION".into(), iteration.to_string().into()));
        let argv: Vec<OsString> = vec!["sh".into(), "-c".into(), command.into()];
        let launch = Launch {
            argv,
            env,
            cwd: self.d.working_dir(),
            stdin: Stdin::Null,
            finish: Duration::ZERO,
        };
        let live = LiveGate {
            tree: self.trees,
            began: RunClock::start(&self.d.lease),
            end: None,
            planned: (index, command.to_owned()),
            plan: None,
        };
        (live, launch, TailSink::new(log))
    }

    fn watch_gate(&mut self, live: &mut LiveGate) -> Result<(), HostError> {
        let began = self.d.mono();
        loop {
            // A person may change it while the gate runs.
            let limit = began + self.d.state.config.verify_timeout_secs.0;
            let deadline = live.end.is_none().then_some(limit);
            match self.d.next(deadline)? {
                None => {
                    live.end = Some(GateEnd::Timeout);
                    self.d.supervisor.terminate(self.kill_grace());
                }
                Some(HostMessage::Tree(TreeEvent::Exited { run, exit })) if run == live.tree => {
                    live.end.get_or_insert(GateEnd::Exit(exit_status(exit)));
                }
                Some(HostMessage::Tree(TreeEvent::GuardLost { run })) if run == live.tree => {
                    live.end.get_or_insert(GateEnd::Exit(ExitStatus::Signal(9)));
                }
                Some(HostMessage::Tree(TreeEvent::Swept { run, .. })) if run == live.tree => {
                    return Ok(());
                }
                Some(message) => {
                    let stop = self.handle_control(message)?;
                    // A person who replaces a gate does not want to wait for the old one.
                    let is_replaced = || next_gate(&self.d.state).as_ref() != Some(&live.planned);
                    let replaced = (live.end.is_none() && is_replaced()).then(|| self.kill_grace());
                    if let Some(ending) = stop.or(replaced) {
                        live.end.get_or_insert(GateEnd::Cancelled);
                        self.d.supervisor.terminate(ending);
                    }
                }
            }
        }
    }
}
