//! The agents of a task loop's tasks, seen through the task loop's own view: every line of their
//! output with the task in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use descartes_agents::agent::Profiles;
use descartes_agents::reader::Source;
use descartes_client::logs::Thoughts;
use descartes_client::{ClientError, Follower, LoopHandle, LoopUpdate, Output};
use descartes_kernel::event::Event;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::apply;
use descartes_text::display::{Clean, Colours, Shown};
use descartes_text::units::show_size;
use descartes_views::view::Life;
use jiff::Timestamp;

use super::voice::Voice;

/// A line without an end is shown in pieces.
const LONGEST: usize = 16 << 10;

/// The loops of the tasks at work, by slot.
pub struct Children {
    parent: LoopHandle,
    output: Output,
    thoughts: Thoughts,
    colours: Colours,
    profiles: Arc<Profiles>,
    open: BTreeMap<u32, Child>,
    since: Timestamp,
    /// Loops that were followed before.
    known: BTreeSet<String>,
}

struct Child {
    task: String,
    follower: Follower,
    state: LoopState,
    thoughts: Thoughts,
    voice: Option<Voice>,
    out: ChildStream,
    err: ChildStream,
}

struct ChildStream {
    clean: Clean,
    line: Shown,
}

/// What there is to show.
#[derive(Default)]
pub struct Seen {
    /// Whole lines.
    pub text: Shown,
    /// Whether anything was new at all.
    pub news: bool,
}

impl Children {
    /// Those of a task loop.
    pub fn new(
        parent: LoopHandle,
        (output, thoughts, colours): (Output, Thoughts, Colours),
        profiles: Arc<Profiles>,
    ) -> Self {
        Self {
            parent,
            output,
            thoughts,
            colours,
            profiles,
            open: BTreeMap::new(),
            since: Timestamp::now(),
            known: BTreeSet::new(),
        }
    }

    /// Begins to follow the loop of a task. One that cannot be followed is not shown; the task
    /// loop tells what became of it all the same.
    pub fn follow(&mut self, task: &str, slot: u32, loop_id: &str) {
        let Ok((state, follower)) = self.attach(loop_id) else {
            return;
        };
        let child = Child {
            task: task.to_owned(),
            follower,
            state,
            thoughts: self.thoughts,
            voice: None,
            out: ChildStream::new(self.colours),
            err: ChildStream::new(self.colours),
        };
        self.open.insert(slot, child);
    }

    /// A loop that is younger than the view is shown from its beginning: a quick agent may be done
    /// before it is looked for. Of an older one, earlier attempts were shown before.
    fn attach(&mut self, loop_id: &str) -> Result<(LoopState, Follower), ClientError> {
        let child = self.parent.beside(loop_id)?;
        let state = child.state()?;
        let first = self.known.insert(loop_id.to_owned());
        if first && state.started_at >= self.since {
            return Ok((state, child.follow_from_first(self.output)?));
        }
        child.follow(self.output)
    }

    /// What is new.
    pub fn news(&mut self) -> Seen {
        let mut shown = Seen::default();
        let profiles = &self.profiles;
        self.open
            .retain(|_, child| child.look(profiles, &mut shown) == Life::Alive);
        shown
    }

    /// What tells that there is something new.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.open
            .values()
            .filter_map(|child| child.follower.fd())
            .collect()
    }

    /// Takes note that they told so.
    pub fn woken(&mut self) {
        for child in self.open.values_mut() {
            child.follower.wait(Some(std::time::Duration::ZERO));
        }
    }

    /// Whether there are some that cannot tell.
    pub fn is_blind(&self) -> bool {
        self.open
            .values()
            .any(|child| child.follower.fd().is_none())
    }
}

impl Child {
    /// Takes what is new; `Gone` once its loop was given back.
    fn look(&mut self, profiles: &Profiles, shown: &mut Seen) -> Life {
        let mut life = Life::Alive;
        loop {
            let Ok(all) = self.follower.news() else {
                life = Life::Gone;
                break;
            };
            if all.is_empty() {
                break;
            }
            shown.news = true;
            for news in all {
                if let LoopUpdate::Life(Life::Gone) = news {
                    life = Life::Gone;
                }
                self.take(news, profiles, &mut shown.text);
            }
        }
        if life == Life::Gone {
            self.finish(&mut shown.text);
        }
        life
    }

    fn take(&mut self, news: LoopUpdate, profiles: &Profiles, text: &mut Shown) {
        match news {
            LoopUpdate::Output {
                run,
                source: Source::Stdout,
                bytes,
                ..
            } => {
                let log = self.follower.output_log(run);
                let said = self.voice.as_mut().map(|voice| voice.push(&bytes, &log));
                let bytes = said.map_or(bytes, String::into_bytes);
                self.out.push(&self.task, &bytes, text);
            }
            LoopUpdate::Output { bytes, .. } => self.err.push(&self.task, &bytes, text),
            LoopUpdate::Skipped { bytes, .. } => {
                if let Some(voice) = &mut self.voice {
                    voice.skip();
                }
                self.out.line = Shown::default();
                let words = format!("[{}] [… {} not shown …]\n", self.task, show_size(bytes));
                text.add(&words);
            }
            LoopUpdate::Record(record) => {
                match &record.event {
                    Event::RunStarted { agent, .. } => {
                        let config = &self.state.config;
                        self.voice = Voice::of(config, profiles, *agent, self.thoughts);
                    }
                    Event::AgentEnded { .. } | Event::IterationInterrupted { .. } => {
                        self.finish(text);
                    }
                    _ => {}
                }
                // A record that this version cannot apply changes nothing of what is shown.
                drop(apply(&mut self.state, &record));
            }
            LoopUpdate::Life(_) => {}
        }
    }

    /// No more output of this run.
    fn finish(&mut self, text: &mut Shown) {
        if let Some(voice) = self.voice.take() {
            let rest = voice.finish();
            self.out.push(&self.task, rest.as_bytes(), text);
        }
        for stream in [&mut self.out, &mut self.err] {
            stream.finish(&self.task, text);
        }
    }
}

impl ChildStream {
    fn new(colours: Colours) -> Self {
        Self {
            clean: Clean::new(colours),
            line: Shown::default(),
        }
    }

    fn push(&mut self, task: &str, bytes: &[u8], text: &mut Shown) {
        let mut shown = Shown::default();
        self.clean.push(bytes, &mut shown);
        self.take(task, &shown, text);
    }

    fn take(&mut self, task: &str, shown: &Shown, text: &mut Shown) {
        for mut piece in shown.lines() {
            self.line.append(&mut piece);
            if self.line.ends_line() || self.line.len() >= LONGEST {
                self.end(task, text);
            }
        }
    }

    fn end(&mut self, task: &str, text: &mut Shown) {
        text.add(&format!("[{task}] "));
        self.line.end_line();
        text.append(&mut self.line);
    }

    fn finish(&mut self, task: &str, text: &mut Shown) {
        let mut rest = Shown::default();
        self.clean.finish(&mut rest);
        self.take(task, &rest, text);
        if !self.line.is_empty() {
            self.end(task, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_shown_each_with_its_task() {
        let (mut stream, mut text) = (ChildStream::new(Colours::Drop), Shown::default());
        stream.push("1.2", b"one\ntw", &mut text);
        assert_eq!(text.as_bytes(), b"[1.2] one\n");
        stream.push("1.2", b"o\n\n", &mut text);
        stream.push("1.2", b"three", &mut text);
        stream.finish("1.2", &mut text);
        assert_eq!(
            text.to_text(),
            "[1.2] one\n[1.2] two\n[1.2] \n[1.2] three\n"
        );
    }
}
