//! On a worker: gives out the folder of a task's loop to its coordinator, which keeps a copy, and passes on
//! a person's commands to that loop.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use descartes_bridge::{Engine, ServedRequest};
use descartes_kernel::control::Answer;
use descartes_kernel::state::Spent;
use descartes_store::catalog;
use descartes_store::layout::StateRoot;
use descartes_store::mirror::{FolderNews, FolderSource};
use descartes_store::watching::{AddWatchFlags, Watching};
use tracing::{debug, warn};

use super::messages::{
    CommandOrder, MirrorFacts, MirrorNews, MirrorRequest, MirroredLoop, RequestReceipt,
};
use crate::tasks::attempt_control::Control;

/// A request is answered at the latest after this time.
const HOLD: Duration = Duration::from_secs(5);
/// While nothing is new it is looked this often whether somebody else asks, or an answer is there.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_FOR_ANSWER: Duration = Duration::from_millis(10);
/// Bytes of one answer; the engine carries at most 8 MiB.
const ANSWER_BYTES: u64 = 256 << 10;

const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_MOVED_TO);

/// What is known of the loop that is given out.
#[derive(Default)]
struct SourceState {
    of: Option<MirroredLoop>,
    answers: Vec<(u64, Answer)>,
    /// Commands that are not answered to the end.
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct SourceShared {
    state: Mutex<SourceState>,
    over: AtomicBool,
    ended: AtomicBool,
}

/// Gives out a loop until it is dropped.
pub(super) struct MirrorSource {
    handle: MirrorHandle,
}

/// Tells it what happens.
#[derive(Clone)]
pub(super) struct MirrorHandle {
    shared: Arc<SourceShared>,
    root: StateRoot,
}

impl Drop for MirrorSource {
    fn drop(&mut self) {
        self.handle.shared.ended.store(true, Ordering::SeqCst);
    }
}

impl MirrorSource {
    /// Serves the requests of one attempt's coordinator.
    pub(super) fn start(engine: &Arc<dyn Engine>, subject: &str, root: &StateRoot) -> Self {
        let handle = MirrorHandle {
            shared: Arc::default(),
            root: root.clone(),
        };
        match engine.serve(subject) {
            Ok(requests) => {
                let server = SourceServer {
                    engine: engine.clone(),
                    handle: handle.clone(),
                    watching: Watching::new(),
                };
                let thread = std::thread::Builder::new().name("mirror".to_owned());
                if let Err(error) = thread.spawn(move || server.serve(&requests)) {
                    warn!(%error, "this attempt cannot be watched from elsewhere");
                }
            }
            Err(error) => warn!(%error, "this attempt cannot be watched from elsewhere"),
        }
        Self { handle }
    }

    pub(super) fn handle(&self) -> MirrorHandle {
        self.handle.clone()
    }

    /// Nothing more is written into the folder.
    pub(super) fn over(&self) {
        let readers = std::mem::take(&mut self.handle.state().readers);
        for reader in readers {
            // The loop is gone, and with it the other end of the stream.
            drop(reader.join());
        }
        self.handle.shared.over.store(true, Ordering::SeqCst);
    }
}

impl MirrorHandle {
    fn state(&self) -> MutexGuard<'_, SourceState> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::SeqCst)
    }

    fn is_ended(&self) -> bool {
        self.shared.ended.load(Ordering::SeqCst)
    }

    /// The loop, once it is open.
    pub(super) fn loop_id(&self) -> Option<String> {
        let state = self.state();
        state.of.as_ref().map(|of| of.meta.id.clone())
    }

    /// Whether the loop of the task was opened.
    pub(super) fn is_open(&self) -> bool {
        self.state().of.is_some()
    }

    /// The loop of the task is open.
    pub(super) fn opened(&self, loop_id: &str, unheard: Spent) {
        match catalog::find(&self.root, loop_id) {
            Ok(entry) => {
                let meta = entry.meta;
                self.state().of = Some(MirroredLoop { meta, unheard });
            }
            Err(error) => warn!(%error, loop_id, "the loop cannot be given out"),
        }
    }

