//! Blocks of a list whose tasks were put together into others, one for each section.

use std::ops::Range;

use super::blocks::TaskBlock;
use crate::graph::hash::{NameMap, NameSet};

/// The same blocks over the sections: those of one run stay blocks of one run where they can, for each
/// may hold all tasks but a few.
pub(super) struct MergedBlocks<'a> {
    /// What each task became part of, by position.
    merged: &'a [u32],
    runs: NameMap<usize, MergedRun>,
}

/// Longer blocks are shared where they can be, for there may be as many of them as there are tasks.
const LONG: usize = 256;

struct MergedRun {
    run: TaskBlock,
    /// How many of that the first so many tasks became.
    ends: Vec<usize>,
    /// Up to here, each task became the last of these.
    grows_until: usize,
    /// The same in the order of the tasks, where those that became one stand together; made when a long
    /// block asks for it.
    in_order: Option<Option<OrderedRun>>,
}

struct OrderedRun {
    run: TaskBlock,
    ends: Vec<usize>,
}

impl<'a> MergedBlocks<'a> {
    pub(super) fn new(merged: &'a [u32]) -> Self {
        let runs = NameMap::default();
        Self { merged, runs }
    }

    /// What the tasks of a block became.
    pub(super) fn block(&mut self, block: &TaskBlock) -> TaskBlock {
        let merged = self.merged;
        let known = self.runs.entry(block.run_key());
        let known = known.or_insert_with(|| MergedRun::of(block.run(), merged));
        if let Some(part) = known.part(block.span()) {
            return part;
        }
        let long = Some(block).filter(|block| block.positions().len() > LONG);
        match long.and_then(|block| known.ordered_part(block, merged)) {
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
            in_order: None,
        }
    }

    fn ordered_part(&mut self, block: &TaskBlock, merged: &[u32]) -> Option<TaskBlock> {
        let in_order = self
            .in_order
            .get_or_insert_with(|| OrderedRun::of(block.run(), merged));
        let OrderedRun { run, ends } = in_order.as_ref()?;
        let span = block.span();
        Some(run.part(ends[span.start] - 1..ends[span.end - 1]))
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

impl OrderedRun {
    fn of(tasks: &[u32], merged: &[u32]) -> Option<Self> {
        let mut run: Vec<u32> = Vec::new();
        let mut ends = Vec::with_capacity(tasks.len());
        for at in tasks {
            let next = merged[*at as usize];
            if run.last() != Some(&next) {
                run.push(next);
            }
            ends.push(run.len());
        }
        let once: NameSet<u32> = run.iter().copied().collect();
        let run_once = once.len() == run.len();
        run_once.then(|| Self {
            run: TaskBlock::of(&run),
            ends,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Every case asks for some hundred blocks.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_block_becomes_what_its_tasks_became(
            lengths in proptest::collection::vec(1_usize..4, 150..300),
            step in 1_usize..400,
            start in 0_usize..20,
        ) {
            // Sections in any order, with their tasks side by side in the run.
            let sections = lengths.len();
            let of = |at: usize| (at * step % sections) as u32;
            let merged: Vec<u32> = lengths
                .iter()
                .enumerate()
                .flat_map(|(at, length)| vec![of(at); *length])
                .collect();
            let run: Vec<u32> = (0..merged.len() as u32).collect();
            let whole = TaskBlock::of(&run);
            let mut blocks = MergedBlocks::new(&merged);
            for end in (start + 1..=run.len()).step_by(3) {
                let found = blocks.block(&whole.part(start..end));
                let mut found = found.positions().to_vec();
                found.sort_unstable();
                let mut expected = merged[start..end].to_vec();
                expected.sort_unstable();
                expected.dedup();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
