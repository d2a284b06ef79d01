//! The blocks of a list as points between tasks, so that a block costs few edges whatever its length.

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::TaskBlock;
use crate::graph::hash::NameMap;

/// A point between tasks: whoever waits for it waits for all of these.
#[derive(Debug, Default)]
pub(super) struct BlockRow<'a> {
    /// Other points, by position.
    pub(super) rows: Vec<usize>,
    /// Tasks, by position in the list.
    pub(super) tasks: Cow<'a, [u32]>,
}

/// All blocks of a list. Where each is the first part of its run, a row adds to the next shorter one;
/// else rows halve a run again and again, and a block is put together of the largest that fit.
pub(super) struct BlockTable<'a> {
    numbers: NameMap<(usize, usize, usize), usize>,
    pub(super) rows: Vec<BlockRow<'a>>,
}

/// The blocks of one run.
struct RunBlocks<'a> {
    run: &'a [u32],
    key: usize,
    spans: Vec<Range<usize>>,
}

impl<'a> BlockTable<'a> {
    pub(super) fn new(blocks: impl Iterator<Item = &'a TaskBlock>) -> Self {
        let mut runs: Vec<RunBlocks<'a>> = Vec::new();
        // In the order in which they come, so that the same list gives the same table.
        let mut known: NameMap<usize, usize> = NameMap::default();
        for block in blocks {
            let key = block.run_key();
            let at = *known.entry(key).or_insert_with(|| {
                let (run, spans) = (block.run(), Vec::new());
                runs.push(RunBlocks { run, key, spans });
                runs.len() - 1
            });
            let spans = &mut runs[at].spans;
            if spans.last() != Some(&block.span()) {
                spans.push(block.span());
            }
        }
        let mut table = Self {
            numbers: NameMap::default(),
            rows: Vec::new(),
        };
        for mut blocks in runs {
            blocks
                .spans
                .sort_unstable_by_key(|span| (span.end, span.start));
            blocks.spans.dedup();
            match blocks.spans.iter().all(|span| span.start == 0) {
                true => table.add_growing(blocks),
                false => table.add_halved(blocks),
            }
        }
        table
    }

    /// The row of a block.
    pub(super) fn number(&self, block: &TaskBlock) -> Option<usize> {
        self.numbers.get(&block.key()).copied()
    }

    fn push(&mut self, rows: Vec<usize>, tasks: impl Into<Cow<'a, [u32]>>) -> usize {
        let tasks = tasks.into();
        self.rows.push(BlockRow { rows, tasks });
        self.rows.len() - 1
    }

    fn add_growing(&mut self, blocks: RunBlocks<'a>) {
        let mut shorter: Option<(usize, usize)> = None;
        for span in blocks.spans {
            let known = shorter.map_or(0, |(_, end)| end);
            let rows = shorter.iter().map(|(row, _)| *row).collect();
            let row = self.push(rows, &blocks.run[known..span.end]);
            self.numbers.insert((blocks.key, 0, span.end), row);
            shorter = Some((row, span.end));
        }
    }

    fn add_halved(&mut self, blocks: RunBlocks<'a>) {
        let mut halves = HalvedRun {
            run: blocks.run,
            known: NameMap::default(),
        };
        for span in blocks.spans {
            let (mut rows, mut tasks) = (Vec::new(), Vec::new());
            let mut at = span.start;
            while at < span.end {
                let length = largest(at, span.end);
                match length {
                    1 => tasks.push(blocks.run[at]),
                    _ => rows.push(halves.row(self, at, length)),
                }
                at += length;
            }
            let row = match (rows.as_slice(), tasks.is_empty()) {
                ([row], true) => *row,
                _ => self.push(rows, tasks),
            };
            self.numbers.insert((blocks.key, span.start, span.end), row);
        }
    }
}

/// Parts of a run whose length is a power of two and divides the place where they begin.
struct HalvedRun<'a> {
    run: &'a [u32],
    known: NameMap<(usize, usize), usize>,
}

/// Parts up to this length name their tasks.
const SMALLEST_HALF: usize = 8;

impl<'a> HalvedRun<'a> {
    /// The row of such a part.
    fn row(&mut self, table: &mut BlockTable<'a>, at: usize, length: usize) -> usize {
        if let Some(row) = self.known.get(&(at, length)) {
            return *row;
        }
        let row = match length <= SMALLEST_HALF {
            true => table.push(Vec::new(), &self.run[at..at + length]),
            false => {
                let half = length / 2;
                let rows = vec![self.row(table, at, half), self.row(table, at + half, half)];
                table.push(rows, Vec::new())
            }
        };
        self.known.insert((at, length), row);
        row
    }
}

/// The length of the largest such part that begins at `at` and does not go past `end`.
fn largest(at: usize, end: usize) -> usize {
    let fits = 1 << (usize::BITS - 1 - (end - at).leading_zeros());
    match at {
        0 => fits,
        _ => fits.min(1 << at.trailing_zeros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks behind a row.
    fn tasks(table: &BlockTable<'_>, row: usize) -> Vec<u32> {
        let row = &table.rows[row];
        let mut all: Vec<u32> = row.tasks.to_vec();
        for below in &row.rows {
            all.extend(tasks(table, *below));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn every_part_of_a_run_has_a_row_for_its_tasks() {
        let run: Vec<u32> = (100..177).collect();
        let whole = TaskBlock::of(&run);
        for first in [0, 1, 5, 8, 16, 33] {
            let parts: Vec<TaskBlock> = (first + 1..=run.len())
                .map(|end| whole.part(first..end))
                .collect();
            let table = BlockTable::new(parts.iter());
            for part in &parts {
                let row = table.number(part).unwrap();
                assert_eq!(tasks(&table, row), part.positions());
            }
        }
    }

    #[test]
    fn many_long_parts_cost_few_edges() {
        let run: Vec<u32> = (0..10_000).collect();
        let whole = TaskBlock::of(&run);
        for length in [100, 5_000] {
            let starts = 1..run.len() - length;
            let parts: Vec<TaskBlock> = starts.map(|at| whole.part(at..at + length)).collect();
            let table = BlockTable::new(parts.iter());
            let edges = table.rows.iter();
            let edges: usize = edges.map(|row| row.rows.len() + row.tasks.len()).sum();
            assert!(edges < 25 * run.len(), "{edges}");
        }
    }
}
