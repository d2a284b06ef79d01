//! A loop that is not running, taken for a moment: its journal is written as its host would
//! have written it, and its state file follows.

use descartes_kernel::control::Command;
use descartes_kernel::edits::{Accept, Edit, edited};
use descartes_kernel::event::{Decided, Record};
use descartes_kernel::fact;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{Kept, LoopState, Phase, RunInfo};
use descartes_kernel::steering::Sender;
use descartes_kernel::step::{cancel_stopped, command_stopped, refusal};
use descartes_kernel::transition::{Fold, apply};
use descartes_store::Sync;
use descartes_store::host::this_host;
use descartes_store::journal::{Journal, JournalError, last_records};
use descartes_store::lock::{Holder, StateLock};
use descartes_store::state_file::{Loaded, Origin, StateFile, StateFileError};
use jiff::Timestamp;

use super::{Recorded, interrupted};
use crate::{ClientError, LoopHandle};

/// A loop that is held for a moment. Dropping it gives it back.
#[derive(Debug)]
pub struct Hold {
    handle: LoopHandle,
    journal: Journal,
    state: LoopState,
    file: StateFile,
    /// What the state file holds and no journal does; `None` where the file is another loop's.
    kept: Option<Kept>,
    /// A part of an edit of the state file was not taken.
    held_back: bool,
    records: Vec<Record>,
    notices: Vec<String>,
    /// Given back last of all.
    _lock: StateLock,
}

impl Hold {
    pub(super) fn take(handle: &LoopHandle) -> Result<Self, ClientError> {
        let path = handle.journal("there is nothing to pause")?;
        let holder = Holder {
            loop_id: handle.meta.id.clone(),
            since: Timestamp::now(),
            host: this_host(env!("CARGO_PKG_VERSION")),
        };
        let lock = StateLock::acquire(&handle.root, &handle.meta.state_file, &holder)?;
        if last_records(&path, 1).is_ok_and(|records| records.is_empty()) {
            handle.refuse_lost_end(None)?;
        }
        let mut fold = Fold::default();
        let (journal, recovered) = Journal::open_with(&path, |record| fold.push(&record))?;
        let state = fold.finish()?;
        let torn = recovered
            .cut
            .map(|cut| format!("the journal's last line was incomplete: {cut}"));
        let mut hold = Self {
            file: StateFile::at(&handle.meta.state_file)?,
            handle: handle.clone(),
            journal,
            state: state.ok_or(ClientError::Empty(path))?,
            kept: None,
            held_back: false,
            records: Vec::new(),
            notices: torn.into_iter().collect(),
            _lock: lock,
        };
        handle.refuse_lost_end(Some(&hold.state))?;
        hold.take_file()?;
        Ok(hold)
    }

    /// What the state file says: a person's wish is taken before anything else, a torn file is
    /// made anew, another loop's is left alone.
    fn take_file(&mut self) -> Result<(), ClientError> {
        let path = self.handle.meta.state_file.display().to_string();
        match self.file.load() {
            Ok(Loaded { state, .. }) if self.handle.is_foreign(&state) => {
                let notice = format!("{path} now belongs to another loop: left as it is");
                self.notices.push(notice);
            }
            Ok(loaded) => {
                let is_behind = loaded.is_behind(self.state.seq);
                let Loaded { state, origin, .. } = loaded;
                // The file lies in the agent's reach: what loosens is for `resume --accept-edits`.
                let edit = match origin {
                    Origin::Edited { .. } => edited(&self.state, &state, Accept::Harmless, None),
                    Origin::Projected { .. } | Origin::ByHand => Edit::default(),
                };
                let kept = state.kept();
                if is_behind {
                    // Whatever comes of this: who has held the lock leaves no older file than the journal.
                    let known = self.state.project(&kept);
                    self.file.save(&known, self.state.seq, Sync::Lazy)?;
                }
                self.kept = Some(kept);
                self.notices.extend(edit.notices());
                self.held_back = !edit.held_back.is_empty();
                if let Some(event) = edit.event {
                    self.append(event)?;
                }
            }
            Err(StateFileError::Missing(_)) => self.kept = Some(Kept::default()),
            // One that a newer version wrote is not ours to write.
            Err(error @ StateFileError::Newer { .. }) => return Err(error.into()),
            // Nor what is no file.
            Err(StateFileError::Io(error)) if error.refusal().is_some() => {
                return Err(error.into());
            }
            Err(error) => {
                self.notices
                    .push(format!("{error}: rebuilt from the journal"));
                self.kept = Some(Kept::default());
            }
        }
        Ok(())
    }

