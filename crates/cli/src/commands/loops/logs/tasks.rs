//! A task loop has no agent: the loops of its tasks have. With `-f` one is shown after the
//! other, until the task loop itself is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use descartes_client::{LoopHandle, News, Output};
use descartes_kernel::event::Event;
use descartes_kernel::state::Phase;
use descartes_kernel::view::Life;

use super::{Show, Stop, follow};
use crate::args::loops::LogsArgs;
use crate::error::CliError;
use crate::printer::Printer;

/// The loop of the newest task, and a word about it.
pub(super) fn newest(found: &LoopHandle, printer: &Printer) -> Result<LoopHandle, CliError> {
    let Some(child) = found.newest_child()? else {
        return Err(CliError::Refused {
            message: format!("loop {} has begun no task yet", found.name()),
            hints: vec![format!("see: descartes loop status {}", found.name())],
        });
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
    show: &mut dyn Show,
    printer: &Printer,
) -> Result<(), Stop> {
    // Before the tasks at work are looked for: one that begins meanwhile is then told of.
    let (_, mut parent) = found.follow(Output::No)?;
    let mut waiting: VecDeque<LoopHandle> = at_work(found, parent.life(), printer)?.into();
    let mut shown = BTreeMap::new();
    for child in &waiting {
        shown.insert(child.id().to_owned(), begun_before(child)?);
    }
    if waiting.is_empty() {
        show.caught_up()?;
    }
    let mut speaker = String::new();
    loop {
        if let Some(child) = waiting.pop_front() {
            let after = shown.get(child.id()).copied().unwrap_or(0);
            // Every attempt opens the loop of its task anew.
            if speaker != child.id() {
                show.task(child.task().unwrap_or("?"));
                introduce(&child, printer);
                child.id().clone_into(&mut speaker);
            }
            let after = follow::all_after(&child, after, args, show)?;
            shown.insert(child.id().to_owned(), after);
        }
        // A loop that is gone has written its last; all of that is still to be told.
        let patience = match (parent.life(), waiting.is_empty()) {
            (Life::Alive, true) => None,
            _ => Some(Duration::ZERO),
        };
        let over = parent.life() == Life::Gone;
        let news = parent.next(patience)?;
        if news.is_empty() && over && waiting.is_empty() {
            return Ok(());
        }
        for one in news {
            if let News::Record(record) = one
                && let Event::TaskLoop { loop_id, .. } = &record.event
                && let Ok(child) = found.beside(loop_id)
                && !waiting.iter().any(|other| other.id() == loop_id)
            {
                waiting.push_back(child);
            }
        }
    }
}

/// The tasks at work, the one begun first in front; where none is, the newest.
fn at_work(found: &LoopHandle, life: Life, printer: &Printer) -> Result<Vec<LoopHandle>, CliError> {
    let mut children = found.children()?;
    if children.is_empty() && life == Life::Alive {
        printer.note("no task has begun yet: waiting for the first");
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
