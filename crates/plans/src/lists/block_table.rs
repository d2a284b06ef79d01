//! The blocks of a list as points between tasks, so that a block costs few edges whatever its length.

use std::ops::Range;

use super::blocks::TaskBlock;
use crate::graph::hash::NameMap;

/// A point between tasks: whoever waits for it waits for all of these.
#[derive(Debug)]
pub(super) struct BlockRow<'a> {
    /// Other points, by position.
    rows: [Option<u32>; 2],
    /// Tasks, by position in the list.
    pub(super) tasks: &'a [u32],
}

impl BlockRow<'_> {
    /// Other points, by position.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        self.rows.into_iter().flatten()
    }
}

/// All blocks of a list. Where each is the first part of its run, a row adds to the next shorter one;
/// else a block goes from a middle that many share to both sides, and rows on a side add to the next
/// shorter one.
pub(super) struct BlockTable<'a> {
    numbers: NameMap<(usize, usize, usize), u32>,
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
                false => table.add_by_middles(blocks),
            }
        }
        table
    }

    /// The row of a block.
    pub(super) fn number(&self, block: &TaskBlock) -> Option<u32> {
        self.numbers.get(&block.key()).copied()
    }

    fn push(&mut self, rows: [Option<u32>; 2], tasks: &'a [u32]) -> u32 {
        self.rows.push(BlockRow { rows, tasks });
        self.rows.len() as u32 - 1
    }

    fn add_growing(&mut self, blocks: RunBlocks<'a>) {
        let mut shorter = (None, 0);
        for span in blocks.spans {
            let row = self.push([shorter.0, None], &blocks.run[shorter.1..span.end]);
            self.numbers.insert((blocks.key, 0, span.end), row);
            shorter = (Some(row), span.end);
        }
    }

    fn add_by_middles(&mut self, blocks: RunBlocks<'a>) {
        let RunBlocks { run, key, spans } = blocks;
        let mut spans: Vec<(usize, Range<usize>)> = spans
            .into_iter()
            .map(|span| (middle(&span), span))
            .collect();
        // Within a middle from the shortest left side to the longest.
        spans.sort_by_key(|(middle, span)| (*middle, usize::MAX - span.start));
        for of_middle in spans.chunk_by(|one, next| one.0 == next.0) {
            let middle = of_middle[0].0;
            let mut ends: Vec<usize> = of_middle.iter().map(|(_, span)| span.end).collect();
            ends.sort_unstable();
            ends.dedup();
            let mut right: Vec<u32> = Vec::with_capacity(ends.len());
            let mut from = middle;
            for end in &ends {
                right.push(self.push([right.last().copied(), None], &run[from..*end]));
                from = *end;
            }
            let (mut left, mut start) = (None, middle);
            for (_, span) in of_middle {
                if span.start < start {
                    left = Some(self.push([left, None], &run[span.start..start]));
                    start = span.start;
                }
                let right = ends.binary_search(&span.end).ok().map(|at| right[at]);
                let row = match (left, right) {
                    (None, Some(row)) => row,
                    _ => self.push([left, right], &[]),
                };
                self.numbers.insert((key, span.start, span.end), row);
            }
        }
    }
}

/// A place inside a block, or its start: the one that the highest power of two divides, so that blocks
/// which lie near each other share it.
fn middle(span: &Range<usize>) -> usize {
    if span.len() < 2 {
        return span.start;
    }
    let last = span.end - 1;
    let highest = (span.start ^ last).ilog2();
    last >> highest << highest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks behind a row.
    fn tasks(table: &BlockTable<'_>, row: u32) -> Vec<u32> {
        let row = &table.rows[row as usize];
        let mut all: Vec<u32> = row.tasks.to_vec();
        for below in row.rows() {
            all.extend(tasks(table, below));
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
            let edges: usize = edges.map(|row| row.rows().count() + row.tasks.len()).sum();
            assert!(edges < 8 * run.len(), "{edges}");
        }
    }
}
