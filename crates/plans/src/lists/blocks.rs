//! Many tasks that many others wait for: written down once, and shared by all who wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Tasks that must all be done first, by position in their list and in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBlock {
    run: Arc<[u32]>,
    /// It is the first of the run: a run grows while some wait for what it holds by then.
    len: usize,
}

impl TaskBlock {
    /// Positions in the list, ascending.
    pub fn positions(&self) -> &[u32] {
        &self.run[..self.len]
    }

    /// A block of these.
    pub(super) fn of(mut tasks: Vec<u32>) -> Self {
        tasks.sort_unstable();
        tasks.dedup();
        Self {
            len: tasks.len(),
            run: tasks.into(),
        }
    }

    pub(super) fn contains(&self, task: u32) -> bool {
        self.positions().binary_search(&task).is_ok()
    }

    /// Equal for two that share their tasks.
    pub(super) fn key(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.run).cast::<u32>() as usize, self.len)
    }
}

/// What a task waits for, by position in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskWaits {
    pub(super) block: Option<TaskBlock>,
    pub(super) tasks: Vec<u32>,
}

impl TaskWaits {
    /// Waits for all of them.
    pub(super) fn after(tasks: Vec<u32>) -> Self {
        match tasks.len() {
            0 | 1 => Self { block: None, tasks },
            _ => Self {
                block: Some(TaskBlock::of(tasks)),
                tasks: Vec::new(),
            },
        }
    }

    /// Everything that it waits for.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let block = self.block.iter().flat_map(TaskBlock::positions);
        block.chain(&self.tasks).copied()
    }

    /// The one at a place of [`TaskWaits::iter`].
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        let block = self.block.as_ref().map_or(&[][..], TaskBlock::positions);
        match block.get(at) {
            Some(task) => Some(*task),
            None => self.tasks.get(at - block.len()).copied(),
        }
    }

    pub(super) fn contains(&self, task: u32) -> bool {
        self.holds_in_block(task) || self.tasks.contains(&task)
    }

    /// Takes out one task.
    pub(super) fn remove(&mut self, task: u32) {
        self.tasks.retain(|other| *other != task);
        if self.holds_in_block(task)
            && let Some(block) = self.block.take()
        {
            let rest = block
                .positions()
                .iter()
                .copied()
                .filter(|other| *other != task);
            let rest = Self::after(rest.collect());
            self.block = rest.block;
            self.tasks.splice(0..0, rest.tasks);
        }
    }

    pub(super) fn holds_in_block(&self, task: u32) -> bool {
        let block = self.block.as_ref();
        block.is_some_and(|block| block.contains(task))
    }
}

/// The first tasks of a run that may still grow.
#[derive(Clone, Debug, Default)]
pub(super) struct RunPart {
    run: Rc<RefCell<Vec<u32>>>,
    len: usize,
}

impl RunPart {
    /// A run of these, which must ascend.
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
    runs: HashMap<*const RefCell<Vec<u32>>, Arc<[u32]>>,
}

impl FinishedRuns {
    /// The tasks of a part, as a block where there are several.
    pub(super) fn block(&mut self, part: &RunPart) -> Result<TaskBlock, Option<u32>> {
        if part.len < 2 {
            return Err(part.run.borrow().first().copied().filter(|_| part.len > 0));
        }
        let run = self.runs.entry(Rc::as_ptr(&part.run));
        let run = run.or_insert_with(|| part.run.borrow().as_slice().into());
        Ok(TaskBlock {
            run: Arc::clone(run),
            len: part.len,
        })
    }
}

/// Blocks of a list whose tasks were put together into others, by position: those of one run stay blocks
/// of one run where they can, for each may hold all tasks but a few.
pub(super) struct MergedBlocks<'a> {
    merged: &'a [u32],
    runs: HashMap<usize, MergedRun>,
}

struct MergedRun {
    run: Arc<[u32]>,
    /// How many of the run the first so many tasks became.
    ends: Vec<usize>,
}

impl<'a> MergedBlocks<'a> {
    /// `merged` says what each task became part of.
    pub(super) fn new(merged: &'a [u32]) -> Self {
        let runs = HashMap::new();
        Self { merged, runs }
    }

    /// What the tasks of a block became.
    pub(super) fn block(&mut self, block: &TaskBlock) -> TaskBlock {
        let merged = self.merged;
        let known = self.runs.entry(block.key().0);
        let known = known.or_insert_with(|| MergedRun::of(&block.run, merged));
        match known.ends.get(block.len - 1) {
            Some(len) => TaskBlock {
                run: Arc::clone(&known.run),
                len: *len,
            },
            None => {
                let tasks = block.positions().iter();
                TaskBlock::of(tasks.map(|at| merged[*at as usize]).collect())
            }
        }
    }
}

impl MergedRun {
    /// It ends where what comes next stands before something that is there.
    fn of(tasks: &[u32], merged: &[u32]) -> Self {
        let mut run: Vec<u32> = Vec::new();
        let mut ends = Vec::new();
        for at in tasks {
            let next = merged[*at as usize];
            match run.binary_search(&next) {
                Ok(_) => {}
                Err(place) if place == run.len() => run.push(next),
                Err(_) => break,
            }
            ends.push(run.len());
        }
        Self {
            run: run.into(),
            ends,
        }
    }
}

/// All blocks of a list, each with what it adds to a shorter one of the same run.
pub(super) struct BlockTable<'a> {
    numbers: HashMap<(usize, usize), usize>,
    /// The shorter block, and the tasks that this one has beside those.
    pub(super) rows: Vec<(Option<usize>, &'a [u32])>,
}

impl<'a> BlockTable<'a> {
    pub(super) fn new(blocks: impl Iterator<Item = &'a TaskBlock>) -> Self {
        let mut all: HashMap<(usize, usize), &TaskBlock> = HashMap::new();
        for block in blocks {
            all.entry(block.key()).or_insert(block);
        }
        let mut all: Vec<((usize, usize), &TaskBlock)> = all.into_iter().collect();
        // By their first task, so that the same list gives the same table.
        all.sort_unstable_by_key(|(key, block)| (block.positions().first().copied(), *key));
        let mut table = Self {
            numbers: HashMap::with_capacity(all.len()),
            rows: Vec::with_capacity(all.len()),
        };
        let mut last: Option<(usize, usize)> = None;
        for (key, block) in all {
            let shorter = last.filter(|last| last.0 == key.0);
            let known = shorter.map_or(0, |shorter| shorter.1);
            let shorter = shorter.map(|_| table.rows.len() - 1);
            table.numbers.insert(key, table.rows.len());
            table.rows.push((shorter, &block.positions()[known..]));
            last = Some(key);
        }
        table
    }

    /// The row of a block.
    pub(super) fn number(&self, block: &TaskBlock) -> Option<usize> {
        self.numbers.get(&block.key()).copied()
    }
}
