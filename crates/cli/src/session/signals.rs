//! Signals on their way to the loop and its view. They are received before the first thread
//! is started, so those that come before there is a loop wait here.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use descartes_core::host::{EarlyStop, HostSettings, Remote, Resumed};
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::exit;
use descartes_proc::{HostSignal, Signals};

use super::order::Order;
use crate::error::{CliError, ErrorMessage, at};
use crate::view::signal::Signal;

/// How long the last words may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as they need.
    Long,
    /// The system or a closed terminal does not wait.
    Short,
}

/// Where signals go.
#[derive(Clone)]
pub struct Switchboard {
    inner: Arc<Mutex<SignalTargets>>,
    /// Ends what hangs while there is no loop yet.
    early_stop: EarlyStop,
    /// Whether this process was started within a loop.
    nested: bool,
}

impl Default for Switchboard {
    fn default() -> Self {
        Self {
            inner: Arc::default(),
            early_stop: EarlyStop::default(),
            nested: descartes_core::steering::own_enclosure().is_some(),
        }
    }
}

#[derive(Default)]
struct SignalTargets {
    remote: Option<Remote>,
    view: Option<Arc<Signal>>,
    /// Stops that came before there was a loop.
    early: Vec<StopBy>,
    /// SIGTERM or SIGHUP came, maybe when the loop was just over.
    hurry: bool,
    /// The loop is over: a signal now means that nobody waits for the view any more.
    after: Option<Box<dyn Fn() + Send>>,
}

impl Switchboard {
    /// Receives signals from now on, for as long as the answer is kept.
    pub fn receive(&self) -> Result<Signals, CliError> {
        let signals = [
            HostSignal::Interrupt,
            HostSignal::Terminate,
            HostSignal::Hangup,
            HostSignal::Resize,
            HostSignal::Continue,
            HostSignal::Stop,
        ];
        let board = self.clone();
        let received = Signals::receive(&signals, Box::new(move |signal| board.take(signal)));
        received.map_err(at(
            "receive signals in",
            std::path::Path::new("this process"),
        ))
    }

    /// Opens a loop, unless a signal comes first. What a person is told of a loop that does not go on
    /// is added to `told`.
    pub fn open(
        &self,
        order: Order,
        mut settings: HostSettings,
        told: &mut Vec<String>,
    ) -> Result<Resumed, CliError> {
        settings.early_stop = self.early_stop.clone();
        let opened = order.open(settings, told);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match (opened, inner.early.first()) {
            (Err(_), Some(by)) => Err(CliError::Said(ErrorMessage {
                message: "stopped before the loop was running".to_owned(),
                code: code(*by),
                ..ErrorMessage::default()
            })),
            (opened, _) => Ok(opened?),
        }
    }

    /// Signals go to this loop and its view from now on.
    pub fn connect(&self, remote: Remote, view: Option<Arc<Signal>>) {
        self.early_stop.hand_over();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for by in inner.early.drain(..) {
            remote.stop(by);
        }
        inner.remote = Some(remote);
        inner.view = view;
    }

    /// The loop is over: the next signal is told to `done`. Answers whether somebody is in a
    /// hurry already.
    pub fn over<T: Send + 'static>(&self, done: Sender<Option<T>>) -> Patience {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody may be waiting any more.
        inner.after = Some(Box::new(move || drop(done.send(None))));
        if inner.hurry {
            Patience::Short
        } else {
            Patience::Long
        }
    }

    fn take(&self, signal: HostSignal) {
        if signal == HostSignal::Stop {
            descartes_proc::stop_with_trees();
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match signal {
            HostSignal::Interrupt => inner.stop(StopBy::Interrupt),
            // Within a loop it is how the iteration that started us ends: we can be resumed.
            HostSignal::Terminate if self.nested => inner.stop(StopBy::HangUp),
            HostSignal::Terminate => inner.stop(StopBy::Terminate),
            HostSignal::Hangup => inner.stop(StopBy::HangUp),
            HostSignal::Resize => inner.tell(|view| view.wake()),
            HostSignal::Continue | HostSignal::Stop => inner.tell(|view| view.carry_on()),
        }
        if inner.remote.is_none() && !inner.early.is_empty() {
            self.early_stop.stop();
        }
    }
}

/// The exit code of a start that a signal ended.
fn code(by: StopBy) -> i32 {
    match by {
        StopBy::Terminate => exit::TERMINATED,
        StopBy::HangUp => exit::HUNG_UP,
        _ => exit::INTERRUPTED,
    }
}

impl SignalTargets {
    fn stop(&mut self, by: StopBy) {
        if let Some(after) = &self.after {
            return after();
        }
        match by {
            StopBy::Interrupt => self.tell(|view| view.interrupt()),
            _ => self.hurry = true,
        }
        match &self.remote {
            Some(remote) => remote.stop(by),
            None => self.early.push(by),
        }
    }

    fn tell(&self, what: impl Fn(&Signal)) {
        if let Some(view) = &self.view {
            what(view);
        }
    }
}
