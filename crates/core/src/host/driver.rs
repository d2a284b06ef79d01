//! The driver: turns whatever happened into one input, asks the kernel, performs what it
//! says. It decides nothing itself.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::control::{Answer, Command, CommandId};
use descartes_kernel::event::{Decided, Event, Record};
use descartes_kernel::fact;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{Kept, LoopState};
use descartes_kernel::steering::Sender;
use descartes_kernel::step::{
    Agents, EndRun, Input, LastSeen, close_unfinished, end_run, finish, give_up, react, refusal,
    settled_by_end,
};
use descartes_kernel::transition::{apply, checkpoint};
use descartes_proc::{LeaseClock, RunClock, Supervisor};
use descartes_store::catalog;
use descartes_store::debug_log::variant;
use descartes_store::journal::Journal;
use descartes_store::layout::LoopDir;
use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::alarm::Alarm;
use super::control::ControlSocket;
use super::end::HostEnd;
use super::error::HostError;
use super::loop_files::{LoopFiles, Warnings};
use super::message::HostMessage;
use super::reply::Reply;
use super::settings::HostSettings;
use super::work_directory::WorkDirectory;

/// While trees stand still the clock is looked at this often.
const FROZEN_LOOK: Duration = Duration::from_millis(500);

/// Somebody who is told of every record; answers whether it wants to hear more.
pub type Listener = Box<dyn Fn(&Record) -> bool + Send>;

/// What every loop has that is held by this process, whatever its kind: its journal and state, the
/// queue of what happens, and the files around it.
pub(crate) struct Driver {
    pub(crate) state: LoopState,
    pub(crate) journal: Journal,
    pub(crate) dir: LoopDir,
    /// What the state file holds and no journal does.
    pub(crate) kept: Kept,
    pub(crate) settings: HostSettings,
    pub(crate) policy: Agents,
    pub(crate) supervisor: Supervisor,
    pub(crate) rx: Receiver<HostMessage>,
    pub(crate) tx: std::sync::mpsc::Sender<HostMessage>,
    /// Where it works.
    pub(crate) work_directory: WorkDirectory,
    /// Held for its drop, which removes the file.
    pub(crate) _socket: Option<ControlSocket>,
    pub(crate) waiting: Vec<(CommandId, Reply)>,
    /// Commands that have taken effect, to be answered once the state file says so too.
    pub(crate) effective: Vec<(Reply, Answer)>,
    pub(crate) clock: RunClock,
    /// The time in which its trees stood still.
    pub(crate) lease: LeaseClock,
    /// What was said last of the state file and of its lock.
    pub(crate) said: Warnings,
    pub(crate) files: LoopFiles,
    pub(crate) listeners: Vec<Listener>,
    /// The end of the wait at hand.
    pub(crate) alarm: Option<Alarm>,
}

/// What followed from something that is not about a process tree.
#[derive(Default)]
pub(crate) struct Handled {
    /// How the tree that may be running is to be ended.
    pub(crate) end: Option<EndRun>,
    /// Whether the loop's config is another now.
    pub(crate) reconfigured: bool,
}

