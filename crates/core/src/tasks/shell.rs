//! Commands that a task loop runs itself, outside of any agent: gates on a merged tree, the
//! command that makes a worktree ready. Each has a process tree of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descartes_agents::agent::{GENERIC, Profile};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::event::{ExitStatus, GateEnd};
use descartes_kernel::sandbox::{RunPurpose, SandboxLevel};
use descartes_proc::{Ending, Exit, Launch, Stdin, Supervisor, TreeEvent};
use descartes_store::logs::LogFile;

use crate::host::sandbox::{ConfinedRun, LoopSandbox, environment_rules, project_of, scrub};
use crate::host::{HostError, HostSettings};
use crate::tail::TailSink;

/// Between asking a command to end and killing it.
const GRACE: Duration = Duration::from_secs(5);
const DRAIN: Duration = Duration::from_millis(500);

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: GateEnd,
    pub(super) tail: String,
}

impl Ran {
    pub(super) fn is_green(&self) -> bool {
        matches!(self.end, GateEnd::Exit(status) if status.is_success())
    }

    fn trouble(message: String) -> Self {
        Self {
            end: GateEnd::Exit(ExitStatus::Code(126)),
            tail: message,
        }
    }
}

enum ShellEvent {
    Tree(TreeEvent),
    Stop(Ending),
}

impl ShellEvent {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stop(_))
    }
}

/// Ends what a shell runs, from another thread.
#[derive(Clone, Debug)]
pub(super) struct Stopper(Sender<ShellEvent>);

impl Stopper {
    pub(super) fn stop(&self) {
        // A shell that is gone runs nothing.
        drop(self.0.send(ShellEvent::Stop(Ending::Ask { grace: GRACE })));
    }

    /// The same, without grace.
    pub(super) fn kill(&self) {
        drop(self.0.send(ShellEvent::Stop(Ending::Kill)));
    }
}

/// What shells run at the moment. One that begins after everything was stopped is stopped as well.
#[derive(Debug, Default)]
pub(super) struct RunningShells(Mutex<ShellTable>);

#[derive(Debug, Default)]
struct ShellTable {
    last: u64,
    running: BTreeMap<u64, Stopper>,
    is_stopped: bool,
}

/// Leaves the table when it is dropped.
pub(super) struct ListedShell<'t> {
    table: &'t RunningShells,
    number: u64,
}

impl RunningShells {
    fn table(&self) -> MutexGuard<'_, ShellTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a shell as long as it runs something.
    pub(super) fn list(&self, shell: Stopper) -> ListedShell<'_> {
        let mut table = self.table();
        if table.is_stopped {
            shell.stop();
        }
        table.last += 1;
        let number = table.last;
        table.running.insert(number, shell);
        ListedShell {
            table: self,
            number,
        }
    }

    /// Ends all of them, and those to come.
    pub(super) fn stop(&self) {
        let mut table = self.table();
        table.is_stopped = true;
        table.running.values().for_each(Stopper::stop);
    }

    /// The same, without grace.
    pub(super) fn kill(&self) {
        let mut table = self.table();
        table.is_stopped = true;
        table.running.values().for_each(Stopper::kill);
    }
}

impl Drop for ListedShell<'_> {
    fn drop(&mut self) {
        self.table.table().running.remove(&self.number);
    }
}

impl std::fmt::Debug for ShellEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShellEvent")
    }
}

/// Runs commands one after the other.
pub(super) struct Shell {
    supervisor: Supervisor,
    rx: Receiver<ShellEvent>,
    tx: Sender<ShellEvent>,
    environment: Vec<(OsString, OsString)>,
    runs: u64,
    stopped: bool,
    /// What its commands are confined by; in each folder anew.
    confined: Option<ConfinedShell>,
}

/// What the sandbox of a shell is made of.
struct ConfinedShell {
    config: IterativeLoopConfig,
    settings: HostSettings,
    profile: Profile,
    /// The last folder, and what was found to work there.
    last: Option<(PathBuf, LoopSandbox)>,
}

impl ConfinedShell {
    fn confine(&mut self, mut launch: Launch) -> Result<Launch, HostError> {
        let known = self.last.as_ref();
        let known = known.filter(|(dir, _)| *dir == launch.cwd);
        let sandbox = match known {
            Some((_, sandbox)) => sandbox.clone(),
            None => {
                let project = project_of(&self.settings, &launch.cwd);
                let profiles = [&self.profile];
                let found = LoopSandbox::prepare(&self.config, &self.settings, project, &profiles)?;
                let Some(found) = found else {
                    return Ok(launch);
                };
                self.last = Some((launch.cwd.clone(), found.clone()));
                found
            }
        };
        let run = ConfinedRun {
            purpose: RunPurpose::Gate,
            profile: Some(&self.profile),
            program: None,
            handed: &[],
        };
        let rules = environment_rules(&self.settings, Some(&self.profile), RunPurpose::Gate);
        scrub(&mut launch.env, &rules);
        let plan = sandbox.plan(&self.config, &self.settings, run)?;
        sandbox.confine(&plan, launch)
    }
}

