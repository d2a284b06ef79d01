//! How the source of tasks is asked: at once where it is a file, on a thread of its own where programs answer,
//! which may hang.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use descartes_kernel::tasks::Hurry;
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_plans::roadmap::NewTask;
use tracing::Span;

use super::lists::QuestionLine;
use super::source::{Claim, Keeps, Loaded, SourceError, TaskSource};

/// Something that is to be written about a task.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Its status.
    Status(TaskStatus),
    /// It is no longer done.
    Reopen,
}

/// What is asked of the source of tasks.
#[derive(Debug)]
pub(super) enum SourceRequest {
    /// One task is to be ours.
    Claim(TaskId),
    /// Something is to be written.
    Write(TaskId, Write),
    /// The tasks are read again; all of them, also where nothing has changed.
    News { anew: bool },
    /// After trouble: it is read again, and what is owed is written, in order.
    Settle(Vec<(TaskId, Write)>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum SourceAnswer {
    Claimed(TaskId, Result<Claim, SourceError>),
    Written(TaskId, Write, Result<(), SourceError>),
    News(Result<Option<Box<Loaded>>, SourceError>),
    Settled {
        /// The tasks as they are now, where they were read.
        result: Result<Option<Box<Loaded>>, SourceError>,
        /// What is still owed.
        owed: Vec<(TaskId, Write)>,
    },
}

/// The source of tasks.
pub(super) enum SourceAccess {
    /// It answers at once.
    Here(Box<dyn TaskSource>),
    Thread(SourceThread),
}

impl SourceAccess {
    /// A source that programs answer for is asked on a thread; `tell` takes its answers.
    pub(super) fn new(
        source: Box<dyn TaskSource>,
        tell: impl Fn(SourceAnswer) + Send + 'static,
    ) -> std::io::Result<Self> {
        Ok(match source.line() {
            None => Self::Here(source),
            Some(line) => Self::Thread(SourceThread::begin(source, line, tell)?),
        })
    }

    /// Asks; the answer, unless it comes later.
    pub(super) fn ask(&mut self, request: SourceRequest) -> Option<SourceAnswer> {
        match self {
            Self::Here(source) => Some(answer(&mut **source, request)),
            Self::Thread(thread) => thread.ask(request),
        }
    }

    /// An answer was heard.
    pub(super) fn heard(&mut self) {
        if let Self::Thread(thread) = self {
            thread.open = thread.open.saturating_sub(1);
        }
    }

    /// Whether an answer is still to come.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Thread(thread) if thread.open > 0)
    }

    /// Ends what is asked as far as nobody needs it any more.
    pub(super) fn hurry(&self, hurry: Hurry) {
        if let Self::Thread(thread) = self {
            thread.line.hurry(hurry);
        }
    }

    pub(super) fn keeps(&self) -> Keeps {
        match self {
            Self::Here(source) => source.keeps(),
            Self::Thread(thread) => thread.keeps,
        }
    }

    /// What is read next is news.
    pub(super) fn forget(&mut self) {
        match self {
            Self::Here(source) => source.forget(),
            Self::Thread(thread) => thread.forgotten = true,
        }
    }

    /// Leaves a line about a task where the people who work with its file look for one.
    pub(super) fn note(&mut self, task: &TaskId, text: &str) {
        if let Self::Here(source) = self {
            source.note(task, text);
        }
    }

    pub(super) fn add(&mut self, task: &NewTask) -> Result<(), SourceError> {
        match self {
            Self::Here(source) => source.add(task),
            Self::Thread(_) => Err(no_file()),
        }
    }

    pub(super) fn load(&mut self) -> Result<Loaded, SourceError> {
        match self {
            Self::Here(source) => source.load(),
            Self::Thread(_) => Err(no_file()),
        }
    }
}

fn no_file() -> SourceError {
    let (message, hint) = (
        "these tasks are in no file".to_owned(),
        "add it by hand".to_owned(),
    );
    SourceError::Tracker { message, hint }
}

fn answer(source: &mut dyn TaskSource, request: SourceRequest) -> SourceAnswer {
    match request {
        SourceRequest::Claim(task) => {
            let claim = source.claim(&task);
            SourceAnswer::Claimed(task, claim)
        }
        SourceRequest::Write(task, write) => {
            let written = written(source, &task, &write);
            SourceAnswer::Written(task, write, written)
        }
        SourceRequest::News { anew } => {
            if anew {
                source.forget();
            }
            SourceAnswer::News(source.news().map(|news| news.map(Box::new)))
        }
        SourceRequest::Settle(mut owed) => {
            let result = settle(source, &mut owed);
            SourceAnswer::Settled { result, owed }
        }
    }
}

fn written(source: &mut dyn TaskSource, task: &TaskId, write: &Write) -> Result<(), SourceError> {
    match write {
        Write::Status(status) => source.set(task, *status),
        Write::Reopen => source.reopen(task),
    }
}

/// What cannot be found is still owed: the file may be half-written.
fn settle(
    source: &mut dyn TaskSource,
    owed: &mut Vec<(TaskId, Write)>,
) -> Result<Option<Box<Loaded>>, SourceError> {
    let mut loaded = None;
    // Once the loop ends there is nothing to ask for: what is owed is said, and no more.
    if source.line().is_none_or(|line| !line.is_urgent()) {
        source.forget();
        loaded = source.news()?;
    }
    let mut at = 0;
    while let Some((task, write)) = owed.get(at) {
        match written(source, task, write) {
            Ok(()) => drop(owed.remove(at)),
            Err(SourceError::NoTask { .. }) => at += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(loaded.map(Box::new))
}

/// A source on a thread of its own. Dropping it ends what it is being asked.
pub(super) struct SourceThread {
    requests: Option<Sender<SourceRequest>>,
    /// Answers that are still to be heard.
    open: usize,
    keeps: Keeps,
    /// What is read next is news.
    forgotten: bool,
    line: Arc<QuestionLine>,
    thread: Option<JoinHandle<()>>,
}

impl SourceThread {
    fn begin(
        source: Box<dyn TaskSource>,
        line: Arc<QuestionLine>,
        tell: impl Fn(SourceAnswer) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (requests, rx) = channel();
        let keeps = source.keeps();
        let span = Span::current();
        let thread = Builder::new().name("tracker".to_owned());
        let thread = thread.spawn(move || span.in_scope(|| serve(source, &rx, tell)))?;
        Ok(Self {
            requests: Some(requests),
            open: 0,
            keeps,
            forgotten: false,
            line,
            thread: Some(thread),
        })
    }

    fn ask(&mut self, request: SourceRequest) -> Option<SourceAnswer> {
        let request = match request {
            SourceRequest::News { anew } => SourceRequest::News {
                anew: anew || std::mem::take(&mut self.forgotten),
            },
            other => other,
        };
        let requests = self.requests.as_ref()?;
        match requests.send(request) {
            Ok(()) => {
                self.open += 1;
                None
            }
            Err(refused) => Some(unanswered(refused.0, "nobody asks the tracker any more")),
        }
    }
}

impl Drop for SourceThread {
    fn drop(&mut self) {
        self.line.hurry(Hurry::Kill);
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Answers until nobody asks. After something could not be written, nothing else is before what is owed: what is
/// said of one task keeps its order.
fn serve(
    mut source: Box<dyn TaskSource>,
    requests: &Receiver<SourceRequest>,
    tell: impl Fn(SourceAnswer),
) {
    let mut behind = false;
    for request in requests {
        let answered = match request {
            SourceRequest::Write(..) if behind => unanswered(request, "it was not told before"),
            request => answer(&mut *source, request),
        };
        match &answered {
            SourceAnswer::Written(.., Err(SourceError::NoTask { .. })) => {}
            SourceAnswer::Written(.., Err(_)) => behind = true,
            SourceAnswer::Settled { result: Ok(_), .. } => behind = false,
            _ => {}
        }
        tell(answered);
    }
}

fn unanswered(request: SourceRequest, why: &str) -> SourceAnswer {
    let error = SourceError::Tracker {
        message: why.to_owned(),
        hint: "see whether the tracker's program works".to_owned(),
    };
    match request {
        SourceRequest::Claim(task) => SourceAnswer::Claimed(task, Err(error)),
        SourceRequest::Write(task, write) => SourceAnswer::Written(task, write, Err(error)),
        SourceRequest::News { .. } => SourceAnswer::News(Err(error)),
        SourceRequest::Settle(owed) => SourceAnswer::Settled {
            result: Err(error),
            owed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::MemorySource;

    fn write(task: &str) -> SourceRequest {
        SourceRequest::Write(task.into(), Write::Reopen)
    }

    /// A source that fails as often as it is told, and says in which order it was written.
    struct Failing {
        fails: u32,
        written: Sender<TaskId>,
        inner: MemorySource,
    }

    impl TaskSource for Failing {
        fn load(&mut self) -> Result<Loaded, SourceError> {
            self.inner.load()
        }
        fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError> {
            self.inner.claim(task)
        }
        fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError> {
            self.inner.set(task, status)
        }
        fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError> {
            if self.fails > 0 {
                self.fails -= 1;
                return Err(no_file());
            }
            self.written.send(task.clone()).unwrap();
            Ok(())
        }
        fn forget(&mut self) {}
        fn line(&self) -> Option<Arc<QuestionLine>> {
            Some(Arc::default())
        }
        fn keeps(&self) -> Keeps {
            Keeps::Done
        }
        fn shielded(&self) -> Vec<std::path::PathBuf> {
            Vec::new()
        }
    }

    #[test]
    fn what_is_owed_is_written_first_and_in_order() {
        let (written, order) = channel();
        let (tell, told) = channel();
        let source = Failing {
            fails: 1,
            written,
            inner: MemorySource::new(Vec::new()),
        };
        let mut access = SourceAccess::new(Box::new(source), move |answer| {
            drop(tell.send(answer));
        })
        .unwrap();
        assert!(access.ask(write("a")).is_none());
        assert!(access.ask(write("b")).is_none());
        let mut owed = Vec::new();
        for _ in 0..2 {
            match told.recv().unwrap() {
                SourceAnswer::Written(task, write, Err(_)) => owed.push((task, write)),
                other => panic!("{other:?}"),
            }
            access.heard();
        }
        assert!(!access.is_busy());
        assert!(access.ask(SourceRequest::Settle(owed)).is_none());
        match told.recv().unwrap() {
            SourceAnswer::Settled {
                result: Ok(_),
                owed,
            } => assert!(owed.is_empty()),
            other => panic!("{other:?}"),
        }
        access.ask(write("c"));
        let order: Vec<TaskId> = (0..3).map(|_| order.recv().unwrap()).collect();
        assert_eq!(order, ["a", "b", "c"].map(TaskId::from));
    }
}
