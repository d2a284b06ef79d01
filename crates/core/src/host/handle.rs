//! A loop that this process holds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use descartes_kernel::event::StopBy;
use descartes_kernel::state::{IterativeLoopState, LoopState, Phase};
use descartes_kernel::step::LastSeen;
use descartes_proc::Ending;
use descartes_sandbox::SandboxProject;
use descartes_store::debug_log::variant;
use descartes_store::layout::LoopDir;
use tracing::{error, info, info_span};

use super::agent::ResolvedAgent;
use super::agent_loop::{AgentEnded, AgentLoop, AttemptLoan, TellSpending};
use super::cancel::CancelWatch;
use super::driver::{Driver, Listener};
use super::end::HostEnd;
use super::error::HostError;
use super::message::HostMessage;
use super::remote::Remote;
use super::task_loop::TaskLoop;

/// A loop that this process holds.
pub struct Host {
    pub(super) kind: LoopKind,
    pub(super) notices: Vec<String>,
}

/// What a loop works with.
pub(super) enum LoopKind {
    /// Agents, with one prompt or for one task.
    Agents(Box<AgentLoop>),
    /// A graph of tasks, each of which has a loop of its own; `None` once it was driven.
    Tasks(Box<Driver>, Option<Box<dyn TaskLoop>>),
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("loop_id", &self.driver().state.loop_id)
            .finish_non_exhaustive()
    }
}

impl Host {
    pub(super) fn driver(&self) -> &Driver {
        match &self.kind {
            LoopKind::Agents(agents) => &agents.d,
            LoopKind::Tasks(d, _) => d,
        }
    }

    /// The agents that it runs itself.
    pub(super) fn agents(&self) -> &[ResolvedAgent] {
        match &self.kind {
            LoopKind::Agents(agents) => &agents.agents,
            LoopKind::Tasks(..) => &[],
        }
    }

    pub(super) fn driver_mut(&mut self) -> &mut Driver {
        match &mut self.kind {
            LoopKind::Agents(agents) => &mut agents.d,
            LoopKind::Tasks(d, _) => d,
        }
    }

    /// The loop's id.
    pub fn loop_id(&self) -> &str {
        &self.driver().state.loop_id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.driver().state.name
    }

    /// Its state so far.
    pub fn state(&self) -> &LoopState {
        &self.driver().state
    }

    /// The same as its state file has it.
    pub(crate) fn state_so_far(&self) -> IterativeLoopState {
        self.driver().state.project(&self.driver().kept)
    }

    /// Its folder: journal and logs.
    pub fn dir(&self) -> &LoopDir {
        &self.driver().dir
    }

    /// Its state file.
    pub fn state_file(&self) -> &Path {
        self.driver().files.state_file()
    }

    /// What was found and mended on the way, to be said aloud.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// A handle to stop it from another thread.
    pub fn remote(&self) -> Remote {
        Remote(self.driver().tx.clone())
    }

    /// Tells `listener` of every record from now on.
    pub fn listen(&mut self, listener: Listener) {
        self.driver_mut().listeners.push(listener);
    }

    /// Lends the loop for one attempt at its task, and gives back what it knows afterwards. What the
    /// run under way has spent is told as often as its agent says so, and once that the agent has ended and
    /// gates are about to run.
    pub(crate) fn attempt(
        mut self,
        tell_spending: TellSpending,
        agent_ended: AgentEnded,
    ) -> Result<(u32, LoopState), HostError> {
        let until = self.state().iterations + 1;
        if let LoopKind::Agents(agents) = &mut self.kind {
            agents.attempt = Some(AttemptLoan {
                until,
                tell_spending,
                agent_ended: Some(agent_ended),
            });
        }
        self.drive()?;
        let state = match self.kind {
            LoopKind::Agents(agents) => agents.d.state,
            LoopKind::Tasks(d, _) => d.state,
        };
        Ok((until, state))
    }

    fn drive(&mut self) -> Result<HostEnd, HostError> {
        let _span = info_span!("loop", id = %self.loop_id()).entered();
        let dir = self.driver().working_dir();
        info!(dir = %dir.display(), seq = self.state().seq, "host begins");
        let end = match &mut self.kind {
            LoopKind::Agents(agents) => agents.go(),
            LoopKind::Tasks(d, tasks) => match tasks.take() {
                Some(tasks) => {
                    let ended = tasks.run(d);
                    SandboxProject::find(&dir).tidy_up(None);
                    ended
                }
                None => Err(HostError::Internal("its tasks were run already".to_owned())),
            },
        };
        // One that has ended for another reason did not end for this one.
        let has_ended = matches!(self.state().phase, Phase::Finished { .. });
        if let (Err(error), false) = (&end, has_ended) {
            let seen = match &self.kind {
                LoopKind::Agents(agents) => agents.seen_now(),
                LoopKind::Tasks(..) => LastSeen::default(),
            };
            self.driver_mut().give_up(error, seen);
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
        let d = self.driver_mut();
        d.answer_effective();
        d.supervisor.terminate(Ending::Kill);
        end
    }

    /// Drives the loop until it is over or left.
    pub fn run(mut self) -> Result<HostEnd, HostError> {
        let flag = self.driver().settings.cancel.clone();
        if flag
            .as_ref()
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            // Before anything is started.
            let stop = HostMessage::Stop(StopBy::Handle);
            self.driver_mut().handle_control(stop, None)?;
            return self.drive();
        }
        let remote = self.remote();
        let watch = flag.map(|flag| CancelWatch::begin(flag, remote));
        let _watch = watch.transpose()?;
        self.drive()
    }

    /// The flag that cancels it.
    pub(crate) fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.driver().settings.cancel.clone().unwrap_or_default()
    }

    /// Says something aloud and writes it down.
    pub(crate) fn say(&mut self, notice: String) -> Result<(), HostError> {
        self.driver_mut().warn(notice.clone())?;
        self.notices.push(notice);
        Ok(())
    }
}
