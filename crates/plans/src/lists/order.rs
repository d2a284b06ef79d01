//! The order in which a file's tasks are done, as dependencies.

use std::collections::{HashMap, HashSet};

use super::blocks::{FinishedRuns, RunPart, TaskBlock, TaskWaits};
use super::cycles::{break_cycles, break_group_cycles};
use super::model::{ListTask, TaskList};

/// What the next task waits for, while a file is read from top to bottom.
///
/// A task waits for the run of parallel tasks before it, or else for the task before it; a parallel
/// task waits for what came before its run.
#[derive(Clone, Debug, Default)]
pub(super) struct FileOrder {
    /// What a task that runs alone waits for.
    tail: RunPart,
    /// What a parallel task waits for.
    base: RunPart,
    in_run: bool,
}

impl FileOrder {
    /// Begins behind other tasks.
    pub(super) fn after(tasks: RunPart) -> Self {
        Self {
            tail: tasks.clone(),
            base: tasks,
            in_run: false,
        }
    }

    /// Everything so far is done before anything that follows.
    pub(super) fn barrier(&mut self) {
        self.base = self.tail.clone();
        self.in_run = false;
    }

    /// The next task; answers what it waits for.
    pub(super) fn next(&mut self, task: usize, parallel: bool) -> RunPart {
        self.next_as(vec![task as u32], parallel)
    }

    /// The next tasks, as one.
    pub(super) fn next_as(&mut self, ends: Vec<u32>, parallel: bool) -> RunPart {
        if !parallel {
            let before = std::mem::replace(&mut self.tail, RunPart::of(ends));
            self.barrier();
            return before;
        }
        match self.in_run {
            true => self.tail.extend(ends),
            false => self.tail = RunPart::of(ends),
        }
        self.in_run = true;
        self.base.clone()
    }

    /// What is done when all of it is.
    pub(super) fn end(self) -> Vec<u32> {
        self.tail.to_vec()
    }

    /// What the next task would wait for.
    pub(super) fn entrance(&self, parallel: bool) -> RunPart {
        match parallel {
            true => self.base.clone(),
            false => self.tail.clone(),
        }
    }
}

/// Of blocks, so much is copied for tasks that wait for later ones. Nobody writes a list that needs
/// more; past it such a dependency is left out.
const MOST_COPIED: usize = 2_000_000;

/// What each task of a list waits for, while that is found out.
pub(super) struct ListOrder {
    waits: Vec<TaskWaits>,
    /// What was set while runs could still grow.
    set: Vec<(usize, RunPart)>,
    /// Positions that were copied for tasks that wait for later ones.
    copied: usize,
    places: HashMap<String, u32>,
    /// Ids of what nobody is to do: whoever names them waits for nothing.
    gone: HashSet<String>,
}

impl ListOrder {
    /// Nobody waits for anybody yet.
    pub(super) fn new(list: &TaskList) -> Self {
        let all = list.tasks.iter().zip(0..);
        Self {
            waits: vec![TaskWaits::default(); list.tasks.len()],
            set: Vec::new(),
            copied: 0,
            places: all.map(|(task, at)| (task.id.clone(), at)).collect(),
            gone: HashSet::new(),
        }
    }

    /// The same, where these were left out.
    pub(super) fn without(list: &TaskList, gone: HashSet<String>) -> Self {
        Self {
            gone,
            ..Self::new(list)
        }
    }

    /// Another name of a task.
    pub(super) fn add_name(&mut self, id: String, at: usize) {
        self.places.entry(id).or_insert(at as u32);
    }

    /// Whether nobody is to do it.
    pub(super) fn is_gone(&self, id: &str) -> bool {
        self.gone.contains(id)
    }

    /// The position of a task.
    pub(super) fn place(&self, id: &str) -> Option<u32> {
        self.places.get(id).copied()
    }

    /// The task at a position waits for these alone.
    pub(super) fn set(&mut self, at: usize, after: RunPart) {
        self.set.push((at, after));
    }

    /// The same, some of them one by one.
    pub(super) fn set_with(&mut self, at: usize, block: Option<TaskBlock>, tasks: Vec<u32>) {
        self.waits[at] = TaskWaits { block, tasks };
    }

    /// From here on no run grows.
    fn settle(&mut self) {
        let mut finished = FinishedRuns::default();
        for (at, part) in std::mem::take(&mut self.set) {
            self.waits[at] = match finished.block(&part) {
                Ok(block) => TaskWaits {
                    block: Some(block),
                    tasks: Vec::new(),
                },
                Err(one) => TaskWaits::after(one.into_iter().collect()),
            };
        }
    }

    /// Adds dependencies that the text names. Where one names a task further down, it holds and the
    /// order of the file does not; ids that are not in the list are kept apart.
    pub(super) fn add_named(&mut self, list: &mut TaskList, named: Vec<(String, Vec<String>)>) {
        self.settle();
        for (id, on) in named {
            let Some(at) = self.place(&id) else {
                continue;
            };
            for wanted in on.into_iter().filter(|wanted| *wanted != id) {
                match self.place(&wanted) {
                    Some(other) if other == at => {}
                    Some(other) => self.add_one(list, at, other),
                    None if self.is_gone(&wanted) => {}
                    None => hold(list, at, wanted),
                }
            }
        }
    }

    fn add_one(&mut self, list: &mut TaskList, at: u32, other: u32) {
        if other > at && self.copied >= MOST_COPIED {
            let (task, on) = (&list.tasks[at as usize], &list.tasks[other as usize].id);
            let (id, line) = (&task.id, task.line);
            let message = format!(
                "task `{id}` depends on `{on}`, which stands further down, like too many others: \
                 `{id}` does not wait for `{on}`"
            );
            list.warn(line, message);
            return;
        }
        if other > at {
            self.forward(list, at, other);
        }
        let waits = &mut self.waits[at as usize];
        if !waits.contains(other) {
            waits.tasks.push(other);
        }
    }