impl Shell {
    /// A shell whose processes carry the mark of a loop.
    pub(super) fn new(settings: &HostSettings, mark: &str) -> std::io::Result<Self> {
        let (tx, rx) = channel();
        let events = tx.clone();
        let on_event = Box::new(move |event| drop(events.send(ShellEvent::Tree(event))));
        let supervisor = match &settings.guard {
            Some(guard) => {
                let args: Vec<&str> = guard.args.iter().map(String::as_str).collect();
                Supervisor::guarded(&guard.exe, &args, &[], on_event)?
            }
            None => Supervisor::direct(mark, on_event)?,
        };
        let mut environment = settings.environment.clone();
        environment.retain(|(key, _)| key != descartes_proc::MARK);
        environment.push((descartes_proc::MARK.into(), mark.into()));
        Ok(Self {
            supervisor,
            rx,
            tx,
            environment,
            runs: 0,
            stopped: false,
            confined: None,
        })
    }

    /// Confines its commands as the gates of a loop with this config are.
    pub(super) fn confined(
        mut self,
        config: &IterativeLoopConfig,
        settings: &HostSettings,
    ) -> Self {
        let level = config.sandbox.effective_for_gates();
        let name = &config.backend.backend_type;
        let profile = settings
            .profiles
            .get(name)
            .or(settings.profiles.get(GENERIC));
        if let (true, Some(profile)) = (level != SandboxLevel::Off, profile) {
            self.confined = Some(ConfinedShell {
                config: config.clone(),
                settings: settings.clone(),
                profile: profile.clone(),
                last: None,
            });
        }
        self
    }

    pub(super) fn stopper(&self) -> Stopper {
        Stopper(self.tx.clone())
    }

    /// Whether somebody has stopped it by now, also while nothing was run.
    pub(super) fn hears_stop(&mut self) -> bool {
        let mut news = self.rx.try_iter();
        self.stopped |= news.any(|news| matches!(news, ShellEvent::Stop(_)));
        self.stopped
    }

    /// Whether somebody stopped it.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Runs a command by `sh -c` in a folder, to its end.
    pub(super) fn run(&mut self, dir: &Path, command: &str, limit: Duration, log: PathBuf) -> Ran {
        self.stopped |= self.rx.try_iter().any(|event| event.is_stop());
        if self.stopped {
            return Ran {
                end: GateEnd::Cancelled,
                tail: String::new(),
            };
        }
        self.runs += 1;
        let launch = Launch {
            argv: vec!["sh".into(), "-c".into(), command.into()],
            env: self.environment.clone(),
            cwd: dir.to_owned(),
            stdin: Stdin::Null,
            finish: Duration::ZERO,
        };
        let launch = match &mut self.confined {
            None => Ok(launch),
            Some(confined) => confined.confine(launch),
        };
        let launch = match launch {
            Ok(launch) => launch,
            Err(error) => return Ran::trouble(format!("the sandbox cannot be made: {error}")),
        };
        let sink = TailSink::new(LogFile::new(log, Some(64 << 20)));
        if let Err(error) = self.supervisor.start(self.runs, &launch, Box::new(sink)) {
            return Ran::trouble(format!("the command could not be started: {error}"));
        }
        let end = self.watch(limit);
        let tail = self.supervisor.collect(DRAIN).sink.map(TailSink::finish);
        Ran {
            end,
            tail: tail.unwrap_or_default(),
        }
    }

    fn watch(&mut self, limit: Duration) -> GateEnd {
        let deadline = Instant::now() + limit;
        let mut end = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let news = match end {
                None => self.rx.recv_timeout(left).ok(),
                Some(_) => self.rx.recv().ok(),
            };
            match news {
                None => {
                    end = Some(GateEnd::Timeout);
                    self.supervisor.terminate(Ending::Ask { grace: GRACE });
                }
                Some(ShellEvent::Stop(ending)) => {
                    self.stopped = true;
                    end.get_or_insert(GateEnd::Cancelled);
                    self.supervisor.terminate(ending);
                }
                Some(ShellEvent::Tree(TreeEvent::Exited { run, exit })) if run == self.runs => {
                    let status = match exit {
                        Exit::Code(code) => ExitStatus::Code(code),
                        Exit::Signal(signal) => ExitStatus::Signal(signal),
                    };
                    end.get_or_insert(GateEnd::Exit(status));
                }
                Some(ShellEvent::Tree(TreeEvent::GuardLost { run })) if run == self.runs => {
                    end.get_or_insert(GateEnd::Exit(ExitStatus::Signal(9)));
                }
                Some(ShellEvent::Tree(TreeEvent::Swept { run, .. })) if run == self.runs => {
                    return end.unwrap_or(GateEnd::Cancelled);
                }
                Some(ShellEvent::Tree(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_begins_after_the_stop_is_stopped_and_one_that_ended_is_not_listed() {
        let shells = RunningShells::default();
        let new = || {
            let (tx, rx) = channel();
            (Stopper(tx), rx)
        };
        let is_told = |rx: &Receiver<ShellEvent>| rx.try_iter().any(|event| event.is_stop());
        let (before, over, after) = (new(), new(), new());
        let _before = shells.list(before.0);
        drop(shells.list(over.0));
        assert_eq!(shells.table().running.len(), 1);
        shells.stop();
        assert!(is_told(&before.1) && !is_told(&over.1));
        let _after = shells.list(after.0);
        assert!(is_told(&after.1));
        shells.kill();
        assert!(is_told(&before.1) && is_told(&after.1));
    }
}