impl Driver {
    pub(crate) fn end(&self) -> HostEnd {
        HostEnd {
            reason: self.state.exit_reason(),
            stop: self.state.requests.stop,
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
    pub(super) fn give_up(&mut self, error: &HostError, seen: LastSeen) {
        // An iteration that was begun is closed first: an end would forget it, and a resume
        // would use its number again. Unless its end is in the journal already, and only the
        // sync of it failed.
        if self.journal.next_seq() == self.state.seq + 1
            && let Some(event) = close_unfinished(&self.state, |_| seen)
        {
            self.last_word(event);
        }
        self.last_word(give_up(error.to_string()));
        // The journal has the reason; a state file that cannot be written is rebuilt from it.
        drop(self.save_state());
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
        let finished = match record.event {
            Event::CommandEffective { id } => Some((id, self.effective_words(id))),
            _ => None,
        };
        apply(&mut self.state, &record)?;
        self.tell(&record);
        if let Some((id, message)) = finished {
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
                // While time stands still, so does what is left of it.
                Some(left) if self.lease.is_frozen() => self.rx.recv_timeout(left.max(FROZEN_LOOK)),
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

    /// Deals with everything that is not about a process tree. `refusal`: why a change of the config
    /// that is asked for cannot be.
    pub(crate) fn handle_control(
        &mut self,
        message: HostMessage,
        refusal: Option<HostError>,
    ) -> Result<Handled, HostError> {
        match message {
            HostMessage::Stop(by) => self.stop(&Input::Stop(by)),
            HostMessage::Kill(by) => self.stop(&Input::Kill(by)),
            HostMessage::BudgetGone(_) => self.stop(&Input::BudgetGone),
            HostMessage::Command(command, from, reply) => {
                self.command(command, *from, reply, refusal)
            }
            HostMessage::LeaseRenewed => {
                self.tell_lease();
                Ok(Handled::default())
            }
            HostMessage::FilesGone => {
                self.journal.keep()?;
                if self.journal.take_made_anew() {
                    self.make_whole();
                }
                Ok(Handled::default())
            }
            HostMessage::Task(_)
            | HostMessage::Tree(_)
            | HostMessage::Note(..)
            | HostMessage::Committed(_)
            | HostMessage::Measured(_) => Ok(Handled::default()),
        }
    }

    /// Tells the guard until when trees may work.
    pub(crate) fn tell_lease(&mut self) {
        if let Some(lease) = self.lease.current() {
            self.supervisor.set_lease(lease);
        }
    }

    fn stop(&mut self, input: &Input) -> Result<Handled, HostError> {
        info!(?input, "asked to stop");
        let end = end_run(&self.state, input);
        self.input(input)?;
        Ok(Handled {
            end,
            reconfigured: false,
        })
    }

    fn command(
        &mut self,
        command: Command,
        from: Sender,
        reply: Reply,
        refused: Option<HostError>,
    ) -> Result<Handled, HostError> {
        if command == Command::Ping {
            reply.send(&Answer::Effective {
                id: 0,
                message: "alive".to_owned(),
            });
            return Ok(Handled::default());
        }
        let refused = refusal(&self.state, &command)
            .map(HostError::from)
            .or(refused);
        if let Some(error) = refused {
            info!(command = %variant(&command), "command refused");
            let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
            reply.send(&Answer::Refused { message, hint });
            return Ok(Handled::default());
        }
        let id = self.state.requests.next_command;
        info!(command = %variant(&command), id, "command accepted");
        let reconfigured = matches!(command, Command::Set { .. });
        let input = Input::Command {
            command,
            from: Some(from),
        };
        let end = end_run(&self.state, &input);
        let events = react(&self.state, &input, self.policy, Timestamp::now());
        self.waiting.push((id, reply));
        for event in events {
            let accepted = matches!(*event, Event::CommandAccepted { .. });
            self.append(event)?;
            if accepted && let Some((_, reply)) = self.waiting.last() {
                reply.send(&Answer::Accepted { id });
            }
        }
        if reconfigured {
            self.gates_changed()?;
        }
        self.save_or_warn()?;
        self.answer_effective();
        Ok(Handled { end, reconfigured })
    }

    /// The config as it would be, where a message asks for another.
    pub(crate) fn asked_config(&self, message: &HostMessage) -> Option<IterativeLoopConfig> {
        let HostMessage::Command(Command::Set { change }, ..) = message else {
            return None;
        };
        let mut config = self.state.config.clone();
        change.apply_to(&mut config);
        Some(config)
    }

    pub(crate) fn working_dir(&self) -> PathBuf {
        self.state
            .config
            .working_directory
            .clone()
            .unwrap_or_else(|| PathBuf::from("."))
    }

    /// What is said of a command that takes effect now.
    fn effective_words(&self, id: CommandId) -> String {
        let pending = self.state.requests.pending.iter().find(|(of, _)| *of == id);
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
    pub(super) fn answer_effective(&mut self) {
        for (reply, answer) in self.effective.drain(..) {
            reply.send(&answer);
        }
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
