//! A task loop has no agent: the loops of its tasks have. With `-f` all that are at work are shown
//! side by side, line by line, until the task loop itself is over.

use std::collections::BTreeMap;
use std::time::Duration;

use descartes_client::{Follower, LoopHandle, LoopUpdate, Output};
use descartes_kernel::event::Event;
use descartes_kernel::state::Phase;
use descartes_store::watching::{BLIND, timeout};
use descartes_views::view::Life;
use nix::poll::{PollFd, PollFlags, poll};

use super::follow::{Beside, Step};
use super::{StopShowing, shown_as};
use crate::args::loops::LogsArgs;
use crate::error::CliError;
use crate::printer::Printer;

/// The loop of the newest task, and a word about it.
pub(super) fn newest(found: &LoopHandle, printer: &Printer) -> Result<LoopHandle, CliError> {
    let Some(child) = found.newest_child()? else {
        return Err(CliError::refused(
            format!("loop {} has not started any task yet", found.name()),
            format!(
                "see: descartes loop status {}",
                descartes_text::shell::word(found.name())
            ),
        ));
    };
    introduce(&child, printer);
    Ok(child)
}

fn introduce(child: &LoopHandle, printer: &Printer) {
    let (task, id) = (child.task().unwrap_or("?"), child.id());
    printer.note(&format!(
        "task {task}, loop {id}; others: descartes loop list --children"
    ));
}

/// What there is of the tasks at work, then whatever comes.
pub(super) fn follow(
    found: &LoopHandle,
    args: &LogsArgs,
    printer: &Printer,
) -> Result<(), StopShowing> {
    // Before the tasks at work are looked for: one that begins meanwhile is then told of.
    let (_, parent) = found.follow(Output::No)?;
    let mut tasks = Tasks {
        found,
        args,
        printer,
        parent,
        open: BTreeMap::new(),
        shown: BTreeMap::new(),
    };
    tasks.begin()?;
    tasks.go_on()
}

/// The loops of a task loop's tasks, all that are at work side by side.
struct Tasks<'a> {
    found: &'a LoopHandle,
    args: &'a LogsArgs,
    printer: &'a Printer,
    parent: Follower,
    open: BTreeMap<String, Open<'a>>,
    /// The last run of each loop that was shown, or is no news.
    shown: BTreeMap<String, u64>,
}

struct Open<'a> {
    task: Beside<'a>,
    /// Every attempt opens the loop of its task anew.
    again: bool,
}

impl<'a> Tasks<'a> {
    fn begin(&mut self) -> Result<(), StopShowing> {
        for child in at_work(self.found, self.parent.life(), self.printer)? {
            let before = begun_before(&child)?;
            introduce(&child, self.printer);
            let id = child.id().to_owned();
            self.shown.insert(id.clone(), before);
            let mut task = self.behind(child)?;
            task.catch_up()?;
            self.go_on_with(&id, task);
        }
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), StopShowing> {
        loop {
            // A loop that is gone has written its last; all of that is still to be told.
            let over = self.parent.life() == Life::Gone;
            let news = self.parent.news()?;
            let told = !news.is_empty();
            for one in news {
                if let LoopUpdate::Record(record) = one
                    && let Event::TaskLoop { loop_id, .. } = &record.event
                {
                    self.begun(loop_id)?;
                }
            }
            if self.look()? || told {
                continue;
            }
            if over && self.open.is_empty() {
                return Ok(());
            }
            self.printer.tell_polling();
            self.wait();
        }
    }

    /// An attempt at a task was begun.
    fn begun(&mut self, loop_id: &str) -> Result<(), StopShowing> {
        if let Some(open) = self.open.get_mut(loop_id) {
            open.again = true;
            return Ok(());
        }
        let Ok(child) = self.found.beside(loop_id) else {
            return Ok(());
        };
        if !self.shown.contains_key(loop_id) {
            introduce(&child, self.printer);
        }
        let mut task = self.behind(child)?;
        task.begin()?;
        self.go_on_with(loop_id, task);
        Ok(())
    }

    /// A task's loop, shown behind what was shown of it.
    fn behind(&self, child: LoopHandle) -> Result<Beside<'a>, StopShowing> {
        let after = self.shown.get(child.id()).copied().unwrap_or(0);
        let mut show = shown_as(self.args, self.printer);
        show.task(child.task().unwrap_or("?"));
        Beside::new(child, after, self.args, show)
    }

    fn go_on_with(&mut self, loop_id: &str, task: Beside<'a>) {
        let again = false;
        self.open.insert(loop_id.to_owned(), Open { task, again });
    }

    /// A look at every task at work; whether all were quiet.
    fn look(&mut self) -> Result<bool, StopShowing> {
        let (mut is_new, mut over) = (false, Vec::new());
        for (id, open) in &mut self.open {
            match open.task.step()? {
                Step::Quiet => {}
                Step::LoopUpdate => is_new = true,
                Step::Over(run) => over.push((id.clone(), run, open.again)),
            }
        }
        for (id, run, again) in over {
            is_new = true;
            self.open.remove(&id);
            self.shown.insert(id.clone(), run);
            if again {
                self.begun(&id)?;
            }
        }
        Ok(is_new)
    }

    /// Sleeps until one of them may have something new.
    fn wait(&mut self) {
        let tasks = self.open.values().map(|open| &open.task.follower);
        let all: Vec<_> = tasks.chain([&self.parent]).map(Follower::fd).collect();
        // Those that cannot tell are asked.
        let blind = !all.iter().all(Option::is_some);
        let limit = timeout(blind.then_some(BLIND));
        let fds = all.into_iter().flatten();
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, limit);
        drop(fds);
        for open in self.open.values_mut() {
            open.task.follower.wait(Some(Duration::ZERO));
        }
        self.parent.wait(Some(Duration::ZERO));
    }
}

/// The tasks at work, the one begun first in front; where none is, the newest.
fn at_work(found: &LoopHandle, life: Life, printer: &Printer) -> Result<Vec<LoopHandle>, CliError> {
    let mut children = found.children()?;
    if children.is_empty() && life == Life::Alive {
        printer.note("no task has started yet: waiting for the first");
    }
    let alive = |child: &LoopHandle| child.life().is_ok_and(|life| life == Life::Alive);
    if !children.iter().any(alive) {
        children.truncate(1);
        return Ok(children);
    }
    children.retain(alive);
    children.reverse();
    Ok(children)
}

/// The last run that needs not be shown: the one under way, or the newest, is.
fn begun_before(child: &LoopHandle) -> Result<u64, CliError> {
    let state = child.state()?;
    Ok(match &state.phase {
        Phase::Running(run) => run.run.saturating_sub(1),
        _ => state.runs.saturating_sub(1),
    })
}
