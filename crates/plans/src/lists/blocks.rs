//! Many tasks that many others wait for: written down once, and shared by all who wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// Tasks in the order in which others wait for them, by position in their list.
#[derive(Debug)]
struct TaskRun {
    tasks: Box<[u32]>,
    /// Whether positions only grow.
    ascends: bool,
    /// Places in a run that does not ascend, in the order of their tasks; made when it is asked for.
    by_task: OnceLock<Box<[u32]>>,
}

impl PartialEq for TaskRun {
    fn eq(&self, other: &Self) -> bool {
        self.tasks == other.tasks
    }
}

impl Eq for TaskRun {}

impl TaskRun {
    fn of(tasks: &[u32]) -> Arc<Self> {
        Arc::new(Self {
            ascends: tasks.is_sorted(),
            tasks: tasks.into(),
            by_task: OnceLock::new(),
        })
    }

    /// Where a task stands between two places of a run that does not ascend.
    fn place(&self, task: u32, between: Range<usize>) -> Option<usize> {
        let places = self.by_task.get_or_init(|| {
            let mut places: Box<[u32]> = (0..self.tasks.len() as u32).collect();
            places.sort_by_key(|place| self.tasks[*place as usize]);
            places
        });
        let of = |place: &u32| self.tasks[*place as usize];
        let first = places.partition_point(|place| of(place) < task);
        let same = places[first..].iter().take_while(|place| of(place) == task);
        let mut same = same.map(|place| *place as usize);
        same.find(|place| between.contains(place))
    }
}

/// Tasks that must all be done first: a part of a run that is shared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBlock {
    run: Arc<TaskRun>,
    start: usize,
    end: usize,
}

impl TaskBlock {
    /// Positions in the list.
    pub fn positions(&self) -> &[u32] {
        &self.run.tasks[self.start..self.end]
    }

    /// The positions of several, each once.
    pub fn all_positions(blocks: &[Self]) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            let known = &blocks[..at];
            let new = block.positions().iter().copied();
            all.extend(new.filter(|task| !known.iter().any(|block| block.contains(*task))));
        }
        all
    }

    /// A block of all of these.
    pub(super) fn of(tasks: &[u32]) -> Self {
        Self {
            run: TaskRun::of(tasks),
            start: 0,
            end: tasks.len(),
        }
    }

    /// A part of the same run; `part` counts from the start of this block.
    pub(super) fn part(&self, part: Range<usize>) -> Self {
        Self {
            run: Arc::clone(&self.run),
            start: self.start + part.start,
            end: self.start + part.end,
        }
    }

    pub(super) fn contains(&self, task: u32) -> bool {
        self.place(task).is_some()
    }

    fn place(&self, task: u32) -> Option<usize> {
        match self.run.ascends {
            true => self.positions().binary_search(&task).ok(),
            false => {
                let place = self.run.place(task, self.span());
                place.map(|place| place - self.start)
            }
        }
    }

    /// The greatest position.
    fn last(&self) -> Option<u32> {
        match self.run.ascends {
            true => self.positions().last().copied(),
            false => self.positions().iter().copied().max(),
        }
    }

    /// Whether a run that ascends has none of its tasks here up to a position.
    pub(super) fn is_behind(&self, task: u32) -> bool {
        let first = self.positions().first();
        self.run.ascends && first.is_some_and(|first| *first > task)
    }

    /// The first task at a greater position, and how many more there are.
    pub(super) fn behind(&self, task: u32) -> Option<(u32, usize)> {
        let all = self.positions();
        if self.run.ascends {
            let at = all.partition_point(|other| *other <= task);
            return all.get(at).map(|first| (*first, all.len() - at - 1));
        }
        let mut behind = all.iter().copied().filter(|other| *other > task);
        behind.next().map(|first| (first, behind.count()))
    }

    /// The blocks on both sides of a task; a task stands in a run once.
    pub(super) fn without(&self, task: u32) -> Vec<Self> {
        let all = self.positions();
        let Some(at) = self.place(task) else {
            return vec![self.clone()];
        };
        let parts = [0..at, at + 1..all.len()].into_iter();
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(|part| self.part(part)).collect()
    }

    /// Those of its tasks that `keep` says; of the same run where they stand together in it.
    pub(super) fn filtered(&self, keep: impl Fn(u32) -> bool) -> Option<Self> {
        let all = self.positions();
        let first = all.iter().position(|task| keep(*task))?;
        let last = all.iter().rposition(|task| keep(*task))?;
        if all[first..=last].iter().all(|task| keep(*task)) {
            return Some(self.part(first..last + 1));
        }
        let kept: Vec<u32> = all.iter().copied().filter(|task| keep(*task)).collect();
        Some(Self::of(&kept))
    }

    /// Equal for two that share their run.
    pub(super) fn run_key(&self) -> usize {
        Arc::as_ptr(&self.run) as usize
    }

    /// Where it stands in its run.
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Equal for two that share their tasks.
    pub(super) fn key(&self) -> (usize, usize, usize) {
        (self.run_key(), self.start, self.end)
    }

    /// All tasks of its run.
    pub(super) fn run(&self) -> &[u32] {
        &self.run.tasks
    }
}