    /// Passes a command on; its answers are given out with the folder.
    pub(super) fn command(&self, control: &Control, order: CommandOrder) -> RequestReceipt {
        let ticket = order.ticket;
        let Some(answers) = control.command(order.command, order.from) else {
            return RequestReceipt::NotOpen;
        };
        let handle = self.clone();
        let thread = std::thread::Builder::new().name("answers".to_owned());
        match thread.spawn(move || handle.read_answers(ticket, answers)) {
            Ok(reader) => {
                let mut state = self.state();
                state.readers.retain(|reader| !reader.is_finished());
                state.readers.push(reader);
                RequestReceipt::Taken
            }
            Err(error) => {
                warn!(%error, "a command's answers cannot be read");
                RequestReceipt::NotOpen
            }
        }
    }

    fn read_answers(&self, ticket: u64, answers: UnixStream) {
        for line in BufReader::new(answers).lines() {
            let Ok(line) = line else { return };
            match serde_json::from_str(&line) {
                Ok(answer) => {
                    let is_last = !matches!(answer, Answer::Accepted { .. });
                    self.state().answers.push((ticket, answer));
                    if is_last {
                        return;
                    }
                }
                Err(error) => debug!(%error, "an answer that is none"),
            }
        }
    }
}

struct SourceServer {
    engine: Arc<dyn Engine>,
    handle: MirrorHandle,
    watching: Watching,
}

impl SourceServer {
    fn serve(mut self, requests: &Receiver<ServedRequest>) {
        let mut next = None;
        while !self.handle.is_ended() {
            let taken = next.take();
            let request = match taken.map_or_else(|| requests.recv_timeout(LOOK), Ok) {
                Ok(request) => request,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            };
            let Ok(asked) = serde_json::from_slice::<MirrorRequest>(&request.body) else {
                drop(self.engine.answer(&request.token, b"unknown request"));
                continue;
            };
            let news = self.wait_for_news(&asked, || {
                next = requests.try_recv().ok();
                next.is_some()
            });
            if let Err(error) = self.engine.answer(&request.token, &news.encode()) {
                debug!(%error, "a piece of a loop was not sent");
            }
        }
    }

    /// What is new; nothing after a while, or where somebody else asks.
    fn wait_for_news(
        &mut self,
        asked: &MirrorRequest,
        mut is_overtaken: impl FnMut() -> bool,
    ) -> MirrorNews {
        let until = Instant::now() + HOLD;
        loop {
            let news = self.look(asked);
            let facts = &news.facts;
            let is_new = !news.pieces.is_empty()
                || facts.other_journal
                || facts.over
                || !facts.answers.is_empty()
                || (asked.copy.is_none() && facts.of.is_some());
            if is_new || Instant::now() >= until || self.handle.is_ended() || is_overtaken() {
                return news;
            }
            let waits_for_answer = !self.handle.state().readers.is_empty();
            let rest = match waits_for_answer || facts.of.is_none() {
                true => LOOK_FOR_ANSWER,
                false => LOOK,
            };
            match &facts.of {
                None => std::thread::sleep(rest),
                Some(_) => self.watching.wait(Some(rest), rest),
            }
        }
    }

    fn look(&mut self, asked: &MirrorRequest) -> MirrorNews {
        // Before anything is read: what is written from here on is told.
        let over = self.handle.is_over();
        drop(self.watching.events());
        let (of, answers) = {
            let state = self.handle.state();
            let answers = state.answers.iter().skip(asked.answers);
            (state.of.clone(), answers.cloned().collect())
        };
        let mut news = MirrorNews {
            facts: MirrorFacts {
                over,
                answers,
                ..MirrorFacts::default()
            },
            pieces: Vec::new(),
        };
        let Some(of) = of else {
            return news;
        };
        let id = of.meta.id.clone();
        news.facts.of = Some(of);
        let Some((_, copy)) = asked.copy.as_ref().filter(|(copied, _)| *copied == id) else {
            return news;
        };
        let Ok(dir) = self.handle.root.loop_dir(&id) else {
            return news;
        };
        let source = FolderSource::new(dir);
        for folder in source.folders() {
            self.watch(&folder);
        }
        match source.news(copy, ANSWER_BYTES) {
            Ok(FolderNews::Pieces(pieces)) => news.pieces = pieces,
            Ok(FolderNews::OtherJournal) => news.facts.other_journal = true,
            Err(error) => debug!(%error, "the folder of a loop cannot be read"),
        }
        news
    }

    fn watch(&mut self, folder: &Path) {
        // Watched already, it is not watched twice.
        let _ = self.watching.add(folder, CHANGES);
    }
}