    /// The loop's state.
    pub fn state(&self) -> &LoopState {
        &self.state
    }

    /// Adds a line to the journal that a person should know and that changes nothing.
    pub fn note(&mut self, message: impl Into<String>) -> Result<(), ClientError> {
        self.append(fact::warning(message))
    }

    /// Records that nobody is at work any more on these offers to workers on other machines.
    pub fn offers_stopped(&mut self, stopped: &[(String, u64)]) -> Result<(), ClientError> {
        let events = fact::offers_stopped(&self.state, stopped);
        self.append_all(events)
    }

    /// Records a command as the loop's host would have done.
    pub(super) fn record(mut self, command: &Command) -> Result<Recorded, ClientError> {
        if let Some(error) = refusal(&self.state, command) {
            return Err(ClientError::refused(error.message, error.hint));
        }
        let ended = match &self.state.phase {
            Phase::Finished { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        match (command, ended) {
            // Of one that is over there is nothing to cancel and nothing to record.
            (Command::Cancel { .. }, _) => {
                let (from, now) = (this_process(), Timestamp::now());
                let seen = |run: &RunInfo| interrupted::last_seen(&self.handle, &self.state, run);
                let events = cancel_stopped(&self.state, command, Some(&from), now, seen);
                self.append_all(events)?;
            }
            (Command::Ping, _) => {}
            (_, Some(reason)) if reason.is_success() => return Err(is_done(&reason)),
            _ => {
                let events = command_stopped(&self.state, command, Some(&this_process()));
                self.append_all(events)?;
            }
        }
        self.finish()
    }

    /// Gives the loop back, with its state file as its journal says.
    pub fn finish(mut self) -> Result<Recorded, ClientError> {
        if let Some(kept) = self.kept.take().filter(|_| !self.records.is_empty()) {
            let file = self.state.project(&kept);
            if self.held_back {
                let copy = self.file.keep_edited(Timestamp::now())?;
                self.notices.push(format!(
                    "the state file as it was edited is kept as {}",
                    copy.display()
                ));
            }
            self.file.save(&file, self.state.seq, Sync::Lazy)?;
        }
        Ok(Recorded {
            records: self.records,
            state: self.state,
            notices: self.notices,
        })
    }

    fn append_all(&mut self, events: Vec<Decided>) -> Result<(), ClientError> {
        events.into_iter().try_for_each(|event| self.append(event))
    }

    fn append(&mut self, event: Decided) -> Result<(), ClientError> {
        let at = Timestamp::now();
        let seq = self.journal.append(at, &event, event.durability());
        let seq = seq.map_err(|error| match error {
            JournalError::Full(error) => ClientError::refused(
                format!("the disk is full: {error}"),
                "free some disk space, then try again: nothing was recorded",
            ),
            other => other.into(),
        })?;
        let record = event.into_record(seq, at);
        apply(&mut self.state, &record)?;
        self.records.push(record);
        Ok(())
    }
}

/// Who writes into the journal of a loop that is not running.
fn this_process() -> Sender {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    Sender {
        pid: std::process::id(),
        program: name.trim().to_owned(),
        ..Sender::default()
    }
}

fn is_done(reason: &IterativeExitReason) -> ClientError {
    ClientError::refused(
        format!(
            "the loop is done ({}): it will not run again",
            reason.sentence()
        ),
        "start another with `descartes loop start` and its task behind --prompt",
    )
}
