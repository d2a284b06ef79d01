//! The agents of a task loop's tasks, seen through the task loop's own view: every line of their
//! output with the task in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use descartes_agents::agent::Profiles;
use descartes_client::logs::{Thoughts, Tools};
use descartes_client::{ClientError, Follower, LoopHandle, LoopUpdate, Output};
use descartes_kernel::event::Event;
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::apply;
use descartes_text::display::{Clean, Colours, Shown};
use descartes_text::units::show_size;
use descartes_views::view::Life;
use jiff::Timestamp;

use super::voice::{Speech, transcript_of};

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
    speech: Speech,
    /// The open line of each stream.
    lines: [Shown; 2],
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
            speech: Speech::new(
                [(); 2].map(|()| Clean::new(self.colours)),
                self.thoughts,
                Tools::WhenCalled,
            ),
            lines: Default::default(),
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
                run, source, bytes, ..
            } => {
                let log = self.follower.output_log(run);
                let shown = self.speech.push(source, &bytes, Some(&log));
                take_lines(&self.task, &mut self.lines[source as usize], &shown, text);
            }
            LoopUpdate::Skipped { source, bytes, .. } => {
                self.speech.skip(source);
                self.lines[source as usize] = Shown::default();
                let words = format!("[{}] [… {} not shown …]\n", self.task, show_size(bytes));
                text.add(&words);
            }
            LoopUpdate::Record(record) => {
                match &record.event {
                    Event::RunStarted { agent, .. } => {
                        let config = &self.state.config;
                        self.speech.begin(transcript_of(config, profiles, *agent));
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
        for (source, rest) in self.speech.finish() {
            let line = &mut self.lines[source as usize];
            take_lines(&self.task, line, &rest, text);
            if !line.is_empty() {
                end_line(&self.task, line, text);
            }
        }
    }
}

/// Adds the lines that this text finishes, each behind its task; the last may stay open.
fn take_lines(task: &str, line: &mut Shown, shown: &Shown, text: &mut Shown) {
    for mut piece in shown.lines() {
        line.append(&mut piece);
        if line.ends_line() || line.len() >= LONGEST {
            end_line(task, line, text);
        }
    }
}

fn end_line(task: &str, line: &mut Shown, text: &mut Shown) {
    text.add(&format!("[{task}] "));
    line.end_line();
    text.append(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_shown_each_with_its_task() {
        let (mut line, mut text) = (Shown::default(), Shown::default());
        let mut push = |bytes: &[u8], text: &mut Shown| {
            let shown = descartes_text::display::bytes(bytes, Colours::Drop);
            take_lines("1.2", &mut line, &shown, text);
        };
        push(b"one\ntw", &mut text);
        assert_eq!(text.as_bytes(), b"[1.2] one\n");
        push(b"o\n\n", &mut text);
        push(b"three", &mut text);
        end_line("1.2", &mut line, &mut text);
        assert_eq!(
            text.to_text(),
            "[1.2] one\n[1.2] two\n[1.2] \n[1.2] three\n"
        );
    }
}