/// What a task waits for, by position in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskWaits {
    pub(super) blocks: Vec<TaskBlock>,
    pub(super) tasks: Vec<u32>,
}

impl TaskWaits {
    /// The one at a place: those of blocks, then the others.
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        let mut at = at;
        for block in &self.blocks {
            match block.positions().get(at) {
                Some(task) => return Some(*task),
                None => at -= block.positions().len(),
            }
        }
        self.tasks.get(at).copied()
    }

    pub(super) fn contains(&self, task: u32) -> bool {
        self.tasks.contains(&task) || self.blocks.iter().any(|block| block.contains(task))
    }

    /// The greatest position of them.
    pub(super) fn last(&self) -> Option<u32> {
        let blocks = self.blocks.iter().filter_map(TaskBlock::last);
        blocks.chain(self.tasks.iter().copied()).max()
    }

    /// Waits for one more.
    pub(super) fn add(&mut self, task: u32) {
        if !self.contains(task) {
            self.tasks.push(task);
        }
    }

    /// Waits for a block, for a few of them one by one.
    pub(super) fn add_block(&mut self, block: TaskBlock) {
        match block.positions().len() <= FEW {
            true => block.positions().iter().for_each(|task| self.add(*task)),
            false => {
                self.tasks.retain(|task| !block.contains(*task));
                self.blocks.push(block);
            }
        }
    }

    /// Takes out one task.
    pub(super) fn remove(&mut self, task: u32) {
        self.tasks.retain(|other| *other != task);
        let old = std::mem::take(&mut self.blocks).into_iter();
        self.blocks = old.flat_map(|block| block.without(task)).collect();
    }
}

/// Up to so many tasks are named one by one.
const FEW: usize = 16;

/// The first tasks of a run that may still grow.
#[derive(Clone, Debug, Default)]
pub(super) struct RunPart {
    run: Rc<RefCell<Vec<u32>>>,
    len: usize,
}

impl RunPart {
    /// A run of these.
    pub(super) fn of(tasks: Vec<u32>) -> Self {
        Self {
            len: tasks.len(),
            run: Rc::new(RefCell::new(tasks)),
        }
    }

    /// Appends to the run. Only its longest part may do so.
    pub(super) fn extend(&mut self, tasks: impl IntoIterator<Item = u32>) {
        let mut run = self.run.borrow_mut();
        run.extend(tasks);
        self.len = run.len();
    }

    pub(super) fn to_vec(&self) -> Vec<u32> {
        self.run.borrow()[..self.len].to_vec()
    }
}

/// Turns runs that no longer grow into blocks.
#[derive(Default)]
pub(super) struct FinishedRuns {
    runs: HashMap<*const RefCell<Vec<u32>>, Arc<TaskRun>>,
}

impl FinishedRuns {
    /// The tasks of a part, as a block where there are several.
    pub(super) fn block(&mut self, part: &RunPart) -> Result<TaskBlock, Option<u32>> {
        if part.len < 2 {
            return Err(part.run.borrow().first().copied().filter(|_| part.len > 0));
        }
        let run = self.runs.entry(Rc::as_ptr(&part.run));
        let run = run.or_insert_with(|| TaskRun::of(&part.run.borrow()));
        Ok(TaskBlock {
            run: Arc::clone(run),
            start: 0,
            end: part.len,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_task_is_found_where_it_first_stands(
            tasks in proptest::collection::vec(0_u32..30, 0..40),
            start in 0_usize..40,
            length in 0_usize..40,
            task in 0_u32..30,
        ) {
            let start = start.min(tasks.len());
            let end = (start + length).min(tasks.len());
            let part = TaskBlock::of(&tasks).part(start..end);
            let first = part.positions().iter().position(|other| *other == task);
            match part.run.ascends {
                true => prop_assert_eq!(part.place(task).is_some(), first.is_some()),
                false => prop_assert_eq!(part.place(task), first),
            }
        }
    }
}
