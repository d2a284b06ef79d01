//! Whether a worker was told to end, and whether its engine answers: what all of its slots have to know.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use descartes_bridge::EngineError;
use descartes_kernel::fleet::{EndOrder, EngineSilence, SilenceNews, WorkerEnd};

/// Told by whoever ends the worker and by whoever asks the engine.
pub(super) struct Ending {
    origin: Instant,
    end: Mutex<WorkerEnd>,
    silence: Mutex<(EngineSilence, Option<SilenceNews>)>,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            end: Mutex::default(),
            silence: Mutex::default(),
        }
    }
}

impl Ending {
    fn end(&self) -> MutexGuard<'_, WorkerEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, order: EndOrder) {
        self.end().tell(order, self.origin.elapsed());
    }

    pub(super) fn order(&self) -> Option<EndOrder> {
        self.end().order()
    }

    /// An answer of the engine, or none.
    pub(super) fn heard<T>(&self, answer: &Result<T, EngineError>) {
        let is_away = matches!(answer, Err(error) if error.is_temporary());
        let mut silence = self.silence();
        let news = silence.0.heard(self.origin.elapsed(), !is_away);
        silence.1 = news.or(silence.1);
        drop(silence);
        match answer {
            Err(error) if error.is_temporary() => self.end().engine_is_away(self.origin.elapsed()),
            _ => self.end().engine_answered(),
        }
    }

    fn silence(&self) -> MutexGuard<'_, (EngineSilence, Option<SilenceNews>)> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What people should know of the engine, told once.
    pub(super) fn take_news(&self) -> Option<SilenceNews> {
        self.silence().1.take()
    }

    /// Whether an engine that is away is still waited for.
    pub(super) fn waits(&self) -> bool {
        self.end().waits(self.origin.elapsed())
    }
}