    /// Adds dependencies of tasks that stand in no order: each may wait for any other.
    pub(super) fn add_unordered(&mut self, list: &mut TaskList, edges: Vec<(String, Vec<String>)>) {
        for (id, on) in edges {
            let Some(at) = self.place(&id) else {
                continue;
            };
            for wanted in on.into_iter().filter(|wanted| *wanted != id) {
                let Some(other) = self.place(&wanted) else {
                    hold(list, at, wanted);
                    continue;
                };
                let waits = &mut self.waits[at as usize];
                if !waits.contains(other) {
                    waits.tasks.push(other);
                }
            }
        }
    }

    /// The task at `at` waits for one further down: whoever waited for it by the order of the file, up
    /// to that one, waits for what it waited for.
    fn forward(&mut self, list: &mut TaskList, at: u32, wanted: u32) {
        let (id, line) = (&list.tasks[at as usize].id, list.tasks[at as usize].line);
        let message = format!(
            "task `{id}` depends on `{}`, which stands further down: it is done after it",
            list.tasks[wanted as usize].id
        );
        list.warn(line, message);
        let before: Vec<u32> = self.waits[at as usize].iter().collect();
        self.copied += before.len() + (wanted - at) as usize;
        // Tasks of one block stay tasks of one block.
        let mut last: Option<(TaskBlock, TaskWaits)> = None;
        for waits in &mut self.waits[at as usize + 1..=wanted as usize] {
            if let (Some(block), Some((old, new))) = (&waits.block, &last)
                && block.key() == old.key()
            {
                let own = std::mem::take(&mut waits.tasks);
                *waits = new.clone();
                for task in own.into_iter().filter(|task| *task != at) {
                    push_new(waits, task);
                }
                continue;
            }
            if waits.holds_in_block(at)
                && let Some(old) = waits.block.take()
            {
                let rest = old.positions().iter().filter(|task| **task != at);
                let new = TaskWaits::after(rest.chain(&before).copied().collect());
                self.copied += old.positions().len() + before.len();
                let own = std::mem::replace(waits, new.clone()).tasks;
                own.into_iter().for_each(|task| push_new(waits, task));
                last = Some((old, new));
            } else if let Some(found) = waits.tasks.iter().position(|task| *task == at) {
                waits.tasks.remove(found);
                before.iter().for_each(|task| push_new(waits, *task));
            }
        }
    }

    /// Writes it into the tasks. A dependency that closes a circle is left out and said: lists are
    /// written by hand and by models.
    pub(super) fn finish(mut self, list: &mut TaskList) {
        self.settle();
        for (at, on) in break_cycles(&self.waits) {
            self.cut(list, at, on);
        }
        for at in 0..list.tasks.len() {
            self.store(list, at);
        }
        if list.tasks.iter().any(|task| task.container) {
            break_group_cycles(list, |list, id, on| {
                let (at, on) = (self.place(id)?, self.place(on)?);
                let waits = self.waits[at as usize].contains(on);
                waits.then(|| {
                    self.cut(list, at, on);
                    self.store(list, at as usize);
                })
            });
        }
    }

    fn cut(&mut self, list: &mut TaskList, at: u32, on: u32) {
        self.waits[at as usize].remove(on);
        let (task, on) = (&list.tasks[at as usize], &list.tasks[on as usize]);
        let (id, on, line) = (&task.id, &on.id, task.line);
        let message =
            format!("task `{id}` and `{on}` depend on each other: `{id}` does not wait for `{on}`");
        list.warn(line, message);
    }

    fn store(&self, list: &mut TaskList, at: usize) {
        let waits = &self.waits[at];
        let id = |on: &u32| list.tasks[*on as usize].id.clone();
        let depends = waits.tasks.iter().map(id).collect();
        let task = &mut list.tasks[at];
        task.depends = depends;
        task.block.clone_from(&waits.block);
    }
}

fn push_new(waits: &mut TaskWaits, task: u32) {
    if !waits.contains(task) {
        waits.tasks.push(task);
    }
}

/// A task that waits for something that is not in the list.
fn hold(list: &mut TaskList, at: u32, wanted: String) {
    let task = &list.tasks[at as usize];
    if task.is_done() || task.unknown.contains(&wanted) {
        return;
    }
    let ListTask { id, line, .. } = task;
    let message =
        format!("task `{id}` depends on `{wanted}`, which is not in the list: it is held");
    list.warn(*line, message);
    list.tasks[at as usize].unknown.push(wanted);
}

/// Every task waits for the one before it.
pub(super) fn chain(list: &mut TaskList) {
    let mut before: Option<String> = None;
    for task in list.tasks.iter_mut().filter(|task| !task.container) {
        task.depends = before.iter().cloned().collect();
        if !task.optional {
            before = Some(task.id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_tasks_wait_for_what_came_before_their_run() {
        let mut order = FileOrder::default();
        let table: [(usize, bool, &[u32]); 5] = [
            (0, false, &[]),
            (1, true, &[0]),
            (2, true, &[0]),
            (3, false, &[1, 2]),
            (4, false, &[3]),
        ];
        for (task, parallel, expected) in table {
            assert_eq!(order.next(task, parallel).to_vec(), expected, "{task}");
        }
        order.next(5, true);
        order.barrier();
        assert_eq!(order.next(6, true).to_vec(), [5]);
        assert_eq!(order.next(7, true).to_vec(), [5]);
        order.barrier();
        assert_eq!(order.next(8, true).to_vec(), [6, 7]);
    }
}
