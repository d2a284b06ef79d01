//! Blocks of a list whose tasks were put together into others, one for each section.

use std::collections::HashMap;
use std::ops::Range;

use super::blocks::TaskBlock;

/// The same blocks over the sections: those of one run stay blocks of one run where they can, for each
/// may hold all tasks but a few.
pub(super) struct MergedBlocks<'a> {
    /// What each task became part of, by position.
    merged: &'a [u32],
    runs: HashMap<usize, MergedRun>,
}

struct MergedRun {
    run: TaskBlock,
    /// How many of that the first so many tasks became.
    ends: Vec<usize>,
    /// Up to here, each task became the last of these.
    grows_until: usize,
}

impl<'a> MergedBlocks<'a> {
    pub(super) fn new(merged: &'a [u32]) -> Self {
        let runs = HashMap::new();
        Self { merged, runs }
    }

    /// What the tasks of a block became.
    pub(super) fn block(&mut self, block: &TaskBlock) -> TaskBlock {
        let merged = self.merged;
        let known = self.runs.entry(block.run_key());
        let known = known.or_insert_with(|| MergedRun::of(block.run(), merged));
        match known.part(block.span()) {
            Some(part) => part,
            None => {
                let tasks = block.positions().iter();
                let mut tasks: Vec<u32> = tasks.map(|at| merged[*at as usize]).collect();
                tasks.sort_unstable();
                tasks.dedup();
                TaskBlock::of(&tasks)
            }
        }
    }
}

impl MergedRun {
    /// It ends where what comes next stands before something and is not there yet.
    fn of(tasks: &[u32], merged: &[u32]) -> Self {
        let mut run: Vec<u32> = Vec::new();
        let mut ends = Vec::new();
        let mut grows_until = None;
        for at in tasks {
            let next = merged[*at as usize];
            match run.binary_search(&next) {
                Ok(place) if place + 1 == run.len() => {}
                Ok(_) => grows_until = grows_until.or(Some(ends.len())),
                Err(place) if place == run.len() => run.push(next),
                Err(_) => break,
            }
            ends.push(run.len());
        }
        Self {
            run: TaskBlock::of(&run),
            grows_until: grows_until.unwrap_or(ends.len()),
            ends,
        }
    }

    fn part(&self, span: Range<usize>) -> Option<TaskBlock> {
        let end = *self.ends.get(span.end.checked_sub(1)?)?;
        let start = match span.start {
            0 => 0,
            _ if span.end > self.grows_until => return None,
            start => self.ends[start] - 1,
        };
        Some(self.run.part(start..end))
    }
}
