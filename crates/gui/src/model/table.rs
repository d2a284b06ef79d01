//! Long lists of which only the visible part is drawn, and only that part is held.

use std::collections::BTreeMap;

use descartes_views::view::HistoryRow;

/// Rows that are read at once.
pub const CHUNK: u64 = 128;
/// Rows that are held.
const KEPT: usize = 1024;

/// Where a long list stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct List {
    /// The first visible row.
    pub top: f32,
    /// Rows that fit.
    pub fits: f32,
}

impl List {
    /// Moves by so many rows.
    pub fn by(&mut self, rows: f32, total: usize) {
        self.to(self.top + rows, total);
    }

    /// Moves so that this part of the whole is above.
    pub fn to_part(&mut self, part: f32, total: usize) {
        self.to(part * total as f32, total);
    }

    /// Moves to a row.
    pub fn to(&mut self, row: f32, total: usize) {
        let last = (total as f32 - self.fits.floor()).max(0.0);
        self.top = row.clamp(0.0, last).round();
    }

    /// Moves no further than needed to show a row.
    pub fn show(&mut self, row: usize, total: usize) {
        let row = row as f32;
        if row < self.top {
            self.to(row, total);
        } else if row > self.top + self.fits.floor() - 1.0 {
            self.to(row + 1.0 - self.fits.floor(), total);
        }
    }

    /// The visible rows, one more than fits.
    pub fn visible(&self, total: usize) -> std::ops::Range<usize> {
        let first = (self.top.max(0.0) as usize).min(total);
        let last = first + self.fits.ceil().max(1.0) as usize + 1;
        first..last.min(total)
    }

    /// The part of the whole that is above, and the part that is visible.
    pub fn thumb(&self, total: usize) -> (f32, f32) {
        let total = (total as f32).max(1.0);
        (self.top / total, (self.fits / total).min(1.0))
    }
}

/// The history: newest first, of any length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Where it stands.
    pub list: List,
    /// Rows by their place from the oldest, from 1.
    rows: BTreeMap<u64, HistoryRow>,
    /// Reads that are under way.
    asked: Vec<u64>,
    /// The row that is chosen, by its iteration.
    pub chosen: Option<u32>,
    /// Why rows are missing.
    pub trouble: Option<String>,
}

impl Table {
    /// The row of a run.
    pub fn row(&self, run: u64) -> Option<&HistoryRow> {
        self.rows.get(&run)
    }

    /// Keeps rows; forgets those that are farthest from them.
    pub fn take(&mut self, from: u64, rows: Vec<HistoryRow>) {
        self.asked.retain(|asked| *asked != from);
        for row in rows {
            self.rows.insert(row.run, row);
        }
        while self.rows.len() > KEPT {
            let (first, last) = (self.rows.keys().next(), self.rows.keys().next_back());
            let (Some(first), Some(last)) = (first.copied(), last.copied()) else {
                return;
            };
            let far = if from - first.min(from) > last.saturating_sub(from) {
                first
            } else {
                last
            };
            self.rows.remove(&far);
        }
    }

    /// Puts in rows that are known anyway.
    pub fn put<'a>(&mut self, rows: impl Iterator<Item = &'a HistoryRow>) {
        for row in rows {
            self.rows.insert(row.run, row.clone());
        }
    }

    /// Moves no further than needed to show the row of an iteration.
    pub fn show(&mut self, iteration: u32, total: usize) {
        let known = self.rows.values().find(|row| row.iteration == iteration);
        let run = known.map_or(u64::from(iteration), |row| row.run);
        let run = usize::try_from(run).unwrap_or(usize::MAX);
        self.list.show(total.saturating_sub(run), total);
    }

    /// Rows that are visible, not there and not asked for: the beginning of what is to be read.
    pub fn missing(&mut self, total: u64, finished: u64) -> Vec<u64> {
        let visible = self
            .list
            .visible(usize::try_from(total).unwrap_or(usize::MAX));
        let runs = visible.map(|place| total - place as u64);
        let mut wanted: Vec<u64> = runs
            .filter(|run| *run <= finished && !self.rows.contains_key(run))
            .map(|run| (run.saturating_sub(1) / CHUNK) * CHUNK + 1)
            .filter(|from| !self.asked.contains(from))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.asked.extend(&wanted);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stays_within_its_rows() {
        let mut list = List {
            top: 0.0,
            fits: 10.5,
        };
        list.by(-5.0, 100);
        assert_eq!(list.visible(100), 0..12);
        list.to_part(1.0, 100);
        assert_eq!((list.top, list.visible(100)), (90.0, 90..100));
        list.show(3, 100);
        assert_eq!(list.top, 3.0);
        list.show(20, 100);
        assert_eq!(list.top, 11.0);
        list.by(5.0, 4);
        assert_eq!((list.top, list.visible(4)), (0.0, 0..4));
    }

    #[test]
    fn what_is_missing_is_asked_for_once() {
        let mut table = Table::default();
        table.list.fits = 20.0;
        assert_eq!(table.missing(100_000, 100_000), [99_969]);
        assert!(table.missing(100_000, 100_000).is_empty());
        table.list.to_part(0.5, 100_000);
        assert_eq!(table.missing(100_000, 100_000), [49_921]);
    }
}
